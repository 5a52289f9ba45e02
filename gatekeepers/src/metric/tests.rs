//! What a real server on loopback answers, as Prometheus does and as it does not.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::SignedDuration;
use rstest::rstest;
use serde_json::{Value, json};
use sluice_core::evidence::polling::Trouble;
use sluice_egress::{Egress, Limits, Names, Rules};

use super::*;
use crate::Clients;
use crate::fake_api::FakeApi;
use crate::observation::Seen as _;
use crate::test_server::{Certificate, Reply, TestServer};

mod secrets;
mod time;

const HOST: &str = "prometheus.test";

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

fn spec(address: &str, with: &Value) -> api::Metric {
    let mut spec = json!({
        "address": address, "query": "sum(rate(errors_total[5m]))", "range": { "max": 0.05 },
    });
    let with = with.as_object().unwrap().clone();
    spec.as_object_mut().unwrap().extend(with);
    serde_json::from_value(spec).unwrap()
}

fn gatekeeper() -> Gatekeeper {
    serde_json::from_value(json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Gatekeeper",
        "metadata": { "namespace": "apps", "name": "error-rate", "uid": "4711" },
        "spec": {},
    }))
    .unwrap()
}

async fn look(spec: &api::Metric, clients: &Clients, last: Option<&Seen>, now: i64) -> Seen {
    let seen = observe(&gatekeeper(), spec, clients, last, None, at(now)).await;
    seen.unwrap()
}

/// The result of one look at a server with this reply, in short.
async fn comes_to(reply: Reply) -> String {
    let server = TestServer::without_tls(reply).await;
    let spec = spec(
        &server.address("http", HOST, ""),
        &json!({ "timeout": "300ms" }),
    );
    let clients = clients(&FakeApi::new(), &["127.0.0.0/8"]);
    short(&look(&spec, &clients, None, 0).await)
}

fn short(seen: &Seen) -> String {
    let polled = &seen.observed.polled;
    match (&polled.last, &polled.trouble) {
        (Some(last), None) => match &last.answer {
            Answer::Value(sample) => sample.text().to_owned(),
            Answer::NoData => "no data".to_owned(),
            Answer::TooMany(samples) => format!("{samples} samples"),
        },
        (None, Some(Trouble::Unavailable(why))) => format!("unavailable: {why}"),
        (None, Some(Trouble::Broken(why))) => format!("broken: {why}"),
        (_, _) => format!("{polled:?}"),
    }
}

fn data(result_type: &str, result: &Value) -> Reply {
    let data = json!({ "resultType": result_type, "result": result });
    Reply::ok(json!({ "status": "success", "data": data }).to_string())
}

fn sample(value: &str) -> Value {
    json!({ "metric": { "job": "web" }, "value": [1_795_262_400.123, value] })
}

#[rstest]
#[case::scalar(data("scalar", &json!([1_795_262_400, "0.982"])), "0.982")]
#[case::one_sample(data("vector", &json!([sample("0.04")])), "0.04")]
#[case::exponent(data("vector", &json!([sample("1.5e-07")])), "1.5e-07")]
#[case::infinite(data("vector", &json!([sample("+Inf")])), "+Inf")]
#[case::many(data("vector", &json!([sample("1"), sample("2"), sample("3")])), "3 samples")]
#[case::none(data("vector", &json!([])), "no data")]
#[case::not_a_number(data("vector", &json!([sample("NaN")])), "no data")]
#[case::scalar_not_a_number(data("scalar", &json!([1_795_262_400, "NaN"])), "no data")]
#[case::with_warnings(
    Reply::ok(json!({
        "status": "success", "warnings": ["a store is down"], "infos": ["not a counter"],
        "data": { "resultType": "vector", "result": [sample("7")] },
    }).to_string()),
    "7"
)]
#[tokio::test]
async fn what_prometheus_answers_is_read(#[case] reply: Reply, #[case] expected: &str) {
    assert_eq!(comes_to(reply).await, expected);
}

#[rstest]
#[case::matrix(
    data("matrix", &json!([])),
    "the query returns the values of a range; write one that returns a single value, such as \
     avg_over_time(...)"
)]
#[case::text(
    data("string", &json!([1, "s3cr3t"])),
    "the query returns a text; write one that returns a number"
)]
#[case::histogram(
    data("vector", &json!([{ "metric": {}, "histogram": [1, { "count": "3" }] }])),
    "the query returns a histogram; write one that returns a number, such as \
     histogram_quantile(...)"
)]
#[case::another_type(data("s3cr3t", &json!([])), "it answers with a result of an unknown type")]
#[case::no_number(data("scalar", &json!([1, "s3cr3t"])), "it answers with a sample that is not a number")]
#[case::no_text(data("scalar", &json!([1, 2])), "it answers with a sample that is not a number")]
#[case::no_pair(data("vector", &json!([{ "value": "s3cr3t" }])), "it answers with a sample that is not a number")]
#[case::no_data(Reply::ok(r#"{"status":"success"}"#), "it answers without data")]
#[case::not_prometheus(
    Reply::ok(r#"{"status":"s3cr3t"}"#),
    "what it answers is not the query API of Prometheus; correct address"
)]
#[case::not_json(
    Reply::ok("<html>s3cr3t</html>"),
    "what it answers is not the query API of Prometheus; correct address"
)]
#[case::nothing(
    Reply::ok(""),
    "what it answers is not the query API of Prometheus; correct address"
)]
#[tokio::test]
async fn what_makes_no_sense_is_broken(#[case] reply: Reply, #[case] expected: &str) {
    let expected = format!("broken: http://prometheus.test: {expected}");
    assert_eq!(comes_to(reply).await, expected);
}

fn error(status: u16, error_type: &str) -> Reply {
    let body = json!({ "status": "error", "errorType": error_type, "error": "s3cr3t" });
    Reply::status(status, "", body.to_string().as_bytes())
}

#[rstest]
#[case(
    error(400, "bad_data"),
    "broken",
    "it refuses the query; correct query"
)]
#[case(
    error(422, "execution"),
    "broken",
    "it cannot execute the query; correct query"
)]
#[case(error(503, "timeout"), "unavailable", "the query took too long")]
#[case(
    error(503, "unavailable"),
    "unavailable",
    "it cannot answer at present"
)]
#[case(error(200, "internal"), "unavailable", "it cannot answer at present")]
#[case(error(400, "s3cr3t"), "unavailable", "status 400, and no reason")]
#[case(Reply::status(400, "", b"s3cr3t"), "unavailable", "status 400")]
#[case(Reply::status(404, "", b"s3cr3t"), "unavailable", "status 404")]
#[case(Reply::status(500, "", b"s3cr3t"), "unavailable", "status 500")]
#[case(Reply::status(503, "", b"s3cr3t"), "unavailable", "status 503")]
#[case(Reply::status(429, "", b"s3cr3t"), "unavailable", "status 429")]
#[case(
    Reply::status(401, "", b"s3cr3t"),
    "unavailable",
    "status 401; name a Secret with credentials in secretRef"
)]
#[case(
    Reply::status(302, "location: http://prometheus.test/s3cr3t\r\n", b""),
    "unavailable",
    "status 302; redirects are not followed, write the address that they lead to"
)]
#[case(Reply::Raw(b"s3cr3t".to_vec()), "unavailable", "the reply broke off or is not HTTP")]
#[case(Reply::Endless, "unavailable", "the reply is longer than 1 MiB")]
#[case(Reply::Stall(Vec::new()), "unavailable", "timed out after 0.3s")]
#[case(
    Reply::Stall(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{".to_vec()),
    "unavailable",
    "timed out after 0.3s"
)]
#[tokio::test]
async fn what_goes_wrong_is_told_and_nothing_of_the_reply(
    #[case] reply: Reply,
    #[case] trouble: &str,
    #[case] expected: &str,
) {
    let expected = format!("{trouble}: http://prometheus.test: {expected}");
    assert_eq!(comes_to(reply).await, expected);
}

#[tokio::test]
async fn a_server_that_is_down_is_unavailable() {
    // Taken, and given back.
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let spec = spec(&format!("http://{HOST}:{port}"), &json!({}));
    let seen = look(&spec, &clients(&FakeApi::new(), &["127.0.0.0/8"]), None, 0).await;
    let expected = "unavailable: http://prometheus.test: connection refused";
    assert_eq!(short(&seen), expected);
}

#[tokio::test]
async fn nobody_is_led_to_a_forbidden_address() {
    let server = TestServer::without_tls(data("scalar", &json!([1, "1"]))).await;
    let closed = clients(&FakeApi::new(), &[]);
    for host in [HOST, "127.0.0.1", "localhost"] {
        let spec = spec(&server.address("http", host, ""), &json!({}));
        let seen = look(&spec, &closed, None, 0).await;
        let expected = format!(
            "unavailable: http://{host}: refused: it is a loopback address; the controller's flag \
             --egress-allow opens it"
        );
        assert_eq!(short(&seen), expected);
    }
    assert_eq!(server.requests(), 0);
}

#[rstest]
#[case("")]
#[case("/")]
#[case("/prometheus")]
#[case("/prometheus/")]
#[tokio::test]
async fn the_query_api_is_asked(#[case] prefix: &str) {
    let server = TestServer::without_tls(data("scalar", &json!([1, "1"]))).await;
    let spec = spec(
        &server.address("http", HOST, prefix),
        &json!({ "query": "a{b=\"c d\"}" }),
    );
    look(&spec, &clients(&FakeApi::new(), &["127.0.0.0/8"]), None, 0).await;
    let path = prefix.trim_end_matches('/');
    let expected = format!("GET {path}/api/v1/query?query=a%7Bb%3D%22c+d%22%7D HTTP/1.1\r\n");
    let heads = server.heads().await;
    assert!(heads[0].starts_with(&expected), "{heads:?}");
}

#[tokio::test]
async fn what_may_pass_is_asked_again_at_once() {
    let server = TestServer::without_tls(data("scalar", &json!([1, "0.01"]))).await;
    let twice = [Reply::Raw(Vec::new()), error(503, "unavailable")];
    server.replies_first(twice).await;
    let clients = clients(&FakeApi::new(), &["127.0.0.0/8"]);
    let spec = spec(&server.address("http", HOST, ""), &json!({}));
    let seen = look(&spec, &clients, None, 0).await;
    assert_eq!((short(&seen), server.requests()), ("0.01".to_owned(), 3));
    // What does not, is not.
    server.replies_first([error(400, "bad_data")]).await;
    let mut due = seen;
    due.make_due();
    let then = look(&spec, &clients, Some(&due), 1).await;
    assert_eq!(
        (server.requests(), then.observed.polled.error().is_some()),
        (4, true)
    );
}

#[tokio::test]
async fn a_refused_spec_is_not_asked() {
    let api = FakeApi::new();
    let spec = spec("prometheus:9090", &json!({}));
    let clients = clients(&api, &["127.0.0.0/8"]);
    let seen = observe(&gatekeeper(), &spec, &clients, None, None, at(0)).await;
    assert!(seen.is_none());
}

/// One that never answers takes no turn from another.
#[tokio::test]
async fn a_slow_server_delays_nobody_else() {
    let slow = TestServer::without_tls(Reply::Stall(Vec::new())).await;
    let quick = TestServer::without_tls(data("scalar", &json!([1, "1"]))).await;
    let clients = clients(&FakeApi::new(), &["127.0.0.0/8"]);
    let waiting = spec(&slow.address("http", "slow.test", ""), &json!({}));
    let waiting = futures::future::join_all((0..50).map(|_| look(&waiting, &clients, None, 0)));
    let answered = spec(&quick.address("http", "quick.test", ""), &json!({}));
    tokio::select! {
        _ = waiting => panic!("nobody answers them"),
        seen = look(&answered, &clients, None, 0) => assert_eq!(short(&seen), "1"),
    }
}

#[test]
fn an_attempt_is_no_longer_than_an_interval() {
    let rule = metric::read(
        &spec("http://p", &json!({ "interval": "5s" })),
        "spec.metric",
    )
    .unwrap();
    assert_eq!(rule.cadence.timeout, SignedDuration::from_secs(5));
    assert!(rule.cadence.timeout.unsigned_abs() <= Duration::from_secs(10));
}
