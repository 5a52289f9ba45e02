//! Promotion by notification: an Alert of the real notification-controller receives what is to be promoted.

use anyhow::{Context, Result, ensure};
use kube::Api;
use serde_json::{Value, json};
use sluice_crds::pipeline::{EnvironmentState, EnvironmentStatus, Phase};
use sluice_crds::{Pipeline, PipelineStatus};
use sluice_tests::flux::{Charts, Inbox, World};
use sluice_tests::status;

use crate::stage::{DEADLINE, NOW, Stage, app};

const APP: &str = "app";
const PROD: &str = "prod";

fn pipeline(dev: &str, prod: &str) -> String {
    format!(
        "
apiVersion: sluice.dev/v1alpha1
kind: Pipeline
metadata: {{name: shop}}
spec:
  appRef: {{kind: HelmRelease, name: {APP}}}
  promotion: {{strategy: {{notification: {{involvedObject: Application}}}}}}
  environments:
    - {{name: dev, targets: [{{namespace: {dev}}}]}}
    - {{name: {PROD}, targets: [{{namespace: {prod}}}]}}
"
    )
}

/// Waits until prod is as `check` wants it.
async fn prod_is(
    stage: &Stage<'_>,
    what: &str,
    check: impl Fn(&PipelineStatus, &EnvironmentStatus) -> bool,
) -> Result<EnvironmentStatus> {
    let api: Api<Pipeline> = Api::namespaced(stage.client(), stage.namespace());
    let is = |status: &PipelineStatus| {
        let prod = status.environments.get(PROD);
        prod.is_some_and(|prod| check(status, prod))
    };
    let pipeline = status::until(&api, "shop", DEADLINE, what, is).await?;
    let status = pipeline.status.context("no status")?;
    status.environments.get(PROD).cloned().context("no prod")
}

/// In the namespace of prod: what an Alert about HelmReleases lets through.
async fn alert(prod: &Stage<'_>) -> Result<Inbox> {
    let inbox = Inbox::serve().await?;
    let provider = json!({"type": "generic", "address": inbox.url()});
    prod.put("Provider", "promotions", provider).await?;
    let sources = json!([{"kind": "HelmRelease", "name": APP}]);
    let alert = json!({"providerRef": {"name": "promotions"}, "eventSources": sources});
    prod.put("Alert", "promotions", alert).await?;
    Ok(inbox)
}

fn is_promotion(event: &Value) -> bool {
    event["reason"] == "Promote"
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
    let inbox = alert(&prod).await?;
    prod.apply(&pipeline(dev.namespace(), prod.namespace()))
        .await?;
    let mut settings = dev.settings();
    settings.watch_all_namespaces = true;
    settings.events_addr = (world.flux.events_url().parse()).map_err(anyhow::Error::msg)?;
    let _controller = dev.start_with(settings).await?;
    let completed = |status: &PipelineStatus, _: &EnvironmentStatus| {
        let run = status.run.as_ref();
        run.is_some_and(|run| run.completed_at.is_some())
    };
    prod_is(&prod, "the first run to be completed", completed).await?;
    let early = inbox.events().into_iter().find(is_promotion);
    ensure!(early.is_none(), "nothing was to be promoted: {early:?}");

    charts.publish(APP, "1.1.0", &[("app.yaml", &app(APP, "two"))])?;
    dev.reconcile("HelmRepository", APP).await?;
    dev.reconcile("HelmChart", APP).await?;
    dev.released(APP, "1.1.0").await?;
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
    let sent = |_: &PipelineStatus, prod: &EnvironmentStatus| {
        let promotion = prod.promotion.as_ref();
        prod.state == EnvironmentState::Promoted
            && promotion.is_some_and(|it| it.phase == Phase::Succeeded)
    };
    let status = prod_is(&prod, "it to be sent", sent).await?;
    let reason = status.promotion.and_then(|it| it.reason);
    assert_eq!(reason.as_deref(), Some("Sent"));

    // Whom the Alert has called changes what prod runs.
    let version = event["metadata"]["revision"]
        .as_str()
        .context("no revision")?;
    prod.helm_chart(APP, &charts, version).await?;
    prod.reconcile("HelmRepository", APP).await?;
    prod.reconcile("HelmChart", APP).await?;
    prod.released(APP, "1.1.0").await?;
    let passed =
        |_: &PipelineStatus, prod: &EnvironmentStatus| prod.state == EnvironmentState::Passed;
    prod_is(&prod, "prod to have passed", passed).await?;
    let events = inbox.events();
    let promotions = events.iter().filter(|event| is_promotion(event));
    assert_eq!(promotions.count(), 1, "{events:?}");
    Ok(())
}
