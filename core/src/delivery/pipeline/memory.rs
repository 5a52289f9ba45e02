//! Step 2: what was promoted before.
//!
//! The status says it. Where the status is new or lost, after a restore or in a new cluster, it is read back
//! from the newest PullRequest of each environment. These may be lost as well, so the forge is asked for the
//! newest pull request of the environment, before anything is begun: what was merged there, or closed, is
//! not promoted again.
//!
//! | who says it | what of it counts |
//! |---|---|
//! | the status | all |
//! | a PullRequest of this Pipeline, or of none | how far it is. One that is not open yet asks people and gates again; one that had to be closed, and not by people, begins again with a new run |
//! | a PullRequest of an earlier Pipeline of this name | nothing: see [`Origin::Earlier`] |
//! | the forge | that it was merged, or closed. One that is open is closed, and begins again with a new run |

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use sluice_crds::pipeline::{Phase, PromotionRecord, PullRequestRecord, StrategyKind};
use sluice_crds::pull_request::{About, PullRequestState};
use sluice_crds::{Pipeline, PullRequest};

use super::child::Origin;
use super::key::{Merge, Way, key};
use super::reasons::{ALREADY_IN_BASE, MERGED, RECALLED, is_recalled};
use super::whose::Whose;
use super::{Errand, Given, Outcome, Recall, Recalled, child};
use crate::delivery::pull_request::words;
use crate::time::span::later;
use crate::time::stamp::time;

/// What is said while the forges have not answered.
const ASKED: &str = "the status is new or lost, so the forge is asked what was promoted before";

/// What was promoted before.
#[derive(Debug)]
pub(super) struct Memory {
    /// The newest run: its number and revision.
    pub(super) run: Option<(i64, String)>,
    /// The newest promotion to each environment.
    pub(super) records: BTreeMap<String, PromotionRecord>,
    /// The number of the newest run of all that are known.
    pub(super) greatest: Option<i64>,
    /// What pull requests have put onto the branches that they were merged into.
    pub(super) merges: Vec<Merge>,
    /// What has to be asked of forges before anything is begun.
    pub(super) recalls: Vec<Recall>,
    /// Why nothing is begun yet.
    pub(super) waits: Option<String>,
    /// When a forge that did not answer is asked again.
    pub(super) asks_at: Option<Timestamp>,
}

/// How far the number of a run may be ahead of the clock: it is made from a clock that may be another one.
const AHEAD: SignedDuration = SignedDuration::from_mins(5);

/// The PullRequests that this Pipeline has made, by what they are for. An object that is another one than its
/// `about` leads to was made by somebody else, and is left alone.
pub(super) fn own<'g>(
    whose: Whose<'_>,
    all: &'g [Arc<PullRequest>],
    now: Timestamp,
) -> Vec<(&'g About, &'g Arc<PullRequest>)> {
    let own = all.iter().filter_map(|object| {
        let about = &object.spec.about;
        let is_own = about.name == whose.name
            && object.metadata.namespace.as_deref() == Some(whose.namespace)
            && about.run.is_some_and(|run| is_possible(run, now))
            && child::is_whole(object);
        is_own.then_some((about, object))
    });
    own.collect()
}

/// Whether a run may have this number, which is the time of its start. A greater one would be the greatest
/// for ever.
fn is_possible(run: i64, now: Timestamp) -> bool {
    (0..=later(now, AHEAD).as_millisecond()).contains(&run)
}

impl Memory {
    pub(super) fn new(given: &Given, own: &[(&About, &Arc<PullRequest>)]) -> Self {
        let object = given.object.as_ref();
        let status = object.status.as_ref();
        let mut memory = Self {
            run: None,
            records: BTreeMap::new(),
            greatest: None,
            merges: Vec::new(),
            recalls: Vec::new(),
            waits: None,
            asks_at: None,
        };
        let environments = status.map(|status| status.environments.iter());
        for (name, environment) in environments.into_iter().flatten() {
            if let Some(record) = &environment.promotion {
                memory.records.insert(name.clone(), record.clone());
            }
        }
        let said: Vec<String> = memory.records.keys().cloned().collect();
        let lost = own
            .iter()
            .filter(|(about, _)| !said.contains(&about.environment));
        for (about, of) in lost {
            match child::origin(object, of) {
                Origin::Ours | Origin::Nobody => {
                    let record = from_object(about, of, given.now.at);
                    memory.keep_newest(&about.environment, record);
                }
                Origin::Earlier => {}
            }
        }
        let run = status.and_then(|status| status.run.as_ref());
        memory.run = run.map(|run| (run.id, run.revision.clone()));
        if run.is_none() {
            memory.ask_forges(given);
        }
        memory.complete(object, own);
        memory
    }

    fn keep_newest(&mut self, environment: &str, record: PromotionRecord) {
        let known = self.records.get(environment);
        if known.is_none_or(|known| known.run < record.run) {
            self.records.insert(environment.to_owned(), record);
        }
    }

    /// Asks for what nothing on this cluster may say any more: the newest object may be lost, too.
    fn ask_forges(&mut self, given: &Given) {
        let object = given.object.as_ref();
        let whose = Whose::of(object);
        let version = object.metadata.resource_version.clone().unwrap_or_default();
        let mut trouble = None;
        for environment in object.spec.environments.iter().skip(1) {
            let promotion = object.spec.promotion_of(environment);
            let strategy = promotion.and_then(|it| it.strategy.kind());
            let Some(StrategyKind::PullRequest(strategy)) = strategy else {
                continue;
            };
            let name = &environment.name;
            let errand = Errand::Recall(name.clone(), version.clone());
            let outcome = given.errands.get(&errand);
            let recall = || Recall {
                errand: errand.clone(),
                environment: name.clone(),
                strategy: strategy.clone(),
                branch_prefix: words::branches(&whose.to(name)),
            };
            match outcome {
                Some(Outcome::Recalled(None)) => continue,
                Some(Outcome::Recalled(Some(found))) => {
                    let way = Way::of(StrategyKind::PullRequest(strategy));
                    let is_own = found.key == key(whose, name, found.run, &found.revision, way);
                    if is_own && is_possible(found.run, given.now.at) {
                        self.keep_newest(name, from_forge(whose, found, given.now.at));
                    }
                    continue;
                }
                Some(Outcome::UnderWay | Outcome::Done) => {}
                Some(Outcome::Failed { why, not_before }) => {
                    trouble.get_or_insert_with(|| format!("{ASKED}, and does not answer: {why}"));
                    match not_before.filter(|at| *at > given.now.at) {
                        None if not_before.is_some() => self.recalls.push(recall()),
                        later => self.asks_later(later),
                    }
                }
                // What it said for an earlier version counts no more, but when it may be asked again does.
                None => match refused_until(given, name) {
                    Some(later) => self.asks_later(Some(later)),
                    None => self.recalls.push(recall()),
                },
            }
            // The same words until all have answered: another status would be another version.
            self.waits.get_or_insert_with(|| said_before(given));
        }
        self.waits = trouble.or(self.waits.take());
    }

    fn asks_later(&mut self, at: Option<Timestamp>) {
        self.asks_at = self.asks_at.into_iter().chain(at).min();
    }

    /// What follows from the records.
    fn complete(&mut self, object: &Pipeline, own: &[(&About, &Arc<PullRequest>)]) {
        let status = object.status.as_ref();
        let admitted = status.map(|status| status.environments.values());
        let admitted = admitted.into_iter().flatten().flat_map(|it| &it.admitted);
        let admitted = admitted.map(|it| (it.run, it.revision.as_str()));
        let records = self.records.values();
        let numbers: Vec<i64> = records.clone().map(|it| it.run).collect();
        // What is closed and begins again belongs to no run.
        let records = records.filter(|record| !is_recalled(record));
        let records = records.map(|it| (it.run, it.revision.as_str()));
        let newest = admitted.chain(records).max_by_key(|(run, _)| *run);
        let newest = newest.map(|(run, revision)| (run, revision.to_owned()));
        let runs = own.iter().filter_map(|(about, _)| about.run);
        let known = self.run.iter().chain(&newest).map(|(run, _)| *run);
        self.greatest = runs.chain(known).chain(numbers).max();
        self.run = self.run.take().or(newest);
        let of_objects = own.iter().filter_map(|(_, object)| {
            let status = object.status.as_ref()?;
            Merge::read(status.merged_sha.as_deref(), status.merged_onto.as_deref())
        });
        let of_records = self.records.values().filter_map(|record| {
            let of = record.pull_request.as_ref()?;
            Merge::read(of.merge_commit.as_deref(), of.merged_onto.as_deref())
        });
        self.merges = of_objects.chain(of_records).collect();
    }
}

/// Before when a forge that did not answer is not asked again about an environment.
fn refused_until(given: &Given, environment: &str) -> Option<Timestamp> {
    let of = given
        .errands
        .iter()
        .filter_map(|(errand, outcome)| match (errand, outcome) {
            (Errand::Recall(of, _), Outcome::Failed { not_before, .. }) if of == environment => {
                *not_before
            }
            _ => None,
        });
    of.max().filter(|at| *at > given.now.at)
}

/// What the status says of forges that are asked.
fn said_before(given: &Given) -> String {
    let status = given.object.status.as_ref();
    let environments = status
        .into_iter()
        .flat_map(|status| status.environments.values());
    let mut messages = environments.filter_map(|environment| environment.message.as_deref());
    let said = messages.find(|message| message.starts_with(ASKED));
    said.unwrap_or(ASKED).to_owned()
}

/// A record as a PullRequest has kept it. That it had to be closed says that the controller has given it up,
/// and not that people have.
fn from_object(about: &About, object: &PullRequest, now: Timestamp) -> PromotionRecord {
    let status = object.status.clone().unwrap_or_default();
    let state = status.state.unwrap_or(PullRequestState::Pending);
    let of = PullRequestRecord {
        name: object.metadata.name.clone().unwrap_or_default(),
        url: status.url,
        state: Some(state),
        commit_sha: status.commit_sha,
        merge_commit: status.merged_sha,
        merged_onto: status.merged_onto,
    };
    let is_given_up = object.spec.close.is_some()
        && matches!(
            state,
            PullRequestState::Pending | PullRequestState::Open | PullRequestState::Closed
        );
    let (run, revision) = (about.run, about.revision.clone());
    let record = record(
        run.unwrap_or_default(),
        revision.unwrap_or_default(),
        about.key.clone(),
        of,
        now,
    );
    recalled_if(is_given_up, record)
}

/// A record as a forge has kept it. What was merged or closed there counts as it is. One that is open does
/// not: nothing says that people or gates have admitted it.
fn from_forge(whose: Whose<'_>, found: &Recalled, now: Timestamp) -> PromotionRecord {
    let (commit, onto) = found.merge.clone().unzip();
    let of = PullRequestRecord {
        name: child::name(whose, &found.key),
        url: found.url.clone(),
        state: Some(found.state),
        commit_sha: None,
        merge_commit: commit,
        merged_onto: onto,
    };
    let (revision, key) = (found.revision.clone(), found.key.clone());
    let is_open = found.state == PullRequestState::Open;
    recalled_if(is_open, record(found.run, revision, key, of, now))
}

fn recalled_if(is_recalled: bool, record: PromotionRecord) -> PromotionRecord {
    PromotionRecord {
        reason: is_recalled.then(|| RECALLED.to_owned()).or(record.reason),
        ..record
    }
}

fn record(
    run: i64,
    revision: String,
    key: String,
    of: PullRequestRecord,
    now: Timestamp,
) -> PromotionRecord {
    let (phase, reason) = match of.state {
        // What is not there yet is tried only if people and gates say yes now.
        None | Some(PullRequestState::Pending) => (Phase::Unattempted, None),
        Some(PullRequestState::Open) => (Phase::Created, None),
        Some(PullRequestState::Merged) => (Phase::Succeeded, Some(MERGED)),
        Some(PullRequestState::AlreadyInBase) => (Phase::Succeeded, Some(ALREADY_IN_BASE)),
        Some(PullRequestState::Closed) => (Phase::Abandoned, Some("Closed")),
        Some(PullRequestState::Missing) => (Phase::Abandoned, Some("Vanished")),
    };
    PromotionRecord {
        run,
        revision,
        key,
        phase,
        reason: reason.map(str::to_owned),
        message: None,
        at: time(now),
        attempts: 0,
        repeats: 0,
        next_attempt_at: None,
        pull_request: Some(of),
        gate: None,
        order: None,
    }
}
