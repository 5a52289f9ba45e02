//! Gates that nobody has named in the Rollout: those of policies.

use std::sync::Arc;

use super::*;

/// The gate platform/freeze has this state, and a policy asks for it of these kinds.
fn policy(play: &mut Play, kind: &str, state: &str) {
    let gate: sluice_crds::Gate = serde_json::from_value(json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Gate",
        "metadata": {"name": "freeze", "namespace": "platform"}, "spec": {"default": state},
    }))
    .unwrap();
    let policy: sluice_crds::GatePolicy = serde_json::from_value(json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "GatePolicy", "metadata": {"name": "year-end"},
        "spec": {
            "kinds": [kind], "gates": {"refs": [{"name": "freeze", "namespace": "platform"}]},
        },
    }))
    .unwrap();
    play.world.gates.insert(Key::of(&gate.metadata), gate);
    let policy = Ok(Arc::new(policy));
    play.world.policies.insert("year-end".to_owned(), policy);
}

#[test]
fn a_policy_holds_a_plan_that_names_no_gates() {
    let mut play = pair(&json!({"numBatches": 2}));
    policy(&mut play, "Rollout", "closed");
    play.run();
    assert_eq!(play.state(), "verifyingSpec, held: GatesClosed");
    let held = play.status().held.unwrap();
    assert_eq!(held.by.as_deref(), Some("platform/freeze"));
    let by = "platform/freeze (GatePolicy year-end)";
    assert!(held.message.contains(by), "{held:?}");
    assert!(play.log.is_empty());
    rests(&mut play);
    policy(&mut play, "Rollout", "open");
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
    let batches = play.status().batches;
    let decisions = batches.iter().filter_map(|it| it.decision.as_ref());
    assert!(decisions.clone().all(|it| it.message.contains(by)));
    assert_eq!((decisions.count(), play.told.len()), (2, 2));
}

#[test]
fn a_policy_of_other_kinds_holds_nothing() {
    let mut play = pair(&json!({}));
    policy(&mut play, "GatedSource", "closed");
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
}

/// What a metric says of it.
#[test]
fn only_one_that_waits_for_gates_counts_as_blocked() {
    let mut play = pair(&json!({"numBatches": 2, "lastBatchToRollout": 0}));
    let mut blocked = |state: &str| {
        policy(&mut play, "Rollout", state);
        play.run();
        (play.state(), waits_for_gates(&play.status()))
    };
    let closed = "verifyingSpec, held: GatesClosed".to_owned();
    assert_eq!(blocked("closed"), (closed, Some(true)));
    let by_a_person = "batchReady 0, held: LastBatch".to_owned();
    assert_eq!(blocked("open"), (by_a_person, Some(false)));
    // Nobody was asked.
    let mut plain = pair(&json!({}));
    plain.run();
    assert_eq!(waits_for_gates(&plain.status()), None);
}
