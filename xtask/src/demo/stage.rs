//! What the story needs before it begins.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use kube::Client;
use sluice_tests::controller::{self, Process};
use sluice_tests::{Applier, Cluster, apply};
use tempfile::TempPath;

use super::{CONTROLLER, NAMESPACE};
use crate::cargo;
use crate::server::{Open, marked};

/// Where the story takes place.
pub(super) struct Stage {
    pub(super) kubectl_gate: PathBuf,
    pub(super) cluster: Cluster,
    pub(super) client: Client,
}

/// Installs everything but the controller.
pub(super) async fn install(client: &Client) -> Result<()> {
    let applier = Applier::new(client.clone()).in_namespace(NAMESPACE);
    for (file, is_kept) in [
        // Deleted, they would take every gate with them.
        ("crds/yaml", true),
        ("charts/gate-controller/policies", false),
        ("xtask/src/demo/rights.yaml", false),
        ("examples/maintenance-window.yaml", false),
        ("examples/no-deploy-fridays.yaml", false),
        ("examples/holidays.yaml", false),
    ] {
        let mut documents = apply::read(&cargo::root().join(file))?;
        if !is_kept {
            documents = marked(documents);
        }
        let applied = applier.documents(documents).await;
        applied.with_context(|| format!("cannot apply {file}"))?;
    }
    Ok(())
}

/// The released controller, running as the user that the policies know. It ends when dropped, and
/// with us.
pub(super) struct Controller {
    pub(super) process: Process,
    _kubeconfig: TempPath,
}

impl Controller {
    /// Keeps every namespace of a cluster that was started for us, and only the demo's of another.
    pub(super) async fn start(program: &Path, open: &Open) -> Result<Self> {
        let kubeconfig = open.cluster.kubeconfig_for(CONTROLLER)?;
        let mut command = Command::new(program);
        command.env("KUBECONFIG", &*kubeconfig);
        if open.is_ours() {
            command.args(["--metrics-addr=0", "--health-addr=0"]);
        } else {
            command.args(controller::flags(NAMESPACE));
        }
        Ok(Self {
            process: Process::run(&command).await?,
            _kubeconfig: kubeconfig,
        })
    }
}
