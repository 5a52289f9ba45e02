//! The hydrator of the guide: `examples/hydrate.sh`, as CI runs it in a clone.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use crate::gitea::{BRANCH, Gitea, OWNER};
use crate::kubectl;
use crate::progress::Stderr;

/// A clone of the dry branch, of a user who may push.
pub(super) struct Clone {
    folder: TempDir,
    header: String,
    kubectl: PathBuf,
}

impl Clone {
    /// Clones a repository of [`OWNER`].
    pub(super) fn of(gitea: &Gitea, repository: &str, token: &str) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        fs::write(folder.path().join("ca.crt"), gitea.authority())?;
        let clone = Self {
            folder,
            header: format!("Authorization: token {token}"),
            kubectl: kubectl::ensure(&Stderr::new())?,
        };
        let url = gitea.url(OWNER, repository);
        clone.git(&["clone", "--quiet", "--branch", BRANCH, &url, "app"])?;
        Ok(clone)
    }

    fn app(&self) -> PathBuf {
        self.folder.path().join("app")
    }

    /// A person writes what each environment is made from, and pushes it. Returns the dry commit.
    pub(super) fn commit(&self, environments: &[&str], manifest: &str) -> Result<String> {
        for environment in environments {
            let overlay = self.app().join("overlays").join(environment);
            fs::create_dir_all(&overlay)?;
            fs::write(
                overlay.join("kustomization.yaml"),
                "resources: [app.yaml]\n",
            )?;
            fs::write(overlay.join("app.yaml"), manifest)?;
        }
        self.git(&["-C", "app", "add", "overlays"])?;
        self.git(&[
            "-C",
            "app",
            "commit",
            "--quiet",
            "--message",
            "Write \"it\"",
        ])?;
        self.git(&["-C", "app", "push", "--quiet", "origin", BRANCH])?;
        self.git(&["-C", "app", "rev-parse", "HEAD"])
    }

    /// Runs the script for these environments. Returns what it says.
    pub(super) fn hydrate(&self, environments: &[&str]) -> Result<String> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/hydrate.sh");
        let mut command = self.command("bash");
        command
            .current_dir(self.app())
            .env("RENDER", format!("{} kustomize", self.kubectl.display()))
            .arg(script)
            .args(environments);
        said(&mut command)
    }

    fn git(&self, arguments: &[&str]) -> Result<String> {
        let mut command = self.command("git");
        command.current_dir(self.folder.path()).args(arguments);
        said(&mut command)
    }

    /// A program in which Git knows the server, the token and the author, and nothing of this machine.
    fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_SSL_CAINFO", self.folder.path().join("ca.crt"))
            .env("GIT_CONFIG_COUNT", "1")
            .env("GIT_CONFIG_KEY_0", "http.extraHeader")
            .env("GIT_CONFIG_VALUE_0", &self.header);
        for who in ["AUTHOR", "COMMITTER"] {
            command
                .env(format!("GIT_{who}_NAME"), "CI")
                .env(format!("GIT_{who}_EMAIL"), "ci@example.com");
        }
        command
    }
}

fn said(command: &mut Command) -> Result<String> {
    let output = command.output().context("it does not run")?;
    let why = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{why}");
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
