//! What is said of Rollouts beside other objects.

use sluice_crds::rollout::{CanaryMetric, marks};
use sluice_crds::{GateSet, Rollout};

use super::remark::{Remarks, Subject};
use crate::offline::simulate::Key;
use crate::text::refusal::Refusal;

impl Remarks<'_> {
    /// A Rollout: the gates and the gatekeepers that it names.
    pub(super) fn rollout(&mut self, key: &Key, rollout: &Rollout) {
        let subject = Subject::Rollout(key.clone());
        self.annotations(&subject, &rollout.metadata, &[marks::RETRY]);
        let plan = &rollout.spec.rollout_plan;
        self.gates_of_rollout(key, "spec.gates", rollout.spec.gates.as_ref());
        self.metrics(key, "spec.rolloutPlan", &plan.canary_metric);
        for (place, batch) in plan.rollout_batches.iter().enumerate() {
            let field = format!("spec.rolloutPlan.rolloutBatches[{place}]");
            self.gates_of_rollout(key, &format!("{field}.gates"), batch.gates.as_ref());
            self.metrics(key, &field, &batch.canary_metric);
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
