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

mod closing;
mod ends;
mod failures;
mod followed;
mod merges;
mod order;
mod owners;
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
