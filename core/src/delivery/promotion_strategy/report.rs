//! Step 6: the status, what has to be done, and when to look again.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use sluice_crds::pipeline::MergeGate;
use sluice_crds::promotion_strategy::{EnvironmentState, EnvironmentStatus};
use sluice_crds::{Decision, PromotionStrategyStatus};

use super::considered::{Considered, Found};
use super::plan::{Asked, Plan, What};
use super::{Access, Act, Given, Report, conditions, dry, is_requested, request, settled};
use crate::delivery::act::{self, Act as _, replace_ready, spec_refused, while_refused};
use crate::delivery::{current, pull_request};
use crate::text::refusal::Refusals;
use crate::time::stamp::whole_second;
use crate::verdict::condition;
use crate::verdict::question::Question;

/// What the status has to be, and what has to be done. `recorded` are the decisions of
/// [`Considered::asked`] as they were recorded, in the same order: a yes that could not be recorded has
/// become a no.
pub fn report(considered: Considered, recorded: &[Decision]) -> Report {
    let Considered {
        given,
        found,
        asked,
        ..
    } = considered;
    let before = given.object.status.clone().unwrap_or_default();
    let unchanged = || Report::without_acts(before.clone(), &before);
    match found {
        Found::Deleting => unchanged(),
        Found::Reading(wake) => Report {
            wake,
            ..unchanged()
        },
        Found::Listing(wake) => Report {
            acts: vec![Act::Freshen],
            wake,
            ..unchanged()
        },
        Found::Refused(refusals) => refused_spec(&given, &before, &refusals),
        Found::Unknown(why) => unknown(&given, &before, &why),
        Found::Plans(plans) => decided(&given, &before, plans, &asked, recorded),
    }
}

/// A spec that is refused changes nothing; and nothing may be merged by it.
fn refused_spec(given: &Given, before: &PromotionStrategyStatus, refusals: &Refusals) -> Report {
    let generation = given.object.metadata.generation;
    let wanted = spec_refused(refusals);
    let conditions = replace_ready(wanted, &before.conditions, generation, given.now.at);
    let status = PromotionStrategyStatus {
        observed_generation: generation,
        environments: before.environments.iter().map(frozen).collect(),
        conditions,
        ..before.clone()
    };
    Report::without_acts(status, before)
}

/// It is not known what the branches have: nothing may be merged.
fn unknown(given: &Given, before: &PromotionStrategyStatus, why: &str) -> Report {
    let (object, generation) = (given.object.as_ref(), given.object.metadata.generation);
    let reason = match given.access {
        Access::NotReady(_) => "AccessNotReady",
        Access::Ready => "ForgeUnavailable",
    };
    let state = match object.spec.suspend {
        true => EnvironmentState::Suspended,
        false => EnvironmentState::Unknown,
    };
    let environments = before.environments.iter().map(|it| EnvironmentStatus {
        state,
        reason: Some(reason.to_owned()),
        message: Some(why.to_owned()),
        ..frozen(it)
    });
    let environments: Vec<_> = environments.collect();
    let wanted = conditions::all(object, &environments, Some((reason, why)));
    let at = whole_second(given.now.at);
    let status = PromotionStrategyStatus {
        observed_generation: generation,
        last_handled_reconcile_at: request(object)
            .or_else(|| before.last_handled_reconcile_at.clone()),
        environments,
        conditions: condition::settle(wanted, &before.conditions, generation, at),
        ..before.clone()
    };
    Report::without_acts(status, before)
}

/// The same without anything that lets it be merged.
fn frozen(environment: &EnvironmentStatus) -> EnvironmentStatus {
    EnvironmentStatus {
        gate: environment.gate.map(|_| MergeGate::Pending),
        order: None,
        ..environment.clone()
    }
}

fn decided(
    given: &Given,
    before: &PromotionStrategyStatus,
    plans: Vec<Plan>,
    asked: &[Asked],
    recorded: &[Decision],
) -> Report {
    let (object, now) = (given.object.as_ref(), given.now.at);
    let (request, is_requested) = (request(object), is_requested(object));
    let (mut environments, mut acts, mut wakes) = (Vec::new(), Vec::new(), Vec::new());
    for (place, plan) in plans.into_iter().enumerate() {
        let branch = plan.status.branch.clone();
        let former = before.environments.iter().find(|it| it.branch == branch);
        let mut answers = asked.iter().zip(recorded);
        let answer =
            answers.find(|(asked, _)| asked.environment == branch && asked.what != What::Pass);
        let mut plan = settled::settle(plan, former, answer, now);
        if let (Some((asked, decision)), Some(surroundings)) =
            (answer, given.surroundings.get(place))
        {
            let question = Question::new(given.now, Some(&asked.revision));
            let last = former.and_then(|former| former.last_decision.as_ref());
            let gates = match asked.what {
                What::Revert => &surroundings.revert_gates,
                What::Promote | What::Pass => &surroundings.gates,
            };
            let kept = current::kept(gates, question, last, Some(decision), is_requested);
            plan.status.last_decision = kept.cloned();
        }
        environments.push(plan.status);
        acts.extend(plan.acts);
        wakes.extend(plan.wakes);
    }
    let passes = asked.iter().filter(|asked| asked.what == What::Pass);
    wakes.extend(passes.filter_map(|asked| asked.until));
    let dry = dry::report(given, &environments);
    acts.extend(dry.acts);
    wakes.extend(dry.wake);
    let is_left = acts.iter().any(|act| act.writes().is_some());
    let wanted = conditions::all(object, &environments, None);
    let wanted = while_refused(wanted, &before.conditions, is_left);
    let generation = object.metadata.generation;
    let status = PromotionStrategyStatus {
        observed_generation: generation,
        last_handled_reconcile_at: request.or_else(|| before.last_handled_reconcile_at.clone()),
        read_by: (given.evidence.read_by()).or_else(|| before.read_by.clone()),
        summary: Some(conditions::summary(&environments)),
        environments,
        dry_commit_status: dry.status,
        conditions: condition::settle(wanted, &before.conditions, generation, whole_second(now)),
    };
    Report {
        changed: status != *before || is_left,
        status,
        acts,
        wake: wakes.into_iter().filter(|at| *at > now).min(),
    }
}

impl act::Status for PromotionStrategyStatus {
    fn head(&mut self) -> (&mut Option<i64>, &mut Vec<Condition>) {
        (&mut self.observed_generation, &mut self.conditions)
    }
}

impl act::Act for Act {
    fn writes(&self) -> Option<String> {
        let object = match self {
            Self::Create(object) => object.as_ref(),
            Self::Change { before, .. } | Self::Delete(before) => before.as_ref(),
            Self::LookAt(_) | Self::List | Self::Freshen | Self::Told | Self::Tell(_) => {
                return None;
            }
        };
        Some(pull_request::called(object))
    }
}
