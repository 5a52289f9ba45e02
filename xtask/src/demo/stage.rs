//! What the story needs before it begins, and what is taken away after it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, Client};
use sluice_tests::Cluster;
use tempfile::{NamedTempFile, TempPath};
use tokio::process::{Child, Command};

use super::{CONTROLLER, NAMESPACE, apply};

/// Where the story takes place.
pub(super) struct Stage {
    pub(super) kubectl_gate: PathBuf,
    pub(super) cluster: Cluster,
    pub(super) client: Client,
}

/// Installs everything but the controller.
pub(super) async fn install(client: &Client) -> Result<()> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = serde_json::json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": { "name": NAMESPACE },
    });
    let params = PatchParams::apply("sluice-demo").force();
    namespaces
        .patch(NAMESPACE, &params, &Patch::Apply(&namespace))
        .await?;
    apply(
        client,
        &[
            "crds/yaml",
            "charts/gate-controller/policies",
            "xtask/src/demo/rights.yaml",
            "examples/maintenance-window.yaml",
            "examples/no-deploy-fridays.yaml",
            "examples/holidays.yaml",
        ],
    )
    .await
}

/// Takes away what only the demo needs from a cluster that goes on: its namespace and its rights.
pub(super) async fn clear(client: &Client) -> Result<()> {
    let params = DeleteParams::default();
    for name in [
        "sluice-demo-controller",
        "sluice-demo-editor",
        "sluice-demo-override",
    ] {
        let bindings: Api<ClusterRoleBinding> = Api::all(client.clone());
        gone(bindings.delete(name, &params).await.map(drop))?;
        let roles: Api<ClusterRole> = Api::all(client.clone());
        gone(roles.delete(name, &params).await.map(drop))?;
    }
    let namespaces: Api<Namespace> = Api::all(client.clone());
    gone(namespaces.delete(NAMESPACE, &params).await.map(drop))
}

/// What was not there is gone.
fn gone(deleted: kube::Result<()>) -> Result<()> {
    match deleted {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        other => Ok(other?),
    }
}

/// The released controller, running as the user that the policies know. It ends when dropped.
pub(super) struct Controller {
    _child: Child,
    _kubeconfig: TempPath,
    log: TempPath,
}

impl Controller {
    pub(super) fn start(program: &Path, cluster: &Cluster) -> Result<Self> {
        let kubeconfig = cluster.kubeconfig_for(CONTROLLER)?;
        let log = NamedTempFile::new()?.into_temp_path();
        let child = Command::new(program)
            .args(["--metrics-addr=127.0.0.1:0", "--health-addr=127.0.0.1:0"])
            .env("KUBECONFIG", &*kubeconfig)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log)?)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        Ok(Self {
            _child: child,
            _kubeconfig: kubeconfig,
            log,
        })
    }

    /// The last lines of its log.
    pub(super) fn log_tail(&self) -> String {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }
}
