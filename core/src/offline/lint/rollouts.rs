//! What is said of Rollouts beside other objects.

use sluice_crds::rollout::{CanaryMetric, RolloutWebhook, marks};
use sluice_crds::{GateSet, Rollout};

use super::remark::{Remarks, Subject};
use crate::offline::simulate::Key;
use crate::text::refusal::Refusal;
use crate::time::duration;

impl Remarks<'_> {
    /// A Rollout: the gates and the gatekeepers that it names.
    pub(super) fn rollout(&mut self, key: &Key, rollout: &Rollout) {
        let subject = Subject::Rollout(key.clone());
        self.annotations(&subject, &rollout.metadata, &[marks::RETRY]);
        let plan = &rollout.spec.rollout_plan;
        self.gates_of_rollout(key, "spec.gates", rollout.spec.gates.as_ref());
        self.metrics(key, "spec.rolloutPlan", &plan.canary_metric);
        self.hooks(
            key,
            rollout,
            "spec.rolloutPlan.rolloutWebhooks",
            &plan.rollout_webhooks,
        );
        for (place, batch) in plan.rollout_batches.iter().enumerate() {
            let field = format!("spec.rolloutPlan.rolloutBatches[{place}]");
            self.gates_of_rollout(key, &format!("{field}.gates"), batch.gates.as_ref());
            self.metrics(key, &field, &batch.canary_metric);
            let field = format!("{field}.batchRolloutWebhooks");
            self.hooks(key, rollout, &field, &batch.batch_rollout_webhooks);
        }
    }

    /// The gates of a set that are not in the files.
    fn gates_of_rollout(&mut self, key: &Key, field: &str, set: Option<&GateSet>) {
        let named = set.into_iter().flat_map(|set| &set.refs).enumerate();
        for (place, reference) in named {
            let (namespace, name) = (reference.namespace.as_deref(), &reference.name);
            let gate = Key::from_reference(&key.namespace, namespace, name);
            if !self.world.gates.contains_key(&gate) {
                let problem =
                    format!("there is no Gate {gate} in these files, so no batch goes out");
                let field = format!("{field}.refs[{place}]");
                let subject = Subject::Rollout(key.clone());
                self.warn_of(Subject::Gate(gate), subject, field, problem);
            }
        }
    }

    /// The hooks whose answer may take longer than the rollout goes without progress.
    fn hooks(&mut self, key: &Key, rollout: &Rollout, field: &str, hooks: &[RolloutWebhook]) {
        let deadline = &rollout.spec.progress_deadline;
        for (place, hook) in hooks.iter().enumerate() {
            let both = (duration::parse(&hook.timeout), duration::parse(deadline));
            if matches!(both, (Ok(timeout), Ok(deadline)) if timeout >= deadline) {
                let problem = format!(
                    "the rollout fails before an answer may come: its progressDeadline is {deadline}"
                );
                let field = format!("{field}[{place}].timeout");
                let remedy = "write a shorter timeout, or a longer progressDeadline";
                let refusal = Refusal::new(field, problem, remedy);
                self.warn(Subject::Rollout(key.clone()), refusal);
            }
        }
    }

    /// The gatekeepers that measure: whether they are there, and measure anything.
    fn metrics(&mut self, key: &Key, field: &str, metrics: &[CanaryMetric]) {
        for (place, metric) in metrics.iter().enumerate() {
            let field = format!("{field}.canaryMetric[{place}]");
            let template = metric.template_ref.as_ref();
            let name = template.map_or(&metric.name, |template| &template.name);
            let named = Key::from_reference(&key.namespace, None, name);
            let subject = Subject::Rollout(key.clone());
            match self.world.gatekeepers.get(&named) {
                None => {
                    let problem = format!(
                        "there is no Gatekeeper {named} in these files, which holds the rollout"
                    );
                    self.warn_of(Subject::Gatekeeper(named), subject, field, problem);
                }
                Some(found) if found.spec.metric.is_none() => {
                    let problem =
                        format!("the Gatekeeper {named} measures nothing, which holds the rollout");
                    let remedy = "name one of the kind metric";
                    self.warn(subject, Refusal::new(field, problem, remedy));
                }
                Some(_) => {}
            }
        }
    }
}
