//! What a real server on loopback answers, and what comes of it.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use rstest::rstest;
use serde_json::{Value, json};
use sluice_core::evidence::polling::Trouble;
use sluice_egress::{Egress, Limits, Names, Rules};

use super::*;
use crate::fake_api::FakeApi;
use crate::observation::Seen as _;
use crate::test_server::{Certificate, Reply, TestServer};

const HOST: &str = "status.test";

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// Every name is this machine.
struct Here;

impl Names for Here {
    fn lookup<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        async { Ok(vec![IpAddr::from([127, 0, 0, 1])]) }.boxed()
    }
}

fn clients(api: &FakeApi, allow: &[&str]) -> Clients {
    let rules = Rules {
        allow: allow.iter().map(|range| range.parse().unwrap()).collect(),
        ..Rules::default()
    };
    let egress = Egress::with(rules, Limits::default(), Arc::new(Here)).unwrap();
    Clients::new(api.client(), egress)
}

fn spec(url: &str, with: &Value) -> api::Http {
    let mut spec = json!({ "url": url });
    let with = with.as_object().unwrap().clone();
    spec.as_object_mut().unwrap().extend(with);
    serde_json::from_value(spec).unwrap()
}

fn gatekeeper() -> Gatekeeper {
    serde_json::from_value(json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Gatekeeper",
        "metadata": { "namespace": "apps", "name": "status-page", "uid": "4711" },
        "spec": {},
    }))
    .unwrap()
}

async fn look(spec: &api::Http, clients: &Clients, last: Option<&Seen>, now: i64) -> Seen {
    let seen = observe(&gatekeeper(), spec, clients, last, None, at(now)).await;
    seen.unwrap()
}

fn open() -> Clients {
    clients(&FakeApi::new(), &["127.0.0.0/8"])
}

fn answer(seen: &Seen) -> (u16, Body) {
    let last = seen.observed.last.as_ref().unwrap();
    (last.answer.status, last.answer.body.clone())
}

fn unavailable(seen: &Seen) -> &str {
    match (&seen.observed.last, &seen.observed.trouble) {
        (None, Some(Trouble::Unavailable(why))) => why,
        (_, _) => panic!("{:?}", seen.observed),
    }
}

#[rstest]
#[case(Reply::ok(r#"{"ready": true}"#), 200, Body::Satisfies)]
#[case(Reply::ok(r#"{"ready": false}"#), 200, Body::Fails)]
#[case(Reply::ok("<html>"), 200, Body::NotJson)]
#[case(Reply::ok(r#"{"red": 1}"#), 200, Body::Unjudged(ExpressionError::NoSuchKey(Some("ready".to_owned()))))]
#[case(Reply::status(503, "", br#"{"ready": true}"#), 503, Body::Unread)]
#[case(Reply::status(302, "location: /elsewhere\r\n", b""), 302, Body::Unread)]
#[tokio::test]
async fn what_an_address_answers_is_judged(
    #[case] reply: Reply,
    #[case] status: u16,
    #[case] body: Body,
) {
    let server = TestServer::without_tls(reply).await;
    let url = server.address("http", HOST, "/ready?team=a");
    let seen = look(
        &spec(&url, &json!({ "expression": "body.ready" })),
        &open(),
        None,
        0,
    )
    .await;
    assert_eq!((answer(&seen), server.requests()), ((status, body), 1));
    let heads = server.heads().await;
    assert!(
        heads[0].starts_with("GET /ready?team=a HTTP/1.1\r\n"),
        "{heads:?}"
    );
}

/// For every body.
#[tokio::test]
async fn without_an_expression_no_body_is_read() {
    let server = TestServer::without_tls(Reply::Endless).await;
    let seen = look(
        &spec(&server.address("http", HOST, "/"), &json!({})),
        &open(),
        None,
        0,
    )
    .await;
    assert_eq!(answer(&seen), (200, Body::Unread));
}

#[rstest]
#[case(Reply::Endless, "the reply is longer than 1 MiB")]
#[case(Reply::Raw(b"s3cr3t".to_vec()), "the reply broke off or is not HTTP")]
#[case(Reply::Stall(Vec::new()), "timed out after 0.3s")]
#[tokio::test]
async fn what_goes_wrong_is_told_and_nothing_of_the_reply(
    #[case] reply: Reply,
    #[case] expected: &str,
) {
    let server = TestServer::without_tls(reply).await;
    let url = server.address("http", HOST, "/private-4711?key=1");
    let with = json!({ "expression": "body.ready", "timeout": "300ms", "retries": 0 });
    let seen = look(&spec(&url, &with), &open(), None, 0).await;
    assert_eq!(
        unavailable(&seen),
        format!("http://status.test: {expected}")
    );
}

#[tokio::test]
async fn nobody_is_led_to_a_forbidden_address() {
    let server = TestServer::without_tls(Reply::ok("")).await;
    let closed = clients(&FakeApi::new(), &[]);
    for host in [HOST, "127.0.0.1", "2130706433"] {
        let url = server.address("http", host, "/");
        let seen = look(&spec(&url, &json!({})), &closed, None, 0).await;
        assert!(
            unavailable(&seen).contains("it is a loopback address"),
            "{seen:?}"
        );
    }
    assert_eq!(server.requests(), 0);
}

#[rstest]
#[case(0, 1, false)]
#[case(1, 2, false)]
#[case(2, 3, true)]
#[case(5, 3, true)]
#[tokio::test]
async fn an_address_that_does_not_answer_is_asked_again(
    #[case] retries: i32,
    #[case] requests: usize,
    #[case] answered: bool,
) {
    let server = TestServer::without_tls(Reply::ok("")).await;
    server
        .replies_first([Reply::Raw(Vec::new()), Reply::Raw(Vec::new())])
        .await;
    let spec = spec(
        &server.address("http", HOST, "/"),
        &json!({ "retries": retries }),
    );
    let seen = look(&spec, &open(), None, 0).await;
    assert_eq!(
        (server.requests(), seen.observed.last.is_some()),
        (requests, answered)
    );
}

#[tokio::test]
async fn a_status_that_is_not_expected_is_an_answer() {
    let server = TestServer::without_tls(Reply::ok("")).await;
    server.replies_first([Reply::status(503, "", b"")]).await;
    let seen = look(
        &spec(&server.address("http", HOST, "/"), &json!({})),
        &open(),
        None,
        0,
    )
    .await;
    assert_eq!((answer(&seen), server.requests()), ((503, Body::Unread), 1));
}

#[tokio::test]
async fn an_address_is_asked_at_its_interval_and_when_somebody_asks() {
    let server = TestServer::without_tls(Reply::ok("")).await;
    let clients = open();
    let spec = spec(
        &server.address("http", HOST, "/"),
        &json!({ "interval": "1h" }),
    );
    let first = look(&spec, &clients, None, 0).await;
    let again = first.again();
    assert!(at(360) <= again && again <= at(3960), "{again}");
    let early = look(&spec, &clients, Some(&first), 359).await;
    assert_eq!((server.requests(), &early.observed), (1, &first.observed));
    let mut asked = early;
    asked.make_due();
    look(&spec, &clients, Some(&asked), 359).await;
    assert_eq!(server.requests(), 2);
}

#[tokio::test]
async fn a_failure_leaves_what_was_answered_before_and_is_mended_soon() {
    let server = TestServer::without_tls(Reply::ok("")).await;
    let clients = open();
    let with = json!({ "interval": "1h", "retries": 0 });
    let spec = spec(&server.address("http", HOST, "/"), &with);
    let first = look(&spec, &clients, None, 0).await;
    server.replies(Reply::Raw(Vec::new())).await;
    let due = first.again().as_second() + 1;
    let then = look(&spec, &clients, Some(&first), due).await;
    assert_eq!(then.observed.last, first.observed.last);
    let why = "http://status.test: the reply broke off or is not HTTP";
    assert_eq!(
        (then.observed.error(), then.again()),
        (Some(why), at(due + 60))
    );
    let late = look(&spec, &clients, Some(&then), 3 * 3600).await;
    assert_eq!(unavailable(&late), why);
}

#[tokio::test]
async fn another_spec_is_asked_anew() {
    let server = TestServer::without_tls(Reply::ok("")).await;
    let clients = open();
    let url = server.address("http", HOST, "/");
    let first = look(&spec(&url, &json!({})), &clients, None, 0).await;
    let other = spec(&url, &json!({ "expectedStatuses": [204] }));
    assert!(!first.is_about(&other));
    look(&other, &clients, Some(&first), 1).await;
    assert_eq!(server.requests(), 2);
}

#[tokio::test]
async fn an_answer_outlives_a_restart_while_it_counts() {
    let server = TestServer::without_tls(Reply::ok(r#"{"ready": true}"#)).await;
    let clients = open();
    let with = json!({ "expression": "body.ready", "retries": 0 });
    let spec = spec(&server.address("http", HOST, "/"), &with);
    let before = look(&spec, &clients, None, 0).await;
    let status = http::status(&before.observed);
    server.replies(Reply::Raw(Vec::new())).await;
    let restarted = async |now| {
        let object = gatekeeper();
        observe(&object, &spec, &clients, None, Some(&status), at(now))
            .await
            .unwrap()
    };
    let soon = restarted(60).await;
    assert_eq!(
        (answer(&soon), soon.observed.good_until()),
        ((200, Body::Satisfies), Some(at(180)))
    );
    let why = "http://status.test: the reply broke off or is not HTTP";
    assert_eq!(unavailable(&restarted(180).await), why);
}

#[tokio::test]
async fn secrets_are_sent_over_https() {
    let api = FakeApi::new();
    let server = TestServer::start(Certificate::For(HOST), Reply::ok("")).await;
    api.put_secret_keys(
        "apps",
        "authority",
        &[("ca.crt", server.authority.as_bytes())],
    );
    api.put_secret_for(HOST, ("apps", "status"), &[("token", b"t0ken")]);
    let secrets = json!({
        "secretRef": { "name": "status" }, "certSecretRef": { "name": "authority" },
    });
    let clients = clients(&api, &["127.0.0.0/8"]);
    let seen = look(
        &spec(&server.address("https", HOST, "/"), &secrets),
        &clients,
        None,
        0,
    )
    .await;
    assert_eq!(answer(&seen), (200, Body::Unread));
    let heads = server.heads().await[0].to_lowercase();
    assert!(heads.contains("authorization: bearer t0ken\r\n"), "{heads}");
    // Over http the spec is refused, and nothing is sent.
    let plain = spec(
        &server.address("http", HOST, "/"),
        &json!({ "secretRef": { "name": "status" } }),
    );
    assert!(
        observe(&gatekeeper(), &plain, &clients, None, None, at(0))
            .await
            .is_none()
    );
    assert_eq!(server.requests(), 1);
}

/// An expression that takes all the work that it may, many times at once, holds up nobody.
#[tokio::test]
async fn judging_holds_up_nobody() {
    let body = json!(vec![0; 20_000]).to_string();
    let heavy = TestServer::without_tls(Reply::ok(body)).await;
    let light = TestServer::without_tls(Reply::ok("")).await;
    let clients = open();
    let expression = json!({ "expression": "body.all(a, body.all(b, a == b))" });
    let heavy = spec(&heavy.address("http", "heavy.test", "/"), &expression);
    let mut judged = Box::pin(futures::future::join_all(
        (0..4).map(|_| look(&heavy, &clients, None, 0)),
    ));
    let light = spec(&light.address("http", "light.test", "/"), &json!({}));
    tokio::select! {
        judged = &mut judged => panic!("it came after them: {judged:?}"),
        seen = look(&light, &clients, None, 0) => assert_eq!(answer(&seen), (200, Body::Unread)),
    }
    let spent = (200, Body::Unjudged(ExpressionError::TooMuchWork));
    assert!(judged.await.iter().all(|seen| answer(seen) == spent));
}
