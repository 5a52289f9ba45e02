//! What is counted as it happens: those who do it count it here.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use sluice_crds::State;

mod branches;
mod durations;
mod forges;
mod outcomes;
mod promotions;
mod rollouts;

pub use branches::Branches;
pub use durations::Durations;
pub use forges::ForgeRequests;
pub use outcomes::Notified;
pub(crate) use outcomes::OF_FETCHES;
pub use promotions::{OutcomeLabels, Promoted, StrategyLabels};
pub use rollouts::{Batches, PartLabels};

/// The kinds that are looked at and written.
const KINDS: [&str; 11] = [
    "Gate",
    "Gatekeeper",
    "GatePolicy",
    "GatedSource",
    "Pipeline",
    "PullRequest",
    "GitRepositoryAccess",
    "PromotionStrategy",
    "CommitStatus",
    "RevertCommit",
    "Rollout",
];

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
    /// The outcomes of events for notification-controller.
    pub notifications: Family<NotificationLabels, Counter>,
    /// How promotions end, and how long they take.
    pub promoted: Promoted,
    /// How commits come to environments that are branches.
    pub branches: Branches,
    /// How long batches of Rollouts take.
    pub batches: Batches,
    /// Requests to forges.
    pub forge_requests: ForgeRequests,
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

/// The outcome of a fetch.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ArtifactLabels {
    /// One of a list.
    pub outcome: &'static str,
}

/// The outcome of an event for notification-controller.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct NotificationLabels {
    /// A word of [`Notified`].
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
            promoted: Promoted::default(),
            branches: Branches::default(),
            batches: Batches::default(),
            forge_requests: ForgeRequests::default(),
            decisions: Family::default(),
            audit_records: Counter::default(),
            audit_dropped: Counter::default(),
            audit_failing: Gauge::default(),
            artifact_fetches: Family::default(),
            artifacts: Gauge::default(),
            artifact_bytes: Gauge::default(),
        };
        for outcome in OF_FETCHES {
            let labels = ArtifactLabels { outcome };
            drop(counters.artifact_fetches.get_or_create(&labels));
        }
        for kind in KINDS {
            drop(counters.writes.get_or_create(&KindLabels { kind }));
        }
        for outcome in Notified::ALL.map(Notified::as_str) {
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

impl Notified {
    /// So many events had this outcome.
    pub(crate) fn count(self, counters: &Counters, events: u64) {
        let outcome = self.as_str();
        let labels = NotificationLabels { outcome };
        counters.notifications.get_or_create(&labels).inc_by(events);
    }
}
