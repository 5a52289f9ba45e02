//! Objects together: names that lead to no object, and what the objects result in.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use kube::core::ObjectMeta;
use sluice_crds::gate::annotations::ALL as FORCES;
use sluice_crds::{Gate, GatePolicy, GatedSource, Gatekeeper, State};

use super::annotations;
use super::remark::{Remark, Remarks, Subject};
use crate::gate::{Identity, force};
use crate::gatekeeper::Keeper;
use crate::gatekeeper::kind::Text;
use crate::offline::simulate::sources::Seen;
use crate::offline::simulate::{self, Key, Scene, World};
use crate::text::refusal::Refusal;
use crate::time::calendar::{Calendar, CalendarError};
use crate::time::clock::Now;
use crate::time::span::{Span, later};
use crate::time::zone;
use crate::verdict::Reason;
use crate::verdict::status::HORIZON;

/// What there is to say about the objects of `world` at `now`, each one being right by itself.
pub fn remarks(world: &World, now: Timestamp) -> Vec<Remark> {
    let mut remarks = of_gatekeepers(world, now);
    for (key, gate) in &world.gates {
        let mut all = Remarks {
            world,
            remarks: &mut remarks,
        };
        all.gate(key, gate, now);
    }
    for (key, approval) in &world.approvals {
        let mut all = Remarks {
            world,
            remarks: &mut remarks,
        };
        all.annotations(&Subject::Approval(key.clone()), &approval.metadata, &[]);
    }
    for (name, policy) in &world.policies {
        let mut all = Remarks {
            world,
            remarks: &mut remarks,
        };
        if let Ok(policy) = policy {
            all.policy(name, policy);
        }
    }
    for (key, source) in &world.sources {
        let mut all = Remarks {
            world,
            remarks: &mut remarks,
        };
        all.source(key, source);
    }
    for (key, pipeline) in &world.pipelines {
        let mut all = Remarks {
            world,
            remarks: &mut remarks,
        };
        if let Some(pipeline) = pipeline {
            all.pipeline(key, pipeline);
        }
    }
    for (key, strategy) in &world.strategies {
        let mut all = Remarks {
            world,
            remarks: &mut remarks,
        };
        all.strategy(key, strategy);
    }
    for (key, rollout) in &world.rollouts {
        let mut all = Remarks {
            world,
            remarks: &mut remarks,
        };
        all.rollout(key, rollout);
    }
    remarks
}

/// Those among them that the controller would refuse, without looking through the days ahead.
pub fn refusals(world: &World, now: Timestamp) -> Vec<Remark> {
    let mut remarks = of_gatekeepers(world, now);
    remarks.retain(|remark| remark.refused);
    remarks
}

fn of_gatekeepers(world: &World, now: Timestamp) -> Vec<Remark> {
    let mut remarks = Vec::new();
    for (key, gatekeeper) in &world.gatekeepers {
        let mut all = Remarks {
            world,
            remarks: &mut remarks,
        };
        all.gatekeeper(key, gatekeeper, now);
    }
    remarks
}

impl Remarks<'_> {
    pub(super) fn annotations(
        &mut self,
        subject: &Subject,
        metadata: &ObjectMeta,
        known: &'static [&'static str],
    ) {
        for what in annotations::unknown(metadata, known) {
            self.warn(subject.clone(), what);
        }
    }

    fn gatekeeper(&mut self, key: &Key, gatekeeper: &Gatekeeper, now: Timestamp) {
        let subject = Subject::Gatekeeper(key.clone());
        self.annotations(&subject, &gatekeeper.metadata, &[]);
        let before = self.remarks.len();
        for (map, text) in World::texts_of(gatekeeper) {
            self.text(key, map, &text);
        }
        if let Some(named) = &gatekeeper.spec.pipeline {
            self.promoting(key, named);
        }
        for reference in gatekeeper.spec.gates.iter().flat_map(|gates| &gates.refs) {
            let named = Key::from_reference(
                &key.namespace,
                reference.namespace.as_deref(),
                &reference.name,
            );
            if !self.world.gates.contains_key(&named) {
                let problem =
                    format!("there is no Gate {named} in these files, so it admits nothing");
                let subject = Subject::Gatekeeper(key.clone());
                self.warn_of(
                    Subject::Gate(named),
                    subject,
                    "spec.gates".to_owned(),
                    problem,
                );
            }
        }
        if self.remarks.len() == before && gatekeeper.spec.schedule.is_some() {
            let seen = Seen {
                world: self.world,
                identity: Identity::Trusted,
                from: now,
            };
            let evidence = seen.evidence(gatekeeper);
            let keeper = Keeper::new(gatekeeper.clone().into(), evidence, now);
            let verdict = keeper.verdict(Now::given(now));
            if verdict.reason == Reason::EvidenceBroken.as_str() {
                let remedy = "write a calendar with fewer events";
                let what = Refusal::new("spec.schedule", verdict.message, remedy);
                self.refuse(Subject::Gatekeeper(key.clone()), what);
            }
        }
        self.ended(key, gatekeeper, now);
    }

    /// A text that a gatekeeper is judged from: whether it is there and makes sense.
    fn text(&mut self, key: &Key, map: Key, text: &Text<'_>) {
        let (entry, field, without) = (&text.reference.key, text.field, text.without);
        let found = self.world.config_maps.get(&map).and_then(Option::as_ref);
        let bytes = match found.map(|found| simulate::entry(found, entry)) {
            None => {
                let problem = format!("there is no ConfigMap {map} in these files, so {without}");
                let subject = Subject::Gatekeeper(key.clone());
                return self.warn_of(Subject::ConfigMap(map), subject, field.to_owned(), problem);
            }
            Some(Err(why)) => {
                let problem = format!("the ConfigMap {map} {why}, so {without}");
                let what = Refusal::new(field, problem, "add it, unless the cluster has it");
                return self.warn(Subject::Gatekeeper(key.clone()), what);
            }
            Some(Ok(bytes)) => bytes,
        };
        if let Err(words) = (text.check)(bytes) {
            self.refuse(Subject::ConfigMap(map), of_text(&words, entry));
        }
    }

    /// Dated windows that are over.
    fn ended(&mut self, key: &Key, gatekeeper: &Gatekeeper, now: Timestamp) {
        let Some(spec) = &gatekeeper.spec.schedule else {
            return;
        };
        let Ok(zone) = zone::find(&spec.time_zone) else {
            return;
        };
        for (list, windows) in [("open", &spec.open), ("closed", &spec.closed)] {
            for (place, window) in windows.iter().enumerate() {
                let (Some(_), Some(until)) = (&window.from, &window.until) else {
                    continue;
                };
                let end = until
                    .parse()
                    .ok()
                    .and_then(|wall| zone::resolve(&zone, wall));
                if end.is_some_and(|end| end <= now) {
                    let field = format!("spec.schedule.{list}[{place}].until");
                    let problem = format!("the window ended at {until} {}", spec.time_zone);
                    let what = Refusal::new(field, problem, "remove it, or write its next date");
                    self.warn(Subject::Gatekeeper(key.clone()), what);
                }
            }
        }
    }

    fn gate(&mut self, key: &Key, gate: &Gate, now: Timestamp) {
        let subject = || Subject::Gate(key.clone());
        let keepers: Vec<_> = gate
            .spec
            .gatekeepers
            .iter()
            .map(|reference| {
                let named = Key::named_by(gate, reference);
                self.world.gatekeepers.get(&named).ok_or(named)
            })
            .collect();
        for (n, named) in keepers.iter().enumerate() {
            if let Err(named) = named {
                let problem = format!(
                    "there is no Gatekeeper {named} in these files, which keeps the gate closed"
                );
                let missing = Subject::Gatekeeper(named.clone());
                self.warn_of(
                    missing,
                    subject(),
                    format!("spec.gatekeepers[{n}]"),
                    problem,
                );
            }
        }
        self.annotations(&subject(), &gate.metadata, &FORCES);
        self.cycle(key, gate, now);
        let refused = super::force::check(gate);
        for complaint in force::read(gate, Identity::Trusted, now).complaints {
            if !refused
                .iter()
                .any(|refused| refused.field == complaint.field)
            {
                self.warn(subject(), complaint);
            }
        }
        // One that has a mistake keeps the gate closed because of that.
        let by_schedule = |keeper: &Result<_, Key>| {
            keeper
                .as_ref()
                .is_ok_and(|keeper: &&std::sync::Arc<Gatekeeper>| {
                    let spec = &keeper.spec;
                    let is_right = || crate::gatekeeper::check(spec).is_ok();
                    spec.schedule.is_some() && !spec.suspend && is_right()
                })
        };
        let scheduled = !keepers.is_empty() && keepers.iter().all(by_schedule);
        if scheduled && !gate.spec.suspend && self.never_opens(key, now) {
            let days = HORIZON.as_hours() / 24;
            let problem = format!("the gate does not open within {days} days");
            let remedy = "change the windows of its gatekeepers, unless it is meant so";
            self.warn(subject(), Refusal::new("spec.gatekeepers", problem, remedy));
        }
    }

    /// A gate that depends on itself, by way of gatekeepers that are kept by gates.
    fn cycle(&mut self, key: &Key, gate: &Gate, now: Timestamp) {
        let Some(mut scene) = Scene::new(self.world, key, Identity::Trusted, now) else {
            return;
        };
        let verdicts = scene.decide(Now::given(now)).verdicts;
        for (place, verdict) in verdicts.iter().enumerate() {
            if verdict.verdict.reason == Reason::Cycle.as_str()
                && place < gate.spec.gatekeepers.len()
            {
                let field = format!("spec.gatekeepers[{place}]");
                let problem = format!("{}: {}", verdict.gatekeeper, verdict.verdict.message);
                let remedy = "let one of these gates not depend on the next";
                self.refuse(
                    Subject::Gate(key.clone()),
                    Refusal::new(field, problem, remedy),
                );
            }
        }
    }

    fn policy(&mut self, name: &str, policy: &GatePolicy) {
        let subject = || Subject::GatePolicy(name.to_owned());
        self.annotations(&subject(), &policy.metadata, &[]);
        for (place, reference) in policy.spec.gates.refs.iter().enumerate() {
            // A reference without a namespace is reported already.
            let Some(namespace) = &reference.namespace else {
                continue;
            };
            let named = Key::from_reference(namespace, None, &reference.name);
            if !self.world.gates.contains_key(&named) {
                let problem = format!(
                    "there is no Gate {named} in these files, so it holds back whatever the policy \
                     concerns"
                );
                let field = format!("spec.gates.refs[{place}]");
                self.warn_of(Subject::Gate(named), subject(), field, problem);
            }
        }
    }

    fn source(&mut self, key: &Key, source: &GatedSource) {
        let subject = || Subject::GatedSource(key.clone());
        self.annotations(&subject(), &source.metadata, &[]);
        for (place, reference) in source.spec.gates.refs.iter().enumerate() {
            let (namespace, name) = (reference.namespace.as_deref(), &reference.name);
            let named = Key::from_reference(&key.namespace, namespace, name);
            if !self.world.gates.contains_key(&named) {
                let problem =
                    format!("there is no Gate {named} in these files, which lets nothing out");
                let field = format!("spec.gates.refs[{place}]");
                self.warn_of(Subject::Gate(named), subject(), field, problem);
            }
        }
    }

    fn never_opens(&self, key: &Key, now: Timestamp) -> bool {
        let Some(mut scene) = Scene::new(self.world, key, Identity::Trusted, now) else {
            return false;
        };
        let end = later(now, HORIZON);
        let stretches = scene.stretches(Span { start: now, end });
        stretches.cut_off.is_none()
            && stretches
                .list
                .iter()
                .all(|stretch| stretch.answer.state == State::Closed)
    }
}

/// What is wrong with a calendar in a file of its own, and in which line, if that is known.
pub fn calendar(text: &[u8]) -> Option<(Option<usize>, Refusal)> {
    // Times without a zone are read in that of the schedule, which makes none of them right or wrong.
    let error = Calendar::read(text, &TimeZone::UTC).err()?;
    let line = match &error {
        CalendarError::Line { line, .. } | CalendarError::Event { line, .. } => Some(*line),
        _ => None,
    };
    let Refusal {
        problem, remedy, ..
    } = of_text(&error.to_string(), "");
    Some((line, Refusal::new("", problem, remedy)))
}

/// What is wrong with a text, in the shape of all other mistakes: its words already end with the
/// remedy.
fn of_text(words: &str, entry: &str) -> Refusal {
    let (problem, remedy) = words.rsplit_once("; ").unwrap_or((words, "correct it"));
    Refusal::new(format!("data[{entry}]"), problem, remedy)
}
