//! A revision on its way through the environments.

use rstest::rstest;

use super::*;

fn admission() -> Play {
    Play::new(&json!({"strategy": {"admission": {}}}))
}

fn admitted(play: &Play, environment: &str) -> Vec<String> {
    let admitted = play.environment(environment).admitted.iter();
    admitted.map(|it| it.revision.clone()).collect()
}

#[test]
fn a_revision_reaches_each_environment_after_the_one_before() {
    let mut play = admission();
    play.settle();
    assert!(play.environment("prod").admitted.is_empty());
    play.runs("dev", "6.1.6");
    play.settle();
    assert_eq!(admitted(&play, "staging"), ["6.1.6"]);
    assert_eq!(play.state("staging"), EnvironmentState::Promoted);
    assert_eq!(play.state("prod"), EnvironmentState::Waiting);
    play.runs("staging", "6.1.6");
    play.settle();
    assert_eq!(play.state("staging"), EnvironmentState::Passed);
    assert_eq!(admitted(&play, "prod"), ["6.1.6"]);
    let run = play.object.status.as_ref().unwrap().run.clone().unwrap();
    assert_eq!(
        (run.environment.as_str(), run.state),
        ("prod", EnvironmentState::Promoted)
    );
    assert_eq!(run.completed_at, None);
    play.runs("prod", "6.1.6");
    play.settle();
    let run = play.object.status.as_ref().unwrap().run.clone().unwrap();
    assert!(run.completed_at.is_some());
    assert_eq!(run.state, EnvironmentState::Passed);
}

/// The admission is in the status that says that it was decided: there is nothing in between.
#[test]
fn an_admission_is_one_write() {
    let mut play = admission();
    play.settle();
    play.runs("dev", "6.1.6");
    let report = play.look();
    assert_eq!(report.acts, []);
    assert_eq!(play.phase("staging"), Phase::Succeeded);
    assert_eq!(admitted(&play, "staging"), ["6.1.6"]);
}

#[test]
fn at_rest_nothing_is_written() {
    let mut play = admission();
    play.runs("dev", "6.1.6");
    play.settle();
    let writes = play.writes;
    for _ in 0..5 {
        play.pass(1);
        assert!(!play.look().changed);
    }
    assert_eq!(play.writes, writes);
}

/// Flux looks for drift at each interval, and says `Unknown` while it does.
#[test]
fn a_look_for_drift_writes_nothing_and_interrupts_nothing() {
    let mut play = admission();
    play.runs("dev", "6.1.6");
    play.runs("staging", "6.1.6");
    play.settle();
    let run = play.object.status.clone().unwrap().run.unwrap().id;
    let writes = play.writes;
    for name in ["dev", "staging"] {
        play.app(name)["status"]["conditions"][0]["status"] = json!("Unknown");
        assert!(!play.look().changed, "{name}");
    }
    assert_eq!(play.writes, writes);
    assert_eq!(play.object.status.unwrap().run.unwrap().id, run);
}

#[rstest]
#[case::at_work("Unknown")]
#[case::failed("False")]
fn a_target_on_the_revision_holds_healthy_or_not(#[case] ready: &str) {
    let mut play = admission();
    play.settle();
    play.runs("dev", "6.1.6");
    play.look();
    play.runs("staging", "6.1.6");
    play.app("staging")["status"]["conditions"][0]["status"] = json!(ready);
    play.settle();
    assert_eq!(play.state("staging"), EnvironmentState::Arriving);
    assert_eq!(play.state("prod"), EnvironmentState::Waiting);
    assert!(play.environment("prod").admitted.is_empty());
    // It resumes by itself.
    play.app("staging")["status"]["conditions"][0]["status"] = json!("True");
    play.settle();
    assert_eq!(admitted(&play, "prod"), ["6.1.6"]);
}

#[test]
fn a_target_that_begins_to_run_it_is_on_it() {
    let mut play = admission();
    play.runs("dev", "6.1.6");
    play.app("staging")["status"]["lastAttemptedRevision"] = json!("6.1.6");
    play.look();
    assert_eq!(play.state("staging"), EnvironmentState::Arriving);
    assert!(play.environment("staging").admitted.is_empty());
}

/// In every environment what is unknown holds, and one of two targets is enough.
#[test]
fn what_is_unknown_is_never_promoted_to_nor_from() {
    for name in ["dev", "staging"] {
        let mut play = admission();
        play.spec(|spec| {
            for place in 0..3 {
                let targets = json!([{"namespace": "a"}, {"namespace": "b"}]);
                spec["environments"][place]["targets"] = targets;
            }
        });
        for name in ["dev", "staging", "prod"] {
            let both = ["6.1.0", "6.1.0"].map(|it| Some(release(it)));
            play.apps.insert(name.to_owned(), both.to_vec());
        }
        let both = ["6.1.6", "6.1.6"].map(|it| Some(release(it)));
        play.apps.insert("dev".to_owned(), both.to_vec());
        play.apps.get_mut(name).unwrap()[1] = None;
        play.settle();
        assert_eq!(play.state(name), EnvironmentState::Unknown);
        assert!(play.environment("staging").admitted.is_empty());
        assert!(play.environment("prod").admitted.is_empty());
        assert_eq!(play.says("Ready").unwrap(), "False TargetNotReadable");
        assert_eq!(play.message(name), "b: there is no HelmRelease podinfo");
    }
}

#[rstest]
#[case(Missing::Cluster, "TargetClusterNotFound")]
#[case(Missing::Connection, "TargetClusterNotReady")]
#[case(Missing::App, "TargetNotReadable")]
fn what_is_missing_is_told(#[case] what: Missing, #[case] reason: &str) {
    let mut play = admission();
    let mut given = play.given();
    given.environments[1].targets[0] = Sight::Unknown(Trouble {
        what,
        message: "why".to_owned(),
    });
    let report = report(consider(given), &[]);
    play.object.status = Some(report.status);
    assert_eq!(play.says("Ready").unwrap(), format!("False {reason}"));
}

#[test]
fn promotion_is_pending_while_the_first_environment_is_not_steady() {
    let mut play = admission();
    play.spec(|spec| {
        let targets = json!([{"namespace": "a"}, {"namespace": "b"}]);
        spec["environments"][0]["targets"] = targets;
    });
    let differ = ["6.1.6", "6.1.0"].map(|it| Some(release(it)));
    play.apps.insert("dev".to_owned(), differ.to_vec());
    play.settle();
    assert_eq!(
        play.says(PROMOTION_PENDING).unwrap(),
        "True EnvironmentNotReady"
    );
    assert_eq!(play.message("dev"), "its targets run 6.1.6 and 6.1.0");
    assert_eq!(play.says("Ready").unwrap(), "True ReconciliationSucceeded");
    let same = ["6.1.6", "6.1.6"].map(|it| Some(release(it)));
    play.apps.insert("dev".to_owned(), same.to_vec());
    play.settle();
    assert_eq!(play.says(PROMOTION_PENDING), None);
    assert_eq!(admitted(&play, "staging"), ["6.1.6"]);
}

/// While the next revision arrives in the first environment, nothing is begun; then it takes over.
#[test]
fn a_newer_revision_interrupts_and_takes_back_what_nobody_has_begun() {
    let mut play = admission();
    play.settle();
    play.runs("dev", "6.1.6");
    play.settle();
    assert_eq!(admitted(&play, "staging"), ["6.1.6"]);
    play.app("dev")["status"]["lastAttemptedRevision"] = json!("6.1.7");
    play.app("dev")["status"]["conditions"][0]["status"] = json!("Unknown");
    play.runs("staging", "6.1.6");
    play.settle();
    assert!(play.environment("prod").admitted.is_empty());
    play.runs("staging", "6.1.0");
    play.runs("dev", "6.1.7");
    play.settle();
    // The target had run 6.1.6: it may go back there.
    assert_eq!(admitted(&play, "staging"), ["6.1.7", "6.1.6"]);
    play.runs("dev", "6.1.8");
    play.settle();
    assert_eq!(admitted(&play, "staging"), ["6.1.8", "6.1.6"]);
}

#[test]
fn the_newest_five_admissions_are_kept() {
    let mut play = admission();
    for number in 1..9 {
        play.pass(1);
        let revision = format!("7.0.{number}");
        play.runs("dev", &revision);
        play.settle();
        play.runs("staging", &revision);
        play.settle();
    }
    let expected = ["7.0.8", "7.0.7", "7.0.6", "7.0.5", "7.0.4"];
    assert_eq!(admitted(&play, "staging"), expected);
}

#[test]
fn the_same_revision_comes_again_after_another() {
    let mut play = admission();
    for revision in ["6.1.6", "6.1.7", "6.1.6"] {
        play.pass(1);
        play.runs("dev", revision);
        play.settle();
        assert_eq!(admitted(&play, "staging")[0], revision);
        play.runs("staging", revision);
        play.settle();
        assert_eq!(play.state("staging"), EnvironmentState::Passed);
    }
}

#[test]
fn a_persons_revert_is_not_undone_and_a_retry_promotes_again() {
    let mut play = admission();
    play.runs("dev", "6.1.6");
    play.settle();
    play.runs("staging", "6.1.6");
    play.settle();
    play.runs("staging", "6.1.0");
    play.settle();
    assert_eq!(admitted(&play, "staging"), ["6.1.6"]);
    assert_eq!(play.state("staging"), EnvironmentState::Promoted);
    play.pass(31);
    play.settle();
    assert_eq!(play.state("staging"), EnvironmentState::NoEffect);
    let first = play.record("staging").run;
    let annotations = BTreeMap::from([("sluice.dev/retry".to_owned(), "1".to_owned())]);
    play.object.metadata.annotations = Some(annotations);
    play.settle();
    assert!(play.record("staging").run > first);
    assert_eq!(play.state("staging"), EnvironmentState::Promoted);
    let status = play.object.status.as_ref().unwrap();
    assert_eq!(status.last_handled_retry.as_deref(), Some("1"));
    let writes = play.writes;
    play.settle();
    assert_eq!(play.writes, writes);
}

/// After a restore the annotation is there, and nothing says that it was dealt with.
#[test]
fn a_lost_status_is_no_retry() {
    let mut play = admission();
    let annotations = BTreeMap::from([("sluice.dev/retry".to_owned(), "1".to_owned())]);
    play.object.metadata.annotations = Some(annotations);
    play.settle();
    let run = play.object.status.as_ref().unwrap().run.clone().unwrap();
    play.pass(1);
    play.settle();
    assert_eq!(
        play.object
            .status
            .as_ref()
            .unwrap()
            .run
            .as_ref()
            .unwrap()
            .id,
        run.id
    );
}

#[test]
fn a_single_environment_is_done_and_no_environment_is_refused() {
    let mut play = admission();
    play.spec(|spec| {
        let environments = spec["environments"].as_array_mut().unwrap();
        environments.truncate(1);
    });
    play.settle();
    let run = play.object.status.as_ref().unwrap().run.clone().unwrap();
    assert!(run.completed_at.is_some());
    play.spec(|spec| spec["environments"] = json!([]));
    play.settle();
    assert_eq!(play.says("Stalled").unwrap(), "True InvalidSpec");
}

#[test]
fn without_any_promotion_people_promote() {
    let mut play = admission();
    play.spec(|spec| drop(spec.as_object_mut().unwrap().remove("promotion")));
    play.runs("dev", "6.1.6");
    play.settle();
    assert_eq!(play.state("staging"), EnvironmentState::Unpromoted);
    assert!(play.environment("staging").promotion.is_none());
    assert!(play.told.is_empty());
}

/// The environment's promotion replaces that of the pipeline as a whole.
#[test]
fn an_environment_may_have_a_promotion_of_its_own() {
    let mut play = Play::new(&json!({"manual": true, "strategy": {"notification": {}}}));
    play.spec(|spec| spec["environments"][1]["promotion"] = json!({"strategy": {"admission": {}}}));
    play.runs("dev", "6.1.6");
    play.settle();
    assert_eq!(admitted(&play, "staging"), ["6.1.6"]);
}

#[test]
fn suspended_it_shows_what_is_seen_and_does_nothing() {
    let mut play = admission();
    play.settle();
    play.spec(|spec| spec["suspend"] = json!(true));
    play.runs("dev", "6.1.6");
    play.settle();
    assert_eq!(play.says("Ready").unwrap(), "True Suspended");
    assert_eq!(
        play.environment("dev").targets[0].revision.as_deref(),
        Some("6.1.6")
    );
    assert!(play.environment("staging").admitted.is_empty());
    play.spec(|spec| spec["suspend"] = json!(false));
    play.settle();
    assert_eq!(admitted(&play, "staging"), ["6.1.6"]);
}

#[test]
fn closed_gates_hold_and_say_which() {
    let mut play = admission();
    play.settle();
    play.gate("staging", false);
    play.runs("dev", "6.1.6");
    play.settle();
    assert_eq!(play.state("staging"), EnvironmentState::GatesClosed);
    assert_eq!(play.phase("staging"), Phase::Unattempted);
    let run = play.object.status.as_ref().unwrap().run.clone().unwrap();
    assert_eq!(run.decided_by.as_deref(), Some("apps/staging"));
    assert_eq!(play.says(BLOCKED).unwrap(), "True GatesClosed");
    play.gate("staging", true);
    play.settle();
    assert_eq!(admitted(&play, "staging"), ["6.1.6"]);
    assert_eq!(play.says(BLOCKED).unwrap(), "False NothingBlocked");
}

#[test]
fn a_freeze_concerns_environments_without_gates() {
    let mut play = admission();
    play.spec(|spec| {
        drop(
            spec["environments"][1]
                .as_object_mut()
                .unwrap()
                .remove("gates"),
        );
    });
    play.settle();
    play.freeze = true;
    play.runs("dev", "6.1.6");
    play.settle();
    assert_eq!(play.state("staging"), EnvironmentState::GatesClosed);
    play.freeze = false;
    play.settle();
    assert_eq!(admitted(&play, "staging"), ["6.1.6"]);
    assert_eq!(play.told.last().unwrap().decided_by, [""; 0]);
}

/// A yes that could not be recorded is a no.
#[test]
fn what_cannot_be_recorded_is_not_done() {
    let mut play = admission();
    play.settle();
    play.runs("dev", "6.1.6");
    let considered = consider(play.given());
    let asked = considered.asked();
    assert!(asked[0].takes_effect);
    let refused = Decision {
        allowed: false,
        ..asked[0].decision.clone()
    };
    let report = report(considered, &[refused]);
    let staging = &report.status.environments["staging"];
    assert_eq!(staging.state, EnvironmentState::GatesClosed);
    assert!(staging.admitted.is_empty());
}

#[test]
fn gates_that_wait_for_their_own_environment_are_named() {
    let mut play = admission();
    let ring = ("apps", "podinfo", "prod");
    play.depends_on = vec![(ring.0.into(), ring.1.into(), ring.2.into())];
    play.runs("dev", "6.1.6");
    play.settle();
    assert_eq!(play.state("staging"), EnvironmentState::CyclicGates);
    assert!(
        play.message("staging").contains("admits to prod"),
        "{}",
        play.message("staging")
    );
    assert_eq!(play.says(BLOCKED).unwrap(), "True CyclicGates");
    // What waits for an earlier environment is no ring.
    play.depends_on[0].2 = "dev".to_owned();
    play.settle();
    assert_eq!(admitted(&play, "staging"), ["6.1.6"]);
}

/// With `pairwise`, what staging runs goes on while dev moves on.
#[test]
fn pairwise_several_revisions_are_on_their_way() {
    let mut play = admission();
    play.spec(|spec| spec["algorithm"] = json!("pairwise"));
    play.gate("prod", false);
    play.runs("dev", "6.1.6");
    play.settle();
    play.runs("staging", "6.1.6");
    play.settle();
    assert_eq!(play.state("prod"), EnvironmentState::GatesClosed);
    let run = play.record("prod").run;
    play.pass(1);
    play.app("dev")["status"]["conditions"][0]["status"] = json!("False");
    play.settle();
    assert_eq!(play.record("prod").run, run);
    play.gate("prod", true);
    play.settle();
    assert_eq!(admitted(&play, "prod"), ["6.1.6"]);
    // Meanwhile the next one comes.
    play.runs("dev", "6.1.7");
    play.settle();
    assert_eq!(admitted(&play, "staging")[0], "6.1.7");
    assert_eq!(admitted(&play, "prod")[0], "6.1.6");
    // What the environment before it runs now takes the place of what has not arrived.
    play.runs("staging", "6.1.7");
    play.settle();
    assert_eq!(admitted(&play, "prod"), ["6.1.7"]);
    let writes = play.writes;
    play.pass(1);
    play.settle();
    assert_eq!(play.writes, writes);
}
