//! Gate policies on the real API server: whom they hold back, what they report, and that nobody is
//! answered before they are known.

use anyhow::{Context, Result, ensure};
use gate_controller::Settings;
use gate_controller::tell::counters::KindLabels;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use sluice_crds::{Decision, GatePolicy};
use sluice_tests::rights::rule;
use sluice_tests::{Writes, poll};

use crate::check::Desk;
use crate::stage::{DEADLINE, OFFICE_HOURS, Stage};
use crate::told::get;

const NOON: &str = "2026-11-20T12:00:00Z";

/// The label of what is written here: other controllers on the server leave it alone, and this one
/// everything else.
const ONLY: &str = "sluice.dev/only";

/// The settings of a controller of all namespaces that writes to what carries [`ONLY`].
pub fn all_namespaces(settings: &mut Settings) {
    settings.watch_all_namespaces = true;
    settings.watch_label_selector = Some(format!("{ONLY}={}", settings.runtime_namespace));
}

/// A policy of the test's own, with the name of its namespace. Dropped, it stays: it selects no
/// other namespace.
pub struct Policy {
    policies: Api<GatePolicy>,
    name: String,
}

impl Policy {
    /// Names the gate `freeze`, for whom `whom` says.
    pub async fn create(stage: &Stage, whom: Value) -> Result<Self> {
        let policy = Self {
            policies: Api::all(stage.client()),
            name: stage.namespace().to_owned(),
        };
        policy.apply(whom).await?;
        Ok(policy)
    }

    async fn apply(&self, whom: Value) -> Result<()> {
        let mut spec = whom;
        spec["gates"] = json!({"refs": [{"name": "freeze", "namespace": self.name}]});
        let object = json!({
            "apiVersion": "sluice.dev/v1alpha1",
            "kind": "GatePolicy",
            "metadata": {"name": self.name, "labels": {ONLY: self.name}},
            "spec": spec,
        });
        let own = PatchParams::apply("test").force();
        let patch = Patch::Apply(object);
        self.policies.patch(&self.name, &own, &patch).await?;
        Ok(())
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The labels of whatever the same controller writes to.
    pub fn labels(&self) -> Value {
        json!({ONLY: self.name})
    }

    /// It is gone.
    pub async fn delete(self) -> Result<()> {
        self.policies.remove(&self.name).await?;
        Ok(())
    }

    /// Waits until its condition `Ready` says this, of the present spec.
    async fn says(&self, status: &str, reason: &str) -> Result<String> {
        let what = format!("the policy to be {status} because of {reason}");
        poll(DEADLINE, &what, async || {
            let policy = self.policies.get(&self.name).await?;
            let said = policy.status.context("no status")?;
            ensure!(said.observed_generation == policy.metadata.generation);
            let mut conditions = said.conditions.into_iter();
            let ready = conditions.find(|condition| condition.type_ == "Ready");
            let ready = ready.context("not ready, and not unready")?;
            ensure!(
                (ready.status.as_str(), ready.reason.as_str()) == (status, reason),
                "{ready:?}"
            );
            Ok(ready.message)
        })
        .await
    }
}

/// This namespace alone.
pub fn here(stage: &Stage) -> Value {
    json!({"matchLabels": {"kubernetes.io/metadata.name": stage.namespace()}})
}

/// The gate that the policy names.
pub fn freeze(default: &str) -> String {
    format!(
        "{{apiVersion: sluice.dev/v1alpha1, kind: Gate, metadata: {{name: freeze}}, \
         spec: {{default: {default}}}}}"
    )
}

async fn label(stage: &Stage, value: Value) -> Result<()> {
    let namespaces: Api<Namespace> = Api::all(stage.client());
    let patch = json!({"metadata": {"labels": {"test/freeze": value}}});
    let name = stage.namespace();
    namespaces.merge(name, &patch).await?;
    Ok(())
}

/// Waits for a decision that is so.
async fn until(desk: &Desk, token: &str, allowed: bool) -> Result<Decision> {
    poll(DEADLINE, &format!("allowed: {allowed}"), async || {
        let decision = desk.decided(token).await?;
        ensure!(decision.allowed == allowed, "{decision:?}");
        Ok(decision)
    })
    .await
}

#[tokio::test]
async fn a_freeze_holds_back_whom_it_selects_and_nobody_else() -> Result<()> {
    let desk = Desk::open("freeze", all_namespaces).await?;
    let stage = &desk.stage;
    desk.deployer().await?;
    let token = desk.token("deployer", &[]).await?;
    assert!(desk.decided(&token).await?.allowed);

    stage.apply(&freeze("closed")).await?;
    let labelled = json!({"matchLabels": {"test/freeze": stage.namespace()}});
    let policy = Policy::create(stage, json!({"namespaceSelector": labelled})).await?;
    policy.says("True", "GatesFound").await?;
    assert!(desk.decided(&token).await?.allowed);

    label(stage, stage.namespace().into()).await?;
    let held = until(&desk, &token, false).await?;
    let gate = format!("{}/freeze", stage.namespace());
    // Who may check their own gate alone is not told what the gate of a policy says.
    let expected = format!(
        "held back by {gate} (GatePolicy {}): you may not see why",
        policy.name
    );
    assert!(held.message.starts_with(&expected), "{}", held.message);
    assert_eq!(held.decided_by, [gate]);
    let policies: Vec<_> = held
        .checked
        .iter()
        .map(|gate| gate.policy.as_deref())
        .collect();
    assert_eq!(policies, [None, Some(policy.name.as_str())]);
    label(stage, Value::Null).await?;
    until(&desk, &token, true).await?;

    // By kind: anyone who asks over HTTP is a Check.
    let of_kind = |kind: &str| json!({"namespaceSelector": here(stage), "kinds": [kind]});
    policy.apply(of_kind("Check")).await?;
    until(&desk, &token, false).await?;
    policy.apply(of_kind("Pipeline")).await?;
    until(&desk, &token, true).await?;

    policy
        .apply(json!({"namespaceSelector": here(stage)}))
        .await?;
    until(&desk, &token, false).await?;
    stage.apply(&freeze("open")).await?;
    until(&desk, &token, true).await?;
    stage.apply(&freeze("closed")).await?;
    until(&desk, &token, false).await?;
    policy.delete().await?;
    until(&desk, &token, true).await?;
    Ok(())
}

#[tokio::test]
async fn a_policy_names_the_gates_that_are_not_there_and_holds_back_meanwhile() -> Result<()> {
    let desk = Desk::open("no-gate", all_namespaces).await?;
    let stage = &desk.stage;
    desk.deployer().await?;
    let token = desk.token("deployer", &[]).await?;
    let policy = Policy::create(stage, json!({"namespaceSelector": here(stage)})).await?;
    let missing = format!(
        "there is no gate {}/freeze, which counts as closed",
        policy.name
    );
    assert_eq!(policy.says("False", "GateMissing").await?, missing);
    let held = until(&desk, &token, false).await?;
    assert_eq!(held.checked[1].reason, "GateMissing");

    stage.apply(&freeze("open")).await?;
    policy.says("True", "GatesFound").await?;
    until(&desk, &token, true).await?;
    stage.gates().remove("freeze").await?;
    policy.says("False", "GateMissing").await?;
    until(&desk, &token, false).await?;

    // Three times something changed, and three times it was written. Forcing the gate, labels of
    // the namespace and the like concern nobody here.
    stage.apply(&freeze("closed")).await?;
    policy.says("True", "GatesFound").await?;
    label(stage, "any".into()).await?;
    stage.apply(&freeze("open")).await?;
    until(&desk, &token, true).await?;
    let kind = KindLabels { kind: "GatePolicy" };
    let writes = desk.controller.counters.writes.get_or_create(&kind).get();
    assert_eq!(writes, 4);
    policy.delete().await
}

/// Who may not read policies keeps gates, and answers nobody.
#[tokio::test]
async fn nobody_is_answered_before_policies_are_known() -> Result<()> {
    let stage = Stage::new("unknown", NOON).await?;
    stage.apply(OFFICE_HOURS).await?;
    stage.apply(&freeze("closed")).await?;
    let policy = Policy::create(&stage, json!({"namespaceSelector": here(&stage)})).await?;
    let user = format!("controller-of-{}", stage.namespace());
    let rules = [
        rule(
            "sluice.dev",
            &["approvals", "gates", "gatekeepers", "pipelines"],
            &["get", "list", "watch"],
        ),
        rule(
            "sluice.dev",
            &["gates/status", "gatekeepers/status"],
            &["patch"],
        ),
    ];
    stage.grant_rules("controller", &user, &rules).await?;
    let acting = stage.cluster().client_for(&user).await?;
    let desk = Desk::on(stage, acting, |_| {}).await?;
    desk.deployer().await?;
    let token = desk.token("deployer", &[]).await?;
    let state = |status: &sluice_crds::GateStatus| status.state.is_some();
    desk.stage.until("production", "to be kept", state).await?;
    assert!(!desk.controller.world.is_ready());
    let health = desk.controller.health.context("no health is served")?;
    assert_eq!(get(health, "/readyz").await?.0, 503);

    // One that may: the first answer that it gives knows the policy.
    let Desk { stage, .. } = desk;
    let acting = stage.client();
    let desk = Desk::on(stage, acting, |_| {}).await?;
    let first = desk.decided(&token).await?;
    assert!(!first.allowed, "{first:?}");
    assert_eq!(
        first.checked[1].policy.as_deref(),
        Some(policy.name.as_str())
    );
    policy.delete().await
}
