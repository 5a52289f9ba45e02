//! A look at a pipeline that somebody asks for, as `flux reconcile` does.

use anyhow::{Context, Result, ensure};
use kube::Api;
use serde_json::json;
use sluice_crds::{Pipeline, PipelineStatus};
use sluice_tests::{Writes, status};

use crate::stage::{DEADLINE, Stage};

/// Its app is not there: nothing changes about it by itself.
fn shop(namespace: &str) -> String {
    let environments = json!([{"name": "dev", "targets": [{"namespace": namespace}]}]);
    let pipeline = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Pipeline", "metadata": {"name": "shop"},
        "spec": {
            "appRef": {"apiVersion": "v1", "kind": "ConfigMap", "name": "shop"},
            "environments": environments,
        },
    });
    pipeline.to_string()
}

/// The clock stands still, so that nothing but the request leads to a look.
#[tokio::test]
async fn a_look_that_is_asked_for_is_had_at_once_and_answered() -> Result<()> {
    let stage = Stage::new("requested", "2026-11-20T12:00:00Z").await?;
    stage.apply(&shop(stage.namespace())).await?;
    let controller = stage.start().await?;
    let pipelines: Api<Pipeline> = Api::namespaced(stage.client(), stage.namespace());
    let says = async |what: &str, check: &dyn Fn(&PipelineStatus) -> bool| {
        let pipeline = status::until(&pipelines, "shop", DEADLINE, what, check).await?;
        pipeline.status.context("no status")
    };
    let is_decided = |status: &PipelineStatus| {
        let mut conditions = status.conditions.iter();
        conditions.any(|it| it.type_ == "Ready" && it.reason == "TargetNotReadable")
    };
    let first = says("it to be decided", &is_decided).await?;
    ensure!(first.last_handled_reconcile_at.is_none());
    let before = controller.writes("Pipeline").await?;
    for request in ["2026-11-20T12:00:00.123456789Z", "once more"] {
        let annotations = json!({"reconcile.fluxcd.io/requestedAt": request});
        let change = json!({"metadata": {"annotations": annotations}});
        pipelines.merge("shop", change).await?;
        let is_answered =
            |status: &PipelineStatus| status.last_handled_reconcile_at.as_deref() == Some(request);
        let status = says("the request to be answered", &is_answered).await?;
        // It was looked at, and nothing else is to be said.
        let answered = PipelineStatus {
            last_handled_reconcile_at: Some(request.to_owned()),
            ..first.clone()
        };
        assert_eq!(status, answered);
    }
    // Each request is answered by one write.
    assert_eq!(controller.writes("Pipeline").await? - before, 2);
    Ok(())
}
