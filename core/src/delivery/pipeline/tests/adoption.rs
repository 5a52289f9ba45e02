//! What is remembered when the status is lost, its objects, or both.

use rstest::rstest;

use super::super::key::{Way, key};
use super::super::whose::Whose;
use super::*;

fn play() -> Play {
    let mut play = Play::new(&super::by_pull_request(&json!({})));
    play.settle();
    play.runs("dev", "6.1.6");
    play.settle();
    play
}

fn recalled(play: &Play, revision: &str, state: PullRequestState) -> Outcome {
    recalled_of("staging", play, revision, state)
}

fn recalled_of(environment: &str, play: &Play, revision: &str, state: PullRequestState) -> Outcome {
    let promotion = play.object.spec.promotion.as_ref().unwrap();
    let way = Way::of(promotion.strategy.kind().unwrap());
    let run = 1_000;
    Outcome::Recalled(Some(Recalled {
        run,
        revision: revision.to_owned(),
        key: key(Whose::of(&play.object), environment, run, revision, way),
        state,
        url: None,
        merge: None,
    }))
}

fn created(play: &Play) -> usize {
    play.done
        .iter()
        .filter(|it| it.starts_with("create"))
        .count()
}

#[rstest]
#[case(PullRequestState::Open, Phase::Created)]
#[case(PullRequestState::Merged, Phase::Succeeded)]
#[case(PullRequestState::Closed, Phase::Abandoned)]
fn a_lost_status_is_read_back_from_the_newest_object(
    #[case] state: PullRequestState,
    #[case] phase: Phase,
) {
    let mut play = play();
    play.forge("staging", state);
    play.settle();
    let before = play.object.status.take().unwrap();
    play.pass(7);
    play.settle();
    let after = play.object.status.as_ref().unwrap();
    assert_eq!(after.run.as_ref().unwrap().id, before.run.unwrap().id);
    assert_eq!(
        play.record("staging").key,
        before.environments["staging"]
            .promotion
            .as_ref()
            .unwrap()
            .key
    );
    assert_eq!(play.phase("staging"), phase);
    assert_eq!(created(&play), 1);
}

#[test]
fn an_object_that_somebody_else_made_is_left_alone() {
    let mut play = play();
    let mut forged = play.pull_requests[0].clone();
    forged.metadata.name = Some("podinfo-000000000000".to_owned());
    forged.spec.about.run = Some(i64::MAX);
    forged.spec.about.key = "000000000000".to_owned();
    forged.status.get_or_insert_default().state = Some(PullRequestState::Merged);
    play.pull_requests = vec![forged.clone()];
    play.object.status = None;
    play.settle();
    assert_eq!(play.phase("staging"), Phase::Attempting);
    assert!(play.record("staging").run < i64::MAX);
    assert!(play.pull_requests.contains(&forged));
}

#[test]
fn the_forge_is_asked_before_anything_is_begun() {
    let mut play = Play::new(&super::by_pull_request(&json!({})));
    play.errands.clear();
    play.runs("dev", "6.1.6");
    let report = play.look();
    assert!(
        report.acts.iter().all(|act| matches!(act, Act::Recall(_))),
        "{:?}",
        report.acts
    );
    assert_eq!(report.acts.len(), 2);
    assert!(play.object.status.as_ref().unwrap().run.is_none());
    assert!(
        play.message("staging").contains("is asked"),
        "{}",
        play.message("staging")
    );
    let why = Outcome::Failed {
        why: "502".to_owned(),
        not_before: None,
    };
    play.errands
        .insert(Errand::Recall("staging".to_owned(), String::new()), why);
    play.errands.insert(
        Errand::Recall("prod".to_owned(), String::new()),
        Outcome::Recalled(None),
    );
    play.settle();
    assert!(
        play.message("staging").contains("502"),
        "{}",
        play.message("staging")
    );
    assert_eq!(created(&play), 0);
    play.errands.insert(
        Errand::Recall("staging".to_owned(), String::new()),
        Outcome::Recalled(None),
    );
    play.settle();
    assert_eq!(created(&play), 1);
    // Later looks ask no forge.
    assert_eq!(
        play.done
            .iter()
            .filter(|it| it.starts_with("recall"))
            .count(),
        2
    );
}

#[rstest]
#[case::merged(PullRequestState::Merged, Phase::Succeeded)]
#[case::closed(PullRequestState::Closed, Phase::Abandoned)]
fn what_the_forge_still_knows_is_not_promoted_again(
    #[case] state: PullRequestState,
    #[case] phase: Phase,
) {
    let mut play = Play::new(&super::by_pull_request(&json!({})));
    play.runs("dev", "6.1.6");
    let found = recalled(&play, "6.1.6", state);
    play.errands
        .insert(Errand::Recall("staging".to_owned(), String::new()), found);
    play.settle();
    assert_eq!(play.phase("staging"), phase);
    assert_eq!(created(&play), 0);
    assert_eq!(
        play.object
            .status
            .as_ref()
            .unwrap()
            .run
            .as_ref()
            .unwrap()
            .id,
        1_000
    );
}

/// Anybody who may push could have opened it: it is closed, and people and gates are asked.
#[rstest]
#[case::run("run")]
#[case::pairwise("pairwise")]
fn one_that_is_still_open_is_closed_and_begins_again_with_a_new_run(#[case] algorithm: &str) {
    let mut promotion = super::by_pull_request(&json!({"merge": "auto"}));
    promotion["manual"] = true.into();
    let mut play = Play::new(&promotion);
    play.spec(|spec| spec["algorithm"] = algorithm.into());
    play.runs("dev", "6.1.6");
    play.runs("staging", "6.1.6");
    let found = recalled_of("prod", &play, "6.1.6", PullRequestState::Open);
    play.errands
        .insert(Errand::Recall("prod".to_owned(), String::new()), found);
    play.settle();
    assert_eq!(play.state("prod"), EnvironmentState::Closing);
    assert_eq!(play.pull_requests.len(), 1);
    assert!(play.pull_requests[0].spec.close.is_some());
    assert!(play.record("prod").order.is_none());
    play.forge("prod", PullRequestState::Closed);
    play.settle();
    assert_eq!(play.state("prod"), EnvironmentState::Unapproved);
    assert!(play.record("prod").run > 1_000);
    assert_eq!(created(&play), 1);
}

/// Its number would be the greatest for ever.
#[rstest]
#[case(-1)]
#[case(i64::MAX)]
fn a_run_that_cannot_have_begun_yet_is_nobodys(#[case] run: i64) {
    let mut play = Play::new(&super::by_pull_request(&json!({})));
    play.runs("dev", "6.1.6");
    let Outcome::Recalled(Some(mut found)) = recalled(&play, "6.1.6", PullRequestState::Merged)
    else {
        unreachable!()
    };
    found.run = run;
    let promotion = play.object.spec.promotion.as_ref().unwrap();
    let way = Way::of(promotion.strategy.kind().unwrap());
    found.key = key(Whose::of(&play.object), "staging", run, "6.1.6", way);
    let found = Outcome::Recalled(Some(found));
    play.errands
        .insert(Errand::Recall("staging".to_owned(), String::new()), found);
    play.settle();
    assert_eq!(created(&play), 1);
    assert_eq!(play.record("staging").run, play.now.as_millisecond());
}

/// Somebody has made it ahead of the approval, with everything as it will be.
#[test]
fn an_object_counts_only_if_the_record_names_it() {
    let mut promotion = super::by_pull_request(&json!({}));
    promotion["manual"] = true.into();
    let mut play = Play::new(&promotion);
    play.settle();
    play.runs("dev", "6.1.6");
    play.settle();
    let record = play.record("staging").clone();
    let strategy = play.object.spec.promotion.clone().unwrap().strategy;
    let strategy = strategy.pull_request.unwrap();
    let made = super::super::child::make(&play.object, "staging", &record, &strategy, None);
    assert!(crate::delivery::pull_request::Says::of(&made, &play.object).is_none());
    play.pull_requests.push(made);
    for state in [PullRequestState::Pending, PullRequestState::Open] {
        play.forge("staging", state);
        play.settle();
        assert_eq!(play.state("staging"), EnvironmentState::Unapproved);
    }
    assert_eq!(play.record("staging").pull_request, None);
}

#[test]
fn one_of_another_revision_is_closed_first() {
    let mut play = Play::new(&super::by_pull_request(&json!({})));
    play.runs("dev", "6.1.6");
    let found = recalled(&play, "6.1.5", PullRequestState::Open);
    play.errands
        .insert(Errand::Recall("staging".to_owned(), String::new()), found);
    play.settle();
    assert_eq!(play.state("staging"), EnvironmentState::Closing);
    assert_eq!(play.pull_requests.len(), 1);
    assert!(play.pull_requests[0].spec.close.is_some());
    play.forge("staging", PullRequestState::Closed);
    play.settle();
    assert_eq!(play.record("staging").revision, "6.1.6");
}

#[test]
fn what_a_forge_says_counts_only_with_its_key() {
    let mut play = Play::new(&super::by_pull_request(&json!({})));
    play.runs("dev", "6.1.6");
    let Outcome::Recalled(Some(mut found)) = recalled(&play, "6.1.6", PullRequestState::Merged)
    else {
        unreachable!()
    };
    found.run += 1;
    let found = Outcome::Recalled(Some(found));
    play.errands
        .insert(Errand::Recall("staging".to_owned(), String::new()), found);
    play.settle();
    assert_eq!(created(&play), 1);
}

/// Otherwise each failure would be a new status, and each new status another question.
#[test]
fn a_forge_that_fails_is_asked_again_when_it_is_time_and_the_status_stays() {
    let mut play = Play::new(&super::by_pull_request(&json!({})));
    play.runs("dev", "6.1.6");
    let asked = |play: &Play| {
        play.done
            .iter()
            .filter(|it| it.starts_with("recall"))
            .count()
    };
    play.errands.clear();
    play.look();
    let before = asked(&play);
    let at = play.now + SignedDuration::from_secs(30);
    for environment in ["staging", "prod"] {
        let errand = Errand::Recall(environment.to_owned(), "an earlier version".to_owned());
        let failed = Outcome::Failed {
            why: "502".to_owned(),
            not_before: Some(at),
        };
        play.errands.insert(errand, failed);
    }
    let report = play.look();
    assert_eq!((asked(&play), report.wake), (before, Some(at)));
    let status = play.object.status.clone();
    play.pass(1);
    play.look();
    assert_eq!(asked(&play), before + 2);
    assert_eq!(play.object.status, status);
}
