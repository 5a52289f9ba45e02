//! Kustomizations, and workloads of theirs, in another namespace than the Rollout.

use anyhow::Result;
use jiff::SignedDuration;
use serde_json::json;
use sluice_crds::RolloutStatus;
use sluice_tests::Namespace;

use super::{PAIR, SIZE, SOURCE, Shop, folders, ignore, of_applications, ready, rollout};
use crate::stage::{NOW, Stage};

#[tokio::test]
async fn an_application_with_its_workload_in_another_namespace_holds_until_that_is_here()
-> Result<()> {
    let shop = Shop::new("ro-there").await?;
    let other = Namespace::create(shop.stage.cluster(), "ro-other").await?;
    let _controller = shop.stage.start().await?;
    let revision = shop.push(&folders()).await?;
    let here = shop.stage.namespace();
    for (name, namespace) in PAIR.into_iter().zip([here, other.name()]) {
        let with = json!({"ignore": ignore(), "targetNamespace": namespace});
        shop.applies(name, &format!("./{name}"), with).await?;
        shop.stage.applied(name, &revision).await?;
    }
    let rollout = of_applications("Kustomization")?;
    shop.stage.apply(&rollout.to_string()).await?;
    let held = shop.is_held("ApplicationUnfit").await?;
    let expected = format!(
        "spec.targetRef: the workloads of Kustomization web-v2 are in another namespace: Deployment {}/web-v2; name \
         the workload itself, in a Rollout of its namespace",
        other.name()
    );
    assert_eq!(held.message, expected);
    let with = json!({"ignore": ignore()});
    shop.applies("web-v2", "./web-v2", with).await?;
    shop.succeeds().await?;
    shop.has(0, SIZE).await
}

impl Shop {
    /// Kustomizations of another namespace apply the two folders here.
    async fn applied_from(&self, other: &Stage<'_>) -> Result<()> {
        let revision = self.push(&folders()).await?;
        let source = json!({
            "kind": "GitRepository", "name": SOURCE, "namespace": self.stage.namespace(),
        });
        for name in PAIR {
            let with = json!({"sourceRef": source});
            let spec = self.kustomization(&format!("./{name}"), &with)?;
            other.put("Kustomization", name, spec).await?;
            other.applied(name, &revision).await?;
        }
        Ok(())
    }

    /// Lets time go on until the Rollout says these words: what is not known is told after a while.
    async fn says_in_time(&self, words: &str) -> Result<()> {
        let says = |status: &RolloutStatus| {
            let later = self.stage.now() + SignedDuration::from_secs(1);
            self.stage.clock().step(later);
            ready(status).contains(words)
        };
        self.until(words, says).await.map(drop)
    }
}

/// Whatever it applies here: it is not looked for where the Rollout is not, and a controller of one namespace cannot
/// know whether it writes sizes again.
#[tokio::test]
async fn of_a_kustomization_of_another_namespace_the_workloads_are_named() -> Result<()> {
    let shop = Shop::new("ro-here").await?;
    let other = Stage::new("ro-flux", NOW).await?;
    let _controller = shop.stage.start().await?;
    shop.applied_from(&other).await?;
    let applications = of_applications("Kustomization")?;
    shop.stage.apply(&applications.to_string()).await?;
    shop.says_in_time("there is no Kustomization web-v2")
        .await?;
    shop.stage.apply(&rollout(&json!({}))?.to_string()).await?;
    let told = format!(
        "Kustomization {}/web-v2 cannot be read: the controller sees only its own namespace",
        other.namespace()
    );
    shop.says_in_time(&told).await?;
    shop.is_held("NotReadable").await?;
    shop.has(SIZE, 0).await?;
    // As the guide says of workloads that are there already.
    for name in PAIR {
        shop.mark(name, "Ignore").await?;
    }
    shop.succeeds().await?;
    shop.has(0, SIZE).await?;
    for name in PAIR {
        other.reconcile("Kustomization", name).await?;
    }
    shop.keeps((0, SIZE)).await
}
