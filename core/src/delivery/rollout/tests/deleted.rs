//! A Rollout that is deleted: it goes in the end, and what is left of its run.

use rstest::rstest;
use sluice_crds::rollout::RollingState;

use super::super::claim::{Claim, Ended};
use super::ends::{STATES, measure, stay, until, with_hooks};
use super::*;

#[test]
fn a_rollout_is_deleted_in_each_state() {
    for strategy in ["IncreaseFirst", "DecreaseFirst"] {
        for (revert, state) in [false, true]
            .into_iter()
            .flat_map(|revert| STATES.map(|state| (revert, state)))
        {
            let mut play = with_hooks(strategy, revert);
            measure(&mut play);
            stay(&mut play, state);
            play.look();
            until(&mut play, state);
            play.cluster.delete(play.now);
            play.run();
            let case = format!("{strategy} {revert} {state}: {:?}", play.log);
            assert!(play.cluster.rollout.is_none(), "{case}");
            let (new, old) = play.present();
            match (state, revert) {
                ("rolloutSucceed" | "finalising", _) => assert_eq!((new, old), (10, 0), "{case}"),
                (_, true) => assert_eq!((new, old), (0, 10), "{case}"),
                (_, false) => assert!(new + old >= 10, "{case}"),
            }
            assert!(
                play.cluster.available(&v1()) + play.cluster.available(&v2()) >= 10,
                "{case}"
            );
        }
    }
}

/// The source does not come up: the new pods stay, and the Rollout goes all the same.
#[test]
fn a_revert_never_takes_pods_away_before_the_old_ones_are_there() {
    let mut play = pair(&json!({"numBatches": 2, "lastBatchToRollout": 0, "revertOnDelete": true}));
    play.run();
    assert_eq!(play.present(), (5, 5));
    play.cluster.broken.insert("web:1".into());
    play.cluster.delete(play.now);
    play.run();
    assert_eq!(play.present(), (5, 10));
    assert_eq!(play.state(), "rolloutDeleting");
    play.pass(11);
    play.run();
    assert!(play.cluster.rollout.is_none());
    assert_eq!(play.present(), (5, 10));
}

#[test]
fn a_hook_that_hangs_does_not_keep_a_rollout_that_is_deleted() {
    let mut play = with_hooks("IncreaseFirst", false);
    measure(&mut play);
    play.look();
    until(&mut play, "batchInRolling 0");
    play.silent.insert("finalize-rollout".into());
    play.cluster.delete(play.now);
    play.run();
    assert_eq!(play.state(), "rolloutDeleting");
    play.pass(11);
    play.run();
    assert!(play.cluster.rollout.is_none());
    let told =
        "LeftUndone: there was no progress for too long: the hook finalize-rollout is called";
    assert!(play.news.iter().any(|it| it == told), "{:?}", play.news);
}

/// Its hook at the end hangs. A revert that is on its way goes on, one that is asked for begins, and nothing else is
/// brought back.
#[rstest]
#[case::goes_on("Revert", false, (0, 10))]
#[case::begins("Stop", true, (0, 10))]
#[case::left("Stop", false, (5, 5))]
fn a_rollout_is_deleted_while_it_fails(
    #[case] on_failure: &str,
    #[case] revert: bool,
    #[case] left: (u64, u64),
) {
    let hook = json!({"type": "finalize-rollout", "name": "end", "url": "https://a/b"});
    let mut play = pair(&json!({
        "rolloutStrategy": "DecreaseFirst", "numBatches": 2, "revertOnDelete": revert,
        "rolloutWebhooks": [hook],
    }));
    play.spec(&json!({"onFailure": on_failure, "progressDeadline": "1m"}));
    play.cluster.broken.insert("web:2".into());
    play.silent.insert("end".into());
    play.run();
    assert_eq!(play.present(), (5, 5));
    play.pass(2);
    until(&mut play, "rolloutFailing");
    play.cluster.delete(play.now);
    play.silent.clear();
    play.run();
    assert!(play.cluster.rollout.is_none(), "{}", play.state());
    assert_eq!(play.present(), left);
    let claim = Claim::of(&play.cluster.workloads[&v2()]);
    assert_eq!(claim.unwrap().ended, Some(Ended::Aborted));
}

/// Half a batch of DecreaseFirst: what another run would have gone on from is settled all the same.
#[test]
fn a_rollout_is_deleted_while_it_gives_way_to_another_run() {
    let mut play = pair(&json!({"rolloutStrategy": "DecreaseFirst", "numBatches": 2}));
    while play.sizes().is_empty() {
        play.look();
    }
    assert_eq!(play.present(), (0, 5));
    play.spec(&json!({"revision": "3"}));
    until(&mut play, "rolloutAbandoned");
    play.cluster.delete(play.now);
    play.run();
    assert!(play.cluster.rollout.is_none(), "{}", play.state());
    assert_eq!(play.present(), (0, 10));
    let claim = |of: Name| Claim::of(&play.cluster.workloads[&of]);
    assert_eq!(claim(v2()).unwrap().ended, Some(Ended::Aborted));
    assert_eq!(claim(v1()), None);
}

#[test]
fn what_others_hold_is_left_and_the_rollout_goes() {
    let mut play = pair(&json!({
        "rolloutStrategy": "DecreaseFirst", "numBatches": 2, "revertOnDelete": true,
        "lastBatchToRollout": 0,
    }));
    play.run();
    play.cluster.autoscalers.push(given::Autoscaler {
        name: "hpa".into(),
        kind: "Deployment".into(),
        target: "web-v1".into(),
    });
    play.cluster.delete(play.now);
    play.run();
    assert!(play.cluster.rollout.is_none());
    assert_eq!(play.present(), (5, 5));
    assert!(
        play.news
            .iter()
            .any(|it| it.contains("hpa scales Deployment web-v1")),
        "{:?}",
        play.news
    );
}

#[test]
fn one_that_has_failed_is_taken_back_when_it_is_deleted() {
    let mut play = pair(&json!({"numBatches": 2, "revertOnDelete": true}));
    play.spec(&json!({"progressDeadline": "1m"}));
    play.cluster.broken.insert("web:2".into());
    play.run();
    play.pass(2);
    play.run();
    assert_eq!(play.state(), "rolloutFailed");
    assert_eq!(play.present(), (5, 10));
    play.cluster.delete(play.now);
    play.run();
    assert!(play.cluster.rollout.is_none(), "{}", play.state());
    assert_eq!(play.present(), (0, 10));
}

/// Flux creates the Rollout again that somebody has deleted in the cluster.
#[test]
fn what_was_aborted_does_not_begin_again_by_itself() {
    let mut play = pair(&json!({"numBatches": 2, "lastBatchToRollout": 0, "revertOnDelete": true}));
    play.run();
    let mut again = play.cluster.rollout.clone().unwrap();
    play.cluster.delete(play.now);
    play.run();
    again.metadata.uid = Some("r-2".into());
    again.metadata.finalizers = None;
    again.status = None;
    play.cluster.rollout = Some(again);
    play.log.clear();
    play.run();
    assert_eq!(play.state(), "verifyingSpec, held: RunEnded");
    rests(&mut play);
    assert!(play.log.is_empty());
    play.retry("1");
    play.run();
    assert_eq!(play.state(), "batchReady 0, held: LastBatch");
}

/// A replica that has just become leader does not know the workloads yet. What is claimed is released first.
#[test]
fn the_finalizer_stays_until_the_workloads_are_known() {
    let mut play = pair(&json!({"numBatches": 1}));
    until(&mut play, "rolloutSucceed");
    play.log.clear();
    let mut given = play.given().unwrap();
    for of in [v1(), v2()] {
        given.workloads.insert(
            of,
            super::given::Sight::Unknown("it was not read yet".into()),
        );
    }
    let considered = consider(&given);
    let report = report(&given, &considered, &Answer::NotAsked);
    assert_eq!((report.changed, &*report.acts), (false, &[][..]));
    play.run();
    let expected = ["Release web-v2", "Release web-v1", "Finalize false"];
    assert_eq!(play.log, expected);
}

/// What else is not known, as the autoscalers of the namespace, keeps none that is deleted from going back.
#[test]
fn a_rollout_that_is_deleted_goes_back_also_where_others_are_not_known() {
    let mut play = pair(
        &json!({"rolloutBatches": [{"replicas": 5}, {}], "lastBatchToRollout": 0, "revertOnDelete": true}),
    );
    play.run();
    assert_eq!(play.present(), (5, 5));
    play.cluster.delete(play.now);
    until(&mut play, "rolloutDeleting");
    let mut given = play.given().unwrap();
    given.autoscalers = Err("nobody may list them".to_owned());
    given.unsure_since = Some(play.now - SignedDuration::from_hours(1));
    let considered = consider(&given);
    let report = report(&given, &considered, &Answer::NotAsked);
    let writes = report
        .acts
        .iter()
        .filter(|act| matches!(act, Act::Write(_)));
    assert_eq!(writes.count(), 1, "{:?}", report.acts);
    assert_ne!(
        report.status.rolling_state,
        Some(RollingState::RolloutFailed)
    );
    // What has just been written is behind for a moment.
    let of_v1 = given.workloads.get_mut(&v1()).unwrap();
    let object = std::sync::Arc::new(of_v1.object().unwrap().clone());
    let is_behind = true;
    *of_v1 = given::Sight::Here { object, is_behind };
    let report = super::report(&given, &consider(&given), &Answer::NotAsked);
    assert_eq!(
        report.status.rolling_state,
        Some(RollingState::RolloutDeleting)
    );
    // That is waited for as long as anything is, and then it goes, woken by itself.
    let deleted = given.object.metadata.deletion_timestamp.as_ref();
    let until = deleted.unwrap().0 + SignedDuration::from_mins(10);
    assert_eq!(report.wake, Some(until));
    given.now.at = report.wake.unwrap();
    let report = super::report(&given, &consider(&given), &Answer::NotAsked);
    assert_eq!(
        report.status.rolling_state,
        Some(RollingState::RolloutFailed)
    );
}
