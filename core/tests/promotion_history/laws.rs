//! What has to hold, whatever happens. It is said here once more, in other words than in the code that is
//! tested: what is known of the repository is looked up in it, and nothing is read from a status.
//!
//! - Nothing is ordered while a rule or a gate says no, as far as the leader could know, nor for longer than
//!   they let it pass.
//! - The controller merges by an order that was accepted, before its end, and each commit once, unless
//!   somebody has forced it away.
//! - What it merges has the files that were ordered, unless somebody has pushed in between.
//! - It joins histories only as an accepted status says.
//! - A commit status is a success only for what an accepted status lets pass.

use std::collections::BTreeSet;
use std::ops::Add;

use jiff::Timestamp;
use sluice_core::delivery::pull_request::{Joining, Telling};
use sluice_crds::commit_status::{KEY_LABELS, Phase};
use sluice_crds::pipeline::{MergeGate, Order};
use sluice_crds::pull_request::{Change, PullRequestState};
use sluice_crds::{CommitStatus, PromotionStrategyStatus, PullRequest};

use crate::forge::Pull;
use crate::git::{dry, joined, noted};
use crate::repository::Repository;
use crate::world::setup::{HEALTH, LINT, NAMES, Opening};
use crate::world::{Discipline, Leader, World};

/// What the laws are held against.
#[derive(Clone, Default)]
pub(super) struct Ledger {
    ordered: Vec<Ordered>,
    /// What the controller has merged: branches and heads.
    merged: BTreeSet<(String, String)>,
    /// What is to be joined: branches, heads, and what the branches had.
    joins: BTreeSet<(String, String, String)>,
    /// What was let pass: branches and heads.
    let_pass: BTreeSet<(String, String)>,
    /// What was taken back.
    taken: Vec<Taken>,
    /// Files that nobody has proposed and nobody has accepted.
    strange: BTreeSet<String>,
    /// How many orders hold for less than a minute.
    short: usize,
}

/// An order of an accepted status.
#[derive(Clone, Debug)]
struct Ordered {
    branch: String,
    head: String,
    not_after: Timestamp,
    /// What the branch had.
    base: Option<String>,
}

/// What a RevertCommit has taken back.
#[derive(Clone, Debug)]
struct Taken {
    branch: String,
    by: String,
    dry: String,
    merged: String,
}

/// What has come about in a history.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reached {
    /// How often the controller has merged, and how often into the last environment.
    pub(crate) merges: usize,
    pub(crate) last: usize,
    /// How many RevertCommits were carried out.
    pub(crate) reverts: usize,
    /// How often somebody has pushed or mixed what nobody has proposed.
    pub(crate) strange: usize,
    /// How many orders have ended early, as a gate or a check does.
    pub(crate) short: usize,
}

impl Add for Reached {
    type Output = Self;

    fn add(self, more: Self) -> Self {
        Self {
            merges: self.merges + more.merges,
            last: self.last + more.last,
            reverts: self.reverts + more.reverts,
            strange: self.strange + more.strange,
            short: self.short + more.short,
        }
    }
}

impl World {
    /// What has come about so far.
    pub(crate) fn reached(&self) -> Reached {
        let Ledger {
            merged,
            taken,
            strange,
            ..
        } = &self.ledger;
        let is_last = |(branch, _): &&(String, String)| branch == NAMES[NAMES.len() - 1];
        Reached {
            merges: merged.len(),
            last: merged.iter().filter(is_last).count(),
            reverts: taken.len(),
            strange: strange.len(),
            short: self.ledger.short,
        }
    }

    /// The API server accepts this status of a leader.
    pub(super) fn accepts(
        &mut self,
        leader: usize,
        status: &PromotionStrategyStatus,
    ) -> Result<(), String> {
        let before = self.api.strategy.status.clone().unwrap_or_default();
        for (place, environment) in status.environments.iter().enumerate() {
            let branch = &environment.branch;
            if environment.gate == Some(MergeGate::Success) {
                let named = environment.pull_request.as_ref();
                let cache = &self.leaders[leader].cache;
                let object = named.and_then(|it| cache.pull_requests.get(&it.name));
                let commit = object.and_then(|it| it.status.as_ref()?.commit_sha.clone());
                let proposed = environment.proposed.as_ref();
                let head = commit.or_else(|| Some(proposed?.hydrated_sha.clone()));
                let pass = head.map(|head| (branch.clone(), head));
                self.ledger.let_pass.extend(pass);
            }
            let join = environment.join.as_ref();
            let join = join.map(|it| (branch.clone(), it.head_sha.clone(), it.active_sha.clone()));
            self.ledger.joins.extend(join);
            let Some(order) = &environment.order else {
                continue;
            };
            let was = before
                .environments
                .get(place)
                .and_then(|it| it.order.as_ref());
            if was == Some(order) {
                continue;
            }
            let view = View {
                world: self,
                leader: &self.leaders[leader],
            };
            if let Some(why) = view.forbids(place, order) {
                return Err(format!("ordered for {branch}, although {why}: {order:?}"));
            }
            let base = self.leaders[leader].known.head(branch);
            let lasts = order.not_after.0.duration_since(self.now).as_secs();
            self.ledger.short += usize::from(lasts < 60);
            self.ledger.ordered.push(Ordered {
                branch: branch.clone(),
                head: order.head_sha.clone(),
                not_after: order.not_after.0,
                base,
            });
        }
        Ok(())
    }

    /// The controller joins the history of an environment to what is proposed.
    pub(super) fn joins(&self, object: &PullRequest, joining: &Joining) -> Result<(), String> {
        let branch = object.spec.target_branch.clone();
        let join = (branch, joining.head.clone(), joining.active.clone());
        match self.ledger.joins.contains(&join) {
            true => Ok(()),
            false => Err(format!(
                "{join:?} is joined, and no accepted status says so"
            )),
        }
    }

    /// The controller merges a pull request, as it has asked at some instant.
    pub(super) fn merges(
        &mut self,
        pull: &Pull,
        head: &str,
        asked: Timestamp,
    ) -> Result<(), String> {
        let branch = pull.target.as_str();
        let of = |it: &&Ordered| it.branch == branch && it.head == head;
        let mut ordered = self.ledger.ordered.iter().rev().filter(of);
        let Some(order) = ordered.clone().next() else {
            return Err(format!(
                "{pull:?} is merged without an order that was accepted"
            ));
        };
        if !ordered.any(|it| asked <= it.not_after) {
            return Err(format!(
                "{pull:?} is merged at {asked}, after the end of {order:?}"
            ));
        }
        if !self
            .ledger
            .merged
            .insert((branch.to_owned(), head.to_owned()))
        {
            return Err(format!("{head} is merged into {branch} a second time"));
        }
        let is_as_seen = order.base == self.git.find(branch);
        if is_as_seen && self.git.merged_tree(branch, head) != self.git.tree(head) {
            return Err(format!(
                "{pull:?} mixes what was ordered with other files: {order:?}"
            ));
        }
        Ok(())
    }

    /// A pull request was merged, by whom ever.
    pub(super) fn merged(&mut self, pull: &Pull, (before, head): (&str, &str), commit: &str) {
        let tree = self.git.tree(commit);
        if tree != self.git.tree(head) && tree != self.git.tree(before) {
            let place = NAMES.iter().position(|it| *it == pull.target).unwrap();
            self.pushes(place, commit);
        }
        let revert = pull.source.strip_prefix("sluice/revert-");
        let revert = revert.and_then(|it| it.split_once('-'));
        if let (Some((by, _)), Some(dry)) = (revert, dry(&self.git, before))
            && self.git.parents(head) == [before]
        {
            self.ledger.taken.push(Taken {
                branch: pull.target.clone(),
                by: by.to_owned(),
                dry,
                merged: commit.to_owned(),
            });
        }
    }

    /// A commit status is set.
    pub(super) fn tells(&self, object: &PullRequest, telling: &Telling) -> Result<(), String> {
        let of = (object.spec.target_branch.clone(), telling.commit.clone());
        // Of those who have no discipline other laws are asked.
        let is_asked = self.discipline == Discipline::StatusFirst;
        let is_success = is_asked && telling.gate == MergeGate::Success;
        match !is_success || self.ledger.let_pass.contains(&of) {
            true => Ok(()),
            false => Err(format!("{telling:?} of what nothing lets pass")),
        }
    }

    /// Somebody has pushed something to an environment. If nothing was ever seen of that, it is where it begins.
    pub(super) fn pushes(&mut self, place: usize, pushed: &str) {
        let status = self.api.strategy.status.as_ref();
        let record = status.and_then(|status| status.environments.get(place));
        if record.is_some_and(|it| it.active.is_some()) {
            let tree = self.git.tree(pushed).to_owned();
            self.ledger.strange.insert(tree);
        }
    }

    /// Somebody has forced a branch back. What it no longer has may be merged once more.
    pub(super) fn takes_away(&mut self, forced: &str) {
        let (git, head) = (&self.git, self.git.head(forced));
        let merged = &mut self.ledger.merged;
        merged.retain(|(branch, merged)| branch != forced || git.contains(&head, merged));
    }

    /// Somebody accepts a commit.
    pub(super) fn takes(&mut self, commit: &str) {
        let tree = self.git.tree(commit).to_owned();
        self.ledger.strange.remove(&tree);
    }

    /// The status is lost: whatever the environments have is where they begin, and what was taken back is
    /// known only where a branch has the commit that says so, or its pull request.
    pub(super) fn forgets(&mut self) {
        self.ledger.strange.clear();
        let head = |branch: &String| self.git.head(branch);
        self.ledger.taken.retain(|it| head(&it.branch) == it.merged);
    }
}

/// What a leader could know when it decided.
struct View<'w> {
    world: &'w World,
    leader: &'w Leader,
}

impl View<'_> {
    fn git(&self) -> &Repository {
        &self.world.git
    }

    /// Why something may not be ordered. None: it may.
    fn forbids(&self, place: usize, order: &Order) -> Option<String> {
        let cache = &self.leader.cache;
        let head = order.head_sha.as_str();
        let object = cache.pull_requests.get(&order.pull_request);
        let Some(status) = object.and_then(|it| it.status.as_ref()) else {
            return Some("it has no pull request".to_owned());
        };
        let spec = &object?.spec;
        let is_open = status.state == Some(PullRequestState::Open)
            && status.head_sha.as_deref() == Some(head)
            && spec.close.is_none();
        let mut laws = vec![
            (is_open, "its pull request is not open"),
            (!cache.strategy.spec.suspend, "the strategy is suspended"),
            (
                order.not_after.0.duration_since(self.world.now).as_secs() <= 60,
                "it holds for too long",
            ),
        ];
        match &spec.change {
            Some(Change::Tree(tree)) => laws.extend(self.revert_laws(place, &tree.parent)),
            _ => {
                let is_held = status.draft || status.labels.iter().any(|it| it == "sluice/hold");
                laws.push((!is_held && !status.conflict, "somebody holds it back"));
                laws.extend(self.laws(place, head, order.not_after.0));
            }
        }
        let broken = laws.into_iter().find(|(holds, _)| !holds);
        broken.map(|(_, why)| why.to_owned())
    }

    /// What has to hold for a revert of this commit.
    fn revert_laws(&self, place: usize, from: &str) -> Vec<(bool, &'static str)> {
        let reverts = &self.leader.cache.reverts;
        let mut of = reverts
            .iter()
            .filter(|it| it.spec.active_branch == NAMES[place]);
        let active = self.leader.known.head(NAMES[place]);
        vec![
            (
                of.any(|it| it.spec.from == from),
                "no RevertCommit asks for it",
            ),
            (
                active.as_deref() == Some(from),
                "the branch has another commit",
            ),
        ]
    }

    /// What has to hold for a promotion of what is proposed, up to the end of the order.
    fn laws(&self, place: usize, head: &str, end: Timestamp) -> Vec<(bool, &'static str)> {
        let (setup, cache, now) = (self.world.setup, &self.leader.cache, self.world.now);
        let is_open = |gate: Opening| gate.end(now).is_some_and(|closes| end <= closes);
        let proposed = self.leader.known.head(&format!("{}-next", NAMES[place]));
        let Some(new) = dry(self.git(), head) else {
            return vec![(false, "it is not said what it was made of")];
        };
        // Files stand for all dry commits up to the one that their note names.
        let stands_for: Vec<_> = [Some(new.clone()), noted(self.git(), head)]
            .into_iter()
            .flatten()
            .collect();
        let trunk = self.leader.known.head("main").unwrap_or_default();
        let before = setup.before(place).iter();
        let later =
            (0..NAMES.len()).filter(|it| *it == place || setup.before(*it).contains(&place));
        let is_automatic = !(setup.by_hand && place == 2);
        vec![
            (
                proposed.as_deref() == Some(head),
                "something else is proposed",
            ),
            (is_open(cache.gates[place]), "the gate is closed"),
            (is_automatic, "people merge there"),
            (
                self.git().contains(&trunk, &new),
                "it is not on the dry branch",
            ),
            (
                later
                    .into_iter()
                    .all(|it| stands_for.iter().any(|new| self.is_ahead(it, new))),
                "it goes back behind an environment",
            ),
            (
                before
                    .clone()
                    .all(|it| stands_for.iter().any(|new| self.is_at(*it, new))),
                "an environment before is not there",
            ),
            (
                !before.chain([&place]).any(|it| self.is_strange(*it)),
                "somebody else has pushed something",
            ),
            (
                self.proving(place, &new)
                    .iter()
                    .all(|it| self.is_healthy(*it, end)),
                "an environment before is not healthy",
            ),
            (
                !setup.proves
                    || self
                        .proving(place, &new)
                        .iter()
                        .all(|it| is_open(cache.active_gates[*it])),
                "the gate of an environment before is closed",
            ),
            (
                !setup.lints || self.is_linted(head, end),
                "it is not checked",
            ),
            (!self.is_held(place, &new), "it was taken back"),
        ]
    }

    fn active(&self, place: usize) -> String {
        self.leader.known.head(NAMES[place]).unwrap_or_default()
    }

    /// Whether something comes after what an environment has.
    fn is_ahead(&self, place: usize, new: &str) -> bool {
        let there = dry(self.git(), &self.active(place));
        there.is_none_or(|there| self.git().contains(new, &there))
    }

    /// Whether an environment has what was made of a dry commit, or a hydrator has found nothing to change in
    /// what it has.
    fn is_at(&self, place: usize, wanted: &str) -> bool {
        let (git, active) = (self.git(), self.active(place));
        let says = |said: Option<String>| said.as_deref() == Some(wanted);
        if says(dry(git, &active)) {
            return true;
        }
        let record = self.leader.cache.strategy.status.as_ref();
        let record = record.and_then(|it| it.environments.get(place)?.active.clone());
        let is_kept = record.is_some_and(|it| it.hydrated_sha == active && says(it.dry_sha));
        let next = self.leader.known.head(&format!("{}-next", NAMES[place]));
        let next = next.filter(|it| git.tree(it) == git.tree(&active));
        let is_noted = next.is_some_and(|next| {
            let joins = joined(git, &next).and_then(|it| noted(git, it));
            says(dry(git, &next)) || says(noted(git, &next)) || says(joins)
        });
        is_kept || is_noted
    }

    fn is_strange(&self, place: usize) -> bool {
        let tree = self.git().tree(&self.active(place));
        self.world.ledger.strange.contains(tree)
    }

    /// The environments whose health counts: those directly before, and those before one that has no commit of
    /// its own from it.
    fn proving(&self, place: usize, new: &str) -> BTreeSet<usize> {
        let directly = self.world.setup.directly_before(place).iter();
        let more = directly.clone().flat_map(|it| {
            let is_own = dry(self.git(), &self.active(*it)).as_deref() == Some(new);
            let more = (!is_own).then(|| self.proving(*it, new));
            more.into_iter().flatten()
        });
        more.chain(directly.copied()).collect()
    }

    /// Whether exactly one says up to the end that it is a success.
    fn passes(&self, sha: &str, key: &str, end: Timestamp) -> Option<bool> {
        let all = self.leader.cache.checks.values().filter(|it| {
            let mut labels = it.metadata.labels.iter().flatten();
            it.spec.sha == sha
                && labels.any(|(label, is)| KEY_LABELS.contains(&label.as_str()) && is == key)
        });
        let counts = |it: &CommitStatus| {
            let expires = it.spec.expires_at.as_ref().map(|at| at.0);
            let is_counted = expires.is_none_or(|at| end <= at && self.world.now < at);
            it.spec.phase == Phase::Success && is_counted
        };
        let counted: Vec<_> = all.map(|it| counts(it)).collect();
        (!counted.is_empty()).then(|| counted == [true])
    }

    fn is_healthy(&self, place: usize, end: Timestamp) -> bool {
        let active = self.active(place);
        match self.world.setup.flux {
            true => self.leader.cache.kustomizations[place].proves(&active),
            false => self.passes(&active, HEALTH, end) == Some(true),
        }
    }

    /// A commit that only joins histories is as good as the one with its files.
    fn is_linted(&self, head: &str, end: Timestamp) -> bool {
        let same = || self.passes(joined(self.git(), head)?, LINT, end);
        self.passes(head, LINT, end).or_else(same) == Some(true)
    }

    /// Whether it was taken back, and is not fixed.
    fn is_held(&self, place: usize, new: &str) -> bool {
        let taken = self.world.ledger.taken.iter();
        taken.filter(|it| it.branch == NAMES[place]).any(|taken| {
            let mut reverts = self.leader.cache.reverts.iter();
            let by = reverts.find(|it| it.metadata.name.as_ref() == Some(&taken.by));
            by.is_some_and(|by| {
                let fixes = |fix: &str| {
                    self.git().contains(new, fix) && !self.git().contains(&taken.dry, fix)
                };
                !by.spec.fixed_by.as_deref().is_some_and(fixes)
            })
        })
    }
}
