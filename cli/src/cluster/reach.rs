//! Gatekeepers in other namespaces: which of those that a gate names count.
//!
//! The controller's flags decide that (`--no-cross-namespace-refs`, `--watch-all-namespaces`), and the
//! plugin does not know them. What comes in: a gate. What goes out: the gatekeepers that its status says
//! the controller does not count, and those of which it has not said anything yet.

use std::collections::BTreeSet;

use sluice_core::Reason;
use sluice_core::gate::FORBIDDEN;
use sluice_core::offline::simulate::{Decision, Key, World};
use sluice_crds::gate::GatekeeperVerdict;
use sluice_crds::gatekeeper::VerdictStatus;
use sluice_crds::{Gate, GatedSource, Gatekeeper, State};

/// Why a gatekeeper in another namespace does not count.
const NOT_COUNTED: [Reason; 2] = [Reason::CrossNamespaceRef, Reason::Missing];

/// The gatekeepers in other namespaces that `gate` names and that do not count, with what to report
/// about them. The controller sees what is in its own namespace as we do.
pub(super) fn uncounted(gate: &Gate) -> Vec<(Key, VerdictStatus)> {
    let own = Key::of(&gate.metadata).namespace;
    let status = gate.status.as_ref();
    let status = status.filter(|it| it.observed_generation == gate.metadata.generation);
    let said = status.map_or(&[][..], |status| &status.verdicts);
    let named = gate.spec.gatekeepers.iter();
    let named = named.map(|reference| Key::named_by(gate, reference));
    let elsewhere = named.filter(|key| key.namespace != own);
    let verdict = |key: Key| {
        let name = key.to_string();
        let verdict = match said.iter().find(|it| it.gatekeeper == name) {
            None => not_said(),
            Some(it) => {
                let mut reasons = NOT_COUNTED.iter();
                let is_not_counted = reasons.any(|reason| reason.as_str() == it.verdict.reason);
                is_not_counted.then(|| it.verdict.clone())?
            }
        };
        Some((key, verdict))
    };
    elsewhere.filter_map(verdict).collect()
}

/// The gates that a gatekeeper names; those in other namespaces only if its controller has said their
/// result, and not that they do not count.
pub(super) fn named_by(keeper: &Gatekeeper) -> Vec<Key> {
    let (counted, _) = nested(keeper);
    counted
}

/// The gates that a gatekeeper names, those that count and those that do not.
fn nested(keeper: &Gatekeeper) -> (Vec<Key>, Vec<Key>) {
    let own = Key::of(&keeper.metadata).namespace;
    let status = keeper.current_status();
    let verdict = status.and_then(|status| status.verdict.as_ref());
    let reach = verdict.is_some_and(|said| !said.message.contains(FORBIDDEN));
    let references = keeper.spec.gates.iter().flat_map(|gates| &gates.refs);
    references
        .map(|it| Key::from_reference(&own, it.namespace.as_deref(), &it.name))
        .partition(|key| reach || key.namespace == own)
}

/// What gates and gatekeepers name in other namespaces and does not count, each with the namespace of
/// the object that names it: a policy, or an object in another namespace, may still name the same.
pub(super) fn forbidden(world: &World) -> BTreeSet<(String, Key)> {
    let gates = world.gates.iter().chain(&world.nested);
    let by_gates = gates.flat_map(|(key, gate)| {
        let named = uncounted(gate).into_iter();
        named.map(|(named, _)| (key.namespace.clone(), named))
    });
    let by_keepers = world.gatekeepers.iter().flat_map(|(key, keeper)| {
        let (_, named) = nested(keeper);
        let named = named.into_iter();
        named.map(|named| (key.namespace.clone(), named))
    });
    let to_pipelines = world.gatekeepers.iter();
    let to_pipelines = to_pipelines.filter_map(|(key, keeper)| {
        let named = pipeline(keeper).filter(|_| !reaches_pipeline(keeper))?;
        Some((key.namespace.clone(), named))
    });
    by_gates.chain(by_keepers).chain(to_pipelines).collect()
}

/// The Pipeline that a gatekeeper names.
pub(super) fn pipeline(keeper: &Gatekeeper) -> Option<Key> {
    let own = Key::of(&keeper.metadata).namespace;
    let named = keeper.spec.pipeline.as_ref()?;
    let namespace = named.namespace.as_deref();
    Some(Key::from_reference(&own, namespace, &named.name))
}

/// Whether the controller lets a gatekeeper name its Pipeline: unless it has said that it does not.
fn reaches_pipeline(keeper: &Gatekeeper) -> bool {
    let status = keeper.current_status();
    let verdict = status.and_then(|status| status.verdict.as_ref());
    verdict.is_none_or(|said| said.reason != Reason::CrossNamespaceRef.as_str())
}

/// The gates in other namespaces that a gated source names, and that its controller has said do not
/// count.
pub(super) fn forbidden_to(source: &GatedSource) -> Vec<(String, Key)> {
    let own = Key::of(&source.metadata).namespace;
    let decision = source
        .status
        .as_ref()
        .and_then(|it| it.last_decision.as_ref());
    let checked = decision.into_iter().flat_map(|decision| &decision.checked);
    let forbidden = checked
        .filter(|gate| gate.policy.is_none() && gate.reason == Reason::CrossNamespaceRef.as_str());
    let named = forbidden.filter_map(|gate| gate.gate.split_once('/'));
    named
        .map(|(namespace, name)| (own.clone(), Key::from_reference(namespace, None, name)))
        .collect()
}

fn not_said() -> VerdictStatus {
    VerdictStatus {
        state: State::Closed,
        reason: Reason::NotObserved.as_str().to_owned(),
        message: "it is in another namespace, and no controller has said yet whether it counts"
            .to_owned(),
        valid_until: None,
    }
}

/// Has a decision, which knows them only as missing, say what is to be said of them.
pub(super) fn explain(decision: &mut Decision, uncounted: &[(Key, VerdictStatus)]) {
    for (key, said) in uncounted {
        let name = key.to_string();
        let told = decision.verdicts.iter_mut();
        for GatekeeperVerdict { verdict, .. } in told.filter(|it| it.gatekeeper == name) {
            let words = |verdict: &VerdictStatus| format!("{name}: {}", verdict.message);
            decision.message = decision.message.replace(&words(verdict), &words(said));
            let decides = decision.decided_by.as_ref() == Some(&name);
            if decides && decision.reason == verdict.reason {
                decision.reason.clone_from(&said.reason);
            }
            verdict.clone_from(said);
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn gate(status: &Value) -> Gate {
        let gate = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Gate",
            "metadata": {"name": "a", "namespace": "apps", "generation": 2},
            "spec": {"gatekeepers": [
                {"name": "x"}, {"name": "y", "namespace": "apps"}, {"name": "x", "namespace": "platform"},
            ]},
            "status": status,
        });
        serde_json::from_value(gate).unwrap()
    }

    fn told(generation: i64, gatekeeper: &str, reason: &str) -> Value {
        let verdict = json!({
            "gatekeeper": gatekeeper, "state": "Closed", "reason": reason, "message": "words",
        });
        json!({"observedGeneration": generation, "verdicts": [verdict]})
    }

    #[rstest]
    #[case::nobody_has_looked(json!({}), Some("NotObserved"))]
    #[case::another_spec(told(1, "platform/x", "Manual"), Some("NotObserved"))]
    #[case::of_another(told(2, "x", "GatekeeperMissing"), Some("NotObserved"))]
    #[case::forbidden(told(2, "platform/x", "CrossNamespaceRef"), Some("CrossNamespaceRef"))]
    #[case::out_of_sight(told(2, "platform/x", "GatekeeperMissing"), Some("GatekeeperMissing"))]
    #[case::counted(told(2, "platform/x", "Manual"), None)]
    fn what_the_controller_does_not_count_is_known_from_the_status(
        #[case] status: Value,
        #[case] reason: Option<&str>,
    ) {
        let found = uncounted(&gate(&status));
        let found: Vec<_> = found
            .iter()
            .map(|(key, verdict)| (key.to_string(), verdict.reason.as_str()))
            .collect();
        let expected: Vec<_> = reason
            .map(|reason| ("platform/x".to_owned(), reason))
            .into_iter()
            .collect();
        assert_eq!(found, expected);
    }
}
