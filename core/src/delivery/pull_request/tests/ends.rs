//! How one ends: closed, merged by others, or never opened.

use super::*;

#[rstest]
#[case::no_owner(None, false)]
#[case::suspended(says(MergeGate::Success), true)]
fn nothing_is_committed_or_opened_while_it_is_not_wanted(
    #[case] owner: Option<Says>,
    #[case] suspend: bool,
) {
    for commit in [None, Some(COMMIT.to_owned())] {
        let mut scene = Scene::new();
        (scene.owner, scene.object.spec.suspend) = (owner.clone(), suspend);
        scene.object.status = Some(PullRequestStatus {
            commit_sha: commit,
            ..PullRequestStatus::default()
        });
        assert_eq!((scene.task(), scene.wake()), (None, None));
    }
    // One that is open stays, and is followed.
    let mut scene = Scene::opened();
    scene.object.spec.suspend = true;
    scene.now = after(61);
    assert_eq!(scene.task(), Some(look_at()));
}

#[test]
fn one_that_is_to_be_closed_is_never_opened() {
    let mut scene = Scene::new();
    scene.object.spec.close = Some("superseded".to_owned());
    scene.object.spec.suspend = true;
    let closing = Task::Close {
        number: None,
        commit: None,
        reason: "superseded".to_owned(),
    };
    assert_eq!(scene.task(), Some(closing.clone()));
    let deletion = Task::DeleteBranch { commit: None };
    assert_eq!(scene.over(closing, Outcome::NoPull), Some(deletion));
    assert_eq!(scene.status().state, Some(PullRequestState::Closed));
    assert_eq!(scene.said(), json!(["Ready True Closed"]));
}

#[rstest]
#[case::closed(
    Outcome::Seen(pull(), Fate::Closed),
    PullRequestState::Closed,
    "Ready True Closed"
)]
#[case::merged(merged(), PullRequestState::Merged, "Ready True Merged")]
#[case::gone(Outcome::NoPull, PullRequestState::Missing, "Ready False Missing")]
fn an_open_one_is_closed_unless_it_is_merged(
    #[case] outcome: Outcome,
    #[case] state: PullRequestState,
    #[case] said: &str,
) {
    let mut scene = Scene::opened();
    scene.object.spec.close = Some("superseded".to_owned());
    let closing = Task::Close {
        number: Some(7),
        commit: Some(COMMIT.to_owned()),
        reason: "superseded".to_owned(),
    };
    // Before it is merged, and before anything else.
    scene.owner = Some(Says {
        order: Some(order()),
        ..says(MergeGate::Success).unwrap()
    });
    assert_eq!(scene.task(), Some(closing.clone()));
    scene.over(closing, outcome);
    assert_eq!(scene.status().state, Some(state));
    assert_eq!(scene.said()[0], json!(said));
}

#[rstest]
#[case::closed(
    Outcome::Seen(pull(), Fate::Closed),
    PullRequestState::Closed,
    "ClosedByOthers"
)]
#[case::vanished(Outcome::NoPull, PullRequestState::Missing, "Missing")]
fn one_that_others_have_ended_stays_so(
    #[case] outcome: Outcome,
    #[case] state: PullRequestState,
    #[case] reason: &str,
) {
    let mut scene = Scene::opened();
    scene.over(look_at(), outcome);
    assert_eq!(scene.status().state, Some(state));
    let said = json!([
        format!("Ready False {reason}"),
        format!("Stalled True {reason}")
    ]);
    assert_eq!(scene.said(), said);
    scene.over(Task::DeleteBranch { commit: None }, Outcome::Done);
    scene.now = after(1_000);
    assert_eq!(scene.task(), None);
}

#[test]
fn a_change_that_is_there_already_is_the_end() {
    let mut scene = Scene::new();
    scene.task();
    let next = scene.over(Task::Commit, Outcome::InBase(None));
    assert_eq!(next, Some(Task::DeleteBranch { commit: None }));
    assert_eq!(scene.status().state, Some(PullRequestState::AlreadyInBase));
    assert_eq!(scene.status().id, None);
}

#[test]
fn what_is_found_in_place_of_a_commit_counts() {
    let mut scene = Scene::new();
    scene.task();
    scene.over(Task::Commit, merged());
    assert_eq!(scene.status().state, Some(PullRequestState::Merged));
    // Its branch was gone, and another commit was made: that one is opened, and no other.
    let mut scene = Scene::new();
    scene.over(Task::Commit, Outcome::Committed(OTHER.to_owned()));
    let next = scene.over(opening(), Outcome::Committed(COMMIT.to_owned()));
    assert_eq!(next, Some(opening()));
}

#[rstest]
#[case::open(Fate::OpenElsewhere, PullRequestState::Open)]
#[case::merged(Fate::MergedElsewhere, PullRequestState::Closed)]
#[case::of_somebody_else(Fate::Foreign, PullRequestState::Closed)]
fn what_others_have_made_of_it_is_told_and_never_merged(
    #[case] fate: Fate,
    #[case] state: PullRequestState,
) {
    let mut scene = Scene::opened();
    scene.owner = says(MergeGate::Pending).map(|owner| Says {
        order: Some(order()),
        ..owner
    });
    let next = scene.over(look_at(), Outcome::Seen(pull(), fate));
    assert!(!matches!(next, Some(Task::Merge { .. })), "{next:?}");
    let status = scene.status();
    assert_eq!(
        (status.state, status.outcome.as_deref()),
        (Some(state), Some("BranchTouched"))
    );
    assert_eq!(status.merged_sha, None);
    if state == PullRequestState::Closed {
        let said = json!(["Ready False BranchTouched", "Stalled True BranchTouched"]);
        assert_eq!(scene.said(), said);
    }
}

#[test]
fn somebody_who_pushes_to_the_branch_is_told_of() {
    let mut scene = Scene::opened();
    let touched = Outcome::Seen(pull(), Fate::Open(OTHER.to_owned()));
    scene.over(look_at(), touched);
    assert_eq!(scene.status().outcome.as_deref(), Some("BranchTouched"));
    assert_eq!(scene.status().head_sha.as_deref(), Some(OTHER));
    scene.over(status_of(MergeGate::Pending), Outcome::Done);
    assert_eq!(scene.status().outcome.as_deref(), Some("BranchTouched"));
    let fate = Fate::Merged {
        commit: None,
        onto: None,
        by: None,
        head: None,
        is_touched: true,
    };
    scene.over(look_at(), Outcome::Seen(pull(), fate));
    assert_eq!(scene.status().state, Some(PullRequestState::Merged));
    // Also once its branch is gone, whatever that takes.
    let deletion = || Task::DeleteBranch { commit: None };
    scene.over(deletion(), Outcome::Failed(failure(Word::Unanswered)));
    assert_eq!(scene.status().attempts, Some(1));
    assert_eq!(scene.status().outcome.as_deref(), Some("BranchTouched"));
    scene.over(deletion(), Outcome::Done);
    assert_eq!(scene.status().attempts, None);
    assert_eq!(scene.status().outcome.as_deref(), Some("BranchTouched"));
}

/// A forge that does not let the commit status be set may let it be closed.
#[test]
fn to_close_one_waits_for_no_commit_status() {
    for gate in [MergeGate::Pending, MergeGate::Success] {
        let mut scene = Scene::opened();
        scene.object.status.as_mut().unwrap().attempts = Some(7);
        let status = status_of(gate);
        scene.over(status, Outcome::Failed(failure(Word::Unanswered)));
        assert_eq!(scene.status().attempts, Some(8));
        scene.object.spec.close = Some("superseded".to_owned());
        let closing = scene.task().unwrap();
        assert!(matches!(closing, Task::Close { .. }), "{closing:?}");
        // Its own failures are tried again in their own time.
        let failed = Outcome::Failed(failure(Word::Unanswered));
        assert_eq!(scene.over(closing, failed), None);
        assert_eq!(scene.status().attempts, Some(1));
        scene.now = after(9);
        assert_eq!(scene.task(), None);
        scene.now = after(10);
        assert!(matches!(scene.task(), Some(Task::Close { .. })));
    }
    // What the forge asks to wait for counts for everything.
    let mut scene = Scene::opened();
    let limited = Failure {
        not_before: Some(after(300)),
        ..failure(Word::RateLimited)
    };
    scene.over(status_of(MergeGate::Pending), Outcome::Failed(limited));
    scene.object.spec.close = Some("superseded".to_owned());
    assert_eq!(scene.task(), None);
    scene.now = after(300);
    assert!(matches!(scene.task(), Some(Task::Close { .. })));
}

#[test]
fn a_branch_that_cannot_be_deleted_is_left_in_the_end() {
    let mut scene = Scene::opened();
    let mut next = scene.over(look_at(), merged());
    let mut tries = 0;
    while let Some(task) = next {
        tries += 1;
        scene.over(task, Outcome::Failed(failure(Word::NoRight)));
        scene.now += SignedDuration::from_mins(16);
        next = scene.task();
    }
    assert_eq!(tries, 10);
    // It is merged all the same.
    assert_eq!(scene.said(), json!(["Ready True Merged"]));
}

#[test]
fn one_that_is_being_deleted_is_left_alone() {
    let mut scene = Scene::opened();
    scene.object.metadata.deletion_timestamp = Some(time(noon()));
    scene.now = after(1_000);
    let looked = scene.looked(Errand::None);
    assert_eq!(
        (looked.report.changed, looked.report.acts),
        (false, Vec::new())
    );
}
