//! The crowd: pairs of Deployments, and a Rollout for each.

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt};
use kube::api::DynamicObject;
use kube::{Api, Client};
use serde_json::{Value, json};
use sluice_crds::{Gate, Rollout};
use sluice_tests::rights::{grant_rules, rule};
use sluice_tests::workloads::{Counts, Kind, Workloads};
use sluice_tests::{Applier, Writes};

use super::NAMESPACE;

/// How many requests are in flight while it is created.
const AT_ONCE: usize = 8;
/// The gate that holds the second batch of each.
const GATE: &str = "all";
/// What is rolled out.
pub(super) const REVISION: &str = "2.0.0";
/// How many pods each of a crowd has.
pub(super) const PODS: u32 = 2;

pub(super) struct Crowd {
    client: Client,
    workloads: Workloads,
}

impl Crowd {
    /// Nobody yet. The account of Rollouts may what it has to.
    pub(super) async fn new(client: &Client) -> Result<Self> {
        let account = format!("system:serviceaccount:{NAMESPACE}:sluice-rollout");
        let rules = [rule("apps", &["deployments"], &["patch"])];
        grant_rules(client.clone(), NAMESPACE, "rollout", &account, &rules).await?;
        Ok(Self {
            client: client.clone(),
            workloads: Workloads::within(client.clone(), NAMESPACE).await?,
        })
    }

    /// Makes so many, each of two batches, of which the gate holds the second.
    pub(super) async fn create(&self, n: usize) -> Result<()> {
        self.gate("closed").await?;
        let plan = json!({"rolloutBatches": [
            {"replicas": 1}, {"gates": {"refs": [{"name": GATE}]}},
        ]});
        let create = async |place: usize| {
            let name = format!("web-{place:04}");
            self.pair(&name, PODS).await?;
            self.rollout(&name, &plan).await
        };
        futures::stream::iter(0..n)
            .map(create)
            .buffer_unordered(AT_ONCE)
            .try_for_each(async |()| Ok(()))
            .await
            .context("cannot create the Rollouts")
    }

    /// Two Deployments, of which the first has its pods.
    pub(super) async fn pair(&self, name: &str, pods: u32) -> Result<()> {
        let create = |version: &str, pods: u32| {
            let name = format!("{name}-{version}");
            let spec = json!({"replicas": pods});
            async move { self.workloads.create(Kind::Deployment, &name, spec).await }
        };
        create("v2", 0).await?.looked_at().await?;
        create("v1", pods)
            .await?
            .has(Counts::all(pods.into()))
            .await?;
        Ok(())
    }

    /// The Rollout of such a pair.
    pub(super) async fn rollout(&self, name: &str, plan: &Value) -> Result<()> {
        let of = |version: &str| json!({"kind": "Deployment", "name": format!("{name}-{version}")});
        let rollout = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Rollout", "metadata": {"name": name},
            "spec": {
                "targetRef": of("v2"), "sourceRef": [of("v1")], "revision": REVISION,
                "rolloutPlan": plan,
            },
        });
        self.rollouts()
            .add(&serde_json::from_value(rollout)?)
            .await?;
        Ok(())
    }

    /// Opens or closes the gate of all.
    pub(super) async fn gate(&self, state: &str) -> Result<()> {
        let gate = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Gate", "metadata": {"name": GATE},
            "spec": {"default": state},
        });
        let gates: Api<Gate> = Api::namespaced(self.client.clone(), NAMESPACE);
        match gates.get_opt(GATE).await? {
            Some(_) => gates.merge(GATE, gate).await.map(drop)?,
            None => {
                let applier = Applier::new(self.client.clone()).in_namespace(NAMESPACE);
                applier.text(&gate.to_string()).await?;
            }
        }
        Ok(())
    }

    pub(super) fn rollouts(&self) -> Api<Rollout> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    /// All Deployments.
    pub(super) fn deployments(&self) -> Api<DynamicObject> {
        let resource = Kind::Deployment.resource();
        Api::namespaced_with(self.client.clone(), NAMESPACE, &resource)
    }
}
