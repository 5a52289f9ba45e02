//! A PullRequest that is looked at as the controller does it: each status is accepted here, or is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use http::Method;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};
use sluice_core::delivery::pull_request::{
    Errand, Given, Key, Looked, Outcome, Promotion, Recent, Says, Task, report, words,
};
use sluice_crds::pipeline::{ForgeType, MergeGate, Order, PromotionRecord};
use sluice_crds::pull_request::PullRequestState;
use sluice_crds::{Pipeline, PromotionStrategy, PullRequest, PullRequestStatus};
use sluice_forges::Sha;
use sluice_tests::{conformance, poll};
use tokio::time::Instant;

use gate_controller::act::forges::Located;
use gate_controller::act::reconcile::pull_request::lists::Lists;
use gate_controller::act::reconcile::pull_request::task::{Desk, perform};
use gate_controller::observe::clock::{Clock, SetClock};

use crate::scene::{DEADLINE, FILE, Scene, branch, soon};

/// What stands in the file, and what has to stand there afterwards.
pub(super) const BEFORE: &str = "\u{feff}# Values\r\nimage: nginx # 1.0\nchart:\n  version: '6.1.0' # \
    {\"$promotion\": \"flux-system:podinfo:prod\"}\r\n---\nlast: true";
pub(super) const AFTER: &str = "\u{feff}# Values\r\nimage: nginx # 1.0\nchart:\n  version: '6.1.6' # \
    {\"$promotion\": \"flux-system:podinfo:prod\"}\r\n---\nlast: true";

/// After so many tasks, something goes round in circles.
const MOST_TASKS: usize = 20;

/// Its owner.
pub(super) enum Owned {
    /// It remembers the commit as soon as a status says it.
    Pipeline(Box<Pipeline>),
    Strategy(Box<PromotionStrategy>),
}

pub(super) struct Play {
    pub(super) scene: Scene,
    pub(super) object: PullRequest,
    /// The target branch before anything was merged.
    pub(super) base: Sha,
    owner: Owned,
    at: Located,
    /// How many of the next statuses the API server refuses.
    refuses: usize,
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
        // As the controller makes it.
        let parts = [
            "flux-system",
            "podinfo",
            "prod",
            "7",
            "6.1.6",
            "pull-request",
            "gitea",
        ];
        let parts = parts
            .into_iter()
            .chain([url.as_str(), "git-token", "main", FILE]);
        let key = Key::of(&parts.collect::<Vec<_>>()).to_string();
        let promotion = Promotion {
            namespace: "flux-system",
            pipeline: "podinfo",
            environment: "prod",
        };
        let object_name = format!("podinfo-{key}");
        let object = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "PullRequest",
            "metadata": {"namespace": "flux-system", "name": object_name, "generation": 1},
            "spec": {
                "repository": {"type": "gitea", "url": url, "secretRef": {"name": "git-token"}},
                "sourceBranch": words::branch(&promotion, &key), "targetBranch": "main",
                "title": "Promote flux-system/podinfo to 6.1.6 in prod", "description": "To 6.1.6.",
                "change": {"markers": {
                    "name": "flux-system:podinfo:prod", "revision": "6.1.6", "paths": [FILE],
                }},
                "about": {
                    "kind": "Pipeline", "name": "podinfo", "environment": "prod",
                    "revision": "6.1.6", "run": 7, "key": key,
                },
            },
        });
        let owner = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Pipeline",
            "metadata": {"namespace": "flux-system", "name": "podinfo"},
            "spec": {
                "appRef": {"kind": "HelmRelease", "name": "podinfo"},
                "environments": [{
                    "name": "prod", "targets": [{"namespace": "prod"}],
                    "promotion": {"strategy": {"pull-request": {
                        "type": "gitea", "url": url, "secretRef": {"name": "git-token"},
                        "paths": [FILE],
                    }}},
                }],
            },
            "status": {"environments": {"prod": {
                "state": "Promoting", "message": "closed until Monday",
                "promotion": {
                    "run": 7, "revision": "6.1.6", "key": key, "phase": "Attempting",
                    "at": "2026-11-20T12:00:00Z", "pullRequest": {"name": object_name},
                },
            }}},
        });
        let owner = Owned::Pipeline(serde_json::from_value(owner).unwrap());
        let object = serde_json::from_value(object).unwrap();
        Self::with(scene, object, owner, base)
    }

    pub(super) fn with(scene: Scene, mut object: PullRequest, owner: Owned, base: Sha) -> Self {
        object.metadata.generation = Some(1);
        let url = scene.gitea.url(sluice_tests::gitea::OWNER, &scene.name);
        let namespace = object.metadata.namespace.clone().unwrap();
        Self {
            at: Located::at(&namespace, ForgeType::Gitea, &url, "git-token"),
            scene,
            object,
            base,
            owner,
            refuses: 0,
            recent: Recent::default(),
            over: Errand::None,
            statuses: 0,
            lists: Lists::default(),
            clock: SetClock::new("2026-11-20T12:00:00Z".parse().unwrap()),
        }
    }

    pub(super) fn branch(&self) -> String {
        self.object.spec.source_branch.clone()
    }

    fn record(owner: &mut Pipeline) -> &mut PromotionRecord {
        let status = owner.status.as_mut().unwrap();
        let prod = status.environments.get_mut("prod").unwrap();
        prod.promotion.as_mut().unwrap()
    }

    /// What its owner says of the merge, of the commit that the branch has now.
    fn decide(&mut self, gate: MergeGate, order: Option<Order>) {
        let head = self.status().head_sha;
        match &mut self.owner {
            Owned::Pipeline(owner) => {
                let record = Self::record(owner);
                (record.gate, record.order) = (Some(gate), order);
            }
            Owned::Strategy(owner) => {
                let environment = &mut owner.status.as_mut().unwrap().environments[0];
                (environment.gate, environment.order) = (Some(gate), order);
                if let (Some(tip), Some(head)) = (&mut environment.proposed, head) {
                    tip.hydrated_sha = head;
                }
            }
        }
    }

    /// The commit that is to be merged.
    pub(super) fn head(&self) -> String {
        let PullRequestStatus {
            commit_sha,
            head_sha,
            ..
        } = self.status();
        commit_sha.or(head_sha).unwrap()
    }

    /// The API server refuses so many of the next statuses.
    pub(super) fn refuse(&mut self, statuses: usize) {
        self.refuses = statuses;
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
        self.decide(gate, None);
    }

    /// The owner orders the merge of the commit, within a minute.
    pub(super) fn order(&mut self, change: impl FnOnce(Order) -> Order) {
        let now = self.now();
        let order = Order {
            key: self.object.spec.about.key.clone(),
            pull_request: self.object.metadata.name.clone().unwrap(),
            head_sha: self.head(),
            method: None,
            at: Time(now),
            not_after: Time(now + SignedDuration::from_secs(60)),
        };
        self.decide(MergeGate::Success, Some(change(order)));
    }

    /// The owner orders the merge of another commit.
    pub(super) fn order_of(&mut self, head_sha: String) {
        let commit = self.object.status.get_or_insert_default();
        let ours = commit.commit_sha.replace(head_sha);
        self.order(|order| order);
        self.object.status.get_or_insert_default().commit_sha = ours;
    }

    pub(super) fn look_now(&mut self) {
        self.pass(6);
        self.recent.is_asked_for = true;
    }

    fn looked(&self) -> Looked {
        report(Given {
            object: Arc::new(self.object.clone()),
            owner: match &self.owner {
                Owned::Pipeline(owner) => Says::of(&self.object, owner.as_ref()),
                Owned::Strategy(owner) => Says::of(&self.object, owner.as_ref()),
            },
            is_owner_current: true,
            recent: self.recent.clone(),
            errand: self.over.clone(),
            now: self.now(),
        })
    }

    /// A look: its status is accepted, after those that are refused, and follows the rules of all statuses.
    /// Returns what is to be done.
    pub(super) fn begin(&mut self) -> Option<Task> {
        let refused: Vec<_> = (0..self.refuses).map(|_| self.looked()).collect();
        self.refuses = 0;
        let looked = self.looked();
        // What was refused has lost nothing, and begun nothing.
        assert!(refused.iter().all(|it| *it == looked), "{refused:?}");
        if let Owned::Pipeline(owner) = &mut self.owner {
            let record = Self::record(owner).pull_request.as_mut();
            record.unwrap().commit_sha = looked.report.status.commit_sha.clone();
        }
        let before = json!(self.object);
        self.object.status = Some(looked.report.status);
        let after = json!(self.object);
        let mut broken = conformance::of_a_version(&after);
        broken.extend(conformance::of_a_change(&before, &after));
        assert!(broken.is_empty(), "{broken:#?}");
        (self.recent, self.over) = (looked.recent, Errand::None);
        looked.report.acts.into_iter().next()
    }

    pub(super) async fn perform(&self, task: &Task) -> Outcome {
        let desk = Desk {
            forge: &self.scene.forge,
            at: &self.at,
            lists: &self.lists,
            clock: &self.clock,
            may_act: &|_| Some(soon()),
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
        self.begin();
    }

    /// The process ends before the outcome is in a status, and another one begins to lead.
    pub(super) fn die(&mut self) {
        (self.recent, self.over) = (Recent::default(), Errand::None);
        self.lists = Lists::default();
    }

    /// The process leads no more after so many requests that change something.
    pub(super) async fn perform_within(&self, task: &Task, requests: usize) -> Outcome {
        let sent = AtomicUsize::new(0);
        let desk = Desk {
            forge: &self.scene.forge,
            at: &self.at,
            lists: &self.lists,
            clock: &self.clock,
            may_act: &|_| (sent.fetch_add(1, SeqCst) < requests).then(soon),
        };
        perform(&desk, &self.object, task).await
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
        let context = "sluice/gate/flux-system/podinfo/prod";
        let shown = self.shown_of(&self.head(), context).await;
        shown.into_iter().map(|(state, _)| state).collect()
    }

    /// What the newest commit statuses of a commit and a name say, and why.
    pub(super) async fn shown_of(&self, commit: &str, context: &str) -> Vec<(String, String)> {
        let path = format!("/commits/{commit}/status");
        let seen = self
            .scene
            .ask(Method::GET, &path, Value::Null)
            .await
            .unwrap();
        let statuses = seen["statuses"].as_array().into_iter().flatten();
        let ours = statuses.filter(|it| it["context"] == context);
        let text = |it: &Value, field| it[field].as_str().unwrap().to_owned();
        ours.map(|it| (text(it, "status"), text(it, "description")))
            .collect()
    }

    /// How many commit statuses the forge has of our commit.
    pub(super) async fn listed(&self) -> usize {
        let path = format!(
            "/statuses/{}?sort=oldest",
            self.status().commit_sha.unwrap()
        );
        self.scene.all(&path).await.unwrap().len()
    }

    /// How many pull requests there have ever been.
    pub(super) async fn pulls(&self) -> usize {
        self.scene.all("/pulls?state=all").await.unwrap().len()
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

    /// Somebody who may push makes a commit with a file of theirs on a new branch.
    pub(super) async fn push_as(&self, branch: &str, message: &str) -> Sha {
        let body = json!({
            "branch": "main", "new_branch": branch, "message": message, "content": "YTogMQo=",
        });
        let path = "/contents/theirs.yaml";
        self.scene.ask(Method::POST, path, body).await.unwrap();
        self.scene.head(branch).await.unwrap()
    }

    pub(super) async fn delete_branch(&self) {
        self.scene
            .forge
            .delete_branch(&branch(&self.branch()), soon())
            .await
            .unwrap();
    }
}
