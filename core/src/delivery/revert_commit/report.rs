//! A look at a RevertCommit: what the PromotionStrategy of its environment says of it.

use std::sync::Arc;

use jiff::Timestamp;
use sluice_crds::promotion_strategy::RevertStatus;
use sluice_crds::revert_commit::RevertPhase;
use sluice_crds::{PromotionStrategy, RevertCommit, RevertCommitStatus};

use super::check;
use crate::delivery::act;
use crate::time::stamp::whole_second;
use crate::verdict::condition::{self, READY, RECONCILING, STALLED, Wanted, find, listed};

/// The most branches that a message lists.
const MOST_LISTED: usize = 16;

/// Everything that a look at a RevertCommit is decided from.
pub struct Given {
    /// The RevertCommit.
    pub object: Arc<RevertCommit>,
    /// The strategies of its namespace that promote in its repository.
    pub strategies: Vec<Arc<PromotionStrategy>>,
    /// The instant.
    pub now: Timestamp,
}

/// Nothing is done but to report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {}

/// How far it is, and why.
struct Said {
    phase: RevertPhase,
    standing: Standing,
    reason: String,
    message: String,
    pull_request: Option<String>,
    url: Option<String>,
}

/// What that means for those who wait for it.
#[derive(Clone, Copy)]
enum Standing {
    UnderWay,
    Over,
    Stalled,
}

/// The status.
pub fn report(given: Given) -> act::Report<RevertCommitStatus, Act> {
    let Given {
        object,
        strategies,
        now,
    } = given;
    let before = object.status.clone().unwrap_or_default();
    let generation = object.metadata.generation;
    let said = said(&object, &strategies, &before);
    let (wanted, at) = (said.conditions(), whole_second(now));
    let status = RevertCommitStatus {
        observed_generation: generation,
        phase: Some(said.phase),
        pull_request: said.pull_request,
        url: said.url,
        conditions: condition::settle(wanted, &before.conditions, generation, at),
    };
    act::Report::without_acts(status, &before)
}

fn said(
    object: &RevertCommit,
    strategies: &[Arc<PromotionStrategy>],
    before: &RevertCommitStatus,
) -> Said {
    if let Err(mistakes) = check(object) {
        return Said::stalled("InvalidSpec", mistakes.to_string());
    }
    let branch = &object.spec.active_branch;
    let mut own: Vec<_> = strategies.iter().filter(|it| has(it, branch)).collect();
    // The oldest is the one that promotes to a branch.
    own.sort_by_key(|it| {
        let created = it.metadata.creation_timestamp.as_ref().map(|at| at.0);
        (created, it.metadata.name.clone())
    });
    let name = object.metadata.name.as_deref().unwrap_or_default();
    let entry = own.iter().find_map(|it| entry(it, branch, name));
    let Some(strategy) = own.first() else {
        let gone = || Said::stalled("NoEnvironment", no_environment(object, strategies));
        return Said::of_end(before).unwrap_or_else(gone);
    };
    match entry {
        Some(entry) if is_of_older(entry, object) => Said {
            phase: entry.phase,
            pull_request: entry.pull_request.clone(),
            url: entry.url.clone(),
            ..Said::not_seen(strategy)
        },
        Some(entry) => Said::of(entry),
        // A strategy does not keep all that are over.
        None => Said::of_end(before).unwrap_or_else(|| Said::not_seen(strategy)),
    }
}

/// Whether what a strategy says is about what the RevertCommit was before somebody wrote `fixedBy`.
fn is_of_older(entry: &RevertStatus, object: &RevertCommit) -> bool {
    let of = entry.generation;
    of.is_some() && of != object.metadata.generation
}

/// Whether a strategy has an environment with this branch.
fn has(strategy: &PromotionStrategy, branch: &str) -> bool {
    let mut environments = strategy.spec.environments.iter();
    environments.any(|it| it.branch == branch)
}

fn entry<'s>(
    strategy: &'s PromotionStrategy,
    branch: &str,
    name: &str,
) -> Option<&'s RevertStatus> {
    let mut environments = strategy.status.as_ref()?.environments.iter();
    let environment = environments.find(|it| it.branch == branch)?;
    environment.reverts.iter().find(|it| it.name == name)
}

fn no_environment(object: &RevertCommit, strategies: &[Arc<PromotionStrategy>]) -> String {
    let branch = &object.spec.active_branch;
    let access = &object.spec.repo_ref.name;
    let mut branches: Vec<String> = strategies
        .iter()
        .flat_map(|it| &it.spec.environments)
        .map(|it| it.branch.clone())
        .collect();
    branches.sort();
    branches.dedup();
    match branches.is_empty() {
        true => format!(
            "no PromotionStrategy of this namespace promotes in the repository of the GitRepositoryAccess \
             {access}"
        ),
        false => format!(
            "spec.activeBranch: no PromotionStrategy of this namespace has an environment with the branch \
             {branch}; there are {}",
            listed(&branches, MOST_LISTED)
        ),
    }
}

impl Said {
    fn new(phase: RevertPhase, reason: &str, message: String) -> Self {
        Self {
            phase,
            standing: match phase {
                RevertPhase::Pending | RevertPhase::Open => Standing::UnderWay,
                RevertPhase::Merged | RevertPhase::Done => Standing::Over,
                RevertPhase::Superseded | RevertPhase::Stalled => Standing::Stalled,
            },
            reason: reason.to_owned(),
            message,
            pull_request: None,
            url: None,
        }
    }

    /// What a strategy says.
    fn of(entry: &RevertStatus) -> Self {
        let RevertStatus {
            name: _,
            generation: _,
            phase,
            reason,
            message,
            pull_request,
            url,
        } = entry;
        let (word, sentence) = words(*phase);
        let reason = Some(reason.as_str()).filter(|it| !it.is_empty());
        let message = Some(message.as_str()).filter(|it| !it.is_empty());
        Self {
            pull_request: pull_request.clone(),
            url: url.clone(),
            ..Self::new(
                *phase,
                reason.unwrap_or(word),
                message.unwrap_or(sentence).to_owned(),
            )
        }
    }

    /// What was said of its end, which stays, although nobody speaks of it any more. None: it was not over.
    fn of_end(before: &RevertCommitStatus) -> Option<Self> {
        let phase = before.phase.filter(|phase| match phase {
            RevertPhase::Merged | RevertPhase::Done | RevertPhase::Superseded => true,
            RevertPhase::Pending | RevertPhase::Open | RevertPhase::Stalled => false,
        })?;
        let is_under_way = find(&before.conditions, RECONCILING).is_some();
        let ready = find(&before.conditions, READY).filter(|_| !is_under_way);
        let (word, sentence) = words(phase);
        let reason = ready.map_or(word, |it| &it.reason);
        let message = ready.map_or(sentence, |it| &it.message);
        Some(Self {
            pull_request: before.pull_request.clone(),
            url: before.url.clone(),
            ..Self::new(phase, reason, message.to_owned())
        })
    }

    fn stalled(reason: &str, message: String) -> Self {
        Self::new(RevertPhase::Stalled, reason, message)
    }

    fn not_seen(strategy: &PromotionStrategy) -> Self {
        let name = strategy.metadata.name.as_deref().unwrap_or_default();
        let message = format!("the PromotionStrategy {name} has not looked at it yet");
        Self::new(RevertPhase::Pending, "NotSeen", message)
    }

    fn conditions(&self) -> Vec<Wanted> {
        let say = |type_, holds| Wanted::new(type_, holds, &self.reason, &self.message);
        match self.standing {
            Standing::UnderWay => vec![say(READY, false), say(RECONCILING, true)],
            Standing::Over => vec![say(READY, true)],
            Standing::Stalled => vec![say(READY, false), say(STALLED, true)],
        }
    }
}

/// A word and a sentence, where a strategy says none.
fn words(phase: RevertPhase) -> (&'static str, &'static str) {
    match phase {
        RevertPhase::Pending => ("Pending", "nothing has been done yet"),
        RevertPhase::Open => ("Open", "its pull request is open"),
        RevertPhase::Merged => ("Merged", "it is merged, and the environment is back"),
        RevertPhase::Done => ("Done", "the environment had what it leads to already"),
        RevertPhase::Superseded => (
            "Superseded",
            "the environment has another commit than the one that was to be taken back",
        ),
        RevertPhase::Stalled => ("Stalled", "a person has to do something"),
    }
}
