//! What is done at a forge, state by state.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use rstest::rstest;
use serde_json::{Value, json};
use sluice_crds::pipeline::{MergeGate, Order};
use sluice_crds::pull_request::PullRequestState;
use sluice_crds::{Pipeline, PullRequest, PullRequestStatus};

use super::*;
use crate::time::stamp::time;
use crate::verdict::condition::{READY, RECONCILING, STALLED};

mod followed;
mod merges;
mod order;
mod strategy;

const COMMIT: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const OTHER: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
const CONTEXT: &str = "sluice/gate/flux-system/podinfo/prod";
const PAGE: &str = "https://git.example.com/platform/apps/pulls/7";

pub(crate) fn object() -> PullRequest {
    serde_json::from_value(json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "PullRequest",
        "metadata": {"namespace": "flux-system", "name": "podinfo-75e8a701fb73", "generation": 1},
        "spec": {
            "repository": {
                "type": "gitea", "url": "https://git.example.com/platform/apps",
                "secretRef": {"name": "git-token"},
            },
            "sourceBranch": "sluice/a6a8ea3ca7a1/75e8a701fb73", "targetBranch": "main",
            "title": "Promote podinfo", "description": "To 6.1.6.",
            "change": {"markers": {
                "name": "flux-system:podinfo:prod", "revision": "6.1.6", "paths": ["prod.yaml"],
            }},
            "about": {
                "kind": "Pipeline", "name": "podinfo", "environment": "prod",
                "revision": "6.1.6", "run": 7, "key": "75e8a701fb73",
            },
        },
    }))
    .unwrap()
}

fn noon() -> Timestamp {
    "2026-11-20T12:00:00Z".parse().unwrap()
}

fn after(seconds: i64) -> Timestamp {
    noon() + SignedDuration::from_secs(seconds)
}

fn says(gate: MergeGate) -> Option<Says> {
    Some(Says {
        gate,
        why: "why".to_owned(),
        order: None,
        join: None,
        commit: None,
        head: None,
        context: CONTEXT.to_owned(),
        hold_label: None,
    })
}

fn order() -> Order {
    Order {
        key: "75e8a701fb73".to_owned(),
        pull_request: "podinfo-75e8a701fb73".to_owned(),
        head_sha: COMMIT.to_owned(),
        method: None,
        at: time(noon()),
        not_after: time(after(60)),
    }
}

fn pull() -> Pull {
    Pull {
        number: 7,
        url: PAGE.to_owned(),
        ..Pull::default()
    }
}

fn open() -> Outcome {
    Outcome::Seen(pull(), Fate::Open(COMMIT.to_owned()))
}

fn merged() -> Outcome {
    let fate = Fate::Merged {
        commit: Some("c".repeat(40)),
        onto: Some("d".repeat(40)),
        by: Some("alice".to_owned()),
        head: None,
        is_touched: false,
    };
    Outcome::Seen(pull(), fate)
}

fn failure(word: Word) -> Failure {
    Failure::new(word, format!("git.example.com: {word}"))
}

/// A PullRequest, looked at again and again. Each status is accepted, unless it is told otherwise.
struct Scene {
    object: PullRequest,
    owner: Option<Says>,
    is_owner_current: bool,
    recent: Recent,
    now: Timestamp,
}

impl Scene {
    fn new() -> Self {
        Self {
            object: object(),
            owner: says(MergeGate::Pending),
            is_owner_current: true,
            recent: Recent::default(),
            now: noon(),
        }
    }

    /// One that is open, was seen just now, and shows that its gates are closed.
    fn opened() -> Self {
        let mut scene = Self::new();
        scene.object.status = Some(PullRequestStatus {
            observed_generation: Some(1),
            state: Some(PullRequestState::Open),
            id: Some(7),
            url: Some(PAGE.to_owned()),
            commit_sha: Some(COMMIT.to_owned()),
            head_sha: Some(COMMIT.to_owned()),
            commit_status: Some(MergeGate::Pending),
            ..PullRequestStatus::default()
        });
        scene.recent.seen_at = Some(noon());
        scene.recent.told = told(MergeGate::Pending);
        // So that its conditions are there.
        scene.look(Errand::None);
        scene
    }

    fn looked(&self, errand: Errand) -> Looked {
        report(Given {
            object: Arc::new(self.object.clone()),
            owner: self.owner.clone(),
            is_owner_current: self.is_owner_current,
            recent: self.recent.clone(),
            errand,
            now: self.now,
        })
    }

    /// A look. Returns what is to be done.
    fn look(&mut self, errand: Errand) -> Option<Task> {
        let looked = self.looked(errand);
        assert!(looked.report.acts.len() <= 1);
        self.object.status = Some(looked.report.status);
        self.recent = looked.recent;
        looked.report.acts.into_iter().next()
    }

    fn task(&mut self) -> Option<Task> {
        self.look(Errand::None)
    }

    /// The look after an errand.
    fn over(&mut self, task: Task, outcome: Outcome) -> Option<Task> {
        self.look(Errand::Over(Box::new((task, outcome))))
    }

    fn wake(&self) -> Option<Timestamp> {
        self.looked(Errand::None).report.wake
    }

    fn status(&self) -> PullRequestStatus {
        self.object.status.clone().unwrap()
    }

    fn said(&self) -> Value {
        let status = self.status();
        let conditions = status.conditions.iter();
        let conditions = conditions.map(|it| format!("{} {} {}", it.type_, it.status, it.reason));
        json!(conditions.collect::<Vec<_>>())
    }
}

fn look_at() -> Task {
    Task::Look {
        number: 7,
        commit: Some(COMMIT.to_owned()),
        alone: false,
    }
}

fn telling(gate: MergeGate) -> Telling {
    Telling {
        commit: COMMIT.to_owned(),
        context: CONTEXT.to_owned(),
        gate,
        why: "why".to_owned(),
    }
}

fn told(gate: MergeGate) -> Option<Told> {
    Some(Told {
        telling: telling(gate),
        at: noon(),
    })
}

fn status_of(gate: MergeGate) -> Task {
    Task::SetStatus(telling(gate))
}

fn merge() -> Task {
    Task::Merge {
        number: 7,
        commit: COMMIT.to_owned(),
        method: None,
        hold_label: None,
        not_after: after(60),
    }
}

fn opening() -> Task {
    Task::Open {
        commit: Some(COMMIT.to_owned()),
    }
}

#[test]
fn keys_tell_borders_apart_and_stay_the_same() {
    let key = |texts: &[&str]| Key::of(texts).to_string();
    assert_ne!(key(&["a-b", "c"]), key(&["a", "b-c"]));
    assert_ne!(key(&["ab", "c"]), key(&["a", "bc"]));
    assert_ne!(key(&["a"]), key(&["a", ""]));
    // Branches are found by it: it must never change.
    assert_eq!(key(&["flux-system", "podinfo", "prod"]), "a6a8ea3ca7a1");
}

#[test]
fn from_the_commit_to_the_merge_each_step_is_in_the_status_first() {
    let mut scene = Scene::new();
    assert_eq!(scene.task(), Some(Task::Commit));
    assert_eq!(scene.status().state, Some(PullRequestState::Pending));
    let committed = Outcome::Committed(COMMIT.to_owned());
    // Nothing is opened by a status that has no commit: it is written together with this task.
    assert_eq!(scene.over(Task::Commit, committed), Some(opening()));
    assert_eq!(scene.status().commit_sha.as_deref(), Some(COMMIT));
    let shown = status_of(MergeGate::Pending);
    assert_eq!(scene.over(opening(), open()), Some(shown.clone()));
    assert_eq!(scene.status().url.as_deref(), Some(PAGE));
    assert_eq!(scene.over(shown, Outcome::Done), None);
    assert_eq!(scene.status().commit_status, Some(MergeGate::Pending));
    assert_eq!(scene.said(), json!(["Ready True Open"]));

    scene.owner = says(MergeGate::Success);
    let shown = status_of(MergeGate::Success);
    assert_eq!(scene.task(), Some(shown.clone()));
    // It may be there from now on.
    assert_eq!(scene.status().commit_status, Some(MergeGate::Success));
    assert_eq!(scene.over(shown, Outcome::Done), None);
    assert_eq!(scene.wake(), Some(after(60)));
    scene.now = after(60);
    assert_eq!(scene.task(), Some(look_at()));
    let commit = Some(COMMIT.to_owned());
    let deletion = Task::DeleteBranch { commit };
    assert_eq!(scene.over(look_at(), merged()), Some(deletion.clone()));
    let status = scene.status();
    assert_eq!(status.state, Some(PullRequestState::Merged));
    assert_eq!(status.merged_sha, Some("c".repeat(40)));
    assert_eq!(status.merged_onto, Some("d".repeat(40)));
    assert_eq!(status.merged_by.as_deref(), Some("alice"));
    assert_eq!(scene.over(deletion, Outcome::Done), None);
    // The forge is never asked again.
    scene.now = after(100_000);
    assert_eq!((scene.task(), scene.wake()), (None, None));
    assert_eq!(scene.said(), json!(["Ready True Merged"]));
}

#[test]
fn a_status_that_is_not_accepted_begins_nothing_and_loses_nothing() {
    let scene = Scene::new();
    let over = || {
        Errand::Over(Box::new((
            Task::Commit,
            Outcome::Committed(COMMIT.to_owned()),
        )))
    };
    // The API server has refused it: the next look decides the same from the same outcome.
    let first = scene.looked(over());
    assert!(first.report.changed);
    assert_eq!(scene.looked(over()), first);
}

#[test]
fn whatever_changes_something_is_written_first_although_nothing_is_new() {
    let mut scene = Scene::new();
    scene.task();
    let looked = scene.looked(Errand::None);
    assert_eq!(looked.report.acts, [Task::Commit]);
    assert!(looked.report.changed);

    let mut scene = Scene::opened();
    assert!(!scene.looked(Errand::None).report.changed);
    scene.now = after(61);
    // Looking changes nothing.
    let looked = scene.looked(Errand::None);
    assert_eq!(looked.report.acts, [look_at()]);
    assert!(!looked.report.changed);
    let over = Errand::Over(Box::new((look_at(), open())));
    assert!(!scene.looked(over).report.changed);
}

fn under_way(task: Task, is_sent: bool) -> Errand {
    Errand::UnderWay { task, is_sent }
}

#[test]
fn nothing_is_begun_while_an_errand_is_under_way() {
    let mut scene = Scene::new();
    assert_eq!(scene.look(under_way(Task::Commit, false)), None);
    scene.object.spec.close = Some("superseded".to_owned());
    assert_eq!(scene.look(under_way(Task::Commit, false)), None);
}

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

/// The object was lost, and made again.
#[test]
fn the_commit_that_its_owner_remembers_is_opened() {
    let mut scene = Scene::new();
    if let Some(owner) = &mut scene.owner {
        owner.commit = Some(COMMIT.to_owned());
    }
    assert_eq!(scene.task(), Some(opening()));
    assert_eq!(scene.status().commit_sha.as_deref(), Some(COMMIT));
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

/// Nothing stops those who may write PullRequests from making one: it stands for nothing.
#[rstest]
#[case::another_name(|it: &mut PullRequest| it.metadata.name = Some("podinfo-1".into()))]
#[case::another_namespace(|it: &mut PullRequest| it.metadata.namespace = Some("apps".into()))]
#[case::another_kind(|it: &mut PullRequest| it.spec.about.kind = "Promotion".into())]
#[case::another_run(|it: &mut PullRequest| it.spec.about.run = Some(8))]
#[case::no_run(|it: &mut PullRequest| it.spec.about.run = None)]
#[case::another_branch(|it: &mut PullRequest| it.spec.source_branch = "main".into())]
#[case::another_base(|it: &mut PullRequest| it.spec.target_branch = "prod".into())]
#[case::another_secret(|it: &mut PullRequest| it.spec.repository.secret_ref = Some(sluice_crds::pipeline::SecretName { name: "stolen".into() }))]
#[case::another_address(|it: &mut PullRequest| it.spec.repository.url = Some("https://git.example.com/b".into()))]
#[case::other_marks(|it: &mut PullRequest| change(it, |marks| marks.name = "flux-system:podinfo:dev".into()))]
#[case::another_revision(|it: &mut PullRequest| change(it, |marks| marks.revision = "6.6.6".into()))]
#[case::other_files(|it: &mut PullRequest| change(it, |marks| marks.paths.push("secret.yaml".into())))]
fn one_that_its_owner_would_not_have_made_leads_to_nothing(#[case] forge: fn(&mut PullRequest)) {
    let mut scene = Scene::new();
    forge(&mut scene.object);
    assert_eq!(Says::of(&scene.object, &pipeline()), None);
    scene.owner = says(MergeGate::Success);
    assert_eq!(scene.task(), None);
    scene.object.spec.close = Some("it is in the way".to_owned());
    assert_eq!(scene.task(), None);
    scene.object.status.get_or_insert_default().state = Some(PullRequestState::Closed);
    assert_eq!(scene.task(), None);
}

fn change(object: &mut PullRequest, change: fn(&mut sluice_crds::pull_request::Markers)) {
    match &mut object.spec.change {
        Some(sluice_crds::pull_request::Change::Markers(marks)) => change(marks),
        other => panic!("{other:?}"),
    }
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
fn it_is_looked_at_once_a_minute_and_sooner_if_somebody_asks() {
    let mut scene = Scene::opened();
    assert_eq!((scene.task(), scene.wake()), (None, Some(after(60))));
    scene.recent.is_asked_for = true;
    // Not more often than every few seconds.
    assert_eq!((scene.task(), scene.wake()), (None, Some(after(5))));
    scene.now = after(5);
    let alone = Task::Look {
        number: 7,
        commit: Some(COMMIT.to_owned()),
        alone: true,
    };
    assert_eq!(scene.task(), Some(alone.clone()));
    assert_eq!(scene.over(alone, open()), None);
    assert_eq!(scene.wake(), Some(after(65)));
}

/// However many pull requests there are, one list is enough.
#[test]
fn what_has_changed_at_a_forge_is_looked_at_by_a_list() {
    let mut scene = Scene::opened();
    scene.recent.is_news = true;
    assert_eq!((scene.task(), scene.wake()), (None, Some(after(5))));
    scene.now = after(5);
    assert_eq!(scene.task(), Some(look_at()));
    assert_eq!(scene.over(look_at(), open()), None);
    assert_eq!(scene.wake(), Some(after(65)));
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

fn pipeline() -> Pipeline {
    serde_json::from_value(json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Pipeline",
        "metadata": {"namespace": "flux-system", "name": "podinfo"},
        "spec": {"appRef": {"kind": "HelmRelease", "name": "podinfo"}, "environments": [{
            "name": "prod", "targets": [{"namespace": "prod"}],
            "promotion": {"strategy": {"pull-request": {
                "type": "gitea", "url": "https://git.example.com/platform/apps",
                "secretRef": {"name": "git-token"}, "paths": ["prod.yaml"],
            }}},
        }]},
        "status": {"environments": {"prod": {
            "state": "GatesClosed", "message": "closed until Monday",
            "promotion": {
                "run": 7, "revision": "6.1.6", "key": "75e8a701fb73", "phase": "Created",
                "at": "2026-11-20T12:00:00Z", "gate": "pending",
                "pullRequest": {"name": "podinfo-75e8a701fb73"},
            },
        }}},
    }))
    .unwrap()
}

#[test]
fn its_owner_speaks_of_this_promotion_or_not_at_all() {
    let said = Says::of(&object(), &pipeline()).unwrap();
    assert_eq!(
        (said.gate, said.why.as_str()),
        (MergeGate::Pending, "closed until Monday")
    );
    let change = |change: fn(&mut Pipeline)| {
        let mut owner = pipeline();
        change(&mut owner);
        Says::of(&object(), &owner)
    };
    let record = |owner: &mut Pipeline, change: fn(&mut sluice_crds::pipeline::PromotionRecord)| {
        let status = owner.status.as_mut().unwrap();
        let environment = status.environments.get_mut("prod").unwrap();
        change(environment.promotion.as_mut().unwrap());
    };
    assert_eq!(change(|it| it.metadata.name = Some("other".into())), None);
    assert_eq!(
        change(|it| it.metadata.namespace = Some("other".into())),
        None
    );
    assert_eq!(change(|it| it.status = None), None);
    let mut other = pipeline();
    record(&mut other, |it| it.key = "another".to_owned());
    assert_eq!(Says::of(&object(), &other), None);
    let mut other = pipeline();
    record(&mut other, |it| {
        it.pull_request.as_mut().unwrap().name = "podinfo-1".into();
    });
    assert_eq!(Says::of(&object(), &other), None);
    let mut other = pipeline();
    record(&mut other, |it| it.pull_request = None);
    assert_eq!(Says::of(&object(), &other), None);
    // It has not decided yet, or does not want it any more.
    let undecided: [fn(&mut sluice_crds::pipeline::PromotionRecord); 3] = [
        |it| it.phase = sluice_crds::pipeline::Phase::Unapproved,
        |it| it.phase = sluice_crds::pipeline::Phase::Unattempted,
        |it| it.reason = Some("Recalled".to_owned()),
    ];
    for change in undecided {
        let mut other = pipeline();
        record(&mut other, change);
        assert_eq!(Says::of(&object(), &other), None);
        assert_ne!(owner::words(&other), owner::words(&pipeline()));
    }
    // It promotes in another way by now.
    assert_eq!(change(|it| it.spec.environments.clear()), None);

    // One that is being deleted wants nothing any more, and its PullRequests are looked at.
    let mut deleted = pipeline();
    deleted.metadata.deletion_timestamp = Some(time(noon()));
    assert_eq!(Says::of(&object(), &deleted), None);
    assert_ne!(owner::words(&deleted), owner::words(&pipeline()));

    // If it says something else, its PullRequests are looked at.
    let mut ordered = pipeline();
    record(&mut ordered, |it| {
        (it.gate, it.order) = (Some(MergeGate::Success), Some(order()));
    });
    assert_ne!(owner::words(&ordered), owner::words(&pipeline()));
    let said = Says::of(&object(), &ordered).unwrap();
    assert_eq!((said.gate, said.order), (MergeGate::Success, Some(order())));
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

/// Its status may be older than that, for as long as its apps are not read.
#[test]
fn an_owner_that_is_suspended_admits_and_orders_nothing() {
    let mut owner = pipeline();
    let status = owner.status.as_mut().unwrap();
    let environment = status.environments.get_mut("prod").unwrap();
    let record = environment.promotion.as_mut().unwrap();
    (record.gate, record.order) = (Some(MergeGate::Success), Some(order()));
    let before = owner.clone();
    let said = Says::of(&object(), &before).unwrap();
    assert_eq!((said.gate, said.order), (MergeGate::Success, Some(order())));
    owner.spec.suspend = true;
    let said = Says::of(&object(), &owner).unwrap();
    assert_eq!((said.gate, said.order), (MergeGate::Pending, None));
    assert_eq!(said.why, "the Pipeline is suspended");
    // Its PullRequests are looked at.
    assert_ne!(owner::words(&owner), owner::words(&before));
}
