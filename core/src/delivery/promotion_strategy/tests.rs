//! Looks at PromotionStrategies, one after another, beside a repository and a forge that are played.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use sluice_crds::promotion_strategy::{EnvironmentState, EnvironmentStatus};
use sluice_crds::pull_request::{MergeSent, PullRequestState};
use sluice_crds::{CommitStatus, Decision, Gate, GateSet};

use super::*;
use crate::delivery::commit_status::Shown;
use crate::gate::Identity;
use crate::offline::simulate::{self, Key, World};
use crate::time::clock::Trust;
use crate::time::stamp::time;
use crate::verdict::question::Question;
use repository::Repository;

mod arrivals;
mod chain;
mod checks;
mod destinations;
mod dry;
mod files;
mod forge;
mod fresh;
mod healthy;
mod joins;
mod notes;
mod orders;
mod pulls;
mod repository;
mod reverts;
mod sequence;
mod stories;
mod words;

const NOON: &str = "2026-11-23T12:00:00Z";

/// A PromotionStrategy with everything around it, in the namespace apps.
struct Play {
    object: PromotionStrategy,
    repository: Repository,
    access: Access,
    open: BTreeMap<String, bool>,
    pull_requests: Vec<PullRequest>,
    statuses: Vec<CommitStatus>,
    kustomizations: BTreeMap<(String, String), Found>,
    owned_by: BTreeMap<String, String>,
    now: Timestamp,
    told: Vec<Decision>,
    writes: usize,
    /// Whether the forge opens what is created, and merges what is ordered.
    forge_works: bool,
    merges: Vec<(String, String)>,
    reverts: Vec<RevertCommit>,
    verified: bool,
    squashes: bool,
    clock_is_lost: bool,
    /// How old the list of the branches is, and how often a fresh one was asked for.
    list_age: SignedDuration,
    freshened: usize,
    dry_errand: Errand,
    /// What the forge was told of dry commits: the commit, how it stands, and in words.
    dry_told: Vec<(String, Shown, String)>,
    /// Gates, gatekeepers and policies beside those that are open or closed.
    world: World,
    /// What the forge has done.
    events: Vec<String>,
}

impl Play {
    /// dev, test and prod, in which the first dry commit is active, and with a check of what is active.
    fn new() -> Self {
        Self::with(&json!({
            "repoRef": {"name": "shop"},
            "activeCommitStatuses": [{"key": "health"}],
            "environments": [
                {"branch": "env/dev"}, {"branch": "env/test"},
                {"branch": "env/prod", "gates": {"refs": [{"name": "office"}]}},
            ],
        }))
    }

    fn with(spec: &Value) -> Self {
        let object: PromotionStrategy = serde_json::from_value(json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "PromotionStrategy",
            "metadata": {"name": "shop", "namespace": "apps", "generation": 1, "uid": "u"},
            "spec": spec,
        }))
        .unwrap();
        let mut play = Self {
            repository: Repository::default(),
            access: Access::Ready,
            open: BTreeMap::from([("office".to_owned(), true)]),
            pull_requests: Vec::new(),
            statuses: Vec::new(),
            kustomizations: BTreeMap::new(),
            owned_by: BTreeMap::new(),
            now: NOON.parse().unwrap(),
            told: Vec::new(),
            writes: 0,
            forge_works: true,
            merges: Vec::new(),
            reverts: Vec::new(),
            verified: true,
            squashes: false,
            clock_is_lost: false,
            list_age: SignedDuration::ZERO,
            freshened: 0,
            dry_errand: Errand::None,
            dry_told: Vec::new(),
            world: World::default(),
            events: Vec::new(),
            object,
        };
        let first = play.repository.commit_dry("first");
        for environment in play.object.spec.environments.clone() {
            play.repository.push(&environment.branch, &first, "v1");
            let next = play.object.spec.proposed_branch(&environment);
            play.repository.branch(&next, &environment.branch);
        }
        play
    }

    fn branches(&self) -> Vec<String> {
        let all = self.object.spec.environments.iter();
        all.map(|it| it.branch.clone()).collect()
    }

    /// A dry commit, and what a hydrator makes of it for every environment.
    fn hydrate(&mut self, name: &str) -> String {
        let dry = self.repository.commit_dry(name);
        for branch in self.branches() {
            self.propose(&branch, &dry, name);
        }
        dry
    }

    fn propose(&mut self, branch: &str, dry: &str, files: &str) -> String {
        self.repository.push(&format!("{branch}-next"), dry, files)
    }

    fn spec(&mut self, change: impl FnOnce(&mut Value)) {
        let mut spec = serde_json::to_value(&self.object.spec).unwrap();
        change(&mut spec);
        self.object.spec = serde_json::from_value(spec).unwrap();
        *self.object.metadata.generation.as_mut().unwrap() += 1;
    }

    /// Somebody says of the commit that a branch has what a check found out.
    fn check(&mut self, branch: &str, key: &str, phase: &str) {
        let sha = self.repository.head(branch);
        self.check_sha(&sha, key, phase);
    }

    fn check_sha(&mut self, sha: &str, key: &str, phase: &str) {
        let name = format!("{key}-{}", &sha[..8]);
        self.statuses
            .retain(|it| it.metadata.name.as_ref() != Some(&name));
        self.statuses.push(status(&name, sha, key, phase));
    }

    /// All environments are healthy, now and with whatever they get.
    fn all_healthy(&mut self) {
        for branch in self.branches() {
            self.check(&branch, "health", "success");
        }
    }

    /// A gate with that name is kept by a rule.
    fn keep(&mut self, name: &str, rule: &Value) {
        let metadata = json!({"name": name, "namespace": "apps"});
        let key = Key {
            namespace: "apps".to_owned(),
            name: name.to_owned(),
        };
        let gatekeeper = serde_json::from_value(json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Gatekeeper", "metadata": metadata, "spec": rule,
        }));
        self.world
            .gatekeepers
            .insert(key.clone(), Arc::new(gatekeeper.unwrap()));
        let gate = serde_json::from_value(json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Gate", "metadata": metadata,
            "spec": {"gatekeepers": [{"name": name}]},
        }));
        self.world.gates.insert(key, gate.unwrap());
        self.open.remove(name);
    }

    fn pass(&mut self, minutes: i64) {
        self.now += SignedDuration::from_mins(minutes);
    }

    fn gathered(&self, own: Option<&GateSet>, what: What, branch: &str) -> Gathered {
        let mut world = self.world.clone();
        for (name, is_open) in &self.open {
            let state = if *is_open { "open" } else { "closed" };
            let gate: Gate = serde_json::from_value(json!({
                "apiVersion": "sluice.dev/v1alpha1", "kind": "Gate",
                "metadata": {"name": name, "namespace": "apps"}, "spec": {"default": state},
            }))
            .unwrap();
            world.gates.insert(Key::of(&gate.metadata), gate);
        }
        let subject = subject(&self.object, branch, what, None);
        let question = Question::from(Now::given(self.now));
        simulate::gather(&world, own, &subject, Identity::Trusted, question)
    }

    fn given(&self) -> Given {
        let environments = self.object.spec.environments.iter();
        let surroundings = environments.map(|environment| {
            let branch = environment.branch.as_str();
            let active = environment.active_gates.as_ref();
            Surroundings {
                gates: self.gathered(environment.gates.as_ref(), What::Promote, branch),
                active_gates: active.map(|own| self.gathered(Some(own), What::Pass, branch)),
                revert_gates: self.gathered(
                    environment.revert_gates.as_ref(),
                    What::Revert,
                    branch,
                ),
                owned_by: self.owned_by.get(branch).cloned(),
            }
        });
        Given {
            surroundings: surroundings.collect(),
            checked: check(&self.object),
            access: self.access.clone(),
            evidence: Arc::new(self.repository.listed(self.now - self.list_age)),
            object: Arc::new(self.object.clone()),
            pull_requests: self.pull_requests.iter().cloned().map(Arc::new).collect(),
            commit_statuses: self.statuses.iter().cloned().map(Arc::new).collect(),
            reverts: self.reverts.iter().cloned().map(Arc::new).collect(),
            reverts_verified: self.verified,
            kustomizations: self.kustomizations.clone(),
            dry_errand: self.dry_errand.clone(),
            now: Now {
                at: self.now,
                trust: match self.clock_is_lost {
                    true => Trust::Lost(SignedDuration::from_mins(5)),
                    false => Trust::Good,
                },
            },
        }
    }

    /// One look: what it decides is recorded, written and done.
    fn look(&mut self) -> Report {
        let considered = consider(self.given());
        let asked = considered.asked().iter();
        let told: Vec<Decision> = asked.map(|asked| asked.decision.clone()).collect();
        self.repository.learn(considered.wanted());
        let report = report(considered, &told);
        self.told.extend(told);
        let before = self.object.status.clone().unwrap_or_default();
        self.writes += usize::from(before != report.status);
        assert!(report.changed || before == report.status);
        self.object.status = Some(report.status.clone());
        for act in report.acts.clone() {
            self.carry_out(act);
        }
        report
    }

    /// A second commit may be merged into the first environment, and nothing has been ordered.
    fn propose_second(&mut self) {
        self.hydrate("v2");
        for _ in 0..8 {
            self.look();
        }
        self.forge();
    }

    /// Looks, with the forge between, until nothing changes.
    fn settle(&mut self) {
        for _ in 0..60 {
            let (before, known) = (self.writes, self.repository.known());
            self.look();
            let moved = self.forge_works && self.forge();
            let is_told = self.dry_errand == Errand::None;
            if self.writes == before && !moved && self.repository.known() == known && is_told {
                return;
            }
        }
        panic!("it never settles: {:#?}", self.object.status);
    }

    fn carry_out(&mut self, act: Act) {
        let name = |object: &PullRequest| object.metadata.name.clone().unwrap();
        match act {
            Act::Create(object) => {
                let mut all = self.pull_requests.iter();
                let is_new = !all.any(|it| name(it) == name(&object));
                self.pull_requests.extend(is_new.then_some(*object));
            }
            Act::Change {
                before,
                title,
                description,
                close,
            } => {
                let mut all = self.pull_requests.iter_mut();
                let found = all.find(|it| name(it) == name(&before)).unwrap();
                (found.spec.title, found.spec.description) = (title, description);
                found.spec.close = close;
            }
            Act::Delete(before) => self.pull_requests.retain(|it| name(it) != name(&before)),
            Act::LookAt(_) | Act::List => {}
            Act::Freshen => self.freshened += 1,
            Act::Told => self.dry_errand = Errand::None,
            Act::Tell(task) => self.tell(task),
        }
    }

    /// What a PullRequest says before the merge of this head is sent.
    fn sent(&self, head: &str) -> MergeSent {
        MergeSent {
            head_sha: head.to_owned(),
            not_after: time(self.now + SignedDuration::from_secs(60)),
        }
    }

    fn find(&self, branch: &str) -> Option<&EnvironmentStatus> {
        let status = self.object.status.as_ref()?;
        status.environments.iter().find(|it| it.branch == branch)
    }

    fn environment(&self, branch: &str) -> &EnvironmentStatus {
        let status = self.object.status.as_ref().unwrap();
        status
            .environments
            .iter()
            .find(|it| it.branch == branch)
            .unwrap()
    }

    fn state(&self, branch: &str) -> EnvironmentState {
        self.environment(branch).state
    }

    fn reason(&self, branch: &str) -> Option<&str> {
        self.environment(branch).reason.as_deref()
    }

    fn reasons(&self, branch: &str) -> Vec<&str> {
        let waits = self.environment(branch).waits.iter();
        waits.map(|wait| wait.reason.as_str()).collect()
    }

    fn message(&self, branch: &str) -> &str {
        self.environment(branch)
            .message
            .as_deref()
            .unwrap_or_default()
    }

    /// The dry commit that an environment has.
    fn at(&self, branch: &str) -> Option<&str> {
        self.environment(branch).active.as_ref()?.dry_sha.as_deref()
    }

    fn pull_request(&mut self, branch: &str) -> &mut PullRequest {
        let mut all = self.pull_requests.iter_mut().rev();
        all.find(|it| it.spec.about.environment == branch).unwrap()
    }

    /// A condition as `True Reason`.
    fn says(&self, type_: &str) -> Option<String> {
        let mut conditions = self.object.status.as_ref()?.conditions.iter();
        let found = conditions.find(|it| it.type_ == type_)?;
        Some(format!("{} {}", found.status, found.reason))
    }
}

fn status(name: &str, sha: &str, key: &str, phase: &str) -> CommitStatus {
    serde_json::from_value(json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "CommitStatus",
        "metadata": {
            "name": name, "namespace": "apps", "labels": {"sluice.dev/commit-status": key},
        },
        "spec": {"repoRef": {"name": "shop"}, "sha": sha, "name": key, "phase": phase},
    }))
    .unwrap()
}
