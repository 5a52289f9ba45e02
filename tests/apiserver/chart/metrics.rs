//! The list of metrics in the docs, held to what a controller serves.

use gate_controller::tell::decisions::Asker;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use jiff::SignedDuration;
use kube::Api;
use serde_json::json;
use sluice_crds::{GatePolicy, PromotionStrategy, Rollout, State};
use sluice_forges::{Ended, Heard, Protocol};
use sluice_tests::controller::InProcess;
use sluice_tests::helm::chart;
use sluice_tests::rights::rule;
use sluice_tests::{Writes, poll};

use super::promql::selectors;
use crate::answers::Server;
use crate::forces::force;
use crate::kinds::kept;
use crate::stage::{DEADLINE, OFFICE_HOURS, Stage};
use crate::told::get;

/// The list, and the heading in it under which stands what is still to come.
const LIST: &str = "docs/reference/metrics.md";
const TO_COME: &str = "## Not served yet";

/// Labels that Prometheus gives to all that it scrapes.
const OF_THE_TARGET: [&str; 3] = ["instance", "job", "pod"];

/// A metric as queries name it, but for the suffixes of a histogram's parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metric {
    kind: String,
    labels: BTreeSet<String>,
}

/// Metrics by their names.
pub type Metrics = BTreeMap<String, Metric>;

/// What is on the list: what is served, and what is to come.
pub fn listed() -> Result<(Metrics, Metrics)> {
    let text = fs::read_to_string(chart().join("../..").join(LIST))?;
    let (served, to_come) = text.split_once(TO_COME).unwrap_or((&text, ""));
    Ok((rows(served)?, rows(to_come)?))
}

fn rows(text: &str) -> Result<Metrics> {
    let rows = text.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let ["", name, kind, labels, _unit, meaning, ""] = cells[..] else {
            anyhow::bail!("{row}: not five cells");
        };
        ensure!(!meaning.is_empty(), "{row}: what does it mean?");
        let quoted = |cell: &str| -> BTreeSet<String> {
            let inside = cell.split('`').skip(1).step_by(2);
            inside.map(str::to_owned).collect()
        };
        let name = quoted(name).pop_first().context("no name")?;
        let (kind, labels) = (kind.to_owned(), quoted(labels));
        Ok((name, Metric { kind, labels }))
    })
    .collect()
}

/// The queries of a page of ours that ask for what is not there, each with what that is.
pub fn strangers<'a>(queries: impl Iterator<Item = &'a str>, known: &Metrics) -> Vec<String> {
    let mut strangers = Vec::new();
    for query in queries {
        let asked = selectors(query);
        if asked.is_empty() {
            strangers.push(format!("{query}: asks for nothing"));
        }
        for selector in asked {
            let Some(mut labels) = labels(&selector.metric, known) else {
                strangers.push(format!("{query}: there is no {}", selector.metric));
                continue;
            };
            labels.extend(OF_THE_TARGET.map(str::to_owned));
            for label in selector.labels.difference(&labels) {
                strangers.push(format!("{query}: {} has no {label}", selector.metric));
            }
        }
    }
    strangers
}

/// The labels of a series, by its name.
fn labels(series: &str, known: &Metrics) -> Option<BTreeSet<String>> {
    let whole = known
        .get(series)
        .filter(|metric| metric.kind != "histogram");
    if let Some(metric) = whole {
        return Some(metric.labels.clone());
    }
    ["_bucket", "_count", "_sum"].iter().find_map(|part| {
        let metric = known.get(series.strip_suffix(part)?)?;
        let mut labels = metric.labels.clone();
        if *part == "_bucket" {
            labels.insert("le".to_owned());
        }
        (metric.kind == "histogram").then_some(labels)
    })
}

/// What a page serves: the labels as far as it has samples.
fn served(page: &str) -> Result<Metrics> {
    let mut metrics = Metrics::new();
    let mut name = String::new();
    for line in page.lines() {
        if let Some(described) = line.strip_prefix("# TYPE ") {
            let (family, kind) = described.split_once(' ').context(line.to_owned())?;
            name = match kind {
                "counter" => format!("{family}_total"),
                _ => family.to_owned(),
            };
            let (kind, labels) = (kind.to_owned(), BTreeSet::new());
            metrics.insert(name.clone(), Metric { kind, labels });
        }
        if line.starts_with('#') {
            continue;
        }
        let sample = selectors(line.rsplit_once(' ').context("no value")?.0);
        let sample = sample.into_iter().next().context(line.to_owned())?;
        ensure!(sample.metric.starts_with(&name), "{line}: of {name}?");
        let metric = metrics.get_mut(&name).context("no type")?;
        let own = sample.labels.into_iter().filter(|label| label != "le");
        metric.labels.extend(own);
    }
    Ok(metrics)
}

#[tokio::test]
async fn the_list_is_what_is_served() -> Result<()> {
    let stage = Stage::new("listed", "2026-11-20T08:00:00Z").await?;
    stage.apply(OFFICE_HOURS).await?;
    let mut found = refused(&stage).await?;
    found.extend(busy(&stage).await?);
    let (listed, to_come) = listed()?;
    assert_eq!(found, listed, "{LIST} is not what is served");
    let come: Vec<_> = to_come
        .keys()
        .filter(|name| found.contains_key(*name))
        .collect();
    assert!(come.is_empty(), "{LIST}: {come:?} have come");
    Ok(())
}

/// What a controller serves that may read and not write.
async fn refused(stage: &Stage) -> Result<Metrics> {
    let read = rule(
        "sluice.dev",
        &["approvals", "gates", "gatekeepers", "pipelines"],
        &["get", "list", "watch"],
    );
    stage.grant_rules("reader", "alice", &[read]).await?;
    let client = stage.cluster().client_for("alice").await?;
    let controller = InProcess::start(stage.settings(), client, stage.clock()).await?;
    let found = poll(DEADLINE, "a write to be refused", async || {
        let found = page(&controller).await?;
        let failures = found.contains_key("sluice_reconcile_failures_total");
        ensure!(failures, "{found:?}");
        Ok::<_, anyhow::Error>(found)
    });
    let found = found.await?;
    controller.stop().await;
    Ok(found)
}

/// What a controller serves that has something of everything to tell.
async fn busy(stage: &Stage) -> Result<Metrics> {
    // As Prometheus answers.
    let server = Server::plain(
        r#"{"status": "success", "data": {"resultType": "scalar", "result": [1, "7"]}}"#,
    );
    let server = server.await?;
    let metric = json!({"metric": {
        "address": server.url("/"), "query": "seven", "range": {"max": 7},
    }});
    stage.apply(&kept("measured", &metric)).await?;
    stage.apply(&pipeline()).await?;
    by_branches(stage).await?;
    let mut settings = stage.settings();
    settings.trust_unverified_identity = true;
    settings.egress_allow = vec!["127.0.0.0/8".parse()?];
    let controller = stage.start_with(settings).await?;
    rollout(stage).await?;
    stage.says("measured", State::Open, "InRange").await?;
    stage.out_of_hours().await?;
    let mut annotations = force("open", "alice");
    annotations["sluice.dev/force-until"] = json!("2026-11-20T10:00:00Z");
    stage.annotate("production", annotations).await?;
    stage.says("production", State::Open, "Forced").await?;
    stage.settle().await?;
    let asked = json!({
        "allowed": false,
        "at": "2026-11-20T08:00:00Z",
        "subject": {"kind": "Kustomization", "namespace": "apps", "name": "shop", "action": "promote"},
        "require": "all", "checked": [], "decidedBy": [], "message": "no gate is named",
    });
    let asked = serde_json::from_value(asked)?;
    controller.decisions().tell(asked, Asker::Controller).await;
    let heard = Heard {
        protocol: Protocol::Api,
        ended: Ended::Answered,
        remaining: Some(4_999),
    };
    let forges = &controller.counters().forge_requests;
    forges.note("github.com", heard, tokio::time::Instant::now());
    let policy = reported_policy(stage).await?;
    stage.apply(&over_a_lost_cluster().to_string()).await?;
    let found = poll(DEADLINE, "force and policy to be known", async || {
        let found = page(&controller).await?;
        for metric in [
            "sluice_gate_override",
            "sluice_gate_policy_ready",
            "sluice_pipeline_environment_state",
            "sluice_cluster_reachable",
            "sluice_branch_promotions_total",
            "sluice_branch_waiting",
            "sluice_repository_access_ready",
            "sluice_revert_phase",
            "sluice_rollout_state",
            "sluice_rollout_held_since_timestamp_seconds",
        ] {
            let metric = found.get(metric);
            ensure!(metric.is_some_and(|it| !it.labels.is_empty()), "{found:?}");
        }
        Ok(found)
    });
    let found = found.await?;
    let policies: Api<GatePolicy> = Api::all(stage.client());
    policies.remove(&policy).await?;
    Ok(found)
}

/// A pipeline of an app that is not there.
fn pipeline() -> String {
    let environment = json!({"name": "dev", "targets": [{"namespace": "nowhere"}]});
    let pipeline = json!({
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": "Pipeline",
        "metadata": {"name": "shop"},
        "spec": {
            "appRef": {"apiVersion": "v1", "kind": "ConfigMap", "name": "shop"},
            "environments": [environment],
        },
    });
    pipeline.to_string()
}

/// A pipeline whose only target is on a cluster that nobody has a kubeconfig for.
fn over_a_lost_cluster() -> serde_json::Value {
    let cluster = json!({"kind": "Secret", "name": "lost"});
    let target = json!({"namespace": "apps", "clusterRef": cluster});
    json!({
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": "Pipeline",
        "metadata": {"name": "remote"},
        "spec": {
            "appRef": {"kind": "HelmRelease", "name": "podinfo"},
            "environments": [{"name": "prod", "targets": [target]}],
        },
    })
}

/// A strategy whose access is not there, as it was before that was gone; a revert of it, and another access.
async fn by_branches(stage: &Stage) -> Result<()> {
    let object = |kind: &str, name: &str, spec: serde_json::Value| {
        json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": kind, "metadata": {"name": name},
            "spec": spec,
        })
        .to_string()
    };
    let named = json!({"name": "gone"});
    let strategy = json!({"repoRef": named, "environments": [{"branch": "env/prod"}]});
    let sha = "a".repeat(40);
    let revert = json!({
        "repoRef": named, "activeBranch": "env/prod", "from": sha, "drySHA": sha,
        "reason": "INC-4711", "by": "system:admin",
    });
    let access = json!({
        "provider": "gitea", "url": "https://git.example.com/a/b", "secretRef": {"name": "none"},
    });
    stage
        .apply(&object("PromotionStrategy", "shop", strategy))
        .await?;
    stage.apply(&object("RevertCommit", "back", revert)).await?;
    stage
        .apply(&object("GitRepositoryAccess", "shop", access))
        .await?;
    let before = json!({"branch": "env/prod", "state": "UpToDate"});
    let strategies: Api<PromotionStrategy> = Api::namespaced(stage.client(), stage.namespace());
    let status = json!({"status": {"environments": [before]}});
    strategies.merge_status("shop", &status).await?;
    Ok(())
}

/// A Rollout of a workload of a kind that is not installed: half a minute later that is told, and holds it.
async fn rollout(stage: &Stage) -> Result<()> {
    let rollout = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Rollout", "metadata": {"name": "web"},
        "spec": {
            "targetRef": {"kind": "CloneSet", "name": "web"}, "revision": "2", "rolloutPlan": {},
        },
    });
    stage.apply(&rollout.to_string()).await?;
    let rollouts: Api<Rollout> = Api::namespaced(stage.client(), stage.namespace());
    poll(DEADLINE, "the rollout to be looked at", async || {
        let status = rollouts.get("web").await?.status;
        ensure!(status.is_some_and(|it| it.rolling_state.is_some()));
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    stage
        .clock()
        .step(stage.now() + SignedDuration::from_mins(1));
    poll(DEADLINE, "it to be held", async || {
        let held = rollouts.get("web").await?.status.and_then(|it| it.held);
        let held = held.context("it is not held")?;
        let says = held.message.contains("has no kind CloneSet.apps.kruise.io");
        ensure!(held.reason == "NotReadable" && says, "{held:?}");
        Ok::<_, anyhow::Error>(())
    })
    .await
}

/// A policy over this namespace alone, with a status: this controller keeps one namespace, and
/// writes none.
async fn reported_policy(stage: &Stage) -> Result<String> {
    let name = stage.namespace();
    let policy = json!({
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": "GatePolicy",
        "metadata": {"name": name},
        "spec": {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}},
            "gates": {"refs": [{"name": "production", "namespace": name}]},
        },
    });
    stage.apply(&policy.to_string()).await?;
    let policies: Api<GatePolicy> = Api::all(stage.client());
    let ready = json!({
        "type": "Ready", "status": "True", "reason": "GatesFound", "message": "test",
        "lastTransitionTime": "2026-11-20T08:00:00Z",
    });
    let status = json!({"status": {"conditions": [ready]}});
    policies.merge_status(name, &status).await?;
    Ok(name.to_owned())
}

async fn page(controller: &InProcess) -> Result<Metrics> {
    let (_, page) = get(controller.metrics()?, "/metrics").await?;
    served(&page)
}

/// One of two, and the other when it is gone.
#[tokio::test]
async fn a_leader_says_so() -> Result<()> {
    let stage = Stage::new("leader", "2026-11-20T12:00:00Z").await?;
    let mut settings = stage.settings();
    settings.enable_leader_election = true;
    settings.leader_election_retry_period = Duration::from_millis(500);
    let leads = async |controller: &InProcess, expected: u8| {
        let line = format!("sluice_leader {expected}.0");
        poll(DEADLINE, &line, async || {
            let (_, page) = get(controller.metrics()?, "/metrics").await?;
            ensure!(page.lines().any(|found| found == line), "{page}");
            Ok(())
        })
        .await
    };
    let first = stage.start_with(settings.clone()).await?;
    leads(&first, 1).await?;
    let second = stage.start_with(settings).await?;
    second.world().synced().await;
    leads(&second, 0).await?;
    first.stop().await;
    leads(&second, 1).await
}

#[test]
fn a_query_for_what_is_not_there_is_found() {
    let metric = |kind: &str, labels: &[&str]| Metric {
        kind: kind.to_owned(),
        labels: labels.iter().map(|&label| label.to_owned()).collect(),
    };
    let known = Metrics::from([
        ("state".to_owned(), metric("gauge", &["name"])),
        ("delay".to_owned(), metric("histogram", &["kind"])),
    ]);
    let queries = [
        r#"max(state{name="a", job="b"})"#,
        r#"rate(delay_bucket{le="1", kind="a"}[5m])"#,
        r#"delay_sum{le="1"} / delay"#,
        r#"state_total{x="y"} + state{gate="a"}"#,
        "vector(1)",
    ];
    assert_eq!(
        strangers(queries.into_iter(), &known),
        [
            r#"delay_sum{le="1"} / delay: delay_sum has no le"#,
            r#"delay_sum{le="1"} / delay: there is no delay"#,
            r#"state_total{x="y"} + state{gate="a"}: there is no state_total"#,
            r#"state_total{x="y"} + state{gate="a"}: state has no gate"#,
            "vector(1): asks for nothing",
        ]
    );
}
