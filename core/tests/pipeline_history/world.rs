//! The API server with its versions and conflicts, two leaders with their caches and errands, the process
//! that acts for PullRequests, and the clusters.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use sluice_core::Now;
use sluice_core::delivery::pipeline::{
    Act, App, Errand, Given, Missing, Outcome, Reader, Report, Sight, Surroundings, Trouble, Votes,
    What, check, consider, report, subject,
};
use sluice_core::gate::Identity;
use sluice_core::gate::set::Gathered;
use sluice_core::offline::simulate::{self, Key};
use sluice_core::verdict::question::Question;
use sluice_crds::approval::{PipelineReference, Vote};
use sluice_crds::pipeline::{EnvironmentState, Phase, PromotionRecord};
use sluice_crds::pull_request::{PullRequestState, PullRequestStatus};
use sluice_crds::{Approval, ApprovalSpec, Decision, Gate, GateSet, Pipeline, PullRequest};

use super::forge::Forge;

const NAMES: [&str; 3] = ["dev", "staging", "prod"];
/// How old a cache may be, in changes.
const OLDEST: usize = 6;

/// How an environment is promoted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// People merge.
    PullRequest,
    /// The controller merges.
    Merged,
    Notification,
    Admission,
}

/// What a history is about.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setup {
    /// Of staging and prod.
    pub(super) ways: [Way; 2],
    pub(super) manual: bool,
    pub(super) pairwise: bool,
    /// Whether statuses and objects are wiped.
    pub(super) wipes: bool,
}

/// When acts are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Discipline {
    /// Once the status is accepted, as it has to be.
    StatusFirst,
    /// Whatever becomes of the status.
    ActsFirst,
}

/// What a cache holds.
#[derive(Clone)]
struct Cache {
    object: Arc<Pipeline>,
    pull_requests: Vec<Arc<PullRequest>>,
    votes: Vec<Arc<Approval>>,
    apps: [Sight; 3],
    gates: [bool; 3],
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
    /// How often each notification was sent, by environment and run.
    sent: BTreeMap<(String, String), u32>,
    checked: Arc<Reader>,
    now: Timestamp,
}

/// A gate that is open, and one that is closed.
static GATES: LazyLock<[Gathered; 2]> = LazyLock::new(|| {
    ["closed", "open"].map(|state| {
        let gate: Gate = serde_json::from_value(json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Gate",
            "metadata": {"name": "g", "namespace": "apps"}, "spec": {"default": state},
        }))
        .unwrap();
        let mut world = simulate::World::default();
        world.gates.insert(Key::of(&gate.metadata), gate);
        let own: GateSet = serde_json::from_value(json!({"refs": [{"name": "g"}]})).unwrap();
        let object = pipeline(&Setup {
            ways: [Way::Admission; 2],
            manual: false,
            pairwise: false,
            wipes: false,
        });
        let subject = subject(&object, "prod", What::Promote, None);
        let question = Question::from(Now::given(start()));
        simulate::gather(&world, Some(&own), &subject, Identity::Trusted, question)
    })
});

fn start() -> Timestamp {
    "2026-11-23T12:00:00Z".parse().unwrap()
}

fn promotion(way: Way, manual: bool) -> Value {
    let forge = |merge: &str| {
        json!({"pull-request": {
            "type": "gitea", "url": "https://git.example.com/a.git", "merge": merge,
            "secretRef": {"name": "t"}, "paths": ["a.yaml"],
        }})
    };
    let strategy = match way {
        Way::PullRequest => forge("manual"),
        Way::Merged => forge("auto"),
        Way::Notification => json!({"notification": {}}),
        Way::Admission => json!({"admission": {}}),
    };
    json!({"manual": manual, "strategy": strategy})
}

fn pipeline(setup: &Setup) -> Pipeline {
    let [staging, prod] = setup.ways;
    let algorithm = if setup.pairwise { "pairwise" } else { "run" };
    let gates = json!({"refs": [{"name": "g"}]});
    serde_json::from_value(json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Pipeline",
        "metadata": {"name": "p", "namespace": "apps", "generation": 1, "uid": "u",
            "resourceVersion": "0"},
        "spec": {
            "appRef": {"kind": "Kustomization", "name": "a"}, "algorithm": algorithm,
            "environments": [
                {"name": "dev", "targets": [{"namespace": "dev"}]},
                {"name": "staging", "targets": [{"namespace": "staging"}], "gates": gates,
                 "promotion": promotion(staging, false)},
                {"name": "prod", "targets": [{"namespace": "prod"}], "gates": gates,
                 "promotion": promotion(prod, setup.manual)},
            ],
        },
    }))
    .unwrap()
}

fn unknown() -> Sight {
    Sight::Unknown(Trouble {
        what: Missing::App,
        message: "gone".to_owned(),
    })
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
        };
        Self {
            setup,
            discipline,
            present,
            past: Vec::new(),
            version: 0,
            leaders: [BTreeMap::new(), BTreeMap::new()],
            forge: Forge::default(),
            sent: BTreeMap::new(),
            checked,
            now: start(),
        }
    }

    /// One step of a history.
    pub(super) fn step(&mut self, [kind, a, b]: [u8; 3]) -> Result<(), String> {
        let (environment, pick) = (usize::from(a) % 3, usize::from(b));
        match kind % 24 {
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
            23 if b < 32 => {
                self.leaders[usize::from(a) % 2].clear();
            }
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

    fn apply(&mut self, place: usize) {
        if let Some(revision) = self.wanted(place) {
            self.runs(place, &revision, "True");
        }
    }

    /// A look of a leader, over a cache of some age. `crash`: after so many acts the process is killed.
    fn look(&mut self, leader: usize, age: usize, crash: u8, lost: u8) -> Result<(), String> {
        let cache = match age {
            0 => self.present.clone(),
            age => self
                .past
                .iter()
                .rev()
                .nth(age - 1)
                .unwrap_or(&self.present)
                .clone(),
        };
        let report = self.decide(&cache, leader)?;
        let is_current =
            cache.object.metadata.resource_version == self.present.object.metadata.resource_version;
        if report.changed && is_current {
            let mut object = (*self.present.object).clone();
            if object.status.as_ref() != Some(&report.status) {
                self.version += 1;
                object.metadata.resource_version = Some(self.version.to_string());
                object.status = Some(report.status);
                self.change(|present| present.object = Arc::new(object));
            }
        }
        let accepted = report.changed && is_current;
        // The answer of the API server may be lost although it has accepted the status.
        let is_known = accepted && lost >= 16;
        if is_known {
            let version = self.present.object.metadata.resource_version.clone();
            self.leaders[leader].retain(|errand, outcome| match errand {
                Errand::Recall(_, asked) => Some(asked as &String) == version.as_ref(),
                Errand::Try(..) => *outcome == Outcome::UnderWay,
            });
        }
        if is_known || self.discipline == Discipline::ActsFirst {
            for (place, act) in report.acts.into_iter().enumerate() {
                if place == usize::from(crash) {
                    self.leaders[leader].clear();
                    break;
                }
                self.carry_out(leader, act);
            }
        }
        Ok(())
    }

    fn decide(&self, cache: &Cache, leader: usize) -> Result<Report, String> {
        let environments = (0..3).map(|place| Surroundings {
            targets: vec![cache.apps[place].clone()],
            gates: GATES[usize::from(cache.gates[place])].clone(),
            depends_on: Vec::new(),
            reports: Vec::new(),
        });
        let given = Given {
            object: Arc::clone(&cache.object),
            checked: Ok(Arc::clone(&self.checked)),
            environments: environments.collect(),
            pull_requests: cache.pull_requests.clone(),
            votes: Votes {
                all: cache.votes.clone(),
                verified: true,
            },
            errands: self.leaders[leader].clone(),
            clusters: Vec::new(),
            now: Now::given(self.now),
        };
        let considered = consider(given);
        let decisions: Vec<Decision> = (considered.asked().iter())
            .map(|asked| asked.decision.clone())
            .collect();
        let report = report(considered, &decisions);
        begins_rightly(cache, &report, self.setup.pairwise)?;
        Ok(report)
    }

    fn carry_out(&mut self, leader: usize, act: Act) {
        match act {
            Act::Create(object) => self.change(|present| {
                let name = &object.metadata.name;
                if !present
                    .pull_requests
                    .iter()
                    .any(|it| it.metadata.name == *name)
                {
                    present.pull_requests.push(Arc::from(object));
                }
            }),
            Act::Change {
                before,
                suspend,
                close,
            } => self.change(|present| {
                let mut all = present.pull_requests.iter_mut();
                if let Some(found) = all.find(|it| it.metadata.name == before.metadata.name) {
                    let mut object = (**found).clone();
                    (object.spec.suspend, object.spec.close) = (suspend, close);
                    *found = Arc::new(object);
                }
            }),
            Act::Delete(before) => self.change(|present| {
                let is_other = |it: &Arc<PullRequest>| it.metadata.name != before.metadata.name;
                present.pull_requests.retain(is_other);
            }),
            // It has no labels.
            Act::LookAt(_) | Act::Label { .. } => {}
            Act::Recall(recall) => {
                self.leaders[leader]
                    .entry(recall.errand)
                    .or_insert(Outcome::UnderWay);
            }
            Act::Notify(notice) => {
                let errand = notice.errand.clone();
                let errands = &mut self.leaders[leader];
                if errands.insert(errand, Outcome::UnderWay).is_none() {
                    let of = (
                        notice.environment,
                        format!("{} {}", notice.token, notice.revision),
                    );
                    self.sent.entry(of).or_insert(0);
                }
            }
            Act::Admit(_) => {}
        }
    }

    /// An errand of a leader ends: with or without an effect, and with or without an answer.
    fn run_errand(&mut self, leader: usize, how: u8) -> Result<(), String> {
        let is_under_way = |(_, outcome): &(&Errand, &Outcome)| **outcome == Outcome::UnderWay;
        let found = self.leaders[leader].iter().find(is_under_way);
        let Some((errand, _)) = found.map(|(errand, outcome)| (errand.clone(), outcome)) else {
            return Ok(());
        };
        let failed = Outcome::Failed {
            why: "no answer".to_owned(),
            not_before: None,
        };
        let outcome = match &errand {
            Errand::Recall(environment, _) => match how < 200 {
                true => Some(Outcome::Recalled(self.forge.recall(environment))),
                false => None,
            },
            Errand::Try(key, _) => match how {
                0..32 => Some(failed),
                // Somebody acts on it, and the answer is lost.
                32..64 => {
                    self.hear(key)?;
                    None
                }
                // Nobody listens.
                64..96 => Some(Outcome::Done),
                _ => {
                    self.hear(key)?;
                    Some(Outcome::Done)
                }
            },
        };
        match outcome {
            Some(outcome) => drop(self.leaders[leader].insert(errand, outcome)),
            None => drop(self.leaders[leader].remove(&errand)),
        }
        Ok(())
    }

    /// The receiver of a notification acts on it.
    fn hear(&mut self, key: &str) -> Result<(), String> {
        let of = self
            .sent
            .keys()
            .find(|(_, text)| text.starts_with(key))
            .cloned();
        let Some((environment, text)) = of else {
            return Err(format!("{key} was never sent"));
        };
        let (_, revision) = text.split_once(' ').unwrap();
        self.forge
            .base
            .insert(environment.clone(), revision.to_owned());
        *self.sent.get_mut(&(environment, text)).unwrap() += 1;
        Ok(())
    }

    /// The process that acts for PullRequests. `crash`: it is killed between the forge and the status.
    fn act_for_pull_request(&mut self, pick: usize, crash: u8) -> Result<(), String> {
        let all = &self.present.pull_requests;
        let Some(object) = all.get(pick % all.len().max(1)).cloned() else {
            return Ok(());
        };
        let before = object.status.clone().unwrap_or_default();
        if before.state.is_some_and(PullRequestState::is_final) {
            return Ok(());
        }
        let about = &object.spec.about;
        let environment = about.environment.as_str();
        let is_closed = object.spec.close.is_some();
        let known = self.forge.find(&about.key).map(|it| it.state);
        let state = match (known, is_closed) {
            (Some(PullRequestState::Open), true) => {
                self.forge.find(&about.key).unwrap().state = PullRequestState::Closed;
                PullRequestState::Closed
            }
            (Some(PullRequestState::Open), false) => match self.may_merge(&object) {
                true => {
                    self.forge.merge(&about.key)?;
                    PullRequestState::Merged
                }
                false => PullRequestState::Open,
            },
            (Some(state), _) => state,
            (None, true) => PullRequestState::Closed,
            (None, false) if object.spec.suspend => return Ok(()),
            (None, false) if self.forge.base.get(environment) == about.revision.as_ref() => {
                PullRequestState::AlreadyInBase
            }
            (None, false) => {
                let weak = self.setup.wipes;
                self.forge.open(about, weak)?;
                PullRequestState::Open
            }
        };
        if crash < 24 {
            return Ok(());
        }
        let commit = Some("c".repeat(40));
        let status = PullRequestStatus {
            state: Some(state),
            commit_sha: commit.clone(),
            head_sha: commit,
            ..before
        };
        let mut object = (*object).clone();
        object.status = Some(status);
        self.change(|present| {
            let mut all = present.pull_requests.iter_mut();
            let found = all.find(|it| it.metadata.name == object.metadata.name);
            *found.unwrap() = Arc::new(object);
        });
        Ok(())
    }

    /// Whether the status of the Pipeline orders the merge.
    fn may_merge(&self, object: &PullRequest) -> bool {
        let about = &object.spec.about;
        let order = self
            .record(&about.environment)
            .and_then(|it| it.order.as_ref());
        order.is_some_and(|order| {
            order.key == about.key
                && Some(&order.pull_request) == object.metadata.name.as_ref()
                && order.not_after.0 >= self.now
        })
    }

    fn record(&self, environment: &str) -> Option<&PromotionRecord> {
        let status = self.present.object.status.as_ref()?;
        status.environments.get(environment)?.promotion.as_ref()
    }

    /// A person merges an open pull request, or closes it.
    fn person(&mut self, place: usize, how: u8) -> Result<(), String> {
        let Some(open) = self.forge.open_of(NAMES[place]) else {
            return Ok(());
        };
        let key = open.about.key.clone();
        match how % 3 {
            0 => open.state = PullRequestState::Closed,
            _ => self.forge.merge(&key)?,
        }
        Ok(())
    }

    /// Somebody approves what waits, or rejects it, or takes votes back.
    fn approve(&mut self, how: u8) {
        if how < 16 {
            return self.change(|present| present.votes.clear());
        }
        let status = self.present.object.status.as_ref();
        let prod = status.and_then(|status| status.environments.get("prod"));
        let Some(waits) = prod.and_then(|prod| prod.waiting_approval.clone()) else {
            return;
        };
        let spec = ApprovalSpec {
            gatekeeper_ref: None,
            pipeline_ref: Some(PipelineReference {
                name: "p".to_owned(),
                environment: "prod".to_owned(),
                run: waits.run,
            }),
            revision: waits.revision,
            decision: match how < 40 {
                true => Vote::Reject,
                false => Vote::Approve,
            },
            by: "alice@example.com".to_owned(),
            groups: Vec::new(),
            reason: None,
        };
        let name = format!("vote-{}", self.present.votes.len());
        let vote = Arc::new(Approval::new(&name, spec));
        self.change(|present| present.votes.push(vote));
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

    /// The faults end, the gates open, people say yes: every environment arrives at a new revision.
    pub(super) fn arrives(mut self) -> Result<(), String> {
        self.present.gates = [true; 3];
        // A replica that does not lead any more calls nobody.
        self.leaders = [BTreeMap::new(), BTreeMap::new()];
        for place in 0..3 {
            if let Sight::Unknown(_) = self.present.apps[place] {
                self.runs(place, "1.0.0", "True");
            }
        }
        self.runs(0, "2.0.0", "True");
        for _ in 0..60 {
            self.now += SignedDuration::from_secs(600);
            self.look(0, 0, u8::MAX, u8::MAX)?;
            self.approve(u8::MAX);
            for leader in 0..2 {
                self.run_errand(leader, 100)?;
            }
            for pick in 0..self.present.pull_requests.len() {
                self.act_for_pull_request(pick, u8::MAX)?;
            }
            for (place, name) in NAMES.iter().enumerate().skip(1) {
                let is_wanted =
                    |it: &super::forge::Opened| it.about.revision.as_deref() == Some("2.0.0");
                if self.forge.open_of(name).is_some_and(|it| is_wanted(it)) {
                    self.person(place, 1)?;
                }
                self.apply(place);
            }
            let status = self.present.object.status.as_ref();
            let run = status.and_then(|status| status.run.as_ref());
            if run
                .is_some_and(|run| run.revision == "2.0.0" && run.state == EnvironmentState::Passed)
            {
                return Ok(());
            }
        }
        Err(format!(
            "not everything arrives: {:#?}, {:#?}",
            self.present.object.status, self.forge
        ))
    }
}

fn app(reader: &Reader, revision: &str, ready: &str) -> App {
    reader.read(&json!({
        "metadata": {"generation": 1},
        "status": {
            "observedGeneration": 1, "lastAppliedRevision": revision,
            "lastAttemptedRevision": revision,
            "conditions": [{"type": "Ready", "status": ready, "message": "m"}],
        },
    }))
}

/// Nothing is begun over a gate that is seen closed, or a target that is not known, of the environment or
/// of those before it that count.
fn begins_rightly(cache: &Cache, report: &Report, pairwise: bool) -> Result<(), String> {
    let before = cache.object.status.as_ref();
    for (place, name) in NAMES.iter().enumerate().skip(1) {
        let before = before.and_then(|status| status.environments.get(*name));
        let before = before.and_then(|it| it.promotion.as_ref());
        let after = &report.status.environments[*name];
        let Some(record) = &after.promotion else {
            continue;
        };
        let was_begun = |it: &PromotionRecord| {
            it.key == record.key && !matches!(it.phase, Phase::Unapproved | Phase::Unattempted)
        };
        let is_begun = record.phase == Phase::Attempting
            || (record.phase == Phase::Succeeded && record.reason.as_deref() == Some("Admitted"));
        let is_known = record.pull_request.as_ref().is_some_and(|of| {
            let mut all = cache.pull_requests.iter();
            all.any(|it| it.metadata.name.as_ref() == Some(&of.name))
        });
        if !is_begun || is_known || before.is_some_and(was_begun) {
            continue;
        }
        if !cache.gates[place] {
            return Err(format!("begun over a closed gate: {record:?}"));
        }
        let first = if pairwise { place - 1 } else { 0 };
        let mut counted = cache.apps[first..=place].iter();
        if counted.any(|app| matches!(app, Sight::Unknown(_))) && before.is_some() {
            return Err(format!("begun over an unknown target: {record:?}"));
        }
    }
    Ok(())
}
