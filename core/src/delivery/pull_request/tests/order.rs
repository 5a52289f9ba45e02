//! What comes before what, and what hides nothing else.

use super::*;

/// One that is open, and shows that its gates admit the merge.
fn admitted() -> Scene {
    let mut scene = Scene::opened();
    scene.object.status.as_mut().unwrap().commit_status = Some(MergeGate::Success);
    scene.recent.told = told(MergeGate::Success);
    scene.owner = says(MergeGate::Success);
    assert_eq!(scene.task(), None);
    scene
}

#[test]
fn a_success_is_taken_back_before_anything_else() {
    let mut scene = admitted();
    scene.object.spec.close = Some("superseded".to_owned());
    scene.owner = says(MergeGate::Pending);
    // Also while something else waits because it has failed.
    scene.over(look_at(), Outcome::Failed(failure(Word::RateLimited)));
    let shown = status_of(MergeGate::Pending);
    assert_eq!(scene.task(), Some(shown.clone()));
    // It may say so until it is known that it does not.
    assert_eq!(scene.status().commit_status, Some(MergeGate::Success));
    // Where that is not possible, to close it is as good.
    scene.over(shown.clone(), Outcome::Failed(failure(Word::NoRight)));
    scene.now = after(3_600);
    assert!(matches!(scene.task(), Some(Task::Close { .. })));
    scene.over(shown, Outcome::Done);
    assert_eq!(scene.status().commit_status, Some(MergeGate::Pending));
}

#[test]
fn a_success_that_cannot_be_taken_back_is_tried_ever_later_and_hides_nothing() {
    let mut scene = admitted();
    scene.owner = says(MergeGate::Pending);
    let shown = status_of(MergeGate::Pending);
    for seconds in [10, 20, 40] {
        assert_eq!(scene.task(), Some(shown.clone()));
        let refused = Outcome::Failed(failure(Word::NoRight));
        scene.recent.seen_at = Some(scene.now);
        assert_eq!(scene.over(shown.clone(), refused), None);
        let again = scene.now + SignedDuration::from_secs(seconds);
        assert_eq!(scene.wake(), Some(again));
        scene.now = again;
    }
    scene.over(shown.clone(), Outcome::Failed(failure(Word::NoRight)));
    assert_eq!(scene.status().attempts, Some(4));
    // It is looked at meanwhile, and what has failed still waits and is told.
    scene.now += SignedDuration::from_secs(60);
    assert_eq!(scene.task(), Some(look_at()));
    assert_eq!(scene.over(look_at(), open()), None);
    assert_eq!(scene.status().attempts, Some(4));
    assert_eq!(
        scene.said(),
        json!(["Ready False NoRight", "Stalled True NoRight"])
    );
    scene.now += SignedDuration::from_secs(20);
    assert_eq!(scene.task(), Some(shown));
    // A merge by people is seen.
    let next = scene.over(look_at(), merged());
    assert!(matches!(next, Some(Task::DeleteBranch { .. })), "{next:?}");
    assert_eq!(scene.status().attempts, None);
    assert_eq!(scene.said(), json!(["Ready True Merged"]));
}

#[test]
fn a_look_that_fails_while_something_else_waits_changes_nothing() {
    let mut scene = admitted();
    scene.over(merge(), Outcome::Failed(failure(Word::NoRight)));
    scene.object.status.as_mut().unwrap().next_attempt_at = Some(time(after(900)));
    let before = scene.status();
    scene.now = after(60);
    assert_eq!(scene.task(), Some(look_at()));
    let limited = Failure {
        not_before: Some(after(300)),
        ..failure(Word::RateLimited)
    };
    assert_eq!(scene.over(look_at(), Outcome::Failed(limited)), None);
    assert_eq!(scene.status(), before);
    assert_eq!(scene.wake(), Some(after(300)));
    scene.now = after(300);
    scene.recent.is_asked_for = true;
    assert!(matches!(scene.task(), Some(Task::Look { alone: true, .. })));
    // If nothing else has failed, a look that has failed is what is told, and ends with the next one.
    let mut scene = Scene::opened();
    scene.over(look_at(), Outcome::Failed(failure(Word::Unanswered)));
    assert_eq!(scene.status().attempts, Some(1));
    assert_eq!(scene.task(), None);
    scene.over(look_at(), open());
    assert_eq!(scene.status().attempts, None);
}

#[test]
fn a_success_is_taken_back_when_the_owner_is_gone() {
    let mut scene = admitted();
    (scene.owner, scene.is_owner_current) = (None, false);
    let shown = scene.task().unwrap();
    assert!(shown.withdraws(), "{shown:?}");
    scene.over(shown, Outcome::Done);
    assert_eq!(scene.status().commit_status, Some(MergeGate::Pending));
}

/// What waits for its turn would keep an untrue success on show until then.
#[test]
fn a_success_that_has_to_be_taken_back_ends_what_has_sent_nothing() {
    let edit = Task::Edit {
        number: 7,
        title: "Promote".to_owned(),
        description: String::new(),
    };
    let join = Task::Join(Joining {
        head: COMMIT.to_owned(),
        active: COMMIT.to_owned(),
        tree: COMMIT.to_owned(),
        at: after(0),
    });
    let success = status_of(MergeGate::Success);
    for task in [look_at(), edit, join, success, merge()] {
        let mut scene = admitted();
        assert_eq!(scene.look(under_way(task.clone(), false)), None);
        scene.owner = says(MergeGate::Pending);
        // What was sent goes on to its end: what it has done would not be known.
        assert_eq!(scene.look(under_way(task.clone(), true)), None);
        let shown = status_of(MergeGate::Pending);
        assert_eq!(scene.look(under_way(task, false)), Some(shown.clone()));
        assert_eq!(scene.look(under_way(shown, false)), None);
    }
}

#[test]
fn a_process_that_begins_to_lead_admits_nothing_before_its_owner_was_looked_at() {
    let pending = |why: &str| {
        Task::SetStatus(Telling {
            why: why.to_owned(),
            ..telling(MergeGate::Pending)
        })
    };
    let begins = |gate| {
        let mut scene = Scene::opened();
        scene.object.status.as_mut().unwrap().commit_status = Some(gate);
        scene.owner = Some(Says {
            order: Some(order()),
            ..says(gate).unwrap()
        });
        scene.recent = Recent::default();
        scene.is_owner_current = false;
        scene
    };
    let mut scene = begins(MergeGate::Pending);
    assert_eq!(scene.task(), Some(pending("why")));
    assert_eq!(scene.over(pending("why"), Outcome::Done), Some(look_at()));
    scene.over(look_at(), open());
    assert_eq!(scene.task(), None);

    // What the leader before has admitted counts no more, its order neither.
    let mut scene = begins(MergeGate::Success);
    let shown = pending("the gates are asked");
    assert_eq!(scene.task(), Some(shown.clone()));
    assert_eq!(scene.over(shown, Outcome::Done), Some(look_at()));
    scene.over(look_at(), open());
    assert_eq!(scene.task(), None);
    scene.is_owner_current = true;
    let shown = status_of(MergeGate::Success);
    assert_eq!(scene.task(), Some(shown.clone()));
    assert_eq!(scene.over(shown, Outcome::Done), Some(merge()));
    // Also if its owner was looked at before: the forge is told first.
    let mut scene = begins(MergeGate::Success);
    scene.is_owner_current = true;
    assert_eq!(scene.task(), Some(pending("the gates are asked")));
}

#[test]
fn what_holds_a_merge_is_not_told_without_an_order() {
    let mut scene = admitted();
    let ordered = Says {
        order: Some(order()),
        ..says(MergeGate::Success).unwrap()
    };
    scene.owner = Some(ordered);
    scene.over(merge(), Outcome::Held(failure(Word::Conflict)));
    assert_eq!(scene.status().outcome.as_deref(), Some("Conflict"));
    scene.owner = says(MergeGate::Success);
    assert_eq!(scene.task(), None);
    assert_eq!(scene.status().outcome, None);
}

#[test]
fn a_merge_that_the_forge_does_not_show_yet_is_not_sent_again_at_once() {
    let mut scene = admitted();
    scene.owner = Some(Says {
        order: Some(order()),
        ..says(MergeGate::Success).unwrap()
    });
    assert_eq!(scene.over(merge(), open()), None);
    assert_eq!(scene.wake(), Some(after(5)));
    scene.now = after(5);
    assert_eq!(scene.task(), Some(merge()));
}

/// A forge that keeps what is left of its rate limit for merges holds none back, and nothing has failed.
#[test]
fn while_only_merges_pass_nothing_else_is_tried_and_merges_are() {
    let until = Failure {
        not_before: Some(after(600)),
        ..failure(Word::ForgeThrottled)
    };
    let throttled = || Outcome::Failed(until.clone());
    let mut scene = admitted();
    scene.object.status.as_mut().unwrap().commit_status = Some(MergeGate::Pending);
    (scene.recent.told, scene.owner) = (told(MergeGate::Pending), says(MergeGate::Pending));
    assert_eq!(scene.over(look_at(), throttled()), None);
    let status = scene.status();
    assert_eq!(status.attempts, None);
    assert_eq!(status.outcome.as_deref(), Some("ForgeThrottled"));
    assert_eq!(status.next_attempt_at, Some(time(after(600))));
    assert_eq!(scene.said(), json!(["Ready True Open"]));
    // A look that is due waits, and what lets it be merged does not.
    scene.now = after(120);
    assert_eq!(scene.task(), None);
    assert_eq!(scene.wake(), Some(after(600)));
    scene.owner = Some(Says {
        order: Some(Order {
            not_after: time(after(180)),
            ..order()
        }),
        ..says(MergeGate::Success).unwrap()
    });
    let shown = status_of(MergeGate::Success);
    assert_eq!(scene.task(), Some(shown.clone()));
    let next = scene.over(shown, Outcome::Done);
    assert!(matches!(next, Some(Task::Merge { .. })), "{next:?}");
    // Afterwards it is looked at again, and nothing more is said of it.
    scene.owner = says(MergeGate::Success);
    scene.now = after(600);
    assert_eq!(scene.task(), Some(look_at()));
    scene.over(look_at(), open());
    assert_eq!(scene.status().outcome, None);
    assert_eq!(scene.status().next_attempt_at, None);
}

#[test]
fn one_that_is_to_be_opened_says_until_when_it_waits() {
    let mut scene = Scene::new();
    let until = Failure {
        not_before: Some(after(600)),
        ..failure(Word::ForgeThrottled)
    };
    assert_eq!(scene.task(), Some(Task::Commit));
    assert_eq!(scene.over(Task::Commit, Outcome::Failed(until)), None);
    assert_eq!(
        scene.said(),
        json!([
            "Ready False ForgeThrottled",
            "Reconciling True ForgeThrottled"
        ])
    );
    assert_eq!(scene.wake(), Some(after(600)));
    scene.now = after(600);
    assert_eq!(scene.task(), Some(Task::Commit));
}
