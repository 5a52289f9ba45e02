//! A guide of the docs, typed at a shell.
//!
//! What comes in: the page, and what its made-up names stand for. What goes out: its commands run with
//! a real kubectl beside copies of the examples, and what they answer is what the page says they do.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use kube::config::{Context as KubeContext, Kubeconfig, NamedAuthInfo, NamedCluster, NamedContext};
use sluice_tests::cluster::Cluster;
use sluice_tests::programs::Program;
use sluice_tests::progress::Stderr;
use sluice_tests::{kubectl, poll};
use tempfile::TempDir;

use crate::stage::DEADLINE;

/// A page, and the folder that its commands are typed in.
pub struct Guide {
    text: String,
    home: TempDir,
    kubeconfig: PathBuf,
    /// The folders of kubectl and of its plugin.
    programs: [PathBuf; 2],
    /// What the page says, and what that is here.
    words: Vec<(String, String)>,
}

/// A command, and what the page says that it answers: nothing, where it does not matter.
struct Step {
    command: String,
    answer: Vec<String>,
}

impl Guide {
    /// A page, typed by an admin of a cluster.
    pub fn of(cluster: &Cluster, text: &str) -> Result<Self> {
        let programs = [
            kubectl::ensure(&Stderr::new())?,
            Program::KubectlGate.path()?,
        ];
        Ok(Self {
            text: text.to_owned(),
            home: tempfile::tempdir()?,
            kubeconfig: cluster.kubeconfig().to_owned(),
            programs: programs.map(|it| it.parent().unwrap_or(Path::new("/")).to_owned()),
            words: Vec::new(),
        })
    }

    /// A page about several clusters, typed by somebody who is an admin of all of them. Each has a name, by
    /// which the page knows its context.
    pub fn between(clusters: &[(&str, &Cluster)], text: &str) -> Result<Self> {
        let (_, first) = clusters.first().context("no cluster")?;
        let mut guide = Self::of(first, text)?;
        let contexts = contexts(clusters)?;
        // Where kubectl looks by itself: the page may set KUBECONFIG, and unset it again.
        guide.write(".kube/config", &serde_json::to_string(&contexts)?)?;
        guide.kubeconfig = guide.home.path().join(".kube/config");
        Ok(guide)
    }

    /// What a word of the page, or of the examples, is here.
    pub fn says(&mut self, word: &str, here: &str) {
        self.words.push((word.to_owned(), here.to_owned()));
    }

    /// What a commit of the page is here, in full and as tables show it.
    pub fn commit(&mut self, word: &str, here: &str) {
        self.says(word, here);
        self.says(&word[..12], &here[..12]);
    }

    /// A file of the tree as it is here.
    pub fn file(&self, path: &str) -> Result<String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let text = std::fs::read_to_string(root.join(path)).with_context(|| path.to_owned())?;
        Ok(self.here(&text))
    }

    /// Writes a file beside the examples.
    pub fn write(&self, path: &str, text: &str) -> Result<()> {
        let file = self.home.path().join(path);
        std::fs::create_dir_all(file.parent().context("no folder")?)?;
        Ok(std::fs::write(file, text)?)
    }

    /// The block in this language that is so many blocks below a heading.
    pub fn block(&self, heading: &str, language: &str, place: usize) -> Result<String> {
        let section = self.section(heading)?;
        let mut blocks = blocks(&section, language);
        let missing = || format!("no block {place} in {language} below {heading}");
        let block = blocks.nth(place).with_context(missing)?;
        Ok(self.here(block))
    }

    /// Types what is below a heading, and waits until each command answers as the page says. One
    /// without an answer has to succeed.
    pub async fn run(&self, heading: &str) -> Result<()> {
        let section = self.section(heading)?;
        let steps: Vec<Step> = blocks(&section, "console").flat_map(steps).collect();
        ensure!(
            !steps.is_empty(),
            "there is nothing to type below {heading}"
        );
        for step in steps {
            let command = self.here(&step.command);
            if step.answer.is_empty() {
                self.sh(&command).await?;
                continue;
            }
            let expected: Vec<String> = step.answer.iter().map(|line| self.here(line)).collect();
            poll(DEADLINE, &command, async || {
                let (_, said) = self.answer(&command).await?;
                ensure!(reads_like(&said, &expected), "it says\n{said}");
                Ok::<_, anyhow::Error>(())
            })
            .await?;
        }
        Ok(())
    }

    /// Types a command, which has to succeed.
    pub async fn sh(&self, command: &str) -> Result<()> {
        let (succeeds, said) = self.answer(command).await?;
        ensure!(succeeds, "{command}: {said}");
        Ok(())
    }

    /// Types a command. Returns whether it succeeds, and what it says: its errors, where it says
    /// nothing else.
    async fn answer(&self, command: &str) -> Result<(bool, String)> {
        for file in examples(command) {
            self.write(file, &self.file(file)?)?;
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = self.programs.iter().cloned();
        let folders = folders.chain(std::env::split_paths(&path));
        let mut shell = Command::new("sh");
        shell
            .args(["-c", command])
            .current_dir(self.home.path())
            .env("PATH", std::env::join_paths(folders)?)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("HOME", self.home.path());
        let Output {
            status,
            stdout,
            stderr,
        } = tokio::task::spawn_blocking(move || shell.output()).await??;
        let said = if stdout.is_empty() { stderr } else { stdout };
        Ok((status.success(), String::from_utf8(said)?))
    }

    /// What is below a heading, to the next one.
    fn section(&self, heading: &str) -> Result<String> {
        let is_heading = |line: &&str| line.trim_start_matches('#').trim() == heading;
        let mut lines = self.text.lines().skip_while(|line| !is_heading(line));
        lines
            .next()
            .with_context(|| format!("no heading {heading}"))?;
        let mut fenced = false;
        let below = lines.take_while(|line| {
            fenced ^= line.starts_with("```");
            fenced || !line.starts_with('#')
        });
        Ok(below.collect::<Vec<_>>().join("\n"))
    }

    fn here(&self, text: &str) -> String {
        let words = self.words.iter();
        words.fold(text.to_owned(), |text, (word, here)| {
            text.replace(word, here)
        })
    }
}

/// A kubeconfig with a context for each cluster, under its name. The first is the current one.
fn contexts(clusters: &[(&str, &Cluster)]) -> Result<Kubeconfig> {
    let mut all = Kubeconfig::default();
    for (name, cluster) in clusters {
        let Kubeconfig {
            clusters,
            auth_infos,
            contexts,
            ..
        } = Kubeconfig::read_from(cluster.kubeconfig())?;
        let named = (*name).to_owned();
        let cluster = clusters.into_iter().next().context("no cluster")?;
        let user = auth_infos.into_iter().next().context("no user")?;
        let NamedContext { context, other, .. } =
            contexts.into_iter().next().context("no context")?;
        all.clusters.push(NamedCluster {
            name: named.clone(),
            ..cluster
        });
        all.auth_infos.push(NamedAuthInfo {
            name: named.clone(),
            ..user
        });
        let context = context.map(|context| KubeContext {
            cluster: named.clone(),
            user: Some(named.clone()),
            ..context
        });
        all.contexts.push(NamedContext {
            name: named.clone(),
            context,
            other,
        });
        all.current_context.get_or_insert(named);
    }
    Ok(all)
}

/// The fenced blocks in a language.
fn blocks<'t>(text: &'t str, language: &str) -> impl Iterator<Item = &'t str> {
    let fence = format!("```{language}\n");
    let starts: Vec<usize> = text.match_indices(&fence).map(|(at, _)| at).collect();
    starts.into_iter().map(move |at| {
        let block = &text[at + fence.len()..];
        block.split("```").next().unwrap_or(block)
    })
}

/// The commands of a block: the lines after a `$`, and what comes below each.
fn steps(block: &str) -> Vec<Step> {
    let parts = block.split("$ kubectl ").skip(1);
    let steps = parts.map(|part| {
        let (command, answer) = part.split_once('\n').unwrap_or((part, ""));
        let answer = answer.lines().filter(|line| !line.trim().is_empty());
        Step {
            command: format!("kubectl {command}"),
            answer: answer.map(str::to_owned).collect(),
        }
    });
    steps.collect()
}

/// The examples that a command names.
fn examples(command: &str) -> impl Iterator<Item = &str> {
    command
        .split_whitespace()
        .filter(|word| word.starts_with("examples/"))
}

/// Whether an answer is what the page says: word by word, but for ages, and for what comes after `…`.
fn reads_like(said: &str, expected: &[String]) -> bool {
    let said: Vec<&str> = said
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    said.len() == expected.len()
        && said.iter().zip(expected).all(|(line, expected)| {
            if let Some(start) = expected.strip_suffix('…') {
                return line.starts_with(start);
            }
            let words = line.split_whitespace().map(unless_age);
            words.eq(expected.split_whitespace().map(unless_age))
        })
}

/// A word, or what stands for every age.
fn unless_age(word: &str) -> &str {
    let is_age = word.ends_with(['s', 'm', 'h', 'd'])
        && word.starts_with(|first: char| first.is_ascii_digit())
        && word
            .chars()
            .all(|char| char.is_ascii_digit() || "smhd".contains(char));
    if is_age { "AGE" } else { word }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_reads_as_the_page_says() {
        let page = ["NAME  READY  AGE", "app   True   41d"].map(str::to_owned);
        assert!(reads_like(
            "NAME   READY   AGE\napp    True    3m20s\n",
            &page
        ));
        assert!(!reads_like(
            "NAME   READY   AGE\napp    False   41d\n",
            &page
        ));
        assert!(!reads_like("NAME   READY   AGE\n", &page));
        assert!(reads_like("missing-2026", &["missing-…".to_owned()]));
    }

    #[test]
    fn commands_and_answers_are_told_apart() {
        let steps = steps("$ kubectl get a\nA\nB\n\n$ kubectl delete a\n");
        let told: Vec<_> = steps
            .iter()
            .map(|step| (step.command.as_str(), step.answer.len()))
            .collect();
        assert_eq!(told, [("kubectl get a", 2), ("kubectl delete a", 0)]);
    }
}
