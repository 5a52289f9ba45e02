//! What is said of Pipelines beside other objects, and of gatekeepers that name one.

use std::collections::BTreeSet;

use sluice_crds::Pipeline;
use sluice_crds::gatekeeper::PipelineRule;
use sluice_crds::pipeline::{StrategyKind, marks};

use super::remark::{Remarks, Subject};
use crate::offline::simulate::Key;
use crate::text::refusal::Refusal;

impl Remarks<'_> {
    /// The Pipeline that a gatekeeper names: whether it admits anything to that environment.
    pub(super) fn promoting(&mut self, key: &Key, named: &PipelineRule) {
        let subject = || Subject::Gatekeeper(key.clone());
        let pipeline = Key::from_reference(&key.namespace, named.namespace.as_deref(), &named.name);
        let environment = &named.environment;
        let Some(found) = self.world.pipelines.get(&pipeline) else {
            let problem =
                format!("there is no Pipeline {pipeline} in these files, so it admits nothing");
            let missing = Subject::Pipeline(pipeline);
            return self.warn_of(missing, subject(), "spec.pipeline".to_owned(), problem);
        };
        let Some(found) = found else {
            return;
        };
        let spec = &found.spec;
        let place = spec
            .environments
            .iter()
            .position(|it| it.name == *environment);
        let known = place.and_then(|place| Some((place, spec.environments.get(place)?)));
        let field = "spec.pipeline.environment";
        let Some((place, known)) = known else {
            let problem = format!(
                "the Pipeline {pipeline} has no environment `{environment}`, so it admits nothing"
            );
            let names: Vec<&str> = spec
                .environments
                .iter()
                .map(|it| it.name.as_str())
                .collect();
            let remedy = format!("write one of {}", names.join(", "));
            return self.warn(subject(), Refusal::new(field, problem, remedy));
        };
        let strategy = spec.promotion_of(known).and_then(|it| it.strategy.kind());
        if place == 0 {
            let problem = format!(
                "nothing is promoted to `{environment}`, the first environment of the Pipeline \
                 {pipeline}, so it admits nothing"
            );
            let remedy = "name a later environment";
            self.warn(subject(), Refusal::new(field, problem, remedy));
        } else if !matches!(strategy, Some(StrategyKind::Admission(_))) {
            let problem = format!(
                "the Pipeline {pipeline} does not promote to `{environment}` by an admission, so \
                 it admits nothing"
            );
            let remedy = "write strategy: {admission: {}} for that environment of the Pipeline";
            self.warn(subject(), Refusal::new(field, problem, remedy));
        }
    }

    /// A Pipeline: the gates that it names, and what has no effect.
    pub(super) fn pipeline(&mut self, key: &Key, pipeline: &Pipeline) {
        let subject = || Subject::Pipeline(key.clone());
        self.annotations(&subject(), &pipeline.metadata, &[marks::RETRY]);
        for (n, environment) in pipeline.spec.environments.iter().enumerate() {
            let field = format!("spec.environments[{n}]");
            if n == 0 && environment.promotion.is_some() {
                let field = format!("{field}.promotion");
                let problem = "nothing is promoted to the first environment";
                self.warn(subject(), Refusal::new(field, problem, "remove it"));
            }
            let mut known = BTreeSet::new();
            for (place, target) in environment.targets.iter().enumerate() {
                if !known.insert((&target.namespace, &target.cluster_ref)) {
                    let field = format!("{field}.targets[{place}]");
                    let problem = "the same target is listed before";
                    self.warn(subject(), Refusal::new(field, problem, "remove one"));
                }
            }
            let named = environment.gates.iter().flat_map(|gates| &gates.refs);
            for (place, reference) in named.enumerate() {
                let (namespace, name) = (reference.namespace.as_deref(), &reference.name);
                let gate = Key::from_reference(&key.namespace, namespace, name);
                if !self.world.gates.contains_key(&gate) {
                    let problem = format!(
                        "there is no Gate {gate} in these files, so nothing is promoted to `{}`",
                        environment.name
                    );
                    let field = format!("{field}.gates.refs[{place}]");
                    self.warn_of(Subject::Gate(gate), subject(), field, problem);
                }
            }
        }
    }
}
