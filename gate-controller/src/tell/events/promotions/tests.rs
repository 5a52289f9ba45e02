use std::collections::VecDeque;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::http::HeaderMap;
use axum::routing::post;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::*;
use crate::observe::clock::SetClock;

const NOON: &str = "2026-11-20T12:00:00Z";

/// A status, and the header `Retry-After`.
type Answer = (u16, Option<&'static str>);

/// A server in the place of notification-controller. It ends when it is dropped.
pub(crate) struct Server {
    pub(crate) url: Url,
    seen: Arc<Mutex<Vec<Value>>>,
    _tasks: JoinSet<()>,
}

impl Server {
    /// It answers with these, one after another; then it takes everything.
    pub(crate) async fn new(answers: &[Answer]) -> Self {
        let answers = Arc::new(Mutex::new(VecDeque::from(answers.to_vec())));
        let seen = Arc::<Mutex<Vec<Value>>>::default();
        let of_server = Arc::clone(&seen);
        let answer = post(move |body: Bytes| async move {
            of_server
                .lock()
                .push(serde_json::from_slice(&body).unwrap());
            let (status, after) = answers.lock().pop_front().unwrap_or((202, None));
            let headers = after.map(|after| (RETRY_AFTER, after.parse().unwrap()));
            (
                StatusCode::from_u16(status).unwrap(),
                HeaderMap::from_iter(headers),
            )
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let app = Router::new().route("/", answer);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self {
            url: url.parse().unwrap(),
            seen,
            _tasks: tasks,
        }
    }

    /// What was sent there.
    pub(crate) fn seen(&self) -> Vec<Value> {
        self.seen.lock().clone()
    }
}

/// An address at which nobody listens.
pub(crate) async fn dead() -> Url {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", closed.local_addr().unwrap());
    url.parse().unwrap()
}

pub(crate) fn promotions(url: Url, clock: Arc<dyn Clock>) -> Promotions {
    let patience = Patience {
        answer: Duration::from_secs(20),
        ..Patience::default()
    };
    Promotions::new(url, "gate-controller-0".to_owned(), clock, patience).unwrap()
}

fn at_noon(url: Url) -> Promotions {
    promotions(url, Arc::new(SetClock::new(NOON.parse().unwrap())))
}

fn promotion(api: &str, kind: &str) -> Promotion {
    Promotion {
        about: ObjectReference {
            api_version: Some(api.to_owned()),
            kind: Some(kind.to_owned()),
            namespace: Some("apps".to_owned()),
            name: Some("podinfo".to_owned()),
            ..ObjectReference::default()
        },
        pipeline: "apps/podinfo".to_owned(),
        environment: "prod".to_owned(),
        revision: "6.1.6".to_owned(),
        token: "3f9a1c2b7d4e".to_owned(),
        message: "Promote podinfo 6.1.6 to prod".to_owned(),
    }
}

#[tokio::test]
async fn a_promotion_has_the_form_of_flux() {
    let server = Server::new(&[]).await;
    let to = at_noon(server.url.clone());
    let promotion = promotion("helm.toolkit.fluxcd.io/v2", "HelmRelease");
    assert_eq!(to.send(&promotion).await, Ok(()));
    let expected = json!({
        "involvedObject": {
            "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
            "namespace": "apps", "name": "podinfo",
        },
        "severity": "info",
        "timestamp": NOON,
        "message": "Promote podinfo 6.1.6 to prod",
        "reason": "Promote",
        "metadata": {
            "helm.toolkit.fluxcd.io/revision": "6.1.6",
            "helm.toolkit.fluxcd.io/token": "3f9a1c2b7d4e",
            "event.toolkit.fluxcd.io/pipeline": "apps/podinfo",
            "event.toolkit.fluxcd.io/environment": "prod",
        },
        "reportingController": "gate-controller",
        "reportingInstance": "gate-controller-0",
    });
    assert_eq!(server.seen(), [expected]);
}

/// Of an object without a group nothing else would be kept.
#[test]
fn an_object_without_a_group_has_its_revision_too() {
    let promotion = promotion("v1", "ConfigMap");
    let notification = notification(&promotion, "gate-controller-0", NOON.parse().unwrap());
    let metadata = json!({
        "event.toolkit.fluxcd.io/pipeline": "apps/podinfo",
        "event.toolkit.fluxcd.io/environment": "prod",
        "event.toolkit.fluxcd.io/revision": "6.1.6",
    });
    assert_eq!(json!(notification.metadata), metadata);
}

#[tokio::test]
async fn what_is_taken_or_known_already_is_done_and_all_else_is_not() {
    let table: [(Answer, Option<Option<&str>>); 10] = [
        ((200, None), None),
        ((202, None), None),
        // It was sent before.
        ((429, Some("300")), None),
        ((500, None), Some(None)),
        ((302, None), Some(None)),
        ((404, None), Some(None)),
        ((503, Some("90")), Some(Some("2026-11-20T12:01:30Z"))),
        (
            (503, Some("Fri, 20 Nov 2026 13:00:00 GMT")),
            Some(Some("2026-11-20T13:00:00Z")),
        ),
        ((503, Some("soon")), Some(None)),
        ((503, Some("99999999999999999999")), Some(None)),
    ];
    let server = Server::new(&table.map(|(answer, _)| answer)).await;
    let to = at_noon(server.url.clone());
    let promotion = promotion("sluice.dev/v1alpha1", "Pipeline");
    for (n, (answer, expected)) in table.into_iter().enumerate() {
        let sent = to.send(&promotion).await;
        match expected {
            None => assert_eq!(sent, Ok(()), "{answer:?}"),
            Some(not_before) => {
                let untaken = sent.unwrap_err();
                let status = format!("has not taken it: status {}", answer.0);
                assert!(untaken.why.contains(&status), "{untaken:?}");
                let not_before = not_before.map(|at| at.parse().unwrap());
                assert_eq!(untaken.not_before, not_before, "{answer:?}");
            }
        }
        // One request each.
        assert_eq!(server.seen().len(), n + 1);
    }
}

#[tokio::test]
async fn where_nobody_listens_it_says_so() {
    let to = at_noon(dead().await);
    let promotion = promotion("sluice.dev/v1alpha1", "Pipeline");
    let untaken = to.send(&promotion).await.unwrap_err();
    let expected = "the notification-controller at http://127.0.0.1 has not taken it: connection \
                    refused";
    assert_eq!((&*untaken.why, untaken.not_before), (expected, None));
}
