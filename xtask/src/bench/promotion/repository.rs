//! What hydrators have pushed: commits in a clone, from which any number of branches is pushed at once.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use sluice_tests::Workspace;
use sluice_tests::gitea::{BRANCH, Bot};

use super::crowd::ENVIRONMENTS;

/// A clone, for somebody who may write.
pub(super) struct Repository {
    folder: Workspace,
    bot: Bot,
    authority: PathBuf,
}

/// A dry commit, with what was made of it.
#[derive(Clone)]
pub(super) struct Hydration {
    pub(super) dry: String,
    pub(super) hydrated: String,
}

impl Repository {
    /// One without any commit.
    pub(super) fn create(bot: Bot, authority: &str) -> Result<Self> {
        let folder = Workspace::create()?;
        let pem = folder.path().join("ca.crt");
        fs::write(&pem, authority)?;
        let repository = Self {
            folder,
            bot,
            authority: pem,
        };
        repository.git(&["init", "--quiet", "--initial-branch", BRANCH])?;
        Ok(repository)
    }

    /// Commits a version, and what a hydrator makes of it on top of what it made last.
    pub(super) fn hydrate(&self, version: usize, last: Option<&Hydration>) -> Result<Hydration> {
        let commit = |files: &[(&str, String)], parent: Option<&str>| {
            let mut tree = String::new();
            for (name, text) in files {
                let path = self.folder.path().join("blob");
                fs::write(&path, text)?;
                let blob = self.git(&["hash-object", "-w", &path.to_string_lossy()])?;
                tree.push_str(&format!("100644 blob {blob}\t{name}\n"));
            }
            let list = self.folder.path().join("tree");
            fs::write(&list, tree)?;
            let tree = self.run(
                Command::new("git")
                    .arg("mktree")
                    .stdin(fs::File::open(list)?),
            )?;
            let message = format!("Version {version}");
            let mut arguments = vec!["commit-tree", "-m", &message, &tree];
            arguments.extend(parent.iter().flat_map(|parent| ["-p", parent]));
            self.git(&arguments)
        };
        let shop = format!("version: {version}\n");
        let dry = commit(&[("shop.yaml", shop.clone())], last.map(|it| &*it.dry))?;
        let metadata = format!("{{\"drySha\": \"{dry}\"}}\n");
        let files = [("hydrator.metadata", metadata), ("manifests.yaml", shop)];
        let hydrated = commit(&files, last.map(|it| &*it.hydrated))?;
        Ok(Hydration { dry, hydrated })
    }

    /// Pushes the dry branch, and with what the environments of these strategies begin.
    pub(super) fn begin(
        &self,
        url: &str,
        hydration: &Hydration,
        strategies: &[String],
    ) -> Result<()> {
        let branches = strategies
            .iter()
            .flat_map(|strategy| ENVIRONMENTS.map(|environment| branch(strategy, environment)));
        self.push(
            url,
            hydration,
            branches.flat_map(|it| [format!("{it}-next"), it]),
        )
    }

    /// Pushes the dry branch, and what is proposed for an environment of these strategies: a hydrator writes the
    /// others later.
    pub(super) fn propose(
        &self,
        url: &str,
        hydration: &Hydration,
        environment: &str,
        strategies: &[String],
    ) -> Result<()> {
        let branches = strategies
            .iter()
            .map(|strategy| branch(strategy, environment));
        self.push(url, hydration, branches.map(|it| format!("{it}-next")))
    }

    fn push(
        &self,
        url: &str,
        hydration: &Hydration,
        branches: impl Iterator<Item = String>,
    ) -> Result<()> {
        let Hydration { dry, hydrated } = hydration;
        let mut refs = vec![format!("{dry}:refs/heads/{BRANCH}")];
        refs.extend(branches.map(|branch| format!("{hydrated}:refs/heads/{branch}")));
        let (name, token) = (&self.bot.name, &self.bot.token);
        let address = url.strip_prefix("https://").context("it is not https")?;
        let to = format!("https://{name}:{token}@{address}");
        // Many are given as a file would be: a command line has an end.
        for part in refs.chunks(500) {
            let mut arguments = vec!["push", "--quiet", "--force", &to];
            arguments.extend(part.iter().map(String::as_str));
            self.git(&arguments)?;
        }
        Ok(())
    }

    fn git(&self, arguments: &[&str]) -> Result<String> {
        self.run(Command::new("git").args(arguments))
    }

    fn run(&self, command: &mut Command) -> Result<String> {
        command
            .current_dir(self.folder.path())
            .env("GIT_SSL_CAINFO", &self.authority)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_TERMINAL_PROMPT", "0");
        for who in ["AUTHOR", "COMMITTER"] {
            command
                .env(format!("GIT_{who}_NAME"), "bot")
                .env(format!("GIT_{who}_EMAIL"), "bot@example.com");
        }
        let output = command.output().context("cannot start git")?;
        // Its arguments have the token.
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "git failed: {said}");
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }
}

/// The branch of an environment of a strategy.
pub(super) fn branch(strategy: &str, environment: &str) -> String {
    format!("{strategy}/{environment}")
}
