//! Step 5: what the gates are asked, and what they say.

use std::collections::BTreeSet;

use jiff::Timestamp;
use sluice_crds::pipeline::MergeGate;
use sluice_crds::promotion_strategy::{CheckOf, Wait};
use sluice_crds::revert_commit::RevertMerge;

use super::at::At;
use super::checks::{self, About};
use super::evidence::{Question as Fact, Sight};
use super::graph::Graph;
use super::plan::{Asked, Merge, Plan, What};
use super::reverting::Current;
use super::seen::{Seen, own, see};
use super::tips::{Asker, environments};
use super::waits::{first_failing, wait};
use super::{Access, Given, fresh, merges, pulls, rules, subject};
use crate::delivery::asked;
use crate::revision::Revision;
use crate::text::refusal::Refusals;

/// What the gates are asked in a look, and what they say. [`report`](super::report) continues from here.
pub struct Considered {
    pub(super) given: Given,
    pub(super) found: Found,
    /// In the order of the environments.
    pub(super) asked: Vec<Asked>,
    wanted: BTreeSet<Fact>,
}

/// What a look has found out before the gates answered.
pub(super) enum Found {
    /// The strategy is being deleted.
    Deleting,
    /// The spec is refused.
    Refused(Refusals),
    /// The repository is being read, and nothing that was decided before has to be taken back. When to look
    /// again in any case.
    Reading(Option<Timestamp>),
    /// The same where all that is missing is a fresh list of the branches, before a merge is ordered.
    Listing(Option<Timestamp>),
    /// It is not known where the branches point to: why.
    Unknown(String),
    /// There is something to report.
    Plans(Vec<Plan>),
}

impl Considered {
    /// What has to be recorded before anything is done, in this order. [`report`](super::report) takes the
    /// decisions as they were recorded.
    pub fn asked(&self) -> &[Asked] {
        &self.asked
    }

    /// Whether something is decided. Otherwise the repository is being read, and what was decided before
    /// stands.
    pub fn is_decided(&self) -> bool {
        !matches!(self.found, Found::Reading(_) | Found::Listing(_))
    }

    /// What has to be asked of the repository.
    pub fn wanted(&self) -> &BTreeSet<Fact> {
        &self.wanted
    }
}

/// What has to be asked of the gates, and what they say.
pub fn consider(given: Given) -> Considered {
    let mut asked = Vec::new();
    let (found, wanted) = find(&given, &mut asked);
    if matches!(found, Found::Reading(_) | Found::Listing(_)) {
        asked.clear();
    }
    Considered {
        given,
        found,
        asked,
        wanted,
    }
}

fn find(given: &Given, asked: &mut Vec<Asked>) -> (Found, BTreeSet<Fact>) {
    let object = given.object.as_ref();
    if object.metadata.deletion_timestamp.is_some() {
        return (Found::Deleting, BTreeSet::new());
    }
    if let Err(refusals) = &given.checked {
        return (Found::Refused(refusals.clone()), BTreeSet::new());
    }
    let asker = Asker::new(given.evidence.as_ref());
    let unknown = |why: String| (Found::Unknown(why), BTreeSet::new());
    let heads = match (&given.access, asker.heads()) {
        (Access::NotReady(why), _) => return unknown(why.clone()),
        (Access::Ready, Sight::Known(heads)) => heads,
        (Access::Ready, Sight::Pending) => {
            return (Found::Reading(ends(given, &[])), BTreeSet::new());
        }
        (Access::Ready, Sight::Failed(why)) => return unknown(why),
        (Access::Ready, Sight::Absent) => {
            return unknown("the repository has no branches".to_owned());
        }
    };
    let records = object
        .status
        .as_ref()
        .map(|status| status.environments.as_slice());
    let envs = environments(&asker, &heads, &object.spec, records.unwrap_or_default());
    let graph = Graph::new(&object.spec.environments);
    let own = own(given);
    let is_quiet = envs.iter().all(|env| env.proposes == Sight::Known(false));
    let all: Vec<_> = envs
        .into_iter()
        .map(|env| see(given, &asker, &own, env, is_quiet))
        .collect();
    let mut plans: Vec<Plan> = Vec::with_capacity(all.len());
    for seen in &all {
        let at = seen.env.proposed.as_ref().map(|tip| At {
            given,
            asker: &asker,
            heads: &heads,
            graph: &graph,
            all: &all,
            me: seen,
            tip,
        });
        let at = at.filter(|_| seen.env.proposes != Sight::Known(false));
        plans.push(match &seen.reverting {
            Some(current) => going_back(given, &asker, seen, current, asked),
            None => going_on(given, seen, at.as_ref(), asked),
        });
    }
    if let Some(last) = plans.last_mut() {
        last.acts.extend(pulls::swept(given, &own));
    }
    // What is decided from a part would be decided again: it waits, unless it takes something back.
    let takes_back = all
        .iter()
        .zip(&plans)
        .any(|(seen, plan)| takes_back(seen, plan, asked));
    let due = fresh::due(&plans, asked);
    let is_stale = !due.is_empty() && fresh::is_stale(given);
    let found = if asker.waits() && !takes_back {
        Found::Reading(ends(given, asked))
    } else if is_stale && !takes_back && !given.evidence.is_list_failing() {
        // That takes a moment, for which nothing is written.
        Found::Listing(ends(given, asked))
    } else {
        if is_stale {
            fresh::hold(given, &mut plans, asked, &due);
        }
        Found::Plans(plans)
    };
    (found, asker.into_wanted())
}

/// When something that the status lets pass may have to be taken back.
fn ends(given: &Given, asked: &[Asked]) -> Option<Timestamp> {
    let status = given.object.status.as_ref();
    let orders = status.into_iter().flat_map(|status| &status.environments);
    let orders = orders.filter_map(|it| Some(it.order.as_ref()?.not_after.0));
    let answers = asked.iter().filter_map(|asked| asked.until);
    let all = orders.chain(answers).filter(|end| *end > given.now.at);
    all.min()
}

/// The plan of an environment that gets what is proposed, if something is.
fn going_on(
    given: &Given,
    seen: &Seen<'_>,
    at: Option<&At<'_, '_>>,
    asked: &mut Vec<Asked>,
) -> Plan {
    let (mut waits, join) = match at {
        Some(at) => rules::waits(at),
        // Nothing is proposed.
        None => (
            rules::unusable(given, &seen.env).into_iter().collect(),
            None,
        ),
    };
    let first = asked.len();
    if let Some(at) = at.filter(|_| waits.is_empty()) {
        waits.extend(active_gates(at, asked));
    }
    let passes = asked.iter().skip(first).filter_map(|pass| pass.until);
    let until = at.and_then(At::checks_end).into_iter().chain(passes).min();
    let merge = at.and_then(|at| merge(at, until));
    let is_reading = !waits.is_empty() && waits.iter().all(|it| it.reason == "ForgePending");
    // While the repository is being read, an order stands only as long as its gates are open.
    if waits.is_empty() || (is_reading && lets_merge(seen)) {
        let asks = merge.as_ref();
        asked.extend(asks.and_then(|merge| promote(given, seen, merge)));
    }
    let merge = merge.filter(|_| waits.is_empty());
    let mut plan = super::settled::plan(given, seen, waits, merge);
    plan.status.join = join;
    plan
}

/// The plan of an environment that is being brought back.
fn going_back(
    given: &Given,
    asker: &Asker<'_>,
    seen: &Seen<'_>,
    current: &Current<'_>,
    asked: &mut Vec<Asked>,
) -> Plan {
    let environment = seen.env.spec;
    let mut waits: Vec<Wait> = rules::of_revert(&seen.pull).into_iter().collect();
    let object = seen.pull.object.filter(|_| waits.is_empty());
    let commit = object.and_then(|object| object.status.as_ref()?.commit_sha.clone());
    let merges = current.merges(environment);
    let mut until = None;
    if let (Some(commit), RevertMerge::AfterChecks) = (&commit, merges) {
        let about = About {
            sha: commit,
            since: None,
            same: None,
            recorded: &[],
        };
        let checks = checks::of(given, asker, environment, CheckOf::Proposed, about);
        waits.extend(first_failing(&checks, "the revert"));
        until = checks.iter().filter_map(|check| check.next).min();
    }
    let merge = object.zip(commit).filter(|_| waits.is_empty());
    let merge = merge.and_then(|(object, head)| {
        Some(Merge {
            pull_request: object.metadata.name.clone()?,
            key: object.spec.about.key.clone(),
            about: head.clone(),
            head,
            method: environment.merge_method,
            is_auto: merges != RevertMerge::Manual,
            revert: Some(current.name().to_owned()),
            refused: merges::refused(given, object),
            until,
        })
    });
    asked.extend(merge.as_ref().and_then(|merge| promote(given, seen, merge)));
    super::settled::plan(given, seen, waits, merge)
}

/// Whether the status lets a pull request be merged that something holds back now, other than that the
/// repository is being read.
fn takes_back(seen: &Seen<'_>, plan: &Plan, asked: &[Asked]) -> bool {
    let is_closed = asked.iter().any(|asked| {
        asked.environment == plan.status.branch
            && asked.what == What::Promote
            && !asked.decision.allowed
    });
    let waits = plan.status.waits.iter();
    let is_held = is_closed || waits.into_iter().any(|it| it.reason != "ForgePending");
    let is_merged = seen.pull.standing == pulls::Standing::Merged;
    let is_known = seen.reverting.is_some() || seen.env.proposes == Sight::Known(true);
    lets_merge(seen) && is_held && !is_merged && is_known
}

/// Whether the status lets its pull request be merged.
fn lets_merge(seen: &Seen<'_>) -> bool {
    let before = seen.env.record;
    before.is_some_and(|it| it.order.is_some() || it.gate == Some(MergeGate::Success))
}

/// What is asked of gates: a branch at a commit, as Flux writes it.
fn revision(branch: &str, sha: &str) -> Option<Revision> {
    Revision::parse(&format!("{branch}@sha1:{sha}")).ok()
}

/// The gates of the environments before: whether what they have may go on.
fn active_gates(at: &At<'_, '_>, asked: &mut Vec<Asked>) -> Option<Wait> {
    at.proving().into_iter().find_map(|place| {
        let earlier = at.all.get(place)?;
        let gates = at.given.surroundings.get(place)?.active_gates.as_ref()?;
        let branch = earlier.env.branch();
        let active = earlier.env.active.as_ref()?;
        let Some(revision) = revision(branch, &active.sha) else {
            return Some(unaskable(branch));
        };
        let subject = subject(
            &at.given.object,
            branch,
            What::Pass,
            Some(revision.as_str()),
        );
        let (decision, until) = asked::decide(Some(gates), subject, &revision, at.given.now);
        let wait = (!decision.allowed).then(|| Wait {
            next: decision.next.clone(),
            ..wait("GateClosed", format!("{branch}: {}", decision.message))
        });
        asked.push(Asked {
            environment: branch.to_owned(),
            what: What::Pass,
            decision,
            takes_effect: false,
            until,
            revision,
        });
        wait
    })
}

fn unaskable(branch: &str) -> Wait {
    let message = format!(
        "the gates cannot be asked about a commit of {branch}; give the branch a simpler name"
    );
    wait("GateClosed", message)
}

fn merge(at: &At<'_, '_>, until: Option<Timestamp>) -> Option<Merge> {
    let object = at.me.pull.object?;
    Some(Merge {
        pull_request: object.metadata.name.clone()?,
        key: object.spec.about.key.clone(),
        head: at.tip.sha.clone(),
        about: at.tip.joined.as_ref().unwrap_or(&at.tip.sha).clone(),
        method: at.me.env.spec.merge_method,
        is_auto: at.me.env.spec.auto_merge,
        revert: None,
        refused: merges::refused(at.given, object),
        until,
    })
}

/// Asks the gates of an environment about the merge.
fn promote(given: &Given, seen: &Seen<'_>, merge: &Merge) -> Option<Asked> {
    let branch = seen.env.branch();
    let revision = revision(branch, &merge.about)?;
    let surroundings = given.surroundings.get(seen.env.place)?;
    let (gates, what) = match merge.revert {
        Some(_) => (&surroundings.revert_gates, What::Revert),
        None => (&surroundings.gates, What::Promote),
    };
    let subject = subject(&given.object, branch, what, Some(revision.as_str()));
    let (decision, until) = asked::decide(Some(gates), subject, &revision, given.now);
    let until = [until, merge.until].into_iter().flatten().min();
    let before = seen.env.record;
    let takes_effect = decision.allowed
        && match merge.is_auto {
            // An order that stands is not given again.
            true => {
                let is_ordered = |it| merge.is_ordered(it, until, given.now.at);
                !before.is_some_and(is_ordered) && merge.put_off().is_none()
            }
            // People merge as soon as the commit status says so.
            false => before.is_none_or(|it| {
                let head = it.proposed.as_ref().map(|tip| &tip.hydrated_sha);
                let is_same = merge.revert.is_some() || head == Some(&merge.head);
                it.gate != Some(MergeGate::Success) || !is_same
            }),
        };
    Some(Asked {
        environment: branch.to_owned(),
        what,
        decision,
        takes_effect,
        until,
        revision,
    })
}
