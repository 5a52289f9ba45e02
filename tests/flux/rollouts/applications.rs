//! Kustomizations as targets and sources.

use anyhow::Result;
use serde_json::json;
use sluice_tests::Writes;
use sluice_tests::workloads::Counts;

use super::{PAIR, SIZE, Shop, deployment, folders, ignore, of_applications};

/// Two Kustomizations, each with a folder.
#[tokio::test]
async fn one_application_takes_the_place_of_another() -> Result<()> {
    let shop = Shop::new("ro-apps").await?;
    let _controller = shop.stage.start().await?;
    let mut worker = deployment("worker", "1", 1);
    worker["metadata"]["labels"] = json!({"app.kubernetes.io/component": "worker"});
    let [old, new] = folders();
    let files = [old, new, ("web-v2/worker.yaml", worker)];
    let revision = shop.push(&files).await?;
    for name in PAIR {
        let with = json!({"ignore": ignore()});
        shop.applies(name, &format!("./{name}"), with).await?;
        shop.stage.applied(name, &revision).await?;
    }
    let rollout = of_applications("Kustomization")?;
    shop.stage.apply(&rollout.to_string()).await?;
    let held = shop.is_held("ApplicationUnfit").await?;
    assert_eq!(
        held.message,
        "spec.component: Kustomization web-v2 has several workloads: Deployment web-v2 (web), Deployment worker \
         (worker); write which one, such as `component: web`: the value of its label app.kubernetes.io/component"
    );
    let component = json!({"spec": {"component": "web"}});
    shop.rollouts().merge("web", component).await?;
    let status = shop.succeeds().await?;
    assert_eq!(status.run.map(|run| run.revision), Some(revision));
    shop.has(0, SIZE).await?;
    shop.flux_undoes_nothing("Kustomization", &PAIR, (0, SIZE))
        .await?;
    shop.deployment("worker").has(Counts::all(1)).await?;
    Ok(())
}
