//! What is told of a pipeline: the decision of its gates in an Event, a line of the log, the audit log and the
//! status; Events on the pipeline once for each change; and that what cannot be recorded is not begun.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use gate_controller::observe::clock::SystemClock;
use k8s_openapi::api::events::v1::Event;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use sluice_crds::pipeline::{EnvironmentState, Phase};
use sluice_crds::{Pipeline, PipelineStatus, audit};
use sluice_tests::controller::{self, InProcess, Process};
use sluice_tests::{Applier, Writes, poll, shared};

use super::{PROD, admitted, says};
use crate::audit::Log;
use crate::clusters::scene::Scene;
use crate::stage::DEADLINE;

/// The events about an object with this kind and name, the oldest first.
pub async fn events_on(
    client: kube::Client,
    namespace: &str,
    kind: &str,
    name: &str,
) -> Result<Vec<Event>> {
    let api: Api<Event> = Api::namespaced(client, namespace);
    let mut all = api.list(&ListParams::default()).await?.items;
    all.retain(|event| {
        event
            .regarding
            .as_ref()
            .is_some_and(|it| it.kind.as_deref() == Some(kind) && it.name.as_deref() == Some(name))
    });
    all.sort_by_key(|event| event.event_time.clone().map(|at| at.0));
    Ok(all)
}

/// Dev is on the second server, twice, and prod on the first, behind a gate. Dev runs a revision that prod does
/// not.
async fn scene(word: &str, gate: &str) -> Result<Scene> {
    let scene = Scene::new(word).await?;
    scene.define_here().await?;
    let token = scene.token().await?;
    scene.put_kubeconfig(scene.server(), &token).await?;
    let (own, remote) = (scene.own(), scene.remote());
    scene.runs_at(&own, scene.namespace(), 1, "1.0.0").await?;
    scene.runs_at(&remote, scene.apps(), 1, "1.1.0").await?;
    turn(&scene, gate).await?;
    let dev = json!({
        "namespace": scene.apps(), "clusterRef": {"kind": "Secret", "name": "prod-kubeconfig"},
    });
    let gate = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Gate",
        "metadata": {"name": "production"}, "spec": {"gatekeepers": [{"name": "switch"}]},
    });
    let pipeline = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Pipeline", "metadata": {"name": "web"},
        "spec": {
            "appRef": {"apiVersion": scene.api_version(), "kind": "Widget", "name": "web"},
            "environments": [
                {"name": "dev", "targets": [dev, dev]},
                {
                    "name": PROD, "targets": [{"namespace": scene.namespace()}],
                    "gates": {"refs": [{"name": "production"}]},
                    "promotion": {"strategy": {"admission": {}}},
                },
            ],
        },
    });
    for object in [gate, pipeline] {
        apply(&scene, &object).await?;
    }
    Ok(scene)
}

async fn apply(scene: &Scene, object: &Value) -> Result<()> {
    let applier = Applier::new(scene.own()).in_namespace(scene.namespace());
    applier.text(&object.to_string()).await?;
    Ok(())
}

async fn turn(scene: &Scene, state: &str) -> Result<()> {
    let switch = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Gatekeeper",
        "metadata": {"name": "switch"}, "spec": {"manual": {"state": state}},
    });
    apply(scene, &switch).await
}

/// What the audit log has about the pipeline: whether the gates allowed, or which phase a promotion is in, and
/// why.
fn recorded(log: &Log) -> Result<Vec<String>> {
    let line = |record: audit::Record| match record.event {
        audit::Event::Decision(decided) => {
            let subject = &decided.decision.subject;
            let is_ours =
                subject.kind == "Pipeline" && subject.environment.as_deref() == Some(PROD);
            is_ours.then(|| format!("allowed {}", decided.decision.allowed))
        }
        audit::Event::Promotion(it) => {
            let reason = it.reason.unwrap_or_default();
            let by = it.decided_by.len();
            Some(format!(
                "{:?} {reason} of {} by {by}",
                it.phase, it.revision
            ))
        }
        _ => None,
    };
    Ok(log.records()?.into_iter().filter_map(line).collect())
}

/// Waits until there is an event of this reason on the gate, and returns it.
async fn told_on_the_gate(scene: &Scene, reason: &str) -> Result<Event> {
    poll(DEADLINE, "the event on the gate", async || {
        let all = events_on(scene.own(), scene.namespace(), "Gate", "production").await?;
        let mut found = all
            .into_iter()
            .filter(|it| it.reason.as_deref() == Some(reason));
        found.next().context("there is none")
    })
    .await
}

/// Waits until the events on the pipeline, the oldest first, have these reasons.
async fn told_on_the_pipeline(scene: &Scene, expected: &[&str]) -> Result<()> {
    poll(DEADLINE, "the events on the pipeline", async || {
        let all = events_on(scene.own(), scene.namespace(), "Pipeline", "web").await?;
        let mut reasons: Vec<_> = all.iter().filter_map(|it| it.reason.as_deref()).collect();
        let mut expected = expected.to_vec();
        // Those of one look may come in any order.
        reasons.sort_unstable();
        expected.sort_unstable();
        ensure!(reasons == expected, "{reasons:?}");
        Ok(())
    })
    .await
}

fn is_held(status: &PipelineStatus) -> bool {
    let prod = status.environments.get(PROD);
    prod.is_some_and(|it| it.state == EnvironmentState::GatesClosed)
}

#[tokio::test]
async fn a_decision_is_in_the_event_the_log_the_audit_log_and_the_status() -> Result<()> {
    let scene = scene("pipeline-told", "closed").await?;
    let log = Log::new()?;
    let flags = [
        "--egress-allow=127.0.0.0/8".to_owned(),
        format!("--audit-log={}", log.path().display()),
        "--audit-required".to_owned(),
    ];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let kubeconfig = shared().await?.kubeconfig();
    let process = Process::start(kubeconfig, scene.namespace(), "c-0", &flags).await?;
    let gate = format!("{}/production", scene.namespace());

    let held = says(&scene, "the gate to hold", is_held).await?;
    let decision = held.environments[PROD].last_decision.clone();
    let decision = decision.context("no decision")?;
    assert_eq!(decision.decided_by, std::slice::from_ref(&gate));
    let run = held.run.context("no run")?;
    assert_eq!(run.decided_by.as_ref(), Some(&gate));
    let is_it = |line: &Value| {
        line["target"] == "decision" && line["kind"] == "Pipeline" && line["allowed"] == false
    };
    let line = process.logged("the decision", is_it).await?;
    assert_eq!(
        (
            &line["environment"],
            &line["action"],
            &line["revision"],
            &line["decided_by"]
        ),
        (
            &json!(PROD),
            &json!("promote"),
            &json!("1.1.0"),
            &json!(gate)
        )
    );
    let event = told_on_the_gate(&scene, "Blocked").await?;
    let related = event.related.context("nothing is related")?;
    assert_eq!(
        (related.kind.as_deref(), related.name.as_deref()),
        (Some("Pipeline"), Some("web"))
    );
    let annotations = event.metadata.annotations.unwrap_or_default();
    assert_eq!(annotations["sluice.dev/subject-environment"], PROD);
    assert_eq!(annotations["sluice.dev/decided-by"], gate);

    turn(&scene, "open").await?;
    let is_out = |status: &PipelineStatus| admitted(status) == ["1.1.0"];
    says(&scene, "1.1.0 to be admitted", is_out).await?;
    let event = told_on_the_gate(&scene, "Admitted").await?;
    ensure!(
        event
            .related
            .is_some_and(|it| it.name.as_deref() == Some("web"))
    );
    let (own, namespace) = (scene.own(), scene.namespace());
    scene.runs_at(&own, namespace, 2, "1.1.0").await?;
    let is_over = |status: &PipelineStatus| {
        let record = status.environments[PROD].promotion.as_ref();
        record.is_some_and(|it| {
            it.phase == Phase::Succeeded && it.reason.as_deref() == Some("Arrived")
        })
    };
    says(&scene, "prod to have arrived", is_over).await?;
    process.terminate().await?;
    // The yes is on record before the promotion that it lets begin.
    let expected = [
        "allowed false",
        "Unattempted  of 1.1.0 by 1",
        "allowed true",
        "Succeeded Admitted of 1.1.0 by 1",
        "Succeeded Arrived of 1.1.0 by 1",
    ];
    assert_eq!(recorded(&log)?, expected);
    Ok(())
}

/// However often it is looked at, and however many targets are on a cluster.
#[tokio::test]
async fn each_change_is_one_event() -> Result<()> {
    let scene = scene("pipeline-events", "closed").await?;
    let mut settings = controller::settings(scene.namespace());
    settings.egress_allow = vec!["127.0.0.0/8".parse()?];
    let _controller = InProcess::start(settings, scene.own(), Arc::new(SystemClock)).await?;
    says(&scene, "the gate to hold", is_held).await?;
    told_on_the_pipeline(&scene, &["RunStarted", "Blocked"]).await?;

    turn(&scene, "open").await?;
    let is_out = |status: &PipelineStatus| admitted(status) == ["1.1.0"];
    says(&scene, "1.1.0 to be admitted", is_out).await?;
    let (own, namespace) = (scene.own(), scene.namespace());
    scene.runs_at(&own, namespace, 2, "1.1.0").await?;
    let run = [
        "RunStarted",
        "Blocked",
        "Promoted",
        "Unblocked",
        "RunCompleted",
    ];
    told_on_the_pipeline(&scene, &run).await?;

    // Looks that find nothing new tell nothing.
    let pipelines: Api<Pipeline> = Api::namespaced(scene.own(), scene.namespace());
    for ask in ["first", "second"] {
        let annotations = json!({"reconcile.fluxcd.io/requestedAt": ask});
        let patch = json!({"metadata": {"annotations": annotations}});
        let asked = pipelines.merge("web", &patch).await?;
        ensure!(
            asked
                .annotations()
                .contains_key("reconcile.fluxcd.io/requestedAt")
        );
        let is_answered =
            |status: &PipelineStatus| status.last_handled_reconcile_at.as_deref() == Some(ask);
        says(&scene, "the look to be answered", is_answered).await?;
    }
    scene.delete_kubeconfig().await?;
    let away = |status: &PipelineStatus| status.clusters.iter().any(|it| !it.reachable);
    says(&scene, "the cluster to be away", away).await?;
    let token = scene.token().await?;
    scene.put_kubeconfig(scene.server(), &token).await?;
    let back = |status: &PipelineStatus| status.clusters.iter().all(|it| it.reachable);
    says(&scene, "the cluster to be back", back).await?;
    let cluster = [
        "ClusterUnreachable",
        "TargetClusterNotFound",
        "ClusterReachable",
        "ReconciliationSucceeded",
    ];
    told_on_the_pipeline(&scene, &[&run[..], &cluster[..]].concat()).await
}

#[tokio::test]
async fn what_cannot_be_recorded_is_not_begun() -> Result<()> {
    let scene = scene("pipeline-unrecorded", "open").await?;
    let mut settings = controller::settings(scene.namespace());
    settings.egress_allow = vec!["127.0.0.0/8".parse()?];
    settings.audit_log = Some("/dev/full".parse().map_err(anyhow::Error::msg)?);
    settings.audit_required = true;
    let _controller = InProcess::start(settings, scene.own(), Arc::new(SystemClock)).await?;
    let status = says(&scene, "prod to be held", is_held).await?;
    let prod = &status.environments[PROD];
    let why = prod.message.as_deref().unwrap_or_default();
    ensure!(why.contains("cannot be recorded"), "{why}");
    ensure!(admitted(&status).is_empty());
    let phase = prod.promotion.as_ref().map(|record| record.phase);
    assert_eq!(phase, Some(Phase::Unattempted));
    Ok(())
}
