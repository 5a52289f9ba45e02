//! The state of other objects: workloads whose status the tests write, for no controller of
//! workloads runs here.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::Api;
use serde_json::{Value, json};
use sluice_crds::gatekeeper::ObjectsStatus;
use sluice_crds::{GateStatus, GatekeeperStatus, State};
use sluice_tests::rights::{self, rule};
use sluice_tests::{Writes, poll};

use crate::stage::{DEADLINE, Stage, message};

mod accounts;
mod judged;
mod kinds;

mod soak;

const NOON: &str = "2026-11-20T12:00:00Z";

const READ: &[&str] = &["get", "list", "watch"];

/// Deployments by this name.
const WEB: &str =
    "{apiVersion: apps/v1, kind: Deployment, name: web, condition: {type: Available}}";

/// A gatekeeper over objects, the service account that it names, and the gate that it keeps.
/// `objects` is the rest of its spec.
fn keeper(objects: &str) -> String {
    format!(
        "
apiVersion: v1
kind: ServiceAccount
metadata: {{name: reader}}
---
apiVersion: sluice.dev/v1alpha1
kind: Gatekeeper
metadata: {{name: health}}
spec: {{objects: {{serviceAccountName: reader, {objects}}}}}
---
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata: {{name: production}}
spec: {{gatekeepers: [{{name: health}}]}}
"
    )
}

/// A namespace with `objects` to be kept by, and an account that may read Deployments there.
async fn stage(word: &str, objects: &str) -> Result<Stage> {
    let stage = Stage::new(word, NOON).await?;
    stage.apply(&keeper(objects)).await?;
    grant(&stage, stage.namespace(), ("apps", "deployments"), READ).await?;
    Ok(stage)
}

/// Gives the account the right to read this in `namespace`, and no other, and waits until that is
/// in effect.
async fn grant(
    stage: &Stage,
    namespace: &str,
    (group, plural): (&str, &str),
    verbs: &[&str],
) -> Result<()> {
    let account = format!("system:serviceaccount:{}:reader", stage.namespace());
    let rules: Vec<Value> = match verbs {
        [] => Vec::new(),
        verbs => vec![rule(group, &[plural], verbs)],
    };
    rights::grant_rules(stage.client(), namespace, "reader", &account, &rules).await?;
    let asked = SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: Some(account),
            resource_attributes: Some(ResourceAttributes {
                group: Some(group.to_owned()),
                resource: Some(plural.to_owned()),
                namespace: Some(namespace.to_owned()),
                verb: Some("watch".to_owned()),
                ..ResourceAttributes::default()
            }),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    };
    let reviews: Api<SubjectAccessReview> = Api::all(stage.client());
    poll(DEADLINE, "the rights to be in effect", async || {
        let answer = reviews.add(&asked).await?;
        let allowed = answer.status.context("no answer")?.allowed;
        ensure!(allowed != verbs.is_empty(), "allowed: {allowed}");
        Ok(())
    })
    .await
}

/// A Deployment, or a change of its spec.
async fn deploy(stage: &Stage, namespace: &str, name: &str, replicas: u8) -> Result<()> {
    let labels = json!({"app": name, "tier": "front"});
    let container = json!({"name": "app", "image": "example.com/app"});
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}},
        },
    });
    stage.apply(&deployment.to_string()).await
}

/// What a controller of workloads says of it: whether it is available, of which generation.
async fn report(
    stage: &Stage,
    namespace: &str,
    name: &str,
    available: &str,
    generation: i64,
) -> Result<()> {
    let status = json!({"status": {
        "observedGeneration": generation,
        "conditions": [{
            "type": "Available", "status": available, "reason": "Tested",
            "lastTransitionTime": format!("{}", stage.now()),
        }],
    }});
    let deployments: Api<Deployment> = Api::namespaced(stage.client(), namespace);
    deployments.merge_status(name, status).await?;
    Ok(())
}

/// Waits until the gate says this for this reason, in words with these in them.
async fn says(stage: &Stage, state: State, reason: &str, words: &str) -> Result<GateStatus> {
    let what = format!("{state} because of {reason}: {words}");
    let said = |status: &GateStatus| {
        status.state == Some(state)
            && status.reason.as_deref() == Some(reason)
            && message(status).contains(words)
    };
    let gate = stage.until("production", &what, said).await?;
    gate.status.context("no status")
}

/// What the gatekeeper shows of its objects, once it says so.
async fn shows(stage: &Stage, reason: &str) -> Result<ObjectsStatus> {
    let said = |status: &GatekeeperStatus| {
        let verdict = status.verdict.as_ref();
        verdict.is_some_and(|verdict| verdict.reason == reason)
    };
    let keeper = stage.until_gatekeeper("health", reason, said).await?;
    let evidence = keeper.status.and_then(|status| status.evidence);
    evidence
        .and_then(|evidence| evidence.objects)
        .context("it shows nothing")
}
