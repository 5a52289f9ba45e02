//! What is left of a run that is over, and what may still be done with it.

use rstest::rstest;

use super::super::claim::{Claim, Ended};
use super::ends::until;
use super::*;

/// A pair that has failed halfway, and is taken back when its Rollout is deleted.
fn failed() -> Play {
    let mut play = pair(&json!({"numBatches": 2, "revertOnDelete": true}));
    play.spec(&json!({"progressDeadline": "1m"}));
    play.cluster.broken.insert("web:2".into());
    play.run();
    play.pass(2);
    play.run();
    assert_eq!(play.state(), "rolloutFailed");
    assert_eq!(play.present(), (5, 10));
    play
}

/// The StatefulSet db, whose update to db:2 has failed.
fn failed_in_place() -> Play {
    let spec = json!({"progressDeadline": "1m", "rolloutPlan": {"revertOnDelete": true}});
    let mut play = in_place(Kind::StatefulSet, &spec);
    play.cluster.broken.insert("db:2".into());
    template(&mut play, "db:2");
    play.run();
    play.pass(2);
    play.run();
    assert_eq!(play.state(), "rolloutFailed");
    play
}

fn db() -> Name {
    name(Kind::StatefulSet, "db")
}

const PARTITION: &str = "/spec/updateStrategy/rollingUpdate/partition";

fn template(play: &mut Play, image: &str) {
    let image = json!([{"name": "c", "image": image}]);
    let field = "/spec/template/spec/containers";
    play.cluster.foreign(&db(), field, image, "kubectl");
    play.cluster.settle();
}

fn scale(play: &mut Play, of: &Name, replicas: u64) {
    play.cluster
        .foreign(of, "/spec/replicas", replicas.into(), "kubectl");
    play.cluster.settle();
}

fn images(play: &Play) -> Vec<&str> {
    let pods = play.cluster.pods[&db()].iter();
    pods.map(|pod| pod.image.as_str()).collect()
}

fn claim(play: &Play, of: &Name) -> Option<Claim> {
    Claim::of(&play.cluster.workloads[of])
}

fn deleted(play: &mut Play) {
    play.cluster.delete(play.now);
    play.run();
    assert!(play.cluster.rollout.is_none(), "{}", play.state());
}

fn is_told(play: &Play, what: &str) -> bool {
    play.news.iter().any(|it| it.contains(what))
}

/// Nobody was asked, so the next template has to wait.
#[test]
fn where_nothing_rolls_an_armed_object_stays_armed() {
    let mut play = in_place(Kind::StatefulSet, &json!({"rearm": false}));
    play.gate("closed");
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
    assert!(play.sizes().is_empty(), "{:?}", play.log);
    template(&mut play, "db:2");
    play.run();
    assert_eq!(images(&play), ["db:1"; 4]);
}

/// Weeks later the Rollout is deleted: others have gone on since, and nobody takes that back without a gate.
#[test]
fn a_failure_is_not_taken_back_after_others_have_rolled_out() {
    let others = |play: &mut Play| {
        for (of, replicas) in [(v1(), 0), (v2(), 10)] {
            scale(play, &of, replicas);
        }
    };
    let mut scaled = failed();
    others(&mut scaled);
    // Another Rollout has left its own claim.
    let mut rolled = failed();
    let object = rolled.cluster.workloads.get_mut(&v2()).unwrap();
    let foreign = Claim {
        uid: "r-2".into(),
        ended: Some(Ended::Done),
        ..Claim::of(object).unwrap()
    };
    object["metadata"]["annotations"]["sluice.dev/rollout"] = foreign.text().into();
    others(&mut rolled);
    // Its target was fixed where it is.
    let mut fixed = failed();
    let image = json!([{"name": "c", "image": "web:3"}]);
    let field = "/spec/template/spec/containers";
    fixed.cluster.foreign(&v2(), field, image, "kubectl");
    deleted(&mut fixed);
    assert_eq!(fixed.present(), (5, 10));
    for mut play in [scaled, rolled] {
        play.log.clear();
        deleted(&mut play);
        assert_eq!(play.present(), (10, 0), "{:?}", play.log);
        assert!(
            is_told(&play, "is not as this run has left it"),
            "{:?}",
            play.news
        );
    }
}

#[test]
fn a_template_that_came_after_a_failure_is_not_overwritten() {
    let mut as_left = failed_in_place();
    deleted(&mut as_left);
    assert_eq!(images(&as_left), ["db:1"; 4]);
    // Fixed by hand, armed or not.
    for partition in [0, 2_147_483_647_u64] {
        let mut play = failed_in_place();
        template(&mut play, "db:3");
        play.cluster
            .foreign(&db(), PARTITION, partition.into(), "kubectl");
        play.cluster.settle();
        play.log.clear();
        deleted(&mut play);
        let left = &play.cluster.workloads[&db()];
        assert_eq!(cluster::image_of(left), "db:3", "{:?}", play.log);
    }
}

/// While the old template comes back, nobody fights for the partition.
#[test]
fn a_partition_that_somebody_raises_during_a_revert_is_not_written_again() {
    let spec = json!({"onFailure": "Revert", "progressDeadline": "1m"});
    let mut play = in_place(Kind::StatefulSet, &spec);
    play.cluster.broken.insert("db:2".into());
    template(&mut play, "db:2");
    play.run();
    play.pass(2);
    while !play.log.iter().any(|it| it.starts_with("Restore")) {
        play.look();
    }
    play.cluster.foreign(&db(), PARTITION, json!(4), "kubectl");
    play.run();
    assert_eq!(play.state(), "rolloutFailing, held: FieldOverwritten");
    let message = play.status().held.unwrap().message;
    assert!(message.ends_with("; bring that back"), "{message}");
    rests(&mut play);
}

/// Only of what ran before it is known that it may run.
#[test]
fn a_source_with_another_template_gets_no_pods() {
    let mut play = pair(&json!({"numBatches": 2, "lastBatchToRollout": 0, "revertOnDelete": true}));
    play.run();
    let image = json!([{"name": "c", "image": "web:9"}]);
    let field = "/spec/template/spec/containers";
    play.cluster.foreign(&v1(), field, image, "kubectl");
    play.cluster.settle();
    deleted(&mut play);
    assert_eq!(play.present(), (5, 5));
    assert!(is_told(&play, "would get pods of it"), "{:?}", play.news);
}

/// The remedy that the message names.
#[rstest]
#[case::down(3, 10)]
#[case::beyond_the_total(12, 12)]
fn a_retry_goes_on_from_what_a_source_was_scaled_to(#[case] source: u64, #[case] total: u64) {
    let mut play = pair(&json!({"numBatches": 2, "lastBatchToRollout": 0}));
    play.run();
    scale(&mut play, &v1(), source);
    play.run();
    assert_eq!(play.state(), "batchReady 0, held: FieldOverwritten");
    play.spec(&json!({"rolloutPlan": {"lastBatchToRollout": null}}));
    play.retry("1");
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
    assert_eq!(play.present(), (total, 0));
}

/// All pods are new: what others do to the object keeps it neither from being armed nor the Rollout from going.
#[test]
fn nothing_holds_a_run_that_has_only_to_arm() {
    let mut play = in_place(Kind::StatefulSet, &json!({}));
    template(&mut play, "db:2");
    until(&mut play, "finalising");
    scale(&mut play, &db(), 7);
    let of_db = given::Autoscaler {
        name: "hpa".into(),
        kind: "StatefulSet".into(),
        target: "db".into(),
    };
    play.cluster.autoscalers.push(of_db);
    deleted(&mut play);
    let object = &play.cluster.workloads[&db()];
    assert_eq!(object.pointer(PARTITION), Some(&json!(2_147_483_647)));
}

/// The next run names it no longer: nobody else would take its claim away.
#[test]
fn what_the_next_run_does_not_name_is_given_back_first() {
    let hook = json!({"type": "finalize-rollout", "name": "end", "url": "https://a/b"});
    let mut play = pair(&json!({"numBatches": 2, "rolloutWebhooks": [hook]}));
    until(&mut play, "finalising");
    play.deployment("web-v3", 0, "web:3");
    play.spec(&json!({
        "targetRef": {"name": "web-v3"}, "revision": "3",
        "sourceRef": [{"kind": "Deployment", "name": "web-v2"}],
    }));
    until(&mut play, "rolloutSucceed");
    // It is not said of the new spec that it is out.
    assert_eq!(play.ready(), ("False".into(), "Progressing".into()));
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
    assert_eq!(play.cluster.replicas(&name(Kind::Deployment, "web-v3")), 10);
    assert_eq!(claim(&play, &v1()), None);
}

/// That a former run has succeeded says nothing of pods that have gone out by themselves since.
#[test]
fn a_claim_of_a_former_run_does_not_arm() {
    let mut play = in_place(Kind::StatefulSet, &json!({}));
    template(&mut play, "db:2");
    play.run();
    assert_eq!(claim(&play, &db()).unwrap().ended, Some(Ended::Done));
    play.cluster.foreign(&db(), PARTITION, json!(3), "kubectl");
    template(&mut play, "db:3");
    play.spec(&json!({"revision": "3"}));
    play.run();
    assert_eq!(play.state(), "verifyingSpec, held: NotArmed");
}

/// Flux prunes the Rollout, and a moment later its target.
#[test]
fn the_sources_get_their_pods_also_where_the_target_goes_last() {
    let mut play = pair(&json!({"numBatches": 2, "lastBatchToRollout": 0}));
    play.run();
    assert_eq!(play.present(), (5, 5));
    play.cluster.delete(play.now);
    until(&mut play, "rolloutDeleting");
    play.cluster.workloads.remove(&v2());
    play.run();
    assert!(play.cluster.rollout.is_none());
    assert_eq!(play.present(), (0, 10));
}

/// One commit changes the revision, and a label in both templates.
#[test]
fn a_source_with_another_template_does_not_keep_the_next_run_from_beginning() {
    let mut play = pair(&json!({"rolloutStrategy": "DecreaseFirst", "numBatches": 2}));
    while play.sizes().is_empty() {
        play.look();
    }
    assert_eq!(play.present(), (0, 5));
    for of in [v1(), v2()] {
        let labels = json!({"commit": "2"});
        let field = "/spec/template/metadata/labels";
        play.cluster.foreign(&of, field, labels, "kubectl");
    }
    play.spec(&json!({"revision": "3"}));
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
    assert_eq!(play.present(), (10, 0));
}

/// What a source was once does not count for a run of others.
#[test]
fn a_failed_claim_of_a_source_says_no_total() {
    let mut play = failed();
    let mut next = play.cluster.rollout.clone().unwrap();
    deleted(&mut play);
    assert_eq!(play.present(), (0, 10));
    scale(&mut play, &v1(), 6);
    play.deployment("web-v3", 4, "web:3");
    next.metadata.uid = Some("r-2".into());
    next.metadata.finalizers = None;
    next.status = None;
    play.cluster.rollout = Some(next);
    play.spec(&json!({"targetRef": {"name": "web-v3"}, "revision": "3"}));
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
    assert_eq!(play.cluster.replicas(&name(Kind::Deployment, "web-v3")), 6);
}

/// Its pause is about its template.
#[test]
fn a_clone_set_that_is_paused_is_scaled() {
    let mut play = in_place(Kind::CloneSet, &json!({"rolloutPlan": {"targetSize": 6}}));
    let of = name(Kind::CloneSet, "db");
    let field = "/spec/updateStrategy/paused";
    play.cluster.foreign(&of, field, json!(true), "kubectl");
    play.cluster.settle();
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
    assert_eq!(play.sizes(), ["Scale db 5", "Scale db 6"]);
}
