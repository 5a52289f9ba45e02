//! What the environments of a Pipeline were admitted, and which gates depend on it.

use sluice_crds::pipeline::StrategyKind;
use sluice_crds::{Gatekeeper, Pipeline};

use crate::gate::set::Gathered;

/// All that gatekeepers of the kind `pipeline` read of a Pipeline: its environments with how they are
/// promoted to, and what each was admitted.
pub fn admissions(object: &Pipeline) -> Vec<(String, Option<&'static str>, Vec<String>)> {
    let spec = &object.spec;
    let environments = spec.environments.iter().map(|environment| {
        let strategy = spec.promotion_of(environment);
        let strategy = strategy.and_then(|it| it.strategy.kind());
        let status = object.status.as_ref();
        let status = status.and_then(|it| it.environments.get(&environment.name));
        let admitted = status.into_iter().flat_map(|it| &it.admitted);
        (
            environment.name.clone(),
            strategy.map(StrategyKind::as_str),
            admitted.map(|it| it.revision.clone()).collect(),
        )
    });
    environments.collect()
}

/// The environments whose admissions these gates read: the namespace and the name of the Pipeline, and the
/// environment.
pub fn depends_on(gates: &Gathered) -> Vec<(String, String, String)> {
    let named = gates
        .gatekeepers()
        .into_iter()
        .filter_map(|gatekeeper: &Gatekeeper| {
            let rule = gatekeeper.spec.pipeline.as_ref()?;
            let own = || gatekeeper.metadata.namespace.clone().unwrap_or_default();
            Some((
                rule.namespace.clone().unwrap_or_else(own),
                rule.name.clone(),
                rule.environment.clone(),
            ))
        });
    named.collect()
}
