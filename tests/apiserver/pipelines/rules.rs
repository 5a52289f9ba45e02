//! Rules over pipelines: gates of a GatePolicy, what a person says, and other namespaces.

use std::sync::Arc;

use anyhow::{Result, ensure};
use gate_controller::observe::clock::SystemClock;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use serde_json::{Value, json};
use sluice_crds::pipeline::EnvironmentState;
use sluice_crds::{Approval, GatePolicy, Pipeline, PipelineStatus};
use sluice_tests::controller::{self, InProcess};
use sluice_tests::rights::{grant, grant_rules, rule};
use sluice_tests::{Applier, Namespace, Writes, poll, shared, status};

use super::standing_by::says_late;
use super::{PROD, admitted, put};
use crate::chart::{CONTROLLER, installed};
use crate::clusters::scene::Scene;
use crate::gate_policies::{all_namespaces, freeze};
use crate::stage::DEADLINE;

/// Dev runs 1.1.0, and prod 1.0.0.
async fn furnish(scene: &Scene) -> Result<()> {
    scene.define_here().await?;
    let (own, remote) = (scene.own(), scene.remote());
    scene.runs_at(&own, scene.namespace(), 1, "1.0.0").await?;
    scene.runs_at(&remote, scene.apps(), 1, "1.1.0").await?;
    let token = scene.token().await?;
    scene.put_kubeconfig(scene.server(), &token).await
}

fn is(status: &PipelineStatus, state: EnvironmentState) -> bool {
    let prod = status.environments.get(PROD);
    prod.is_some_and(|prod| prod.state == state)
}

/// What a controller writes to that [`all_namespaces`] sets up.
fn labels(namespace: &str) -> Value {
    json!({"sluice.dev/only": namespace})
}

#[tokio::test]
async fn a_gate_of_a_policy_holds_a_promotion_until_it_opens() -> Result<()> {
    let scene = Scene::new("pipeline-policy").await?;
    furnish(&scene).await?;
    let (own, namespace) = (scene.own(), scene.namespace());
    put(&scene, json!({"strategy": {"admission": {}}})).await?;
    let pipelines: Api<Pipeline> = Api::namespaced(own.clone(), namespace);
    let labelled = json!({"metadata": {"labels": labels(namespace)}});
    pipelines.merge("web", &labelled).await?;
    let applier = Applier::new(own.clone()).in_namespace(namespace);
    applier.text(&freeze("closed")).await?;
    // It selects no other namespace.
    let here = json!({"matchLabels": {"kubernetes.io/metadata.name": namespace}});
    let policy = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "GatePolicy",
        "metadata": {"name": namespace, "labels": labels(namespace)},
        "spec": {
            "namespaceSelector": here, "kinds": ["Pipeline"],
            "gates": {"refs": [{"name": "freeze", "namespace": namespace}]},
        },
    });
    applier.text(&policy.to_string()).await?;
    let mut settings = controller::settings(namespace);
    settings.egress_allow = vec!["127.0.0.0/8".parse()?];
    all_namespaces(&mut settings);
    let _controller = InProcess::start(settings, own.clone(), Arc::new(SystemClock)).await?;

    let is_held = |status: &PipelineStatus| is(status, EnvironmentState::GatesClosed);
    let held = says_late(&scene, "the gate to hold", is_held).await?;
    ensure!(admitted(&held).is_empty(), "{:?}", admitted(&held));
    let gate = format!("{namespace}/freeze");
    let decision = held.environments[PROD].last_decision.as_ref();
    let decided_by = decision.map(|decision| decision.decided_by.as_slice());
    assert_eq!(decided_by, Some(std::slice::from_ref(&gate)));
    let run = held.run.and_then(|run| run.decided_by);
    assert_eq!(run, Some(gate));

    applier.text(&freeze("open")).await?;
    let is_out = |status: &PipelineStatus| admitted(status) == ["1.1.0"];
    says_late(&scene, "1.1.0 to be admitted", is_out).await?;
    let policies: Api<GatePolicy> = Api::all(own);
    policies.remove(namespace).await?;
    Ok(())
}

/// Alice says this of what waits for a person.
async fn vote(scene: &Scene, status: &PipelineStatus, decision: &str) -> Result<()> {
    let waits = &status.environments[PROD].waiting_approval;
    let waits = waits.as_ref().map(|it| (it.run, it.revision.as_str()));
    let (run, revision) = waits.unwrap_or_default();
    let approval = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Approval",
        "metadata": {"generateName": "web-"},
        "spec": {
            "pipelineRef": {"name": "web", "environment": PROD, "run": run},
            "revision": revision, "decision": decision, "by": "alice",
        },
    });
    let approval: Approval = serde_json::from_value(approval)?;
    let client = installed().await?.client_for("alice").await?;
    let approvals: Api<Approval> = Api::namespaced(client, scene.namespace());
    poll(DEADLINE, "alice to have the right", async || {
        approvals.add(&approval).await.map(drop)
    })
    .await
}

#[tokio::test]
async fn what_a_person_says_is_heard_by_a_controller_that_runs() -> Result<()> {
    let scene = Scene::installed("pipeline-person").await?;
    furnish(&scene).await?;
    let (own, namespace) = (scene.own(), scene.namespace());
    let mut read = rule("", &["secrets"], &["get", "list", "watch"]);
    read["resourceNames"] = json!(["prod-kubeconfig"]);
    let apps = rule(&scene.group(), &["widgets"], &["get", "list", "watch"]);
    grant_rules(own.clone(), namespace, "apps", CONTROLLER, &[read, apps]).await?;
    grant(
        own.clone(),
        namespace,
        "sluice-pipeline-approve",
        &["alice"],
    )
    .await?;
    put(
        &scene,
        json!({"manual": true, "strategy": {"admission": {}}}),
    )
    .await?;
    let acting = installed().await?.client_for(CONTROLLER).await?;
    let mut settings = controller::settings(namespace);
    settings.egress_allow = vec!["127.0.0.0/8".parse()?];
    let _controller = InProcess::start(settings, acting, Arc::new(SystemClock)).await?;

    let waits = |status: &PipelineStatus, revision: &str| {
        let prod = status.environments.get(PROD);
        let waiting = prod.and_then(|prod| prod.waiting_approval.as_ref());
        is(status, EnvironmentState::Unapproved)
            && waiting.is_some_and(|it| it.revision == revision)
    };
    let first = |status: &PipelineStatus| waits(status, "1.1.0");
    let status = says_late(&scene, "1.1.0 to wait for a person", first).await?;
    ensure!(admitted(&status).is_empty(), "{:?}", admitted(&status));
    vote(&scene, &status, "approve").await?;
    let is_out = |status: &PipelineStatus| admitted(status) == ["1.1.0"];
    says_late(&scene, "1.1.0 to be admitted", is_out).await?;

    let remote = scene.remote();
    scene.runs_at(&own, namespace, 2, "1.1.0").await?;
    scene.runs_at(&remote, scene.apps(), 2, "1.2.0").await?;
    let second = |status: &PipelineStatus| waits(status, "1.2.0");
    let status = says_late(&scene, "1.2.0 to wait for a person", second).await?;
    vote(&scene, &status, "reject").await?;
    let is_rejected = |status: &PipelineStatus| is(status, EnvironmentState::Rejected);
    let status = says_late(&scene, "1.2.0 to be rejected", is_rejected).await?;
    assert_eq!(admitted(&status), ["1.1.0"]);
    Ok(())
}

/// A pipeline elsewhere names the namespace of the scene: its apps, and its Secret with a kubeconfig.
#[tokio::test]
async fn other_namespaces_are_unknown_until_they_allow_it() -> Result<()> {
    let scene = Scene::new("pipeline-owner").await?;
    let token = scene.token().await?;
    scene.put_kubeconfig(scene.server(), &token).await?;
    let elsewhere = Namespace::create(shared().await?, "pipeline-elsewhere").await?;
    let (own, owner, elsewhere) = (scene.own(), scene.namespace(), elsewhere.name());
    let secret = json!({"kind": "Secret", "name": "prod-kubeconfig", "namespace": owner});
    let pipeline = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Pipeline",
        "metadata": {"name": "web", "labels": labels(elsewhere)},
        "spec": {
            "appRef": {"kind": "HelmRelease", "name": "web"},
            "environments": [
                {"name": "dev", "targets": [{"namespace": scene.apps(), "clusterRef": secret}]},
                {"name": PROD, "targets": [{"namespace": owner}]},
            ],
        },
    });
    let applier = Applier::new(own.clone()).in_namespace(elsewhere);
    applier.text(&pipeline.to_string()).await?;
    let mut settings = controller::settings(elsewhere);
    settings.egress_allow = vec!["127.0.0.0/8".parse()?];
    all_namespaces(&mut settings);
    settings.no_cross_namespace_refs = true;
    let _controller = InProcess::start(settings, own.clone(), Arc::new(SystemClock)).await?;

    let says = |status: &PipelineStatus, environment: &str, words: &str| {
        let found = status.environments.get(environment);
        let target = found.and_then(|it| it.targets.first());
        let error = target.and_then(|it| it.error.as_deref());
        error.is_some_and(|error| error.contains(words))
    };
    let api: Api<Pipeline> = Api::namespaced(own.clone(), elsewhere);
    let refused = format!("the Secret {owner}/prod-kubeconfig is not for namespace {elsewhere}");
    let beyond = "the controller sees only its own namespace";
    let both =
        |status: &PipelineStatus| says(status, "dev", &refused) && says(status, PROD, beyond);
    let object = status::until(&api, "web", DEADLINE, "both to be unknown", both).await?;
    let dev = object
        .status
        .and_then(|mut it| it.environments.remove("dev"));
    ensure!(dev.is_some_and(|dev| dev.state == EnvironmentState::Unknown));

    let allowed = json!({"sluice.dev/allowed-namespaces": elsewhere});
    let allowed = json!({"metadata": {"annotations": allowed}});
    let secrets: Api<Secret> = Api::namespaced(own, owner);
    secrets.merge("prod-kubeconfig", &allowed).await?;
    // Now the other cluster is asked, which has no such app.
    let asked =
        |status: &PipelineStatus| says(status, "dev", "HelmRelease") && says(status, PROD, beyond);
    status::until(&api, "web", DEADLINE, "the cluster to be asked", asked).await?;
    Ok(())
}
