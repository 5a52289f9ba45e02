//! Several replicas, of which one writes: the one that holds the Lease.

use anyhow::{Context, Result, ensure};
use axum::http::{Method, StatusCode};
use jiff::SignedDuration;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::Api;
use serde_json::json;
use sluice_crds::{Setting, State};
use sluice_tests::controller::Process;
use sluice_tests::proxy::{Proxy, refusal};
use sluice_tests::{Writes, poll};

use super::stage::{DEADLINE, Stage, gate};
use super::told;

/// Leaders that are given up after seconds, and not because two cores are busy for one.
pub const SHORT: [&str; 4] = [
    "--enable-leader-election",
    "--leader-election-lease-duration=6s",
    "--leader-election-renew-deadline=5s",
    "--leader-election-retry-period=500ms",
];

/// The first of them.
const LEASE: SignedDuration = SignedDuration::from_secs(6);

pub async fn replica(stage: &Stage, name: &str, flags: &[&str]) -> Result<Process> {
    let process = Process::start(stage.cluster().kubeconfig(), stage.namespace(), name, flags);
    process.await
}

/// Waits until the replica has heard of a gate, no matter which one decides it.
async fn knows(process: &Process, gate: &str) -> Result<()> {
    let metrics = process.address("metrics").await?;
    let line = format!("name=\"{gate}\",state=\"Open\"}} 1.0");
    poll(DEADLINE, "the gate to be known", async || {
        let (_, page) = told::get(metrics, "/metrics").await?;
        ensure!(page.contains(&line), "{page}");
        Ok(())
    })
    .await
}

/// The gates that the replica says it has decided, in this order.
fn decided(process: &Process) -> Result<Vec<String>> {
    let log = process.log()?;
    let decisions = log.iter().filter(|line| line["target"] == "decision");
    let names = decisions.filter_map(|line| line["name"].as_str().map(str::to_owned));
    Ok(names.collect())
}

/// Waits until the replica says that it has decided just these: it says so a moment after they are
/// written.
async fn decides(process: &Process, expected: &[&str]) -> Result<()> {
    poll(DEADLINE, "the decisions", async || {
        let decided = decided(process)?;
        ensure!(decided == expected, "{decided:?}");
        Ok(())
    })
    .await
}

async fn create(stage: &Stage, name: &str) -> Result<()> {
    let open = gate(name, Setting::Open);
    stage.gates().add(&open).await?;
    stage.says(name, State::Open, "Default").await?;
    Ok(())
}

async fn lease(stage: &Stage) -> Result<LeaseSpec> {
    let leases: Api<Lease> = Api::namespaced(stage.client(), stage.namespace());
    let lease = leases.get("gate-controller").await?;
    lease.spec.context("no spec")
}

async fn holder(stage: &Stage) -> Result<Option<String>> {
    Ok(lease(stage).await?.holder_identity)
}

#[tokio::test]
async fn another_replica_takes_over_when_the_leader_is_killed() -> Result<()> {
    let stage = Stage::new("replicas", "2026-11-20T12:00:00Z").await?;
    let one = replica(&stage, "one", &SHORT).await?;
    one.leads(true).await?;
    let two = replica(&stage, "two", &SHORT).await?;
    two.has_synced().await?;
    create(&stage, "first").await?;
    decides(&one, &["first"]).await?;

    // Changed while nobody leads.
    one.kill().await?;
    let renewed = lease(&stage).await?.renew_time.context("not renewed")?;
    let close = json!({"spec": {"default": "closed"}});
    let gates = stage.gates();
    gates.merge("first", &close).await?;
    two.leads(true).await?;
    let acquired = lease(&stage).await?.acquire_time.context("not acquired")?;
    let waited = acquired.0.duration_since(renewed.0);
    ensure!(waited >= LEASE, "only {waited:?}");
    stage.says("first", State::Closed, "Default").await?;
    create(&stage, "second").await?;
    decides(&two, &["first", "second"]).await?;
    let holder = holder(&stage).await?.context("nobody leads")?;
    ensure!(holder.starts_with("two_"), "{holder}");
    two.terminate().await
}

/// A leader that was stopped past its deadline, as by a machine that slept, does not even ask for a
/// write: what it knows is old. It was about to open a gate, and hears nothing of what happened
/// meanwhile before it is too late.
#[tokio::test]
async fn a_leader_that_slept_writes_nothing() -> Result<()> {
    let stage = Stage::new("paused", "2026-11-20T12:00:00Z").await?;
    let proxy = Proxy::start(stage.client()).await?;
    let kubeconfig = proxy.kubeconfig()?;
    let one = Process::start(&kubeconfig, stage.namespace(), "one", &SHORT).await?;
    one.leads(true).await?;
    let two = replica(&stage, "two", &SHORT).await?;
    two.has_synced().await?;
    stage.due_soon("due").await?;
    poll(DEADLINE, "the decision", async || {
        ensure!(!decided(&one)?.is_empty(), "none is told");
        Ok(())
    })
    .await?;
    let patches = |name: &str| proxy.count(&Method::PATCH, &format!("/gates/{name}"));
    let before = patches("due");

    one.pause()?;
    let told = decided(&one)?;
    let away = refusal(StatusCode::INTERNAL_SERVER_ERROR, "InternalError");
    proxy.order(away, Method::GET, "watch=true", usize::MAX);
    proxy.cut();
    two.leads(true).await?;
    stage.says("due", State::Open, "InsideWindow").await?;
    create(&stage, "meanwhile").await?;

    one.resume()?;
    one.leads(false).await?;
    proxy.repair();
    knows(&one, "meanwhile").await?;
    assert_eq!((patches("due"), patches("meanwhile")), (before, 0));

    // It is still good for its turn, and has nothing to make up for.
    two.terminate().await?;
    create(&stage, "third").await?;
    let told = told.iter().map(String::as_str);
    decides(&one, &told.chain(["third"]).collect::<Vec<_>>()).await?;
    assert_eq!((patches("due"), patches("meanwhile")), (before, 0));
    one.terminate().await
}

#[tokio::test]
async fn a_leader_that_ends_gives_the_lease_back() -> Result<()> {
    let stage = Stage::new("handover", "2026-11-20T12:00:00Z").await?;
    let patient = [
        "--enable-leader-election",
        "--leader-election-lease-duration=60s",
        "--leader-election-renew-deadline=50s",
        "--leader-election-retry-period=500ms",
    ];
    let one = replica(&stage, "one", &patient).await?;
    one.leads(true).await?;
    let two = replica(&stage, "two", &patient).await?;
    two.has_synced().await?;
    create(&stage, "first").await?;
    one.terminate().await?;
    two.leads(true).await?;
    create(&stage, "second").await?;
    decides(&two, &["second"]).await?;
    two.terminate().await?;
    assert_eq!(holder(&stage).await?, None);
    Ok(())
}

#[tokio::test]
async fn periods_that_would_let_two_lead_are_refused() -> Result<()> {
    let stage = Stage::new("periods", "2026-11-20T12:00:00Z").await?;
    let mut settings = stage.settings();
    settings.enable_leader_election = true;
    settings.leader_election_renew_deadline = settings.leader_election_lease_duration;
    let refused = stage.start_with(settings).await.err().context("it runs")?;
    let words = "--leader-election-renew-deadline=35s must be shorter than \
                 --leader-election-lease-duration=35s";
    ensure!(refused.to_string().contains(words), "{refused}");
    Ok(())
}
