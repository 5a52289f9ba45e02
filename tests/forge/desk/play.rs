//! A PullRequest that is looked at as the controller does it: each status is accepted here, or is lost.

use std::sync::Arc;

use http::Method;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};
use sluice_core::delivery::pull_request::{
    Errand, Given, Looked, Outcome, Recent, Says, Task, report,
};
use sluice_crds::pipeline::{MergeGate, Order};
use sluice_crds::pull_request::PullRequestState;
use sluice_crds::{PullRequest, PullRequestStatus};
use sluice_forges::Sha;
use sluice_tests::poll;
use tokio::time::Instant;

use gate_controller::act::reconcile::pull_request::lists::Lists;
use gate_controller::act::reconcile::pull_request::task::{Desk, perform};
use gate_controller::observe::clock::{Clock, SetClock};

use crate::scene::{DEADLINE, FILE, Scene, branch, soon};

pub(super) const BRANCH: &str = "sluice/a6a8ea3ca7a1/77aa00112233";

/// What stands in the file, and what has to stand there afterwards.
pub(super) const BEFORE: &str = "\u{feff}# Values\r\nimage: nginx # 1.0\nchart:\n  version: '6.1.0' # \
    {\"$promotion\": \"flux-system:podinfo:prod\"}\r\n---\nlast: true";
pub(super) const AFTER: &str = "\u{feff}# Values\r\nimage: nginx # 1.0\nchart:\n  version: '6.1.6' # \
    {\"$promotion\": \"flux-system:podinfo:prod\"}\r\n---\nlast: true";

/// After so many tasks, something goes round in circles.
const MOST_TASKS: usize = 20;

pub(super) struct Play {
    pub(super) scene: Scene,
    pub(super) object: PullRequest,
    /// The target branch before anything was merged.
    pub(super) base: Sha,
    owner: Option<Says>,
    recent: Recent,
    over: Errand,
    /// How often a commit status was set. Counted here: Gitea was seen to list fewer.
    pub(super) statuses: usize,
    lists: Lists,
    clock: SetClock,
}

impl Play {
    pub(super) async fn new(name: &str) -> Self {
        let scene = Scene::new(name).await;
        let base = scene.push("main", FILE, BEFORE.as_bytes()).await.unwrap();
        let url = scene.gitea.url(sluice_tests::gitea::OWNER, name);
        let object = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "PullRequest",
            "metadata": {
                "namespace": "flux-system", "name": "podinfo-77aa00112233", "generation": 1,
            },
            "spec": {
                "repository": {"type": "gitea", "url": url, "secretRef": {"name": "git-token"}},
                "sourceBranch": BRANCH, "targetBranch": "main",
                "title": "Promote flux-system/podinfo to 6.1.6 in prod", "description": "To 6.1.6.",
                "change": {"markers": {
                    "name": "flux-system:podinfo:prod", "revision": "6.1.6", "paths": [FILE],
                }},
                "about": {
                    "kind": "Pipeline", "name": "podinfo", "environment": "prod",
                    "revision": "6.1.6", "run": 7, "key": "77aa00112233",
                },
            },
        });
        let mut play = Self {
            scene,
            object: serde_json::from_value(object).unwrap(),
            base,
            owner: None,
            recent: Recent::default(),
            over: Errand::None,
            statuses: 0,
            lists: Lists::default(),
            clock: SetClock::new("2026-11-20T12:00:00Z".parse().unwrap()),
        };
        play.says(MergeGate::Pending);
        play
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(super) fn pass(&self, seconds: i64) {
        self.clock
            .set(self.now() + SignedDuration::from_secs(seconds));
    }

    pub(super) fn status(&self) -> PullRequestStatus {
        self.object.status.clone().unwrap_or_default()
    }

    pub(super) fn number(&self) -> u64 {
        self.status().id.unwrap().try_into().unwrap()
    }

    pub(super) fn says(&mut self, gate: MergeGate) {
        self.owner = Some(Says {
            gate,
            why: "closed until Monday".to_owned(),
            order: None,
        });
    }

    /// The owner orders the merge of the commit, within a minute.
    pub(super) fn order(&mut self, change: impl FnOnce(Order) -> Order) {
        self.says(MergeGate::Success);
        let now = self.now();
        let order = Order {
            key: "77aa00112233".to_owned(),
            pull_request: "podinfo-77aa00112233".to_owned(),
            head_sha: self.status().commit_sha.unwrap(),
            method: None,
            at: Time(now),
            not_after: Time(now + SignedDuration::from_secs(60)),
        };
        let order = Some(change(order));
        self.owner = self.owner.take().map(|owner| Says { order, ..owner });
    }

    pub(super) fn look_now(&mut self) {
        self.pass(6);
        self.recent.is_asked_for = true;
    }

    fn looked(&self) -> Looked {
        report(Given {
            object: Arc::new(self.object.clone()),
            owner: self.owner.clone(),
            is_owner_current: true,
            recent: self.recent.clone(),
            errand: self.over.clone(),
            now: self.now(),
        })
    }

    /// A look: its status is accepted. Returns what is to be done.
    pub(super) fn begin(&mut self) -> Option<Task> {
        let looked = self.looked();
        self.object.status = Some(looked.report.status);
        (self.recent, self.over) = (looked.recent, Errand::None);
        looked.report.acts.into_iter().next()
    }

    pub(super) async fn perform(&self, task: &Task) -> Outcome {
        let desk = Desk {
            forge: &self.scene.forge,
            lists: &self.lists,
            clock: &self.clock,
            may_act: &|| Some(soon()),
        };
        perform(&desk, &self.object, task).await
    }

    pub(super) fn take(&mut self, task: Task, outcome: Outcome) {
        self.over = Errand::Over(Box::new((task, outcome)));
    }

    /// A look, and what it begins.
    pub(super) async fn step(&mut self) -> Option<(Task, Outcome)> {
        let task = self.begin()?;
        let outcome = self.perform(&task).await;
        self.statuses += usize::from(matches!(task, Task::SetStatus { .. }));
        self.take(task.clone(), outcome.clone());
        Some((task, outcome))
    }

    /// The outcome gets into the status.
    pub(super) fn accept(&mut self) {
        let looked = self.looked();
        self.object.status = Some(looked.report.status);
        (self.recent, self.over) = (looked.recent, Errand::None);
    }

    /// The process ends before the outcome is in a status, and another one begins to lead.
    pub(super) fn die(&mut self) {
        (self.recent, self.over) = (Recent::default(), Errand::None);
        self.lists = Lists::default();
    }

    /// The status is lost, as in a backup.
    pub(super) fn lose(&mut self) {
        self.die();
        self.object.status = None;
    }

    /// Orders are given until it is merged: for a moment after a push the forge may not be ready.
    pub(super) async fn merged(&mut self) {
        let end = Instant::now() + DEADLINE;
        while self.status().state != Some(PullRequestState::Merged) {
            assert!(Instant::now() < end, "{:?}", self.object.status);
            self.pass(6);
            self.order(|order| order);
            self.settle().await;
        }
    }

    /// Goes on until nothing is to be done now.
    pub(super) async fn settle(&mut self) {
        for _ in 0..MOST_TASKS {
            if self.step().await.is_none() {
                return;
            }
        }
        panic!("it goes round in circles: {:?}", self.object.status);
    }

    /// What the newest commit statuses of our commit say.
    pub(super) async fn shown(&self) -> Vec<String> {
        let path = format!("/commits/{}/status", self.status().commit_sha.unwrap());
        let seen = self
            .scene
            .ask(Method::GET, &path, Value::Null)
            .await
            .unwrap();
        let statuses = seen["statuses"].as_array().into_iter().flatten();
        let ours = statuses.filter(|it| it["context"] == "sluice/gate/flux-system/podinfo/prod");
        ours.map(|it| it["status"].as_str().unwrap().to_owned())
            .collect()
    }

    /// How many pull requests there have ever been.
    pub(super) async fn pulls(&self) -> usize {
        let seen = self
            .scene
            .ask(Method::GET, "/pulls?state=all", Value::Null)
            .await;
        seen.unwrap().as_array().unwrap().len()
    }

    pub(super) async fn merge_as_person(&self, style: &str) {
        self.merge_with(json!({"Do": style})).await;
    }

    pub(super) async fn merge_with(&self, body: Value) {
        let path = format!("/pulls/{}", self.number());
        poll(DEADLINE, "the forge to be ready", async || {
            // Reading it is what starts a check.
            self.scene.ask(Method::GET, &path, Value::Null).await?;
            self.scene
                .ask(Method::POST, &format!("{path}/merge"), body.clone())
                .await
        })
        .await
        .unwrap();
    }

    pub(super) async fn delete_branch(&self) {
        self.scene
            .forge
            .delete_branch(&branch(BRANCH), soon())
            .await
            .unwrap();
    }
}
