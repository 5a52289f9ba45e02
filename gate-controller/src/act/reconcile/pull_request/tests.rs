//! Looks at a PullRequest, on an API server that is played. There is no forge: its Secret is not there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use http::{Method, Request, Response};
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::json;
use sluice_core::delivery::pull_request::{Errand, Outcome as Done, Recent, Task, Telling, Word};
use sluice_crds::pipeline::{MergeGate, MergeMethod};
use sluice_crds::pull_request::PullRequestState;
use sluice_crds::{Pipeline, PullRequest, PullRequestStatus};
use sluice_forges::Urgency;
use tokio::time::timeout;
use tower::service_fn;

use super::at_forges::{is_still_ordered, urgency};
use super::owners::Found;
use crate::act::reconcile::gated_source::tests::{context, world};
use crate::act::reconcile::{Context, Outcome};
use crate::act::shard::Shard;
use crate::cluster::failure;
use crate::cluster::key::ObjectKey;
use crate::cluster::kind::Kind;
use crate::observe::cache::Seen;
use crate::observe::clock::SetClock;

mod strategies;

const NOON: &str = "2026-11-20T12:00:00Z";

fn object() -> PullRequest {
    serde_json::from_value(json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "PullRequest",
        "metadata": {
            "namespace": "prod", "name": "podinfo-c09809a5f3e3", "resourceVersion": "5",
            "generation": 1,
        },
        "spec": {
            "repository": {
                "type": "gitea", "url": "https://git.example.com/platform/apps",
                "secretRef": {"name": "git-token"},
            },
            "sourceBranch": "sluice/c635ae596c75/c09809a5f3e3", "targetBranch": "main",
            "title": "Promote podinfo",
            "change": {"markers": {
                "name": "prod:podinfo:prod", "revision": "6.1.6", "paths": ["prod.yaml"],
            }},
            "about": {
                "kind": "Pipeline", "name": "podinfo", "environment": "prod",
                "revision": "6.1.6", "run": 7, "key": "c09809a5f3e3",
            },
        },
    }))
    .unwrap()
}

/// Its owner, which wants it.
fn owner() -> Pipeline {
    serde_json::from_value(json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Pipeline",
        "metadata": {"namespace": "prod", "name": "podinfo", "resourceVersion": "5"},
        "spec": {"appRef": {"kind": "HelmRelease", "name": "podinfo"}, "environments": [{
            "name": "prod", "targets": [{"namespace": "prod"}],
            "promotion": {"strategy": {"pull-request": {
                "type": "gitea", "url": "https://git.example.com/platform/apps",
                "secretRef": {"name": "git-token"}, "paths": ["prod.yaml"],
            }}},
        }]},
        "status": {"environments": {"prod": {
            "state": "Promoting",
            "promotion": {
                "run": 7, "revision": "6.1.6", "key": "c09809a5f3e3", "phase": "Attempting",
                "at": NOON, "pullRequest": {"name": "podinfo-c09809a5f3e3"},
            },
        }}},
    }))
    .unwrap()
}

/// What the API server was asked, and whether it refuses writes.
#[derive(Default)]
struct Api {
    refuses: AtomicBool,
    /// Whether it fails to give Secrets.
    fails: AtomicBool,
    writes: AtomicUsize,
    secrets: AtomicUsize,
    /// The namespace of the last Secret that was read.
    of: Mutex<String>,
}

fn client(api: &Arc<Api>) -> Client {
    let api = Arc::clone(api);
    let service = service_fn(move |request: Request<Body>| {
        let refusal = |code: u16, reason: &str| {
            let status = json!({
                "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
                "reason": reason, "message": reason,
            });
            (code, status)
        };
        let (code, answer) = match *request.method() == Method::GET {
            true => {
                let path: Vec<_> = request.uri().path().split('/').collect();
                assert!(path.ends_with(&["secrets", "git-token"]), "{path:?}");
                path[4].clone_into(&mut api.of.lock());
                api.secrets.fetch_add(1, SeqCst);
                match api.fails.load(SeqCst) {
                    true => refusal(503, "ServiceUnavailable"),
                    false => refusal(404, "NotFound"),
                }
            }
            false if api.refuses.load(SeqCst) => refusal(409, "Conflict"),
            false => {
                let version = api.writes.fetch_add(1, SeqCst) + 10;
                let path: Vec<_> = request.uri().path().split('/').collect();
                let metadata = json!({
                    "namespace": path[5], "name": path[7],
                    "resourceVersion": version.to_string(),
                });
                (200, json!({ "metadata": metadata }))
            }
        };
        let body = Body::from(answer.to_string().into_bytes());
        let answer = Response::builder().status(code).body(body).unwrap();
        async move { Ok::<_, std::convert::Infallible>(answer) }
    });
    Client::new(service, "prod")
}

struct Scene {
    context: Context,
    clock: Arc<SetClock>,
    api: Arc<Api>,
    key: ObjectKey,
}

impl Scene {
    fn new() -> Self {
        let scene = Self::of(object());
        scene.owned(Some(owner()));
        scene
    }

    fn of(object: PullRequest) -> Self {
        let clock = Arc::new(SetClock::new(NOON.parse().unwrap()));
        let api = Arc::<Api>::default();
        let context = context(client(&api), world(), clock.clone());
        let key = ObjectKey::of(&object);
        let scene = Self {
            context,
            clock,
            api,
            key,
        };
        let seen = Some(Seen::Object(Arc::new(object)));
        scene.context.world.pull_requests.hold(&scene.key, seen);
        scene
    }

    fn owned(&self, owner: Option<Pipeline>) {
        let key = self.key.naming(None, "podinfo");
        let owner = owner.map(|owner| Seen::Object(Arc::new(owner)));
        self.context.world.pipelines.hold(&key, owner);
    }

    /// This process looks at nothing else.
    fn looks_at(&mut self, kind: &str) {
        let shard = Shard::default().of_kinds(&[kind.to_owned()]);
        self.context.shard = shard.unwrap();
    }

    fn found(&self) -> Option<Found> {
        Found::of(&self.context.world, &self.key, &object().spec.about)
    }

    fn status(&self) -> PullRequestStatus {
        let seen = self.context.world.pull_requests.get(self.key.borrowed());
        let object = seen.as_ref().and_then(Seen::object).cloned().unwrap();
        object.status.clone().unwrap_or_default()
    }

    async fn look(&self) -> Result<Option<Timestamp>, kube::Error> {
        let seen = self.context.world.pull_requests.get(self.key.borrowed());
        let object = seen.as_ref().and_then(Seen::object).cloned().unwrap();
        let at = self.context.clock.now();
        let outcome = super::look(&self.context, &self.key, object, at).await?;
        let Outcome::Wake(wake) = outcome else {
            panic!("{outcome:?}");
        };
        Ok(wake)
    }

    /// Waits until the errand is over.
    async fn over(&self) {
        let over = async {
            while !matches!(self.context.at_forges.errand(&self.key), Errand::Over(_)) {
                tokio::task::yield_now().await;
            }
        };
        timeout(Duration::from_secs(30), over).await.unwrap();
    }

    fn read(&self) -> usize {
        self.api.secrets.load(SeqCst)
    }
}

#[tokio::test]
async fn nothing_is_begun_before_its_status_was_accepted() {
    let scene = Scene::new();
    scene.api.refuses.store(true, SeqCst);
    for _ in 0..2 {
        let error = scene.look().await.unwrap_err();
        assert!(failure::is_overtaken(&error), "{error}");
        assert_eq!(scene.context.at_forges.errand(&scene.key), Errand::None);
    }
    scene.api.refuses.store(false, SeqCst);
    scene.look().await.unwrap();
    assert_eq!(scene.status().state, Some(PullRequestState::Pending));
    scene.over().await;
    assert_eq!(scene.read(), 1);
}

#[tokio::test]
async fn an_outcome_is_kept_until_a_status_says_it() {
    let scene = Scene::new();
    scene.look().await.unwrap();
    scene.over().await;
    scene.api.refuses.store(true, SeqCst);
    let kept = scene.context.at_forges.errand(&scene.key);
    assert!(scene.look().await.is_err());
    assert_eq!(scene.context.at_forges.errand(&scene.key), kept);
    scene.api.refuses.store(false, SeqCst);
    let wake = scene.look().await.unwrap();
    let status = scene.status();
    assert_eq!(status.outcome.as_deref(), Some("SecretNotUsable"));
    let message = status.message.as_deref();
    assert_eq!(message, Some("there is no Secret prod/git-token"));
    let next = scene.context.clock.now() + SignedDuration::from_secs(10);
    assert_eq!(wake, Some(next));
    assert_eq!(scene.context.at_forges.errand(&scene.key), Errand::None);

    // Until then nothing is written or asked.
    let written = scene.api.writes.load(SeqCst);
    scene.look().await.unwrap();
    assert_eq!((scene.api.writes.load(SeqCst), scene.read()), (written, 1));
    scene.clock.set(next);
    scene.look().await.unwrap();
    scene.over().await;
    assert_eq!(scene.read(), 2);
}

#[tokio::test]
async fn without_an_owner_that_wants_it_nothing_is_begun() {
    let scene = Scene::new();
    scene.owned(None);
    scene.look().await.unwrap();
    assert_eq!(scene.context.at_forges.errand(&scene.key), Errand::None);
    let conditions = scene.status().conditions;
    assert!(conditions.iter().any(|it| it.reason == "NotWanted"));
}

#[tokio::test]
async fn who_asks_for_a_look_is_heard_once() {
    let mut scene = Scene::new();
    let desk = Arc::clone(&scene.context.at_forges);
    desk.look_now(&scene.context, &scene.key);
    scene.api.refuses.store(true, SeqCst);
    // The question survives a status that is refused.
    assert!(scene.look().await.is_err());
    assert!(desk.recent(&scene.key).is_asked_for);
    assert_eq!(desk.take_asked(&scene.key), None);
    // Nothing is kept of one that is not here, or that another process looks at.
    desk.look_now(&scene.context, &scene.key.naming(None, "other"));
    assert_eq!(desk.take_asked(&scene.key.naming(None, "other")), None);
    scene.looks_at("Pipeline");
    desk.look_now(&scene.context, &scene.key);
    assert_eq!(desk.take_asked(&scene.key), None);
}

/// What waits for its turn makes room for what is more urgent. What was sent does not.
#[tokio::test]
async fn what_has_sent_nothing_is_ended_by_the_next_task() {
    let scene = Scene::new();
    let desk = &scene.context.at_forges;
    let edit = Task::Edit {
        number: 7,
        title: String::new(),
        description: String::new(),
    };
    let withdrawal = Task::SetStatus(Telling {
        commit: "a".repeat(40),
        context: "sluice".to_owned(),
        gate: MergeGate::Pending,
        why: String::new(),
    });
    let begin = |task: &Task| {
        let object = Arc::new(object());
        desk.begin(&scene.context, &scene.key, object, task.clone());
    };
    let under_way = |task: &Task, is_sent| {
        let task = task.clone();
        assert_eq!(desk.errand(&scene.key), Errand::UnderWay { task, is_sent });
    };
    begin(&edit);
    under_way(&edit, false);
    let ended = desk.claim(&scene.key).unwrap();
    begin(&withdrawal);
    under_way(&withdrawal, false);
    assert!(!ended.send());
    assert!(desk.claim(&scene.key).unwrap().send());
    begin(&edit);
    under_way(&withdrawal, true);
    scene.over().await;
    desk.accepted(&scene.key);
    begin(&edit);
    under_way(&edit, false);
}

#[tokio::test]
async fn nothing_is_remembered_of_one_that_is_gone_or_that_others_lead() {
    let scene = Scene::new();
    let desk = &scene.context.at_forges;
    let remembered = || Recent {
        is_asked_for: true,
        ..Recent::default()
    };
    desk.remember(&scene.key, remembered());
    desk.look_now(&scene.context, &scene.key);
    desk.forget(&scene.key);
    assert_eq!(desk.recent(&scene.key), Recent::default());
    assert_eq!(desk.take_asked(&scene.key), None);
    scene.look().await.unwrap();
    desk.remember(&scene.key, remembered());
    desk.look_now(&scene.context, &scene.key);
    desk.decided(
        &scene.context,
        Kind::Pipeline,
        &scene.key.naming(None, "podinfo"),
    );
    desk.clear();
    assert_eq!(desk.take_asked(&scene.key), None);
    assert!(!desk.is_current(&scene.context, &scene.found().unwrap()));
    assert_eq!(desk.recent(&scene.key), Recent::default());
    assert_eq!(desk.errand(&scene.key), Errand::None);
}

#[tokio::test]
async fn an_owner_speaks_for_this_leader_once_it_was_decided_about() {
    let mut scene = Scene::new();
    let desk = Arc::clone(&scene.context.at_forges);
    let key = scene.key.naming(None, "podinfo");
    let is_current = |scene: &Scene| desk.is_current(&scene.context, &scene.found().unwrap());
    assert!(!is_current(&scene));
    // Another kind may have one of the same name.
    desk.decided(&scene.context, Kind::PromotionStrategy, &key);
    assert!(!is_current(&scene));
    desk.decided(&scene.context, Kind::Pipeline, &key);
    assert!(is_current(&scene));
    desk.forget_owner(Kind::Pipeline, &key);
    assert!(!is_current(&scene));
    // Another process decides about it, which has a leader of its own.
    scene.looks_at("PullRequest");
    assert!(is_current(&scene));
}

#[tokio::test]
async fn a_merge_needs_its_order_until_it_is_sent() {
    let scene = Scene::new();
    let commit = "a".repeat(40);
    let merge = Task::Merge {
        number: 7,
        commit: commit.clone(),
        method: None,
        hold_label: None,
        not_after: NOON.parse().unwrap(),
    };
    let may = |task: &Task| is_still_ordered(&scene.context.world, &scene.key, &object(), task);
    let ordered = |head: &str| {
        let mut owner = owner();
        let status = owner.status.as_mut().unwrap();
        let environment = status.environments.get_mut("prod").unwrap();
        let order = json!({
            "key": "c09809a5f3e3", "pullRequest": "podinfo-c09809a5f3e3", "headSHA": head,
            "at": NOON, "notAfter": NOON,
        });
        environment.promotion.as_mut().unwrap().order = serde_json::from_value(order).unwrap();
        owner
    };
    assert!(!may(&merge));
    scene.owned(Some(ordered(&commit)));
    assert!(may(&merge));
    // The order that it was begun by has ended later, or in another way.
    for (end, method) in [
        ("2026-11-20T12:00:01Z", None),
        (NOON, Some(MergeMethod::Squash)),
    ] {
        let mut earlier = merge.clone();
        if let Task::Merge {
            method: how,
            not_after,
            ..
        } = &mut earlier
        {
            (*how, *not_after) = (method, end.parse().unwrap());
        }
        assert!(!may(&earlier));
    }
    scene.owned(Some(ordered(&"b".repeat(40))));
    assert!(!may(&merge));
    scene.owned(None);
    assert!(!may(&merge));
    // Nothing else needs one.
    assert!(may(&Task::Commit));
}

#[test]
fn merges_and_what_lets_them_be_merged_come_before_what_is_opened() {
    let shows = |gate: Option<MergeGate>| {
        let mut object = object();
        object.status.get_or_insert_default().commit_status = gate;
        object
    };
    let says = |gate| {
        Task::SetStatus(Telling {
            commit: "a".repeat(40),
            context: "sluice".to_owned(),
            gate,
            why: String::new(),
        })
    };
    let merge = Task::Merge {
        number: 7,
        commit: "a".repeat(40),
        method: None,
        hold_label: None,
        not_after: NOON.parse().unwrap(),
    };
    let delete = Task::DeleteBranch { commit: None };
    let urgent = |gate| urgency(&shows(gate), &says(MergeGate::Pending));
    assert_eq!(urgent(Some(MergeGate::Success)), Urgency::Withdrawal);
    // It takes nothing back.
    assert_eq!(urgent(Some(MergeGate::Pending)), Urgency::Status);
    assert_eq!(urgent(None), Urgency::Status);
    for (task, expected) in [
        (says(MergeGate::Success), Urgency::Merge),
        (merge, Urgency::Merge),
        (Task::Open { commit: None }, Urgency::Opening),
        (delete, Urgency::Other),
    ] {
        assert_eq!(urgency(&shows(None), &task), expected, "{task:?}");
    }
}

/// Its Secret cannot be read.
#[tokio::test]
async fn a_merge_that_never_left_is_told_as_such() {
    let merge = Task::Merge {
        number: 7,
        commit: "a".repeat(40),
        method: None,
        hold_label: None,
        not_after: "2026-11-20T12:01:00Z".parse().unwrap(),
    };
    for task in [merge, Task::Commit] {
        let scene = Scene::new();
        scene.api.fails.store(true, SeqCst);
        let desk = &scene.context.at_forges;
        desk.begin(&scene.context, &scene.key, Arc::new(object()), task.clone());
        scene.over().await;
        let Errand::Over(over) = desk.errand(&scene.key) else {
            panic!("it is not over");
        };
        let (failure, is_unsent) = match over.1 {
            Done::Unsent(failure) => (failure, true),
            Done::Failed(failure) => (failure, false),
            other => panic!("{other:?}"),
        };
        assert_eq!(failure.word, Word::Unanswered, "{failure:?}");
        assert_eq!(is_unsent, matches!(task, Task::Merge { .. }));
    }
}

#[tokio::test]
async fn an_api_server_that_does_not_answer_is_no_fault_of_the_secret() {
    let scene = Scene::new();
    scene.api.fails.store(true, SeqCst);
    scene.look().await.unwrap();
    scene.over().await;
    scene.look().await.unwrap();
    let status = scene.status();
    assert_eq!(status.outcome.as_deref(), Some("Unanswered"));
    assert!(status.conditions.iter().all(|it| it.type_ != "Stalled"));
}
