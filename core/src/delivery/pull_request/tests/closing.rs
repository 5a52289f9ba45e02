//! One that is open and is to be closed: not before it is known that it is not merged.

use super::followed::{admitted, look, opened, ordered, says_of, scene, seen};
use super::*;

#[test]
fn one_that_is_to_be_closed_is_closed_and_its_branch_stays() {
    for (mut scene, number) in [(scene(), None), (opened(), Some(7))] {
        scene.object.spec.close = Some("another environment".to_owned());
        let closing = Task::Close {
            number,
            commit: None,
            reason: "another environment".to_owned(),
        };
        if number.is_some() {
            // A person may have merged it just now, so that the target branch has it already.
            for seconds in [5, 10] {
                assert_eq!((scene.task(), scene.wake()), (None, Some(after(seconds))));
                scene.now = after(seconds);
                if seconds == 5 {
                    scene.over(look(true), seen(COMMIT));
                }
            }
        }
        assert_eq!(scene.task(), Some(closing.clone()));
        let closed = Outcome::Seen(pull(), Fate::Closed);
        assert_eq!(scene.over(closing, closed), None);
        assert_eq!(scene.said(), json!(["Ready True Closed"]));
    }
}

/// Its success stands at the forge as long as it is open.
#[test]
fn a_success_is_taken_back_while_it_is_not_closed_yet() {
    let mut scene = admitted();
    scene.object.spec.close = Some("another environment".to_owned());
    scene.owner = says_of(MergeGate::Pending, COMMIT);
    let back = scene.task().unwrap();
    assert!(back.withdraws(), "{back:?}");
    scene.over(back.clone(), Outcome::Failed(failure(Word::Unanswered)));
    scene.now = after(9);
    assert_ne!(scene.task(), Some(back));
    scene.now = after(10);
    assert!(matches!(scene.task(), Some(Task::Close { .. })));
}

/// A new spec is tried at once, whatever has failed before; it is looked at a while first.
#[test]
fn to_close_one_does_not_wait_for_what_has_failed_before() {
    let mut scene = opened();
    let joining = Task::Join(Joining {
        head: COMMIT.to_owned(),
        active: OTHER.to_owned(),
        tree: COMMIT.to_owned(),
        at: noon(),
    });
    scene.object.status.as_mut().unwrap().attempts = Some(8);
    scene.over(joining, Outcome::Failed(failure(Word::NoRight)));
    scene.now = after(5);
    scene.object.spec.close = Some("another environment".to_owned());
    scene.object.metadata.generation = Some(2);
    for seconds in [5, 10] {
        scene.now = after(seconds);
        assert_eq!(scene.task(), Some(look(true)));
        scene.over(look(true), seen(COMMIT));
    }
    scene.now = after(15);
    assert!(matches!(scene.task(), Some(Task::Close { .. })));
}

/// One that cannot be looked at is closed no sooner, and looked at no more often.
#[test]
fn a_look_that_fails_is_tried_in_its_own_time_before_it_is_closed() {
    let mut scene = opened();
    scene.now = after(60);
    assert_eq!(scene.task(), Some(look(false)));
    let failed = Outcome::Failed(failure(Word::Unauthorized));
    assert_eq!(scene.over(look(false), failed), None);
    scene.object.spec.close = Some("another environment".to_owned());
    scene.object.metadata.generation = Some(2);
    assert_eq!(scene.task(), Some(look(true)));
    let failed = Outcome::Failed(failure(Word::Unauthorized));
    assert_eq!(scene.over(look(true), failed), None);
    for (second, wake) in [(60, 70), (70, 80)] {
        scene.now = after(second);
        assert_eq!((scene.task(), scene.wake()), (None, Some(after(wake))));
    }
    scene.now = after(80);
    assert!(matches!(scene.task(), Some(Task::Close { .. })));
}

/// What a clock has said that was an hour ahead.
#[test]
fn an_order_that_ends_much_later_keeps_nothing_open() {
    let mut scene = opened();
    scene.object.spec.close = Some("another environment".to_owned());
    let status = scene.object.status.as_mut().unwrap();
    status.merge_sent = Some(sluice_crds::pull_request::MergeSent {
        head_sha: COMMIT.to_owned(),
        not_after: time(after(3_600)),
    });
    scene.recent.close_asked_at = Some(after(3_600));
    scene.task();
    scene.now = after(10);
    assert!(matches!(scene.task(), Some(Task::Close { .. })));
}

/// The target branch has its commit, so that nothing is proposed any more, and the forge has not marked it as
/// merged yet.
#[test]
fn one_whose_merge_may_be_under_way_is_not_closed() {
    let begun = || {
        let mut scene = admitted();
        scene.owner = ordered(COMMIT);
        let merge = scene.task().unwrap();
        assert!(matches!(merge, Task::Merge { .. }), "{merge:?}");
        scene.owner = says_of(MergeGate::Success, COMMIT);
        scene.over(merge, Outcome::Failed(failure(Word::Unanswered)));
        scene.object.spec.close = Some("it has what was proposed".to_owned());
        // Another process has sent it.
        scene.recent = Recent {
            told: scene.recent.told,
            ..Recent::default()
        };
        scene
    };
    let mut scene = begun();
    for seconds in (10..120).step_by(5) {
        scene.now = after(seconds);
        assert_eq!(scene.task(), Some(look(true)), "{seconds}");
        assert_eq!(scene.over(look(true), seen(COMMIT)), None, "{seconds}");
    }
    scene.now = after(120);
    assert!(matches!(scene.task(), Some(Task::Close { .. })));

    let mut scene = begun();
    scene.now = after(30);
    assert_eq!(scene.task(), Some(look(true)));
    scene.over(look(true), merged());
    assert_eq!(scene.status().state, Some(PullRequestState::Merged));
    scene.now = after(1_000);
    assert_eq!((scene.task(), scene.wake()), (None, None));
}
