//! Step 4: what the gates are asked, and what they say.

use sluice_crds::pipeline::{Algorithm, EnvironmentState, MergeGate};

use super::environment::{Environment, Standing};
use super::memory::{self, Memory};
use super::plan::{self, Context, Plan, Then};
use super::run::Runs;
use super::whose::Whose;
use super::{Given, Surroundings, subject};
use crate::delivery::asked;
use crate::text::refusal::Refusals;

/// What a Pipeline wants to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Begin a promotion to an environment, or try it again.
    Promote,
    /// Merge its pull request, or let people merge it.
    Merge,
}

impl What {
    /// The word, as decisions have it.
    pub fn as_str(self) -> &'static str {
        match self {
            What::Promote => "promote",
            What::Merge => "merge",
        }
    }
}

/// A question to the gates, with their answer.
pub type Asked = asked::Asked<What>;

/// What the gates are asked in a look, and what they say. [`report`](super::report) continues from here.
pub struct Considered {
    pub(super) given: Given,
    pub(super) found: Found,
    /// In the order of the environments.
    pub(super) asked: Vec<Asked>,
}

/// What a look has found out before the gates answered.
pub(super) enum Found {
    /// The Pipeline is being deleted.
    Deleting,
    /// The spec is refused.
    Refused(Refusals),
    /// There is something to decide, or `spec.suspend` is set.
    Plans(Box<Plans>),
}

/// The plans of all environments.
pub(super) struct Plans {
    pub(super) memory: Memory,
    pub(super) runs: Runs,
    /// In the order of the spec.
    pub(super) all: Vec<Plan>,
    pub(super) seen: Vec<Vec<super::target::Seen>>,
    /// The environment that the newest run has reached: the first that has not passed, or the last.
    pub(super) reached: usize,
}

impl Considered {
    /// What has to be recorded before anything is done, in this order. [`report`](super::report) takes the
    /// decisions as they were recorded.
    pub fn asked(&self) -> &[Asked] {
        &self.asked
    }
}

/// What has to be asked of the gates, and what they say.
pub fn consider(given: Given) -> Considered {
    let found = find(&given);
    let asked = match &found {
        Found::Deleting | Found::Refused(_) => Vec::new(),
        Found::Plans(plans) => {
            let plans = plans.all.iter().enumerate();
            plans
                .filter_map(|(place, plan)| put(&given, place, plan))
                .collect()
        }
    };
    Considered {
        given,
        found,
        asked,
    }
}

fn find(given: &Given) -> Found {
    let object = given.object.as_ref();
    if object.metadata.deletion_timestamp.is_some() {
        return Found::Deleting;
    }
    if let Err(refusals) = &given.checked {
        return Found::Refused(refusals.clone());
    }
    let whose = Whose::of(object);
    let own = memory::own(whose, &given.pull_requests, given.now.at);
    let memory = Memory::new(given, &own);
    let status = object.status.as_ref();
    let before = |name: &str| status.and_then(|status| status.environments.get(name));
    let environments = object.spec.environments.iter().enumerate();
    let environments: Vec<Environment<'_>> = environments
        .map(|(place, spec)| {
            let surroundings: Option<&Surroundings> = given.environments.get(place);
            Environment::new(spec, surroundings, before(&spec.name))
        })
        .collect();
    let may_begin = !object.spec.suspend;
    let first = environments.first();
    let mut runs = Runs::new(object, first, &memory, may_begin, given.now);
    let context = Context {
        given,
        object,
        whose,
        own: &own,
        hold: memory.waits.as_deref(),
        now: given.now.at,
    };
    let mut all = Vec::with_capacity(environments.len());
    let mut reached = None;
    let mut have_passed = true;
    for (place, environment) in environments.iter().enumerate() {
        let name = environment.spec.name.as_str();
        let record = memory.records.get(name);
        let wanted = runs.wanted(
            object.spec.algorithm,
            place,
            &environments,
            &memory,
            given.now,
        );
        let is_reached = match (object.spec.algorithm, place.checked_sub(1)) {
            (_, None) => true,
            (Algorithm::Run, Some(_)) => have_passed,
            (Algorithm::Pairwise, Some(last)) => wanted.as_ref().is_some_and(|wanted| {
                environments[last].standing(&wanted.lineage) == Standing::Passed
            }),
        };
        let (state, before) = (EnvironmentState::Suspended, before(name));
        let plan = match (object.spec.suspend, place) {
            (true, _) => plan::stand_still(context, state, before, record),
            (false, 0) => plan::first(environment, before),
            (false, _) if memory.waits.is_some() => plan::wait(context, before, record),
            (false, _) => {
                let before = (before, record);
                plan::next(
                    context,
                    place,
                    environment,
                    before,
                    wanted.as_ref(),
                    is_reached,
                )
            }
        };
        have_passed &= match (place, &runs.newest, &wanted) {
            (0, Some(newest), _) => environment.standing(&newest.lineage) == Standing::Passed,
            (0, None, _) | (_, _, None) => false,
            (_, _, Some(wanted)) => environment.standing(&wanted.lineage) == Standing::Passed,
        };
        if !have_passed {
            reached.get_or_insert(place);
        }
        all.push(plan);
    }
    let seen = environments
        .into_iter()
        .map(|environment| environment.targets);
    let seen: Vec<_> = seen.collect();
    let reached = reached.unwrap_or(seen.len().saturating_sub(1));
    Found::Plans(Box::new(Plans {
        memory,
        runs,
        all,
        seen,
        reached,
    }))
}

/// Puts the question of a plan, if it has one, to the gates of the environment at `place`.
fn put(given: &Given, place: usize, plan: &Plan) -> Option<Asked> {
    let ask = plan.ask.as_ref()?;
    let environment = given.object.spec.environments.get(place)?;
    let what = match &ask.then {
        Then::Begin(_) | Then::GoOn(_) => What::Promote,
        Then::Merge(_) => What::Merge,
    };
    let revision = ask.wanted.revision.clone();
    let subject = subject(
        &given.object,
        &environment.name,
        what,
        Some(revision.as_str()),
    );
    let gates = &given.environments.get(place)?.gates;
    let of_policies = (!ask.asks_own).then(|| gates.of_policies());
    let gates = of_policies.as_ref().map_or(Some(gates), Option::as_ref);
    let (decision, until) = asked::decide(gates, subject, &revision, given.now);
    let takes_effect = decision.allowed
        && match &ask.then {
            Then::Begin(_) => true,
            Then::GoOn(object) => object.spec.suspend,
            Then::Merge(merge) => {
                let record = plan.record.as_ref();
                match merge.head {
                    // An order that stands is not given again.
                    Some(_) => !record.is_some_and(|it| merge.is_ordered(it, until, given.now.at)),
                    // People merge as soon as the commit status says so.
                    None => record.is_none_or(|it| it.gate != Some(MergeGate::Success)),
                }
            }
        };
    Some(Asked {
        environment: environment.name.clone(),
        what,
        decision,
        takes_effect,
        until,
        revision,
    })
}
