//! A repository of many files, as one has it in which many apps are described: what is in it, and what peers
//! do with it, who clone it for each change.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use sluice_tests::Workspace;
use sluice_tests::gitea::BRANCH;
use tokio::task::spawn_blocking;

use super::super::super::seen::LAST;
use super::super::NAMESPACE;
use super::super::crowd::FIRST;
use super::{PIPELINES, name};

/// How many files there are.
pub(super) const FILES: usize = 5_000;
/// How many files are in a folder.
const IN_A_FOLDER: usize = 100;
/// How many settings are in a file, which makes it some 2 KiB.
const SETTINGS: usize = 60;
/// What settings are called and say, each with a number.
const WORDS: [&str; 16] = [
    "replicas", "image", "memory", "port", "timeout", "storage", "class", "secret", "domain",
    "path", "level", "region", "limit", "retries", "window", "queue",
];

/// The repository, for somebody who may write to it.
#[derive(Clone)]
pub(super) struct Repository {
    /// With the token.
    url: String,
    /// Who its server is trusted by.
    authority: PathBuf,
    folder: std::sync::Arc<Workspace>,
}

impl Repository {
    /// Puts all files in.
    pub(super) async fn fill(url: &str, user: (&str, &str), authority: &str) -> Result<Self> {
        let (name, token) = user;
        let address = url.strip_prefix("https://").context("it is not https")?;
        let folder = Workspace::create()?;
        let pem = folder.path().join("ca.crt");
        fs::write(&pem, authority)?;
        let repository = Self {
            url: format!("https://{name}:{token}@{address}.git"),
            authority: pem,
            folder: folder.into(),
        };
        let filled = repository.clone();
        spawn_blocking(move || filled.push_all()).await??;
        Ok(repository)
    }

    fn push_all(&self) -> Result<()> {
        let folder = self.folder.path().join("first");
        for place in 0..FILES {
            let path = folder.join(path(place));
            let parent = path.parent().context("it has no folder")?;
            fs::create_dir_all(parent)?;
            fs::write(path, text(place))?;
        }
        self.git(&folder, &["init", "--quiet", "--initial-branch", BRANCH])?;
        self.git(&folder, &["add", "."])?;
        self.git(&folder, &["commit", "--quiet", "--message", "All apps"])?;
        let to = format!("HEAD:{BRANCH}");
        self.git(&folder, &["push", "--quiet", "--force", &self.url, &to])
    }

    /// What peers do: clone it, change a file, and push that to a new branch.
    pub(super) async fn clone_and_push(
        &self,
        branch: &str,
        place: usize,
        revision: &str,
    ) -> Result<()> {
        let repository = self.clone();
        let (branch, revision) = (branch.to_owned(), revision.to_owned());
        spawn_blocking(move || repository.push_one(&branch, place, &revision)).await?
    }

    fn push_one(&self, branch: &str, place: usize, revision: &str) -> Result<()> {
        let folder = self.folder.path().join("clone");
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        let into = folder.to_string_lossy();
        let clone = ["clone", "--quiet", "--depth", "1", &self.url, &into];
        self.git(self.folder.path(), &clone)?;
        let path = folder.join(path(place));
        fs::write(&path, edited(&fs::read_to_string(&path)?, revision))?;
        self.git(
            &folder,
            &["commit", "--quiet", "--all", "--message", branch],
        )?;
        let to = format!("HEAD:refs/heads/{branch}");
        self.git(&folder, &["push", "--quiet", "origin", &to])
    }

    fn git(&self, folder: &Path, arguments: &[&str]) -> Result<()> {
        let mut command = Command::new("git");
        command
            .current_dir(folder)
            .args(["-c", "user.name=bot", "-c", "user.email=bot@example.com"])
            .args(arguments)
            .env("GIT_SSL_CAINFO", &self.authority)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_TERMINAL_PROMPT", "0");
        let output = command.output().context("cannot start git")?;
        // Its arguments have the token.
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "git {}: {said}",
            arguments.first().unwrap_or(&"")
        );
        Ok(())
    }
}

/// Where a file is.
pub(super) fn path(place: usize) -> String {
    format!("apps/{:02}/app-{place:04}.yaml", place / IN_A_FOLDER)
}

/// A file with another revision, as peers change it: its first line says it.
pub(super) fn edited(text: &str, revision: &str) -> String {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let mut parts = first.splitn(3, '"');
    let (key, _, end) = (parts.next(), parts.next(), parts.next());
    format!(
        "{}\"{revision}\"{}\n{rest}",
        key.unwrap_or_default(),
        end.unwrap_or_default()
    )
}

/// The revision of an app, with the mark of its pipeline, and settings that differ from file to file.
fn text(place: usize) -> String {
    let mut text = format!("version: \"{FIRST}\"");
    if place < PIPELINES {
        let mark = format!("{NAMESPACE}:{}:{LAST}", name(place));
        // Writing to a string cannot fail.
        let _ = write!(text, " # {{\"$promotion\": \"{mark}\"}}");
    }
    text.push_str("\nsettings:\n");
    let mut seed = place as u64 + 1;
    for setting in 0..SETTINGS {
        // As good as random, and the same in each run.
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let word = |of: u64| WORDS[usize::from(of.to_le_bytes()[0]) % WORDS.len()];
        let (key, value, number) = (word(seed >> 56), word(seed >> 48), seed >> 40 & 0xffff);
        let _ = writeln!(text, "  {key}-{setting:02}: \"{value}-{number:04x}\"");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_edited_as_peers_edit_it() {
        let text = text(7);
        assert!((1_500..2_500).contains(&text.len()), "{}", text.len());
        let now = edited(&text, "2.0.0");
        assert_eq!(now, text.replacen("1.0.0", "2.0.0", 1));
        assert!(now.starts_with("version: \"2.0.0\" # {\"$promotion\": "));
    }
}
