//! Promotion that a person has to approve.

use rstest::rstest;
use sluice_crds::ApprovalSpec;
use sluice_crds::approval::{PipelineReference, Vote};

use super::*;

fn manual() -> Play {
    let mut play = Play::new(&json!({"manual": true, "strategy": {"admission": {}}}));
    play.settle();
    play.runs("dev", "6.1.6");
    play.settle();
    play
}

fn vote(play: &mut Play, decision: Vote, change: impl FnOnce(&mut ApprovalSpec)) {
    let waits = play.environment("staging").waiting_approval.clone();
    let run = waits.map_or_else(|| play.record("staging").run, |it| it.run);
    let mut spec = ApprovalSpec {
        gatekeeper_ref: None,
        pipeline_ref: Some(PipelineReference {
            name: "podinfo".to_owned(),
            environment: "staging".to_owned(),
            run,
            key: None,
        }),
        revision: "6.1.6".to_owned(),
        decision,
        by: "alice@example.com".to_owned(),
        groups: Vec::new(),
        reason: None,
    };
    change(&mut spec);
    let name = format!("vote-{}", play.votes.all.len());
    play.votes.all.push(Arc::new(Approval::new(&name, spec)));
}

fn named(spec: &mut ApprovalSpec) -> &mut PipelineReference {
    spec.pipeline_ref.as_mut().unwrap()
}

#[test]
fn it_waits_for_a_person_and_says_for_which_run() {
    let mut play = manual();
    assert_eq!(play.state("staging"), EnvironmentState::Unapproved);
    assert_eq!(play.says(BLOCKED).unwrap(), "True Unapproved");
    let waits = play
        .environment("staging")
        .waiting_approval
        .clone()
        .unwrap();
    assert_eq!(waits.revision, "6.1.6");
    assert!(play.message("staging").contains(&waits.run.to_string()));
    assert!(play.told.is_empty());
    // What it waits for is not wiped by the next look.
    play.pass(5);
    assert!(!play.look().changed);
    vote(&mut play, Vote::Approve, |_| {});
    play.settle();
    assert_eq!(play.environment("staging").admitted.len(), 1);
    assert_eq!(play.environment("staging").waiting_approval, None);
}

#[rstest]
#[case::another_run(|spec: &mut ApprovalSpec| named(spec).run += 1)]
#[case::another_environment(|spec: &mut ApprovalSpec| named(spec).environment = "prod".into())]
#[case::another_pipeline(|spec: &mut ApprovalSpec| named(spec).name = "other".into())]
#[case::another_revision(|spec: &mut ApprovalSpec| spec.revision = "6.1.7".into())]
#[case::another_way(|spec: &mut ApprovalSpec| named(spec).key = Some("0123456789ab".into()))]
#[case::no_revision(|spec: &mut ApprovalSpec| spec.revision = "a b".into())]
#[case::a_gatekeepers(|spec: &mut ApprovalSpec| spec.pipeline_ref = None)]
fn an_approval_of_something_else_does_not_count(#[case] change: fn(&mut ApprovalSpec)) {
    let mut play = manual();
    vote(&mut play, Vote::Approve, change);
    play.settle();
    assert_eq!(play.state("staging"), EnvironmentState::Unapproved);
}

#[test]
fn it_does_not_count_while_nobody_verifies_who_approves() {
    let mut play = manual();
    play.votes.verified = false;
    vote(&mut play, Vote::Approve, |_| {});
    play.settle();
    assert_eq!(play.state("staging"), EnvironmentState::Unapproved);
    assert!(play.message("staging").contains("admission policies"));
}

#[test]
fn a_rejection_holds_until_it_is_taken_back() {
    let mut play = manual();
    vote(&mut play, Vote::Approve, |_| {});
    vote(&mut play, Vote::Reject, |spec| {
        spec.by = "bob@example.com".to_owned();
    });
    play.settle();
    assert_eq!(play.state("staging"), EnvironmentState::Rejected);
    assert!(play.message("staging").contains("bob@example.com"));
    play.votes.all.pop();
    play.settle();
    assert_eq!(play.environment("staging").admitted.len(), 1);
}

#[test]
fn a_closed_gate_does_not_use_an_approval_up() {
    let mut play = manual();
    play.gate("staging", false);
    vote(&mut play, Vote::Approve, |_| {});
    play.settle();
    assert_eq!(play.state("staging"), EnvironmentState::GatesClosed);
    play.gate("staging", true);
    play.settle();
    assert_eq!(play.environment("staging").admitted.len(), 1);
}

/// What was approved is what is done: an edit in between asks again.
#[test]
fn an_approval_that_names_its_promotion_does_not_count_for_another_way() {
    let mut play = Play::new(&super::by_pull_request(&json!({})));
    play.object.spec.promotion.as_mut().unwrap().manual = true;
    play.gate("staging", false);
    play.runs("dev", "6.1.6");
    play.settle();
    let key = play.record("staging").key.clone();
    vote(&mut play, Vote::Approve, |spec| {
        named(spec).key = Some(key.clone());
    });
    play.settle();
    assert_eq!(play.state("staging"), EnvironmentState::GatesClosed);
    let promotion = play.object.spec.promotion.as_mut().unwrap();
    let forge = promotion.strategy.pull_request.as_mut().unwrap();
    forge.url = "https://git.example.com/other.git".to_owned();
    play.settle();
    assert_ne!(play.record("staging").key, key);
    assert_eq!(play.state("staging"), EnvironmentState::Unapproved);
    // A rejection holds for the run.
    vote(&mut play, Vote::Reject, |spec| {
        named(spec).key = Some(key.clone());
    });
    play.settle();
    assert_eq!(play.state("staging"), EnvironmentState::Rejected);
}

/// What a request that is signed now makes of it.
fn by_webhook(play: &Play, revision: &str, at: Timestamp) -> Result<Approval, String> {
    let signed = Signed {
        environment: "staging",
        revision,
        at,
        reason: None,
    };
    approve_by_webhook(&play.object, signed, "controller").map_err(|(why, _)| why)
}

#[test]
fn a_signed_request_approves_the_promotion_that_waits_and_no_other_run() {
    let mut play = manual();
    let made = by_webhook(&play, "6.1.6", play.now).unwrap();
    let name = name_by_webhook(&play.object, "staging", "6.1.6").unwrap();
    assert_eq!(made.metadata.name.as_deref(), Some(name.as_str()));
    assert_eq!(
        name,
        format!("podinfo-{}-webhook", play.record("staging").key)
    );
    assert_eq!(made.spec.by, "controller");
    let owners = made.metadata.owner_references.as_ref().unwrap();
    assert_eq!((owners.len(), owners[0].uid.as_str()), (1, "u"));
    let other = by_webhook(&play, "6.1.7", play.now).unwrap_err();
    assert!(
        other.contains("waits for the approval of 6.1.6, and not of 6.1.7"),
        "{other}"
    );
    let signed_at = play.now;
    play.votes.all.push(Arc::new(made));
    play.pass(1);
    play.settle();
    assert_eq!(play.state("staging"), EnvironmentState::Promoted);
    let late = by_webhook(&play, "6.1.6", play.now).unwrap_err();
    assert!(late.starts_with("no approval is waited for: "), "{late}");
    // The same promotion would make the same Approval.
    assert_eq!(
        name_by_webhook(&play.object, "staging", "6.1.6"),
        Some(name.clone())
    );

    let annotations = BTreeMap::from([("sluice.dev/retry".to_owned(), "1".to_owned())]);
    play.object.metadata.annotations = Some(annotations);
    play.pass(1);
    play.settle();
    assert_eq!(play.state("staging"), EnvironmentState::Unapproved);
    assert_ne!(
        name_by_webhook(&play.object, "staging", "6.1.6"),
        Some(name)
    );
    let replayed = by_webhook(&play, "6.1.6", signed_at).unwrap_err();
    assert!(
        replayed.contains("before staging began to wait"),
        "{replayed}"
    );
    assert!(by_webhook(&play, "6.1.6", play.now).is_ok());
}

/// A person deletes what a request has approved: the same request, sent again, does not approve it again.
#[test]
fn a_deleted_approval_is_not_made_again_by_the_request_that_made_it() {
    let mut promotion = super::by_pull_request(&json!({"merge": "auto"}));
    promotion["manual"] = true.into();
    let mut play = Play::new(&promotion);
    play.runs("dev", "6.1.6");
    play.settle();
    let signed_at = play.now;
    let made = by_webhook(&play, "6.1.6", signed_at).unwrap();
    play.votes.all.push(Arc::new(made));
    play.pass(1);
    play.settle();
    play.forge("staging", PullRequestState::Open);
    play.settle();
    assert!(play.record("staging").order.is_some());
    play.pass(10);
    play.votes.all.clear();
    play.settle();
    assert_eq!(play.state("staging"), EnvironmentState::Unapproved);
    // It waits since the approval is gone, however often it is looked at.
    let gone_at = play.now;
    play.pass(10);
    assert!(!play.look().changed);
    let replayed = by_webhook(&play, "6.1.6", signed_at).unwrap_err();
    assert!(
        replayed.contains("before staging began to wait"),
        "{replayed}"
    );
    assert!(by_webhook(&play, "6.1.6", gone_at).is_ok());
}

/// Somebody writes another way of promotion into the spec while it waits.
#[test]
fn a_request_that_was_signed_for_one_way_does_not_approve_another() {
    let mut promotion = super::by_pull_request(&json!({}));
    promotion["manual"] = true.into();
    let mut play = Play::new(&promotion);
    play.runs("dev", "6.1.6");
    play.settle();
    let signed_at = play.now;
    assert!(by_webhook(&play, "6.1.6", signed_at).is_ok());
    play.pass(1);
    play.spec(|spec| {
        spec["promotion"]["strategy"]["pull-request"]["baseBranch"] = "other".into();
    });
    play.settle();
    let sent_again = by_webhook(&play, "6.1.6", signed_at).unwrap_err();
    assert!(
        sent_again.contains("before staging began to wait"),
        "{sent_again}"
    );
    assert!(by_webhook(&play, "6.1.6", play.now).is_ok());
}

#[test]
fn a_signed_request_does_not_outvote_a_rejection() {
    let mut play = manual();
    vote(&mut play, Vote::Reject, |_| {});
    play.settle();
    let refused = by_webhook(&play, "6.1.6", play.now).unwrap_err();
    assert!(
        refused.contains("is rejected by alice@example.com"),
        "{refused}"
    );
}

#[test]
fn a_signed_request_for_what_nobody_promotes_approves_nothing() {
    let play = Play::new(&json!({"manual": true, "strategy": {"admission": {}}}));
    let refused = by_webhook(&play, "6.1.0", play.now).unwrap_err();
    assert_eq!(refused, "nothing is being promoted to staging");
    assert_eq!(name_by_webhook(&play.object, "staging", "6.1.0"), None);
}

#[test]
fn a_retry_needs_another_approval() {
    let mut play = manual();
    vote(&mut play, Vote::Approve, |_| {});
    play.settle();
    let annotations = BTreeMap::from([("sluice.dev/retry".to_owned(), "1".to_owned())]);
    play.object.metadata.annotations = Some(annotations);
    play.pass(1);
    play.settle();
    assert_eq!(play.state("staging"), EnvironmentState::Unapproved);
    vote(&mut play, Vote::Approve, |_| {});
    play.settle();
    assert_eq!(play.state("staging"), EnvironmentState::Promoted);
}

/// Its approval is gone, or there was never one.
#[test]
fn an_open_pull_request_is_merged_only_while_it_is_approved() {
    let mut promotion = super::by_pull_request(&json!({"merge": "auto"}));
    promotion["manual"] = true.into();
    let mut play = Play::new(&promotion);
    play.runs("dev", "6.1.6");
    play.settle();
    vote(&mut play, Vote::Approve, |_| {});
    play.settle();
    play.forge("staging", PullRequestState::Open);
    play.settle();
    assert!(play.record("staging").order.is_some());
    for verified in [false, true] {
        play.votes.verified = verified;
        if verified {
            play.votes.all.clear();
        }
        play.settle();
        let record = play.record("staging");
        assert_eq!(record.gate, Some(sluice_crds::pipeline::MergeGate::Pending));
        assert_eq!(record.order, None);
        assert_eq!(play.state("staging"), EnvironmentState::Unapproved);
    }
    let waits = play.environment("staging").waiting_approval.clone();
    assert_eq!(waits.unwrap().run, play.record("staging").run);
}

/// Also where nobody has to approve.
#[test]
fn a_rejection_of_an_open_pull_request_forbids_the_order() {
    let mut play = Play::new(&super::by_pull_request(&json!({"merge": "auto"})));
    play.runs("dev", "6.1.6");
    play.settle();
    play.forge("staging", PullRequestState::Open);
    play.look();
    assert!(play.record("staging").order.is_some());
    vote(&mut play, Vote::Reject, |_| {});
    play.look();
    assert_eq!(play.record("staging").order, None);
    assert_eq!(play.state("staging"), EnvironmentState::Rejected);
}

#[test]
fn a_rejection_stops_what_could_not_be_opened_yet() {
    let mut play = Play::new(&super::by_pull_request(&json!({})));
    play.runs("dev", "6.1.6");
    play.settle();
    play.forge("staging", PullRequestState::Pending).attempts = Some(1);
    play.settle();
    vote(&mut play, Vote::Reject, |_| {});
    play.settle();
    assert_eq!(play.state("staging"), EnvironmentState::Rejected);
    assert!(play.pull_requests[0].spec.suspend);
}
