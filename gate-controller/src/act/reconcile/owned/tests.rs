//! What is written to PullRequests, on an API server that is played.

use std::sync::Mutex;

use http::{Method, Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::json;
use tower::service_fn;

use super::*;
use crate::act::reconcile::gated_source::tests::{context, world};
use crate::observe::cache::Seen;
use crate::observe::clock::SystemClock;

const MANAGER: &str = "gate-controller-pipelines";

fn own(key: ObjectKey) -> Work {
    Work::own(Kind::Pipeline, key)
}

fn object(version: &str, close: Option<&str>) -> PullRequest {
    serde_json::from_value(json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "PullRequest",
        "metadata": {
            "namespace": "apps", "name": "podinfo-77aa00112233", "resourceVersion": version,
        },
        "spec": {
            "repository": {
                "type": "gitea", "url": "https://git.example.com/a/b", "secretRef": {"name": "token"},
            },
            "sourceBranch": "sluice/a6a8ea3ca7a1/77aa00112233", "targetBranch": "main",
            "title": "Promote podinfo", "close": close,
            "change": {"markers": {"name": "apps:podinfo:prod", "revision": "2", "paths": ["a"]}},
            "about": {
                "kind": "Pipeline", "name": "podinfo", "environment": "prod", "run": 7,
                "revision": "2", "key": "77aa00112233",
            },
        },
    }))
    .unwrap()
}

fn pipeline() -> ObjectKey {
    ObjectKey {
        namespace: "apps".into(),
        name: "podinfo".into(),
    }
}

type Requests = Arc<Mutex<Vec<(Method, String, Value)>>>;

/// An API server that answers everything so.
fn scene(code: u16, answer: &Value) -> (Context, Requests) {
    let (answer, requests) = (answer.to_string(), Requests::default());
    let seen = Arc::clone(&requests);
    let service = service_fn(move |request: Request<Body>| {
        let (answer, seen) = (answer.clone(), Arc::clone(&seen));
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect_bytes().await.unwrap();
            let body = serde_json::from_slice(&body).unwrap_or_default();
            let path = head.uri.path().to_owned();
            seen.lock().unwrap().push((head.method, path, body));
            let body = Body::from(answer.into_bytes());
            let answer = Response::builder().status(code).body(body).unwrap();
            Ok::<_, std::convert::Infallible>(answer)
        }
    });
    let client = Client::new(service, "apps");
    (context(client, world(), Arc::new(SystemClock)), requests)
}

fn conflict() -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 409,
        "reason": "AlreadyExists", "message": "it is there",
    })
}

#[tokio::test]
async fn what_was_created_is_found_before_the_watch_brings_it() {
    let (context, requests) = scene(201, &json!(object("12", None)));
    create(&context, MANAGER, object("", None)).await.unwrap();
    let found = of(&context.world, &own(pipeline()));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].metadata.resource_version.as_deref(), Some("12"));
    let other = ObjectKey {
        name: "other".into(),
        ..pipeline()
    };
    assert!(of(&context.world, &own(other)).is_empty());
    let requests = requests.lock().unwrap();
    let (method, path, body) = &requests[0];
    assert_eq!((requests.len(), method), (1, &Method::POST));
    assert_eq!(
        path,
        "/apis/sluice.dev/v1alpha1/namespaces/apps/pullrequests"
    );
    assert_eq!(body["spec"]["about"]["key"], "77aa00112233");
}

#[tokio::test]
async fn one_that_is_there_already_was_created() {
    let (context, _) = scene(409, &conflict());
    create(&context, MANAGER, object("", None)).await.unwrap();
    assert!(of(&context.world, &own(pipeline())).is_empty());
}

#[tokio::test]
async fn a_change_goes_onto_the_version_that_it_was_decided_from() {
    let (context, requests) = scene(200, &json!(object("13", Some("enough"))));
    let before = object("12", None);
    let close = Some("enough".to_owned());
    let patch = json!({"spec": {"suspend": false, "close": close}});
    change(&context, MANAGER, &before, patch.clone())
        .await
        .unwrap();
    let (method, _, body) = requests.lock().unwrap().remove(0);
    assert_eq!(method, Method::PATCH);
    let expected = json!({
        "metadata": {"resourceVersion": "12"}, "spec": {"suspend": false, "close": "enough"},
    });
    assert_eq!(body, expected);
    let known = context
        .world
        .pull_requests
        .get(ObjectKey::of(&before).borrowed());
    assert!(matches!(known, Some(Seen::Object(it)) if it.spec.close == close));

    let (context, _) = scene(409, &conflict());
    let refused = change(&context, MANAGER, &before, patch).await;
    assert!(failure::is_overtaken(&refused.unwrap_err()));
}
