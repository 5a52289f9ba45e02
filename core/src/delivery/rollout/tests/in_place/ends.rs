//! How a run in place ends without success.

use super::*;
use crate::delivery::rollout::claim::{Claim, Ended};

fn is_armed(play: &Play, kind: Kind) -> bool {
    let object = &play.cluster.workloads[&db(kind)];
    Workload { kind, object }.is_armed()
}

/// A broken version: the pod that waits for ever is deleted, or the old template would not heal.
#[test]
fn a_revert_brings_the_old_template_back_and_deletes_the_broken_pod() {
    let mut play = in_place(
        Kind::StatefulSet,
        &json!({"onFailure": "Revert", "progressDeadline": "1m"}),
    );
    play.cluster.broken.insert("db:2".into());
    template(&mut play, Kind::StatefulSet, "db:2");
    play.run();
    assert_eq!(play.state(), "batchVerifying 0");
    play.pass(2);
    play.run();
    assert_eq!(play.state(), "rolloutFailed");
    assert_eq!(images(&play, Kind::StatefulSet), ["db:1"; 4]);
    assert_eq!(play.cluster.available(&db(Kind::StatefulSet)), 4);
    let after: Vec<&str> = play.log.iter().skip(3).map(String::as_str).collect();
    assert_eq!(
        after,
        [
            "Restore db 0",
            "DeletePod db-3",
            "Release db 2147483647",
            "Finalize false"
        ]
    );
    assert!(play.status().reverted);
    rests(&mut play);
}

/// Armed again in the write that gives it back, it is not brought back once more.
#[rstest]
fn a_rollout_that_is_deleted_brings_the_old_template_back_once(
    #[values(Kind::StatefulSet, Kind::CloneSet)] kind: Kind,
) {
    let mut play = half(kind, &json!({"revertOnDelete": true}));
    play.cluster.delete(play.now);
    play.run();
    assert!(play.cluster.rollout.is_none(), "{:?}", play.log);
    assert_eq!(images(&play, kind), ["db:1"; 4]);
    let acts: Vec<_> = play
        .log
        .iter()
        .filter_map(|it| it.split(' ').next())
        .collect();
    assert_eq!(acts, ["Restore", "Release", "Finalize"]);
    assert!(is_armed(&play, kind));
}

/// The new pods stay, and the next template waits.
#[rstest]
fn a_rollout_that_is_deleted_gives_what_is_out_back_armed(
    #[values(Kind::StatefulSet, Kind::CloneSet)] kind: Kind,
) {
    let mut play = half(kind, &json!({}));
    play.cluster.delete(play.now);
    play.run();
    assert!(play.cluster.rollout.is_none(), "{:?}", play.log);
    assert_eq!(images(&play, kind), ["db:1", "db:1", "db:2", "db:2"]);
    assert_eq!(play.log.len(), 2, "{:?}", play.log);
    assert!(is_armed(&play, kind));
    let claim = Claim::of(&play.cluster.workloads[&db(kind)]);
    assert_eq!(claim.unwrap().ended, Some(Ended::Aborted));
    template(&mut play, kind, "db:3");
    assert_eq!(images(&play, kind), ["db:1", "db:1", "db:2", "db:2"]);
}

/// The ControllerRevision with the old template is gone. Somebody brings that back in Git, or deletes the Rollout.
#[rstest]
fn a_revert_without_its_revision_is_held_until_a_person_ends_it(
    #[values(false, true)] is_deleted: bool,
) {
    let kind = Kind::StatefulSet;
    let spec = json!({"onFailure": "Revert", "progressDeadline": "1m"});
    let mut play = in_place(kind, &spec);
    play.cluster.broken.insert("db:2".into());
    template(&mut play, kind, "db:2");
    play.run();
    let run = play.status().run.unwrap();
    let former = run.workloads[0].former.clone().unwrap();
    play.cluster.revisions.remove(&former);
    play.pass(2);
    play.log.clear();
    play.run();
    assert_eq!(play.state(), "rolloutFailing, held: RevisionGone");
    let by = format!("ControllerRevision {former}");
    assert_eq!(play.status().held.unwrap().by, Some(by));
    assert_eq!(play.ready(), ("False".into(), "RevisionGone".into()));
    rests(&mut play);
    assert!(play.log.is_empty(), "{:?}", play.log);
    match is_deleted {
        true => play.cluster.delete(play.now),
        false => template(&mut play, kind, "db:1"),
    }
    play.run();
    assert!(is_armed(&play, kind));
    if is_deleted {
        assert!(play.cluster.rollout.is_none(), "{}", play.state());
        assert_eq!(images(&play, kind), ["db:1", "db:1", "db:1", "db:2"]);
        let is_told = |it: &String| it.starts_with("LeftUndone") && it.contains(&former);
        assert!(play.news.iter().any(is_told), "{:?}", play.news);
    } else {
        assert_eq!(play.state(), "rolloutFailed");
        assert_eq!(images(&play, kind), ["db:1"; 4]);
        assert_eq!(play.cluster.available(&db(kind)), 4);
    }
}

#[test]
fn a_clone_set_heals_by_itself() {
    let mut play = in_place(
        Kind::CloneSet,
        &json!({"onFailure": "Revert", "progressDeadline": "1m", "revision": null}),
    );
    play.cluster.broken.insert("db:2".into());
    template(&mut play, Kind::CloneSet, "db:2");
    play.run();
    play.pass(2);
    play.run();
    assert_eq!(play.state(), "rolloutFailed");
    assert_eq!(images(&play, Kind::CloneSet), ["db:1"; 4]);
    // That the old template is back is no other run.
    rests(&mut play);
}

#[test]
fn a_rollout_that_fails_gives_the_partition_back() {
    let mut play = in_place(Kind::StatefulSet, &json!({"progressDeadline": "1m"}));
    play.cluster.broken.insert("db:2".into());
    template(&mut play, Kind::StatefulSet, "db:2");
    play.run();
    play.pass(2);
    play.run();
    assert_eq!(play.state(), "rolloutFailed");
    assert_eq!(play.log.last().map(String::as_str), Some("Finalize false"));
    assert!(
        play.log.contains(&"Release db 2147483647".to_owned()),
        "{:?}",
        play.log
    );
}
