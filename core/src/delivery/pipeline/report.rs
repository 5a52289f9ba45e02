//! Step 5: the status, what has to be done, and when to look again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use sluice_crds::pipeline::{
    ClusterStatus, EnvironmentState, EnvironmentStatus, Phase, Run, TargetStatus,
};
use sluice_crds::pull_request::About;
use sluice_crds::{Decision, Pipeline, PipelineStatus, PullRequest};

use super::conditions::{self, Findings};
use super::considered::{Asked, Considered, Found, Plans};
use super::plan::{self, Context, Plan};
use super::reasons;
use super::whose::Whose;
use super::{Act, ClusterSight, Errand, Given, Report, child, memory, settled, words};
use crate::delivery::act::{self, replace_ready, spec_refused, still_refused};
use crate::delivery::{current, pull_request};
use crate::revision::short;
use crate::text::refusal::Refusals;
use crate::text::words::clean;
use crate::time::stamp::{time, whole_second};
use crate::verdict::condition;
use crate::verdict::question::Question;
use crate::verdict::status::requested_at;

/// How many finished PullRequests of an environment are kept, in addition to the newest.
const MOST_FINISHED: usize = 5;
/// How many bytes the texts of all targets may have together. Beyond that, versions are left out.
const MOST_TEXT: usize = 160 << 10;

/// What the status has to be, and what has to be done. `recorded` are the decisions of
/// [`Considered::asked`] as they were recorded, in the same order: a yes that could not be recorded has
/// become a no.
pub fn report(considered: Considered, recorded: &[Decision]) -> Report {
    let Considered {
        given,
        found,
        asked,
    } = considered;
    let before = given.object.status.clone().unwrap_or_default();
    match found {
        Found::Deleting => Report::without_acts(before.clone(), &before),
        Found::Refused(refusals) => refused_spec(&given, &before, &refusals),
        Found::Plans(plans) => decided(&given, &before, *plans, &asked, recorded),
    }
}

/// The tries whose outcome a status waits for, and those of admissions that are reported again if the report
/// is lost. Once the API server has accepted that status, the outcomes of all other tries can be
/// forgotten.
pub fn awaited(status: &PipelineStatus) -> BTreeSet<Errand> {
    let environments = status.environments.values();
    let tries = environments.filter_map(|environment| {
        let record = environment.promotion.as_ref()?;
        let is_admitted = || environment.admitted.iter().any(|it| it.run == record.run);
        let is_awaited = match (record.phase, record.reason.as_deref()) {
            (Phase::Attempting, _) => true,
            (Phase::Succeeded, Some(reasons::REPORTED | reasons::ADMITTED)) => true,
            (Phase::Succeeded, Some(reasons::ARRIVED)) => is_admitted(),
            _ => false,
        };
        is_awaited.then_some(record)
    });
    tries.map(plan::errand).collect()
}

/// A spec that is refused changes nothing; and nothing may be merged by it.
fn refused_spec(given: &Given, before: &PipelineStatus, refusals: &Refusals) -> Report {
    let generation = given.object.metadata.generation;
    let wanted = spec_refused(refusals);
    let mut environments = before.environments.clone();
    for environment in environments.values_mut() {
        environment.promotion = environment.promotion.take().map(plan::frozen);
    }
    let status = PipelineStatus {
        observed_generation: generation,
        conditions: replace_ready(wanted, &before.conditions, generation, given.now.at),
        environments,
        ..before.clone()
    };
    Report::without_acts(status, before)
}

fn decided(
    given: &Given,
    before: &PipelineStatus,
    plans: Plans,
    asked: &[Asked],
    recorded: &[Decision],
) -> Report {
    let object = given.object.as_ref();
    let whose = Whose::of(object);
    let own = memory::own(whose, &given.pull_requests, given.now.at);
    let Plans {
        memory,
        runs,
        all,
        seen,
        reached,
    } = plans;
    let now = given.now.at;
    let context = Context {
        given,
        object,
        whose,
        own: &own,
        hold: memory.waits.as_deref(),
        now,
    };
    let request = requested_at(&object.metadata);
    let is_requested = request.is_some() && request != before.last_handled_reconcile_at;
    let answers = || asked.iter().zip(recorded);
    let mut environments = BTreeMap::new();
    let mut keeps = BTreeMap::new();
    let (mut acts, mut wakes) = (Vec::new(), Vec::new());
    let specs = object.spec.environments.iter().zip(all).zip(seen);
    for (place, ((spec, plan), seen)) in specs.enumerate() {
        let answer = answers().find(|(asked, _)| asked.environment == spec.name);
        let plan = settled::settle(context, place, spec, plan, answer);
        let former = before.environments.get(&spec.name);
        let last = former.and_then(|former| former.last_decision.as_ref());
        let last = match (answer, given.environments.get(place)) {
            (Some((asked, decision)), Some(surroundings)) => {
                let question = Question::new(given.now, Some(&asked.revision));
                let gates = &surroundings.gates;
                current::kept(gates, question, last, Some(decision), is_requested)
            }
            _ => last,
        };
        let last_decision = last.cloned();
        let Plan {
            state,
            message,
            record,
            admitted,
            waits_for,
            acts: to_do,
            wakes: later,
            keeps: kept,
            ask: _,
        } = plan;
        acts.extend(to_do);
        wakes.extend(later);
        keeps.insert(spec.name.as_str(), kept);
        let status = EnvironmentStatus {
            state,
            message: message.map(|message| clean(&message, words::LONGEST)),
            waiting_approval: waits_for.map(|waits| words::still(waits, record.as_ref(), former)),
            promotion: record,
            admitted,
            last_decision,
            targets: seen.into_iter().map(|seen| seen.status).collect(),
        };
        environments.insert(spec.name.clone(), status);
    }
    acts.extend(
        memory
            .recalls
            .iter()
            .cloned()
            .map(|it| Act::Recall(Box::new(it))),
    );
    wakes.extend(memory.asks_at);
    acts.extend(
        own.iter()
            .filter_map(|(_, child)| child::belongs(object, child)),
    );
    if !object.spec.suspend {
        let is_kept = |about: &About| {
            let kept = keeps.get(about.environment.as_str());
            kept.is_some_and(|kept| kept.as_deref() == Some(about.key.as_str()))
        };
        // What is closed before the forge has answered would look there as if people had closed it.
        if memory.waits.is_none() {
            acts.extend(plan::sweep(object, &own, is_kept));
        }
        acts.extend(expired(&own, is_kept));
        environments.extend(left(before, object, &own));
    }
    within_bounds(&mut environments);
    // Without a run the status says that something is still to be read back.
    let newest = runs.newest.as_ref().filter(|_| memory.waits.is_none());
    let run = newest.and_then(|newest| {
        let spec = object.spec.environments.get(reached)?;
        let at = environments.get(&spec.name)?;
        let known = before.run.as_ref().filter(|run| run.id == newest.run);
        Some(run_status(
            newest.run,
            &newest.revision,
            &spec.name,
            at,
            known,
            now,
        ))
    });
    let findings = Findings {
        object,
        environments: &environments,
        troubles: &plans_troubles(given, object),
        unsteady: runs.unsteady.as_deref(),
        write_refused: still_refused(&before.conditions, !acts.is_empty()),
    };
    let wanted = conditions::all(&findings);
    let generation = object.metadata.generation;
    let status = PipelineStatus {
        observed_generation: generation,
        last_handled_reconcile_at: request.or_else(|| before.last_handled_reconcile_at.clone()),
        last_handled_retry: runs.retry,
        run,
        environments,
        clusters: clusters(&given.clusters, &before.clusters, now),
        conditions: condition::settle(wanted, &before.conditions, generation, whole_second(now)),
    };
    Report {
        changed: status != *before || !acts.is_empty(),
        status,
        acts,
        wake: wakes.into_iter().filter(|at| *at > now).min(),
    }
}

/// What is missing, in the order of the targets.
fn plans_troubles<'g>(given: &'g Given, object: &Pipeline) -> Vec<(String, &'g super::Trouble)> {
    let specs = object.spec.environments.iter().zip(&given.environments);
    let troubles = specs.flat_map(|(spec, surroundings)| {
        let targets = spec.targets.iter().zip(&surroundings.targets);
        targets.filter_map(|(target, sight)| match sight {
            super::Sight::Here(_) => None,
            super::Sight::Unknown(trouble) => {
                Some((format!("{}/{}", spec.name, target.namespace), trouble))
            }
        })
    });
    troubles.collect()
}

/// The run, as the status shows it.
fn run_status(
    id: i64,
    revision: &crate::revision::Revision,
    environment: &str,
    at: &EnvironmentStatus,
    known: Option<&Run>,
    now: Timestamp,
) -> Run {
    let held = [EnvironmentState::GatesClosed, EnvironmentState::NoEffect].contains(&at.state);
    let decision = at.last_decision.as_ref();
    let decision = decision.filter(|decision| held && !decision.allowed);
    let completed_at = known.and_then(|run| run.completed_at.clone());
    let has_passed = at.state == EnvironmentState::Passed;
    let message = at.message.clone();
    let message = message.unwrap_or_else(|| words::of_state(at.state, environment));
    Run {
        id,
        revision: revision.as_str().to_owned(),
        short: short(revision.as_str()),
        since: known.map_or_else(|| time(now), |run| run.since.clone()),
        environment: environment.to_owned(),
        state: at.state,
        message,
        decided_by: decision.and_then(|decision| decision.decided_by.first().cloned()),
        next: decision.and_then(|decision| decision.next.clone()),
        completed_at: completed_at.or_else(|| has_passed.then(|| time(now))),
    }
}

/// Finished PullRequests of which there are enough newer ones.
fn expired(own: &[(&About, &Arc<PullRequest>)], is_kept: impl Fn(&About) -> bool) -> Vec<Act> {
    let mut finished: BTreeMap<&str, Vec<(i64, &Arc<PullRequest>)>> = BTreeMap::new();
    for (about, object) in own {
        if child::is_final(object) && !is_kept(about) {
            let run = about.run.unwrap_or_default();
            let of = finished.entry(about.environment.as_str()).or_default();
            of.push((run, object));
        }
    }
    let expired = finished.into_values().flat_map(|mut all| {
        all.sort_by_key(|(run, _)| std::cmp::Reverse(*run));
        all.into_iter().skip(MOST_FINISHED)
    });
    expired
        .map(|(_, object)| Act::Delete(Arc::clone(object)))
        .collect()
}

/// What is kept of environments that the spec has no more: those whose pull request is being closed.
fn left(
    before: &PipelineStatus,
    object: &Pipeline,
    own: &[(&About, &Arc<PullRequest>)],
) -> Vec<(String, EnvironmentStatus)> {
    let specs = &object.spec.environments;
    let left = before.environments.iter().filter(|(name, _)| {
        let is_open = |(about, object): &(&About, &Arc<PullRequest>)| {
            about.environment == **name && !child::is_final(object)
        };
        !specs.iter().any(|it| it.name == **name) && own.iter().any(is_open)
    });
    let closing = left.map(|(name, status)| {
        let message = "the spec has no such environment any more; its pull request is being closed";
        let closing = EnvironmentStatus {
            state: EnvironmentState::Closing,
            message: Some(message.to_owned()),
            waiting_approval: None,
            promotion: status.promotion.clone().map(plan::frozen),
            admitted: Vec::new(),
            last_decision: None,
            targets: Vec::new(),
        };
        (name.clone(), closing)
    });
    closing.collect()
}

/// Leaves out the versions of the last targets, if all texts together are too long for a status.
fn within_bounds(environments: &mut BTreeMap<String, EnvironmentStatus>) {
    let size = |target: &TargetStatus| {
        let texts = [&target.revision, &target.attempted, &target.error];
        let texts = texts.into_iter().flatten().map(String::len).sum::<usize>();
        let cluster = target.cluster_ref.as_ref().map_or(0, |it| it.name.len());
        let versions = target.versions.iter();
        let versions: usize = versions.map(|(name, text)| name.len() + text.len()).sum();
        (texts + cluster + target.namespace.len(), versions)
    };
    let targets = || environments.values().flat_map(|it| &it.targets).map(size);
    let fixed: usize = targets().map(|(fixed, _)| fixed).sum();
    let mut left = MOST_TEXT.saturating_sub(fixed);
    let all = environments.values_mut().flat_map(|it| &mut it.targets);
    for target in all {
        let (_, versions) = size(target);
        match left.checked_sub(versions) {
            Some(rest) => left = rest,
            None => {
                left = 0;
                target.versions.clear();
            }
        }
    }
}

/// The clusters, each with since when it is as it is.
fn clusters(seen: &[ClusterSight], before: &[ClusterStatus], now: Timestamp) -> Vec<ClusterStatus> {
    let status = |sight: &ClusterSight| {
        let cluster = words::cluster(&sight.cluster);
        let reachable = sight.trouble.is_none();
        let is_same = |it: &&ClusterStatus| it.cluster == cluster && it.reachable == reachable;
        let known = before.iter().find(is_same);
        ClusterStatus {
            reachable,
            since: known.map_or_else(|| time(now), |known| known.since.clone()),
            message: sight.trouble.as_ref().map(|why| clean(why, 160)),
            cluster,
        }
    };
    let mut all: Vec<ClusterStatus> = seen.iter().map(status).collect();
    all.sort_by(|a, b| a.cluster.cmp(&b.cluster));
    all
}

impl act::Status for PipelineStatus {
    fn head(&mut self) -> (&mut Option<i64>, &mut Vec<Condition>) {
        (&mut self.observed_generation, &mut self.conditions)
    }
}

impl act::Act for Act {
    fn writes(&self) -> Option<String> {
        let object = match self {
            Self::Create(object) => object.as_ref(),
            Self::Change { before, .. } | Self::Belong { before, .. } | Self::Delete(before) => {
                before.as_ref()
            }
            Self::LookAt(_) | Self::Recall(_) | Self::Notify(_) | Self::Admit(_) => return None,
        };
        Some(pull_request::called(object))
    }
}
