//! Hooks, and a server that they call.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::routing::{any, post};
use axum::serve::Listener;
use jiff::SignedDuration;
use parking_lot::Mutex;
use rstest::rstest;
use serde_json::{Value, json};
use sluice_crds::rollout::RollingState;
use sluice_tests::https::Https;
use sluice_tests::workloads::Counts;
use tokio::net::TcpListener;

use super::play::{Play, is, of_pair};

mod tokens;

/// A call: its key, and what was sent.
pub type Call = (String, Value);

/// A server that answers with one status after another, and notes which calls have come.
pub struct Hooks {
    /// Its address.
    pub url: String,
    came: Came,
}

/// All calls, each behind its method and with what `authorization` has said.
type Came = Arc<Mutex<Vec<(Method, Call, String)>>>;

impl Hooks {
    /// The last status is that of all further calls.
    pub async fn answer(statuses: &'static [u16]) -> Result<Self> {
        let (router, came) = answering(statuses);
        Self::plain(router, came).await
    }

    /// The same over TLS, with the certificate of an authority that nobody knows.
    async fn over_tls(statuses: &'static [u16]) -> Result<(Self, String)> {
        let (listener, authority) = Https::listen().await?;
        let (router, came) = answering(statuses);
        let url = format!("https://{}/", Listener::local_addr(&listener)?);
        Ok((Self::serve(listener, url, router, came), authority))
    }

    /// One that takes calls, and never answers.
    async fn silent() -> Result<Self> {
        let never = post(async || pending::<StatusCode>().await);
        Self::plain(Router::new().fallback(never), Arc::default()).await
    }

    async fn plain(router: Router, came: Came) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/", listener.local_addr()?);
        Ok(Self::serve(listener, url, router, came))
    }

    fn serve<L>(listener: L, url: String, router: Router, came: Came) -> Self
    where
        L: Listener<Addr = SocketAddr>,
    {
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, came }
    }

    /// The calls that have come, in this order.
    pub fn calls(&self) -> Vec<Call> {
        let came = self.came.lock();
        came.iter().map(|(_, call, _)| call.clone()).collect()
    }

    /// By whom they say to be made.
    fn tokens(&self) -> Vec<String> {
        let came = self.came.lock();
        came.iter().map(|(.., token)| token.clone()).collect()
    }

    /// Their methods.
    fn methods(&self) -> Vec<Method> {
        let came = self.came.lock();
        came.iter().map(|(method, ..)| method.clone()).collect()
    }
}

/// A server of these answers, and what it notes.
fn answering(statuses: &'static [u16]) -> (Router, Came) {
    let came = Came::default();
    let noted = Arc::clone(&came);
    let answer = async move |method: Method, headers: HeaderMap, body: Bytes| {
        let header = |name| {
            let text = headers.get(name).and_then(|text| text.to_str().ok());
            text.unwrap_or_default().to_owned()
        };
        let mut came = noted.lock();
        let status = statuses.get(came.len()).or(statuses.last());
        let body = serde_json::from_slice(&body).unwrap_or_default();
        let key = header("idempotency-key");
        came.push((method, (key, body), header("authorization")));
        StatusCode::from_u16(status.copied().unwrap_or(500)).unwrap_or_default()
    };
    (Router::new().fallback(any(answer)), came)
}

/// The hooks of a plan, each by its type, which is also its name.
fn plan(hooks: &Hooks, types: &[&str]) -> Value {
    let hook = |type_: &&str| json!({"type": type_, "name": type_, "url": hooks.url});
    json!({"numBatches": 2, "rolloutWebhooks": types.iter().map(hook).collect::<Vec<_>>()})
}

#[tokio::test]
async fn a_hook_is_asked_again_and_its_no_stops_the_rollout() -> Result<()> {
    let play = Play::new("hooks").await?;
    let (old, new) = play.pair(4).await?;
    play.gate("open").await?;
    let hooks = Hooks::answer(&[503, 204, 403]).await?;
    let _controller = play.stage.start_with_egress().await?;
    let plan = plan(&hooks, &["initialize-rollout", "post-batch-rollout"]);
    play.rollout(of_pair(&plan)).await?;
    let status = play
        .until("it to fail", |status| {
            play.pass(SignedDuration::from_secs(1));
            is(RollingState::RolloutFailed)(status)
        })
        .await?;
    assert_eq!(status.outcome.context("no outcome")?.reason, "HookVetoed");
    let calls = hooks.calls();
    let phases: Vec<_> = calls.iter().map(|(_, body)| &body["phase"]).collect();
    assert_eq!(phases, ["initializing", "initializing", "rollingInBatches"]);
    assert!(
        calls[0].0 == calls[1].0 && calls[1].0 != calls[2].0,
        "{calls:?}"
    );
    assert_eq!(calls[0].1["name"], "web");
    // What the batch has brought out serves, and nothing more.
    new.has(Counts::all(2)).await?;
    old.has(Counts::all(2)).await?;
    Ok(())
}

/// Before any pod, before and after each batch, and at the end, in this order, each with what it is about.
#[tokio::test]
async fn hooks_are_called_in_their_order() -> Result<()> {
    let play = Play::new("order").await?;
    play.pair(4).await?;
    play.gate("open").await?;
    let hooks = Hooks::answer(&[200, 201, 202, 204]).await?;
    let _controller = play.stage.start_with_egress().await?;
    let types = [
        "initialize-rollout",
        "pre-batch-rollout",
        "post-batch-rollout",
        "finalize-rollout",
    ];
    let mut plan = plan(&hooks, &types);
    plan["rolloutWebhooks"][1]["metadata"] = json!({"team": "shop"});
    play.rollout(of_pair(&plan)).await?;
    play.succeeds().await?;
    let calls = hooks.calls();
    let told = calls.iter().map(|(_, it)| {
        let word = |field: &str| it[field].as_str().unwrap_or_default();
        let batch = it["batch"].as_i64();
        (
            word("phase"),
            batch,
            word("revision"),
            &it["metadata"]["team"],
        )
    });
    let (none, team) = (Value::Null, json!("shop"));
    let batch = |batch, team| ("rollingInBatches", Some(batch), "2.0.0", team);
    assert_eq!(
        told.collect::<Vec<_>>(),
        [
            ("initializing", None, "2.0.0", &none),
            batch(0, &team),
            batch(0, &none),
            batch(1, &team),
            batch(1, &none),
            ("finalising", None, "2.0.0", &none),
        ]
    );
    let keys: BTreeSet<_> = calls.iter().map(|(key, _)| key).collect();
    assert_eq!(keys.len(), calls.len(), "{calls:#?}");
    Ok(())
}

#[tokio::test]
async fn a_hook_may_expect_another_status() -> Result<()> {
    let play = Play::new("expects").await?;
    play.pair(2).await?;
    play.gate("open").await?;
    let hooks = Hooks::answer(&[418]).await?;
    let _controller = play.stage.start_with_egress().await?;
    let mut plan = plan(&hooks, &["initialize-rollout"]);
    plan["rolloutWebhooks"][0]["expectedStatus"] = json!([418]);
    play.rollout(of_pair(&plan)).await?;
    play.succeeds().await?;
    assert_eq!(hooks.calls().len(), 1);
    Ok(())
}

/// One that never answers, or cannot be reached, is called again until the deadline.
#[rstest]
#[tokio::test]
async fn a_hook_that_does_not_answer_fails_the_rollout_in_the_end(
    #[values("silent", "away", "busy")] how: &str,
) -> Result<()> {
    let play = Play::new("silent").await?;
    let (old, new) = play.pair(2).await?;
    play.gate("open").await?;
    let (hooks, silent) = (Hooks::answer(&[429]).await?, Hooks::silent().await?);
    let url = match how {
        "silent" => silent.url.clone(),
        // Nobody listens at that port.
        "away" => "http://127.0.0.1:1/".to_owned(),
        _ => hooks.url.clone(),
    };
    let _controller = play.stage.start_with_egress().await?;
    let hook = json!({"type": "initialize-rollout", "name": "up", "url": url, "timeout": "1s"});
    let plan = json!({"numBatches": 2, "rolloutWebhooks": [hook]});
    let mut spec = of_pair(&plan);
    spec["progressDeadline"] = json!("2m");
    play.rollout(spec).await?;
    let attempts = Cell::new(0);
    let status = play
        .until("it to fail", |status| {
            let called = status.hooks.first().map_or(0, |it| it.attempts);
            // Longer than the pause before the next call.
            if called > attempts.replace(called) {
                play.pass(SignedDuration::from_secs(20));
            }
            is(RollingState::RolloutFailed)(status)
        })
        .await?;
    let outcome = status.outcome.context("no outcome")?;
    assert_eq!(outcome.reason, "ProgressDeadlineExceeded");
    ensure!(status.hooks[0].attempts >= 3, "{:?}", status.hooks);
    assert_eq!(new.looked_at().await?["replicas"], Value::Null);
    old.has(Counts::all(2)).await?;
    Ok(())
}

/// What is put is the same as what is posted. What is only asked for has no body.
#[tokio::test]
async fn a_hook_is_called_by_its_method() -> Result<()> {
    let play = Play::new("methods").await?;
    play.pair(2).await?;
    play.gate("open").await?;
    let hooks = Hooks::answer(&[200]).await?;
    let _controller = play.stage.start_with_egress().await?;
    let mut plan = plan(&hooks, &["post-batch-rollout", "finalize-rollout"]);
    plan["numBatches"] = json!(1);
    let [put, get] = [0_usize, 1];
    plan["rolloutWebhooks"][put]["method"] = json!("PUT");
    plan["rolloutWebhooks"][put]["metadata"] = json!({"team": "shop"});
    plan["rolloutWebhooks"][get]["method"] = json!("GET");
    play.rollout(of_pair(&plan)).await?;
    let run = play.succeeds().await?.run.context("no run")?;
    assert_eq!(hooks.methods(), [Method::PUT, Method::GET]);
    let calls = hooks.calls();
    let sent = json!({
        "name": "web", "namespace": play.stage.namespace(), "phase": "rollingInBatches",
        "checksum": run.identity, "metadata": {"team": "shop"}, "batch": 0, "revision": "2.0.0",
    });
    assert_eq!((&calls[put].1, &calls[get].1), (&sent, &Value::Null));
    let keys: BTreeSet<_> = calls.iter().map(|(key, _)| key.as_str()).collect();
    ensure!(keys.len() == 2 && !keys.contains(""), "{keys:?}");
    Ok(())
}
