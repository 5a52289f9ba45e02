//! Those who ask, against an API server and a decider that are played.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, Response, StatusCode, header};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Client;
use serde_json::{Value, json};
use sluice_core::delivery::pipeline::{View, view};
use sluice_core::gate::Identity;
use sluice_core::revision::Revision;
use sluice_core::time::clock::Trust;
use sluice_crds::{CheckedGate, Decision, GateSet, State, Subject};
use tokio::sync::Semaphore;
use tower::{ServiceExt, service_fn};

use super::approval::Approving;
use super::asking::{Asking, Decide, Remote, Wanted};
use super::auth::{Kept, Reviews};
use super::limit::Rate;
use crate::observe::clock::{Clock, SetClock};
use crate::observe::world::{Standing, World};
use crate::tell::audit::Audit;
use crate::tell::counters::Counters;
use crate::tell::decisions::Decisions;
use crate::tell::events::{Events, Sending};

/// When it is.
const NOW: &str = "2026-11-20T12:00:00Z";

mod auth;
mod check;
mod flagger;
mod pipelines;
mod served;

/// The API server: who is who, and who may what.
#[derive(Default)]
struct Api {
    /// Rights, as `user namespace/name`; on Pipelines behind their verb, such as `get `.
    rights: Mutex<BTreeSet<String>>,
    /// The audiences that tokens are for.
    audiences: Option<Vec<&'static str>>,
    /// Whether it fails.
    fails: AtomicBool,
    /// How many more questions it answers, where that is limited.
    answers: Option<Semaphore>,
    token_reviews: AtomicUsize,
    access_reviews: AtomicUsize,
    /// What it was asked last.
    asked: Mutex<Value>,
}

impl Api {
    fn grant(self, right: &str) -> Self {
        self.rights.lock().unwrap().insert(right.to_owned());
        self
    }

    fn counts(&self) -> (usize, usize) {
        let count = |counter: &AtomicUsize| counter.load(Ordering::SeqCst);
        (count(&self.token_reviews), count(&self.access_reviews))
    }

    /// Tokens are `token-of-USER`.
    fn token_review(&self, review: &Value) -> Value {
        self.token_reviews.fetch_add(1, Ordering::SeqCst);
        let token = review["spec"]["token"].as_str().unwrap();
        match token.strip_prefix("token-of-") {
            Some(user) => json!({
                "authenticated": true,
                "user": {"username": user, "groups": ["system:authenticated"]},
                "audiences": self.audiences,
            }),
            None => json!({"error": "invalid bearer token"}),
        }
    }

    fn access_review(&self, review: &Value) -> Value {
        self.access_reviews.fetch_add(1, Ordering::SeqCst);
        let spec = &review["spec"];
        let what = &spec["resourceAttributes"];
        // Where none is named, it is about all.
        let text = |value: &Value| value.as_str().unwrap_or("*").to_owned();
        let right = format!(
            "{} {}/{}",
            text(&spec["user"]),
            text(&what["namespace"]),
            text(&what["name"])
        );
        let asked = (&what["group"], &what["resource"], &what["verb"]);
        let known = [
            ("gates", "check", ""),
            ("pipelines", "get", "get "),
            ("pipelines", "list", "list "),
        ];
        let known = known.iter().find(|(resource, verb, _)| {
            asked == (&json!("sluice.dev"), &json!(resource), &json!(verb))
        });
        let right = known.map(|(_, _, prefix)| format!("{prefix}{right}"));
        let allowed = right.is_some_and(|right| self.rights.lock().unwrap().contains(&right))
            && spec["groups"] == json!(["system:authenticated"]);
        json!({"allowed": allowed})
    }

    async fn answer(&self, request: Request<kube::client::Body>) -> Response<Body> {
        let path = request.uri().path().to_owned();
        let body = request.into_body().collect_bytes().await.unwrap();
        let mut review: Value = serde_json::from_slice(&body).unwrap();
        *self.asked.lock().unwrap() = review["spec"].clone();
        review["status"] = match path.as_str() {
            "/apis/authentication.k8s.io/v1/tokenreviews" => self.token_review(&review),
            "/apis/authorization.k8s.io/v1/subjectaccessreviews" => self.access_review(&review),
            other => panic!("{other}"),
        };
        if let Some(answers) = &self.answers {
            answers.acquire().await.unwrap().forget();
        }
        let (status, body) = match self.fails.load(Ordering::SeqCst) {
            false => (StatusCode::CREATED, review),
            true => (StatusCode::INTERNAL_SERVER_ERROR, json!({"kind": "Status"})),
        };
        Response::builder()
            .status(status)
            .body(Body::from(body.to_string()))
            .unwrap()
    }

    fn client(self: &Arc<Self>) -> Client {
        let api = Arc::clone(self);
        let service = service_fn(move |request| {
            let api = Arc::clone(&api);
            async move { Ok::<_, std::convert::Infallible>(api.answer(request).await) }
        });
        Client::new(service, "default")
    }
}

/// Decides as the test says.
#[derive(Default)]
struct Decider {
    closed: AtomicBool,
    unsynced: AtomicBool,
    fails: AtomicBool,
    /// A gate that a policy adds.
    added: Mutex<Option<&'static str>>,
    asked: Mutex<Vec<(GateSet, Subject, Option<String>)>>,
    pipelines: Mutex<Vec<View>>,
}

impl Decider {
    fn asked(&self) -> Vec<(GateSet, Subject, Option<String>)> {
        self.asked.lock().unwrap().clone()
    }
}

impl Decide for Arc<Decider> {
    fn decide(
        &self,
        set: Option<&GateSet>,
        subject: &Subject,
        revision: Option<&Revision>,
    ) -> Decision {
        assert!(!self.fails.load(Ordering::SeqCst), "a defect");
        let set = set.cloned().unwrap_or(GateSet {
            require: sluice_crds::Require::All,
            refs: Vec::new(),
        });
        let asked = (
            set.clone(),
            subject.clone(),
            revision.map(Revision::to_string),
        );
        self.asked.lock().unwrap().push(asked);
        let closed = self.closed.load(Ordering::SeqCst);
        let state = if closed { State::Closed } else { State::Open };
        let reason = if closed {
            "OutsideWindow"
        } else {
            "InsideWindow"
        };
        let checked = set.refs.iter().map(|gate| CheckedGate {
            gate: format!("{}/{}", gate.namespace.as_deref().unwrap(), gate.name),
            policy: None,
            state,
            reason: reason.to_owned(),
            message: "by the clock".to_owned(),
        });
        let added = *self.added.lock().unwrap();
        let added = added.map(|gate| CheckedGate {
            gate: gate.to_owned(),
            policy: Some("frozen".to_owned()),
            state,
            reason: reason.to_owned(),
            message: "a secret of the platform".to_owned(),
        });
        let checked: Vec<_> = checked.chain(added).collect();
        Decision {
            allowed: !closed,
            at: Time(NOW.parse::<Timestamp>().unwrap()),
            subject: subject.clone(),
            require: set.require,
            decided_by: checked.iter().map(|gate| gate.gate.clone()).collect(),
            checked,
            message: "a secret of office-hours".to_owned(),
            next: None,
        }
    }

    fn pipelines(&self, wanted: Wanted<'_>) -> Vec<View> {
        let Wanted {
            namespace,
            after,
            most,
        } = wanted;
        let known = self.pipelines.lock().unwrap();
        let wanted = known.iter().filter(|it| {
            let key = (it.namespace.as_str(), it.name.as_str());
            namespace.is_none_or(|it| it == key.0) && after.is_none_or(|after| key > after)
        });
        wanted.take(most).cloned().collect()
    }

    fn pipeline(&self, namespace: &str, name: &str) -> Option<View> {
        let known = self.pipelines.lock().unwrap();
        let mut known = known.iter();
        known
            .find(|it| (it.namespace.as_str(), it.name.as_str()) == (namespace, name))
            .cloned()
    }

    fn synced(&self) -> bool {
        !self.unsynced.load(Ordering::SeqCst)
    }
}

/// What a test says of the whole before it asks.
struct Scene {
    api: Api,
    audiences: Vec<String>,
    kept: Kept,
    rate: u32,
    burst: u32,
    flagger_without_token: bool,
    audit: Audit,
}

impl Default for Scene {
    /// `alice` may check the gates production and canary in apps.
    fn default() -> Self {
        Self {
            api: Api::default()
                .grant("alice apps/production")
                .grant("alice apps/canary"),
            audiences: Vec::new(),
            kept: Kept::default(),
            rate: 1_000,
            burst: 1_000,
            flagger_without_token: false,
            audit: Audit::default(),
        }
    }
}

impl Scene {
    fn start(self) -> Stage {
        let api = Arc::new(self.api);
        let decider = Arc::new(Decider::default());
        let reviews = Reviews::new(api.client(), self.audiences, self.kept);
        let n = |n| NonZeroU32::new(n).unwrap();
        let rate = Rate {
            rate: n(self.rate),
            burst: n(self.burst),
        };
        let decide = Arc::new(Arc::clone(&decider));
        let (decisions, sending) = decisions(self.audit);
        let without_token = self.flagger_without_token;
        let asking = Asking::new(decide, decisions, reviews, rate, without_token);
        let approving = Approving::new(api.client(), world(), clock(), || true);
        Stage {
            api,
            decider,
            router: asking.router(approving),
            _sending: Arc::new(sending),
        }
    }
}

/// The whole, served.
#[derive(Clone)]
struct Stage {
    api: Arc<Api>,
    decider: Arc<Decider>,
    router: Router,
    _sending: Arc<Sending>,
}

fn world() -> Arc<World> {
    let standing = Standing {
        trust: Trust::Good,
        identity: Identity::Trusted,
    };
    Arc::new(World::new(standing, true))
}

fn clock() -> Arc<dyn Clock> {
    Arc::new(SetClock::new(NOW.parse().unwrap()))
}

/// Reports answers. The events are not sent.
fn decisions(audit: Audit) -> (Arc<Decisions>, Sending) {
    let (world, clock) = (world(), clock());
    let counters = Arc::<Counters>::default();
    let (events, sending) = Events::new(Arc::clone(&counters), Arc::clone(&clock));
    let decisions = Decisions::new(world, clock, counters, events, audit);
    (Arc::new(decisions), sending)
}

/// What came back.
#[derive(Debug)]
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Value,
}

impl Answer {
    fn text(&self, field: &str) -> &str {
        self.body[field].as_str().unwrap_or_default()
    }

    /// How many seconds to wait.
    fn again(&self) -> Option<u64> {
        let after = self.headers.get(header::RETRY_AFTER)?;
        Some(after.to_str().unwrap().parse().unwrap())
    }
}

impl Stage {
    async fn send(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = to_bytes(body, usize::MAX).await.unwrap();
        Answer {
            status: parts.status,
            headers: parts.headers,
            body: serde_json::from_slice(&body).unwrap(),
        }
    }

    /// With a header `Authorization`, from an address.
    async fn post_from(
        &self,
        from: IpAddr,
        path: &str,
        credentials: Option<&str>,
        body: impl Into<Body>,
    ) -> Answer {
        let mut request = Request::post(path).extension(Remote(from));
        if let Some(credentials) = credentials {
            request = request.header(header::AUTHORIZATION, credentials);
        }
        self.send(request.body(body.into()).unwrap()).await
    }

    async fn post(&self, path: &str, credentials: Option<&str>, body: impl Into<Body>) -> Answer {
        let from = [192, 0, 2, 1].into();
        self.post_from(from, path, credentials, body).await
    }

    async fn get(&self, path: &str, credentials: Option<&str>) -> Answer {
        let mut request = Request::get(path).extension(Remote([192, 0, 2, 1].into()));
        if let Some(credentials) = credentials {
            request = request.header(header::AUTHORIZATION, credentials);
        }
        self.send(request.body(Body::empty()).unwrap()).await
    }

    /// Adds a Pipeline.
    fn pipeline(&self, namespace: &str, name: &str) {
        let object = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Pipeline",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                "appRef": {"kind": "HelmRelease", "name": name},
                "environments": [{"name": "dev", "targets": [{"namespace": namespace}]}],
            },
        });
        let object = serde_json::from_value(object).unwrap();
        self.decider
            .pipelines
            .lock()
            .unwrap()
            .push(view(&object, &[]));
    }

    /// As somebody.
    async fn check(&self, user: &str, body: &Value) -> Answer {
        let credentials = format!("Bearer token-of-{user}");
        let body = body.to_string();
        self.post("/v1/check", Some(&credentials), body).await
    }
}

/// Whether production in apps is open.
fn production() -> Value {
    json!({"gates": {"refs": [{"name": "production"}]}, "namespace": "apps"})
}

/// Waits for something that comes by itself.
async fn until(met: impl AsyncFn() -> bool) {
    let met = async {
        while !met().await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), met)
        .await
        .expect("it has not come");
}
