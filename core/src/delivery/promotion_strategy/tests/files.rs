//! Scenarios: the YAML that a user writes, what happens then, and what becomes of each environment.
//!
//! Each file of `core/tests/promotions` tells one story: the strategy and what it names, and in its last
//! document the steps. What everybody can see after a step stands right there.
//! `BLESS=1 cargo test -p sluice-core promotion_strategy` writes that again: read it before you commit it.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use sluice_crds::promotion_strategy::marks;

use super::reverts::revert;
use super::*;

/// What happens, and what comes of it (`then`, which is not read).
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    /// None: at once.
    at: Option<Timestamp>,
    #[serde(rename = "do", default)]
    acts: Vec<String>,
    #[serde(rename = "then", default)]
    _then: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct Last {
    story: Vec<Step>,
}

struct Story {
    play: Play,
    /// What dry commits are called.
    names: BTreeMap<String, String>,
}

fn read<T: DeserializeOwned>(document: &Value) -> T {
    serde_json::from_value(document.clone()).unwrap()
}

impl Story {
    fn of(documents: &str) -> Self {
        let documents = documents.split("\n---\n");
        let mut parsed = documents.map(|it| serde_saphyr::from_str::<Value>(it).unwrap());
        let mut play = Play::with(&parsed.next().unwrap()["spec"]);
        play.open.clear();
        for document in parsed {
            let world = &mut play.world;
            match document["kind"].as_str().unwrap() {
                "Gate" => {
                    let gate: Gate = read(&document);
                    world.gates.insert(Key::of(&gate.metadata), gate);
                }
                "Gatekeeper" => {
                    let one: sluice_crds::Gatekeeper = read(&document);
                    world
                        .gatekeepers
                        .insert(Key::of(&one.metadata), Arc::new(one));
                }
                "GatePolicy" => {
                    let policy: sluice_crds::GatePolicy = read(&document);
                    let name = policy.metadata.name.clone().unwrap();
                    world.policies.insert(name, Ok(Arc::new(policy)));
                }
                other => panic!("a scenario has no {other}"),
            }
        }
        let names = BTreeMap::from([(play.repository.head("main"), "v1".to_owned())]);
        Self { play, names }
    }

    fn sha(&self, name: &str) -> &str {
        let found = self.names.iter().find(|(_, it)| *it == name);
        found.unwrap_or_else(|| panic!("no commit {name}")).0
    }

    /// What people, hydrators and those who check do.
    fn act(&mut self, act: &str) {
        let words: Vec<_> = act.split(' ').collect();
        let play = &mut self.play;
        match words.as_slice() {
            ["hydrate", name, "for", changed @ ..] => {
                let sha = play.hydrate_some(name, &changed.join(" "));
                self.names.insert(sha, (*name).to_owned());
            }
            ["check", branch, key, phase] => play.check(branch, key, phase),
            ["push", files, "to", branch] => {
                let dry = play.at(branch).unwrap().to_owned();
                play.repository.push(branch, &dry, files);
            }
            ["accept", branch] => {
                let accepts = format!("{branch}={}", play.repository.head(branch));
                play.object.metadata.annotations =
                    Some([(marks::ACCEPT.to_owned(), accepts)].into());
            }
            ["merge", branch] => play.merge_by_person(branch),
            ["revert", branch, "to", name] => {
                let to = self.sha(name).to_owned();
                let mut one = revert(&self.play, "back", &to);
                one.spec.from = self.play.repository.head(branch);
                self.play.reverts.push(one);
            }
            ["fixed", "by", name] => {
                let fix = self.sha(name).to_owned();
                self.play.reverts[0].spec.fixed_by = Some(fix);
            }
            ["rename", from, "to", to] => {
                let branches = play.branches();
                let place = branches.iter().position(|it| it == from).unwrap();
                play.repository.branch(to, from);
                play.repository
                    .branch(&format!("{to}-next"), &format!("{from}-next"));
                play.spec(|spec| spec["environments"][place]["branch"] = json!(to));
            }
            _ => panic!("nobody can do `{act}`"),
        }
    }

    /// What everybody can see.
    fn told(&mut self) -> String {
        let mut told = String::new();
        let done = std::mem::take(&mut self.play.events).join(", ");
        if !done.is_empty() {
            told += &format!("      forge: {done}\n");
        }
        for branch in self.play.branches() {
            let environment = self.play.environment(&branch);
            let has = environment.active.as_ref();
            let dry = has
                .and_then(|it| it.dry_sha.as_ref())
                .map(|it| self.names[it].as_str());
            let by = has
                .and_then(|it| it.arrived_by)
                .map(|by| format!(" ({by:?})"));
            let state = environment.state.as_str();
            let mut line = format!(
                "{} {state}",
                dry.unwrap_or("nothing").to_owned() + &by.unwrap_or_default()
            );
            if let (Some(reason), Some(message)) = (&environment.reason, &environment.message) {
                line += &format!(", {reason}: {message}");
            }
            let line = serde_json::to_string(&self.named(line)).unwrap();
            told += &format!("      {branch}: {line}\n");
        }
        told
    }

    /// Commits by their names, or by the branches that have them.
    fn named(&self, mut text: String) -> String {
        for (sha, name) in &self.names {
            text = text.replace(sha, name).replace(&sha[..12], name);
        }
        for branch in self.play.branches() {
            for branch in [format!("{branch}-next"), branch] {
                let sha = self.play.repository.head(&branch);
                let of = format!("<{branch}>");
                text = text.replace(&sha, &of).replace(&sha[..12], &of);
            }
        }
        text
    }
}

/// The same text with what is right.
fn answered(text: &str) -> String {
    let (objects, story) = text.rsplit_once("\n---\n").expect("several documents");
    let mut steps = serde_saphyr::from_str::<Last>(story)
        .unwrap()
        .story
        .into_iter();
    let mut story_of = Story::of(objects);
    let mut right = format!("{objects}\n---\n");
    let mut lines = story.lines().peekable();
    while let Some(line) = lines.next() {
        right += &format!("{line}\n");
        if line != "    then:" {
            continue;
        }
        while lines.next_if(|line| line.starts_with("      ")).is_some() {}
        let step = steps.next().unwrap();
        story_of.play.now = step.at.unwrap_or(story_of.play.now);
        for act in step.acts {
            story_of.act(&act);
        }
        story_of.play.settle();
        right += &story_of.told();
    }
    assert_eq!(steps.count(), 0, "each step has its `then`");
    right
}

fn scenarios() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/promotions");
    let mut all: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|it| it.unwrap().path())
        .collect();
    all.sort();
    all
}

#[test]
fn every_scenario_ends_as_it_says() {
    let (mut differences, all) = (Vec::new(), scenarios());
    assert!(all.len() >= 5, "{} scenarios", all.len());
    for path in all {
        let says = std::fs::read_to_string(&path).unwrap();
        assert!(says.starts_with("# "), "{} has no story", path.display());
        let right = answered(&says);
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&path, &right).unwrap();
        } else if let Some((says, is)) = says
            .lines()
            .zip(right.lines())
            .find(|(says, is)| says != is)
        {
            differences.push(format!("{}\n  says {says}\n  is   {is}", path.display()));
        } else {
            assert_eq!(says, right);
        }
    }
    assert!(differences.is_empty(), "\n{}", differences.join("\n"));
}
