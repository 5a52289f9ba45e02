//! What addresses answer, through the whole controller.

use std::net::TcpListener;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use jiff::SignedDuration;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Api;
use kube::api::ListParams;
use serde_json::{Value, json};
use sluice_crds::gatekeeper::HttpStatus;
use sluice_crds::{GatekeeperStatus, State};

use super::{kept, secret};
use crate::answers::Server;
use crate::stage::{Stage, at, message};

const NOON: &str = "2026-11-20T12:00:00Z";
/// Within this an address is asked again: at its interval of a minute, a tenth more or less.
const ROUND: SignedDuration = SignedDuration::from_secs(66);
/// How long two answers may take beside those that never come: far more than they do, and less than
/// what each of the others holds out for.
const PROMPT: Duration = Duration::from_secs(25);
/// What nobody may read in a message.
const REPLY: &str = "s3cr3t";

/// The spec of a gatekeeper that asks an address.
fn asks(url: &str, with: Value) -> Value {
    let mut http = json!({"url": url});
    let Value::Object(with) = with else {
        panic!("{with}");
    };
    http.as_object_mut().unwrap().extend(with);
    json!({"http": http})
}

/// What a gatekeeper reports of its address.
fn answered(status: &GatekeeperStatus) -> Option<HttpStatus> {
    status.evidence.clone()?.http
}

impl Stage {
    /// Waits until the gate says so, in these words.
    async fn told(&self, gate: &str, state: State, reason: &str, words: &str) -> Result<()> {
        let status = self.says(gate, state, reason).await?;
        ensure!(message(&status).contains(words), "{gate}: {status:?}");
        Ok(())
    }

    /// Everything that is written in the namespace about our kinds.
    async fn everything(&self) -> Result<String> {
        let all = ListParams::default();
        let events: Api<Event> = Api::namespaced(self.client(), self.namespace());
        let gates = self.gates().list(&all).await?.items;
        let gatekeepers = self.gatekeepers().list(&all).await?.items;
        let written = (gates, gatekeepers, events.list(&all).await?.items);
        Ok(serde_json::to_string(&written)?)
    }
}

#[tokio::test]
async fn a_gate_is_open_while_an_address_answers_as_expected() -> Result<()> {
    let elsewhere = Server::plain(json!({"ready": true}).to_string()).await?;
    let server = Server::plain(json!({"ready": true, "note": REPLY}).to_string()).await?;
    let stage = Stage::new("http", NOON).await?;
    let with = json!({"expression": "body.ready && status < 300", "expectedStatuses": [200, 204]});
    let spec = asks(&server.url("/ready-needle?key=1"), with);
    stage.apply(&kept("ready", &spec)).await?;
    let _controller = stage.start_with_egress().await?;
    let words = "it answered 200, and the body satisfies spec.http.expression, asked Fri 2026-11-20 \
                 12:00 UTC";
    stage
        .told("ready", State::Open, "AsExpected", words)
        .await?;
    let expected = HttpStatus {
        status: Some(200),
        satisfied: Some(true),
        observed_at: Some(Time(at(NOON))),
        error: None,
    };
    let said = |status: &GatekeeperStatus| answered(status).as_ref() == Some(&expected);
    stage
        .until_gatekeeper("ready", "what was answered", said)
        .await?;

    let (closed, stalled) = (State::Closed, "EvidenceBroken");
    server.says(json!({"ready": false, "note": REPLY}).to_string());
    stage.clock().set(stage.now() + ROUND);
    let words = "the body does not satisfy spec.http.expression, asked Fri 2026-11-20 12:01:";
    stage.told("ready", closed, "UnexpectedBody", words).await?;
    server.answers(503, REPLY);
    stage.clock().set(stage.now() + ROUND);
    let words = "it answered 503, expected 200 or 204, asked";
    stage
        .told("ready", closed, "UnexpectedStatus", words)
        .await?;
    server.says(format!("<html>{REPLY}</html>"));
    stage.clock().set(stage.now() + ROUND);
    stage
        .told("ready", closed, stalled, "the body is not JSON")
        .await?;
    server.redirects(elsewhere.url("/ready"));
    stage.clock().set(stage.now() + ROUND);
    let words = "it answered 302, expected 200 or 204; redirects are not followed";
    stage
        .told("ready", closed, "UnexpectedStatus", words)
        .await?;
    assert_eq!(elsewhere.times(), 0);
    server.says(json!({"note": REPLY}).to_string());
    stage.clock().set(stage.now() + ROUND);
    let words = "spec.http.expression cannot be evaluated: there is no key `ready`";
    stage.told("ready", closed, stalled, words).await?;
    server.says(json!({"ready": true}).to_string());
    stage.clock().set(stage.now() + ROUND);
    stage
        .told("ready", State::Open, "AsExpected", "satisfies")
        .await?;

    // What is too long is not read, and what was answered before counts meanwhile.
    server.says(format!(
        "{{\"ready\": false, \"note\": \"{}\"}}",
        REPLY.repeat(1 << 18)
    ));
    stage.clock().set(stage.now() + ROUND);
    let long = |status: &GatekeeperStatus| {
        let error = answered(status).and_then(|answered| answered.error);
        error.as_deref() == Some("http://127.0.0.1: the reply is longer than 1 MiB")
    };
    stage.until_gatekeeper("ready", "too long", long).await?;
    stage.says("ready", State::Open, "AsExpected").await?;
    let everything = stage.everything().await?;
    ensure!(!everything.contains(REPLY), "{everything}");
    let words = everything.matches("needle").count();
    let in_spec = everything.matches("ready-needle?key=1").count();
    assert_eq!(words, in_spec, "an address is told: {everything}");
    Ok(())
}

/// The flag that opens them is told.
#[tokio::test]
async fn nobody_is_led_to_a_forbidden_address() -> Result<()> {
    let server = Server::plain("").await?;
    let port = server.port();
    let stage = Stage::new("forbidden", NOON).await?;
    let table = [
        (
            "loopback",
            format!("127.0.0.1:{port}"),
            "a loopback address",
        ),
        (
            "decimal",
            format!("2130706433:{port}"),
            "a loopback address",
        ),
        ("name", format!("localhost:{port}"), "a loopback address"),
        ("six", format!("[::1]:{port}"), "a loopback address"),
        (
            "mapped",
            format!("[::ffff:127.0.0.1]:{port}"),
            "a loopback address",
        ),
        ("any", format!("0.0.0.0:{port}"), "an unspecified address"),
        (
            "metadata",
            "169.254.169.254".to_owned(),
            "a link-local address",
        ),
        ("many", "224.0.0.1".to_owned(), "a multicast address"),
    ];
    for (name, host, _) in &table {
        let spec = asks(&format!("http://{host}/latest/meta-data/"), json!({}));
        stage.apply(&kept(name, &spec)).await?;
    }
    let mut lax = asks(&server.url("/"), json!({}));
    lax["onError"] = "open".into();
    stage.apply(&kept("lax", &lax)).await?;
    let _controller = stage.start().await?;
    for (name, _, class) in &table {
        let words =
            format!("refused: it is {class}; the controller's flag --egress-allow opens it");
        let reason = "EvidenceUnavailable";
        stage.told(name, State::Closed, reason, &words).await?;
        let said = |status: &GatekeeperStatus| {
            let error = answered(status).and_then(|answered| answered.error);
            error.is_some_and(|error| error.contains(&words))
        };
        stage.until_gatekeeper(name, &words, said).await?;
    }
    stage
        .told("lax", State::Open, "EvidenceUnavailable", "onError is open")
        .await?;
    assert_eq!(server.times(), 0);
    Ok(())
}

#[tokio::test]
async fn an_address_is_asked_with_the_token_of_a_secret() -> Result<()> {
    let server = Server::start("").await?;
    let stage = Stage::new("tokens", NOON).await?;
    stage
        .apply(&secret("authority", &json!({"ca.crt": server.authority})))
        .await?;
    stage
        .apply(&secret("token", &json!({"token": "t0ken-1\n"})))
        .await?;
    let secrets = json!({
        "secretRef": {"name": "token"}, "certSecretRef": {"name": "authority"},
    });
    stage
        .apply(&kept("status", &asks(&server.url("/"), secrets)))
        .await?;
    let _controller = stage.start_with_egress().await?;
    let words = "it answered 200, asked";
    stage
        .told("status", State::Open, "AsExpected", words)
        .await?;
    assert_eq!(server.authorization().as_deref(), Some("Bearer t0ken-1"));

    // It is changed, and read anew with the next look.
    stage
        .apply(&secret("token", &json!({"token": "t0ken-2"})))
        .await?;
    server.answers(401, "");
    stage.clock().set(stage.now() + ROUND);
    let words = "it answered 401, expected 200";
    stage
        .told("status", State::Closed, "UnexpectedStatus", words)
        .await?;
    assert_eq!(server.authorization().as_deref(), Some("Bearer t0ken-2"));
    let everything = stage.everything().await?;
    ensure!(!everything.contains("t0ken-"), "{everything}");
    Ok(())
}

/// And kept over a restart, while what was answered counts.
#[tokio::test]
async fn an_answer_counts_for_three_intervals_and_no_longer() -> Result<()> {
    let server = Server::plain("").await?;
    let stage = Stage::new("answers", NOON).await?;
    let spec = asks(&server.url("/"), json!({"timeout": "2s", "retries": 1}));
    stage.apply(&kept("status", &spec)).await?;
    let first = stage.start_with_egress().await?;
    stage.says("status", State::Open, "AsExpected").await?;
    let said = |status: &GatekeeperStatus| answered(status).is_some();
    stage
        .until_gatekeeper("status", "what was answered", said)
        .await?;
    first.stop().await;
    drop(server);

    let _second = stage.start_with_egress().await?;
    let down = |status: &GatekeeperStatus| {
        let error = answered(status).and_then(|answered| answered.error);
        error.as_deref() == Some("http://127.0.0.1: connection refused")
    };
    let kept = stage
        .until_gatekeeper("status", "nobody answers", down)
        .await?;
    let kept = kept
        .status
        .as_ref()
        .and_then(answered)
        .context("no answer")?;
    assert_eq!((kept.status, kept.satisfied), (Some(200), None));
    stage.set("2026-11-20T12:02:59.999Z");
    stage.settle().await?;
    stage.says("status", State::Open, "AsExpected").await?;
    stage.set("2026-11-20T12:03:00Z");
    let words = "http://127.0.0.1: connection refused";
    stage
        .told("status", State::Closed, "EvidenceUnavailable", words)
        .await
}

/// Twenty servers that take requests and never answer, each with four gatekeepers: more than may be
/// under way at once. They would hold everybody up for ten seconds, and again.
#[tokio::test]
async fn servers_that_never_answer_delay_no_other_gate() -> Result<()> {
    let mut dead = Vec::new();
    let stage = Stage::new("dead", NOON).await?;
    let mut objects = String::new();
    for n in 0..20 {
        let server = TcpListener::bind("127.0.0.1:0")?;
        for m in 0..4 {
            let url = format!("http://{}/{m}", server.local_addr()?);
            objects += &kept(&format!("dead-{n}-{m}"), &asks(&url, json!({})));
        }
        dead.push(server);
    }
    stage.apply(&objects).await?;
    let _controller = stage.start_with_egress().await?;
    stage
        .says("dead-19-3", State::Closed, "NotObserved")
        .await?;
    let server = Server::plain("").await?;
    let spec = asks(&server.url("/"), json!({}));
    let quickly = async {
        stage.apply(&kept("alive", &spec)).await?;
        stage.says("alive", State::Open, "AsExpected").await?;
        server.answers(503, "");
        stage.clock().set(stage.now() + ROUND);
        stage.says("alive", State::Closed, "UnexpectedStatus").await
    };
    let told = tokio::time::timeout(PROMPT, quickly).await;
    told.with_context(|| format!("not within {PROMPT:?}"))??;
    Ok(())
}
