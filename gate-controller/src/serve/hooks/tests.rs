//! Webhooks, on an API server that is played.

use std::convert::Infallible;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::task::Poll;

use aws_lc_rs::hmac;
use axum::body::{Bytes, to_bytes};
use axum::http::{Response, header};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rstest::rstest;
use serde_json::{Value, json};
use sluice_core::gate::Identity;
use sluice_core::time::clock::Trust;
use sluice_crds::GitRepositoryAccess;
use tower::{ServiceExt, service_fn};

use super::*;
use crate::observe::clock::SetClock;
use crate::observe::world::Standing;

const KEY: &str = "0123456789abcdef0123456789abcdef";
const SHOP: &str = "/hooks/apps/shop";

struct Scene {
    router: Router,
    leads: Arc<AtomicBool>,
    reads: Arc<AtomicUsize>,
    woken: Arc<Mutex<Vec<String>>>,
    /// Whether what is in the repositories is for this process.
    is_ours: Arc<AtomicBool>,
}

/// What was answered.
#[derive(Debug, PartialEq)]
struct Answered {
    status: StatusCode,
    body: Bytes,
}

impl Scene {
    /// The Secret of the access `shop` has a key, that of `short` one that is too short, and `lost` has none.
    fn new() -> Self {
        let standing = Standing {
            trust: Trust::Good,
            identity: Identity::Trusted,
        };
        let world = World::new(standing, true);
        for (name, secret) in [
            ("shop", Some("hook")),
            ("plain", None),
            ("short", Some("short")),
            ("lost", Some("no-such")),
        ] {
            let object: GitRepositoryAccess = serde_json::from_value(json!({
                "apiVersion": "sluice.dev/v1alpha1", "kind": "GitRepositoryAccess",
                "metadata": {"namespace": "apps", "name": name},
                "spec": {
                    "provider": "github", "url": "https://github.com/acme/shop",
                    "secretRef": {"name": "push"},
                    "webhook": secret.map(|secret| json!({"secretRef": {"name": secret}})),
                },
            }))
            .unwrap();
            let key = ObjectKey::of(&object);
            world
                .accesses
                .hold(&key, Some(Seen::Object(Arc::new(object))));
        }
        let (leads, reads) = (Arc::new(AtomicBool::new(true)), Arc::default());
        let woken = Arc::<Mutex<Vec<String>>>::default();
        let is_ours = Arc::new(AtomicBool::new(true));
        let ours = Arc::clone(&is_ours);
        let (led, told) = (Arc::clone(&leads), Arc::clone(&woken));
        let clock = SetClock::new("2026-11-20T12:00:00Z".parse().unwrap());
        let hooks = Hooks::new(
            api(Arc::clone(&reads)),
            Arc::new(world),
            Arc::new(clock),
            move || led.load(SeqCst),
            move |_| ours.load(SeqCst),
            move |access| told.lock().unwrap().push(access.to_string()),
        );
        Self {
            router: hooks.router(),
            leads,
            reads,
            woken,
            is_ours,
        }
    }

    async fn send(&self, request: Request) -> Answered {
        let answer = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = answer.into_parts();
        Answered {
            status: parts.status,
            body: to_bytes(body, usize::MAX).await.unwrap(),
        }
    }

    async fn post(&self, path: &str, key: &str, body: &[u8]) -> Answered {
        self.send(signed("POST", path, key, body)).await
    }

    fn woken(&self) -> Vec<String> {
        self.woken.lock().unwrap().clone()
    }
}

/// The API server: Secrets by name.
fn api(reads: Arc<AtomicUsize>) -> Client {
    let service = service_fn(move |request: axum::http::Request<kube::client::Body>| {
        reads.fetch_add(1, SeqCst);
        let secret = request.uri().path().rsplit('/').next().unwrap_or_default();
        let key = match secret {
            "hook" => Some(format!("{KEY}\n")),
            "short" => Some(KEY[1..].to_owned()),
            _ => None,
        };
        let (code, answer): (u16, Value) = match key {
            Some(key) => (200, json!({"data": {"token": STANDARD.encode(key)}})),
            None => (
                404,
                json!({"kind": "Status", "code": 404, "reason": "NotFound", "message": "no"}),
            ),
        };
        let answer = Response::builder()
            .status(code)
            .body(Body::from(answer.to_string()));
        async move { Ok::<_, std::convert::Infallible>(answer.unwrap()) }
    });
    Client::new(service, "apps")
}

fn signed(method: &str, path: &str, key: &str, body: &[u8]) -> Request {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes());
    let code = hmac::sign(&key, body);
    let digits: String = code
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    Request::builder()
        .method(method)
        .uri(path)
        .header("X-Hub-Signature-256", format!("sha256={digits}"))
        .body(Body::from(body.to_vec()))
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn what_is_signed_wakes_its_access_and_does_nothing_else() {
    let scene = Scene::new();
    let answer = scene.post(SHOP, KEY, b"{\"ref\": \"refs/heads/env/dev-next\"}");
    let accepted = Answered {
        status: StatusCode::ACCEPTED,
        body: Bytes::new(),
    };
    assert_eq!(answer.await, accepted);
    assert_eq!(scene.woken(), ["apps/shop"]);
    // Nothing of the body is read.
    assert_eq!(scene.post(SHOP, KEY, b"no JSON").await, accepted);
    assert_eq!(scene.post(SHOP, KEY, b"").await, accepted);
    assert_eq!(scene.reads.load(SeqCst), 1);
}

/// Somebody who has heard one can send it again, and a push may lead to many. None is lost.
#[tokio::test(start_paused = true)]
#[allow(clippy::disallowed_methods, reason = "time is paused")]
async fn what_is_sent_again_wakes_again_once_a_second() {
    let scene = Scene::new();
    for _ in 0..5 {
        assert_eq!(
            scene.post(SHOP, KEY, b"x").await.status,
            StatusCode::ACCEPTED
        );
    }
    assert_eq!(scene.woken().len(), 1);
    let pass = |millis| tokio::time::sleep(Duration::from_millis(millis));
    pass(1_001).await;
    assert_eq!(scene.woken(), ["apps/shop", "apps/shop"]);
    scene.post(SHOP, KEY, b"x").await;
    assert_eq!(scene.woken().len(), 2);
    pass(1_001).await;
    assert_eq!(scene.woken().len(), 3);
    pass(3_000).await;
    assert_eq!(scene.woken().len(), 3);
    scene.post(SHOP, KEY, b"x").await;
    assert_eq!(scene.woken().len(), 4);
}

#[rstest]
#[case::another_key("POST", SHOP, "another-key-another-key-another-key")]
#[case::no_key("POST", SHOP, "")]
#[case::no_such_access("POST", "/hooks/apps/other", KEY)]
#[case::no_such_namespace("POST", "/hooks/other/shop", KEY)]
#[case::no_webhook("POST", "/hooks/apps/plain", KEY)]
#[case::no_webhook_and_no_key("POST", "/hooks/apps/plain", "")]
#[case::no_such_secret("POST", "/hooks/apps/lost", "")]
#[case::a_short_key("POST", "/hooks/apps/short", "123456789abcdef0123456789abcdef")]
#[case::a_part_more("POST", "/hooks/apps/shop/x", KEY)]
#[case::a_part_less("POST", "/hooks/apps", KEY)]
#[case::another_place("POST", "/", KEY)]
#[case::get("GET", SHOP, KEY)]
#[case::put("PUT", SHOP, KEY)]
#[tokio::test(start_paused = true)]
async fn everything_else_gets_the_same_answer(
    #[case] method: &str,
    #[case] path: &str,
    #[case] key: &str,
) {
    let scene = Scene::new();
    let answer = scene.send(signed(method, path, key, b"x")).await;
    let unsigned = Request::post(SHOP).body(Body::from("x")).unwrap();
    let expected = scene.send(unsigned).await;
    assert_eq!(expected.status, StatusCode::NOT_FOUND);
    assert_eq!(answer, expected);
    assert_eq!(scene.woken(), [""; 0]);
}

/// Also of an access that is not there: what is too long says nothing of the cluster.
#[tokio::test(start_paused = true)]
async fn a_body_has_at_most_25_mib() {
    let scene = Scene::new();
    let body = vec![b'x'; LONGEST + 1];
    for path in [SHOP, "/hooks/apps/other"] {
        let answer = scene.post(path, KEY, &body).await;
        assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);
    }
    assert_eq!(scene.woken(), [""; 0]);
    let answer = scene.post(SHOP, KEY, &body[1..]).await;
    assert_eq!(answer.status, StatusCode::ACCEPTED);
}

#[tokio::test]
async fn a_replica_that_stands_by_says_so_and_reads_no_secret() {
    let scene = Scene::new();
    scene.leads.store(false, SeqCst);
    let request = signed("POST", SHOP, KEY, b"x");
    let answer = scene.router.clone().oneshot(request).await.unwrap();
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(answer.headers()[header::RETRY_AFTER], "5");
    assert_eq!((scene.woken().len(), scene.reads.load(SeqCst)), (0, 0));
}

/// Nothing of its body is read, and no Secret.
#[tokio::test(start_paused = true)]
async fn what_has_no_signature_is_refused_at_once() {
    let scene = Scene::new();
    for (header, value) in [("x-other", "1"), ("x-hub-signature-256", "sha256=12")] {
        for path in [SHOP, "/hooks/apps/other"] {
            let body = futures::stream::poll_fn(|_| -> Poll<Option<Result<Bytes, Infallible>>> {
                panic!("the body is read")
            });
            let request = Request::post(path).header(header, value);
            let request = request.body(Body::from_stream(body)).unwrap();
            let begun = Instant::now();
            let answer = scene.send(request).await;
            assert_eq!(answer.status, StatusCode::NOT_FOUND);
            assert!(begun.elapsed() < LEAST);
        }
    }
    assert_eq!(scene.reads.load(SeqCst), 0);
}

/// To read the Secret of one that is there takes a while.
#[rstest]
#[case::a_wrong_key(SHOP)]
#[case::no_such_access("/hooks/apps/other")]
#[case::no_webhook("/hooks/apps/plain")]
#[case::no_such_secret("/hooks/apps/lost")]
#[tokio::test(start_paused = true)]
async fn all_that_is_refused_takes_the_same_time(#[case] path: &str) {
    let scene = Scene::new();
    for body in [vec![b'x'], vec![b'x'; LONGEST + 1]] {
        let begun = Instant::now();
        scene.post(path, "another-key", &body).await;
        let soon = LEAST + Duration::from_millis(10);
        assert!((LEAST..soon).contains(&begun.elapsed()));
    }
    let begun = Instant::now();
    scene.post(SHOP, KEY, b"x").await;
    assert!(begun.elapsed() < LEAST);
}

/// A proxy may find the shard that has it. Anyone who has no key learns nothing of shards.
#[tokio::test(start_paused = true)]
async fn what_is_for_another_shard_is_to_be_sent_again() {
    let scene = Scene::new();
    scene.is_ours.store(false, SeqCst);
    let right = scene.post(SHOP, KEY, b"x").await;
    assert_eq!(right.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(scene.woken(), [""; 0]);
    let wrong = scene.post(SHOP, "another-key", b"x").await;
    assert_eq!(wrong.status, StatusCode::NOT_FOUND);
}
