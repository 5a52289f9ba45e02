//! Promotion by pull request.

use rstest::rstest;
use sluice_crds::pipeline::MergeGate;

use super::*;

fn play(more: &Value) -> Play {
    let mut play = Play::new(&super::by_pull_request(more));
    play.settle();
    play.runs("dev", "6.1.6");
    play
}

fn auto() -> Play {
    play(&json!({"merge": "auto"}))
}

fn created(play: &Play) -> usize {
    play.done
        .iter()
        .filter(|it| it.starts_with("create"))
        .count()
}

#[test]
fn the_intent_is_in_the_status_before_the_object() {
    let mut play = play(&json!({}));
    let report = play.decide();
    let record = report.status.environments["staging"]
        .promotion
        .clone()
        .unwrap();
    assert_eq!(record.phase, Phase::Attempting);
    let Act::Create(made) = &report.acts[0] else {
        panic!("{:?}", report.acts);
    };
    assert_eq!(made.spec.about.key, record.key);
    assert_eq!(made.metadata.name, Some(format!("podinfo-{}", record.key)));
    assert_eq!(made.spec.about.revision.as_deref(), Some("6.1.6"));
    let branch = &made.spec.source_branch;
    assert!(branch.starts_with("sluice/") && branch.ends_with(&format!("/{}", record.key)));
    assert_eq!(
        record.pull_request.unwrap().name,
        made.metadata.name.clone().unwrap()
    );
    // The write was refused: nothing was done, and the next look decides the same.
    assert_eq!(play.decide().acts, report.acts);
}

#[test]
fn open_merged_and_the_next_environment() {
    let mut play = play(&json!({}));
    play.settle();
    assert_eq!(play.state("staging"), EnvironmentState::Promoting);
    play.forge("staging", PullRequestState::Open);
    play.settle();
    assert_eq!(play.phase("staging"), Phase::Created);
    assert_eq!(play.state("staging"), EnvironmentState::PullRequestOpen);
    let of = play.record("staging").pull_request.clone().unwrap();
    assert_eq!(
        of.url.as_deref(),
        Some("https://git.example.com/apps/pulls/1")
    );
    assert_eq!(play.record("staging").gate, Some(MergeGate::Success));
    assert_eq!(play.record("staging").order, None);
    play.forge("staging", PullRequestState::Merged);
    play.settle();
    assert_eq!(play.phase("staging"), Phase::Succeeded);
    assert_eq!(play.record("staging").reason.as_deref(), Some("Merged"));
    play.runs("staging", "6.1.6");
    play.settle();
    assert_eq!(created(&play), 2);
    assert_eq!(play.state("prod"), EnvironmentState::Promoting);
}

#[rstest]
#[case(
    PullRequestState::AlreadyInBase,
    Phase::Succeeded,
    EnvironmentState::Promoted
)]
#[case(
    PullRequestState::Closed,
    Phase::Abandoned,
    EnvironmentState::Abandoned
)]
#[case(
    PullRequestState::Missing,
    Phase::Abandoned,
    EnvironmentState::Abandoned
)]
fn how_a_pull_request_ends(
    #[case] state: PullRequestState,
    #[case] phase: Phase,
    #[case] shown: EnvironmentState,
) {
    let mut play = play(&json!({}));
    play.settle();
    play.forge("staging", PullRequestState::Open);
    play.settle();
    play.forge("staging", state);
    play.settle();
    assert_eq!(
        (play.phase("staging"), play.state("staging")),
        (phase, shown)
    );
    for _ in 0..3 {
        play.pass(60);
        play.settle();
    }
    assert_eq!(created(&play), 1);
}

#[test]
fn what_was_abandoned_comes_again_only_on_request() {
    let mut play = play(&json!({}));
    play.settle();
    play.forge("staging", PullRequestState::Closed);
    play.settle();
    let first = play.record("staging").key.clone();
    let annotations = BTreeMap::from([("sluice.dev/retry".to_owned(), "1".to_owned())]);
    play.object.metadata.annotations = Some(annotations);
    play.settle();
    assert_eq!(created(&play), 2);
    assert_ne!(play.record("staging").key, first);
}

/// The earlier pull request is closed first, and only then the next one is created.
#[rstest]
#[case::closed(PullRequestState::Closed)]
#[case::merged_meanwhile(PullRequestState::Merged)]
fn a_superseded_one_is_confirmed_closed_before_the_next(#[case] end: PullRequestState) {
    let mut play = play(&json!({}));
    play.settle();
    play.forge("staging", PullRequestState::Open);
    play.settle();
    play.runs("dev", "6.1.7");
    play.settle();
    assert_eq!(play.state("staging"), EnvironmentState::Closing);
    assert_eq!(created(&play), 1);
    let old = play.pull_requests[0].spec.close.as_deref();
    assert_eq!(old, Some("another promotion takes its place"));
    assert_eq!(play.record("staging").gate, None);
    play.forge("staging", end);
    play.settle();
    assert_eq!(created(&play), 2);
    assert_eq!(play.record("staging").revision, "6.1.7");
}

/// Nobody knows whether it was created: with its order to close it cannot be opened any more.
#[test]
fn one_that_is_not_seen_yet_is_created_with_its_order_to_close() {
    let mut play = play(&json!({}));
    play.settle();
    let lost = std::mem::take(&mut play.pull_requests);
    play.runs("dev", "6.1.7");
    let report = play.look();
    let Act::Create(made) = &report.acts[0] else {
        panic!("{:?}", report.acts);
    };
    assert_eq!(made.metadata.name, lost[0].metadata.name);
    assert!(made.spec.close.is_some());
    assert_eq!(play.state("staging"), EnvironmentState::Closing);
}

#[test]
fn a_lost_object_is_created_again() {
    let mut play = play(&json!({}));
    play.settle();
    play.forge("staging", PullRequestState::Open);
    play.settle();
    let lost = std::mem::take(&mut play.pull_requests);
    play.settle();
    assert_eq!(play.pull_requests.len(), 1);
    assert_eq!(play.pull_requests[0].spec, lost[0].spec);
    assert_eq!(play.phase("staging"), Phase::Created);
}

/// Whether a look has a yes that is recorded before it is given.
fn takes_effect(play: &Play) -> bool {
    let considered = consider(play.given());
    considered.asked().iter().any(|asked| asked.takes_effect)
}

/// The commit status lets people merge: that is recorded once, as an order is.
#[test]
fn a_yes_to_people_is_recorded_first() {
    let mut play = play(&json!({}));
    play.settle();
    play.forge("staging", PullRequestState::Open);
    assert!(takes_effect(&play));
    play.look();
    assert_eq!(play.record("staging").gate, Some(MergeGate::Success));
    assert!(!takes_effect(&play));
}

#[test]
fn an_order_names_our_commit_and_ends_soon() {
    let mut play = auto();
    play.settle();
    play.forge("staging", PullRequestState::Open);
    assert!(takes_effect(&play));
    play.look();
    // It is recorded once, and not at each look.
    assert!(!takes_effect(&play));
    let order = play.record("staging").order.clone().unwrap();
    assert_eq!(order.head_sha, "c".repeat(40));
    assert_eq!(order.key, play.record("staging").key);
    assert_eq!(order.not_after.0, play.now + SignedDuration::from_secs(60));
    // It stays until it ends, and is then given again.
    play.now += SignedDuration::from_secs(59);
    assert!(!play.look().changed);
    play.now += SignedDuration::from_secs(1);
    play.look();
    assert!(play.record("staging").order.as_ref().unwrap().not_after.0 > order.not_after.0);
}

#[test]
fn an_order_is_taken_back_when_the_gates_close() {
    let mut play = auto();
    play.settle();
    play.forge("staging", PullRequestState::Open);
    play.look();
    play.gate("staging", false);
    play.look();
    let record = play.record("staging");
    assert_eq!(
        (record.order.clone(), record.gate),
        (None, Some(MergeGate::Pending))
    );
    assert_eq!(play.state("staging"), EnvironmentState::GatesClosed);
    assert_eq!(play.says(BLOCKED).unwrap(), "True GatesClosed");
}

#[rstest]
#[case::unknown_target(|play: &mut Play| drop(play.apps.insert("staging".into(), vec![None])))]
#[case::unknown_first(|play: &mut Play| drop(play.apps.insert("dev".into(), vec![None])))]
#[case::failing_first(|play: &mut Play| {
    play.app("dev")["status"]["conditions"][0]["status"] = json!("False");
})]
#[case::suspended(|play: &mut Play| play.spec(|spec| spec["suspend"] = json!(true)))]
#[case::refused(|play: &mut Play| play.spec(|spec| spec["environments"][1]["targets"] = json!([])))]
#[case::superseded(|play: &mut Play| play.runs("dev", "6.1.7"))]
#[case::touched(|play: &mut Play| {
    play.forge("staging", PullRequestState::Open).head_sha = Some("d".repeat(40));
})]
fn what_takes_an_order_back(#[case] change: fn(&mut Play)) {
    let mut play = auto();
    play.settle();
    play.forge("staging", PullRequestState::Open);
    play.look();
    assert!(play.record("staging").order.is_some());
    change(&mut play);
    play.look();
    let record = play.record("staging");
    assert_eq!(record.order, None);
    assert_ne!(record.gate, Some(MergeGate::Success));
}

#[rstest]
#[case("create", [false, true])]
#[case("merge", [true, false])]
#[case("both", [false, false])]
fn when_the_gates_are_asked(#[case] at: &str, #[case] expected: [bool; 2]) {
    let mut play = auto();
    play.spec(|spec| spec["environments"][1]["gateAt"] = json!(at));
    play.gate("staging", false);
    play.settle();
    assert_eq!(created(&play) == 1, expected[0], "begun");
    play.gate("staging", true);
    play.settle();
    play.gate("staging", false);
    play.forge("staging", PullRequestState::Open);
    play.look();
    assert_eq!(
        play.record("staging").order.is_some(),
        expected[1],
        "merged"
    );
}

/// A policy is asked at both, whatever the environment says of its own gates.
#[rstest]
#[case("create")]
#[case("merge")]
fn a_freeze_is_asked_before_both(#[case] at: &str) {
    let mut play = auto();
    play.spec(|spec| spec["environments"][1]["gateAt"] = json!(at));
    play.freeze = true;
    play.settle();
    assert_eq!(created(&play), 0);
    play.freeze = false;
    play.settle();
    play.forge("staging", PullRequestState::Open);
    play.freeze = true;
    play.look();
    assert_eq!(play.record("staging").order, None);
}

#[test]
fn a_merge_past_a_closed_gate_is_told() {
    let mut play = play(&json!({}));
    play.settle();
    play.forge("staging", PullRequestState::Open);
    play.gate("staging", false);
    play.settle();
    play.forge("staging", PullRequestState::Merged);
    play.settle();
    let record = play.record("staging");
    assert_eq!(record.phase, Phase::Succeeded);
    assert_eq!(record.reason.as_deref(), Some("MergedPastGate"));
}

#[test]
fn what_was_decided_is_done_although_the_gate_closes_and_a_retry_asks_anew() {
    let mut play = play(&json!({}));
    play.look();
    play.pull_requests.clear();
    play.gate("staging", false);
    play.settle();
    assert_eq!(play.pull_requests.len(), 1);
    assert!(!play.pull_requests[0].spec.suspend);
    let status = play.forge("staging", PullRequestState::Pending);
    status.attempts = Some(2);
    status.message = Some("the forge says 401".to_owned());
    play.settle();
    assert_eq!(play.phase("staging"), Phase::Failed);
    assert!(play.pull_requests[0].spec.suspend);
    play.gate("staging", true);
    play.settle();
    assert!(!play.pull_requests[0].spec.suspend);
    assert_eq!(play.state("staging"), EnvironmentState::Failed);
    assert!(play.message("staging").contains("the forge says 401"));
    assert_eq!(play.says("Ready").unwrap(), "False PromotionFailed");
}

/// dev follows the branch that staging's pull request is merged into.
#[test]
fn our_own_merge_starts_no_run_and_a_foreign_commit_does() {
    let commit = |digit: char| format!("main@sha1:{}", digit.to_string().repeat(40));
    let mut play = Play::new(&super::by_pull_request(&json!({})));
    play.runs("dev", &commit('a'));
    play.settle();
    let run = |play: &Play| play.object.status.as_ref().unwrap().run.clone().unwrap();
    let first = run(&play);
    let status = play.forge("staging", PullRequestState::Merged);
    status.merged_sha = Some("b".repeat(40));
    status.merged_onto = Some("a".repeat(40));
    play.settle();
    play.runs("dev", &commit('b'));
    play.settle();
    assert_eq!(run(&play).id, first.id);
    assert_eq!(play.state("dev"), EnvironmentState::Passed);
    play.runs("staging", &commit('b'));
    play.settle();
    assert_eq!(play.state("staging"), EnvironmentState::Passed);
    // The object may be deleted: the record remembers.
    play.pull_requests
        .retain(|it| it.spec.about.environment != "staging");
    play.settle();
    assert_eq!(run(&play).id, first.id);
    play.pass(1);
    play.runs("dev", &commit('c'));
    play.settle();
    assert!(run(&play).id > first.id);
}

#[test]
fn an_app_that_arrives_has_its_pull_request_looked_at_at_once() {
    let mut play = play(&json!({}));
    play.settle();
    play.forge("staging", PullRequestState::Open);
    play.settle();
    play.runs("staging", "6.1.6");
    play.settle();
    let looks = play.done.iter().filter(|it| it.starts_with("look at"));
    assert_eq!(looks.count(), 1);
    assert_eq!(play.phase("staging"), Phase::Succeeded);
    // Nothing lets it be merged any more. That it was merged is no surprise: the gates had admitted it.
    assert_eq!(play.record("staging").gate, None);
    play.forge("staging", PullRequestState::Merged);
    play.settle();
    assert_eq!(play.record("staging").reason.as_deref(), Some("Arrived"));
}

#[test]
fn an_app_that_arrives_past_a_closed_gate_is_told() {
    let mut play = play(&json!({}));
    play.settle();
    play.forge("staging", PullRequestState::Open);
    play.gate("staging", false);
    play.settle();
    play.runs("staging", "6.1.6");
    play.settle();
    play.forge("staging", PullRequestState::Merged);
    play.settle();
    let reason = &play.record("staging").reason;
    assert_eq!(reason.as_deref(), Some("MergedPastGate"));
}

#[test]
fn another_repository_is_another_act_and_a_forge_left_behind_holds_nobody_up() {
    let mut play = play(&json!({}));
    play.settle();
    play.forge("staging", PullRequestState::Open);
    play.settle();
    play.spec(|spec| {
        spec["promotion"]["strategy"]["pull-request"]["url"] = json!("https://other.example.com/a");
    });
    play.settle();
    assert_eq!(created(&play), 2);
    assert!(play.pull_requests[0].spec.close.is_some());
}

#[test]
fn an_environment_that_the_spec_has_no_more_is_closed_and_then_forgotten() {
    let mut play = play(&json!({}));
    play.settle();
    play.forge("staging", PullRequestState::Open);
    play.settle();
    play.spec(|spec| drop(spec["environments"].as_array_mut().unwrap().remove(1)));
    play.settle();
    assert_eq!(play.state("staging"), EnvironmentState::Closing);
    assert!(play.pull_requests[0].spec.close.is_some());
    play.pull_requests[0].status.as_mut().unwrap().state = Some(PullRequestState::Closed);
    play.settle();
    let status = play.object.status.as_ref().unwrap();
    assert!(!status.environments.contains_key("staging"));
}

/// People read it at the forge and in an event.
#[rstest]
#[case::another_revision(|play: &mut Play| play.runs("dev", "6.1.7"), SUPERSEDED)]
#[case::no_environment(
    |play: &mut Play| play.spec(|spec| drop(spec["environments"].as_array_mut().unwrap().remove(1))),
    "the Pipeline has no environment staging any more"
)]
#[case::no_promotion(
    |play: &mut Play| play.spec(|spec| spec["promotion"] = Value::Null),
    "the Pipeline does not promote to staging any more"
)]
#[case::now_the_first(
    |play: &mut Play| play.spec(|spec| {
        spec["environments"].as_array_mut().unwrap().remove(0);
        spec["environments"][0].as_object_mut().unwrap().remove("gates");
    }),
    "the Pipeline does not promote to staging any more"
)]
fn why_a_pull_request_is_closed(#[case] change: fn(&mut Play), #[case] expected: &str) {
    let mut play = play(&json!({}));
    play.settle();
    play.forge("staging", PullRequestState::Open);
    play.settle();
    change(&mut play);
    play.settle();
    let closed = &play.pull_requests[0];
    assert_eq!(closed.spec.about.environment, "staging");
    assert_eq!(closed.spec.close.as_deref(), Some(expected));
}

#[test]
fn the_newest_finished_objects_are_kept() {
    let mut play = play(&json!({}));
    for number in 0..9 {
        play.pass(1);
        play.runs("dev", &format!("7.0.{number}"));
        play.settle();
        play.forge("staging", PullRequestState::Closed);
        play.settle();
    }
    assert_eq!(play.pull_requests.len(), 6);
}

#[test]
fn a_pull_request_has_the_labels_of_its_pipeline() {
    let label = |play: &mut Play, labels: &[(&str, &str)]| {
        let labels = labels
            .iter()
            .map(|(key, value)| ((*key).into(), (*value).into()));
        play.object.metadata.labels = Some(labels.collect());
    };
    let labels =
        |play: &Play| serde_json::to_value(&play.pull_requests[0].metadata.labels).unwrap();
    let mut play = play(&json!({}));
    label(&mut play, &[("shard", "one"), ("team", "web")]);
    play.settle();
    // It is created with them, so that who looks at the one looks at the other.
    assert!(!play.done.contains(&"belong".to_owned()));
    assert_eq!(labels(&play), json!({"shard": "one", "team": "web"}));
    let others = play.pull_requests[0].metadata.labels.as_mut().unwrap();
    others.insert("of".to_owned(), "others".to_owned());
    label(&mut play, &[("shard", "two")]);
    play.settle();
    assert_eq!(labels(&play), json!({"shard": "two", "of": "others"}));
    label(&mut play, &[]);
    play.settle();
    assert_eq!(labels(&play), json!({"of": "others"}));
    assert_eq!(play.look().acts, []);
}
