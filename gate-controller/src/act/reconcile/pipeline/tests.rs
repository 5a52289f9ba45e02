//! Promotion by notification, on an API server and a notification-controller that are played.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use http::{Request, Response};
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use sluice_core::delivery::pipeline::{self, Given, Outcome, Sight, Surroundings, Votes};
use sluice_core::time::clock::Now;
use sluice_crds::pipeline::{Phase, PromotionRecord};
use sluice_crds::{Pipeline, PullRequest};
use tokio::time::timeout;
use tower::service_fn;

use super::{available, gather};
use crate::act::reconcile::Context;
use crate::act::reconcile::gated_source::tests::{context, world};
use crate::act::reconcile::{Reconciled, consumer, owned};
use crate::cluster::failure;
use crate::cluster::key::ObjectKey;
use crate::observe::cache::{Progress, Seen};
use crate::observe::clock::SetClock;
use crate::tell::events::promotions::tests::{Server, dead, promotions};

const NOON: &str = "2026-11-20T12:00:00Z";

fn object(strategy: &Value) -> Pipeline {
    let environment = |name: &str| json!({"name": name, "targets": [{"namespace": name}]});
    serde_json::from_value(json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Pipeline",
        "metadata": {
            "namespace": "prod", "name": "podinfo", "resourceVersion": "5", "generation": 1,
        },
        "spec": {
            "appRef": {
                "apiVersion": "helm.toolkit.fluxcd.io/v2beta1", "kind": "HelmRelease",
                "name": "podinfo",
            },
            "promotion": {"strategy": strategy},
            "environments": [environment("dev"), environment("prod")],
        },
    }))
    .unwrap()
}

fn notification() -> Value {
    json!({"notification": {"involvedObject": "Application"}})
}

/// A HelmRelease that runs this healthily.
fn release(version: &str) -> Value {
    json!({
        "metadata": {"generation": 1},
        "status": {
            "observedGeneration": 1, "lastAttemptedRevision": version,
            "history": [{"chartVersion": version, "status": "deployed"}],
            "conditions": [{"type": "Ready", "status": "True", "message": ""}],
        },
    })
}

/// How the API server answers writes.
#[derive(Default)]
struct Answers {
    refuses: AtomicBool,
    taken: AtomicUsize,
}

fn api(answers: &Arc<Answers>) -> Client {
    let answers = Arc::clone(answers);
    let service = service_fn(move |_: Request<Body>| {
        let (code, answer) = match answers.refuses.load(SeqCst) {
            true => (
                409,
                json!({
                    "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 409,
                    "reason": "Conflict", "message": "the object has been modified",
                }),
            ),
            false => {
                let version = answers.taken.fetch_add(1, SeqCst) + 10;
                let metadata = json!({
                    "namespace": "prod", "name": "podinfo", "resourceVersion": version.to_string(),
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

/// dev runs 6.1.6 healthily, and prod is to have it.
struct Scene {
    context: Context,
    clock: Arc<SetClock>,
    api: Arc<Answers>,
    key: ObjectKey,
}

impl Scene {
    fn new(url: &reqwest::Url) -> Self {
        Self::with(url, object(&notification()))
    }

    /// A process that has just begun, and finds this.
    fn with(url: &reqwest::Url, object: Pipeline) -> Self {
        let clock = Arc::new(SetClock::new(NOON.parse().unwrap()));
        let answers = Arc::<Answers>::default();
        let mut context = context(api(&answers), world(), clock.clone());
        let promotions = promotions(url.clone(), clock.clone());
        context.promotions = Some(Arc::new(promotions));
        let scene = Self {
            key: ObjectKey::of(&object),
            context,
            clock,
            api: answers,
        };
        scene.hold(object);
        scene
    }

    fn hold(&self, object: Pipeline) {
        let seen = Some(Seen::Object(Arc::new(object)));
        self.context.world.pipelines.hold(&self.key, seen);
    }

    fn object(&self) -> Arc<Pipeline> {
        let seen = self.context.world.pipelines.get(self.key.borrowed());
        let Some(Seen::Object(object)) = seen else {
            panic!("it is not there");
        };
        object
    }

    fn suspend(&self, suspend: bool) {
        let mut object = (*self.object()).clone();
        object.spec.suspend = suspend;
        object.metadata.generation = object.metadata.generation.map(|it| it + 1);
        self.hold(object);
    }

    /// Looks once.
    async fn look(&self) -> Result<(), kube::Error> {
        let object = self.object();
        let reader = Arc::new(pipeline::check(&object).unwrap());
        let now = Now::given(self.clock_now());
        let environments = object.spec.environments.iter().zip(["6.1.6", "6.1.0"]);
        let environments = environments.map(|(environment, version)| Surroundings {
            targets: vec![Sight::Here(Arc::new(reader.read(&release(version))))],
            ..gather::surroundings(&self.context, &object, environment, now)
        });
        let considered = pipeline::consider(Given {
            environments: environments.collect(),
            checked: Ok(Arc::clone(&reader)),
            pull_requests: Vec::new(),
            votes: Votes::default(),
            errands: gather::errands(&self.context, &self.key),
            clusters: Vec::new(),
            object: Arc::clone(&object),
            now,
        });
        let asked = considered.asked().iter();
        let recorded: Vec<_> = asked.map(|asked| asked.decision.clone()).collect();
        let report = pipeline::report(considered, &recorded);
        let applied = consumer::apply(&self.context, &self.key, &object, report);
        applied.await.map(drop)
    }

    fn clock_now(&self) -> Timestamp {
        self.context.clock.now()
    }

    fn outcomes(&self) -> Vec<Outcome> {
        let errands = gather::errands(&self.context, &self.key);
        errands.into_values().collect()
    }

    /// Waits until no errand is under way.
    async fn ends(&self) {
        let over = async {
            while self.outcomes().contains(&Outcome::UnderWay) {
                tokio::task::yield_now().await;
            }
        };
        let deadline = Duration::from_secs(20);
        timeout(deadline, over).await.expect("the end of an errand");
    }

    /// Looks, and once more when what was begun has ended.
    async fn settles(&self) {
        self.look().await.unwrap();
        self.ends().await;
        self.look().await.unwrap();
    }

    fn record(&self) -> PromotionRecord {
        let object = self.object();
        let prod = &object.status.as_ref().unwrap().environments["prod"];
        prod.promotion.clone().unwrap()
    }
}

#[tokio::test]
async fn it_is_sent_once_after_the_status_was_accepted() {
    let server = Server::new(&[]).await;
    let scene = Scene::new(&server.url);
    scene.look().await.unwrap();
    let record = scene.record();
    assert_eq!(record.phase, Phase::Attempting);
    scene.ends().await;
    assert_eq!(scene.outcomes(), [Outcome::Done]);
    scene.look().await.unwrap();
    let sent = scene.record();
    assert_eq!(
        (sent.phase, sent.reason.as_deref()),
        (Phase::Succeeded, Some("Sent"))
    );
    // The status says it now.
    assert_eq!(scene.outcomes(), []);
    for _ in 0..3 {
        scene.settles().await;
    }
    assert_eq!(scene.api.taken.load(SeqCst), 2);
    let seen = server.seen();
    assert_eq!(seen.len(), 1);
    let involved = json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "namespace": "prod",
        "name": "podinfo",
    });
    assert_eq!(seen[0]["involvedObject"], involved);
    assert_eq!(seen[0]["message"], "Promote podinfo 6.1.6 to prod");
    let metadata = json!({
        "helm.toolkit.fluxcd.io/revision": "6.1.6",
        "helm.toolkit.fluxcd.io/token": record.key,
        "event.toolkit.fluxcd.io/pipeline": "prod/podinfo",
        "event.toolkit.fluxcd.io/environment": "prod",
    });
    assert_eq!(seen[0]["metadata"], metadata);
}

#[tokio::test]
async fn without_a_word_it_is_about_the_pipeline() {
    let server = Server::new(&[]).await;
    let mut object = object(&json!({"notification": {}}));
    object.metadata.uid = Some("u-1".to_owned());
    let scene = Scene::with(&server.url, object);
    scene.settles().await;
    let seen = server.seen();
    let involved = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Pipeline", "namespace": "prod",
        "name": "podinfo", "uid": "u-1",
    });
    assert_eq!(seen[0]["involvedObject"], involved);
    assert_eq!(seen[0]["metadata"]["sluice.dev/revision"], "6.1.6");
}

#[tokio::test]
async fn a_duplicate_was_sent_before() {
    let server = Server::new(&[(429, Some("300"))]).await;
    let scene = Scene::new(&server.url);
    scene.settles().await;
    assert_eq!(scene.record().phase, Phase::Succeeded);
}

#[tokio::test]
async fn a_failure_is_tried_again_when_it_is_time() {
    let server = Server::new(&[(500, None), (503, Some("600"))]).await;
    let scene = Scene::new(&server.url);
    for (attempts, wait) in [(1, 10), (2, 600)] {
        scene.settles().await;
        let record = scene.record();
        assert_eq!((record.phase, record.attempts), (Phase::Failed, attempts));
        let why = record.message.unwrap();
        assert!(why.contains("has not taken it: status 50"), "{why}");
        let next = record.next_attempt_at.unwrap().0;
        let expected = scene.clock_now() + SignedDuration::from_secs(wait);
        assert_eq!(next, expected);
        scene.clock.step(next - SignedDuration::from_secs(1));
        scene.settles().await;
        assert_eq!(server.seen().len(), attempts as usize);
        scene.clock.step(next);
    }
    scene.settles().await;
    assert_eq!(scene.record().phase, Phase::Succeeded);
    let seen = server.seen();
    let token = |n: usize| &seen[n]["metadata"]["helm.toolkit.fluxcd.io/token"];
    assert_eq!(seen.len(), 3);
    assert!(token(0) == token(1) && token(1) == token(2), "{seen:?}");
}

#[tokio::test]
async fn where_nobody_listens_the_status_says_so_and_when_it_is_tried_again() {
    let scene = Scene::new(&dead().await);
    scene.settles().await;
    let record = scene.record();
    assert_eq!(record.phase, Phase::Failed);
    let why = record.message.unwrap();
    assert!(why.contains("connection refused"), "{why}");
    assert!(record.next_attempt_at.is_some());
}

#[tokio::test]
async fn a_status_that_is_refused_begins_nothing() {
    let server = Server::new(&[]).await;
    let scene = Scene::new(&server.url);
    scene.api.refuses.store(true, SeqCst);
    let refused = scene.look().await.unwrap_err();
    assert!(failure::is_overtaken(&refused));
    assert_eq!(scene.outcomes(), []);
    scene.api.refuses.store(false, SeqCst);
    scene.settles().await;
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn an_outcome_is_kept_until_the_status_that_says_it_is_accepted() {
    let server = Server::new(&[]).await;
    let scene = Scene::new(&server.url);
    scene.look().await.unwrap();
    scene.ends().await;
    scene.api.refuses.store(true, SeqCst);
    for _ in 0..2 {
        assert!(scene.look().await.is_err());
        assert_eq!(scene.outcomes(), [Outcome::Done]);
        assert_eq!(scene.record().phase, Phase::Attempting);
    }
    scene.api.refuses.store(false, SeqCst);
    scene.look().await.unwrap();
    assert_eq!(
        (scene.record().phase, scene.outcomes()),
        (Phase::Succeeded, vec![])
    );
    assert_eq!(server.seen().len(), 1);
}

/// A status that is written for another reason does not say what has become of it.
#[tokio::test]
async fn an_outcome_is_kept_while_the_pipeline_is_suspended() {
    let server = Server::new(&[]).await;
    let scene = Scene::new(&server.url);
    scene.look().await.unwrap();
    scene.suspend(true);
    scene.ends().await;
    let before = scene.api.taken.load(SeqCst);
    scene.look().await.unwrap();
    assert_eq!(scene.api.taken.load(SeqCst), before + 1);
    assert_eq!(scene.outcomes(), [Outcome::Done]);
    scene.suspend(false);
    scene.settles().await;
    assert_eq!(scene.record().phase, Phase::Succeeded);
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn a_restart_between_the_status_and_the_notification_sends_it() {
    // The first process is killed before its notification arrives.
    let first = Scene::new(&dead().await);
    first.look().await.unwrap();
    let left = (*first.object()).clone();
    let record = first.record();
    drop(first);
    let server = Server::new(&[]).await;
    let second = Scene::with(&server.url, left);
    second.settles().await;
    let sent = second.record();
    assert_eq!((sent.phase, &sent.key), (Phase::Succeeded, &record.key));
    let seen = server.seen();
    assert_eq!(seen.len(), 1);
    assert_eq!(
        seen[0]["metadata"]["helm.toolkit.fluxcd.io/token"],
        record.key
    );
}

#[test]
fn what_cannot_be_carried_out_is_refused() {
    let admission = json!({"admission": {}});
    let remote = json!({"admission": {"gatekeeperRef": {"name": "promoted"}}});
    let pull_request = json!({"pull-request": {
        "type": "gitea", "url": "https://git.example.com/apps.git",
        "secretRef": {"name": "token"}, "paths": ["prod.yaml"],
    }});
    let no_kind = Progress::NotInstalled;
    let table = [
        (admission, false, no_kind, None),
        (notification(), true, no_kind, None),
        (notification(), false, no_kind, Some("--events-addr")),
        (remote, false, no_kind, None),
        (pull_request.clone(), false, Progress::Synced, None),
        (
            pull_request.clone(),
            true,
            no_kind,
            Some("pullrequests.sluice.dev"),
        ),
        (
            pull_request,
            true,
            Progress::Refused,
            Some("no right to list and watch"),
        ),
    ];
    for (strategy, notifies, listed, expected) in table {
        let checked = available::check(&object(&strategy), notifies, listed);
        match expected {
            None => assert_eq!(checked, Ok(()), "{strategy}"),
            Some(words) => {
                let why = checked.unwrap_err().to_string();
                assert!(why.starts_with("spec.promotion.strategy: "), "{why}");
                assert!(why.contains(words), "{why}");
            }
        }
    }
}

/// A user who may write PullRequests can take its name.
#[tokio::test]
async fn a_pull_request_of_somebody_else_in_its_place_is_told() {
    let answers = Arc::<Answers>::default();
    let clock = Arc::new(SetClock::new(NOON.parse().unwrap()));
    let context = context(api(&answers), world(), clock);
    let ours: PullRequest = serde_json::from_value(json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "PullRequest",
        "metadata": {"namespace": "prod", "name": "podinfo-77aa00112233"},
        "spec": {
            "repository": {
                "type": "gitea", "url": "https://git.example.com/platform/apps",
                "secretRef": {"name": "git-token"},
            },
            "sourceBranch": "sluice/a6a8ea3ca7a1/77aa00112233", "targetBranch": "main",
            "title": "Promote podinfo",
            "change": {"markers": {
                "name": "prod:podinfo:prod", "revision": "6.1.6", "paths": ["prod.yaml"],
            }},
            "about": {
                "kind": "Pipeline", "name": "podinfo", "environment": "prod",
                "revision": "6.1.6", "run": 7, "key": "77aa00112233",
            },
        },
    }))
    .unwrap();
    answers.refuses.store(true, SeqCst);
    let create = async || owned::create(&context, Pipeline::MANAGER, ours.clone()).await;
    // It is not seen yet, or it is this one.
    create().await.unwrap();
    let key = ObjectKey::of(&ours);
    let mut seen = ours.clone();
    seen.spec.title = "Another title".to_owned();
    let hold = |object: PullRequest| {
        let seen = Some(Seen::Object(Arc::new(object)));
        context.world.pull_requests.hold(&key, seen);
    };
    hold(seen.clone());
    create().await.unwrap();
    seen.spec.target_branch = "theirs".to_owned();
    hold(seen);
    let error = create().await.unwrap_err();
    assert!(failure::is_refusal(&error), "{error}");
    assert!(error.to_string().contains("delete it"), "{error}");
}
