//! What the story needs before it begins.

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::NamespaceResourceScope;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sluice_crds::Gate;
use sluice_tests::controller::{self, Process};
use sluice_tests::rights::rule;
use sluice_tests::{Applier, Cluster, Workspace, apply, poll};
use tempfile::TempPath;

use super::screen::Screen;
use super::{CONTROLLER, NAMESPACE};
use crate::cargo;
use crate::server::{Open, marked};

/// Until what was installed is in effect.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long anything may take that Flux and a forge have a part in: Flux fetches every two seconds.
pub(super) const SOON: Duration = Duration::from_secs(90);

/// Where the story takes place.
pub(super) struct Stage {
    pub(super) kubectl_gate: PathBuf,
    /// How many columns programs may fill.
    pub(super) columns: usize,
    pub(super) cluster: Cluster,
    pub(super) client: Client,
}

impl Stage {
    /// Writes objects into the namespace of the demo, so that they are taken away with it.
    pub(super) async fn apply(&self, yaml: &str, file: &str) -> Result<()> {
        let documents = marked(apply::parse(yaml, file)?);
        let applier = Applier::new(self.client.clone()).in_namespace(NAMESPACE);
        applier.documents(documents).await?;
        Ok(())
    }

    /// Waits until there is something in an object, and tells meanwhile how far it is, as `said` has it.
    pub(super) async fn until<K, T>(
        &self,
        screen: &Screen,
        (name, what): (&str, &str),
        said: impl Fn(&K) -> String,
        find: impl Fn(&K) -> Option<T>,
    ) -> Result<T>
    where
        K: Resource<Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
        K::DynamicType: Default,
    {
        let objects: Api<K> = Api::namespaced(self.client.clone(), NAMESPACE);
        let mut shown = String::new();
        let found = poll(SOON, what, async || {
            let object = objects.get(name).await?;
            if let Some(found) = find(&object) {
                return Ok(found);
            }
            let said = said(&object);
            let line = format!("waiting for {what}: {said}");
            if line != shown {
                screen.waiting(&line);
                shown = line;
            }
            bail!("{said}")
        })
        .await;
        screen.waited();
        found
    }
}

/// A right to one Secret.
pub(super) fn secret(name: &str, verbs: &[&str]) -> Value {
    let mut rule = rule("", &["secrets"], verbs);
    rule["resourceNames"] = json!([name]);
    rule
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
        ("examples/approval.yaml", false),
    ] {
        let mut documents = apply::read(&cargo::root().join(file))?;
        if !is_kept {
            documents = marked(documents);
        }
        let applied = applier.documents(documents).await;
        applied.with_context(|| format!("cannot apply {file}"))?;
    }
    wait_until_policies_judge(client).await
}

/// A policy takes effect a moment after it is stored: until then it refuses nobody.
async fn wait_until_policies_judge(client: &Client) -> Result<()> {
    let gates: Api<Gate> = Api::namespaced(client.clone(), NAMESPACE);
    let rehearsal = PatchParams {
        dry_run: true,
        ..PatchParams::default()
    };
    let force = json!({ "metadata": { "annotations": { "sluice.dev/force": "ajar" } } });
    let status = json!({ "status": { "reason": "Rehearsal" } });
    poll(PATIENCE, "the admission policies to judge", async || {
        let forced = gates
            .patch("production", &rehearsal, &Patch::Merge(&force))
            .await;
        ensure!(forced.is_err(), "forces are let pass");
        let reported = gates
            .patch_status("production", &rehearsal, &Patch::Merge(&status))
            .await;
        ensure!(reported.is_err(), "statuses are let pass");
        Ok(())
    })
    .await
}

/// The controller, running as the user that the policies know. It ends when dropped, and
/// with us.
pub(super) struct Controller {
    pub(super) process: Process,
    /// Its audit log, in a folder that goes after it.
    pub(super) audit: PathBuf,
    _folder: Workspace,
    _kubeconfig: TempPath,
}

impl Controller {
    /// Keeps every namespace of a cluster that was started for us, and only the demo's of another.
    pub(super) async fn start(program: &Path, open: &Open) -> Result<Self> {
        let kubeconfig = open.cluster.kubeconfig_for(CONTROLLER)?;
        let folder = Workspace::create()?;
        let audit = folder.path().join("audit.log");
        let mut command = Command::new(program);
        command.env("KUBECONFIG", &*kubeconfig);
        command.arg(format!("--audit-log={}", audit.display()));
        // Where other clusters and forges of the demo are.
        command.arg("--egress-allow=127.0.0.0/8");
        if open.is_ours() {
            command.args(["--metrics-addr=0", "--health-addr=0"]);
        } else {
            command.args(controller::flags(NAMESPACE));
        }
        Ok(Self {
            process: Process::run(&command).await?,
            audit,
            _folder: folder,
            _kubeconfig: kubeconfig,
        })
    }
}
