//! `kubectl gate` as people run it, on the real API server: who may do what, what it says, and
//! its exit codes.

mod asking;
mod calendars;
mod doctor;
mod forcing;
mod listing;
mod namespaces;
mod pending;
mod pipelines;
mod policies;
mod promotions;
mod rollouts;
mod sources;
mod voting;
mod waiting;

use std::fmt::Debug;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use kube::core::NamespaceResourceScope;
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use sluice_crds::State;
use sluice_tests::controller::InProcess;
use sluice_tests::poll;
use sluice_tests::programs::Program;
use tempfile::TempPath;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use super::stage::{DEADLINE, Stage};
use crate::chart::CONTROLLER;

/// What a run came to.
#[derive(Debug)]
struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

/// The program as `user` in the namespace of `stage`, with the file that says who that is.
fn command(stage: &Stage, user: &str, arguments: &[&str]) -> Result<(TempPath, Command)> {
    let kubeconfig = stage.cluster().kubeconfig_for(user)?;
    let mut command = Command::new(Program::KubectlGate.path()?);
    command
        .args(arguments)
        .args(["--namespace", stage.namespace()])
        .env("KUBECONFIG", &*kubeconfig)
        .env("LANG", "C.UTF-8")
        .env("COLUMNS", "120")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    Ok((kubeconfig, command))
}

/// A run that goes on, and its lines.
struct Going {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    _kubeconfig: TempPath,
}

impl Going {
    fn start(stage: &Stage, user: &str, arguments: &[&str]) -> Result<Self> {
        let (kubeconfig, mut command) = command(stage, user, arguments)?;
        let mut child = command.spawn()?;
        let out = child.stdout.take().context("no output")?;
        Ok(Self {
            child,
            lines: BufReader::new(out).lines(),
            _kubeconfig: kubeconfig,
        })
    }

    /// What it says next.
    async fn line(&mut self) -> Result<String> {
        let line = tokio::time::timeout(DEADLINE, self.lines.next_line()).await??;
        line.context("it said nothing more")
    }

    /// Waits for its end, which must be a good one.
    async fn ends_well(mut self) -> Result<()> {
        let ended = tokio::time::timeout(DEADLINE, self.child.wait()).await??;
        ensure!(ended.code() == Some(0), "{ended}");
        Ok(())
    }
}

/// Runs it to its end.
async fn run(stage: &Stage, user: &str, arguments: &[&str]) -> Result<Ran> {
    let (_kubeconfig, mut command) = command(stage, user, arguments)?;
    let output = tokio::time::timeout(DEADLINE, command.output()).await??;
    Ok(Ran {
        code: output.status.code(),
        out: String::from_utf8(output.stdout)?,
        err: String::from_utf8(output.stderr)?,
    })
}

/// The same, which must end with `code` and say `expected`.
async fn says(
    stage: &Stage,
    user: &str,
    arguments: &[&str],
    code: i32,
    expected: &str,
) -> Result<Ran> {
    let ran = run(stage, user, arguments).await?;
    let said = format!("{}{}", ran.out, ran.err);
    ensure!(
        ran.code == Some(code) && said.contains(expected),
        "{arguments:?} should end with {code} and say {expected:?}: {ran:#?}"
    );
    Ok(ran)
}

/// The objects of a kind in the namespace of `stage`, as `user` may work with them.
async fn objects_of<K>(stage: &Stage, user: &str) -> Result<Api<K>>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    let client = stage.cluster().client_for(user).await?;
    Ok(Api::namespaced(client, stage.namespace()))
}

/// Waits until `user`, who was granted that, may list objects of a kind.
async fn may_list<K>(stage: &Stage, user: &str) -> Result<()>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned,
{
    let objects: Api<K> = objects_of(stage, user).await?;
    poll(DEADLINE, "the rights to be there", async || {
        objects.list(&Default::default()).await.map(drop)
    })
    .await?;
    Ok(())
}

/// A gate for each state, and one that names nobody.
const GATES: &str = "
apiVersion: sluice.dev/v1alpha1
kind: Gatekeeper
metadata: {name: 'on'}
spec: {manual: {state: open, reason: all is well}}
---
apiVersion: sluice.dev/v1alpha1
kind: Gatekeeper
metadata: {name: 'off'}
spec: {manual: {state: closed, reason: database restore}}
---
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata: {name: open}
spec: {gatekeepers: [{name: 'on'}]}
---
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata: {name: closed}
spec: {gatekeepers: [{name: 'on'}, {name: 'off'}], maxOverride: 2h}
---
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata: {name: unkept}
spec: {gatekeepers: [{name: nobody}]}
";

/// A server with the policies; carol may force gates, eve may edit and victor see them.
async fn guarded() -> Result<(Stage, InProcess)> {
    let stage = Stage::installed("cli-force", "2026-11-20T12:00:00Z").await?;
    let view = ["victor", "eve", "carol"];
    stage.grant("sluice-view", &view).await?;
    stage.grant("sluice-edit", &["eve", "carol"]).await?;
    stage.grant("sluice-gate-override", &["carol"]).await?;
    stage.apply(GATES).await?;
    let acting = stage.cluster().client_for(CONTROLLER).await?;
    let controller = stage.start_in_real_time(acting).await?;
    stage.says("closed", State::Closed, "Manual").await?;
    Ok((stage, controller))
}
