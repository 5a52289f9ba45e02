//! Forces that no controller has accepted.
//!
//! Only the controller knows whether it is verified who forces a gate: it watches the admission
//! policies. What comes in: a gate, and what is said of it here, where such a force counts as
//! unverified. What goes out: the same, but the policies are named as the cause only if the controller
//! does so.

use jiff::Timestamp;
use sluice_core::Refusal;
use sluice_core::gate::{Identity, force};
use sluice_crds::Gate;
use sluice_crds::gate::annotations::FORCE_SEEN;

/// What to say about the force on `gate` at `now` instead of saying that it is not verified. None: the
/// controller says the same.
pub(super) fn complaint(gate: &Gate, now: Timestamp) -> Option<Refusal> {
    let status = gate.status.as_ref();
    let said = status.and_then(|status| status.message.as_deref());
    let blame = force::unverified().to_string();
    if said.is_some_and(|said| said.contains(&blame)) {
        return None;
    }
    let forces = force::read(gate, Identity::Trusted, now);
    let force = forces.asked_for(now)?;
    Some(Refusal::new(
        format!("metadata.annotations[{FORCE_SEEN}]"),
        format!(
            "no controller has accepted the force {} by {}, so it does not count yet",
            force.state, force.by
        ),
        "see whether one is running",
    ))
}

/// The same within `message`, which says that the force on `gate` is not verified.
pub(super) fn explain(gate: &Gate, message: &str, now: Timestamp) -> String {
    match complaint(gate, now) {
        None => message.to_owned(),
        Some(complaint) => {
            let blame = force::unverified().to_string();
            message.replace(&blame, &complaint.to_string())
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
            "metadata": {"name": "a", "namespace": "apps", "annotations": {
                "sluice.dev/force": "open", "sluice.dev/force-by": "alice",
                "sluice.dev/force-reason": "why",
            }},
            "spec": {},
            "status": status,
        });
        serde_json::from_value(gate).unwrap()
    }

    const BLAME: &str = "closed by default. metadata.annotations: the gate is forced by somebody \
                         whose identity nobody verified, so the force does not count; install the \
                         admission policies of the chart, or run the controller with \
                         --trust-unverified-identity";

    #[rstest]
    #[case::nobody_has_looked(json!({}))]
    #[case::nobody_has_looked_since(json!({"message": "closed by default"}))]
    fn a_force_that_no_controller_has_seen_is_not_blamed_on_the_policies(#[case] status: Value) {
        let now = "2026-11-20T12:00:00Z".parse().unwrap();
        assert_eq!(
            explain(&gate(&status), BLAME, now),
            "closed by default. metadata.annotations[sluice.dev/force-seen]: no controller has \
             accepted the force open by alice, so it does not count yet; see whether one is running"
        );
        let other = "closed by default";
        assert_eq!(explain(&gate(&status), other, now), other);
    }

    #[test]
    fn what_the_controller_blames_on_them_is() {
        let now = "2026-11-20T12:00:00Z".parse().unwrap();
        let gate = gate(&json!({"message": BLAME}));
        assert_eq!(explain(&gate, BLAME, now), BLAME);
    }
}
