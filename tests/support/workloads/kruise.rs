//! OpenKruise's manager, which makes the pods of CloneSets.
//!
//! What comes in: a cluster. What goes out: its kinds there, and a process that works on CloneSets and
//! judges them as they are written.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use kube::Client;
use serde_json::json;

use super::{Kind, Programs, Workloads};
use crate::apply::Applier;
use crate::cluster::Cluster;
use crate::control_plane::Workspace;
use crate::controller::Process;
use crate::poll::DEADLINE;
use crate::ports::free_port;

/// Where it believes to run, and keeps what belongs to itself.
const NAMESPACE: &str = "kruise-system";

/// How often a start is tried when another process took the port that was free a moment ago.
const ATTEMPTS: usize = 3;

/// Defines the kinds of OpenKruise, starts its manager, and waits until it works.
pub(super) async fn start(programs: &Programs, cluster: &Cluster) -> Result<Process> {
    let client = cluster.client().await?;
    let applier = Applier::new(client.clone());
    // All of them: it waits long for each kind that is not there.
    applier.path(&programs.definitions).await?;
    applier.text(include_str!("kruise.yaml")).await?;
    for _ in 1..ATTEMPTS {
        match attempt(&programs.kruise, cluster, &client).await {
            Err(error) if format!("{error:#}").contains("address already in use") => {}
            started => return started,
        }
    }
    attempt(&programs.kruise, cluster, &client).await
}

async fn attempt(program: &Path, cluster: &Cluster, client: &Client) -> Result<Process> {
    let workspace = Workspace::create()?;
    let certificates = workspace.path().join("certificates");
    fs::create_dir(&certificates)?;
    let mut command = Command::new(program);
    command
        .args(FLAGS)
        .env("KUBECONFIG", cluster.kubeconfig())
        .env("POD_NAMESPACE", NAMESPACE)
        // Where the API server is told to ask.
        .env("WEBHOOK_HOST", "127.0.0.1")
        // It listens there on every address of the machine: nothing tells it otherwise.
        .env("WEBHOOK_PORT", free_port()?.to_string())
        .env("WEBHOOK_CERT_DIR", &certificates);
    let process = Process::run_in(workspace, &command).await?;
    let waited = works(&process, client).await;
    waited.with_context(|| format!("kruise says:\n{}", process.log_tail()))?;
    Ok(process)
}

const FLAGS: [&str; 5] = [
    "--enable-leader-election=false",
    "--enable-pprof=false",
    // Nobody asks for them.
    "--metrics-addr=0",
    "--health-probe-addr=0",
    // There are no machines for its daemon, and nothing of its own in pods.
    "--feature-gates=KruiseDaemon=false,PodWebhook=false",
];

/// Waits until a CloneSet is judged when it is written, and looked at afterwards.
async fn works(process: &Process, client: &Client) -> Result<()> {
    let workloads = Workloads::of(client.clone(), NAMESPACE);
    let probe = process.until(DEADLINE, "its webhooks to answer", async || {
        let spec = json!({"replicas": 0});
        workloads.create(Kind::CloneSet, "probe", spec).await
    });
    let probe = probe.await?;
    let looked = async || probe.looked_at().await;
    process.until(DEADLINE, "it to look at one", looked).await?;
    probe.delete().await
}
