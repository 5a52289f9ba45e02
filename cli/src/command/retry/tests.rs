use serde_json::{Value, json};

use super::*;

fn rollout(metadata: &Value, status: &Value) -> Object {
    let mut whole = json!({"name": "web", "namespace": "shop", "generation": 1});
    let (Value::Object(into), Value::Object(more)) = (&mut whole, metadata) else {
        panic!("no object")
    };
    into.extend(more.clone());
    serde_json::from_value(json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Rollout", "metadata": whole,
        "spec": {
            "targetRef": {"kind": "Deployment", "name": "web-v2"},
            "sourceRef": [{"kind": "Deployment", "name": "web-v1"}],
            "revision": "6.8.0", "rolloutPlan": {"numBatches": 2},
        },
        "status": status,
    }))
    .unwrap()
}

fn failed() -> Value {
    json!({
        "observedGeneration": 1, "rollingState": "rolloutFailed", "upgradedReplicas": 6,
        "rolloutTargetSize": 20, "rolloutOriginalSize": 20, "currentBatch": 0,
        "run": {"id": 1, "mode": "Pair", "revision": "6.8.0", "identity": "i", "workloads": []},
    })
}

#[track_caller]
fn refused(object: &Object, why: &str) {
    let said = makes_sense(object).unwrap_err().to_string();
    assert!(said.contains(why), "{said}");
}

#[test]
fn what_has_failed_is_tried_again() {
    let object = rollout(&json!({}), &failed());
    makes_sense(&object).unwrap();
    assert_eq!(
        announced(&object),
        "web: another run of 6.8.0 begins; 6 of 20 pods are there, and batches that they complete are passed"
    );
    let mut failing = failed();
    failing["rollingState"] = json!("rolloutFailing");
    let failing = rollout(&json!({}), &failing);
    makes_sense(&failing).unwrap();
    assert!(announced(&failing).contains("once this one has ended"));
}

#[test]
fn what_somebody_else_has_written_is_written_again() {
    let mut status = failed();
    status["rollingState"] = json!("rollingInBatches");
    status["batchRollingState"] = json!("batchInRolling");
    status["held"] =
        json!({"reason": "FieldOverwritten", "message": "m", "since": "2026-11-20T12:00:00Z"});
    let object = rollout(&json!({}), &status);
    makes_sense(&object).unwrap();
    assert!(announced(&object).contains("this one gives way"));
    status["held"]["reason"] = json!("GatesClosed");
    refused(&rollout(&json!({}), &status), "goes on by itself");
    status["held"] = Value::Null;
    refused(&rollout(&json!({}), &status), "has not failed");
}

#[test]
fn another_run_is_refused_where_it_makes_no_sense() {
    let with = |metadata: Value, status: Value| rollout(&metadata, &status);
    let mut succeeded = failed();
    succeeded["rollingState"] = json!("rolloutSucceed");
    refused(&with(json!({}), succeeded), "nothing is left to retry");
    refused(&with(json!({}), json!({})), "has not failed");
    let asked = json!({"annotations": {"sluice.dev/retry": "1"}});
    refused(&with(asked.clone(), failed()), "is asked for already");
    let mut handled = failed();
    handled["lastHandledRetryAt"] = json!("1");
    makes_sense(&with(asked, handled)).unwrap();
    let going = json!({"deletionTimestamp": "2026-11-20T12:00:00Z"});
    refused(&with(going, failed()), "is being deleted");
    let mut object = with(json!({}), failed());
    object.spec.target_ref.kind = "DaemonSet".to_owned();
    refused(&object, "is refused, and so would another run be");
}
