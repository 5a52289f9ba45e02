//! kwok, which stands in for a node and for what runs on it.
//!
//! What comes in: a cluster. What goes out: a process that keeps the node [`NODE`] and its pods, by the
//! stages of `stages.yaml`.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::ObjectMeta;

use super::NODE;
use crate::cluster::Cluster;
use crate::control_plane::Workspace;
use crate::controller::Process;
use crate::poll::DEADLINE;
use crate::writes::Writes;

/// The stages, which a change of this file needs no other build for.
const STAGES: &str = include_str!("stages.yaml");

/// Makes the node, starts kwok, and waits until the node is ready.
pub(super) async fn start(program: &Path, cluster: &Cluster) -> Result<Process> {
    let nodes: Api<Node> = Api::all(cluster.client().await?);
    let node = Node {
        metadata: ObjectMeta {
            name: Some(NODE.to_owned()),
            ..ObjectMeta::default()
        },
        ..Node::default()
    };
    nodes.add(&node).await?;
    let workspace = Workspace::create()?;
    fs::write(workspace.path().join("stages.yaml"), STAGES)?;
    let mut command = Command::new(program);
    command
        .arg(format!("--kubeconfig={}", cluster.kubeconfig().display()))
        .arg(format!("--manage-single-node={NODE}"))
        .arg("--config=stages.yaml")
        // Else it also reads what a user has configured.
        .env("HOME", workspace.path())
        .env_remove("KUBECONFIG");
    let process = Process::run_in(workspace, &command).await?;
    let ready = async || is_ready(&nodes).await;
    let waited = process.until(DEADLINE, "the node to be ready", ready).await;
    waited.with_context(|| format!("kwok says:\n{}", process.log_tail()))?;
    Ok(process)
}

async fn is_ready(nodes: &Api<Node>) -> Result<()> {
    let status = nodes.get(NODE).await?.status.unwrap_or_default();
    let conditions = status.conditions.unwrap_or_default();
    let is_ready = conditions
        .iter()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True");
    ensure!(is_ready, "its conditions are {conditions:?}");
    Ok(())
}
