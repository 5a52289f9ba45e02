//! A namespace with a gate in it, and people with rights.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::{Map, Value, json};
use sluice_crds::{Gate, GateSpec};
use sluice_tests::{Cluster, Namespace, Writes, poll, rights};

pub use crate::chart::{CONTROLLER, installed};
pub use sluice_tests::DEADLINE;

/// The gate of every scene.
pub const GATE: &str = "production";

/// All that makes a force.
pub const KEYS: [&str; 7] = [
    "sluice.dev/force",
    "sluice.dev/force-until",
    "sluice.dev/force-reason",
    "sluice.dev/force-by",
    "sluice.dev/force-seen",
    "open.gate.fluxcd.io/requestedAt",
    "close.gate.fluxcd.io/requestedAt",
];

/// A gate in a namespace of its own.
pub struct Scene {
    cluster: &'static Cluster,
    namespace: Namespace,
}

/// Annotations to set, and with `null` to remove.
pub type Annotations = Map<String, Value>;

impl Scene {
    /// With a gate that nobody forces.
    pub async fn new() -> Result<Self> {
        let cluster = installed().await?;
        let namespace = Namespace::create(cluster, "policies").await?;
        let scene = Self { cluster, namespace };
        scene
            .grant(&["editor", "carol", "dave"], "sluice-edit")
            .await?;
        scene
            .grant(&["carol", "dave", "oncall"], "sluice-gate-override")
            .await?;
        for (user, verb) in [
            ("editor", "patch"),
            ("carol", "override"),
            ("dave", "override"),
            ("oncall", "override"),
        ] {
            scene.wait_until_may(user, verb).await?;
        }
        let gate = Gate::new(GATE, GateSpec::default());
        scene.gates("admin").await?.add(&gate).await?;
        Ok(scene)
    }

    /// With a gate that carol has forced open.
    pub async fn forced() -> Result<Self> {
        let scene = Self::new().await?;
        scene.annotate("carol", &force("carol")).await??;
        Ok(scene)
    }

    /// The gates as `user` sees them.
    pub async fn gates(&self, user: &str) -> Result<Api<Gate>> {
        let client = self.cluster.client_for(user).await?;
        Ok(Api::namespaced(client, self.namespace.name()))
    }

    /// The API server, as anyone who may do everything.
    pub fn cluster(&self) -> &Cluster {
        self.cluster
    }

    /// The namespace's name.
    pub fn namespace(&self) -> &str {
        self.namespace.name()
    }

    /// Changes annotations of the gate as `user`.
    pub async fn annotate(
        &self,
        user: &str,
        annotations: &Annotations,
    ) -> Result<kube::Result<Gate>> {
        let change = json!({"metadata": {"annotations": annotations}});
        self.patch(user, change).await
    }

    /// Changes the gate as `user`.
    pub async fn patch(&self, user: &str, change: Value) -> Result<kube::Result<Gate>> {
        let gates = self.gates(user).await?;
        let patch = change;
        Ok(gates.merge(GATE, &patch).await)
    }

    /// Writes into the status of the gate, as the controller does.
    pub async fn report(&self, status: Value) -> Result<()> {
        let gates = self.gates(CONTROLLER).await?;
        let patch = json!({ "status": status });
        gates.merge_status(GATE, &patch).await?;
        Ok(())
    }

    /// Notes the force that the gate has, and owns it from now on, as the controller does.
    pub async fn note(&self) -> Result<()> {
        let mut annotations = self.force().await?;
        annotations.insert("sluice.dev/force-seen".to_owned(), "{}".into());
        let noted = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Gate",
            "metadata": {"annotations": annotations},
        });
        let gates = self.gates(CONTROLLER).await?;
        let own = PatchParams::apply("gate-controller-force").force();
        gates.patch(GATE, &own, &Patch::Apply(noted)).await?;
        Ok(())
    }

    /// A force in effect, as the controller reports it.
    pub fn effective() -> Value {
        let instant = "2026-11-21T17:00:00Z";
        json!({
            "state": "open", "by": "carol", "reason": "hotfix 4711",
            "since": instant, "until": instant,
        })
    }

    /// The force annotations that the gate has now.
    pub async fn force(&self) -> Result<Annotations> {
        let gate = self.gates("admin").await?.get(GATE).await?;
        let annotations = gate.annotations().iter();
        let forced = annotations.filter(|(key, _)| KEYS.contains(&key.as_str()));
        Ok(forced
            .map(|(key, value)| (key.clone(), Value::from(value.as_str())))
            .collect())
    }

    /// Binds users to a ClusterRole in this namespace.
    pub async fn grant(&self, users: &[&str], role: &str) -> Result<()> {
        let client = self.cluster.client().await?;
        rights::grant(client, self.namespace(), role, users).await
    }

    /// Waits until `user` may do `verb` on gates here.
    pub async fn wait_until_may(&self, user: &str, verb: &str) -> Result<()> {
        let reviews: Api<SelfSubjectAccessReview> = Api::all(self.cluster.client_for(user).await?);
        let question = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(ResourceAttributes {
                    namespace: Some(self.namespace().to_owned()),
                    group: Some(sluice_crds::GROUP.to_owned()),
                    resource: Some("gates".to_owned()),
                    verb: Some(verb.to_owned()),
                    ..ResourceAttributes::default()
                }),
                ..SelfSubjectAccessReviewSpec::default()
            },
            ..SelfSubjectAccessReview::default()
        };
        poll(DEADLINE, "the binding to be in effect", async || {
            let answer = reviews.add(&question).await?;
            ensure!(
                answer.status.is_some_and(|status| status.allowed),
                "{user} may not {verb}"
            );
            Ok(())
        })
        .await
    }
}

/// Annotations from pairs.
pub fn annotations<const N: usize>(pairs: [(&str, &str); N]) -> Annotations {
    pairs
        .map(|(key, value)| (key.to_owned(), Value::from(value)))
        .into_iter()
        .collect()
}

/// A force that says all it must.
pub fn force(by: &str) -> Annotations {
    annotations([
        ("sluice.dev/force", "open"),
        ("sluice.dev/force-reason", "hotfix 4711"),
        ("sluice.dev/force-by", by),
    ])
}

/// The end of every force.
pub fn nothing() -> Annotations {
    KEYS.map(|key| (key.to_owned(), Value::Null))
        .into_iter()
        .collect()
}

/// Checks that the policy `sluice-gate-overrides` refused with a message that holds `expected`.
pub fn refused<T: std::fmt::Debug>(answer: kube::Result<T>, expected: &str) -> Result<()> {
    refused_by("sluice-gate-overrides", answer, expected)
}

/// Checks that `policy` refused with a message that holds `expected`.
pub fn refused_by<T: std::fmt::Debug>(
    policy: &str,
    answer: kube::Result<T>,
    expected: &str,
) -> Result<()> {
    let error = answer.err().context("it was let through")?.to_string();
    let prefix = format!("ValidatingAdmissionPolicy '{policy}'");
    ensure!(
        error.contains(&prefix) && error.contains(expected),
        "not {expected:?}: {error}"
    );
    Ok(())
}
