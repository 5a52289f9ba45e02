//! Several replicas, of which one writes: the one that holds the Lease.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use sluice_crds::{Gate, GateSpec, Setting, State};
use sluice_tests::controller::Process;
use sluice_tests::poll;

use super::stage::{DEADLINE, Stage, dated, soon};

/// Leaders that are given up after two seconds.
const SHORT: [&str; 4] = [
    "--enable-leader-election",
    "--leader-election-lease-duration=2s",
    "--leader-election-renew-deadline=1500ms",
    "--leader-election-retry-period=200ms",
];

async fn replica(stage: &Stage, name: &str, flags: &[&str]) -> Result<Process> {
    let process = Process::start(stage.cluster().kubeconfig(), stage.namespace(), name, flags);
    process.await
}

/// Waits until the replica says that it leads, or that it does not any more.
async fn leads(process: &Process, leads: bool) -> Result<()> {
    let changed = |line: &Value| line["leads"] == leads;
    process.logged("leadership to change", changed).await?;
    Ok(())
}

/// Waits until the replica knows everything.
async fn is_ready(process: &Process) -> Result<()> {
    let ready = |line: &Value| line["message"] == "every cache has synced";
    process.logged("the caches to sync", ready).await?;
    Ok(())
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
    let spec = GateSpec {
        default: Setting::Open,
        ..GateSpec::default()
    };
    let gate = Gate::new(name, spec);
    stage.gates().create(&PostParams::default(), &gate).await?;
    stage.says(name, State::Open, "Default").await?;
    Ok(())
}

async fn holder(stage: &Stage) -> Result<Option<String>> {
    let leases: Api<Lease> = Api::namespaced(stage.client(), stage.namespace());
    let lease = leases.get("gate-controller").await?;
    Ok(lease.spec.context("no spec")?.holder_identity)
}

#[tokio::test]
async fn another_replica_takes_over_when_the_leader_is_killed() -> Result<()> {
    let stage = Stage::new("replicas", "2026-11-20T12:00:00Z").await?;
    let one = replica(&stage, "one", &SHORT).await?;
    leads(&one, true).await?;
    let two = replica(&stage, "two", &SHORT).await?;
    is_ready(&two).await?;
    create(&stage, "first").await?;
    decides(&one, &["first"]).await?;

    // Changed while nobody leads.
    one.kill().await?;
    let killed = Instant::now();
    let close = Patch::Merge(json!({"spec": {"default": "closed"}}));
    let gates = stage.gates();
    gates
        .patch("first", &PatchParams::default(), &close)
        .await?;
    leads(&two, true).await?;
    ensure!(
        killed.elapsed() > Duration::from_millis(300),
        "it did not wait"
    );
    stage.says("first", State::Closed, "Default").await?;
    create(&stage, "second").await?;
    decides(&two, &["first", "second"]).await?;
    let holder = holder(&stage).await?.context("nobody leads")?;
    ensure!(holder.starts_with("two_"), "{holder}");
    two.terminate().await
}

/// A leader that was stopped past its deadline, as by a machine that slept, has nothing to write.
#[tokio::test]
async fn a_leader_that_slept_writes_nothing() -> Result<()> {
    let stage = Stage::new("paused", "2026-11-20T12:00:00Z").await?;
    let one = replica(&stage, "one", &SHORT).await?;
    leads(&one, true).await?;
    let two = replica(&stage, "two", &SHORT).await?;
    is_ready(&two).await?;
    let start = soon(3)?;
    stage.apply(&dated("due", start)).await?;
    stage.says("due", State::Closed, "OutsideWindow").await?;

    // What it knows is old when it wakes: it was about to open one gate, and has not seen another.
    decides(&one, &["due"]).await?;
    one.pause()?;
    leads(&two, true).await?;
    stage.says("due", State::Open, "InsideWindow").await?;
    create(&stage, "meanwhile").await?;
    let before = (
        stage.version("due").await?,
        stage.version("meanwhile").await?,
    );

    one.resume()?;
    leads(&one, false).await?;
    stage.settle().await?;
    let after = (
        stage.version("due").await?,
        stage.version("meanwhile").await?,
    );
    assert_eq!(after, before);
    assert_eq!(decided(&one)?, ["due"]);

    // It is still good for its turn.
    two.terminate().await?;
    create(&stage, "third").await?;
    decides(&one, &["due", "third"]).await?;
    let after = (
        stage.version("due").await?,
        stage.version("meanwhile").await?,
    );
    assert_eq!(after, before);
    one.terminate().await
}

#[tokio::test]
async fn a_leader_that_ends_gives_the_lease_back() -> Result<()> {
    let stage = Stage::new("handover", "2026-11-20T12:00:00Z").await?;
    let patient = [
        "--enable-leader-election",
        "--leader-election-lease-duration=60s",
        "--leader-election-renew-deadline=50s",
        "--leader-election-retry-period=200ms",
    ];
    let one = replica(&stage, "one", &patient).await?;
    leads(&one, true).await?;
    let two = replica(&stage, "two", &patient).await?;
    is_ready(&two).await?;
    create(&stage, "first").await?;
    one.terminate().await?;
    leads(&two, true).await?;
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
