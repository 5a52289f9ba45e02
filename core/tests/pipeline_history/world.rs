//! The API server with its versions and conflicts, two leaders with their caches and errands, the process
//! that acts for PullRequests, and the clusters.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use sluice_core::delivery::pipeline::{Errand, Outcome, Reader, Sight, check};
use sluice_crds::{Approval, Pipeline, PullRequest};

use super::forge::Forge;
use errands::Sending;
pub(super) use setup::{Discipline, Setup, Way};
use setup::{NAMES, app, pipeline, start, unknown};

mod errands;
mod leaders;
mod people;
mod promises;
mod pull_requests;
mod recreating;
mod setup;

/// How old a cache may be, in changes.
const OLDEST: usize = 6;

/// What a cache holds.
#[derive(Clone)]
struct Cache {
    object: Arc<Pipeline>,
    pull_requests: Vec<Arc<PullRequest>>,
    votes: Vec<Arc<Approval>>,
    apps: [Sight; 3],
    gates: [bool; 3],
    /// What the gatekeeper of each environment was told.
    reports: [Option<String>; 3],
}

/// Everything.
pub(super) struct World {
    setup: Setup,
    discipline: Discipline,
    present: Cache,
    /// What caches may still hold, the newest last.
    past: Vec<Cache>,
    version: u64,
    leaders: [BTreeMap<Errand, Outcome>; 2],
    forge: Forge,
    /// The keys of the promotions that an accepted status has said are begun.
    intents: BTreeSet<String>,
    /// Every notification and report that was begun.
    sendings: BTreeMap<Errand, Sending>,
    checked: Arc<Reader>,
    now: Timestamp,
}

impl World {
    pub(super) fn new(setup: Setup, discipline: Discipline) -> Self {
        let object = pipeline(&setup);
        let checked = Arc::new(check(&object).unwrap());
        let app = Arc::new(app(&checked, "1.0.0", "True"));
        let present = Cache {
            object: Arc::new(object),
            pull_requests: Vec::new(),
            votes: Vec::new(),
            apps: [(); 3].map(|()| Sight::Here(Arc::clone(&app))),
            gates: [true; 3],
            reports: [const { None }; 3],
        };
        Self {
            setup,
            discipline,
            present,
            past: Vec::new(),
            version: 0,
            leaders: [BTreeMap::new(), BTreeMap::new()],
            forge: Forge::default(),
            intents: BTreeSet::new(),
            sendings: BTreeMap::new(),
            checked,
            now: start(),
        }
    }

    /// One step of a history.
    pub(super) fn step(&mut self, [kind, a, b]: [u8; 3]) -> Result<(), String> {
        let (environment, pick) = (usize::from(a) % 3, usize::from(b));
        match kind % 28 {
            0..6 => return self.look(usize::from(a) % 2, pick % OLDEST, a / 2, b),
            6..10 => return self.act_for_pull_request(pick, a),
            10..12 => self.apply(environment),
            12..14 => self.run_errand(usize::from(a) % 2, b)?,
            14 => self.runs(0, &format!("1.0.{}", b % 4), "True"),
            15 => {
                let ready = ["False", "Unknown", "True"][pick % 3];
                self.health(environment, ready, b);
            }
            16 => self.change(|present| present.gates[environment] = b % 2 == 0),
            17 => return self.person(environment, b),
            18 | 19 => self.approve(b),
            20 => self.now += SignedDuration::from_secs(i64::from(b) * 20),
            21 => self.now += SignedDuration::from_secs(i64::from(b)),
            22 if self.setup.wipes && b < 64 => self.wipe(a),
            23 if b < 32 => self.crash(usize::from(a) % 2),
            24 if self.setup.wipes && b < 64 => self.recreate(b < 16),
            25 => self.collect(pick),
            26 if b < 64 => self.change(|present| present.reports[environment] = None),
            27 if b < 32 => self.respecify(environment, pick),
            _ => {}
        }
        Ok(())
    }

    fn change(&mut self, change: impl FnOnce(&mut Cache)) {
        self.past.push(self.present.clone());
        if self.past.len() > OLDEST {
            self.past.remove(0);
        }
        change(&mut self.present);
    }

    fn runs(&mut self, place: usize, revision: &str, ready: &str) {
        let app = Arc::new(app(&self.checked, revision, ready));
        self.change(|present| present.apps[place] = Sight::Here(app));
    }

    fn health(&mut self, place: usize, ready: &str, b: u8) {
        if b < 48 {
            return self.change(|present| present.apps[place] = unknown());
        }
        let revision = self.revision(place).unwrap_or_else(|| "1.0.0".to_owned());
        self.runs(place, &revision, ready);
    }

    /// What Flux would apply in an environment.
    fn wanted(&self, place: usize) -> Option<String> {
        let name = NAMES[place];
        match self.setup.ways[place.checked_sub(1)?] {
            Way::PullRequest | Way::Merged | Way::Notification => {
                self.forge.base.get(name).cloned()
            }
            Way::Reported => self.present.reports[place].clone(),
            Way::Admission => {
                let status = self.present.object.status.as_ref()?;
                Some(
                    status
                        .environments
                        .get(name)?
                        .admitted
                        .first()?
                        .revision
                        .clone(),
                )
            }
        }
    }

    fn revision(&self, place: usize) -> Option<String> {
        let name = NAMES[place];
        let status = self.present.object.status.as_ref()?;
        status
            .environments
            .get(name)?
            .targets
            .first()?
            .revision
            .clone()
    }

    /// Somebody writes another way of promotion into the spec.
    fn respecify(&mut self, place: usize, pick: usize) {
        let Some(way) = place.checked_sub(1) else {
            return;
        };
        self.setup.ways[way] = Way::ALL[pick % Way::ALL.len()];
        self.version += 1;
        let before = &self.present.object;
        let mut object = (**before).clone();
        object.spec = pipeline(&self.setup).spec;
        object.metadata.generation = before.metadata.generation.map(|it| it + 1);
        object.metadata.resource_version = Some(self.version.to_string());
        self.change(|present| present.object = Arc::new(object));
    }

    fn apply(&mut self, place: usize) {
        if let Some(revision) = self.wanted(place) {
            self.runs(place, &revision, "True");
        }
    }

    /// The status is lost, or an object, or both.
    fn wipe(&mut self, what: u8) {
        if !what.is_multiple_of(3) {
            self.version += 1;
            let mut object = (*self.present.object).clone();
            object.metadata.resource_version = Some(self.version.to_string());
            object.status = None;
            self.change(|present| present.object = Arc::new(object));
        }
        if what % 3 != 1 {
            let pick = usize::from(what);
            self.change(|present| {
                if !present.pull_requests.is_empty() {
                    let place = pick % present.pull_requests.len();
                    present.pull_requests.remove(place);
                }
            });
        }
    }
}
