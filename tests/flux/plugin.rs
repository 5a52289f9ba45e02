//! `kubectl gate`, run beside the real Flux.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Result, ensure};
use sluice_tests::programs::Program;
use tokio::process::Command;

use crate::stage::Stage;

/// What it says, and how it ends.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

/// Runs `kubectl gate` to its end, in the namespace of `stage`.
async fn gate(stage: &Stage<'_>, words: &str) -> Result<Ran> {
    let kubeconfig = stage.cluster().kubeconfig_for("admin")?;
    let program = tokio::task::spawn_blocking(|| Program::KubectlGate.path()).await??;
    let mut command = Command::new(program);
    command
        .args(words.split_whitespace())
        .args(["--namespace", stage.namespace()])
        .env("KUBECONFIG", &*kubeconfig)
        .env("LANG", "C.UTF-8")
        .env("COLUMNS", "120")
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = tokio::time::timeout(Duration::from_secs(120), command.output()).await??;
    Ok(Ran {
        code: output.status.code(),
        out: String::from_utf8(output.stdout)?,
        err: String::from_utf8(output.stderr)?,
    })
}

/// The same, which must end with `code` and say `expected`.
pub async fn says(stage: &Stage<'_>, words: &str, code: i32, expected: &str) -> Result<Ran> {
    let ran = gate(stage, words).await?;
    let said = format!("{}{}", ran.out, ran.err);
    ensure!(
        ran.code == Some(code) && said.contains(expected),
        "{words} should end with {code} and say {expected:?}: {ran:#?}"
    );
    Ok(ran)
}
