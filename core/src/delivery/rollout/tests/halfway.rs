//! A run that begins where another one has stopped halfway: what comes back at its end, and how many pods there are to
//! be.

use rstest::rstest;

use super::super::claim::{Claim, Ended};
use super::ends::until;
use super::*;

/// An earlier version that has failed. It has no pods, and is a source so that it stays empty.
fn bad() -> Name {
    name(Kind::Deployment, "web-bad")
}

fn v0() -> Name {
    name(Kind::Deployment, "web-v0")
}

fn v3() -> Name {
    name(Kind::Deployment, "web-v3")
}

fn scale(play: &mut Play, of: &Name, replicas: u64) {
    play.cluster
        .foreign(of, "/spec/replicas", replicas.into(), "kubectl");
    play.cluster.settle();
}

fn remove(play: &mut Play, of: &Name) {
    play.cluster.workloads.remove(of);
    play.cluster.pods.remove(of);
}

/// Somebody deletes it in the foreground: it goes once its pods are gone.
fn foreground(play: &mut Play, of: &Name) {
    let at = play.now.to_string().into();
    play.cluster
        .foreign(of, "/metadata/deletionTimestamp", at, "kubectl");
}

/// The old version is about to come back: the Rollout is deleted, or its next batch fails.
fn turns_back(play: &mut Play, is_deleted: bool) {
    play.spec(&json!({
        "onFailure": "Revert", "rolloutPlan": {"revertOnDelete": true, "lastBatchToRollout": null},
    }));
    if is_deleted {
        play.cluster.delete(play.now);
        return until(play, "rolloutDeleting");
    }
    play.cluster.broken.insert("web:2".into());
    play.gate("open");
    play.run();
    play.pass(11);
    until(play, "rolloutFailing");
}

/// A run whose first half may go out. The sources are web-v1 with 10 pods, and one more.
fn two_sources(source: &Name, pods: u64, strategy: &str) -> Play {
    let plan = json!({"rolloutStrategy": strategy, "numBatches": 2, "lastBatchToRollout": 0});
    let mut play = pair(&plan);
    play.deployment(&source.name, pods, "web:0");
    play.spec(&json!({"sourceRef": [
        {"kind": "Deployment", "name": "web-v1"}, {"kind": "Deployment", "name": source.name},
    ]}));
    play
}

/// One half is out, and a second run goes on from there: it waits for its gate.
fn again(source: &Name, pods: u64) -> Play {
    let mut play = two_sources(source, pods, "IncreaseFirst");
    play.run();
    play.gate("open");
    play.spec(&json!({"rolloutPlan": {"lastBatchToRollout": null}}));
    play.retry("1");
    until(&mut play, "initializing");
    play.gate("closed");
    play.run();
    assert_eq!(play.state(), "batchReady 0, held: GatesClosed");
    play
}

/// The target is gone, with the pods that it had before the run.
#[rstest]
fn a_version_without_pods_gets_none_for_a_target_that_is_gone(
    #[values("Stop", "Revert")] on_failure: &str,
) {
    let mut play = again(&bad(), 0);
    assert_eq!(play.present(), (5, 5));
    play.spec(&json!({ "onFailure": on_failure }));
    remove(&mut play, &v2());
    play.run();
    assert_eq!(play.state(), "rolloutFailed");
    assert_eq!(play.present(), (0, 10));
    assert_eq!(play.cluster.replicas(&bad()), 0);
}

/// Somebody has scaled the target down, and follows the remedy that the message names.
#[test]
fn a_version_without_pods_gets_none_where_a_run_gives_way() {
    let mut play = again(&bad(), 0);
    scale(&mut play, &v2(), 2);
    play.run();
    assert_eq!(play.state(), "batchReady 0, held: FieldOverwritten");
    play.retry("2");
    play.run();
    assert_eq!(play.state(), "verifyingSpec, held: GatesClosed");
    assert_eq!(play.present(), (2, 8));
    assert_eq!(play.cluster.replicas(&bad()), 0);
}

/// No version that had pods is left: what somebody has deleted is not made up for by one that nobody was asked about.
#[rstest]
fn where_no_version_that_had_pods_is_left_nothing_comes_back(
    #[values("Stop", "Revert")] on_failure: &str,
) {
    let mut play = again(&bad(), 0);
    play.spec(&json!({ "onFailure": on_failure }));
    remove(&mut play, &v1());
    remove(&mut play, &v2());
    play.run();
    assert_eq!(play.state(), "rolloutFailed");
    assert_eq!(play.cluster.replicas(&bad()), 0);
}

/// The pods of those that are gone do not get lost with them.
#[rstest]
fn a_source_that_is_here_makes_up_for_those_that_are_gone(
    #[values("Stop", "Revert")] on_failure: &str,
) {
    let mut play = again(&v0(), 2);
    assert_eq!(play.present(), (6, 4));
    play.spec(&json!({ "onFailure": on_failure }));
    remove(&mut play, &v0());
    remove(&mut play, &v2());
    play.run();
    assert_eq!(play.state(), "rolloutFailed");
    assert_eq!(play.present(), (0, 12));
}

/// The old version is gone, so nothing takes the place of the new pods.
#[test]
fn a_revert_leaves_the_new_pods_where_no_source_is_left() {
    let mut play = pair(&json!({"numBatches": 2, "lastBatchToRollout": 0}));
    play.spec(&json!({"onFailure": "Revert"}));
    play.run();
    remove(&mut play, &v1());
    play.run();
    assert_eq!(play.state(), "rolloutFailed");
    assert_eq!(play.present(), (5, 0));
    let said =
        "LeftUndone: not all pods of the old version are back, for no source is left that had some";
    assert!(play.news.iter().any(|it| it == said), "{:?}", play.news);
}

/// The Rollout and its target are deleted together, or Flux prunes the target while the old version comes back.
#[rstest]
fn a_target_that_goes_during_a_revert_is_made_up_for(#[values(true, false)] is_deleted: bool) {
    let mut play = again(&bad(), 0);
    turns_back(&mut play, is_deleted);
    remove(&mut play, &v2());
    play.run();
    assert_eq!(play.present(), (0, 10), "{:?}", play.log);
    assert_eq!(play.cluster.rollout.is_none(), is_deleted);
    rests(&mut play);
}

/// The Rollout and its source are deleted together, or somebody cleans up before the old version is there again: at
/// once, or after its size was written.
#[rstest]
fn the_new_pods_stay_where_the_only_source_goes_during_a_revert(
    #[values(true, false)] is_deleted: bool,
    #[values(remove, foreground)] goes: fn(&mut Play, &Name),
    #[values(0, 1)] looks: usize,
) {
    let mut play = pair(&json!({"numBatches": 2, "lastBatchToRollout": 0}));
    play.run();
    assert_eq!(play.present(), (5, 5));
    turns_back(&mut play, is_deleted);
    let (target, _) = play.present();
    for _ in 0..looks {
        play.look();
    }
    goes(&mut play, &v1());
    play.run();
    assert_eq!(play.cluster.replicas(&v2()), target, "{:?}", play.log);
    assert_eq!(play.cluster.rollout.is_none(), is_deleted);
    rests(&mut play);
}

/// What somebody writes to the target then is not taken for what is intended.
#[test]
fn a_size_that_somebody_tries_while_the_source_is_gone_is_not_written_again() {
    let mut play = pair(&json!({"numBatches": 2, "lastBatchToRollout": 0}));
    play.run();
    turns_back(&mut play, true);
    remove(&mut play, &v1());
    play.look();
    assert_eq!(play.status().intent.unwrap().sizes[0].replicas, Some(5));
    for pods in [8, 5] {
        play.cluster
            .foreign(&v2(), "/spec/replicas", json!(pods), "kubectl");
        play.cluster.settle();
        play.look();
    }
    play.run();
    assert_eq!(play.cluster.replicas(&v2()), 5, "{:?}", play.log);
}

/// What has gone back is not let out once more: no gate is asked for it.
#[test]
fn a_target_that_has_gone_back_does_not_grow_where_the_source_goes_then() {
    let mut play = pair(&json!({"numBatches": 2, "lastBatchToRollout": 0}));
    play.run();
    turns_back(&mut play, true);
    while play.cluster.replicas(&v2()) > 0 {
        play.look();
        play.cluster.tick();
    }
    assert_eq!(play.state(), "rolloutDeleting");
    remove(&mut play, &v1());
    play.run();
    assert_eq!(play.present(), (0, 0));
    assert!(play.cluster.rollout.is_none());
}

/// The target had 6 pods before the second run, and none before the first one: then they go.
#[rstest]
fn a_source_that_goes_during_a_revert_is_made_up_for_by_another_one(
    #[values(true, false)] is_deleted: bool,
    #[values(true, false)] is_first: bool,
    #[values(v0(), v1())] goes: Name,
) {
    let mut play = match is_first {
        true => two_sources(&v0(), 2, "IncreaseFirst"),
        false => again(&v0(), 2),
    };
    play.run();
    turns_back(&mut play, is_deleted);
    remove(&mut play, &goes);
    play.run();
    let other = if goes == v0() { v1() } else { v0() };
    let left = if is_first { (0, 12) } else { (6, 6) };
    let sizes = [v2(), other].map(|of| play.cluster.replicas(&of));
    assert_eq!(<(u64, u64)>::from(sizes), left, "{:?}", play.log);
    assert_eq!(play.cluster.rollout.is_none(), is_deleted);
    rests(&mut play);
}

/// Half a batch of DecreaseFirst is settled, for the Rollout is deleted or another revision follows.
#[rstest]
fn a_source_that_goes_while_a_run_is_settled_is_made_up_for(
    #[values(true, false)] is_deleted: bool,
) {
    let mut play = two_sources(&v0(), 2, "DecreaseFirst");
    while play.sizes().is_empty() {
        play.look();
    }
    assert_eq!(play.present(), (0, 4));
    if is_deleted {
        play.cluster.delete(play.now);
        until(&mut play, "rolloutDeleting");
    } else {
        play.spec(&json!({"revision": "3"}));
        until(&mut play, "rolloutAbandoned");
    }
    remove(&mut play, &v0());
    play.run();
    assert_eq!(play.present(), (0, 12), "{:?}", play.log);
}

/// It could not be read for long when a Rollout was deleted, and can be a moment later.
#[test]
fn a_source_that_was_not_known_where_a_run_ends_keeps_its_pods() {
    let mut play = again(&v0(), 2);
    play.spec(&json!({"rolloutPlan": {"revertOnDelete": true}}));
    play.cluster.delete(play.now);
    let since = Some(play.now);
    play.pass(11);
    let mut given = play.given().unwrap();
    let unknown = given::Sight::Unknown("nobody may read it".into());
    given.workloads.insert(v0(), unknown);
    given.unsure_since = since;
    play.carry_out(&report(&given, &consider(&given), &Answer::NotAsked));
    assert_eq!(play.state(), "rolloutDeleting");
    play.run();
    assert!(play.cluster.rollout.is_none());
    assert_eq!(play.present(), (6, 6));
    assert_eq!(play.cluster.replicas(&v0()), 2);
}

/// Another revision follows midway, and says no size. So does one more before anything is claimed for it. What somebody
/// has written as the claim of a later run does not count instead.
#[rstest]
#[case::another(&["3"], false)]
#[case::and_another(&["3", "4"], false)]
#[case::forged(&["3"], true)]
fn a_run_that_gives_way_leaves_its_total(#[case] revisions: &[&str], #[case] is_forged: bool) {
    let mut play = pair(&json!({"numBatches": 2, "targetSize": 12}));
    until(&mut play, "batchInRolling 0");
    if is_forged {
        let source = play.cluster.workloads.get_mut(&v1()).unwrap();
        let claim = Claim {
            run: i64::MAX,
            of: 10,
            ..Claim::of(source).unwrap()
        };
        source["metadata"]["annotations"][marks::CLAIM] = claim.text().into();
    }
    for revision in revisions {
        play.spec(&json!({"revision": revision, "rolloutPlan": {"targetSize": null}}));
        until(&mut play, "initializing");
    }
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
    assert_eq!(play.present(), (12, 0));
}

/// Another revision follows a run that is half done, and whose status is lost: what it has taken from the source and has
/// not given to the target yet is known from its claims.
#[test]
fn half_a_batch_is_made_up_for_where_its_status_is_lost() {
    let mut play = half_a_batch_that_is_lost();
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
    assert_eq!(play.present(), (10, 0));
}

/// The next run is deleted before it has done anything, or its pods do not come up.
#[rstest]
#[case::deleted("Stop", true, (0, 10))]
#[case::failed("Stop", false, (5, 5))]
#[case::reverted("Revert", false, (0, 10))]
fn half_a_batch_that_is_lost_comes_back_where_the_next_run_ends(
    #[case] on_failure: &str,
    #[case] is_deleted: bool,
    #[case] left: (u64, u64),
) {
    let mut play = half_a_batch_that_is_lost();
    play.spec(&json!({ "onFailure": on_failure }));
    until(&mut play, "initializing");
    if is_deleted {
        play.cluster.delete(play.now);
    } else {
        play.cluster.broken.insert("web:2".into());
        play.run();
        play.pass(11);
    }
    play.run();
    assert_eq!(play.cluster.rollout.is_none(), is_deleted);
    assert_eq!(play.present(), left, "{:?}", play.log);
}

/// The second batch had emptied the source. The next run makes up for that by its target, and fails: the old version comes
/// back with as many pods as it had, and the target has those with which that run was to begin.
#[test]
fn a_target_that_makes_up_for_half_a_batch_goes_back_with_it() {
    let plan = json!({"numBatches": 2, "rolloutStrategy": "DecreaseFirst"});
    let mut play = pair(&plan);
    while play.present() != (5, 0) {
        play.look();
        play.cluster.tick();
    }
    play.cluster.respecify(|it| it.status = None);
    play.spec(&json!({"onFailure": "Revert"}));
    play.retry("1");
    play.cluster.broken.insert("web:2".into());
    play.run();
    assert_eq!(play.present(), (10, 0));
    play.pass(11);
    play.run();
    assert_eq!(play.state(), "rolloutFailed");
    assert_eq!(play.present(), (5, 5), "{:?}", play.log);
}

/// The target of the lost run is another object by now: its pods are not counted twice.
#[test]
fn pods_of_a_target_without_a_claim_are_not_made_up_for() {
    let mut play = pair(&json!({"numBatches": 2, "lastBatchToRollout": 0}));
    play.run();
    assert_eq!(play.present(), (5, 5));
    play.cluster.respecify(|it| it.status = None);
    remove(&mut play, &v2());
    play.deployment("web-v2", 5, "web:2");
    play.spec(&json!({"revision": "3", "rolloutPlan": {"lastBatchToRollout": null}}));
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
    assert_eq!(play.present(), (10, 0));
    assert_eq!(play.status().run.unwrap().workloads[1].was, 5);
}

/// With DecreaseFirst the source has given 5 pods, and the target has none yet. Then the status is lost, and another revision
/// follows.
fn half_a_batch_that_is_lost() -> Play {
    let plan = json!({"numBatches": 2, "rolloutStrategy": "DecreaseFirst"});
    let mut play = pair(&plan);
    until(&mut play, "batchInRolling 0");
    while play.present().1 == 10 {
        play.look();
    }
    assert_eq!(play.present(), (0, 5));
    play.cluster.respecify(|it| it.status = None);
    play.spec(&json!({"revision": "3"}));
    play
}

/// The same where somebody has scaled since: as many as the source has then, or the target.
#[rstest]
#[case::both(&[v1(), v2()], 2)]
#[case::the_source(&[v1()], 5)]
fn what_somebody_has_scaled_since_its_status_was_lost_is_not_made_up_for(
    #[case] scaled: &[Name],
    #[case] left: u64,
) {
    let mut play = pair(&json!({"numBatches": 2, "lastBatchToRollout": 0}));
    play.run();
    assert_eq!(play.present(), (5, 5));
    play.cluster.respecify(|it| it.status = None);
    for of in scaled {
        scale(&mut play, of, 2);
    }
    play.spec(&json!({"revision": "3", "rolloutPlan": {"lastBatchToRollout": null}}));
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
    assert_eq!(play.present(), (left, 0));
}

/// A run finds that the one before it, which gave way, has done everything already: no claim of that one stays, by which
/// another Rollout would be held, or a later run counted.
#[test]
fn a_run_with_nothing_to_do_releases_what_the_one_before_it_had() {
    let mut play = pair(&json!({"numBatches": 1}));
    while play.present() != (10, 0) {
        play.look();
        play.cluster.tick();
    }
    assert_eq!(play.state(), "batchInRolling 0");
    play.retry("1");
    play.run();
    assert_eq!(play.status().outcome.unwrap().reason, "AlreadyThere");
    let ended = |of: &Name| Claim::of(&play.cluster.workloads[of]).map(|claim| claim.ended);
    assert_eq!(
        [v1(), v2()].map(|of| ended(&of)),
        [None, Some(Some(Ended::Done))]
    );
}

/// `kubectl rollout undo`, or a copy of weeks ago, has brought a claim back together with the size of its time.
#[test]
fn a_claim_that_has_come_back_after_its_run_says_no_total() {
    let mut play = pair(&json!({"numBatches": 2}));
    while play.present() != (10, 0) {
        play.look();
        play.cluster.tick();
    }
    let former = play.cluster.workloads[&v1()]["metadata"]["annotations"].clone();
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
    scale(&mut play, &v2(), 4);
    play.cluster.workloads.get_mut(&v1()).unwrap()["metadata"]["annotations"] = former;
    play.spec(&json!({
        "targetRef": {"name": "web-v1"}, "revision": "3",
        "sourceRef": [{"kind": "Deployment", "name": "web-v2"}],
    }));
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
    assert_eq!(play.present(), (0, 4));
}

/// Somebody has made web-v3 from web-v2 in the middle of a run: the claim came along. Or has written one.
#[rstest]
fn a_claim_of_no_run_of_the_workload_says_no_total(#[values(true, false)] is_copied: bool) {
    let mut play = pair(&json!({"numBatches": 2, "lastBatchToRollout": 0}));
    play.run();
    let mut claim = Claim::of(&play.cluster.workloads[&v2()]).unwrap();
    play.spec(&json!({"rolloutPlan": {"lastBatchToRollout": null}}));
    play.run();
    assert_eq!(play.present(), (10, 0));
    scale(&mut play, &v2(), 4);
    play.deployment("web-v3", 0, "web:3");
    let copy = play.cluster.workloads.get_mut(&v3()).unwrap();
    if !is_copied {
        claim.workload = "shop/web-v3".into();
        (claim.run, claim.of) = (claim.run + 1, i32::MAX);
        claim.wrote.replicas = Some(0);
    }
    copy["metadata"]["annotations"] = json!({ marks::CLAIM: claim.text() });
    play.spec(&json!({
        "targetRef": {"name": "web-v3"}, "revision": "3",
        "sourceRef": [{"kind": "Deployment", "name": "web-v2"}],
    }));
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
    assert_eq!(play.cluster.replicas(&v3()), 4);
    assert_eq!(play.cluster.replicas(&v2()), 0);
}
