//! Promotion by notification: an Alert of the real notification-controller receives what is to be promoted,
//! also what was sent twice, and what nobody has listened to at first.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, ensure};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use parking_lot::Mutex;
use serde_json::{Value, json};
use sluice_crds::pipeline::{EnvironmentState, EnvironmentStatus, Phase};
use sluice_crds::{Pipeline, PipelineStatus, State as GateState};
use sluice_tests::flux::{Charts, Inbox, World};
use sluice_tests::{poll, status};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::stage::{DEADLINE, NOW, Stage, app};

const APP: &str = "app";
const PROD: &str = "prod";
/// The pipeline whose Alert is about the app, and the one whose Alert is about itself.
const SHOP: &str = "shop";
const NAMED: &str = "named";
/// Of the latter.
const GATES: &str = ", gates: {refs: [{name: production}]}";
/// What was promoted is said to have no effect, and is sent again.
const LATER: &str = "2026-11-20T12:31:00Z";
/// Where the kinds are that an Alert can name: the guide adds one.
const KINDS: &str = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/eventSources/items/properties/kind/enum/-";
const GUIDE: &str = include_str!("../../docs/guides/flux-notifications.md");

/// Stands before notification-controller. On request it sends each promotion by itself before.
struct Relay {
    target: String,
    twice: AtomicBool,
    /// What notification-controller has answered to promotions.
    answers: Mutex<Vec<u16>>,
}

impl Relay {
    /// Its address, and what serves it.
    async fn serve(world: &World) -> Result<(Arc<Self>, String, JoinSet<()>)> {
        let url = world.flux.events_url();
        let target = url.trim_start_matches("http://").trim_end_matches('/');
        let relay = Arc::new(Self {
            target: target.to_owned(),
            twice: AtomicBool::new(false),
            answers: Mutex::default(),
        });
        let page = Router::new()
            .route("/", post(pass_on))
            .with_state(Arc::clone(&relay));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let url = format!("http://{}/", listener.local_addr()?);
        let mut server = JoinSet::new();
        server.spawn(async move {
            let _ = axum::serve(listener, page).await;
        });
        Ok((relay, url, server))
    }

    async fn pass(&self, body: &[u8]) -> Result<StatusCode> {
        let is_promotion = is_promotion(&serde_json::from_slice(body)?);
        if is_promotion && self.twice.load(Ordering::SeqCst) {
            let answer = self.send(body).await?;
            self.answers.lock().push(answer);
        }
        let answer = self.send(body).await?;
        if is_promotion {
            self.answers.lock().push(answer);
        }
        Ok(StatusCode::from_u16(answer)?)
    }

    async fn send(&self, body: &[u8]) -> Result<u16> {
        let mut stream = TcpStream::connect(&self.target).await?;
        let head = format!(
            "POST / HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            self.target,
            body.len()
        );
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        let answer = String::from_utf8_lossy(&answer);
        let status = answer.split(' ').nth(1).context("no status")?;
        Ok(status.parse()?)
    }
}

async fn pass_on(State(relay): State<Arc<Relay>>, body: Bytes) -> StatusCode {
    let answer = relay.pass(&body).await;
    answer.unwrap_or(StatusCode::BAD_GATEWAY)
}

fn pipeline(name: &str, strategy: &str, gates: &str, dev: &str, prod: &str) -> String {
    format!(
        "
apiVersion: sluice.dev/v1alpha1
kind: Pipeline
metadata: {{name: {name}}}
spec:
  appRef: {{kind: HelmRelease, name: {APP}}}
  promotion: {{strategy: {{notification: {{{strategy}}}}}}}
  environments:
    - {{name: dev, targets: [{{namespace: {dev}}}]}}
    - {{name: {PROD}, targets: [{{namespace: {prod}}}]{gates}}}
"
    )
}

/// Waits until prod is as `check` wants it.
async fn prod_is(
    stage: &Stage<'_>,
    name: &str,
    what: &str,
    check: impl Fn(&PipelineStatus, &EnvironmentStatus) -> bool,
) -> Result<EnvironmentStatus> {
    let api: Api<Pipeline> = Api::namespaced(stage.client(), stage.namespace());
    let is = |status: &PipelineStatus| {
        let prod = status.environments.get(PROD);
        prod.is_some_and(|prod| check(status, prod))
    };
    let pipeline = status::until(&api, name, DEADLINE, what, is).await?;
    let status = pipeline.status.context("no status")?;
    status.environments.get(PROD).cloned().context("no prod")
}

/// In the namespace of prod: what an Alert about an object lets through.
async fn alert(prod: &Stage<'_>, kind: &str, name: &str) -> Result<Inbox> {
    let inbox = Inbox::serve().await?;
    let provider = json!({"type": "generic", "address": inbox.url()});
    prod.put("Provider", name, provider).await?;
    let sources = json!([{"kind": kind, "name": name}]);
    let alert = json!({"providerRef": {"name": name}, "eventSources": sources});
    prod.put("Alert", name, alert).await?;
    Ok(inbox)
}

fn is_promotion(event: &Value) -> bool {
    event["reason"] == "Promote"
}

/// Waits until a revision was sent, so often again.
async fn is_sent(prod: &Stage<'_>, name: &str, revision: &str, repeats: u32) -> Result<()> {
    let sent = |_: &PipelineStatus, prod: &EnvironmentStatus| {
        let promotion = prod.promotion.as_ref().filter(|it| {
            it.revision == revision && it.phase == Phase::Succeeded && it.repeats == repeats
        });
        prod.state == EnvironmentState::Promoted && promotion.is_some()
    };
    let status = prod_is(prod, name, "it to be sent", sent).await?;
    let reason = status.promotion.and_then(|it| it.reason);
    assert_eq!(reason.as_deref(), Some("Sent"));
    Ok(())
}

/// A HelmRelease gets a new version of its chart.
async fn get(stage: &Stage<'_>, version: &str) -> Result<()> {
    stage.reconcile("HelmRepository", APP).await?;
    stage.reconcile("HelmChart", APP).await?;
    stage.released(APP, version).await
}

/// In a world of its own, because the controller sees all namespaces.
#[tokio::test]
async fn an_alert_about_the_app_receives_what_is_to_be_promoted_once() -> Result<()> {
    let world = World::start().await?;
    let dev = Stage::within(&world, "promote-dev", NOW).await?;
    let prod = Stage::within(&world, "promote-prod", NOW).await?;
    let charts = Charts::serve().await?;
    charts.publish(APP, "1.0.0", &[("app.yaml", &app(APP, "one"))])?;
    dev.helm_chart(APP, &charts, "1.x").await?;
    prod.helm_chart(APP, &charts, "1.0.0").await?;
    for stage in [&dev, &prod] {
        stage.helm_release(APP, APP).await?;
        stage.released(APP, "1.0.0").await?;
    }
    let inbox = alert(&prod, "HelmRelease", APP).await?;
    let about_the_app = "involvedObject: Application";
    let (from, to) = (dev.namespace(), prod.namespace());
    prod.apply(&pipeline(SHOP, about_the_app, "", from, to))
        .await?;
    let (relay, events, _server) = Relay::serve(&world).await?;
    let mut settings = dev.settings();
    settings.watch_all_namespaces = true;
    settings.events_addr = events.parse().map_err(anyhow::Error::msg)?;
    let _controller = dev.start_with(settings).await?;
    let completed = |status: &PipelineStatus, _: &EnvironmentStatus| {
        let run = status.run.as_ref();
        run.is_some_and(|run| run.completed_at.is_some())
    };
    prod_is(&prod, SHOP, "the first run to be completed", completed).await?;
    let early = inbox.events().into_iter().find(is_promotion);
    ensure!(early.is_none(), "nothing was to be promoted: {early:?}");

    charts.publish(APP, "1.1.0", &[("app.yaml", &app(APP, "two"))])?;
    get(&dev, "1.1.0").await?;
    let event = inbox
        .receives("what is to be promoted", is_promotion)
        .await?;
    assert_eq!(event["message"], format!("Promote {APP} 1.1.0 to {PROD}"));
    assert_eq!(event["severity"], "info");
    assert_eq!(event["reportingController"], "gate-controller");
    let involved = json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
        "namespace": prod.namespace(), "name": APP,
    });
    assert_eq!(event["involvedObject"], involved);
    let metadata = json!({
        "pipeline": format!("{}/shop", prod.namespace()), "environment": PROD, "revision": "1.1.0",
    });
    assert_eq!(event["metadata"], metadata);
    is_sent(&prod, SHOP, "1.1.0", 0).await?;

    // Whom the Alert has called changes what prod runs.
    let version = event["metadata"]["revision"]
        .as_str()
        .context("no revision")?;
    prod.helm_chart(APP, &charts, version).await?;
    get(&prod, "1.1.0").await?;
    let passed =
        |_: &PipelineStatus, prod: &EnvironmentStatus| prod.state == EnvironmentState::Passed;
    prod_is(&prod, SHOP, "prod to have passed", passed).await?;
    assert_eq!(promotions(&inbox), ["1.1.0"]);

    charts.publish(APP, "1.2.0", &[("app.yaml", &app(APP, "three"))])?;
    what_was_sent_before_is_received_once(&dev, &prod, &relay, &inbox).await?;
    what_nobody_has_listened_to_is_sent_again(&dev, &prod, &relay).await
}

/// The revisions that were to be promoted.
fn promotions(inbox: &Inbox) -> Vec<String> {
    let events = inbox.events().into_iter().filter(is_promotion);
    let revisions = events.map(|event| event["metadata"]["revision"].as_str().map(str::to_owned));
    revisions.flatten().collect()
}

/// The first answer does not reach the controller, and the second says that it is a duplicate.
async fn what_was_sent_before_is_received_once(
    dev: &Stage<'_>,
    prod: &Stage<'_>,
    relay: &Relay,
    inbox: &Inbox,
) -> Result<()> {
    assert_eq!(*relay.answers.lock(), [202]);
    relay.twice.store(true, Ordering::SeqCst);
    get(dev, "1.2.0").await?;
    is_sent(prod, SHOP, "1.2.0", 0).await?;
    relay.twice.store(false, Ordering::SeqCst);
    assert_eq!(*relay.answers.lock(), [202, 202, 429]);
    let is_next = |event: &Value| is_promotion(event) && event["metadata"]["revision"] == "1.2.0";
    inbox.receives("what is to be promoted", is_next).await?;
    assert_eq!(promotions(inbox), ["1.1.0", "1.2.0"]);
    Ok(())
}

async fn turn(stage: &Stage<'_>, default: &str) -> Result<()> {
    let gate = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Gate", "metadata": {"name": "production"},
        "spec": {"default": default},
    });
    stage.apply(&gate.to_string()).await
}

/// Another pipeline of the same app. There is no Alert about it, and there can be none until the definition
/// of Alerts is widened.
async fn what_nobody_has_listened_to_is_sent_again(
    dev: &Stage<'_>,
    prod: &Stage<'_>,
    relay: &Relay,
) -> Result<()> {
    turn(prod, "open").await?;
    let (from, to) = (dev.namespace(), prod.namespace());
    prod.apply(&pipeline(NAMED, "", GATES, from, to)).await?;
    is_sent(prod, NAMED, "1.2.0", 0).await?;
    turn(prod, "closed").await?;
    prod.says("production", GateState::Closed, "Default")
        .await?;
    dev.set(LATER);
    let has_none =
        |_: &PipelineStatus, prod: &EnvironmentStatus| prod.state == EnvironmentState::NoEffect;
    prod_is(prod, NAMED, "it to have no effect", has_none).await?;

    let refused = alert(prod, "Pipeline", NAMED).await.err();
    let refused = format!("{:#}", refused.context("it was taken")?);
    ensure!(refused.contains("eventSources[0].kind"), "{refused}");
    widen(prod).await?;
    let taken = async || alert(prod, "Pipeline", NAMED).await;
    let inbox = poll(DEADLINE, "an Alert about pipelines", taken).await?;
    is_listening(prod, relay, &inbox).await?;
    turn(prod, "open").await?;
    let event = inbox
        .receives("what is to be promoted", is_promotion)
        .await?;
    assert_eq!(event["involvedObject"]["kind"], "Pipeline");
    assert_eq!(event["involvedObject"]["name"], NAMED);
    assert_eq!(event["metadata"]["revision"], "1.2.0");
    is_sent(prod, NAMED, "1.2.0", 1).await
}

/// Waits until notification-controller knows the Alert about the pipeline: it lists Alerts again when their
/// definition has changed.
async fn is_listening(prod: &Stage<'_>, relay: &Relay, inbox: &Inbox) -> Result<()> {
    let mut tries = 0;
    poll(DEADLINE, "an event to come through", async || {
        tries += 1;
        let event = json!({
            "involvedObject": {
                "apiVersion": "sluice.dev/v1alpha1", "kind": "Pipeline",
                "namespace": prod.namespace(), "name": NAMED,
            },
            "severity": "info", "timestamp": NOW, "reason": "Try", "message": format!("try {tries}"),
            "reportingController": "test",
        });
        relay.send(event.to_string().as_bytes()).await?;
        ensure!(!inbox.events().is_empty(), "nothing came");
        Ok::<_, anyhow::Error>(())
    })
    .await
}

/// Lets Alerts name pipelines, as the guide does it for gates.
async fn widen(stage: &Stage<'_>) -> Result<()> {
    ensure!(
        GUIDE.contains(&format!("path: {KINDS}\n")),
        "not as the guide has it"
    );
    let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let definitions: Api<DynamicObject> =
        Api::all_with(stage.client(), &ApiResource::from_gvk(&kind));
    let patch = json!([{"op": "add", "path": KINDS, "value": "Pipeline"}]);
    let patch: Patch<()> = Patch::Json(serde_json::from_value(patch)?);
    let name = "alerts.notification.toolkit.fluxcd.io";
    let params = PatchParams::default();
    definitions.patch(name, &params, &patch).await?;
    Ok(())
}
