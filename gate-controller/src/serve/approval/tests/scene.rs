//! A Pipeline whose environment prod waits for a person, and requests to approve that.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use aws_lc_rs::hmac;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, Response, header};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::SignedDuration;
use serde_json::{Value, json};
use sluice_core::gate::Identity;
use sluice_core::time::clock::Trust;
use tower::{ServiceExt, service_fn};

use super::super::*;
use super::{KEY, NOON, PATH, REVISION};
use crate::cluster::key::ObjectKey;
use crate::observe::cache::Seen;
use crate::observe::clock::SetClock;
use crate::observe::world::Standing;

/// The API server: Secrets by name, and the Approvals that were created.
#[derive(Default)]
pub(super) struct Api {
    pub(super) secrets: Mutex<BTreeMap<String, Value>>,
    pub(super) made: Mutex<Vec<Value>>,
    /// The code with which Approvals are refused.
    pub(super) refuses: Mutex<Option<u16>>,
    /// Whether it fails to give any Secret.
    pub(super) is_away: AtomicBool,
    /// How often a Secret was read.
    reads: AtomicUsize,
}

impl Api {
    fn answer(&self, path: &str, body: &Value) -> (u16, Value) {
        let failed = |code: u16| {
            let reason = if code == 404 { "NotFound" } else { "" };
            (
                code,
                json!({"kind": "Status", "code": code, "reason": reason, "message": "no"}),
            )
        };
        if path.ends_with("/selfsubjectreviews") {
            return (
                201,
                json!({"status": {"userInfo": {"username": "controller"}}}),
            );
        }
        if path == "/apis/sluice.dev/v1alpha1/namespaces/apps/approvals" {
            let mut made = self.made.lock().unwrap();
            let is_there = made
                .iter()
                .any(|it| it["metadata"]["name"] == body["metadata"]["name"]);
            if let Some(code) = *self.refuses.lock().unwrap() {
                return failed(code);
            }
            if is_there {
                return failed(409);
            }
            made.push(body.clone());
            return (201, body.clone());
        }
        if let Some(name) =
            path.strip_prefix("/apis/sluice.dev/v1alpha1/namespaces/apps/approvals/")
        {
            let made = self.made.lock().unwrap();
            let found = made.iter().find(|it| it["metadata"]["name"] == name);
            return found.map_or_else(|| failed(404), |found| (200, found.clone()));
        }
        let secret = path
            .strip_prefix("/api/v1/namespaces/apps/secrets/")
            .expect(path);
        self.reads.fetch_add(1, SeqCst);
        if self.is_away.load(SeqCst) {
            return failed(500);
        }
        match self.secrets.lock().unwrap().get(secret) {
            Some(data) => (200, json!({"metadata": {"name": secret}, "data": data})),
            None => failed(404),
        }
    }

    pub(super) fn put(&self, name: &str, key: &str) {
        let data = json!({"hmac-key": STANDARD.encode(key)});
        self.secrets.lock().unwrap().insert(name.to_owned(), data);
    }

    pub(super) fn client(self: &Arc<Self>) -> Client {
        let api = Arc::clone(self);
        let service = service_fn(move |request: Request<kube::client::Body>| {
            let api = Arc::clone(&api);
            async move {
                let path = request.uri().path().to_owned();
                let body = request.into_body().collect_bytes().await.unwrap();
                let body = serde_json::from_slice(&body).unwrap_or_default();
                let (code, answer) = api.answer(&path, &body);
                let answer = Body::from(answer.to_string());
                let answer = Response::builder().status(code).body(answer).unwrap();
                Ok::<_, std::convert::Infallible>(answer)
            }
        });
        Client::new(service, "apps")
    }
}

/// prod waits for a person since noon; staging has no key, and qa a key that is too short.
pub(super) fn shop() -> Value {
    let promotion =
        |secret: Value| json!({"manual": true, "strategy": {"admission": {}, "secretRef": secret}});
    let environment = |name: &str, promotion: Value| json!({"name": name, "targets": [{"namespace": name}], "promotion": promotion});
    json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Pipeline",
        "metadata": {"namespace": "apps", "name": "shop", "uid": "u"},
        "spec": {
            "appRef": {"kind": "Kustomization", "name": "shop"},
            "promotion": promotion(json!({"name": "approvals"})),
            "environments": [
                {"name": "dev", "targets": [{"namespace": "dev"}]},
                environment("staging", promotion(Value::Null)),
                environment("qa", promotion(json!({"name": "short"}))),
                environment("lost", promotion(json!({"name": "no-such"}))),
                {"name": "prod", "targets": [{"namespace": "prod"}]},
            ],
        },
        "status": {"environments": {"prod": {
            "state": "Unapproved",
            "waitingApproval": {"revision": REVISION, "run": 7, "since": NOON},
            "promotion": {
                "run": 7, "revision": REVISION, "key": "0123456789ab", "phase": "Unapproved",
                "at": NOON,
            },
        }}},
    })
}

pub(super) struct Scene {
    pub(super) api: Arc<Api>,
    pub(super) world: Arc<World>,
    pub(super) clock: Arc<SetClock>,
    pub(super) router: Router,
}

/// A request, and what has to be changed about it.
pub(super) struct Call {
    pub(super) method: &'static str,
    pub(super) path: String,
    pub(super) signed_path: Option<&'static str>,
    pub(super) signed_method: &'static str,
    pub(super) key: &'static str,
    /// How much earlier than now.
    pub(super) age: i64,
    pub(super) body: &'static str,
    pub(super) signed_body: Option<&'static str>,
    pub(super) headers: Vec<(&'static str, &'static str)>,
    pub(super) from: IpAddr,
}

impl Default for Call {
    fn default() -> Self {
        Self {
            method: "POST",
            path: PATH.to_owned(),
            signed_path: None,
            signed_method: "POST",
            key: KEY,
            age: 0,
            body: "",
            signed_body: None,
            headers: Vec::new(),
            from: [192, 0, 2, 1].into(),
        }
    }
}

impl Scene {
    pub(super) fn new() -> Self {
        let api = Arc::<Api>::default();
        api.put("approvals", &format!("{KEY}\n"));
        api.put("short", &KEY[1..]);
        let standing = Standing {
            trust: Trust::Good,
            identity: Identity::Trusted,
        };
        let world = Arc::new(World::new(standing, true));
        let clock = Arc::new(SetClock::new(NOON.parse().unwrap()));
        let approving = Approving::new(api.client(), Arc::clone(&world), clock.clone(), || true);
        let router = Router::new()
            .route("/approval/{*promotion}", axum::routing::post(answer))
            .with_state(Arc::new(approving));
        let scene = Self {
            api,
            world,
            clock,
            router,
        };
        scene.hold(&shop());
        scene
    }

    pub(super) fn hold(&self, object: &Value) {
        let object: Pipeline = serde_json::from_value(object.clone()).unwrap();
        let key = ObjectKey::of(&object);
        let seen = Seen::Object(Arc::new(object));
        self.world.pipelines.hold(&key, Some(seen));
    }

    pub(super) async fn send(&self, call: Call) -> (StatusCode, Value) {
        let at = self.clock.now() - SignedDuration::from_secs(call.age);
        let path = call.signed_path.unwrap_or(&call.path);
        let body = call.signed_body.unwrap_or(call.body);
        let method = call.signed_method;
        let text = format!("{}\n{method}\n{path}\n{body}", at.as_second());
        let key = hmac::Key::new(hmac::HMAC_SHA256, call.key.as_bytes());
        let code = hmac::sign(&key, text.as_bytes());
        let digits: String = code
            .as_ref()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let mut request = Request::builder()
            .method(call.method)
            .uri(&call.path)
            .extension(Remote(call.from))
            .header("X-Signature-Timestamp", at.as_second().to_string())
            .header("X-Signature", format!("sha256={digits}"));
        for (name, value) in call.headers {
            request = request.header(name, value);
        }
        let request = request.body(Body::from(call.body)).unwrap();
        let answer = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = answer.into_parts();
        if parts.status == StatusCode::UNAUTHORIZED {
            assert_eq!(parts.headers[header::WWW_AUTHENTICATE], "HMAC-SHA256");
        }
        if parts.status == StatusCode::SERVICE_UNAVAILABLE {
            assert_eq!(parts.headers[header::RETRY_AFTER], "5");
        }
        let body = to_bytes(body, usize::MAX).await.unwrap();
        let body = serde_json::from_slice(&body).unwrap_or_default();
        (parts.status, body)
    }

    pub(super) fn reads(&self) -> usize {
        self.api.reads.load(SeqCst)
    }

    pub(super) fn made(&self) -> Vec<Value> {
        self.api.made.lock().unwrap().clone()
    }
}
