//! A pull request of a branch that somebody else pushes to: its head moves, and the branch stays.

use super::*;

pub(super) const LATE: &str = "cccccccccccccccccccccccccccccccccccccccc";

/// One that a strategy has made, which wants it and speaks of `COMMIT`.
pub(super) fn followed() -> PullRequest {
    let spec = json!({
        "repoRef": {"name": "shop"}, "environments": [{"branch": "env/prod"}],
    });
    let strategy: sluice_crds::PromotionStrategy = serde_json::from_value(json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "PromotionStrategy",
        "metadata": {"namespace": "shop", "name": "shop", "generation": 1}, "spec": spec,
    }))
    .unwrap();
    let prod = &strategy.spec.environments[0];
    let make = crate::delivery::promotion_strategy::child::make;
    let mut made = make(&strategy, prod, 3, "Promote c0ffee", "It waits.", None);
    made.metadata.generation = Some(1);
    made
}

pub(super) fn says_of(gate: MergeGate, head: &str) -> Option<Says> {
    Some(Says {
        head: Some(head.to_owned()),
        context: "sluice/promotion/env/prod".to_owned(),
        hold_label: Some("sluice/hold".to_owned()),
        ..says(gate).unwrap()
    })
}

pub(super) fn ordered(head: &str) -> Option<Says> {
    let object = followed();
    let order = Order {
        key: object.spec.about.key.clone(),
        pull_request: object.metadata.name.clone().unwrap(),
        head_sha: head.to_owned(),
        ..order()
    };
    Some(Says {
        order: Some(order),
        ..says_of(MergeGate::Success, head).unwrap()
    })
}

pub(super) fn shown(commit: &str, gate: MergeGate, why: &str) -> Task {
    Task::SetStatus(Telling {
        commit: commit.to_owned(),
        context: "sluice/promotion/env/prod".to_owned(),
        gate,
        why: why.to_owned(),
    })
}

pub(super) fn seen(head: &str) -> Outcome {
    let pull = Pull {
        text: Some(Text::of("Promote c0ffee", "It waits.\r\n")),
        mergeable: Mergeable::Yes,
        ..pull()
    };
    Outcome::Seen(pull, Fate::Open(head.to_owned()))
}

pub(super) fn look(alone: bool) -> Task {
    Task::Look {
        number: 7,
        commit: None,
        alone,
    }
}

pub(super) fn open_it() -> Task {
    Task::Open { commit: None }
}

pub(super) fn scene() -> Scene {
    Scene {
        object: followed(),
        owner: says_of(MergeGate::Pending, COMMIT),
        ..Scene::new()
    }
}

/// One that is open, shows that its rules hold it back, and has no conflict.
pub(super) fn opened() -> Scene {
    let mut scene = scene();
    scene.task();
    let told = scene.over(open_it(), seen(COMMIT)).unwrap();
    assert_eq!(scene.over(told, Outcome::Done), None);
    scene.over(look(true), seen(COMMIT));
    assert_eq!(scene.recent.unsure_since, None);
    scene
}

/// The same with a success.
pub(super) fn admitted() -> Scene {
    let mut scene = opened();
    scene.owner = says_of(MergeGate::Success, COMMIT);
    let told = scene.task().unwrap();
    assert_eq!(told, shown(COMMIT, MergeGate::Success, "why"));
    assert_eq!(scene.over(told, Outcome::Done), None);
    scene
}

#[test]
fn from_the_open_one_to_the_merge_nothing_is_made_and_nothing_deleted() {
    let mut scene = scene();
    assert_eq!(scene.task(), Some(open_it()));
    assert_eq!(
        scene.said(),
        json!(["Ready False Opening", "Reconciling True Opening"])
    );
    let pending = shown(COMMIT, MergeGate::Pending, "why");
    assert_eq!(scene.over(open_it(), seen(COMMIT)), Some(pending.clone()));
    assert_eq!(scene.status().head_sha.as_deref(), Some(COMMIT));
    assert_eq!(scene.status().outcome, None);
    assert_eq!(scene.over(pending, Outcome::Done), None);
    // Whether it has conflicts is known once it was asked about alone.
    assert_eq!(scene.wake(), Some(after(5)));
    scene.now = after(5);
    assert_eq!(scene.task(), Some(look(true)));
    assert_eq!(scene.over(look(true), seen(COMMIT)), None);
    assert_eq!(scene.wake(), Some(after(65)));

    scene.owner = ordered(COMMIT);
    let success = shown(COMMIT, MergeGate::Success, "why");
    assert_eq!(scene.task(), Some(success.clone()));
    let merge = Task::Merge {
        number: 7,
        commit: COMMIT.to_owned(),
        method: None,
        hold_label: Some("sluice/hold".to_owned()),
        not_after: after(60),
    };
    assert_eq!(scene.over(success, Outcome::Done), Some(merge.clone()));
    let fate = Fate::Merged {
        commit: Some("d".repeat(40)),
        onto: Some("e".repeat(40)),
        by: Some("alice".to_owned()),
        head: Some(LATE.to_owned()),
        is_touched: false,
    };
    assert_eq!(scene.over(merge, Outcome::Seen(pull(), fate)), None);
    let status = scene.status();
    assert_eq!(status.state, Some(PullRequestState::Merged));
    assert_eq!(status.merged_sha, Some("d".repeat(40)));
    assert_eq!(status.merged_onto, Some("e".repeat(40)));
    assert_eq!(status.merged_by.as_deref(), Some("alice"));
    // A person was faster than the look.
    assert_eq!(status.head_sha.as_deref(), Some(LATE));
    scene.now = after(100_000);
    assert_eq!((scene.task(), scene.wake()), (None, None));
}

#[test]
fn a_head_that_moves_is_normal_and_gets_a_commit_status_of_its_own() {
    let mut scene = opened();
    scene.now = after(60);
    let pending = shown(OTHER, MergeGate::Pending, "why");
    assert_eq!(scene.over(look(false), seen(OTHER)), Some(pending.clone()));
    let status = scene.status();
    assert_eq!(
        (status.head_sha.as_deref(), status.outcome),
        (Some(OTHER), None)
    );
    assert_eq!(scene.over(pending, Outcome::Done), None);
    assert_eq!(scene.said(), json!(["Ready True Open"]));
    // Whether the new one has conflicts is found out.
    scene.now = after(65);
    assert_eq!(scene.task(), Some(look(true)));
}

#[test]
fn what_is_said_of_one_commit_admits_no_other() {
    let mut scene = admitted();
    scene.owner = ordered(COMMIT);
    scene.now = after(30);
    // The success of the former head is taken back, and the order for it is void.
    let moved = "its branch has another commit by now";
    let back = shown(COMMIT, MergeGate::Pending, moved);
    assert_eq!(scene.over(look(false), seen(OTHER)), Some(back.clone()));
    assert_eq!(scene.status().commit_status, Some(MergeGate::Success));
    let pending = shown(OTHER, MergeGate::Pending, moved);
    assert_eq!(scene.over(back, Outcome::Done), Some(pending.clone()));
    assert_eq!(scene.status().commit_status, Some(MergeGate::Pending));
    assert_eq!(scene.over(pending, Outcome::Done), None);
    // The strategy has looked at the new one.
    scene.owner = ordered(OTHER);
    let success = shown(OTHER, MergeGate::Success, "why");
    assert_eq!(scene.task(), Some(success.clone()));
    let merge = scene.over(success, Outcome::Done);
    assert!(matches!(merge, Some(Task::Merge { commit, .. }) if commit == OTHER));
}

#[rstest]
#[case::right(ordered(COMMIT), true)]
#[case::another_head(ordered(OTHER), false)]
#[case::spoken_of_another(says_of(MergeGate::Success, OTHER).map(|it| Says { order: ordered(COMMIT).unwrap().order, ..it }), false)]
#[case::another_key(ordered(COMMIT).map(|mut it| { it.order.as_mut().unwrap().key = "x".into(); it }), false)]
#[case::another_object(ordered(COMMIT).map(|mut it| { it.order.as_mut().unwrap().pull_request = "x".into(); it }), false)]
#[case::too_late(ordered(COMMIT).map(|mut it| { it.order.as_mut().unwrap().not_after = time(after(-1)); it }), false)]
#[case::no_order(says_of(MergeGate::Success, COMMIT), false)]
fn it_is_merged_by_an_order_for_its_head_alone(#[case] owner: Option<Says>, #[case] merges: bool) {
    let mut scene = admitted();
    scene.owner = owner;
    let task = scene.task();
    assert_eq!(matches!(task, Some(Task::Merge { .. })), merges, "{task:?}");
}

#[test]
fn the_description_is_rewritten_at_most_once_a_minute() {
    let mut scene = opened();
    let because = |why: &str| {
        Some(Says {
            why: why.to_owned(),
            ..says_of(MergeGate::Pending, COMMIT).unwrap()
        })
    };
    scene.now = after(20);
    scene.owner = because("closed until Monday");
    scene.recent.seen_at = Some(after(20));
    assert_eq!((scene.task(), scene.wake()), (None, Some(after(60))));
    scene.now = after(60);
    let told = shown(COMMIT, MergeGate::Pending, "closed until Monday");
    assert_eq!(scene.task(), Some(told.clone()));
    assert_eq!(scene.over(told, Outcome::Done), None);
    scene.owner = because("closed until Tuesday");
    assert_eq!(scene.task(), None);
    // What it says comes at once.
    scene.owner = says_of(MergeGate::Success, COMMIT);
    let told = shown(COMMIT, MergeGate::Success, "why");
    assert_eq!(scene.task(), Some(told));
}

#[test]
fn a_new_leader_says_pending_first() {
    let mut scene = admitted();
    scene.recent = Recent::default();
    scene.owner = ordered(COMMIT);
    let pending = shown(COMMIT, MergeGate::Pending, "the gates are asked");
    assert_eq!(scene.task(), Some(pending.clone()));
    // That it cannot be set spends nothing of what other tries have.
    scene.over(pending.clone(), Outcome::Failed(failure(Word::NoRight)));
    assert_eq!(scene.recent.unwithdrawn, 1);
    scene.now = after(10);
    assert_eq!(scene.task(), Some(pending.clone()));
    let next = scene.over(pending, Outcome::Done);
    assert_eq!(next, Some(shown(COMMIT, MergeGate::Success, "why")));
}

#[test]
fn another_title_is_written_once_and_what_people_write_stays() {
    let mut scene = opened();
    let edit = |title: &str| Task::Edit {
        number: 7,
        title: title.to_owned(),
        description: "It waits.".to_owned(),
    };
    scene.object.spec.title = "Promote beef".to_owned();
    scene.object.metadata.generation = Some(2);
    assert_eq!(scene.task(), Some(edit("Promote beef")));
    assert_eq!(scene.over(edit("Promote beef"), Outcome::Done), None);
    // The list is older, or somebody has changed it.
    assert_eq!(scene.over(look(false), seen(COMMIT)), None);
    scene.object.spec.title = "Promote cafe".to_owned();
    assert_eq!(scene.task(), Some(edit("Promote cafe")));
    // That it is not possible holds nothing back.
    let before = scene.status();
    let refused = Outcome::Failed(failure(Word::NoRight));
    assert_eq!(scene.over(edit("Promote cafe"), refused), None);
    assert_eq!(scene.status().attempts, before.attempts);
    scene.now = after(599);
    assert_ne!(scene.task(), Some(edit("Promote cafe")));
    scene.now = after(600);
    assert_eq!(scene.task(), Some(edit("Promote cafe")));
}

#[test]
fn a_conflict_is_what_is_not_known_after_some_seconds() {
    let unsure = |alone| {
        let Outcome::Seen(pull, fate) = seen(COMMIT) else {
            panic!();
        };
        let mergeable = Mergeable::Unknown;
        (look(alone), Outcome::Seen(Pull { mergeable, ..pull }, fate))
    };
    let mut scene = opened();
    // A list says nothing.
    let (task, outcome) = unsure(false);
    scene.over(task, outcome);
    assert!(!scene.status().conflict && scene.recent.unsure_since.is_none());
    // A merge was not possible.
    scene.owner = ordered(COMMIT);
    scene.recent.told = Some(Told {
        telling: Telling {
            gate: MergeGate::Success,
            context: "sluice/promotion/env/prod".to_owned(),
            ..telling(MergeGate::Success)
        },
        at: noon(),
    });
    scene.object.status.as_mut().unwrap().commit_status = Some(MergeGate::Success);
    let merge = scene.task().unwrap();
    assert_eq!(
        scene.over(merge, Outcome::Held(failure(Word::NotYet))),
        None
    );
    scene.owner = says_of(MergeGate::Success, COMMIT);
    for (seconds, expected) in [(5, false), (10, true)] {
        scene.now = after(seconds);
        assert_eq!(scene.task(), Some(look(true)));
        let (task, outcome) = unsure(true);
        scene.over(task, outcome);
        assert_eq!(scene.status().conflict, expected);
    }
    // A busy forge finds out later.
    for seconds in (15..=120).step_by(5) {
        scene.now = after(seconds);
        assert_eq!(scene.task(), Some(look(true)));
        let (task, outcome) = unsure(true);
        scene.over(task, outcome);
    }
    // It is asked about alone as long as that lasts.
    for seconds in [180, 240] {
        let wake = (scene.task(), scene.wake());
        assert_eq!(wake, (None, Some(after(seconds))));
        scene.now = after(seconds);
        assert_eq!(scene.task(), Some(look(true)));
        let (task, outcome) = unsure(true);
        scene.over(task, outcome);
        assert!(scene.status().conflict);
    }
    // Another commit may have none.
    let withdrawn = scene.over(look(true), seen(OTHER)).unwrap();
    let pending = scene.over(withdrawn, Outcome::Done).unwrap();
    assert_eq!(scene.over(pending, Outcome::Done), None);
    assert!(scene.status().conflict);
    scene.now = after(245);
    assert_eq!(scene.task(), Some(look(true)));
    scene.over(look(true), seen(OTHER));
    assert!(!scene.status().conflict);
    scene.now = after(305);
    assert_eq!(scene.task(), Some(look(false)));
}

/// A merge shows it there.
#[test]
fn a_forge_that_does_not_say_has_no_conflict() {
    let Outcome::Seen(pull, fate) = seen(COMMIT) else {
        panic!();
    };
    let mergeable = Mergeable::Unsaid;
    let unsaid = Outcome::Seen(Pull { mergeable, ..pull }, fate);
    let mut scene = scene();
    scene.task();
    let told = scene.over(open_it(), unsaid.clone()).unwrap();
    assert_eq!(scene.over(told, Outcome::Done), None);
    assert_eq!(scene.recent.unsure_since, None);
    for minute in [60, 120, 180] {
        scene.now = after(minute);
        assert_eq!(scene.task(), Some(look(false)));
        scene.over(look(false), unsaid.clone());
        assert!(!scene.status().conflict);
    }
    // Why it was not merged is told, and that it is tried again later.
    scene.owner = ordered(COMMIT);
    scene.over(look(false), Outcome::Held(failure(Word::Conflict)));
    let status = scene.status();
    assert_eq!(
        (status.outcome.as_deref(), status.refusals),
        (Some("Conflict"), Some(1))
    );
}

#[test]
fn what_the_forge_shows_is_in_the_status() {
    let mut scene = opened();
    let labels = (0..40).map(|n| format!("label-{n:02}"));
    let labels = labels.chain(["sluice/hold".to_owned(), "x".repeat(200)]);
    let Outcome::Seen(pull, fate) = seen(COMMIT) else {
        panic!();
    };
    let pull = Pull {
        draft: true,
        labels: labels.collect(),
        mergeable: Mergeable::Unknown,
        ..pull
    };
    scene.over(look(true), Outcome::Seen(pull, fate));
    let status = scene.status();
    // Gitea says of a draft that it cannot be merged.
    assert_eq!((status.draft, status.conflict), (true, false));
    assert_eq!(status.labels.len(), 32);
    assert!(status.labels.contains(&"sluice/hold".to_owned()));
    assert!(status.labels.iter().all(|it| it.chars().count() <= 128));
    // Its title may be what makes it one.
    scene.object.spec.title = "Promote beef".to_owned();
    assert_eq!(scene.task(), None);
    let next = scene.over(look(false), seen(COMMIT));
    assert!(matches!(next, Some(Task::Edit { .. })), "{next:?}");
    let status = scene.status();
    assert!(!status.draft && status.labels.is_empty());
}

#[test]
fn one_with_more_labels_than_are_read_counts_as_held_back() {
    let mut scene = opened();
    let Outcome::Seen(pull, fate) = seen(COMMIT) else {
        panic!();
    };
    let many = Pull {
        labels: vec!["other".to_owned()],
        labels_cut: true,
        ..pull
    };
    scene.over(look(true), Outcome::Seen(many, fate));
    assert_eq!(scene.status().labels, ["other", "sluice/hold"]);
}

#[test]
fn one_that_a_person_closes_is_left() {
    let mut scene = admitted();
    assert_eq!(
        scene.over(look(false), Outcome::Seen(pull(), Fate::Closed)),
        None
    );
    let status = scene.status();
    assert_eq!(status.state, Some(PullRequestState::Closed));
    assert_eq!(status.outcome.as_deref(), Some("ClosedByOthers"));
    assert!(!status.branch_deleted);
    scene.now = after(1_000);
    assert_eq!((scene.task(), scene.wake()), (None, None));
}

#[test]
fn nothing_is_opened_that_is_not_wanted() {
    let mut scene = scene();
    scene.owner = None;
    assert_eq!((scene.task(), scene.wake()), (None, None));
    // One that leads elsewhere has no commit that could be merged, and its success is taken back.
    let mut scene = admitted();
    scene.owner = ordered(COMMIT);
    let elsewhere = Outcome::Seen(pull(), Fate::OpenElsewhere);
    let moved = "its branch has another commit by now";
    let back = shown(COMMIT, MergeGate::Pending, moved);
    assert_eq!(scene.over(look(false), elsewhere), Some(back.clone()));
    assert_eq!(scene.over(back, Outcome::Done), None);
    assert_eq!(scene.status().outcome.as_deref(), Some("BranchTouched"));
}

/// A commit that somebody has written into its status is none of ours.
#[test]
fn a_status_that_somebody_has_written_leads_to_no_commit_of_ours() {
    let mut scene = opened();
    scene.object.status.as_mut().unwrap().commit_sha = Some(OTHER.to_owned());
    scene.now = after(60);
    scene.recent.seen_at = None;
    assert_eq!(scene.task(), Some(look(false)));
    scene.object.status.as_mut().unwrap().id = None;
    assert_eq!(scene.task(), Some(open_it()));
}
