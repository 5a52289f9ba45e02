//! What Prometheus reads: what is counted as it happens, and what is read from the caches when it
//! asks, so that nothing is kept twice. `docs/reference/metrics.md` lists it all.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use sluice_crds::State;

use crate::tell::events::notifications::Outcome;

mod durations;
mod gate_policies;
mod gatekeepers;
mod gates;
mod gauges;

pub use durations::Durations;
pub use gauges::Sources;

/// The kinds that are looked at and written.
const KINDS: [&str; 4] = ["Gate", "Gatekeeper", "GatePolicy", "GatedSource"];

/// What is counted as it happens.
pub struct Counters {
    /// How long looks took.
    pub reconciles: Durations,
    /// Looks that failed.
    pub failures: Family<KindLabels, Counter>,
    /// Writes that the API server took.
    pub writes: Family<KindLabels, Counter>,
    /// Decided changes of state.
    pub transitions: Family<TransitionLabels, Counter>,
    /// From the instant for which a change was foretold to its status being written, in seconds.
    pub transition_delay: Family<KindLabels, Histogram>,
    /// Events that were not sent.
    pub events_dropped: Counter,
    /// What became of events that were to be told to notification-controller.
    pub notifications: Family<NotificationLabels, Counter>,
    /// Answers to those who asked.
    pub decisions: Family<DecisionLabels, Counter>,
    /// Lines of the audit log.
    pub audit_records: Counter,
    /// Records that were not written into it.
    pub audit_dropped: Counter,
    /// 1 while it cannot be written.
    pub audit_failing: Gauge,
    /// Fetches of artifacts that have ended.
    pub artifact_fetches: Family<ArtifactLabels, Counter>,
    /// Artifacts that are stored.
    pub artifacts: Gauge,
    /// Their bytes.
    pub artifact_bytes: Gauge,
}

/// What somebody asked for, and was answered. Every word is one of a list.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct DecisionLabels {
    /// The kind of the subject.
    pub kind: &'static str,
    /// What it wants to do.
    pub action: &'static str,
    /// Whether it may.
    pub outcome: &'static str,
}

/// What a fetch has come to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ArtifactLabels {
    /// One of a list.
    pub outcome: &'static str,
}

/// What became of an event that was to be told to notification-controller.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct NotificationLabels {
    /// A word of [`crate::tell::events::notifications::Outcome`].
    pub outcome: &'static str,
}

/// A kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct KindLabels {
    /// The kind.
    pub kind: &'static str,
}

/// A change of state.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct TransitionLabels {
    /// The kind.
    pub kind: &'static str,
    /// The state from then on.
    pub state: &'static str,
}

fn delay_histogram() -> Histogram {
    Histogram::new([
        0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
    ])
}

impl Default for Counters {
    /// What is bound to happen is served from the start, at zero: of a series whose first value is 1
    /// Prometheus does not know that it has grown.
    fn default() -> Self {
        let counters = Self {
            reconciles: Durations::default(),
            failures: Family::default(),
            writes: Family::default(),
            transitions: Family::default(),
            transition_delay: Family::new_with_constructor(delay_histogram),
            events_dropped: Counter::default(),
            notifications: Family::default(),
            decisions: Family::default(),
            audit_records: Counter::default(),
            audit_dropped: Counter::default(),
            audit_failing: Gauge::default(),
            artifact_fetches: Family::default(),
            artifacts: Gauge::default(),
            artifact_bytes: Gauge::default(),
        };
        for outcome in crate::artifacts::OUTCOMES {
            let labels = ArtifactLabels { outcome };
            drop(counters.artifact_fetches.get_or_create(&labels));
        }
        for kind in KINDS {
            drop(counters.writes.get_or_create(&KindLabels { kind }));
        }
        for outcome in Outcome::ALL.map(Outcome::as_str) {
            let labels = NotificationLabels { outcome };
            drop(counters.notifications.get_or_create(&labels));
        }
        for state in State::ALL {
            let labels = TransitionLabels {
                kind: "Gate",
                state: state.as_str(),
            };
            drop(counters.transitions.get_or_create(&labels));
        }
        let gates = KindLabels { kind: "Gate" };
        drop(counters.transition_delay.get_or_create(&gates));
        counters
    }
}

impl Counters {
    /// Everything there is to read: these counters, and what the sources say when they are asked.
    pub fn registry(&self, sources: Sources) -> Registry {
        let mut registry = Registry::default();
        registry.register(
            "sluice_reconcile_failures",
            "Looks that failed",
            self.failures.clone(),
        );
        registry.register(
            "sluice_writes",
            "Writes to the API server",
            self.writes.clone(),
        );
        registry.register(
            "sluice_transitions",
            "Changes of state",
            self.transitions.clone(),
        );
        registry.register(
            "sluice_transition_delay_seconds",
            "From the foretold instant of a change to its status being written",
            self.transition_delay.clone(),
        );
        registry.register(
            "sluice_events_dropped",
            "Events that were not sent",
            self.events_dropped.clone(),
        );
        registry.register(
            "sluice_notifications",
            "Events that were to be told to notification-controller",
            self.notifications.clone(),
        );
        registry.register(
            "sluice_decisions",
            "Answers to those who asked",
            self.decisions.clone(),
        );
        registry.register(
            "sluice_audit_records",
            "Lines of the audit log",
            self.audit_records.clone(),
        );
        registry.register(
            "sluice_audit_dropped",
            "Records that were not written into the audit log",
            self.audit_dropped.clone(),
        );
        registry.register(
            "sluice_audit_failing",
            "1 while the audit log cannot be written",
            self.audit_failing.clone(),
        );
        self.register_artifacts(&mut registry);
        registry.register_collector(Box::new(self.reconciles.clone()));
        registry.register_collector(Box::new(sources));
        registry
    }

    fn register_artifacts(&self, registry: &mut Registry) {
        registry.register(
            "sluice_artifact_fetches",
            "Fetches of artifacts that have ended",
            self.artifact_fetches.clone(),
        );
        registry.register(
            "sluice_artifacts",
            "Artifacts that are stored",
            self.artifacts.clone(),
        );
        registry.register(
            "sluice_artifact_bytes",
            "Bytes of the artifacts that are stored",
            self.artifact_bytes.clone(),
        );
    }
}
