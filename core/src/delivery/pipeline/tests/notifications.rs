//! Promotion by notification, and by an admission that is reported to other clusters.

use std::collections::BTreeSet;

use super::*;

fn notification() -> Play {
    let mut play = Play::new(&json!({"strategy": {"notification": {}}}));
    play.settle();
    play.runs("dev", "6.1.6");
    play
}

fn failed(why: &str) -> Outcome {
    Outcome::Failed {
        why: why.to_owned(),
        not_before: None,
    }
}

fn sent(play: &Play) -> usize {
    let sent = play.done.iter().filter(|it| *it == "notify staging");
    sent.count()
}

#[test]
fn it_is_sent_once_and_once_more_only_after_it_had_no_effect() {
    let mut play = notification();
    play.look();
    assert_eq!((play.phase("staging"), sent(&play)), (Phase::Attempting, 1));
    play.errands(&Outcome::Done);
    play.settle();
    assert_eq!(play.phase("staging"), Phase::Succeeded);
    play.pass(29);
    play.settle();
    assert_eq!(sent(&play), 1);
    play.pass(1);
    play.look();
    assert_eq!(sent(&play), 2);
    assert_eq!(play.record("staging").repeats, 1);
    play.errands(&Outcome::Done);
    play.settle();
    // Once it has arrived, nothing is sent although it is undone.
    play.runs("staging", "6.1.6");
    play.settle();
    play.runs("staging", "6.1.0");
    for _ in 0..10 {
        play.pass(360);
        play.settle();
    }
    assert_eq!(sent(&play), 2);
    assert_eq!(play.state("staging"), EnvironmentState::NoEffect);
}

#[test]
fn a_repetition_asks_the_gates() {
    let mut play = notification();
    play.look();
    play.errands(&Outcome::Done);
    play.settle();
    play.gate("staging", false);
    play.pass(31);
    play.settle();
    assert_eq!(sent(&play), 1);
    assert_eq!(play.state("staging"), EnvironmentState::NoEffect);
    play.gate("staging", true);
    play.look();
    assert_eq!(sent(&play), 2);
}

/// The process died between the status and the notification, and nobody has led since.
#[test]
fn what_was_decided_long_ago_is_asked_again_before_it_is_sent() {
    let mut play = notification();
    play.look();
    assert_eq!(play.phase("staging"), Phase::Attempting);
    play.errands.clear();
    play.gate("staging", false);
    play.pass(2);
    let report = play.decide();
    assert!(report.acts.is_empty(), "{:?}", report.acts);
    play.look();
    assert_eq!(
        (play.state("staging"), sent(&play)),
        (EnvironmentState::GatesClosed, 1)
    );
    play.gate("staging", true);
    play.look();
    assert_eq!((play.phase("staging"), sent(&play)), (Phase::Attempting, 2));
}

#[test]
fn what_was_decided_a_moment_ago_is_done_although_the_gate_closes() {
    let mut play = notification();
    play.look();
    play.errands.clear();
    play.gate("staging", false);
    play.look();
    assert_eq!((play.phase("staging"), sent(&play)), (Phase::Attempting, 2));
}

#[test]
fn a_repetition_is_another_notification_and_a_retry_is_the_same() {
    let token = |play: &mut Play| {
        let report = play.decide();
        let notice = report.acts.into_iter().find_map(|act| match act {
            Act::Notify(notice) => Some(notice),
            _ => None,
        });
        notice.unwrap().token
    };
    let mut play = notification();
    let first = token(&mut play);
    play.look();
    play.errands(&failed("connection refused"));
    play.settle();
    play.pass(1);
    assert_eq!(token(&mut play), first);
    play.look();
    play.errands(&Outcome::Done);
    play.settle();
    play.pass(31);
    assert_ne!(token(&mut play), first);
}

#[test]
fn a_failure_is_tried_again_ever_later_and_asks_the_gates_first() {
    let mut play = notification();
    play.look();
    play.errands(&failed("connection refused"));
    play.settle();
    assert_eq!(
        (play.phase("staging"), play.record("staging").attempts),
        (Phase::Failed, 1)
    );
    let next = play.record("staging").next_attempt_at.clone().unwrap().0;
    assert_eq!(next, play.now + SignedDuration::from_secs(10));
    assert!(play.message("staging").contains("connection refused"));
    assert_eq!(play.says("Ready").unwrap(), "False PromotionFailed");
    assert_eq!(play.decide().wake, Some(next));
    play.now = next;
    play.gate("staging", false);
    play.settle();
    assert_eq!(play.state("staging"), EnvironmentState::GatesClosed);
    assert_eq!(sent(&play), 1);
    play.gate("staging", true);
    play.look();
    assert_eq!(sent(&play), 2);
    play.errands(&failed("connection refused"));
    play.settle();
    let next = play.record("staging").next_attempt_at.clone().unwrap().0;
    assert_eq!(next, play.now + SignedDuration::from_secs(20));
}

#[test]
fn the_other_side_may_ask_for_more_time() {
    let mut play = notification();
    play.look();
    let later = play.now + SignedDuration::from_mins(42);
    play.errands(&Outcome::Failed {
        why: "429".to_owned(),
        not_before: Some(later),
    });
    play.settle();
    assert_eq!(
        play.record("staging").next_attempt_at.clone().unwrap().0,
        later
    );
}

/// The process is killed after the status, and after the errand: it is sent at most once more.
#[test]
fn a_crash_repeats_what_the_status_says() {
    let mut play = notification();
    play.look();
    play.errands
        .retain(|errand, _| matches!(errand, Errand::Recall(..)));
    play.look();
    assert_eq!(sent(&play), 2);
    assert_eq!(play.phase("staging"), Phase::Attempting);
}

#[test]
fn a_status_waits_for_the_present_try_alone() {
    let mut play = notification();
    let awaits = |play: &Play| awaited(play.object.status.as_ref().unwrap());
    play.look();
    let key = play.record("staging").key.clone();
    let first = BTreeSet::from([Errand::Try(key.clone(), 0)]);
    assert_eq!(awaits(&play), first);
    // Whatever else the status says, the outcome is not in it yet.
    play.spec(|spec| spec["suspend"] = json!(true));
    play.look();
    assert_eq!(awaits(&play), first);
    play.spec(|spec| spec["suspend"] = json!(false));
    play.errands(&failed("connection refused"));
    play.settle();
    assert_eq!(awaits(&play), BTreeSet::new());
    play.pass(1);
    play.look();
    assert_eq!(awaits(&play), BTreeSet::from([Errand::Try(key, 1)]));
    play.errands(&Outcome::Done);
    play.settle();
    assert_eq!(awaits(&play), BTreeSet::new());
}

fn remote() -> Play {
    let promotion = json!({"strategy": {"admission": {"gatekeeperRef": {"name": "pipeline"}}}});
    let mut play = Play::new(&promotion);
    play.spec(|spec| {
        for place in 1..3 {
            let cluster = json!({"kind": "Secret", "name": "kubeconfig"});
            spec["environments"][place]["targets"][0]["clusterRef"] = cluster;
        }
    });
    play.reports = vec![ReportSight::Nothing];
    play.settle();
    play.runs("dev", "6.1.6");
    play
}

#[test]
fn an_admission_is_reported_until_every_cluster_says_it() {
    let mut play = remote();
    let report = play.look();
    assert_eq!(play.phase("staging"), Phase::Attempting);
    assert_eq!(play.environment("staging").admitted.len(), 1);
    let Act::Admit(admit) = &report.acts[0] else {
        panic!("{:?}", report.acts);
    };
    assert_eq!(
        (admit.revision.as_str(), admit.targets.as_slice()),
        ("6.1.6", &[0][..])
    );
    play.errands(&failed("forbidden"));
    play.settle();
    assert_eq!(play.phase("staging"), Phase::Failed);
    play.pass(1);
    play.look();
    play.errands(&Outcome::Done);
    play.reports = vec![ReportSight::Says("6.1.6".to_owned())];
    play.settle();
    assert_eq!(play.phase("staging"), Phase::Succeeded);
    assert_eq!(play.environment("staging").admitted.len(), 1);
    // Somebody wipes the report.
    let before = play.done.len();
    play.reports = vec![ReportSight::Nothing];
    play.look();
    assert_eq!(play.done[before..], ["admit staging"]);
    assert_eq!(play.phase("staging"), Phase::Succeeded);
    // It is also kept while the environment runs the revision.
    play.errands
        .retain(|errand, _| matches!(errand, Errand::Recall(..)));
    play.runs("staging", "6.1.6");
    play.look();
    assert!(
        play.done[before + 1..].contains(&"admit staging".to_owned()),
        "{:?}",
        play.done
    );
}

/// staging was told 6.1.6.
fn reported() -> Play {
    let mut play = remote();
    play.look();
    play.errands(&Outcome::Done);
    play.reports = vec![ReportSight::Says("6.1.6".to_owned())];
    play.settle();
    let record = play.record("staging");
    assert_eq!(
        (record.phase, record.reason.as_deref()),
        (Phase::Succeeded, Some("Reported"))
    );
    play
}

fn admissions(play: &Play) -> usize {
    let done = play.done.iter().filter(|it| *it == "admit staging");
    done.count()
}

#[test]
fn a_report_is_written_again_each_time_that_it_is_lost() {
    let mut play = reported();
    for n in 2..5 {
        play.reports = vec![ReportSight::Nothing];
        play.look();
        assert_eq!(admissions(&play), n);
        // It is under way.
        play.errands(&Outcome::UnderWay);
        play.look();
        assert_eq!(admissions(&play), n);
        play.errands(&Outcome::Done);
        play.reports = vec![ReportSight::Says("6.1.6".to_owned())];
        play.settle();
        assert_eq!(admissions(&play), n);
    }
    // Also if nobody has seen it in between.
    play.reports = vec![ReportSight::Nothing];
    play.look();
    play.errands(&Outcome::Done);
    play.look();
    assert_eq!(admissions(&play), 6);
}

#[test]
fn a_report_that_cannot_be_written_again_is_told_and_tried_when_it_is_time() {
    for arrives in [false, true] {
        let mut play = reported();
        if arrives {
            play.runs("staging", "6.1.6");
            play.settle();
        }
        play.reports = vec![ReportSight::Nothing];
        play.look();
        let later = play.now + SignedDuration::from_mins(5);
        play.errands(&Outcome::Failed {
            why: "forbidden".to_owned(),
            not_before: Some(later),
        });
        let report = play.look();
        assert_eq!(play.phase("staging"), Phase::Succeeded);
        let message = play.environment("staging").message.clone().unwrap();
        assert!(
            message.contains("could not be written again: forbidden"),
            "{message}"
        );
        assert!(report.wake.is_some_and(|wake| wake <= later));
        let writes = play.writes;
        play.look();
        assert_eq!((admissions(&play), play.writes), (2, writes));
        play.pass(5);
        play.look();
        assert_eq!(admissions(&play), 3);
    }
}

/// A cluster that is away is not asked again and again, and what somebody else has written is theirs.
#[test]
fn once_reported_only_a_report_that_is_lost_is_written_again() {
    let mut play = reported();
    play.reports = vec![ReportSight::Unreadable("it is away".to_owned())];
    play.settle();
    assert_eq!(admissions(&play), 1);
    play.reports = vec![ReportSight::Says("7.0.0".to_owned())];
    play.settle();
    assert_eq!(admissions(&play), 1);
    let message = play.environment("staging").message.clone().unwrap();
    assert!(
        message.starts_with("somebody else has reported 7.0.0"),
        "{message}"
    );
}

/// What was admitted to gatekeepers of this cluster alone is also reported from now on, and writes over
/// nothing that another Pipeline has reported there.
#[test]
fn a_gatekeeper_that_is_named_later_keeps_what_somebody_else_has_reported() {
    for arrives in [false, true] {
        let mut play = remote();
        let plain = json!({"strategy": {"admission": {}}});
        let named = serde_json::to_value(&play.object.spec.promotion).unwrap();
        play.spec(|spec| spec["promotion"] = plain);
        play.settle();
        assert_eq!(play.record("staging").reason.as_deref(), Some("Admitted"));
        play.spec(|spec| spec["promotion"] = named);
        play.reports = vec![ReportSight::Says("7.0.0".to_owned())];
        play.settle();
        if arrives {
            play.runs("staging", "6.1.6");
            play.settle();
        }
        assert_eq!(admissions(&play), 0);
        let message = play.message("staging");
        assert!(
            message.starts_with("somebody else has reported 7.0.0"),
            "{message}"
        );
        play.reports = vec![ReportSight::Nothing];
        play.look();
        assert_eq!(admissions(&play), 1);
    }
}

#[test]
fn the_next_run_reports_its_own_revision() {
    let mut play = reported();
    play.runs("dev", "6.1.7");
    play.settle();
    assert_eq!(play.record("staging").revision, "6.1.7");
    assert_eq!(
        (play.phase("staging"), admissions(&play)),
        (Phase::Attempting, 2)
    );
    play.errands(&Outcome::Done);
    play.reports = vec![ReportSight::Says("6.1.7".to_owned())];
    play.settle();
    assert_eq!(play.phase("staging"), Phase::Succeeded);
}

/// The environment runs the revision as soon as one of its targets does.
#[test]
fn a_gatekeeper_that_says_the_revision_before_is_told_although_the_environment_has_arrived() {
    let mut play = reported();
    play.runs("dev", "6.1.7");
    play.look();
    assert_eq!(admissions(&play), 2);
    play.runs("staging", "6.1.7");
    play.errands(&failed("it does not answer"));
    play.look();
    play.look();
    assert_eq!(
        (play.phase("staging"), admissions(&play)),
        (Phase::Succeeded, 3)
    );
    play.errands(&Outcome::Done);
    play.reports = vec![ReportSight::Says("6.1.7".to_owned())];
    play.settle();
    assert_eq!(play.record("staging").reason.as_deref(), Some("Reported"));
}

/// The environment has arrived, and the only gatekeeper cannot be read: it has not said anything by that.
#[test]
fn a_gatekeeper_that_could_not_be_read_is_told_once_it_can() {
    let mut play = reported();
    play.runs("dev", "6.1.7");
    play.look();
    play.runs("staging", "6.1.7");
    play.reports = vec![ReportSight::Unreadable("it is away".to_owned())];
    play.errands(&Outcome::Done);
    play.look();
    play.look();
    assert_eq!(play.record("staging").reason.as_deref(), Some("Arrived"));
    let before = admissions(&play);
    play.reports = vec![ReportSight::Says("6.1.6".to_owned())];
    play.look();
    assert_eq!(admissions(&play), before + 1);
}
