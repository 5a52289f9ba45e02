//! The programs under test.
//!
//! What comes in: the environment that `cargo xtask test` sets. What goes out: the path of a
//! program of ours that is up to date.

use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::Value;

/// A program of this workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// The controller.
    GateController,
    /// The plugin of kubectl.
    KubectlGate,
}

/// What has been built, by [`Program`].
static BUILT: [OnceLock<Result<PathBuf, String>>; 2] = [OnceLock::new(), OnceLock::new()];

impl Program {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::GateController, Self::KubectlGate];

    /// The name of the package and of the file.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::GateController => "gate-controller",
            Self::KubectlGate => "kubectl-gate",
        }
    }

    /// The environment variable that names the file to test.
    #[must_use]
    pub const fn variable(self) -> &'static str {
        match self {
            Self::GateController => "SLUICE_GATE_CONTROLLER",
            Self::KubectlGate => "SLUICE_KUBECTL_GATE",
        }
    }

    /// The program: the one that [`Self::variable`] names, else built now, with the profile for
    /// development.
    ///
    /// # Errors
    ///
    /// If it cannot be built.
    pub fn path(self) -> Result<PathBuf> {
        if let Some(path) = env::var_os(self.variable()).filter(|path| !path.is_empty()) {
            return Ok(path.into());
        }
        let built =
            BUILT[self as usize].get_or_init(|| build(self).map_err(|error| format!("{error:#}")));
        built.clone().map_err(|error| anyhow!("{error}"))
    }
}

fn build(program: Program) -> Result<PathBuf> {
    let name = program.name();
    let output = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args([
            "build",
            "--quiet",
            "--message-format=json",
            "--package",
            name,
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo")?;
    ensure!(
        output.status.success(),
        "cargo build --package {name} failed"
    );
    let messages = String::from_utf8_lossy(&output.stdout);
    let executable = messages.lines().find_map(|line| {
        let message: Value = serde_json::from_str(line).ok()?;
        let ours = message["target"]["name"] == name;
        ours.then(|| message["executable"].as_str().map(PathBuf::from))?
    });
    executable.with_context(|| format!("cargo build made no program {name}"))
}
