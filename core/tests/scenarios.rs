//! Scenarios: the YAML that a user writes, what is asked of it, and the answers.
//!
//! Each file of `scenarios/` tells one story: the objects, and in its last document the instants
//! that are asked about (`ask`) and a stretch of time whose changes are listed (`changes`). The
//! answers stand right there; `next` is the next real change of the gate, if one is known.
//! `BLESS=1 cargo test -p sluice-core --test scenarios` writes them anew: read them before they
//! are committed.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail loudly"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use sluice_core::Now;
use sluice_core::gate::Identity;
use sluice_core::offline::simulate::{Key, Scene, World};
use sluice_core::time::span::Span;

/// The last document of a scenario, its answers apart.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Questions {
    /// Whether somebody makes sure who annotates.
    #[serde(default = "yes")]
    verified: bool,
    ask: Vec<Ask>,
    changes: Option<Changes>,
}

fn yes() -> bool {
    true
}

#[derive(Deserialize)]
struct Ask {
    at: Timestamp,
    /// The gate, where there are several.
    gate: Option<String>,
}

#[derive(Deserialize)]
struct Changes {
    from: Timestamp,
    to: Timestamp,
    gate: Option<String>,
}

struct Scenario {
    world: World,
    questions: Questions,
    /// Everything before the last document.
    objects: String,
    /// The last document.
    asked: String,
}

impl Scenario {
    fn read(text: &str) -> Self {
        let (objects, asked) = text.rsplit_once("\n---\n").expect("several documents");
        let mut world = World::default();
        for document in objects.split("\n---\n") {
            add(&mut world, serde_saphyr::from_str(document).unwrap());
        }
        Self {
            world,
            questions: serde_saphyr::from_str(asked).unwrap(),
            objects: objects.to_owned(),
            asked: asked.to_owned(),
        }
    }

    /// The gate of that name, or the only one, seen first at the first instant of the story.
    fn scene(&self, gate: Option<&String>) -> Scene {
        let named = |key: &&&Key| gate.is_none_or(|gate| *gate == key.name);
        let names = self.world.gate_names();
        let mut found = names.iter().filter(named);
        let (Some(key), None) = (found.next(), found.next()) else {
            panic!("say which gate: {names:?}");
        };
        let Questions {
            verified,
            ask,
            changes,
        } = &self.questions;
        let identity = if *verified {
            Identity::Verified
        } else {
            Identity::Unverified
        };
        let instants = ask.iter().map(|ask| ask.at);
        let first = instants
            .chain(changes.iter().map(|changes| changes.from))
            .min();
        Scene::new(&self.world, key, identity, first.unwrap()).unwrap()
    }

    /// The same text with the answers that are right.
    fn answered(&self) -> String {
        let mut text = format!("{}\n---\n", self.objects);
        let mut asks = self.questions.ask.iter();
        let mut lines = self.asked.lines().peekable();
        while let Some(line) = lines.next() {
            let answer = ["state:", "reason:", "message:", "next:"];
            if answer.iter().any(|key| line.trim_start().starts_with(key)) {
                continue;
            }
            text += &format!("{line}\n");
            if line.starts_with("  - at: ") {
                while let Some(gate) = lines.next_if(|line| line.starts_with("    gate: ")) {
                    text += &format!("{gate}\n");
                }
                text += &self.answer(asks.next().unwrap());
            } else if line == "  expect:" {
                while lines.next_if(|line| line.starts_with("    - ")).is_some() {}
                text += &self.list();
            }
        }
        text
    }

    fn answer(&self, ask: &Ask) -> String {
        let decision = self.scene(ask.gate.as_ref()).decide(Now::given(ask.at));
        let message = serde_json::to_string(&decision.message).unwrap();
        let next = decision.upcoming.first();
        let next = next.map(|next| format!("    next: {} {}\n", next.at.0, next.state));
        format!(
            "    state: {}\n    reason: {}\n    message: {message}\n{}",
            decision.state,
            decision.reason,
            next.unwrap_or_default(),
        )
    }

    fn list(&self) -> String {
        let Changes { from, to, gate } = self.questions.changes.as_ref().unwrap();
        let span = Span {
            start: *from,
            end: *to,
        };
        let stretches = self.scene(gate.as_ref()).stretches(span);
        assert_eq!(stretches.cut_off, None);
        let line = |stretch: &sluice_core::offline::simulate::Stretch| {
            format!("    - {} {}\n", stretch.span.start, stretch.answer.state)
        };
        stretches.changes().map(line).collect()
    }
}

fn add(world: &mut World, object: Value) {
    fn read<T: serde::de::DeserializeOwned>(object: Value) -> T {
        serde_json::from_value(object).unwrap()
    }
    match object["kind"].as_str().unwrap() {
        "Gate" => {
            let gate: sluice_crds::Gate = read(object);
            world.gates.insert(Key::of(&gate.metadata), gate);
        }
        "Gatekeeper" => {
            let gatekeeper: sluice_crds::Gatekeeper = read(object);
            world
                .gatekeepers
                .insert(Key::of(&gatekeeper.metadata), Arc::new(gatekeeper));
        }
        "ConfigMap" => {
            let map: k8s_openapi::api::core::v1::ConfigMap = read(object);
            world.config_maps.insert(Key::of(&map.metadata), Some(map));
        }
        other => panic!("a scenario has no {other}"),
    }
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios")
}

fn paths() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory()).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

#[test]
fn every_scenario_ends_as_it_says() {
    let bless = std::env::var_os("BLESS").is_some();
    let mut differences = Vec::new();
    for path in paths() {
        let text = std::fs::read_to_string(&path).unwrap();
        let answered = Scenario::read(&text).answered();
        if bless {
            std::fs::write(&path, answered).unwrap();
        } else {
            differences.extend(difference(&path, &text, &answered));
        }
    }
    assert!(differences.is_empty(), "\n{}", differences.join("\n"));
}

/// Where a file first says anything else than what is right.
fn difference(path: &Path, says: &str, right: &str) -> Option<String> {
    let (mut says, mut right) = (says.lines(), right.lines());
    let name = path.file_name().unwrap().display();
    for line in 1.. {
        let (said, is) = (says.next(), right.next());
        if said != is {
            let (said, is) = (said.unwrap_or("the end"), is.unwrap_or("the end"));
            return Some(format!(
                "scenarios/{name}:{line}\n  says {said}\n  is   {is}"
            ));
        }
        said?;
    }
    None
}

/// What a user would be told of each file before it is applied.
#[test]
fn scenarios_tell_a_story_and_ask_something() {
    let paths = paths();
    assert!(paths.len() >= 20, "{} scenarios", paths.len());
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("# "), "{} has no story", path.display());
        assert!(
            !Scenario::read(&text).questions.ask.is_empty(),
            "{}",
            path.display()
        );
    }
}
