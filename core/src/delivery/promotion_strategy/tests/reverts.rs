//! The way back, and forward again.

use rstest::rstest;
use serde_json::json;
use sluice_crds::pipeline::MergeGate;
use sluice_crds::promotion_strategy::{Arrival, EnvironmentState};
use sluice_crds::revert_commit::{RevertMerge, RevertPhase};

use super::*;

/// One environment, which was healthy with the first commit and is not with the second. Returns the dry
/// commits.
pub(super) fn broken(more: &Value) -> (Play, String, String) {
    let mut environment = json!({"branch": "env/prod"});
    let fields = environment.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    let mut play = Play::with(&json!({
        "repoRef": {"name": "shop"}, "activeCommitStatuses": [{"key": "health"}],
        "environments": [environment],
    }));
    let first = play.repository.head("main");
    play.all_healthy();
    play.settle();
    let second = play.hydrate("v2");
    play.settle();
    play.check("env/prod", "health", "failure");
    play.settle();
    assert_eq!(play.state("env/prod"), EnvironmentState::Failed);
    (play, first, second)
}

pub(super) fn revert(play: &Play, name: &str, to: &str) -> RevertCommit {
    serde_json::from_value(json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "RevertCommit",
        "metadata": {
            "namespace": "apps", "name": name, "uid": format!("{name}-0000"), "generation": 1,
            "creationTimestamp": "2026-11-23T12:00:00Z",
        },
        "spec": {
            "repoRef": {"name": "shop"}, "activeBranch": "env/prod",
            "from": play.repository.head("env/prod"), "drySHA": to, "reason": "INC-4711", "by": "alice",
        },
    }))
    .unwrap()
}

pub(super) fn phase(play: &Play, name: &str) -> (RevertPhase, String) {
    let all = &play.environment("env/prod").reverts;
    let found = all.iter().find(|it| it.name == name).unwrap();
    (found.phase, found.reason.clone())
}

pub(super) fn arrival(play: &Play) -> Option<Arrival> {
    play.environment("env/prod").active.as_ref()?.arrived_by
}

#[test]
fn an_environment_goes_back_to_what_was_healthy_and_stays_there() {
    let (mut play, first, second) = broken(&json!({}));
    let bad = play.repository.head("env/prod");
    let one = revert(&play, "back", &first);
    play.reverts.push(one);
    play.look();
    assert_eq!(play.state("env/prod"), EnvironmentState::Reverting);
    // It is held before it is merged.
    assert_eq!(play.environment("env/prod").held[0].dry_sha, second);
    play.settle();
    assert_eq!(play.at("env/prod"), Some(first.as_str()));
    assert_eq!(arrival(&play), Some(Arrival::Revert));
    assert_eq!(phase(&play, "back").0, RevertPhase::Merged);
    assert_ne!(play.repository.head("env/prod"), bad);
    // The second commit is still proposed, and does not return; nor does what comes after it.
    assert_eq!(play.reasons("env/prod")[0], "Held");
    assert_eq!(play.state("env/prod"), EnvironmentState::Held);
    let merges = play.merges.len();
    let fix = play.hydrate("v3");
    play.settle();
    assert_eq!(play.reason("env/prod"), Some("Held"));
    // What fixes it is named.
    play.reverts[0].spec.fixed_by = Some(fix.clone());
    play.settle();
    assert_eq!(play.merges.len(), merges + 1);
    assert_eq!(play.at("env/prod"), Some(fix.as_str()));
    assert_eq!(arrival(&play), Some(Arrival::Promotion));
    // It was joined first, so that nothing of the revert is mixed in.
    let merged = &play.merges.last().unwrap().1;
    assert_eq!(play.repository.find("env/prod-next").as_ref(), Some(merged));
}

/// The others wait for the oldest.
#[test]
fn the_one_that_is_carried_out_is_told_however_many_there_are() {
    let (mut play, first, _) = broken(&json!({}));
    for n in 0..10 {
        let mut one = revert(&play, &format!("back-{n}"), &first);
        let made = NOON.parse::<Timestamp>().unwrap() + SignedDuration::from_secs(n);
        one.metadata.creation_timestamp = Some(time(made));
        play.reverts.push(one);
    }
    play.look();
    let told = play.environment("env/prod").reverts.iter();
    let told: Vec<_> = told.map(|it| it.name.as_str()).collect();
    let newest: Vec<_> = (3..10).map(|n| format!("back-{n}")).collect();
    assert_eq!(
        (told[0], &told[1..]),
        (
            "back-0",
            newest
                .iter()
                .map(String::as_str)
                .collect::<Vec<_>>()
                .as_slice()
        )
    );
    assert_eq!(phase(&play, "back-0").1, "Opening");
}

#[test]
fn a_revert_that_somebody_has_taken_away_says_what_to_do() {
    let (mut play, first, _) = broken(&json!({}));
    let bad = play.repository.head("env/prod");
    let one = revert(&play, "back", &first);
    play.reverts.push(one);
    play.settle();
    assert_eq!(play.at("env/prod"), Some(first.as_str()));
    play.repository.set("env/prod", &bad);
    play.settle();
    let told = &play.environment("env/prod").reverts[0];
    assert_eq!(told.reason, "PullRequestPending");
    assert!(
        told.message.ends_with("create another one"),
        "{}",
        told.message
    );
    // Another one has a branch of its own.
    let again = revert(&play, "again", &first);
    play.reverts = vec![again];
    play.settle();
    assert_eq!(play.at("env/prod"), Some(first.as_str()));
}

#[test]
fn deleting_it_lifts_what_is_held() {
    let (mut play, first, second) = broken(&json!({}));
    let one = revert(&play, "back", &first);
    play.reverts.push(one);
    play.settle();
    play.reverts.clear();
    play.settle();
    assert_eq!(play.environment("env/prod").held, []);
    assert_eq!(play.at("env/prod"), Some(second.as_str()));
}

/// As from a file after everything was made again.
#[test]
fn one_that_is_applied_again_brings_nothing_back() {
    let (mut play, first, _) = broken(&json!({}));
    let one = revert(&play, "back", &first);
    play.reverts.push(one.clone());
    play.settle();
    play.reverts.clear();
    play.settle();
    let merges = play.merges.len();
    play.reverts.push(one);
    play.settle();
    assert_eq!(
        phase(&play, "back"),
        (RevertPhase::Superseded, "Superseded".to_owned())
    );
    assert_eq!(play.merges.len(), merges);
}

#[rstest]
#[case::unknown(|_: &Play, it: &mut RevertCommit| it.spec.dry_sha = "d".repeat(40), "DestinationUnknown")]
#[case::of_another_branch(|play: &Play, it: &mut RevertCommit| it.spec.hydrated_sha = Some(play.repository.head("main")), "NotAnAncestor")]
#[case::of_another_commit(|play: &Play, it: &mut RevertCommit| {
    it.spec.dry_sha = play.repository.head("main");
    it.spec.hydrated_sha = play.environment("env/prod").last_healthy.first().map(|it| it.hydrated_sha.clone());
}, "DestinationMismatch")]
fn where_nobody_can_go_a_person_is_told(
    #[case] change: fn(&Play, &mut RevertCommit),
    #[case] reason: &str,
) {
    let (mut play, first, _) = broken(&json!({}));
    let mut one = revert(&play, "back", &first);
    change(&play, &mut one);
    play.reverts.push(one);
    let merges = play.merges.len();
    play.settle();
    assert_eq!(
        phase(&play, "back"),
        (RevertPhase::Stalled, reason.to_owned())
    );
    assert_eq!(play.merges.len(), merges);
}

/// Also where the status is lost, so that nothing is known of what was healthy.
#[test]
fn where_it_is_already_nothing_is_done() {
    let (mut play, _, second) = broken(&json!({}));
    let one = revert(&play, "back", &second);
    play.reverts.push(one);
    play.object.status = None;
    let merges = play.merges.len();
    play.settle();
    assert_eq!(
        phase(&play, "back"),
        (RevertPhase::Done, "AlreadyThere".to_owned())
    );
    assert_eq!(play.merges.len(), merges);
}

#[test]
fn a_revert_never_goes_forward() {
    let (mut play, first, second) = broken(&json!({}));
    let one = revert(&play, "back", &first);
    play.reverts.push(one);
    play.settle();
    let mut forward = revert(&play, "forward", &second);
    let bad = play.reverts[0].spec.from.clone();
    forward.spec.hydrated_sha = Some(bad);
    play.reverts.push(forward);
    let merges = play.merges.len();
    play.settle();
    assert_eq!(phase(&play, "forward").1, "GoesForward");
    assert_eq!(play.merges.len(), merges);
}

#[test]
fn a_closed_gate_does_not_block_the_way_back_but_one_for_reverts_does() {
    let gates = json!({"refs": [{"name": "office"}]});
    let (mut play, first, _) = broken(&json!({"gates": gates}));
    play.open.insert("office".to_owned(), false);
    play.spec(|spec| spec["environments"][0]["revertGates"] = gates.clone());
    let one = revert(&play, "back", &first);
    play.reverts.push(one);
    play.settle();
    assert_eq!(play.reason("env/prod"), Some("GateClosed"));
    assert_eq!(play.state("env/prod"), EnvironmentState::Reverting);
    let asked = play.told.last().unwrap();
    assert_eq!(
        (asked.subject.kind.as_str(), asked.subject.action.as_str()),
        ("RevertCommit", "revert")
    );
    play.spec(|spec| {
        spec["environments"][0]
            .as_object_mut()
            .unwrap()
            .remove("revertGates");
    });
    play.settle();
    assert_eq!(play.at("env/prod"), Some(first.as_str()));
}

#[test]
fn a_person_merges_a_revert_where_it_is_not_automatic() {
    let (mut play, first, _) = broken(&json!({}));
    let mut one = revert(&play, "back", &first);
    one.spec.merge = Some(RevertMerge::Manual);
    play.reverts.push(one);
    let merges = play.merges.len();
    play.settle();
    assert_eq!(play.reason("env/prod"), Some("WaitsForPerson"));
    assert_eq!(play.environment("env/prod").gate, Some(MergeGate::Success));
    assert_eq!(
        (play.merges.len(), phase(&play, "back").0),
        (merges, RevertPhase::Open)
    );
    let object = play.pull_request("env/prod").clone();
    let head = object.status.unwrap().head_sha.unwrap();
    play.repository.merge("env/prod", &head);
    play.settle();
    assert_eq!(arrival(&play), Some(Arrival::Revert));
    assert_eq!(phase(&play, "back").0, RevertPhase::Merged);
}

#[test]
fn a_revert_waits_for_checks_if_it_says_so() {
    let (mut play, first, _) = broken(&json!({}));
    play.spec(|spec| spec["proposedCommitStatuses"] = json!([{"key": "lint"}]));
    let mut one = revert(&play, "back", &first);
    one.spec.merge = Some(RevertMerge::AfterChecks);
    play.reverts.push(one);
    let head = play.repository.head("env/prod-next");
    play.check_sha(&head, "lint", "success");
    play.settle();
    assert_eq!(play.reason("env/prod"), Some("CheckMissing"));
    let object = play.pull_request("env/prod").clone();
    play.check_sha(
        &object.status.unwrap().commit_sha.unwrap(),
        "lint",
        "success",
    );
    play.settle();
    assert_eq!(arrival(&play), Some(Arrival::Revert));
}

#[test]
fn nothing_is_brought_back_by_somebody_who_is_not_verified() {
    let (mut play, first, _) = broken(&json!({}));
    play.verified = false;
    let one = revert(&play, "back", &first);
    play.reverts.push(one);
    play.settle();
    assert_eq!(phase(&play, "back").1, "Unverified");
    assert_eq!(play.state("env/prod"), EnvironmentState::Failed);
}

#[test]
fn a_revert_that_is_deleted_before_it_is_merged_leaves_nothing() {
    let (mut play, first, second) = broken(&json!({}));
    let mut one = revert(&play, "back", &first);
    one.spec.merge = Some(RevertMerge::Manual);
    play.reverts.push(one);
    play.settle();
    play.reverts.clear();
    play.settle();
    assert_eq!(play.at("env/prod"), Some(second.as_str()));
    let environment = play.environment("env/prod");
    assert_eq!((environment.held.len(), environment.reverts.len()), (0, 0));
    let open = play
        .pull_requests
        .iter()
        .filter(|it| it.status.as_ref().and_then(|it| it.state) == Some(PullRequestState::Open));
    assert_eq!(open.count(), 0);
}

/// Checks of what is proposed count for the commit that joins it, as long as the files are the same.
#[test]
fn a_join_needs_no_new_checks() {
    let (mut play, first, _) = broken(&json!({}));
    let one = revert(&play, "back", &first);
    play.reverts.push(one);
    play.settle();
    play.spec(|spec| spec["proposedCommitStatuses"] = json!([{"key": "lint"}]));
    let fix = play.hydrate("v3");
    play.reverts[0].spec.fixed_by = Some(fix.clone());
    let head = play.repository.head("env/prod-next");
    play.settle();
    assert_eq!(play.reason("env/prod"), Some("CheckMissing"));
    assert_ne!(play.repository.head("env/prod-next"), head);
    play.check_sha(&head, "lint", "success");
    play.settle();
    assert_eq!(play.at("env/prod"), Some(fix.as_str()));
}

/// What people have approved, and what lists allow or deny, is the commit of the hydrator: one that only joins it to a
/// history has the same files, and is not asked about again.
#[test]
fn gates_are_asked_about_what_a_join_joins() {
    let (mut play, first, _) = broken(&json!({}));
    let one = revert(&play, "back", &first);
    play.reverts.push(one);
    play.settle();
    let fix = play.hydrate("v3");
    let head = play.repository.head("env/prod-next");
    play.spec(|spec| spec["environments"][0]["gates"] = json!({"refs": [{"name": "approved"}]}));
    play.keep("approved", &json!({"revisions": {"allow": [head]}}));
    play.reverts[0].spec.fixed_by = Some(fix.clone());
    play.settle();
    assert_eq!(play.at("env/prod"), Some(fix.as_str()));
    let (_, merged) = play.merges.last().unwrap();
    assert_ne!(*merged, head);
    let asked = play.told.last().unwrap();
    let revision = format!("env/prod@sha1:{head}");
    assert_eq!(asked.subject.revision, Some(revision));
}

#[test]
fn where_a_forge_squashes_each_promotion_is_joined_first() {
    let mut play = Play::with(&json!({
        "repoRef": {"name": "shop"}, "environments": [{"branch": "env/dev"}],
    }));
    play.squashes = true;
    play.settle();
    for version in ["v2", "v3", "v4"] {
        let dry = play.hydrate(version);
        play.settle();
        assert_eq!(play.at("env/dev"), Some(dry.as_str()), "{version}");
    }
}

#[test]
fn a_rebase_that_would_mix_waits_for_a_person() {
    let (mut play, first, _) = broken(&json!({"mergeMethod": "rebase"}));
    let one = revert(&play, "back", &first);
    play.reverts.push(one);
    play.settle();
    let fix = play.hydrate("v3");
    play.reverts[0].spec.fixed_by = Some(fix);
    play.settle();
    assert_eq!(play.reasons("env/prod"), ["CannotJoin"]);
}

/// The strategy was made again, or the environment was taken out of it for a moment.
#[rstest]
fn what_is_held_is_still_held_after_a_lost_status(#[values(false, true)] squashes: bool) {
    let (mut play, first, second) = broken(&json!({}));
    play.squashes = squashes;
    let one = revert(&play, "back", &first);
    play.reverts.push(one);
    play.settle();
    let merges = play.merges.len();
    play.object.status = None;
    play.settle();
    assert_eq!(play.environment("env/prod").held[0].dry_sha, second);
    assert_eq!(play.reason("env/prod"), Some("Held"));
    assert_eq!(play.merges.len(), merges);
    // With its fix it is held no longer, and a status that is lost then holds it no more.
    let fix = play.hydrate("v3");
    play.reverts[0].spec.fixed_by = Some(fix.clone());
    play.settle();
    assert_eq!(play.at("env/prod"), Some(fix.as_str()));
    play.object.status = None;
    play.settle();
    assert_eq!(play.environment("env/prod").held, []);
}

#[test]
fn a_strategy_that_does_not_own_the_branch_brings_nothing_back() {
    let (mut play, first, _) = broken(&json!({}));
    play.owned_by.insert("env/prod".into(), "apps/older".into());
    let one = revert(&play, "back", &first);
    play.reverts.push(one);
    let merges = play.merges.len();
    play.settle();
    assert_eq!(play.merges.len(), merges);
}

#[test]
fn nobody_goes_back_to_what_is_held() {
    let (mut play, first, second) = broken(&json!({}));
    let bad = play.repository.head("env/prod");
    let one = revert(&play, "back", &first);
    play.reverts.push(one);
    play.settle();
    // Somebody pushes what says nothing of itself, and asks for what was taken back.
    play.repository.push_bare("env/prod", "foreign");
    play.settle();
    let mut again = revert(&play, "again", &second);
    again.spec.hydrated_sha = Some(bad);
    play.reverts.push(again);
    play.settle();
    assert_eq!(phase(&play, "again").1, "DestinationHeld");
}

#[test]
fn what_is_fixed_is_held_no_longer() {
    let (mut play, first, _) = broken(&json!({}));
    let one = revert(&play, "back", &first);
    play.reverts.push(one);
    play.settle();
    let fix = play.hydrate("v3");
    play.reverts[0].spec.fixed_by = Some(fix);
    play.settle();
    play.check("env/prod", "health", "success");
    play.settle();
    assert_eq!(play.environment("env/prod").held, []);
}

#[test]
fn what_is_held_does_not_fix_itself() {
    let (mut play, first, second) = broken(&json!({}));
    let one = revert(&play, "back", &first);
    play.reverts.push(one);
    play.settle();
    let merges = play.merges.len();
    for fix in [second, first] {
        play.reverts[0].spec.fixed_by = Some(fix);
        play.settle();
        assert_eq!(play.reason("env/prod"), Some("Held"));
    }
    assert_eq!(play.merges.len(), merges);
}
