//! What Prometheus reads: what was [counted](crate::tell::counters), and what is read from the caches
//! when it asks, so that nothing is kept twice. `docs/reference/metrics.md` lists it all.

use prometheus_client::registry::Registry;

use crate::tell::counters::Counters;

mod branches;
mod clusters;
mod gate_policies;
mod gatekeepers;
mod gates;
mod gauges;
mod pipelines;
mod rollouts;
mod sample;

pub use gauges::Sources;

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
        self.register_promotions(&mut registry);
        registry.register(
            "sluice_rollout_batch_seconds",
            "How long batches of rollouts were held, waited for pods and hooks, and took the controller",
            self.batches.seconds.clone(),
        );
        self.register_artifacts(&mut registry);
        registry.register_collector(Box::new(self.reconciles.clone()));
        registry.register_collector(Box::new(self.branches.clone()));
        registry.register_collector(Box::new(self.forge_requests.clone()));
        registry.register_collector(Box::new(sources));
        registry
    }

    fn register_promotions(&self, registry: &mut Registry) {
        registry.register(
            "sluice_promotions",
            "How promotions, and tries of them, have ended",
            self.promoted.outcomes.clone(),
        );
        registry.register(
            "sluice_promotion_seconds",
            "From when the environment before runs a revision healthily to its promotion being done",
            self.promoted.seconds.clone(),
        );
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
