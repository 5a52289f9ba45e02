//! `rollout`, `retry`, and what other commands know of rollouts.
//!
//! The objects have the statuses that a controller would have written.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use serde_json::{Value, json};
use sluice_crds::Rollout;
use sluice_tests::Writes;

use super::{Going, may_list, objects_of, says};
use crate::chart::CONTROLLER;
use crate::stage::Stage;

const NOW: &str = "2026-11-20T12:00:00Z";

/// A rollout of web-v1 to web-v2 behind a gate, with one of its batches behind another one.
const WEB: &str = "
apiVersion: sluice.dev/v1alpha1
kind: Gatekeeper
metadata: {name: office-hours}
spec: {schedule: {timeZone: Europe/London, open: [{cron: '0 9 * * MON-FRI', duration: 8h}]}}
---
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata: {name: office}
spec: {default: closed}
---
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata: {name: half}
spec: {default: closed}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web-v1}
spec:
  replicas: 20
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: web}]}}
---
apiVersion: sluice.dev/v1alpha1
kind: Rollout
metadata: {name: web}
spec:
  targetRef: {kind: Deployment, name: web-v2}
  sourceRef: [{kind: Deployment, name: web-v1}]
  revision: 6.8.0
  gates: {refs: [{name: office}]}
  rolloutPlan:
    rolloutBatches: [{replicas: 1}, {replicas: 25%, gates: {refs: [{name: half}]}}, {}]
---
apiVersion: sluice.dev/v1alpha1
kind: Rollout
metadata: {name: fresh}
spec: {targetRef: {kind: StatefulSet, name: db}, rolloutPlan: {numBatches: 3}}
";

/// What a controller would have written: the first batch is out, and the gates hold the next one.
fn held() -> Value {
    let reference = |name: &str| json!({"kind": "Deployment", "name": name});
    let workload =
        |name: &str, was: i32| json!({"ref": reference(name), "uid": name, "was": was, "start": 0});
    let decision = |allowed: bool| {
        json!({
            "allowed": allowed, "at": NOW, "require": "all", "checked": [], "message": "closed by default",
            "decidedBy": ["shop/office"], "next": "2099-11-23T09:00:00Z",
            "subject": {"kind": "Rollout", "namespace": "shop", "action": "advance"},
        })
    };
    json!({
        "observedGeneration": 1, "rollingState": "rollingInBatches", "batchRollingState": "batchReady",
        "currentBatch": 0, "progress": "1/3", "rolloutTargetSize": 20, "rolloutOriginalSize": 20,
        "upgradedReplicas": 1, "upgradedReadyReplicas": 1,
        "run": {
            "id": 1, "mode": "Pair", "revision": "6.8.0", "identity": "i",
            "workloads": [workload("web-v2", 0), workload("web-v1", 20)],
        },
        "batches": [{
            "goal": 1, "checksum": "c", "began": NOW, "done": NOW, "worked": 38,
            "decision": {"at": NOW, "decidedBy": ["shop/office"], "message": "open"},
        }],
        "held": {
            "by": "shop/office", "reason": "GatesClosed", "message": "batch 1 waits: closed by default",
            "since": NOW,
        },
        "lastDecision": decision(false), "deadline": NOW,
        "conditions": [{
            "type": "Blocked", "status": "True", "reason": "GatesClosed", "message": "closed",
            "lastTransitionTime": NOW,
        }],
    })
}

fn failed() -> Value {
    let mut status = held();
    for gone in ["held", "deadline", "conditions", "lastDecision"] {
        status[gone] = Value::Null;
    }
    status["rollingState"] = json!("rolloutFailed");
    status["outcome"] = json!({"reason": "HookVetoed", "message": "the hook smoke says 403"});
    status
}

async fn write(stage: &Stage, status: &Value) -> Result<()> {
    let rollouts: Api<Rollout> = objects_of(stage, CONTROLLER).await?;
    let status = json!({ "status": status });
    rollouts.merge_status("web", status).await?;
    Ok(())
}

/// alice edits, victor sees.
async fn web(word: &str) -> Result<Stage> {
    let stage = Stage::installed(word, NOW).await?;
    stage.apply(WEB).await?;
    // No controller runs: nothing of this changes while it is looked at.
    stage.judge_no_statuses();
    write(&stage, &held()).await?;
    let deployments: Api<Deployment> = Api::namespaced(stage.client(), stage.namespace());
    let status = json!({"status": {"replicas": 19}});
    deployments.merge_status("web-v1", status).await?;
    stage.grant("sluice-view", &["alice", "victor"]).await?;
    stage.grant("sluice-edit", &["alice"]).await?;
    may_list::<Rollout>(&stage, "alice").await?;
    Ok(stage)
}

#[tokio::test]
async fn rollouts_are_listed_drawn_and_told() -> Result<()> {
    let stage = web("cli-rollouts").await?;
    let list = says(&stage, "victor", &["rollout"], 0, "WAITS-FOR").await?;
    for part in [
        "rollingInBatches",
        "6.8.0",
        "1/3",
        "1/20",
        "shop/office",
        "fresh",
    ] {
        ensure!(list.out.contains(part), "{part}: {list:?}");
    }
    let all = says(&stage, "admin", &["rollouts", "-A"], 0, "NAMESPACE").await?;
    ensure!(all.out.contains(stage.namespace()), "{all:?}");
    says(
        &stage,
        "victor",
        &["get", "gro", "web"],
        0,
        "2099-11-23 09:00",
    )
    .await?;

    let drawn = says(&stage, "admin", &["rollout", "web"], 0, "Held since").await?;
    for part in [
        "target web-v2",
        "1 of 20, all available",
        "░  19",
        "1       5      held",
        "(GatesClosed): closed by default; the answer may change Mon",
        "2099-11-23 09:00",
        "times in Europe/London",
    ] {
        ensure!(drawn.out.contains(part), "{part}: {drawn:?}");
    }
    // He may see Rollouts, and not Deployments.
    let drawn = says(&stage, "victor", &["rollout", "web"], 0, "source web-v1").await?;
    ensure!(!drawn.out.contains("  19"), "{drawn:?}");
    let ascii = says(&stage, "victor", &["rollout", "web", "--ascii"], 0, "#").await?;
    ensure!(ascii.out.is_ascii(), "{ascii:?}");
    let json = says(&stage, "admin", &["rollout", "web", "-o", "json"], 0, "{").await?;
    let json: Value = serde_json::from_str(&json.out)?;
    ensure!(json["batches"][1]["goal"] == 6, "{json}");
    ensure!(json["batches"][1]["phase"] == "held", "{json}");
    ensure!(json["sources"][0]["pods"] == 19, "{json}");
    says(
        &stage,
        "victor",
        &["rollout", "-o", "yaml"],
        0,
        "name: fresh",
    )
    .await?;
    let none = "there is no rollout `none`";
    says(&stage, "victor", &["rollout", "none"], 2, none).await?;
    let fresh = "no controller has looked at it yet";
    says(&stage, "victor", &["rollout", "rollout/fresh"], 0, fresh).await?;
    Ok(())
}

#[tokio::test]
async fn why_a_batch_waits_is_told_by_its_gates() -> Result<()> {
    let stage = web("cli-rollouts-why").await?;
    let why = ["why", "rollout/web"];
    let why = says(&stage, "admin", &why, 0, "batch 1 (2/3) is not allowed").await?;
    for part in [
        "6.8.0 is rollingInBatches: batch 1 waits: closed by default",
        "target Deployment web-v2: 1 of 20 pods have the new version, 1 of them are available",
        "source Deployment web-v1: 19 of 20 pods are left",
        "batch 0 (1/3) is done: 1 pod, up to 1",
        "batch 1 (2/3) is held: 5 pods, up to 6",
        "its deadline stands still",
        "office is Closed",
        // The batch has a gate of its own.
        "half is Closed",
    ] {
        ensure!(why.out.contains(part), "{part}: {why:?}");
    }
    let json = ["why", "rollout/web", "-o", "json"];
    let json = says(&stage, "victor", &json, 0, "{").await?;
    let json: Value = serde_json::from_str(&json.out)?;
    ensure!(json[0]["decision"]["subject"]["step"] == "2/3", "{json}");
    ensure!(
        json[0]["gates"].as_array().is_some_and(|it| it.len() == 2),
        "{json}"
    );

    let pending = says(&stage, "admin", &["pending"], 0, "Rollout/web (2/3)").await?;
    for part in ["6.8.0", "shop/office", "closed by default"] {
        ensure!(pending.out.contains(part), "{part}: {pending:?}");
    }
    ensure!(!pending.out.contains("fresh"), "{pending:?}");
    Ok(())
}

#[tokio::test]
async fn a_failed_run_is_tried_again_by_those_who_may() -> Result<()> {
    let stage = web("cli-rollouts-retry").await?;
    let retry = ["retry", "rollout", "web"];
    says(&stage, "alice", &retry, 2, "goes on by itself").await?;
    write(&stage, &failed()).await?;
    says(&stage, "victor", &retry, 2, "forbidden").await?;
    let rollouts: Api<Rollout> = Api::namespaced(stage.client(), stage.namespace());
    let asked = async || -> Result<Option<String>> {
        let annotations = rollouts.get("web").await?.metadata.annotations;
        Ok(annotations.and_then(|mut all| all.remove("sluice.dev/retry")))
    };
    let dry = ["retry", "rollout", "web", "--dry-run"];
    let foretold = "web: another run of 6.8.0 begins; 1 of 20 pods are there";
    says(&stage, "alice", &dry, 0, foretold).await?;
    says(&stage, "victor", &dry, 2, "forbidden").await?;
    ensure!(asked().await?.is_none());

    let mut going = Going::start(
        &stage,
        "alice",
        &["retry", "rollout", "web", "--timeout", "60s"],
    )?;
    let first = going.line().await?;
    ensure!(first.starts_with(foretold), "{first}");
    let value = asked().await?.context("nothing was written")?;
    says(&stage, "alice", &retry, 2, "is asked for already").await?;
    let mut begun = held();
    begun["lastHandledRetryAt"] = json!(value);
    (begun["held"], begun["outcome"]) = (Value::Null, Value::Null);
    write(&stage, &begun).await?;
    let last = going.line().await?;
    ensure!(last.starts_with("web has begun"), "{last}");
    going.ends_well().await?;

    // Nobody answers.
    write(&stage, &failed()).await?;
    let retry = ["retry", "rollout", "web", "--timeout", "300ms"];
    let ran = says(&stage, "alice", &retry, 0, foretold).await?;
    ensure!(ran.err.contains("none may be running"), "{ran:?}");
    let none = ["retry", "rollout", "none"];
    says(&stage, "alice", &none, 2, "there is no rollout").await?;
    Ok(())
}

#[tokio::test]
async fn a_person_who_waits_is_told_how_a_rollout_ends() -> Result<()> {
    let stage = web("cli-rollouts-wait").await?;
    let up = ["wait", "rollout/web", "--timeout", "300ms"];
    says(
        &stage,
        "victor",
        &up,
        1,
        "web has not succeeded within 300ms",
    )
    .await?;
    let wrong = ["wait", "rollout/web", "--for", "open"];
    says(&stage, "victor", &wrong, 2, "--for: leave it out").await?;

    let mut waiting = Going::start(&stage, "victor", &["wait", "rollout/web"])?;
    let first = waiting.line().await?;
    ensure!(
        first == "waiting: web is held, 1/3 batches done: batch 1 waits: closed by default",
        "{first}"
    );
    let mut watching = Going::start(&stage, "victor", &["rollout", "web", "--watch"])?;
    let head = watching.line().await?;
    ensure!(head.contains("rollingInBatches, batchReady"), "{head}");
    let mut status = failed();
    status["rollingState"] = json!("rolloutSucceed");
    status["outcome"] = Value::Null;
    status["history"] = json!([{
        "id": 1, "revision": "6.8.0", "state": "rolloutSucceed", "message": "6.8.0 is out",
        "upgradedReplicas": 20, "ended": NOW,
    }]);
    write(&stage, &status).await?;
    let last = waiting.line().await?;
    ensure!(last == "web has succeeded: 6.8.0 is out", "{last}");
    waiting.ends_well().await?;
    loop {
        let line = watching.line().await?;
        if line.contains("rolloutSucceed") {
            break;
        }
    }
    watching.ends_well().await?;

    write(&stage, &failed()).await?;
    let wait = ["wait", "rollout/web"];
    says(&stage, "victor", &wait, 1, "web has failed: ").await?;
    let watch = ["rollout", "web", "--watch"];
    says(&stage, "victor", &watch, 1, "Failed (HookVetoed)").await?;
    Ok(())
}
