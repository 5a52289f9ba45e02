//! Step 3: one step for each environment, and what the gates are asked about it.
//!
//! What comes in: how the environment stands, which revision it is to have, the record of its newest
//! promotion, and all that is seen of that. What goes out: a [`Plan`]: the record, the state and the acts as
//! far as they do not depend on the gates, and the question to the gates where they do.

use std::sync::Arc;

use jiff::Timestamp;
use sluice_crds::pipeline::{
    Admitted, Environment as Spec, EnvironmentState, EnvironmentStatus, GateAt, MergeGate,
    MergeMethod, Phase, Promotion, PromotionRecord, StrategyKind, WaitingApproval,
};
use sluice_crds::pull_request::About;
use sluice_crds::{Pipeline, PullRequest};

use super::approval::{self, Word};
use super::child::{self, Child, is_outstanding};
use super::environment::{Environment, Standing};
use super::key::{SETTLE, Way, key, repeat_after, retry_after};
use super::run::Wanted;
use super::step::{self, Due, Reports, Step, Try};
use super::whose::Whose;
use super::{Act, Admit, Given, Notice, Outcome, ReportSight, words};
use crate::text::words::clean;
use crate::time::stamp::time;

mod closing;
mod facts;
mod merging;

pub(super) use facts::errand;

pub(super) use closing::sweep;

/// The reason of a record whose environment has run the revision.
pub(super) const ARRIVED: &str = "Arrived";
/// The reason of a record whose pull request was merged although the gates held that back.
pub(super) const MERGED_PAST_GATE: &str = "MergedPastGate";

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
    Begin(PromotionRecord),
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

/// A promotion that an environment is to have.
#[derive(Clone, Copy)]
struct Wish<'a> {
    wanted: &'a Wanted,
    promotion: &'a Promotion,
    strategy: StrategyKind<'a>,
    key: &'a str,
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
        plan.message = context.hold.map(str::to_owned);
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
        Standing::Elsewhere => match (wish, context.hold) {
            (None, _) => plan.state = EnvironmentState::Unpromoted,
            (Some(_), Some(hold)) => plan.say(EnvironmentState::Waiting, hold),
            (Some(wish), None) => at.step(&mut plan, current, wish),
        },
    }
    plan
}

fn is_of(record: &PromotionRecord, wish: Option<Wish<'_>>) -> bool {
    wish.is_some_and(|wish| (record.run, record.key.as_str()) == (wish.wanted.run, wish.key))
}

/// The same record, with nothing that lets anything be merged.
pub(super) fn frozen(record: PromotionRecord) -> PromotionRecord {
    PromotionRecord {
        gate: record.gate.map(|_| MergeGate::Pending),
        order: None,
        ..record
    }
}

/// The same record in another phase. If it was in that phase already, it keeps since when.
fn moved(record: PromotionRecord, phase: Phase, now: Timestamp) -> PromotionRecord {
    let at = match record.phase == phase {
        true => record.at,
        false => time(now),
    };
    PromotionRecord {
        phase,
        at,
        reason: None,
        message: None,
        next_attempt_at: None,
        order: None,
        ..record
    }
}

impl Wish<'_> {
    /// The first record of this promotion.
    fn fresh(&self, phase: Phase, now: Timestamp) -> PromotionRecord {
        PromotionRecord {
            run: self.wanted.run,
            revision: self.wanted.revision.as_str().to_owned(),
            key: self.key.to_owned(),
            phase,
            reason: None,
            message: None,
            at: time(now),
            attempts: 0,
            repeats: 0,
            next_attempt_at: None,
            pull_request: None,
            gate: None,
            order: None,
        }
    }

    /// The record in another phase, or a first one.
    fn record(
        &self,
        before: Option<PromotionRecord>,
        phase: Phase,
        now: Timestamp,
    ) -> PromotionRecord {
        match before {
            Some(before) => moved(before, phase, now),
            None => self.fresh(phase, now),
        }
    }

    /// Whether the environment's own gates are asked before it begins.
    fn asks_at_begin(&self, gate_at: GateAt) -> bool {
        match (self.strategy, gate_at) {
            (StrategyKind::PullRequest(_), GateAt::Merge) => false,
            (StrategyKind::PullRequest(_), GateAt::Create | GateAt::Both)
            | (StrategyKind::Notification(_) | StrategyKind::Admission(_), _) => true,
        }
    }
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

    /// A target runs the revision or begins to: whatever was on its way has done its work.
    fn arrive(
        &self,
        plan: &mut Plan,
        current: Option<PromotionRecord>,
        wish: Option<Wish<'_>>,
        is_closing: bool,
    ) {
        let Some(wish) = wish.filter(|_| !is_closing) else {
            return;
        };
        let now = self.context.now;
        let is_known = current.as_ref().is_some_and(|record| {
            record.phase == Phase::Succeeded && record.reason.as_deref() != Some("Sent")
        });
        let record = match current {
            Some(record) if is_known && record.reason.as_deref() != Some("Admitted") => {
                facts::merged(record)
            }
            current => {
                let is_open = current.as_ref().filter(|record| is_outstanding(record));
                let of = is_open.and_then(|record| record.pull_request.as_ref());
                plan.acts.extend(of.map(|it| Act::LookAt(it.name.clone())));
                PromotionRecord {
                    reason: Some(ARRIVED.to_owned()),
                    ..wish.record(current, Phase::Succeeded, now)
                }
            }
        };
        let record = frozen(record);
        if let StrategyKind::Admission(_) = wish.strategy {
            self.keep_reported(plan, &record, wish);
        }
        plan.record = Some(record);
    }

    /// A report of an admission that was wiped is written again.
    fn keep_reported(&self, plan: &mut Plan, record: &PromotionRecord, wish: Wish<'_>) {
        let tried = facts::tried(self.context, record);
        let reports = self.reports(wish);
        match step::admission(Some(record.phase), reports, tried, Due::Later) {
            Step::Act
                if record.reason.as_deref() != Some(ARRIVED) || self.is_admitted(plan, record) =>
            {
                plan.acts.extend(self.acts(record, wish.strategy));
            }
            _ => {}
        }
    }

    /// Whether the admission was made, and not only overtaken by people.
    fn is_admitted(&self, plan: &Plan, record: &PromotionRecord) -> bool {
        plan.admitted.iter().any(|it| it.run == record.run)
    }

    fn reports(&self, wish: Wish<'_>) -> Reports {
        let StrategyKind::Admission(admission) = wish.strategy else {
            return Reports::None;
        };
        match admission.gatekeeper_ref {
            None => Reports::None,
            Some(_) => {
                let revision = wish.wanted.revision.as_str();
                match lacking(self.context, self.place, self.environment.spec, revision).is_empty()
                {
                    true => Reports::All,
                    false => Reports::Lacking,
                }
            }
        }
    }

    fn step(&self, plan: &mut Plan, current: Option<PromotionRecord>, wish: Wish<'_>) {
        let now = self.context.now;
        let phase = current.as_ref().map(|record| record.phase);
        let object = facts::object(self.context, wish.key);
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
                    self.reports(wish),
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
                let phase = phase.filter(|phase| {
                    matches!(phase, Phase::Attempting | Phase::Failed | Phase::Created)
                });
                let record = match (phase, current) {
                    (Some(_), Some(record))
                        if wish.is_pull_request() && phase == Some(Phase::Failed) =>
                    {
                        moved(record, Phase::Attempting, now)
                    }
                    (Some(_), Some(record)) => frozen(record),
                    // Its object is there: it was decided before.
                    (_, current) => {
                        facts::with_child(wish.record(current, Phase::Attempting, now), object)
                    }
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

    /// It begins if people and gates say yes.
    fn begin(&self, plan: &mut Plan, current: Option<PromotionRecord>, wish: Wish<'_>) {
        let now = self.context.now;
        let (run, revision) = (wish.wanted.run, wish.wanted.revision.as_str());
        let is_first = current
            .as_ref()
            .is_none_or(|record| matches!(record.phase, Phase::Unapproved | Phase::Unattempted));
        let why = match self.word(wish) {
            Word::NotNeeded | Word::Approved => None,
            // What was begun once was approved; a rejection still stops the next try.
            Word::Awaited | Word::Unverified if !is_first => None,
            Word::Awaited => Some((
                EnvironmentState::Unapproved,
                words::awaited(revision, self.name(), run),
            )),
            Word::Unverified => Some((EnvironmentState::Unapproved, words::UNVERIFIED.to_owned())),
            Word::Rejected(by) => {
                Some((EnvironmentState::Rejected, words::rejected(revision, &by)))
            }
        };
        if let Some((state, message)) = why {
            let record = match is_first {
                true => wish.record(current, Phase::Unapproved, now),
                false => current.unwrap_or_else(|| wish.fresh(Phase::Unapproved, now)),
            };
            plan.waits_for = Some(WaitingApproval {
                revision: revision.to_owned(),
                run,
                since: record.at.clone(),
            });
            plan.record = Some(record);
            plan.say(state, message);
            return;
        }
        if let Some(ring) = self.ring() {
            plan.record = current;
            return plan.say(EnvironmentState::CyclicGates, ring);
        }
        let repeats = match current
            .as_ref()
            .map(|record| (record.phase, record.repeats))
        {
            Some((Phase::Succeeded, repeats)) => repeats.saturating_add(1),
            Some((_, repeats)) => repeats,
            None => 0,
        };
        let begun = PromotionRecord {
            repeats,
            ..wish.record(current.clone(), Phase::Attempting, now)
        };
        let begun = match wish.strategy {
            StrategyKind::PullRequest(_) => {
                let is_asked = wish.asks_at_begin(self.environment.spec.gate_at);
                facts::named(self.context, begun, is_asked)
            }
            StrategyKind::Notification(_) | StrategyKind::Admission(_) => begun,
        };
        plan.record = match is_first {
            true => Some(wish.record(current, Phase::Unattempted, now)),
            false => current,
        };
        plan.ask = Some(Ask {
            wanted: wish.wanted.clone(),
            asks_own: wish.asks_at_begin(self.environment.spec.gate_at),
            then: Then::Begin(begun),
        });
    }

    fn word(&self, wish: Wish<'_>) -> Word {
        let Context { given, whose, .. } = self.context;
        let Wanted { run, revision, .. } = wish.wanted;
        let is_needed = wish.promotion.manual;
        approval::word(&given.votes, is_needed, whose, self.name(), *run, revision)
    }

    /// The gates of this environment that depend on what it, or a later one, is admitted.
    fn ring(&self) -> Option<String> {
        let Context {
            given,
            object,
            whose,
            ..
        } = self.context;
        let behind = &given.environments.get(self.place)?.depends_on;
        let mut later = object.spec.environments.iter().skip(self.place);
        let is_in = |name: &String| {
            let is = |it: &&(String, String, String)| {
                (it.0.as_str(), it.1.as_str()) == (whose.namespace, whose.name) && it.2 == *name
            };
            behind.iter().any(|it| is(&it))
        };
        let found = later.find(|environment| is_in(&environment.name))?;
        Some(format!(
            "its gates depend on what this Pipeline admits to {}, which waits for them: take that \
             gatekeeper out of the gates of {}",
            found.name,
            self.name()
        ))
    }

    /// It is decided, and being done.
    fn under_way(&self, plan: &mut Plan, record: PromotionRecord) {
        match record.phase {
            Phase::Failed => {
                plan.wakes
                    .extend(record.next_attempt_at.as_ref().map(|at| at.0));
                plan.say(EnvironmentState::Failed, words::failed(&record));
            }
            Phase::Created => plan.state = EnvironmentState::PullRequestOpen,
            Phase::Succeeded => plan.state = EnvironmentState::Promoted,
            Phase::Unapproved | Phase::Unattempted | Phase::Attempting | Phase::Abandoned => {
                plan.state = EnvironmentState::Promoting;
            }
        }
        plan.record = Some(record);
    }

    /// The last try of an errand has failed.
    fn failed(&self, plan: &mut Plan, current: Option<PromotionRecord>, wish: Wish<'_>) {
        let now = self.context.now;
        let outcome = current.as_ref().map(facts::errand);
        let outcome = outcome.and_then(|errand| self.context.given.errands.get(&errand));
        let (why, not_before) = match outcome {
            Some(Outcome::Failed { why, not_before }) => (why.as_str(), *not_before),
            _ => ("", None),
        };
        let record = wish.record(current, Phase::Failed, now);
        let attempts = record.attempts.saturating_add(1);
        let next = now.saturating_add(retry_after(attempts)).unwrap_or(now);
        let record = PromotionRecord {
            reason: Some("Failed".to_owned()),
            message: Some(clean(why, words::LONGEST)),
            at: time(now),
            attempts,
            next_attempt_at: Some(time(next.max(not_before.unwrap_or(next)))),
            ..record
        };
        self.under_way(plan, record);
    }

    /// It is done. If nothing comes of that for a long time, it is said.
    fn finished(&self, plan: &mut Plan, record: PromotionRecord, wish: Wish<'_>) {
        let now = self.context.now;
        let is_sent = facts::is_sent(&record);
        let settled = record.at.0.saturating_add(SETTLE).unwrap_or(Timestamp::MAX);
        let again = record.at.0.saturating_add(repeat_after(record.repeats));
        let again = again.ok().filter(|_| is_sent);
        match now < settled {
            true => {
                plan.state = EnvironmentState::Promoted;
                plan.wakes.push(settled);
            }
            false => {
                let message =
                    words::no_effect(&record, is_sent, again.filter(|again| *again > now));
                plan.say(EnvironmentState::NoEffect, message);
            }
        }
        plan.wakes.extend(again);
        if let (StrategyKind::Admission(_), Reports::Lacking) = (wish.strategy, self.reports(wish))
            && facts::tried(self.context, &record) == Try::NotBegun
        {
            plan.acts.extend(self.acts(&record, wish.strategy));
        }
        plan.record = Some(record);
    }

    fn given_up(&self, plan: &mut Plan, wish: Wish<'_>) {
        let revision = &wish.wanted.revision;
        let message = format!(
            "the pull request for {revision} was closed without a merge; it is not promoted again \
             before another revision comes, or the annotation sluice.dev/retry asks for it"
        );
        plan.say(EnvironmentState::Abandoned, message);
    }
}

impl Wish<'_> {
    fn is_pull_request(&self) -> bool {
        matches!(self.strategy, StrategyKind::PullRequest(_))
    }
}

/// The places of the targets whose gatekeepers do not say a revision.
fn lacking(context: Context<'_>, place: usize, spec: &Spec, revision: &str) -> Vec<usize> {
    let surroundings = context.given.environments.get(place);
    let reports = surroundings.map_or(&[][..], |it| &it.reports);
    let says = |place: &usize| match reports.get(*place) {
        Some(ReportSight::Says(said)) => said == revision,
        Some(ReportSight::Nothing | ReportSight::Unreadable(_)) | None => false,
    };
    let places = 0..spec.targets.len();
    places.filter(|place| !says(place)).collect()
}

/// What has to be done for a promotion that is decided.
pub(super) fn acts(
    context: Context<'_>,
    place: usize,
    spec: &Spec,
    record: &PromotionRecord,
    strategy: StrategyKind<'_>,
) -> Vec<Act> {
    let name = spec.name.as_str();
    let errand = facts::errand(record);
    let act = match strategy {
        StrategyKind::PullRequest(strategy) => {
            let made = child::make(context.object, name, record, strategy, None);
            Act::Create(Box::new(made))
        }
        StrategyKind::Notification(notification) => {
            let token = match record.repeats {
                0 => record.key.clone(),
                repeats => format!("{}-{repeats}", record.key),
            };
            let first = spec.targets.first();
            Act::Notify(Box::new(Notice {
                errand,
                involved: notification.involved_object,
                app_namespace: first.map(|it| it.namespace.clone()).unwrap_or_default(),
                environment: name.to_owned(),
                revision: record.revision.clone(),
                token,
                message: format!(
                    "Promote {} {} to {name}",
                    context.object.spec.app_ref.name, record.revision
                ),
            }))
        }
        StrategyKind::Admission(admission) => {
            if admission.gatekeeper_ref.is_none() {
                return Vec::new();
            }
            Act::Admit(Box::new(Admit {
                errand,
                environment: name.to_owned(),
                revision: record.revision.clone(),
                targets: lacking(context, place, spec, &record.revision),
            }))
        }
    };
    vec![act]
}
