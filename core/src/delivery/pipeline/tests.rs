//! Looks at Pipelines, one after another, beside a forge and apps that are played.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use serde_json::{Value, json};
use sluice_crds::pipeline::{EnvironmentState, EnvironmentStatus, Phase, PromotionRecord};
use sluice_crds::pull_request::marks::LABELS as MARK;
use sluice_crds::pull_request::{PullRequestState, PullRequestStatus};
use sluice_crds::{Decision, Gate, GateSet};

use super::*;
use crate::gate::Identity;
use crate::offline::simulate::{self, Key, World};
use crate::verdict::question::Question;

mod adoption;
mod approvals;
mod bounds;
mod notifications;
mod pull_requests;
mod recreated;
mod specs;
mod steps;
mod stories;
mod targets;

pub(super) const NOON: &str = "2026-11-23T12:00:00Z";

/// A Pipeline with everything around it, in the namespace apps.
struct Play {
    object: Pipeline,
    /// The apps by environment, in the order of the targets. None: it is absent.
    apps: BTreeMap<String, Vec<Option<Value>>>,
    open: BTreeMap<String, bool>,
    freeze: bool,
    pull_requests: Vec<PullRequest>,
    votes: Votes,
    errands: BTreeMap<Errand, Outcome>,
    reports: Vec<ReportSight>,
    depends_on: Vec<(String, String, String)>,
    now: Timestamp,
    /// What was begun: `create KEY`, `notify TOKEN` and so on.
    done: Vec<String>,
    told: Vec<Decision>,
    writes: usize,
}

/// A HelmRelease that runs this healthily.
fn release(revision: &str) -> Value {
    json!({
        "metadata": {"generation": 1},
        "spec": {"values": {"image": {"tag": format!("tag-{revision}")}}},
        "status": {
            "observedGeneration": 1, "lastAttemptedRevision": revision,
            "history": [{"chartVersion": revision, "status": "deployed"}],
            "conditions": [{"type": "Ready", "status": "True", "message": ""}],
        },
    })
}

fn forge() -> Value {
    json!({
        "type": "gitea", "url": "https://git.example.com/apps.git",
        "secretRef": {"name": "token"}, "paths": ["prod/podinfo.yaml"],
    })
}

fn by_pull_request(more: &Value) -> Value {
    let mut forge = forge();
    let map = forge.as_object_mut().unwrap();
    map.extend(more.as_object().unwrap().clone());
    json!({"strategy": {"pull-request": forge}})
}

impl Play {
    /// dev, staging and prod with a target each, and this promotion.
    fn new(promotion: &Value) -> Self {
        let environment = |name: &str| {
            let gates = json!({"refs": [{"name": name}]});
            let mut value = json!({"name": name, "targets": [{"namespace": name}]});
            if name != "dev" {
                value["gates"] = gates;
            }
            value
        };
        let spec = json!({
            "appRef": {"kind": "HelmRelease", "name": "podinfo"},
            "environments": [environment("dev"), environment("staging"), environment("prod")],
            "promotion": promotion,
        });
        let mut play = Self {
            object: serde_json::from_value(json!({
                "apiVersion": "sluice.dev/v1alpha1", "kind": "Pipeline",
                "metadata": {"name": "podinfo", "namespace": "apps", "generation": 1, "uid": "u"},
                "spec": spec,
            }))
            .unwrap(),
            apps: BTreeMap::new(),
            open: BTreeMap::new(),
            freeze: false,
            pull_requests: Vec::new(),
            votes: Votes {
                all: Vec::new(),
                verified: true,
            },
            errands: BTreeMap::new(),
            reports: Vec::new(),
            depends_on: Vec::new(),
            now: NOON.parse().unwrap(),
            done: Vec::new(),
            told: Vec::new(),
            writes: 0,
        };
        for name in ["dev", "staging", "prod"] {
            play.runs(name, "6.1.0");
            play.open.insert(name.to_owned(), true);
        }
        for name in ["staging", "prod"] {
            let nothing = Outcome::Recalled(None);
            play.errands
                .insert(Errand::Recall(name.to_owned(), String::new()), nothing);
        }
        play
    }

    fn spec(&mut self, change: impl FnOnce(&mut Value)) {
        let mut spec = serde_json::to_value(&self.object.spec).unwrap();
        change(&mut spec);
        self.object.spec = serde_json::from_value(spec).unwrap();
        *self.object.metadata.generation.as_mut().unwrap() += 1;
    }

    fn runs(&mut self, environment: &str, revision: &str) {
        let app = Some(release(revision));
        self.apps.insert(environment.to_owned(), vec![app]);
    }

    fn app(&mut self, environment: &str) -> &mut Value {
        self.apps.get_mut(environment).unwrap()[0].as_mut().unwrap()
    }

    fn gate(&mut self, environment: &str, is_open: bool) {
        self.open.insert(environment.to_owned(), is_open);
    }

    fn pass(&mut self, minutes: i64) {
        self.now += SignedDuration::from_mins(minutes);
    }

    fn gates(&self, environment: &sluice_crds::pipeline::Environment) -> Gathered {
        let mut world = World::default();
        for (name, is_open) in &self.open {
            let state = if *is_open { "open" } else { "closed" };
            let gate: Gate = serde_json::from_value(json!({
                "apiVersion": "sluice.dev/v1alpha1", "kind": "Gate",
                "metadata": {"name": name, "namespace": "apps"}, "spec": {"default": state},
            }))
            .unwrap();
            world.gates.insert(Key::of(&gate.metadata), gate);
        }
        if self.freeze {
            let closed: Gate = serde_json::from_value(json!({
                "apiVersion": "sluice.dev/v1alpha1", "kind": "Gate",
                "metadata": {"name": "freeze", "namespace": "apps"}, "spec": {"default": "closed"},
            }))
            .unwrap();
            world.gates.insert(Key::of(&closed.metadata), closed);
            let policy: sluice_crds::GatePolicy = serde_json::from_value(json!({
                "apiVersion": "sluice.dev/v1alpha1", "kind": "GatePolicy",
                "metadata": {"name": "freeze"},
                "spec": {"gates": {"refs": [{"name": "freeze", "namespace": "apps"}]}},
            }))
            .unwrap();
            world
                .policies
                .insert("freeze".to_owned(), Ok(Arc::new(policy)));
        }
        let own: Option<&GateSet> = environment.gates.as_ref();
        let subject = subject(&self.object, &environment.name, What::Promote, None);
        let question = Question::from(Now::given(self.now));
        simulate::gather(&world, own, &subject, Identity::Trusted, question)
    }

    fn given(&self) -> Given {
        let checked = check(&self.object).map(Arc::new);
        let reader = checked.as_ref().ok();
        let sight = |app: &Option<Value>| match (app, reader) {
            (Some(app), Some(reader)) => Sight::Here(Arc::new(reader.read(app))),
            (None, _) | (_, None) => Sight::Unknown(Trouble {
                what: Missing::App,
                message: "there is no HelmRelease podinfo".to_owned(),
            }),
        };
        let environments = self.object.spec.environments.iter();
        let environments = environments.map(|environment| Surroundings {
            targets: self.apps[&environment.name].iter().map(sight).collect(),
            gates: self.gates(environment),
            depends_on: self.depends_on.clone(),
            reports: self.reports.clone(),
        });
        Given {
            environments: environments.collect(),
            checked,
            object: Arc::new(self.object.clone()),
            pull_requests: self.pull_requests.iter().cloned().map(Arc::new).collect(),
            votes: self.votes.clone(),
            errands: self.errands.clone(),
            clusters: Vec::new(),
            now: Now::given(self.now),
        }
    }

    /// The result of a look, without carrying anything out.
    fn decide(&mut self) -> Report {
        let considered = consider(self.given());
        let asked = considered.asked().iter();
        let told: Vec<Decision> = asked.map(|asked| asked.decision.clone()).collect();
        let report = report(considered, &told);
        self.told.extend(told);
        report
    }

    /// One look.
    fn look(&mut self) -> Report {
        let report = self.decide();
        let before = self.object.status.clone().unwrap_or_default();
        self.writes += usize::from(before != report.status);
        assert!(report.changed || report.acts.is_empty());
        self.object.status = Some(report.status.clone());
        // Outcomes are kept until the status is accepted.
        let awaited = awaited(&report.status);
        self.errands.retain(|errand, outcome| {
            let is_awaited = matches!(errand, Errand::Recall(..)) || awaited.contains(errand);
            is_awaited || *outcome == Outcome::UnderWay
        });
        for act in report.acts.clone() {
            self.carry_out(act);
        }
        report
    }

    /// Looks until nothing changes.
    fn settle(&mut self) {
        for _ in 0..20 {
            let before = self.writes;
            if self.look().acts.is_empty() && self.writes == before {
                return;
            }
        }
        panic!("it never settles: {:#?}", self.object.status);
    }

    fn carry_out(&mut self, act: Act) {
        let name = |object: &PullRequest| object.metadata.name.clone().unwrap();
        match act {
            Act::Create(object) => {
                self.done.push(format!("create {}", name(&object)));
                let is_new = !self
                    .pull_requests
                    .iter()
                    .any(|it| name(it) == name(&object));
                self.pull_requests.extend(is_new.then_some(*object));
            }
            Act::Change {
                before,
                suspend,
                close,
            } => {
                let mut all = self.pull_requests.iter_mut();
                let found = all.find(|it| name(it) == name(&before)).unwrap();
                (found.spec.suspend, found.spec.close) = (suspend, close);
                let environment = &before.spec.about.environment;
                self.done.push(format!("change {environment}"));
            }
            Act::Belong {
                before,
                labels,
                mark,
                owners,
            } => {
                let mut all = self.pull_requests.iter_mut();
                let found = all.find(|it| name(it) == name(&before)).unwrap();
                let present = found.metadata.labels.get_or_insert_default();
                for (key, value) in labels {
                    match value {
                        Some(value) => present.insert(key, value),
                        None => present.remove(&key),
                    };
                }
                let marks = mark.map(|mark| (MARK.to_owned(), mark));
                found.metadata.annotations = Some(marks.into_iter().collect());
                found.metadata.owner_references = owners.or(found.metadata.owner_references.take());
                self.done.push("belong".to_owned());
            }
            Act::Delete(before) => self.pull_requests.retain(|it| name(it) != name(&before)),
            Act::LookAt(name) => self.done.push(format!("look at {name}")),
            Act::Recall(recall) => self.done.push(format!("recall {}", recall.environment)),
            Act::Notify(notice) => {
                self.done.push(format!("notify {}", notice.environment));
                self.errands
                    .entry(notice.errand)
                    .or_insert(Outcome::UnderWay);
            }
            Act::Admit(admit) => {
                self.done.push(format!("admit {}", admit.environment));
                self.errands.insert(admit.errand, Outcome::UnderWay);
            }
        }
    }

    /// The forge does this with the newest pull request of an environment.
    fn forge(&mut self, environment: &str, state: PullRequestState) -> &mut PullRequestStatus {
        let mut all = self.pull_requests.iter_mut().rev();
        let found = all.find(|it| it.spec.about.environment == environment);
        let status = found.unwrap().status.get_or_insert_default();
        status.state = Some(state);
        status.url = Some("https://git.example.com/apps/pulls/1".to_owned());
        status.commit_sha = Some("c".repeat(40));
        status.head_sha = status.commit_sha.clone();
        status
    }

    /// Every errand that is under way ends like this.
    fn errands(&mut self, outcome: &Outcome) {
        for known in self.errands.values_mut() {
            if *known == Outcome::UnderWay {
                *known = outcome.clone();
            }
        }
    }

    fn environment(&self, name: &str) -> &EnvironmentStatus {
        &self.object.status.as_ref().unwrap().environments[name]
    }

    fn state(&self, name: &str) -> EnvironmentState {
        self.environment(name).state
    }

    fn record(&self, name: &str) -> &PromotionRecord {
        self.environment(name).promotion.as_ref().unwrap()
    }

    fn phase(&self, name: &str) -> Phase {
        self.record(name).phase
    }

    fn message(&self, name: &str) -> &str {
        self.environment(name)
            .message
            .as_deref()
            .unwrap_or_default()
    }

    /// A condition as `True Reason`.
    fn says(&self, type_: &str) -> Option<String> {
        let mut conditions = self.object.status.as_ref()?.conditions.iter();
        let found = conditions.find(|it| it.type_ == type_)?;
        Some(format!("{} {}", found.status, found.reason))
    }
}
