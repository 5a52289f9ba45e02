//! What Prometheus reads. Gates are read from the caches when it asks: nothing is kept twice.

use std::fmt::Error;
use std::sync::Arc;

use jiff::Timestamp;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::{MetricType, TypedMetric};
use prometheus_client::registry::Registry;
use sluice_core::clock::Trust;
use sluice_core::gate::Identity;
use sluice_crds::{Gate, Setting, State};

use crate::world::World;

mod durations;

pub use durations::Durations;

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
    fn default() -> Self {
        Self {
            reconciles: Durations::default(),
            failures: Family::default(),
            writes: Family::default(),
            transitions: Family::default(),
            transition_delay: Family::new_with_constructor(delay_histogram),
            events_dropped: Counter::default(),
        }
    }
}

impl Counters {
    /// Everything there is to read: these counters, and the gates of `world`.
    pub fn registry(
        &self,
        world: Arc<World>,
        backlog: impl Fn() -> usize + Send + Sync + 'static,
    ) -> Registry {
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
        registry.register_collector(Box::new(self.reconciles.clone()));
        registry.register_collector(Box::new(Gauges {
            world,
            backlog: Box::new(backlog),
        }));
        registry
    }
}

struct Gauges {
    world: Arc<World>,
    backlog: Box<dyn Fn() -> usize + Send + Sync>,
}

impl std::fmt::Debug for Gauges {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Gauges")
    }
}

impl Collector for Gauges {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let mut gates = self.world.gates.objects();
        gates.sort_by(|a, b| {
            let name = |gate: &Gate| (gate.metadata.namespace.clone(), gate.metadata.name.clone());
            name(a).cmp(&name(b))
        });
        each(
            &mut encoder,
            "sluice_gate_state",
            "1 for the state of the gate, 0 for the others",
            |metric| {
                for gate in &gates {
                    for state in State::ALL {
                        let is =
                            gate.status.as_ref().and_then(|status| status.state) == Some(state);
                        sample(
                            metric,
                            &with(gate, "state", state.as_str()),
                            f64::from(u8::from(is)),
                        )?;
                    }
                }
                Ok(())
            },
        )?;
        each(
            &mut encoder,
            "sluice_gate_next_transition_timestamp_seconds",
            "When the gate changes next, if that is known",
            |metric| {
                for gate in &gates {
                    if let Some(at) = next_transition(gate) {
                        sample(metric, &labels(gate), seconds(at))?;
                    }
                }
                Ok(())
            },
        )?;
        each(
            &mut encoder,
            "sluice_gate_override",
            "When the force on the gate ends, in seconds since the epoch",
            |metric| {
                for gate in &gates {
                    let status = gate.status.as_ref();
                    if let Some(force) = status.and_then(|status| status.r#override.as_ref()) {
                        let state = match force.state {
                            Setting::Open => "open",
                            Setting::Closed => "closed",
                        };
                        sample(metric, &with(gate, "state", state), seconds(force.until.0))?;
                    }
                }
                Ok(())
            },
        )?;
        self.standing(&mut encoder)
    }
}

impl Gauges {
    fn standing(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let standing = self.world.standing();
        let skew = match standing.trust {
            Trust::Good => 0.0,
            Trust::Drifting(by) | Trust::Lost(by) => by.as_secs_f64(),
        };
        let verified = f64::from(u8::from(standing.identity == Identity::Verified));
        let backlog = u32::try_from((self.backlog)()).unwrap_or(u32::MAX);
        let gauges = [
            (
                "sluice_clock_skew_seconds",
                "Our clock less the API server's, above 5 s",
                skew,
            ),
            (
                "sluice_identity_verified",
                "1 while admission policies verify who forces gates",
                verified,
            ),
            (
                "sluice_queue_backlog",
                "Objects that are due to be looked at",
                f64::from(backlog),
            ),
        ];
        for (name, help, value) in gauges {
            let gauge = ConstGauge::new(value);
            gauge.encode(encoder.encode_descriptor(
                name,
                help,
                None,
                ConstGauge::<f64>::TYPE,
            )?)?;
        }
        Ok(())
    }
}

fn each(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    samples: impl FnOnce(&mut MetricEncoder<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    samples(&mut metric)
}

type Labels<'a> = Vec<(&'static str, &'a str)>;

fn sample(metric: &mut MetricEncoder<'_>, labels: &Labels<'_>, value: f64) -> Result<(), Error> {
    ConstGauge::new(value).encode(metric.encode_family(&labels.as_slice())?)
}

fn labels(gate: &Gate) -> Labels<'_> {
    let namespace = gate.metadata.namespace.as_deref().unwrap_or_default();
    vec![
        ("namespace", namespace),
        ("name", gate.metadata.name.as_deref().unwrap_or_default()),
    ]
}

fn with<'a>(gate: &'a Gate, name: &'static str, value: &'a str) -> Labels<'a> {
    let mut all = labels(gate);
    all.push((name, value));
    all
}

fn next_transition(gate: &Gate) -> Option<Timestamp> {
    Some(gate.status.as_ref()?.upcoming.first()?.at.0)
}

/// Seconds since the epoch; milliseconds of any year in reach are exact in it.
#[allow(
    clippy::cast_precision_loss,
    reason = "an instant in seconds is far below 2^53"
)]
fn seconds(at: Timestamp) -> f64 {
    at.as_second() as f64
}
