//! Controllers that die at awkward moments, and objects that do.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use axum::http::Method;
use futures::{StreamExt, TryStreamExt};
use gate_controller::observe::clock::SystemClock;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, ResourceExt};
use sluice_crds::{Gate, GateSpec, Setting, State};
use sluice_tests::controller::{InProcess, Process};
use sluice_tests::proxy::{Fault, Proxy};
use sluice_tests::{Writes, poll};

use super::forces::force;
use super::stage::{DEADLINE, LAST, Stage, gate};
use super::told;

/// A gatekeeper that admits nothing.
const SWITCH: &str = "
apiVersion: sluice.dev/v1alpha1
kind: Gatekeeper
metadata: {name: switch}
spec: {manual: {state: closed}}
";

async fn process(stage: &Stage) -> Result<Process> {
    process_with(stage, stage.cluster().kubeconfig()).await
}

async fn process_with(stage: &Stage, kubeconfig: &Path) -> Result<Process> {
    Process::start(kubeconfig, stage.namespace(), "c-0", &["--concurrent=1"]).await
}

#[tokio::test]
async fn a_controller_may_be_killed_while_it_writes_a_transition_and_right_after() -> Result<()> {
    let stage = Stage::new("killed", "2026-11-20T12:00:00Z").await?;
    let proxy = Proxy::start(stage.client()).await?;
    let kubeconfig = proxy.kubeconfig()?;
    let first = process_with(&stage, &kubeconfig).await?;
    let start = stage.due_soon("due").await?;
    // It has sent the status, and nothing of it has arrived.
    proxy.order(Fault::Hold, Method::PATCH, "/gates/due/status", 1);
    let before = stage.version("due").await?;
    proxy.came().await?;
    first.kill().await?;
    assert_eq!(stage.version("due").await?, before);

    let second = process(&stage).await?;
    let open = stage.says("due", State::Open, "InsideWindow").await?;
    let after = stage.version("due").await?;
    second.kill().await?;
    assert_eq!(open.since.unwrap().0, start);

    let third = process(&stage).await?;
    stage.settle().await?;
    assert_eq!(stage.version("due").await?, after);
    // It has nothing to tell either.
    let decided = |line: &serde_json::Value| line["target"] == "decision" && line["name"] == "due";
    assert!(!third.log()?.iter().any(decided));
    third.terminate().await
}

/// Killed in the midst of a herd: those that were written are not written again, the others are.
#[tokio::test]
async fn a_herd_is_written_once_although_the_controller_is_killed_in_its_midst() -> Result<()> {
    const HERD: usize = 40;
    let stage = Stage::new("herd", "2026-11-20T12:00:00Z").await?;
    stage.apply(SWITCH).await?;
    let gates = stage.gates();
    let spec: GateSpec = serde_json::from_str(r#"{"gatekeepers": [{"name": "switch"}]}"#)?;
    futures::stream::iter(0..HERD)
        .map(|n| {
            let gate = Gate::new(&format!("g-{n}"), spec.clone());
            let gates = gates.clone();
            async move { gates.add(&gate).await }
        })
        .buffer_unordered(16)
        .try_collect::<Vec<_>>()
        .await?;
    let proxy = Proxy::start(stage.client()).await?;
    let kubeconfig = proxy.kubeconfig()?;
    let first = process_with(&stage, &kubeconfig).await?;
    let count = async |state| {
        let all = gates.list(&ListParams::default()).await?.items;
        let is = |gate: &&Gate| gate.status.as_ref().and_then(|status| status.state) == Some(state);
        Ok::<_, anyhow::Error>(all.iter().filter(is).count())
    };
    poll(DEADLINE, "all gates to be closed", async || {
        let closed = count(State::Closed).await?;
        ensure!(closed == HERD, "{closed}");
        Ok(())
    })
    .await?;
    let listed = gates.list(&ListParams::default()).await?;
    let version = listed.metadata.resource_version.context("no version")?;

    // It writes one after another, and stands still at one of them.
    proxy.order(Fault::Hold, Method::PATCH, "/gates/g-20/status", 1);
    stage.apply(&SWITCH.replace("closed", "open")).await?;
    proxy.came().await?;
    first.kill().await?;
    assert_ne!(count(State::Closed).await?, 0);
    let _second = process(&stage).await?;
    poll(DEADLINE, "all gates to be open", async || {
        let open = count(State::Open).await?;
        ensure!(open == HERD, "{open}");
        Ok(())
    })
    .await?;
    stage.settle().await?;
    let changes = changes_since(&stage, &version).await?;
    assert_eq!(changes.len(), HERD);
    assert!(changes.values().all(|count| *count == 1), "{changes:?}");
    Ok(())
}

/// How often each gate of the herd has changed since `version`.
async fn changes_since(stage: &Stage, version: &str) -> Result<BTreeMap<String, usize>> {
    let gates = stage.gates();
    let last = gates.list(&ListParams::default()).await?.items;
    let last = last
        .iter()
        .filter_map(|gate| gate.resource_version()?.parse::<u64>().ok());
    let last = last.max().context("no gates")?;
    let mut watch = Box::pin(gates.watch(&WatchParams::default(), version).await?);
    let mut changes = BTreeMap::new();
    while let Some(event) = watch.try_next().await? {
        let gate = match event {
            WatchEvent::Modified(gate) => gate,
            WatchEvent::Error(error) => bail!("{error:?}"),
            WatchEvent::Added(_) | WatchEvent::Deleted(_) | WatchEvent::Bookmark(_) => continue,
        };
        if gate.name_any().starts_with("g-") {
            *changes.entry(gate.name_any()).or_default() += 1;
        }
        if gate.resource_version() == Some(last.to_string()) {
            break;
        }
    }
    Ok(changes)
}

/// A controller that believes everybody, at the end of a line.
async fn trusting(stage: &Stage) -> Result<(Proxy, InProcess)> {
    let proxy = Proxy::start(stage.client()).await?;
    let mut settings = stage.settings();
    settings.trust_unverified_identity = true;
    let clock = Arc::new(SystemClock);
    let controller = InProcess::start(settings, proxy.client()?, clock).await?;
    Ok((proxy, controller))
}

/// Creates an open gate that is forced closed, and waits until the request that the controller makes
/// because of it is held back.
async fn forced_and_held(
    gates: &Api<Gate>,
    name: &str,
    proxy: &Proxy,
    request: &str,
) -> Result<()> {
    proxy.order(Fault::Hold, Method::PATCH, request, 1);
    let mut forced = gate(name, Setting::Open);
    forced.metadata.annotations = serde_json::from_value(force("closed", "admin"))?;
    gates.add(&forced).await?;
    proxy.came().await
}

#[tokio::test]
async fn what_is_deleted_while_it_is_written_stays_deleted() -> Result<()> {
    let stage = Stage::new("deleted", "2026-11-20T12:00:00Z").await?;
    let (proxy, controller) = trusting(&stage).await?;
    let gates = stage.gates();
    // While its status is written, and while its force is completed.
    for (name, request) in [("one", "/gates/one/status"), ("two", "/gates/two?")] {
        forced_and_held(&gates, name, &proxy, request).await?;
        gates.remove(name).await?;
        proxy.let_go();
        stage.settle().await?;
        ensure!(gates.get_opt(name).await?.is_none(), "{name} is back");
    }
    no_failures(&controller).await
}

#[tokio::test]
async fn a_gate_of_the_same_name_is_another_gate() -> Result<()> {
    let stage = Stage::new("recreated", "2026-11-20T12:00:00Z").await?;
    let (proxy, controller) = trusting(&stage).await?;
    let gates = stage.gates();
    for (name, request) in [("one", "/gates/one/status"), ("two", "/gates/two?")] {
        forced_and_held(&gates, name, &proxy, request).await?;
        gates.remove(name).await?;
        gates.add(&gate(name, Setting::Open)).await?;
        proxy.let_go();
        let open = stage.says(name, State::Open, "Default").await?;
        assert_eq!((open.r#override, open.observed_generation), (None, Some(1)));
        stage.settle().await?;
        let annotations = gates.get(name).await?.metadata.annotations;
        assert_eq!(annotations, None);
    }
    no_failures(&controller).await
}

/// Anyone who ends a force has the last word, even if it is being completed.
#[tokio::test]
async fn a_force_that_is_ended_while_it_is_completed_stays_ended() -> Result<()> {
    let stage = Stage::new("ended", "2026-11-20T12:00:00Z").await?;
    let (proxy, controller) = trusting(&stage).await?;
    let gates = stage.gates();
    forced_and_held(&gates, "one", &proxy, "/gates/one?").await?;
    let end = |name: &str| (format!("sluice.dev/{name}"), serde_json::Value::Null);
    let end = ["force", "force-by", "force-reason"].map(end);
    stage.annotate("one", end.into_iter().collect()).await?;
    proxy.let_go();
    stage.says("one", State::Open, "Default").await?;
    stage.settle().await?;
    assert_eq!(gates.get("one").await?.metadata.annotations, None);
    no_failures(&controller).await
}

#[tokio::test]
async fn gates_that_come_and_go_trouble_nobody() -> Result<()> {
    let stage = Stage::new("fleeting", "2026-11-20T12:00:00Z").await?;
    let controller = stage.start_in_real_time(stage.client()).await?;
    let gates = stage.gates();
    for _ in 0..30 {
        gates.add(&gate("fleeting", Setting::Open)).await?;
        gates.remove("fleeting").await?;
    }
    stage.settle().await?;
    ensure!(gates.get_opt("fleeting").await?.is_none(), "it is back");
    let known = controller.world().gates.keys();
    ensure!(known.iter().all(|key| &*key.name == LAST), "{known:?}");
    no_failures(&controller).await
}

async fn no_failures(controller: &InProcess) -> Result<()> {
    let (_, text) = told::get(controller.metrics()?, "/metrics").await?;
    let failed = text
        .lines()
        .find(|line| line.starts_with("sluice_reconcile_failures_total"));
    ensure!(failed.is_none(), "{failed:?}");
    Ok(())
}
