//! What becomes of a merge that is sent, and what is done before one can be.

use super::followed::{LATE, admitted, look, open_it, ordered, says_of, scene, seen, shown};
use super::*;

/// What only a person can change is tried ever more rarely, until there is another commit.
#[test]
fn a_merge_that_the_forge_refuses_is_put_off() {
    let mut scene = admitted();
    scene.owner = ordered(COMMIT);
    let merge = scene.task().unwrap();
    let put_off = |scene: &Scene| {
        let status = scene.status();
        let until = status
            .next_merge_at
            .map(|at| at.0.duration_since(scene.now));
        (status.refusals, until.map(|it| it.as_secs()))
    };
    scene.over(merge.clone(), Outcome::Held(failure(Word::NotYet)));
    assert_eq!(put_off(&scene), (None, None));
    for (refusals, seconds) in [(1, 80), (2, 160), (3, 320), (4, 640), (5, 900), (6, 900)] {
        scene.over(merge.clone(), Outcome::Held(failure(Word::NotMergeable)));
        assert_eq!(put_off(&scene), (Some(refusals), Some(seconds)));
    }
    // Why is told although nothing is ordered meanwhile.
    scene.owner = says_of(MergeGate::Success, COMMIT);
    scene.task();
    assert_eq!(scene.status().outcome.as_deref(), Some("NotMergeable"));
    scene.over(look(false), seen(COMMIT));
    assert_eq!(put_off(&scene), (Some(6), Some(900)));
    scene.over(look(false), seen(LATE));
    assert_eq!(put_off(&scene), (None, None));
}

/// It is in the status before the forge is asked, and until it is known that nothing comes of it.
#[test]
fn a_merge_that_may_have_been_sent_is_in_the_status() {
    let sent = |scene: &Scene| scene.status().merge_sent.map(|sent| sent.head_sha);
    let begun = || {
        let mut scene = admitted();
        scene.owner = ordered(COMMIT);
        assert_eq!(sent(&scene), None);
        let task = scene.task().unwrap();
        assert!(matches!(task, Task::Merge { .. }), "{task:?}");
        assert_eq!(sent(&scene).as_deref(), Some(COMMIT));
        scene.owner = says_of(MergeGate::Pending, COMMIT);
        (scene, task)
    };
    for refused in [
        Outcome::Held(failure(Word::NotMergeable)),
        Outcome::Unsent(failure(Word::NoRight)),
        Outcome::Unsent(failure(Word::ForgeThrottled)),
        Outcome::Unsent(failure(Word::Unanswered)),
        Outcome::Seen(pull(), Fate::Closed),
    ] {
        let (mut scene, merge) = begun();
        scene.over(merge, refused);
        assert_eq!(sent(&scene), None);
    }
    for unknown in [
        Outcome::Failed(failure(Word::Unanswered)),
        // It was sent, and what has become of it could not be asked.
        Outcome::Failed(failure(Word::RateLimited)),
        Outcome::Failed(failure(Word::NoRight)),
        seen(COMMIT),
    ] {
        let (mut scene, merge) = begun();
        scene.over(merge, unknown);
        assert_eq!(sent(&scene).as_deref(), Some(COMMIT));
        for (second, is_there) in [(120, true), (121, false)] {
            scene.now = after(second);
            scene.over(look(false), seen(COMMIT));
            assert_eq!(sent(&scene).is_some(), is_there);
        }
    }
    let (mut scene, merge) = begun();
    scene.over(merge, merged());
    assert_eq!(sent(&scene).as_deref(), Some(COMMIT));
}

/// A gate closes while it waits for its turn. What a person merges then is not taken for ours.
#[test]
fn a_merge_that_was_given_up_before_it_was_sent_leaves_the_status() {
    for sent_before in [false, true] {
        let mut scene = admitted();
        scene.owner = ordered(COMMIT);
        let merge = scene.task().unwrap();
        assert!(matches!(merge, Task::Merge { .. }), "{merge:?}");
        scene.owner = says_of(MergeGate::Pending, COMMIT);
        scene.recent.is_merge_dropped = true;
        scene.recent.sent_before = sent_before;
        scene.over(look(false), seen(COMMIT));
        assert_eq!(scene.status().merge_sent.is_some(), sent_before);
        assert!(!scene.recent.is_merge_dropped);
    }
}

/// Whatever has happened in between: the first may still come, or has been carried out without a reply.
#[test]
fn that_a_second_merge_is_not_sent_says_nothing_of_the_first() {
    let lost = || Outcome::Failed(failure(Word::Unanswered));
    let told = || (shown(COMMIT, MergeGate::Success, "why"), Outcome::Done);
    for (first, between) in [
        (lost(), None),
        (lost(), Some((look(false), seen(COMMIT)))),
        (
            lost(),
            Some((look(false), Outcome::Failed(failure(Word::Unanswered)))),
        ),
        (lost(), Some(told())),
        (seen(COMMIT), None),
    ] {
        for second in [
            Outcome::Unsent(failure(Word::Unanswered)),
            Outcome::Unsent(failure(Word::ForgeThrottled)),
            Outcome::Held(failure(Word::Changed)),
            Outcome::Held(failure(Word::NotYet)),
        ] {
            for is_new_process in [false, true] {
                let mut scene = admitted();
                scene.owner = ordered(COMMIT);
                let merge = scene.task().unwrap();
                scene.over(merge, first.clone());
                if let Some((task, outcome)) = between.clone() {
                    scene.over(task, outcome);
                }
                if is_new_process {
                    scene.recent = Recent {
                        told: scene.recent.told,
                        ..Recent::default()
                    };
                }
                scene.now = after(30);
                scene.recent.seen_at = Some(scene.now);
                let merge = scene.task().unwrap();
                assert!(matches!(merge, Task::Merge { .. }), "{merge:?}");
                scene.over(merge, second.clone());
                let sent = scene.status().merge_sent;
                assert!(sent.is_some(), "{first:?}, {between:?}, {second:?}");
            }
        }
    }
}

/// After a revert the target branch has all commits of what is proposed. Some forges open nothing then.
#[test]
fn what_has_nothing_to_merge_is_joined_before_it_is_opened() {
    let joining = Joining {
        head: COMMIT.to_owned(),
        active: OTHER.to_owned(),
        tree: "e".repeat(40),
        at: noon(),
    };
    let mut scene = scene();
    scene.owner.as_mut().unwrap().join = Some(joining.clone());
    let (join, empty) = (Task::Join(joining), || {
        Outcome::Failed(failure(Word::NothingToMerge))
    });
    // It is opened where the forge does.
    assert_eq!(scene.task(), Some(open_it()));
    scene.is_owner_current = false;
    assert_eq!(scene.over(open_it(), empty()), None);
    scene.is_owner_current = true;
    assert_eq!(scene.task(), Some(join.clone()));
    assert_eq!(scene.over(join, Outcome::Done), Some(open_it()));
    assert_eq!(scene.status().attempts, None);
    // It is joined once.
    assert_eq!(scene.over(open_it(), empty()), None);
    assert_eq!(scene.wake(), Some(after(10)));
}

#[rstest]
#[case::none(|_| None, None)]
#[case::right(Some, Some(merge()))]
#[case::another_key(|order| Some(Order { key: "x".into(), ..order }), None)]
#[case::another_commit(|order| Some(Order { head_sha: OTHER.into(), ..order }), None)]
#[case::another_object(|order| Some(Order { pull_request: "x".into(), ..order }), None)]
#[case::too_late(|order| Some(Order { not_after: time(after(-1)), ..order }), None)]
#[case::until_now(
    |order| Some(Order { not_after: time(noon()), ..order }),
    Some(Task::Merge { number: 7, commit: COMMIT.into(), method: None, hold_label: None, not_after: noon() })
)]
fn it_is_merged_by_an_order_for_its_commit_alone(
    #[case] change: fn(Order) -> Option<Order>,
    #[case] expected: Option<Task>,
) {
    let mut scene = Scene::opened();
    scene.object.status.as_mut().unwrap().commit_status = Some(MergeGate::Success);
    scene.recent.told = told(MergeGate::Success);
    scene.owner = Some(Says {
        order: change(order()),
        ..says(MergeGate::Success).unwrap()
    });
    assert_eq!(scene.task(), expected);
    // Somebody has pushed: nothing is merged.
    scene.object.status.as_mut().unwrap().head_sha = Some(OTHER.to_owned());
    assert_eq!(scene.task(), None);
}

#[test]
fn the_commit_status_says_so_before_it_is_merged() {
    let mut scene = Scene::opened();
    scene.owner = Some(Says {
        order: Some(order()),
        ..says(MergeGate::Success).unwrap()
    });
    let shown = status_of(MergeGate::Success);
    assert_eq!(scene.task(), Some(shown.clone()));
    assert_eq!(scene.over(shown, Outcome::Done), Some(merge()));
}

#[rstest]
#[case::not_ready(Word::NotYet, 5)]
#[case::conflict(Word::Conflict, 60)]
#[case::rule(Word::NotMergeable, 60)]
fn a_merge_that_is_held_is_told_and_tried_again(#[case] word: Word, #[case] seconds: i64) {
    let mut scene = Scene::opened();
    scene.object.status.as_mut().unwrap().commit_status = Some(MergeGate::Success);
    scene.recent.told = told(MergeGate::Success);
    let ordered = |not_after| {
        let not_after = time(not_after);
        Some(Says {
            order: Some(Order {
                not_after,
                ..order()
            }),
            ..says(MergeGate::Success).unwrap()
        })
    };
    scene.owner = ordered(after(200));
    let tried = scene.task().unwrap();
    assert_eq!(scene.over(tried, Outcome::Held(failure(word))), None);
    assert_eq!(scene.status().outcome.as_deref(), Some(word.as_str()));
    assert_eq!(scene.status().attempts, None);
    assert_eq!(scene.said(), json!(["Ready True Open"]));
    assert_eq!(scene.wake(), Some(after(seconds)));
    // It is said as long as nothing else is known.
    scene.over(look_at(), open());
    assert_eq!(scene.status().outcome.as_deref(), Some(word.as_str()));
    scene.now = after(seconds);
    assert!(matches!(scene.task(), Some(Task::Merge { .. })));
    // It ends with the order.
    scene.owner = ordered(after(-1));
    assert!(!matches!(scene.task(), Some(Task::Merge { .. })));
    scene.over(merge(), merged());
    assert_eq!(scene.status().outcome, None);
}
