//! A decision for a reader who may not see every gate in it.

use sluice_crds::{CheckedGate, Decision};

use super::words::NAMED;

/// The same decision for a reader who may see only the gates that `may_see` allows: of any other gate it
/// has the name, the state, the reason and the policy that asks for it, and not the message.
pub fn redacted(decision: Decision, may_see: impl Fn(&CheckedGate) -> bool) -> Decision {
    let mut decision = decision;
    let mut hidden = false;
    for gate in &mut decision.checked {
        if !may_see(gate) {
            gate.message = unseen(&gate.gate);
            hidden |= decision.decided_by.contains(&gate.gate);
        }
    }
    match hidden {
        true => Decision {
            message: message(&decision),
            ..decision
        },
        false => decision,
    }
}

fn unseen(gate: &str) -> String {
    match gate.split_once('/') {
        Some((namespace, _)) => format!(
            "you may not see why: that needs the verb check on gates.{} in the namespace \
             \"{namespace}\"",
            sluice_crds::GROUP
        ),
        // Shown for a policy that cannot be read.
        None => "you may not see why".to_owned(),
    }
}

/// What the gates that decided say, as far as the reader may see it.
fn message(decision: &Decision) -> String {
    let verb = match decision.allowed {
        true => "let pass by",
        false => "held back by",
    };
    let decided = decision.decided_by.iter().filter_map(|name| {
        let gate = decision.checked.iter().find(|gate| gate.gate == *name)?;
        let CheckedGate {
            message, policy, ..
        } = gate;
        Some(match policy {
            Some(policy) => format!("{name} (GatePolicy {policy}): {message}"),
            None => format!("{name}: {message}"),
        })
    });
    let mut said: Vec<String> = decided.collect();
    if said.len() > NAMED {
        let more = said.len() - NAMED;
        said.truncate(NAMED);
        said.push(format!("and {more} more"));
    }
    format!("{verb} {}", said.join("; "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use sluice_crds::Decision;

    use super::*;

    /// Held back by a gate of a policy, beside one that the subject names.
    fn decision() -> Decision {
        let gate = |gate: &str, policy: Option<&str>| {
            json!({
                "gate": gate, "policy": policy, "state": "Closed", "reason": "OutsideWindow",
                "message": format!("the secret of {gate}"),
            })
        };
        serde_json::from_value(json!({
            "allowed": false,
            "at": "2026-11-20T12:00:00Z",
            "subject": {"kind": "Check", "namespace": "apps", "action": "check"},
            "require": "all",
            "checked": [gate("apps/own", None), gate("platform/freeze", Some("frozen"))],
            "decidedBy": ["apps/own", "platform/freeze"],
            "message": "held back by apps/own: the secret of apps/own; platform/freeze \
                        (GatePolicy frozen): the secret of platform/freeze",
        }))
        .unwrap()
    }

    #[test]
    fn who_may_see_all_is_told_all() {
        assert_eq!(redacted(decision(), |_| true), decision());
    }

    #[test]
    fn nothing_that_may_not_be_seen_is_told() {
        let told = redacted(decision(), |gate| gate.policy.is_none());
        let text = serde_json::to_string(&told).unwrap();
        assert!(!text.contains("the secret of platform"), "{text}");
        assert!(text.contains("the secret of apps/own"), "{text}");
        let before = decision();
        for (told, before) in told.checked.iter().zip(&before.checked) {
            assert_eq!(
                (&told.gate, told.state, &told.reason, &told.policy),
                (&before.gate, before.state, &before.reason, &before.policy)
            );
        }
        assert_eq!(
            told.message,
            "held back by apps/own: the secret of apps/own; platform/freeze (GatePolicy frozen): \
             you may not see why: that needs the verb check on gates.sluice.dev in the namespace \
             \"platform\""
        );
    }

    #[test]
    fn a_policy_that_cannot_be_read_tells_as_little() {
        let mut before = decision();
        before.checked[1].gate = "GatePolicy frozen".to_owned();
        before.decided_by = vec!["GatePolicy frozen".to_owned()];
        let told = redacted(before, |_| false);
        let text = serde_json::to_string(&told).unwrap();
        assert!(!text.contains("the secret of"), "{text}");
    }
}
