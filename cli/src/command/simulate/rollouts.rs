//! `kubectl gate simulate --rollout`: which batches would go out, when, and by which gates.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use anyhow::{Context, Result, bail};
use jiff::Timestamp;
use serde::Serialize;
use sluice_core::delivery::rollout::View;
use sluice_core::delivery::rollout::view::Batch;
use sluice_core::gate::Identity;
use sluice_core::offline::simulate::{BatchStep, Key, Rolling, Scene, World, rolling};
use sluice_core::revision::short;
use sluice_core::time::span::Span;
use sluice_crds::Decision;
use sluice_crds::rollout::Mode;

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
    /// How many pods workloads have, in place of what the files say.
    pub(super) sizes: BTreeMap<String, NonZeroU32>,
    pub(super) span: Span,
    pub(super) identity: Identity,
    /// None: the one in which the windows of its gates are written.
    pub(super) zone: Option<Zone>,
}

/// A batch, for programs.
#[derive(Serialize)]
struct Told<'a> {
    batch: usize,
    pods: Option<u32>,
    goal: Option<u32>,
    /// None: it has not gone out at the end.
    at: Option<Timestamp>,
    decision: Option<&'a Decision>,
}

/// Reads `web-v1=20`.
pub(super) fn replicas(text: &str) -> Result<(String, NonZeroU32), &'static str> {
    const REMEDY: &str = "write the name of a workload and how many pods it has, such as web-v1=20";
    let (name, pods) = text.split_once('=').ok_or(REMEDY)?;
    match (name.is_empty(), pods.parse()) {
        (false, Ok(pods)) => Ok((name.to_owned(), pods)),
        (true, _) | (false, Err(_)) => Err(REMEDY),
    }
}

impl Asked<'_> {
    pub(super) fn run(self, form: Option<Data>) -> Result<Outcome> {
        let rollouts: Vec<&Key> = self.world.rollouts.keys().collect();
        let key = files::chosen(&rollouts, Some(self.name), self.namespace, "rollout")?;
        let found = rolling(self.world, &key, &self.sizes, self.identity, self.span);
        let found = found.with_context(|| format!("there is no rollout {key}"))?;
        let found = match found {
            Ok(found) => found,
            Err(refusals) => bail!("the rollout {key} is refused: {refusals}"),
        };
        match form {
            Some(form) => {
                let batches = found.end.batches.iter();
                let batches: Vec<Told<'_>> = batches.map(|it| told(&found, it)).collect();
                let all = serde_json::json!({"batches": batches, "end": found.end});
                output::data(form, &all)?;
            }
            None => {
                let own = || self.shared(&found);
                let zone = self.zone.clone().unwrap_or_else(own);
                output::text(text(&key, &found, &zone, output::width()))?;
            }
        }
        match found.cut_off {
            None => Ok(Outcome::Yes),
            Some(at) => {
                bail!("it changes too often to be told beyond {at}; choose an earlier --to")
            }
        }
    }

    /// The zone in which the windows of the gates that were asked are written.
    fn shared(&self, found: &Rolling) -> Zone {
        let decisions = found.steps.iter().filter_map(|it| it.decision.as_ref());
        let checked = decisions
            .flat_map(|it| &it.checked)
            .map(|it| it.gate.as_str());
        let held = found.end.held.iter().filter_map(|it| it.by.as_deref());
        let keys = checked.chain(held).filter_map(key_of);
        let scenes: Vec<Scene> = keys
            .filter_map(|key| Scene::new(self.world, &key, self.identity, self.span.start))
            .collect();
        Zone::shared(scenes.iter().flat_map(Scene::time_zones))
    }
}

fn step<'r>(found: &'r Rolling, batch: &Batch) -> Option<&'r BatchStep> {
    found.steps.iter().find(|it| it.batch == batch.batch)
}

fn told<'r>(found: &'r Rolling, batch: &Batch) -> Told<'r> {
    let step = step(found, batch);
    Told {
        batch: batch.batch,
        pods: batch.pods,
        goal: batch.goal,
        at: step.map(|it| it.at),
        decision: step.and_then(|it| it.decision.as_ref()),
    }
}

/// Each batch in a line, and what is waited for at the end.
fn text(key: &Key, found: &Rolling, zone: &Zone, columns: Option<usize>) -> String {
    let end = &found.end;
    let revision = end.revision.as_deref().map(short);
    let of = revision.map(|it| format!(" of {it}")).unwrap_or_default();
    let mut text = format!(
        "Rollout {key}{of}, times in {}. Pods are available, hooks pass and metrics are good at once.\n",
        zone.name
    );
    let has_old = end.mode != Some(Mode::Scale);
    let mut head = vec!["BATCH", "PODS", "NEW", "OLD", "GOES OUT", "BY"];
    if !has_old {
        head.remove(3);
    }
    let head = head.into_iter().map(str::to_owned).collect();
    let rows = end.batches.iter();
    let rows = rows.map(|batch| row(found, batch, zone, has_old));
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    text += &output::table_with_causes(rows, columns);
    text + &format!("{}\n", left(end, zone))
}

fn row(found: &Rolling, batch: &Batch, zone: &Zone, has_old: bool) -> Vec<String> {
    let step = step(found, batch);
    let number = |number: Option<u32>| number.map_or("?".to_owned(), |it| it.to_string());
    let old = found.end.size.zip(batch.goal);
    let old = old.map(|(size, goal)| size.unsigned_abs().saturating_sub(goal));
    let by = step.map(|it| match &it.decision {
        Some(decision) => gates(decision),
        None => "no gate".to_owned(),
    });
    let mut cells = vec![
        batch.batch.to_string(),
        number(batch.pods),
        number(batch.goal),
        number(old),
        step.map_or_else(|| "-".to_owned(), |it| zone.wall(it.at)),
        by.unwrap_or_default(),
    ];
    if !has_old {
        cells.remove(3);
    }
    cells
}

/// The gates that let a batch out. One in the namespace of the rollout is named without it.
fn gates(decision: &Decision) -> String {
    let own = format!("{}/", decision.subject.namespace);
    let all = decision.decided_by.iter();
    let all = all.map(|gate| gate.strip_prefix(&own).unwrap_or(gate));
    all.collect::<Vec<_>>().join(", ")
}

/// What is left at the end.
fn left(end: &View, zone: &Zone) -> String {
    let until = end.until.as_ref();
    let until = until.map(|at| format!("; the answer may change {}", zone.text(at.0)));
    let until = until.unwrap_or_default();
    match (&end.held, &end.outcome, end.ended()) {
        (Some(held), ..) => format!("Held ({}): {}{until}", held.reason, held.message),
        (None, Some(outcome), _) => format!("{}: {}", outcome.reason, outcome.message),
        (None, None, Some(true)) => "all batches are out".to_owned(),
        (None, None, Some(false) | None) => {
            let message = end.message.as_deref();
            format!("at the end: {}", message.unwrap_or("nothing is known"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        let twenty = NonZeroU32::new(20).unwrap();
        assert_eq!(replicas("web-v1=20"), Ok(("web-v1".to_owned(), twenty)));
        for text in ["web", "=20", "web=0", "web=-1", "web=many"] {
            assert!(replicas(text).is_err(), "{text}");
        }
    }
}
