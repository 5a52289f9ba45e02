//! That the watch over statuses sees what is wrong, also if it is put right at once.

use anyhow::Result;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use sluice_crds::{Gate, Setting};
use sluice_tests::conformance::Watch;
use sluice_tests::stage::gate;
use sluice_tests::{Namespace, Writes, shared};

/// A status with two conditions, about the first generation.
fn status(ready: &str, since: &str, opened: &str) -> Value {
    let condition = |type_, status: &str| {
        json!({
            "type": type_, "status": status, "reason": "Default", "message": "by default",
            "lastTransitionTime": since, "observedGeneration": 1,
        })
    };
    json!({
        "observedGeneration": 1,
        "conditions": [condition("Ready", ready), condition(opened, "True")],
    })
}

#[tokio::test]
async fn a_status_that_is_wrong_for_a_moment_is_seen() -> Result<()> {
    let cluster = shared().await?;
    let namespace = Namespace::create(cluster, "judged").await?;
    let gates: Api<Gate> = Api::namespaced(cluster.client().await?, namespace.name());
    let open = gate("production", Setting::Open);
    gates.add(&open).await?;
    let write = async |manager: &str, status: Value| {
        let patch = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Gate",
            "metadata": {"name": "production"}, "status": status,
        });
        let (manager, patch) = (PatchParams::apply(manager).force(), Patch::Apply(patch));
        gates.patch_status("production", &manager, &patch).await
    };
    let (noon, later) = ("2026-11-20T12:00:00Z", "2026-11-20T13:00:00Z");
    let good = status("True", noon, "Opened");

    let watch = Watch::start(cluster, namespace.name()).await?;
    write("gate-controller-gates", good.clone()).await?;
    assert!(watch.end()?.is_empty());

    let watch = Watch::start(cluster, namespace.name()).await?;
    write("gate-controller-gates", status("True", later, "Opened")).await?;
    write("gate-controller-gates", status("True", later, "Stalled")).await?;
    write("gate-controller-gates", good).await?;
    let broken = watch.end()?;
    for rule in [
        "Gate production: the last transition is another one only with the status: Ready stays True",
        "Gate production: what is stalled or under way is not ready: both Ready and Stalled hold",
    ] {
        let found = broken.iter().any(|broken| broken.starts_with(rule));
        assert!(found, "{rule}: {broken:?}");
    }

    // Somebody else lies: that is not the controller's doing.
    let watch = Watch::start(cluster, namespace.name()).await?;
    write("alice", json!({"conditions": [], "message": "mine"})).await?;
    assert!(watch.end()?.is_empty());
    Ok(())
}
