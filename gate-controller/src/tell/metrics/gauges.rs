//! What is read when Prometheus asks: the caches, and how this replica stands.

use std::fmt::{self, Error};
use std::sync::Arc;

use kube::Resource;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use sluice_core::gate::Identity;
use sluice_core::time::clock::Trust;
use tokio::time::Instant;

use super::sample::{Sample, family, name, truth};
use super::{branches, clusters, gate_policies, gatekeepers, gates, pipelines, rollouts};
use crate::observe::clock::Clock;
use crate::observe::world::World;
use crate::tell::decisions::{Decisions, Waiting};

/// Where the gauges are read from.
pub struct Sources {
    /// The caches.
    pub world: Arc<World>,
    /// Recent answers.
    pub decisions: Arc<Decisions>,
    /// By which instant an annotation asks for a force.
    pub clock: Arc<dyn Clock>,
    /// How many objects are due to be looked at.
    pub backlog: Box<dyn Fn() -> usize + Send + Sync>,
    /// Whether this replica may write.
    pub leads: Box<dyn Fn() -> bool + Send + Sync>,
}

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sources")
    }
}

impl Collector for Sources {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let gates = sorted(self.world.gates.objects());
        let now = self.clock.now();
        gates::encode(&mut encoder, &gates, now)?;
        let gatekeepers = sorted(self.world.gatekeepers.objects());
        let measured = |gatekeeper: &_| self.world.evidence.of(gatekeeper).measured(now);
        gatekeepers::encode(&mut encoder, &gatekeepers, measured)?;
        let policies = sorted(self.world.policies.objects());
        gate_policies::encode(&mut encoder, &policies)?;
        let pipelines = sorted(self.world.pipelines.objects());
        pipelines::encode(&mut encoder, &pipelines)?;
        clusters::encode(&mut encoder, &pipelines)?;
        let strategies = sorted(self.world.promotion_strategies.objects());
        let accesses = sorted(self.world.accesses.objects());
        let reverts = sorted(self.world.revert_commits.objects());
        branches::encode(&mut encoder, &strategies, &accesses, &reverts)?;
        rollouts::encode(&mut encoder, &sorted(self.world.rollouts.objects()))?;
        blocked(&mut encoder, &self.decisions.waiting())?;
        watches(&mut encoder, &self.world)?;
        self.standing(&mut encoder)
    }
}

/// Writes for how long nothing was heard of each watch that gates are decided by.
fn watches(encoder: &mut DescriptorEncoder<'_>, world: &World) -> Result<(), Error> {
    let ages = world.ages(Instant::now()).into_iter();
    let heard = ages.map(|(plural, age)| Sample {
        labels: vec![("resource", plural)],
        value: age.as_secs_f64(),
    });
    family(
        encoder,
        "sluice_watch_silence_seconds",
        "For how long nothing was heard of a watch; above 180 every gate is closed",
        heard,
    )
}

impl Sources {
    fn standing(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let standing = self.world.standing();
        let skew = match standing.trust {
            Trust::Good => 0.0,
            Trust::Drifting(by) | Trust::Lost(by) => by.as_secs_f64(),
        };
        let backlog = u32::try_from((self.backlog)()).unwrap_or(u32::MAX);
        let gauges = [
            (
                "sluice_leader",
                "1 while this replica may write",
                truth((self.leads)()),
            ),
            (
                "sluice_clock_skew_seconds",
                "Our clock less the API server's, above 5 s",
                skew,
            ),
            (
                "sluice_identity_verified",
                "1 while admission policies verify who forces gates",
                truth(standing.identity == Identity::Verified),
            ),
            (
                "sluice_queue_backlog",
                "Objects that are due to be looked at",
                f64::from(backlog),
            ),
        ];
        for (name, help, value) in gauges {
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(value).encode(metric)?;
        }
        Ok(())
    }
}

/// Writes what waits at its gates.
fn blocked(encoder: &mut DescriptorEncoder<'_>, asked: &[Waiting]) -> Result<(), Error> {
    fn sample(asked: &Waiting) -> Sample<'_> {
        let Waiting {
            kind,
            namespace,
            name,
            waits,
        } = asked;
        Sample {
            labels: vec![("kind", kind), ("namespace", namespace), ("name", name)],
            value: truth(*waits),
        }
    }
    family(
        encoder,
        "sluice_blocked",
        "1 while what asks its gates is told to wait, 0 once it may go on",
        asked.iter().map(sample),
    )
}

/// By namespace and name, so that two pages of the same objects are the same.
fn sorted<K: Resource>(mut objects: Vec<Arc<K>>) -> Vec<Arc<K>> {
    objects.sort_by(|a, b| name(a.as_ref()).cmp(&name(b.as_ref())));
    objects
}
