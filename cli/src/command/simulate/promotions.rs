//! `kubectl gate simulate --pipeline`: what would be promoted, when, and by which gates.

use anyhow::{Context, Result, bail};
use jiff::Timestamp;
use serde::Serialize;
use sluice_core::delivery::pipeline::{EnvironmentView, View};
use sluice_core::gate::Identity;
use sluice_core::offline::simulate::{Course, Key, Scene, Step, World, course};
use sluice_core::revision::short;
use sluice_core::time::span::Span;
use sluice_crds::Decision;
use sluice_crds::pipeline::EnvironmentState;

use crate::cluster::key_of;
use crate::files;
use crate::instant::Zone;
use crate::outcome::Outcome;
use crate::output::{self, Data};

/// What is simulated.
pub(super) struct Asked<'a> {
    pub(super) world: &'a World,
    pub(super) name: &'a str,
    pub(super) namespace: Option<&'a str>,
    pub(super) span: Span,
    pub(super) identity: Identity,
    /// None: the one in which the windows of its gates are written.
    pub(super) zone: Option<Zone>,
}

/// A promotion, for programs.
#[derive(Serialize)]
struct Told<'a> {
    at: Timestamp,
    action: &'static str,
    environment: &'a str,
    revision: &'a str,
    decision: &'a Decision,
}

impl Asked<'_> {
    pub(super) fn run(self, form: Option<Data>) -> Result<Outcome> {
        let pipelines: Vec<&Key> = self.world.pipelines.keys().collect();
        let key = files::chosen(&pipelines, Some(self.name), self.namespace, "pipeline")?;
        let found = course(self.world, &key, self.identity, self.span);
        let found = found.with_context(|| format!("there is no pipeline {key}"))?;
        let found = match found {
            Ok(found) => found,
            Err(refusals) => bail!("the pipeline {key} is refused: {refusals}"),
        };
        match form {
            Some(form) => {
                let steps: Vec<Told<'_>> = found.steps.iter().map(told).collect();
                let all = serde_json::json!({"promotions": steps, "end": found.end});
                output::data(form, &all)?;
            }
            None => {
                let own = || self.shared(&found);
                let zone = self.zone.clone().unwrap_or_else(own);
                output::text(text(&key, &found, &zone))?;
            }
        }
        match found.cut_off {
            None => Ok(Outcome::Yes),
            Some(at) => {
                bail!("it changes too often to be told beyond {at}; choose an earlier --to")
            }
        }
    }

    /// The zone in which the windows of the gates of its environments are written.
    fn shared(&self, course: &Course) -> Zone {
        let named = course.end.environments.iter().flat_map(|it| &it.gates);
        let keys = named.filter_map(|gate| key_of(gate));
        let scenes: Vec<Scene> = keys
            .filter_map(|key| Scene::new(self.world, &key, self.identity, self.span.start))
            .collect();
        Zone::shared(scenes.iter().flat_map(Scene::time_zones))
    }
}

fn told(step: &Step) -> Told<'_> {
    Told {
        at: step.at,
        action: step.what.as_str(),
        environment: &step.environment,
        revision: &step.revision,
        decision: &step.decision,
    }
}

/// Each promotion in a line, and what is waited for at the end.
fn text(key: &Key, course: &Course, zone: &Zone) -> String {
    let mut text = format!(
        "Pipeline {key}, times in {}. Pull requests are merged, and apps run what is promoted, at once.\n",
        zone.name
    );
    let rows: Vec<Vec<String>> = course.steps.iter().map(|step| row(step, zone)).collect();
    text += &output::table(&rows);
    if course.steps.is_empty() {
        text += "nothing is promoted\n";
    }
    let waiting: Vec<&EnvironmentView> = course.end.environments.iter().filter(waits).collect();
    for environment in &waiting {
        let until = environment.until.as_ref();
        let until = until.map(|at| format!("; the answer may change {}", zone.text(at.0)));
        let until = until.unwrap_or_default();
        text += &format!("{}: {}{until}\n", environment.name, environment.message);
    }
    if waiting.is_empty() {
        text += &format!("{}\n", complete(&course.end));
    }
    text
}

fn row(step: &Step, zone: &Zone) -> Vec<String> {
    let Step {
        at,
        environment,
        revision,
        what,
        decision,
    } = step;
    let what = format!("{} {} to {environment}", what.as_str(), short(revision));
    vec![
        at.to_string(),
        zone.wall(*at),
        what,
        decision.message.clone(),
    ]
}

fn waits(environment: &&EnvironmentView) -> bool {
    !matches!(
        environment.state,
        Some(EnvironmentState::Passed | EnvironmentState::Waiting)
    )
}

fn complete(end: &View) -> String {
    match &end.run {
        Some(run) => format!("every environment runs {}", run.short),
        None => "no revision is on its way".to_owned(),
    }
}
