//! Events of ours, delivered by the real notification-controller: what an Alert can name, what is
//! kept of an event, and what counts as told already.

use gate_controller::tell::decisions::Asker;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, PostParams};
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use sluice_crds::{CheckedGate, Decision, Require, State, Subject};
use sluice_tests::controller::InProcess;
use sluice_tests::flux::{Git, Inbox};
use sluice_tests::poll;
use sluice_tests::stage::OFFICE_HOURS;

use crate::delivery::UPSTREAM;
use crate::stage::{DEADLINE, Stage, app};

const EVENING: &str = "2026-11-20T20:00:00Z";
const GUIDE: &str = "docs/guides/flux-notifications.md";

/// A place where notification-controller delivers what an Alert about one kind lets through.
async fn alert(stage: &Stage<'_>, kind: &str) -> Result<Inbox> {
    let inbox = Inbox::serve().await?;
    let provider = json!({"type": "generic", "address": inbox.url()});
    stage.put("Provider", "inbox", provider).await?;
    let sources = json!([{"kind": kind, "name": "*"}]);
    let alert = json!({"providerRef": {"name": "inbox"}, "eventSources": sources});
    stage.put("Alert", "deliveries", alert).await?;
    Ok(inbox)
}

/// A controller that tells the world's notification-controller, and a gate that is closed.
async fn controller(stage: &Stage<'_>) -> Result<InProcess> {
    let mut settings = stage.settings();
    let events = stage.world().flux.events_url();
    settings.events_addr = events.parse().map_err(anyhow::Error::msg)?;
    stage.apply(OFFICE_HOURS).await?;
    let controller = stage.start_with(settings).await?;
    stage.out_of_hours().await?;
    controller.rests().await?;
    Ok(controller)
}

/// A Kustomization waits at two gates.
fn held(stage: &Stage<'_>) -> Decision {
    let gate = |name: &str| format!("{}/{name}", stage.namespace());
    let gates = ["production", "copy"].map(gate);
    let checked = gates.clone().map(|gate| CheckedGate {
        gate,
        policy: None,
        state: State::Closed,
        reason: "OutsideWindow".to_owned(),
        message: "until Monday".to_owned(),
    });
    Decision {
        allowed: false,
        at: Time(stage.now()),
        subject: Subject {
            kind: "Kustomization".to_owned(),
            namespace: stage.namespace().to_owned(),
            name: Some("shop".to_owned()),
            environment: None,
            action: "sync".to_owned(),
            step: None,
            revision: Some("main@sha1:0123456789abcdef0123456789abcdef01234567".to_owned()),
        },
        require: Require::All,
        checked: checked.into(),
        decided_by: gates.into(),
        message: "held back until Monday".to_owned(),
        next: None,
    }
}

#[tokio::test]
async fn an_alert_about_a_kustomization_tells_what_holds_it_back_and_tells_it_once() -> Result<()> {
    let stage = Stage::new("held", EVENING).await?;
    let inbox = alert(&stage, "Kustomization").await?;
    let copy = OFFICE_HOURS.replace("{name: production}", "{name: copy}");
    stage.apply(&copy).await?;
    let controller = controller(&stage).await?;
    stage.says("copy", State::Closed, "OutsideWindow").await?;
    controller.rests().await?;
    let decision = held(&stage);
    let alice = Asker::Caller("alice");
    controller.decisions().tell(decision, alice).await;

    let blocked = inbox.receives("what is held back", |event| event["reason"] == "Blocked");
    let mut blocked = blocked.await?;
    let metadata = blocked["metadata"].take();
    let gates = format!("{0}/production,{0}/copy", stage.namespace());
    let expected = json!({
        "revision": "main@sha1:0123456789abcdef0123456789abcdef01234567",
        "action": "sync", "decided-by": gates,
    });
    assert_eq!(metadata, expected);
    let involved = json!({
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "namespace": stage.namespace(), "name": "shop",
    });
    assert_eq!(blocked["involvedObject"], involved);
    assert_eq!(blocked["severity"], "info");
    assert_eq!(blocked["reportingController"], "gate-controller");

    // There is an event on each of both gates, and this is the second.
    poll(DEADLINE, "the second to be a duplicate", async || {
        let duplicates = controller.notifications("duplicate");
        ensure!(duplicates == 1, "{duplicates} duplicates");
        Ok(())
    })
    .await?;
    assert_eq!(controller.notifications("dropped"), 0);
    assert_eq!(inbox.events().len(), 1, "{:?}", inbox.events());
    Ok(())
}

/// An Alert about a child tells what waits for it, and what goes out, besides what Flux itself tells.
#[tokio::test]
async fn an_alert_about_a_child_tells_what_waits_and_what_goes_out() -> Result<()> {
    let stage = Stage::new("child-told", EVENING).await?;
    let inbox = alert(&stage, "GitRepository").await?;
    let git = Git::serve().await?;
    let revision = Git::revision(&git.commit(&[("app.yaml", &app("app", "one"))])?);
    stage.git_repository(UPSTREAM, &git).await?;
    let _controller = controller(&stage).await?;
    stage.gate_source("app", json!({})).await?;
    let told = async |reason: &str| {
        let what = format!("that it is {reason}");
        let event = inbox.receives(&what, |event| event["reason"] == reason);
        let event = event.await?;
        assert_eq!(event["reportingController"], "gate-controller");
        let involved = json!({
            "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
            "namespace": stage.namespace(), "name": "app",
        });
        assert_eq!(event["involvedObject"], involved);
        assert_eq!(event["metadata"], json!({"revision": revision}));
        Ok::<_, anyhow::Error>(())
    };
    told("Blocked").await?;
    stage.set("2026-11-23T09:00:00Z");
    told("Admitted").await
}

/// What somebody has to mend is an error to an Alert that wants nothing else, and it is about what people
/// who use Flux know: the child, or the source that stands still.
#[tokio::test]
async fn an_alert_about_errors_alone_tells_what_somebody_has_to_mend() -> Result<()> {
    let stage = Stage::new("error-told", EVENING).await?;
    let inbox = Inbox::serve().await?;
    let provider = json!({"type": "generic", "address": inbox.url()});
    stage.put("Provider", "inbox", provider).await?;
    let alert = json!({
        "providerRef": {"name": "inbox"}, "eventSeverity": "error",
        "eventSources": [{"kind": "GitRepository", "name": "*"}],
    });
    stage.put("Alert", "errors", alert).await?;
    let git = Git::serve().await?;
    git.commit(&[("app.yaml", &app("app", "one"))])?;
    for source in [UPSTREAM, "theirs", "still"] {
        stage.git_repository(source, &git).await?;
    }
    let _controller = controller(&stage).await?;
    stage.gate_source("app", json!({})).await?;
    stage.gate_source("theirs", json!({})).await?;
    let revisions = format!("revisions: {{allow: ['{}']}}", "1".repeat(40));
    stage.keep("listed", &revisions).await?;
    let still = json!({
        "sourceRef": {"kind": "GitRepository", "name": "still"}, "strategy": "suspend",
        "gates": {"refs": [{"name": "listed"}]},
    });
    stage.gate_source("still", still).await?;
    stage
        .kustomization("sly", "GitRepository", UPSTREAM)
        .await?;
    for (reason, about) in [
        ("TargetTaken", "theirs"),
        ("DependsOnRevision", "still"),
        ("Bypassed", "app"),
    ] {
        let told = inbox.receives(reason, |event| event["reason"] == reason);
        let told = told.await?;
        ensure!(told["severity"] == "error", "{told}");
        ensure!(told["involvedObject"]["name"] == about, "{told}");
    }
    let events = inbox.events();
    let ours = |event: &&Value| event["reportingController"] == "gate-controller";
    let waits = events
        .iter()
        .filter(ours)
        .any(|event| event["reason"] == "Blocked");
    ensure!(!waits, "that something waits is no error: {events:?}");
    Ok(())
}

/// What the patch of the guide adds to, and what it adds.
fn patch_of_the_guide() -> Result<(String, Value)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let guide = fs::read_to_string(root.join(GUIDE))?;
    let blocks = guide.split("```yaml\n").skip(1);
    let mut blocks = blocks.filter_map(|block| block.split("```").next());
    let block = blocks
        .find(|block| block.starts_with("patches:"))
        .context("no patch in the guide")?;
    let patches: Value = serde_saphyr::from_str(block)?;
    let patch = patches["patches"][0]["patch"]
        .as_str()
        .context("no patch")?;
    let patch: Value = serde_saphyr::from_str(patch)?;
    assert_eq!(patch[0]["op"], "add");
    let path = patch[0]["path"].as_str().context("no path")?;
    let list = path
        .strip_suffix("/-")
        .context("not to the end of a list")?;
    Ok((list.to_owned(), patch[0]["value"].clone()))
}

/// Any kind is taken by notification-controller itself: the definition of Alerts stands in the way.
#[tokio::test]
async fn a_gate_can_be_named_once_the_definition_of_alerts_is_widened() -> Result<()> {
    let stage = Stage::new("widened", EVENING).await?;
    let refused = alert(&stage, "Gate").await.err().context("it was taken")?;
    let refused = format!("{refused:#}");
    ensure!(refused.contains("eventSources[0].kind"), "{refused}");

    let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let definitions: Api<DynamicObject> =
        Api::all_with(stage.client(), &ApiResource::from_gvk(&kind));
    let name = "alerts.notification.toolkit.fluxcd.io";
    let mut alerts = definitions.get(name).await?;
    let (kinds, added) = patch_of_the_guide()?;
    let kinds = alerts
        .data
        .pointer_mut(&kinds)
        .and_then(Value::as_array_mut);
    kinds.context("the patch leads nowhere")?.push(added);
    definitions
        .replace(name, &PostParams::default(), &alerts)
        .await?;
    let taken = async || alert(&stage, "Gate").await;
    let inbox = poll(DEADLINE, "an Alert about gates", taken).await?;

    let _controller = controller(&stage).await?;
    stage.set("2026-11-23T09:00:00Z");
    let opened = inbox.receives("that it opened", |event| event["reason"] == "Opened");
    let opened = opened.await?;
    assert_eq!(opened["involvedObject"]["kind"], "Gate");
    // The token is notification-controller's own: nobody is shown it.
    assert_eq!(opened["metadata"], Value::Null);
    Ok(())
}
