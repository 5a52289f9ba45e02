//! In whose name Flux applies, and in whose name a Rollout acts.

use anyhow::{Context, Result};
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::json;
use sluice_tests::rights::rule;

use super::{SIZE, Shop, ignore, pair};
use crate::guide::Guide;

/// The account of a Kustomization.
const DEPLOYER: &str = "deployer";

impl Shop {
    /// Makes the account, which may do everything to Deployments and to Rollouts.
    async fn grant_deployer(&self) -> Result<()> {
        let account = json!({
            "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": DEPLOYER},
        });
        self.stage.apply(&account.to_string()).await?;
        let user = format!(
            "system:serviceaccount:{}:{DEPLOYER}",
            self.stage.namespace()
        );
        let rules = [
            rule("apps", &["deployments"], &["*"]),
            rule("sluice.dev", &["rollouts"], &["*"]),
        ];
        self.stage.grant_rules(DEPLOYER, &user, &rules).await
    }

    /// A client with a token of the controller: one that only acts as the controller may act as anybody.
    async fn controller(&self) -> Result<Client> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.stage.client(), "sluice-system");
        let (params, wanted) = (PostParams::default(), TokenRequest::default());
        let issued = accounts.create_token_request("gate-controller", &params, &wanted);
        let token = issued.await?.status.context("no status")?.token;
        let token = token.context("no token")?;
        self.stage.cluster().client_of(&token).await
    }
}

/// What Flux may change a Rollout may not, before an admin has typed what that says.
#[tokio::test]
async fn a_rollout_does_not_act_by_the_account_of_its_kustomization() -> Result<()> {
    let shop = Shop::without_rights("ro-acts").await?;
    shop.grant_deployer().await?;
    let client = shop.controller().await?;
    let _controller = shop.stage.start_in_real_time(client).await?;
    let borrowed = pair(&json!({"serviceAccountName": DEPLOYER}))?;
    let first = shop.push(&borrowed).await?;
    let with = json!({"serviceAccountName": DEPLOYER, "ignore": ignore()});
    shop.applies("shop", "./shop", with).await?;
    shop.stage.applied("shop", &first).await?;
    shop.says("the chart has to list `deployer` in rollouts.serviceAccountNames")
        .await?;
    let second = shop.push(&pair(&json!({}))?).await?;
    shop.stage.applied("shop", &second).await?;
    let told = shop.says("an admin may run `kubectl").await?;
    shop.has(SIZE, 0).await?;
    let admin = Guide::of(shop.stage.cluster(), &told)?;
    for command in told.split('`').filter(|it| it.starts_with("kubectl ")) {
        admin.sh(command).await?;
    }
    shop.succeeds().await?;
    shop.has(0, SIZE).await?;
    shop.flux_undoes_nothing("Kustomization", &["shop"], (0, SIZE))
        .await
}
