//! What the API server refuses: something that a look needs, and writes.

use kube::ResourceExt;
use rstest::rstest;

use super::ends::until;
use super::*;
use crate::delivery::act::{Refused, with_ready};

fn accept(play: &mut Play, status: RolloutStatus) {
    let seen = play.cluster.rollout.clone().unwrap();
    play.cluster.write_status(&seen, status).unwrap();
    play.writes += 1;
}

/// A look at which the pods may not be listed.
fn look_without_pods(play: &mut Play) {
    let seen = play.cluster.rollout.clone().unwrap();
    if let Some(status) = unread(&seen, "the pods of db cannot be read", play.instant()) {
        accept(play, status);
    }
}

/// The right is given at last. Where the time by which it has waited is wrong, it has all its time again.
#[rstest]
#[case(Trust::Good, 4)]
#[case(Trust::Lost(SignedDuration::from_hours(1)), 9)]
fn the_deadline_stands_still_while_something_may_not_be_read(
    #[case] trust: Trust,
    #[case] left: i64,
) {
    let mut play = in_place(Kind::StatefulSet, &json!({}));
    play.cluster.broken.insert("db:2".into());
    let db = name(Kind::StatefulSet, "db");
    let image = json!([{"name": "c", "image": "db:2"}]);
    let field = "/spec/template/spec/containers";
    play.cluster.foreign(&db, field, image, "kubectl");
    play.run();
    assert_eq!(play.state(), "batchVerifying 0");
    play.pass(5);
    let writes = play.writes;
    play.trust = trust;
    look_without_pods(&mut play);
    play.trust = Trust::Good;
    play.pass(600);
    look_without_pods(&mut play);
    assert_eq!(play.writes, writes + 1);
    assert_eq!(play.ready(), ("False".into(), "ReadRefused".into()));
    assert_eq!(play.state(), "batchVerifying 0, held: ReadRefused");
    for minutes in [0, left] {
        play.pass(minutes);
        play.run();
        assert_eq!(play.state(), "batchVerifying 0");
        assert_eq!(play.ready(), ("False".into(), "Progressing".into()));
    }
    play.pass(1);
    play.run();
    assert_eq!(play.state(), "rolloutFailed");
}

/// The person who has asked for a look waits until it is answered.
#[test]
fn a_look_that_is_asked_for_is_answered_although_something_may_not_be_read() {
    let mut play = in_place(Kind::StatefulSet, &json!({"rolloutPlan": {"paused": true}}));
    play.run();
    play.cluster.respecify(|it| {
        let key = "reconcile.fluxcd.io/requestedAt".to_owned();
        it.annotations_mut().insert(key, "1".to_owned());
    });
    look_without_pods(&mut play);
    let handled = play.status().last_handled_reconcile_at;
    assert_eq!(handled.as_deref(), Some("1"));
}

/// It was held before, by a gate: since when stays, and it does not wait for the gate meanwhile.
#[test]
fn what_held_it_before_holds_it_again() {
    let mut play = in_place(Kind::StatefulSet, &json!({}));
    play.spec(&json!({"rolloutPlan": {"paused": true}}));
    play.run();
    let before = play.status();
    play.pass(1);
    look_without_pods(&mut play);
    let held = play.status().held.unwrap();
    assert_eq!(held.reason, "ReadRefused");
    assert_eq!(held.since, before.held.clone().unwrap().since);
    let blocked = find(&play.status().conditions, "Blocked").unwrap().clone();
    assert_eq!(blocked.status, "False");
    play.run();
    assert_eq!(play.status().held, before.held);
}

/// A workload that its controller is at work on is not written to, and nothing is known to be done since.
#[test]
fn a_release_that_is_refused_stays_told_while_its_workload_is_out_of_date() {
    let mut play = pair(&json!({"numBatches": 2}));
    play.cluster.broken.insert("web:2".into());
    play.run();
    play.pass(11);
    until(&mut play, "rolloutFailed");
    let refused = Refused {
        what: "the Deployment web-v1".to_owned(),
        code: 403,
        message: "no right".to_owned(),
    };
    let seen = play.cluster.rollout.clone().unwrap();
    let told = with_ready(&seen, refused.conditions(), play.now).unwrap();
    accept(&mut play, told);
    for replicas in [7, 8] {
        let field = "/spec/replicas";
        play.cluster
            .foreign(&v1(), field, replicas.into(), "kubectl");
        let report = play.decide().unwrap();
        assert_eq!((report.changed, report.acts.len()), (false, 0));
        play.cluster.settle();
        let report = play.decide().unwrap();
        assert_eq!((report.changed, report.acts.len()), (false, 2));
    }
    play.run();
    let reason = "ProgressDeadlineExceeded";
    assert_eq!(play.ready(), ("False".into(), reason.into()));
}
