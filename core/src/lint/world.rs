//! Objects beside each other: what they name and is not there, what they come to.

use jiff::Timestamp;
use sluice_crds::{Gate, Gatekeeper, State};

use crate::calendar::{Calendar, CalendarError};
use crate::clock::Now;
use crate::gate::{Identity, force};
use crate::gatekeeper::Keeper;
use crate::refusal::Refusal;
use crate::schedule::{HORIZON, Schedule};
use crate::simulate::{Key, Scene, World, entry};
use crate::span::Span;
use crate::verdict::Reason;

/// The object that a remark is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// A Gate.
    Gate(Key),
    /// A Gatekeeper.
    Gatekeeper(Key),
    /// A ConfigMap.
    ConfigMap(Key),
}

/// Something about an object that only shows beside the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// The object.
    pub subject: Subject,
    /// What, where in it, and what to write instead.
    pub what: Refusal,
    /// Whether the controller would refuse it. If not, it may well be meant.
    pub refused: bool,
}

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

struct Remarks<'a> {
    world: &'a World,
    remarks: &'a mut Vec<Remark>,
}

impl Remarks<'_> {
    fn warn(&mut self, subject: Subject, what: Refusal) {
        self.remarks.push(Remark {
            subject,
            what,
            refused: false,
        });
    }

    fn refuse(&mut self, subject: Subject, what: Refusal) {
        self.remarks.push(Remark {
            subject,
            what,
            refused: true,
        });
    }

    fn gatekeeper(&mut self, key: &Key, gatekeeper: &Gatekeeper, now: Timestamp) {
        let Some(spec) = &gatekeeper.spec.schedule else {
            return;
        };
        let Ok(schedule) = Schedule::read(spec, "spec.schedule") else {
            return;
        };
        let before = self.remarks.len();
        for (map, key_of_data) in World::calendars_of(gatekeeper) {
            let found = self.world.config_maps.get(&map).and_then(Option::as_ref);
            let read = found.map(|found| entry(found, &key_of_data));
            match read {
                None => self.missing(key, &format!("there is no ConfigMap {map} in these files")),
                Some(Err(why)) => self.missing(key, &format!("the ConfigMap {map} {why}")),
                Some(Ok(bytes)) => {
                    if let Err(error) = Calendar::read(bytes, schedule.zone()) {
                        let what = of_calendar(&error, &key_of_data);
                        self.refuse(Subject::ConfigMap(map), what);
                    }
                }
            }
        }
        if self.remarks.len() == before {
            let evidence = self.world.evidence(gatekeeper);
            let keeper = Keeper::new(gatekeeper.clone().into(), evidence, now);
            let verdict = keeper.verdict(Now::given(now));
            if verdict.reason == Reason::EvidenceBroken.as_str() {
                let remedy = "write a calendar with fewer events";
                let what = Refusal::new("spec.schedule", verdict.message, remedy);
                self.refuse(Subject::Gatekeeper(key.clone()), what);
            }
        }
    }

    fn missing(&mut self, key: &Key, problem: &str) {
        let remedy = "add it, unless the cluster has it";
        self.warn(
            Subject::Gatekeeper(key.clone()),
            Refusal::new(
                "spec.schedule",
                format!("{problem}, so onError decides"),
                remedy,
            ),
        );
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
                let what = Refusal::new(
                    format!("spec.gatekeepers[{n}]"),
                    format!(
                        "there is no Gatekeeper {named} in these files, which keeps the gate closed"
                    ),
                    "add it, unless the cluster has it",
                );
                self.warn(subject(), what);
            }
        }
        let refused = super::force::check(gate);
        for complaint in force::read(gate, Identity::Trusted, now).complaints {
            if !refused
                .iter()
                .any(|refused| refused.field == complaint.field)
            {
                self.warn(subject(), complaint);
            }
        }
        let by_schedule = |keeper: &Result<_, Key>| {
            keeper
                .as_ref()
                .is_ok_and(|keeper: &&std::sync::Arc<Gatekeeper>| {
                    keeper.spec.schedule.is_some() && !keeper.spec.suspend
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

    fn never_opens(&self, key: &Key, now: Timestamp) -> bool {
        let Some(mut scene) = Scene::new(self.world, key, Identity::Trusted, now) else {
            return false;
        };
        let end = now.saturating_add(HORIZON).unwrap_or(Timestamp::MAX);
        let stretches = scene.stretches(Span { start: now, end });
        stretches.cut_off.is_none()
            && stretches
                .list
                .iter()
                .all(|stretch| stretch.answer.state == State::Closed)
    }
}

/// What is wrong with a calendar, in the shape of all other mistakes: its words already end with
/// the remedy.
fn of_calendar(error: &CalendarError, entry: &str) -> Refusal {
    let words = error.to_string();
    let (problem, remedy) = words
        .rsplit_once("; ")
        .unwrap_or((words.as_str(), "mend it"));
    Refusal::new(format!("data[{entry}]"), problem, remedy)
}
