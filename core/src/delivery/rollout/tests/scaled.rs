//! One Deployment that is scaled by itself.

use rstest::rstest;

use super::super::claim::{Claim, Ended};
use super::*;

/// web-v2 of 4 pods is to have 12, in two batches.
pub(super) fn scaled(spec: &Value) -> Play {
    let mut whole = json!({
        "targetRef": {"kind": "Deployment", "name": "web-v2"}, "revision": "2",
        "rolloutPlan": {"targetSize": 12, "numBatches": 2},
    });
    json_patch::merge(&mut whole, spec);
    let mut play = Play::new(&whole);
    play.deployment("web-v2", 4, "web:2");
    play
}

#[test]
fn a_deployment_is_deployed_for_the_first_time_and_scaled() {
    let spec = json!({
        "targetRef": {"kind": "Deployment", "name": "web-v2"}, "revision": "2",
        "rolloutPlan": {"targetSize": 4, "rolloutBatches": [{"replicas": 1}, {}]},
    });
    let mut play = Play::new(&spec);
    play.deployment("web-v2", 0, "web:2");
    play.run();
    assert_eq!(play.sizes(), ["Scale web-v2 1", "Scale web-v2 4"]);
    // Again and again, up and down.
    for (revision, size, expected) in [
        ("3", 8, ["Scale web-v2 5", "Scale web-v2 8"]),
        ("4", 2, ["Scale web-v2 7", "Scale web-v2 2"]),
        ("5", 0, ["Scale web-v2 1", "Scale web-v2 0"]),
    ] {
        play.log.clear();
        play.spec(&json!({"revision": revision, "rolloutPlan": {"targetSize": size}}));
        play.run();
        assert_eq!(play.sizes(), expected);
        assert_eq!(play.state(), "rolloutSucceed");
    }
}

#[test]
fn without_a_source_the_target_size_is_needed() {
    let spec = json!({
        "targetRef": {"kind": "Deployment", "name": "web-v2"}, "rolloutPlan": {},
    });
    let mut play = Play::new(&spec);
    play.deployment("web-v2", 3, "web:2");
    play.run();
    assert_eq!(play.state(), "rolloutFailed");
    let outcome = play.status().outcome.unwrap();
    assert!(outcome.message.contains("targetSize"), "{outcome:?}");
}

/// Halfway it is deleted, or fails. What it was is brought back only where the spec says so of that.
#[rstest]
#[case::deleted(true, &json!({"rolloutPlan": {"revertOnDelete": true}}), 4)]
#[case::deleted_and_left(true, &json!({"onFailure": "Revert"}), 8)]
#[case::failed(false, &json!({"onFailure": "Revert"}), 4)]
#[case::failed_and_left(false, &json!({"rolloutPlan": {"revertOnDelete": true}}), 8)]
fn a_size_that_is_not_reached_is_left_or_goes_back(
    #[case] is_deleted: bool,
    #[case] spec: &Value,
    #[case] left: u64,
) {
    let mut play = scaled(spec);
    play.cluster.broken.insert("web:2".into());
    play.run();
    assert_eq!(play.cluster.replicas(&v2()), 8);
    match is_deleted {
        true => play.cluster.delete(play.now),
        false => play.pass(11),
    }
    play.run();
    assert_eq!(play.cluster.replicas(&v2()), left);
    assert_eq!(play.cluster.rollout.is_none(), is_deleted);
    let claim = Claim::of(&play.cluster.workloads[&v2()]).unwrap();
    let how = if is_deleted {
        Ended::Aborted
    } else {
        Ended::Failed
    };
    assert_eq!(claim.ended, Some(how));
}
