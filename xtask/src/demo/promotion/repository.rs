//! The repository of the shop, as the people who work on it have it: a clone, in which the hydrator runs.
//!
//! What comes in: versions of the shop. What goes out: commits on `main`, and what the hydrator of the guide
//! makes of them, all pushed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use sluice_tests::Workspace;
use sluice_tests::gitea::{BRANCH, Gitea, OWNER, PASSWORD};

use super::{ENVIRONMENTS, REPOSITORY};
use crate::cargo;

/// The script of the guide.
pub(super) const HYDRATOR: &str = "examples/hydrate.sh";
/// The file that says which version of the shop there is.
pub(super) const FILE: &str = "base/shop.yaml";

/// The shop at one time.
#[derive(Clone, Copy)]
pub(super) struct Version {
    pub(super) number: &'static str,
    /// What becomes of its orders.
    pub(super) orders: &'static str,
}

impl Version {
    pub(super) const fn new(number: &'static str, orders: &'static str) -> Self {
        Self { number, orders }
    }
}

/// A clone. It goes when dropped.
pub(super) struct Clone {
    folder: Workspace,
    kubectl: PathBuf,
}

impl Clone {
    /// Clones the repository, and writes what all environments are made from.
    pub(super) fn create(gitea: &Gitea, kubectl: &Path) -> Result<Self> {
        let clone = Self {
            folder: Workspace::create()?,
            kubectl: kubectl.to_owned(),
        };
        let address = gitea.url(OWNER, REPOSITORY);
        let address = address.replace("https://", &format!("https://{OWNER}@"));
        clone.git(&["clone", "--quiet", &address, "."])?;
        clone.write("base/kustomization.yaml", "resources: [shop.yaml]\n")?;
        for environment in ENVIRONMENTS {
            let overlay = format!("resources: [../../base]\nnameSuffix: -{environment}\n");
            let path = format!("overlays/{environment}/kustomization.yaml");
            clone.write(&path, &overlay)?;
        }
        Ok(clone)
    }

    /// Commits a version of the shop to `main`, and pushes it. Returns the dry commit.
    pub(super) fn push(&self, version: Version, message: &str) -> Result<String> {
        let app = include_str!("app.yaml")
            .replace("VERSION", version.number)
            .replace("ORDERS", version.orders);
        self.write(FILE, &app)?;
        self.git(&["add", "--all"])?;
        self.git(&["commit", "--quiet", "--message", message])?;
        self.git(&["push", "--quiet", "origin", BRANCH])?;
        self.git(&["rev-parse", "HEAD"])
    }

    /// Runs the hydrator, which makes the branches, and lets each environment have what is proposed for it.
    pub(super) fn begin(&self) -> Result<()> {
        self.hydrate()?;
        for environment in ENVIRONMENTS {
            let there =
                format!("refs/remotes/origin/env/{environment}-next:refs/heads/env/{environment}");
            self.git(&["push", "--quiet", "origin", &there])?;
        }
        Ok(())
    }

    /// Runs the hydrator, as CI does after each push.
    pub(super) fn hydrate(&self) -> Result<()> {
        let mut command = Command::new("bash");
        command.arg(cargo::root().join(HYDRATOR)).args(ENVIRONMENTS);
        command.env("RENDER", format!("{} kustomize", self.kubectl.display()));
        self.run(command).map(drop)
    }

    fn git(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new("git");
        command.args(arguments);
        self.run(command)
    }

    /// Runs a program in the clone, as a user of the forge. Returns what it says.
    fn run(&self, mut command: Command) -> Result<String> {
        command.current_dir(self.folder.path()).stdin(Stdio::null());
        // What this user has configured is of no concern, and the certificate is that of a test.
        command
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_SSL_NO_VERIFY", "true")
            .env("GIT_CONFIG_COUNT", "1")
            .env("GIT_CONFIG_KEY_0", "credential.helper")
            .env(
                "GIT_CONFIG_VALUE_0",
                format!("!echo 'password={PASSWORD}'; :"),
            );
        for who in ["AUTHOR", "COMMITTER"] {
            command
                .env(format!("GIT_{who}_NAME"), OWNER)
                .env(format!("GIT_{who}_EMAIL"), "boss@example.com");
        }
        let output = command.output().context("cannot run git")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{command:?} failed: {said}");
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    fn write(&self, path: &str, text: &str) -> Result<()> {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().context("it has no folder")?)?;
        fs::write(path, text)?;
        Ok(())
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }
}
