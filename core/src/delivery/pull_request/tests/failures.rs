//! What fails is tried again later, and told.

use super::*;

/// Somebody changes its base while the commit status cannot be set: that is tried no sooner.
#[test]
fn another_base_shortens_no_wait() {
    let mut scene = Scene::opened();
    let status = status_of(MergeGate::Pending);
    scene.over(status, Outcome::Failed(failure(Word::NoRight)));
    let before = scene.status();
    assert_eq!(before.attempts, Some(1));
    scene.over(look_at(), Outcome::Seen(pull(), Fate::OpenElsewhere));
    let after = scene.status();
    assert_eq!(after.attempts, before.attempts);
    assert_eq!(after.next_attempt_at, before.next_attempt_at);
    assert_eq!(after.outcome, before.outcome);
    // Nothing is merged meanwhile.
    assert_eq!(after.head_sha, None);
}

#[test]
fn failures_wait_longer_each_time_and_are_told() {
    let mut scene = Scene::new();
    scene.task();
    for (attempt, seconds) in [(1, 10), (2, 20), (3, 40)] {
        let failed = Outcome::Failed(failure(Word::Unanswered));
        assert_eq!(scene.over(Task::Commit, failed), None);
        let status = scene.status();
        assert_eq!(status.attempts, Some(attempt));
        let next = scene.now + SignedDuration::from_secs(seconds);
        assert_eq!(status.next_attempt_at, Some(time(next)));
        assert_eq!(scene.wake(), Some(next));
        assert_eq!(
            scene.said(),
            json!(["Ready False Unanswered", "Reconciling True Unanswered"])
        );
        scene.now = next;
        assert_eq!(scene.task(), Some(Task::Commit));
    }
    let limited = Failure {
        not_before: Some(scene.now + SignedDuration::from_hours(1)),
        ..failure(Word::RateLimited)
    };
    scene.over(Task::Commit, Outcome::Failed(limited));
    assert_eq!(
        scene.wake(),
        Some(scene.now + SignedDuration::from_hours(1))
    );
    scene.now += SignedDuration::from_hours(1);
    assert_eq!(scene.task(), Some(Task::Commit));
    scene.over(Task::Commit, Outcome::Committed(COMMIT.to_owned()));
    let status = scene.status();
    let nothing = (None, None, None, None);
    let left = (
        status.attempts,
        status.next_attempt_at,
        status.outcome,
        status.message,
    );
    assert_eq!(left, nothing);
}

#[test]
fn what_a_person_has_to_change_is_stalled_until_it_is_changed() {
    let mut scene = Scene::new();
    scene.task();
    scene.over(
        Task::Commit,
        Outcome::Failed(failure(Word::FileNotEditable)),
    );
    let stalled = json!([
        "Ready False FileNotEditable",
        "Stalled True FileNotEditable"
    ]);
    assert_eq!(scene.said(), stalled);
    // It stays stalled while it waits.
    assert_eq!(scene.task(), None);
    assert_eq!(scene.said(), stalled);
    scene.object.spec.close = Some("superseded".to_owned());
    scene.object.metadata.generation = Some(2);
    assert!(matches!(scene.task(), Some(Task::Close { .. })));

    // A try whose outcome is not known may still be under way there: it waits.
    let mut scene = Scene::new();
    scene.task();
    scene.over(opening(), Outcome::Failed(failure(Word::Unanswered)));
    scene.object.spec.close = Some("superseded".to_owned());
    scene.object.metadata.generation = Some(2);
    assert_eq!(scene.task(), None);
}

#[test]
fn what_lasts_is_stalled_and_nothing_else_is() {
    for (word, more) in [(Word::Unauthorized, STALLED), (Word::Changed, RECONCILING)] {
        let mut scene = Scene::new();
        scene.over(Task::Commit, Outcome::Failed(failure(word)));
        let types: Vec<_> = scene
            .status()
            .conditions
            .into_iter()
            .map(|it| it.type_)
            .collect();
        assert_eq!(types, [READY, more]);
    }
}
