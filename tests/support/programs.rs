//! The programs under test.
//!
//! What comes in: the environment that `cargo xtask test` sets. What goes out: the path of a
//! program of ours that is up to date.

use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result, anyhow, ensure};

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
    let status = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--quiet", "--package", name])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .status()
        .context("cannot start cargo")?;
    ensure!(status.success(), "cargo build --package {name} failed");
    // We are <target>/debug/deps/<test>: the programs lie two folders up, with ours or without.
    let ourselves = env::current_exe()?;
    let target = ourselves
        .ancestors()
        .find(|folder| folder.join(".fingerprint").is_dir())
        .and_then(|profile| profile.parent())
        .context("this program lies in no target folder of cargo")?;
    Ok(target.join("debug").join(name))
}
