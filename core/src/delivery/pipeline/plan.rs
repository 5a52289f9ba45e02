//! Step 3: one step for each environment, and what the gates are asked about it.
//!
//! What comes in: how the environment stands, which revision it is to have, the record of its newest
//! promotion, and all that is seen of that. What goes out: a [`Plan`]: the record, the state and the acts as
//! far as they do not depend on the gates, and the question to the gates where they do.

use std::sync::Arc;

use jiff::Timestamp;
use sluice_crds::pipeline::{
    Admitted, EnvironmentState, EnvironmentStatus, MergeMethod, Phase, PromotionRecord,
    StrategyKind, WaitingApproval,
};
use sluice_crds::pull_request::About;
use sluice_crds::{Pipeline, PullRequest};

use super::child::{Child, is_outstanding};
use super::environment::{Environment, Standing};
use super::key::{Way, key};
use super::run::Wanted;
use super::step::{self, Step};
use super::whose::Whose;
use super::{Act, Given};

mod acts;
mod arriving;
mod beginning;
mod closing;
mod ending;
mod facts;
mod merging;
mod wish;

pub(super) use acts::acts;
pub(super) use closing::sweep;
pub(super) use facts::errand;
pub(super) use wish::frozen;
use wish::{Wish, is_of, moved};

/// Everything that a step is made from and that is the same for all environments.
#[derive(Clone, Copy)]
pub(super) struct Context<'g> {
    pub(super) given: &'g Given,
    pub(super) object: &'g Pipeline,
    pub(super) whose: Whose<'g>,
    pub(super) own: &'g [(&'g About, &'g Arc<PullRequest>)],
    /// Why nothing is begun anywhere.
    pub(super) hold: Option<&'g str>,
    pub(super) now: Timestamp,
}

/// What becomes of an environment, before the gates have answered.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) state: EnvironmentState,
    pub(super) message: Option<String>,
    pub(super) record: Option<PromotionRecord>,
    pub(super) admitted: Vec<Admitted>,
    pub(super) waits_for: Option<WaitingApproval>,
    pub(super) acts: Vec<Act>,
    pub(super) wakes: Vec<Timestamp>,
    /// The key of the pull request that may stay open. Others of this environment are closed.
    pub(super) keeps: Option<String>,
    pub(super) ask: Option<Ask>,
}

/// What the gates are asked, and what follows from a yes.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    pub(super) wanted: Wanted,
    /// Whether the environment's own gates are asked. Those of policies always are.
    pub(super) asks_own: bool,
    pub(super) then: Then,
}

/// What follows from a yes.
#[derive(Clone, Debug)]
pub(super) enum Then {
    /// The promotion begins, or is tried again. Its record as it then is.
    Begin(Box<PromotionRecord>),
    /// The PullRequest, which is not open yet, goes on trying.
    GoOn(Arc<PullRequest>),
    /// The pull request may be merged.
    Merge(Merge),
}

/// A pull request that may be merged.
#[derive(Clone, Debug)]
pub(super) struct Merge {
    /// The commit that may be merged by the controller. None: a person merges it, or there is none yet.
    pub(super) head: Option<String>,
    pub(super) method: Option<MergeMethod>,
}

/// An environment on its way through the step.
struct At<'c, 'g> {
    context: Context<'g>,
    place: usize,
    environment: &'c Environment<'g>,
}

impl Plan {
    fn new(state: EnvironmentState, before: Option<&EnvironmentStatus>) -> Self {
        Self {
            state,
            message: None,
            record: None,
            admitted: before.map_or_else(Vec::new, |it| it.admitted.clone()),
            waits_for: None,
            acts: Vec::new(),
            wakes: Vec::new(),
            keeps: None,
            ask: None,
        }
    }

    fn say(&mut self, state: EnvironmentState, message: impl Into<String>) {
        self.state = state;
        self.message = Some(message.into());
    }
}

/// The plan of an environment that nothing is decided about: what is seen is still recorded, and nothing
/// may be merged.
pub(super) fn stand_still(
    context: Context<'_>,
    state: EnvironmentState,
    before: Option<&EnvironmentStatus>,
    record: Option<&PromotionRecord>,
) -> Plan {
    let mut plan = Plan::new(state, before);
    plan.record = record.map(|record| frozen(facts::seen(context, record)));
    plan.keeps = plan.record.as_ref().map(|record| record.key.clone());
    plan
}

/// The plan of an environment of which it is not known yet what was promoted to it: nothing is written that
/// would look newer than that.
pub(super) fn wait(
    context: Context<'_>,
    before: Option<&EnvironmentStatus>,
    record: Option<&PromotionRecord>,
) -> Plan {
    let mut plan = stand_still(context, EnvironmentState::Waiting, before, record);
    plan.message = context.hold.map(str::to_owned);
    plan
}

/// The plan of the first environment: people give it its revision.
pub(super) fn first(environment: &Environment<'_>, before: Option<&EnvironmentStatus>) -> Plan {
    let mut plan = Plan::new(EnvironmentState::Passed, before);
    match (environment.trouble(), environment.steady()) {
        (_, Ok(_)) => {}
        (Some(_), Err(why)) => plan.say(EnvironmentState::Unknown, why),
        (None, Err(why)) => plan.say(EnvironmentState::NotReady, why),
    }
    plan
}

/// The plan of another environment. `reached`: every environment before it has passed.
pub(super) fn next(
    context: Context<'_>,
    place: usize,
    environment: &Environment<'_>,
    (before, record): (Option<&EnvironmentStatus>, Option<&PromotionRecord>),
    wanted: Option<&Wanted>,
    reached: bool,
) -> Plan {
    let mut plan = stand_still(context, EnvironmentState::Waiting, before, record);
    let Some(wanted) = wanted else {
        return plan;
    };
    let promotion = context.object.spec.promotion_of(environment.spec);
    let strategy = promotion.and_then(|it| Some((it, it.strategy.kind()?)));
    let name = environment.spec.name.as_str();
    let key = strategy.map(|(_, strategy)| {
        let revision = wanted.revision.as_str();
        let way = Way::of(strategy);
        key(context.whose, name, wanted.run, revision, way)
    });
    let wish = strategy.zip(key.as_deref());
    let wish = wish.map(|((promotion, strategy), key)| Wish {
        wanted,
        promotion,
        strategy,
        key,
    });
    let at = At {
        context,
        place,
        environment,
    };
    let record = record.map(|record| facts::seen(context, record));
    let (current, former) = match record {
        Some(record) if is_of(&record, wish) => (Some(record), None),
        former => (None, former),
    };
    plan.keeps = wish.map(|wish| wish.key.to_owned());
    let is_closing = at.close_others(&mut plan, wish, former.as_ref());
    at.withdraw(&mut plan, former.as_ref(), wanted);
    match environment.standing(&wanted.lineage) {
        Standing::Unknown(why) => plan.say(EnvironmentState::Unknown, why),
        Standing::Passed => {
            plan.state = EnvironmentState::Passed;
            at.arrive(&mut plan, current, wish, is_closing);
        }
        Standing::On(why) => {
            plan.say(EnvironmentState::Arriving, why);
            at.arrive(&mut plan, current, wish, is_closing);
        }
        Standing::Elsewhere if !reached => at.wait(&mut plan, current),
        Standing::Elsewhere if is_closing => plan.state = EnvironmentState::Closing,
        Standing::Elsewhere => match wish {
            None => plan.state = EnvironmentState::Unpromoted,
            Some(wish) => at.step(&mut plan, current, wish),
        },
    }
    plan
}

impl At<'_, '_> {
    fn name(&self) -> &str {
        &self.environment.spec.name
    }

    /// What the controller does once a status is accepted that says that it is decided.
    fn acts(&self, record: &PromotionRecord, strategy: StrategyKind<'_>) -> Vec<Act> {
        acts(
            self.context,
            self.place,
            self.environment.spec,
            record,
            strategy,
        )
    }

    /// It waits for the environments before it. What is under way already is not merged meanwhile.
    fn wait(&self, plan: &mut Plan, current: Option<PromotionRecord>) {
        let Some(current) = current.map(frozen) else {
            return;
        };
        if is_outstanding(&current) && current.phase == Phase::Created {
            let message = "it may be merged when every environment before it runs the revision \
                           healthily";
            plan.say(EnvironmentState::PullRequestOpen, message);
        }
        plan.record = Some(current);
    }

    fn step(&self, plan: &mut Plan, current: Option<PromotionRecord>, wish: Wish<'_>) {
        let now = self.context.now;
        let phase = current.as_ref().map(|record| record.phase);
        let object = facts::named_object(self.context, wish.key, current.as_ref());
        let child = Child::of(object);
        let step = match wish.strategy {
            StrategyKind::PullRequest(_) => step::pull_request(phase, &child),
            StrategyKind::Notification(_) => {
                let tried = facts::tried_of(self.context, current.as_ref());
                let (retry, repeat) = (facts::retry(&current, now), facts::repeat(&current, now));
                step::notification(phase, tried, retry, repeat)
            }
            StrategyKind::Admission(_) => {
                let tried = facts::tried_of(self.context, current.as_ref());
                step::admission(
                    phase,
                    self.reports(wish, current.as_ref()),
                    tried,
                    facts::retry(&current, now),
                )
            }
        };
        match step {
            Step::Begin => self.begin(plan, current, wish),
            Step::Act => {
                let record = current.unwrap_or_else(|| wish.fresh(Phase::Attempting, now));
                plan.acts.extend(self.acts(&record, wish.strategy));
                self.under_way(plan, record);
            }
            Step::Wait => {
                let record = match current {
                    // Its PullRequest does not fail any more.
                    Some(record) if record.phase == Phase::Failed && wish.is_pull_request() => {
                        moved(record, Phase::Attempting, now)
                    }
                    Some(record) => frozen(record),
                    None => wish.fresh(Phase::Attempting, now),
                };
                self.under_way(plan, record);
            }
            Step::Fails => self.fails(plan, current, wish, (&child, object)),
            Step::Failed => self.failed(plan, current, wish),
            Step::Opened => self.opened(plan, current, wish, object),
            Step::Succeeded(reason) => {
                let record = wish.record(current, Phase::Succeeded, now);
                let reason = facts::reason(&record, reason);
                let record = PromotionRecord {
                    reason: Some(reason.to_owned()),
                    gate: None,
                    ..facts::with_child(record, object)
                };
                self.finished(plan, record, wish);
            }
            Step::Abandoned(reason) => {
                let record = wish.record(current, Phase::Abandoned, now);
                let record = PromotionRecord {
                    reason: Some(reason.to_owned()),
                    gate: None,
                    ..facts::with_child(record, object)
                };
                plan.record = Some(record);
                self.given_up(plan, wish);
            }
            Step::Finished => {
                let record = current.unwrap_or_else(|| wish.fresh(Phase::Succeeded, now));
                self.finished(plan, frozen(facts::merged(record)), wish);
            }
            Step::GivenUp => {
                plan.record = current.map(frozen);
                self.given_up(plan, wish);
            }
        }
    }
}
