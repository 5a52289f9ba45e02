//! What the status has to be, what has to be done, and when to look again.

use std::ops::Deref;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use sluice_crds::RolloutStatus;
use sluice_crds::rollout::{BatchRollingState, Held, MetricRecord, RollingState};

use super::acts::{Act, acts, is_withheld};
use super::calls::batch;
use super::chain::Chain;
use super::conditions;
use super::considered::{Answer, Considered, Told};
use super::course::{count, pods};
use super::desk::{Desk, counted};
use super::given::Given;
use super::look::{Gates, deadline, news_until};
use super::plan::Plan;
use super::signals::Signal;
use super::state::State;
use super::step::Step;
use super::transition::News;
use crate::delivery::act::{self, Act as _};
use crate::delivery::current;
use crate::revision::Revision;
use crate::time::clock::Trust;
use crate::time::span::later;
use crate::time::stamp::{time, whole_second};
use crate::verdict::condition::{self, READY, Wanted};
use crate::verdict::question::Question;
use crate::verdict::status::requested_at;

/// How often the status is written at most while pods come up and nothing else happens.
const SELDOM: SignedDuration = SignedDuration::from_secs(10);
/// How long something may be unsure before it is told.
const PATIENCE: SignedDuration = SignedDuration::from_secs(30);

/// The result of a look. What has to be done is what the status intends that the object has already, never what
/// is new in this look.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The status, and what has to be done.
    pub report: act::Report<RolloutStatus, Act>,
    /// What people are told, once the status was accepted. Then nothing has to be done in this look.
    pub news: Vec<News>,
    /// Whether the answers of hooks were heard: once the status was accepted, they are not needed any more.
    pub hears: bool,
}

impl Deref for Report {
    type Target = act::Report<RolloutStatus, Act>;

    fn deref(&self) -> &Self::Target {
        &self.report
    }
}

impl act::Status for RolloutStatus {
    fn head(&mut self) -> (&mut Option<i64>, &mut Vec<Condition>) {
        (&mut self.observed_generation, &mut self.conditions)
    }
}

/// What the status has to be, and what has to be done.
pub(super) fn report(
    given: &Given,
    plan: &Plan,
    considered: &Considered,
    answer: &Answer,
) -> Report {
    let again = &considered.again;
    let desk = Desk { given, plan, again };
    let before = given.object.status.clone().unwrap_or_default();
    let gates = match (answer, &considered.question) {
        (Answer::NoGates, _) => Gates::None,
        (Answer::Told(told), Some(question)) => Gates::Told(question.batch, &told.decision),
        (Answer::Told(_), None) | (Answer::NotAsked, _) => Gates::Unasked,
    };
    let chain = Chain::new(&desk, &before, gates);
    let acts = match chain.draft.moved {
        true => Vec::new(),
        false => acts(&desk, &before, &chain),
    };
    let told = match answer {
        Answer::Told(told) if considered.question.is_some() => Some(told.as_ref()),
        Answer::Told(_) | Answer::NoGates | Answer::NotAsked => None,
    };
    finish(&desk, &before, chain, acts, told)
}

fn finish(
    desk: &Desk<'_>,
    before: &RolloutStatus,
    mut chain: Chain,
    acts: Vec<Act>,
    told: Option<&Told>,
) -> Report {
    let kept = decided(desk, before, &mut chain, told);
    numbers(desk, before, &mut chain);
    held(desk, &mut chain, kept);
    timed(desk, &mut chain);
    let object = desk.object();
    let request = requested_at(&object.metadata);
    let is_quiet = says_nothing_new(desk, before, &chain);
    let status = &mut chain.draft.status;
    status.observed_generation = match is_quiet {
        true => before.observed_generation,
        false => object.metadata.generation,
    };
    status.last_handled_reconcile_at = request.or_else(|| before.last_handled_reconcile_at.clone());
    let done = status.batches.iter().filter(|it| it.done.is_some()).count();
    status.progress = status
        .run
        .is_some()
        .then(|| format!("{done}/{}", desk.batches()));
    let is_withheld = !chain.draft.moved && is_withheld(desk, before, &chain);
    let is_left = is_withheld || acts.iter().any(|act| act.writes().is_some());
    let wanted = conditions::all(desk, &chain);
    let wanted = act::while_refused(wanted, &before.conditions, is_left);
    let conditions = match is_quiet {
        true => before.conditions.clone(),
        false => settle(wanted, before, object.metadata.generation, desk.at()),
    };
    let mut status = chain.draft.status.clone();
    status.conditions = conditions;
    let mut wakes = wakes(desk, &chain, &status, told);
    if let Some(at) = withheld(desk, before, &status, chain.draft.moved) {
        status = before.clone();
        wakes.push(at);
    }
    let report = act::Report {
        changed: status != *before,
        status,
        acts,
        wake: match chain.draft.moved {
            true => Some(desk.at()),
            false => wakes.into_iter().filter(|at| *at > desk.at()).min(),
        },
    };
    Report {
        report,
        news: chain.draft.news,
        hears: true,
    }
}

pub(super) fn settle(
    wanted: Vec<Wanted>,
    before: &RolloutStatus,
    generation: Option<i64>,
    now: Timestamp,
) -> Vec<k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition> {
    condition::settle(wanted, &before.conditions, generation, whole_second(now))
}

/// Whether the run is held by something that is not up to date, for so short a time that nobody is told.
fn is_untold(desk: &Desk<'_>, chain: &Chain) -> bool {
    let since = desk.given.unsure_since;
    chain.step == Step::Hold
        && chain.decides == Some(Signal::Stale)
        && since.is_none_or(|since| desk.at() < later(since, PATIENCE))
}

/// Whether the conditions stay as they are, and about which spec they are: nobody is told yet what holds it.
fn says_nothing_new(desk: &Desk<'_>, before: &RolloutStatus, chain: &Chain) -> bool {
    is_untold(desk, chain)
        && !chain.draft.moved
        && condition::find(&before.conditions, READY).is_some()
}

/// The decision that the status has. Returns whether it is the one that it had.
fn decided(
    desk: &Desk<'_>,
    before: &RolloutStatus,
    chain: &mut Chain,
    told: Option<&Told>,
) -> bool {
    let Some(told) = told else {
        return true;
    };
    let object = desk.object();
    let request = requested_at(&object.metadata);
    let is_requested = request.is_some() && request != before.last_handled_reconcile_at;
    let revision = told.decision.subject.revision.as_deref();
    let revision = revision.and_then(|text| Revision::parse(text).ok());
    let question = Question::new(desk.now(), revision.as_ref());
    let last = before.last_decision.as_ref();
    let kept = current::kept(
        &told.gates,
        question,
        last,
        Some(&told.decision),
        is_requested,
    );
    chain.draft.status.last_decision = kept.cloned();
    kept == last
}

/// Pods of the new version, and whether there are more than ever before in this batch.
fn numbers(desk: &Desk<'_>, before: &RolloutStatus, chain: &mut Chain) {
    let is_over = chain.state.is_over() && !chain.draft.moved;
    let Some(run) = chain.draft.status.run.clone().filter(|_| !is_over) else {
        return;
    };
    let members = desk.of_run(&run);
    let target = members.first().and_then(|(_, member)| member.as_ref());
    if let Some((_, target)) = target {
        let (upgraded, available) = counted(desk, &run, target);
        chain.draft.status.upgraded_replicas = Some(upgraded);
        let available = available.or(before.upgraded_ready_replicas);
        chain.draft.status.upgraded_ready_replicas = available;
    }
    if chain.look.is_ready
        && chain.state == State::BatchVerifying
        && let Some(batch) = {
            let index = batch(&chain.draft.status);
            chain.draft.status.batches.get_mut(index)
        }
        && batch.ready.is_none()
    {
        batch.ready = Some(time(desk.at()));
        renew(desk, &mut chain.draft.status);
    }
    if chain.state == State::BatchVerifying && !chain.draft.moved {
        let metrics = match chain.look.metrics.take() {
            Some(metrics) => metrics,
            // What was good may have gone bad meanwhile. What was bad is not good again.
            None if chain.decides == Some(Signal::Stale) => {
                let all = before.metrics.iter();
                let bad = all.filter(|it| it.within_since.is_none());
                bad.cloned().collect()
            }
            None => before.metrics.iter().map(broken_off).collect(),
        };
        let begins = metrics.iter().any(|it| begins_anew(it, before));
        chain.draft.status.metrics = metrics;
        if begins {
            renew(desk, &mut chain.draft.status);
        }
    }
    // What has come, and what has gone that was to go.
    let new = pods(chain.draft.status.upgraded_ready_replicas.unwrap_or(0));
    let sources = || members.iter().skip(1);
    let old = sources().filter_map(|(record, member)| {
        let (_, workload) = member.as_ref()?;
        let seen = workload.seen();
        Some(match chain.draft.status.reverted {
            true => seen.available,
            false => pods(record.was).saturating_sub(seen.replicas),
        })
    });
    let all = count(old.fold(new, u32::saturating_add));
    let is_waiting = chain.step == Step::Wait && !chain.draft.moved;
    if let Some(intent) = chain.draft.status.intent.as_mut().filter(|_| is_waiting)
        && intent.available.is_none_or(|most| all > most)
    {
        let is_progress = intent.available.is_some() || all > 0;
        if is_progress {
            intent.available = Some(all);
            renew(desk, &mut chain.draft.status);
        }
    }
}

/// The deadline begins again. One that stands still is moved by the length of its hold when that ends. Where the clock
/// was lost during the hold, it begins when that ends ([`timed`]).
fn renew(desk: &Desk<'_>, status: &mut RolloutStatus) {
    if status.held.is_some() && status.deadline.is_none() {
        return;
    }
    let from = status.held.as_ref().map_or(desk.at(), |held| held.since.0);
    status.deadline = Some(time(later(from, patience(desk, status))));
}

/// What stays of a metric while pods that were there are not: its row is broken off, as by a bad value.
fn broken_off(metric: &MetricRecord) -> MetricRecord {
    MetricRecord {
        within_since: None,
        ..metric.clone()
    }
}

/// Whether the row of a metric begins, and not because its value was outside its range before: the metric is given its
/// time once more.
fn begins_anew(metric: &MetricRecord, before: &RolloutStatus) -> bool {
    let is_same = |it: &&MetricRecord| (&it.name, &it.checksum) == (&metric.name, &metric.checksum);
    let last = before.metrics.iter().find(is_same);
    // One with a value and without a row was outside.
    let goes_on = last.is_some_and(|it| it.within_since.is_some() || it.value.is_some());
    metric.within_since.is_some() && !goes_on
}

/// How long a run may go without progress. Once the pods of a batch are there, its metrics are given the time that
/// they need.
fn patience(desk: &Desk<'_>, status: &RolloutStatus) -> SignedDuration {
    let index = batch(status);
    let is_measured = status.rolling_state == Some(RollingState::RollingInBatches)
        && status.batch_rolling_state == Some(BatchRollingState::BatchVerifying)
        && status
            .batches
            .get(index)
            .is_some_and(|it| it.ready.is_some());
    let metrics = desk.plan.metrics_of(index).filter(|_| is_measured);
    let longest = metrics.filter_map(|it| it.interval).max();
    desk.plan.deadline + longest.unwrap_or_default()
}

/// What holds the run, and the deadline that stands still meanwhile.
fn held(desk: &Desk<'_>, chain: &mut Chain, kept: bool) {
    let is_over = chain.state.is_over();
    let is_held = chain.step == Step::Hold;
    if is_untold(desk, chain) {
        return;
    }
    let why = chain.decides.and_then(|signal| chain.look.why_of(signal));
    match why.filter(|_| is_held) {
        Some(why) => {
            let last = chain.draft.status.held.take();
            let is_same = |it: &&Held| (it.reason.as_str(), &it.by) == (why.reason, &why.by);
            // Why something is not known is told in the words of the moment, and so is what to do about a conflict.
            let is_new = [Some(Signal::Stale), Some(Signal::Contested)].contains(&chain.decides);
            let is_kept = kept && !is_new;
            let same = last.as_ref().filter(|it| is_kept && is_same(it));
            let message = same.map_or_else(|| why.message.clone(), |it| it.message.clone());
            chain.draft.status.held = Some(Held {
                by: why.by.clone(),
                reason: why.reason.to_owned(),
                message,
                since: last.map_or_else(|| time(desk.at()), |it| it.since),
            });
        }
        None => {
            if chain.draft.status.held.is_some() && chain.draft.status.deadline.is_some() {
                let moved = deadline(desk, &chain.draft.status).look(false, desk.at());
                chain.draft.status.deadline = Some(time(moved.at));
            }
            chain.draft.release(desk.at());
        }
    }
    if is_over {
        chain.draft.status.deadline = None;
        chain.draft.status.held = None;
    }
}

/// There is no deadline while the clock cannot be relied on: once it is right, a run that works has all its time again.
/// So has one that is held once it works: since when it is held may have been said by the wrong clock.
fn timed(desk: &Desk<'_>, chain: &mut Chain) {
    let status = &mut chain.draft.status;
    let works = !chain.state.is_over() && status.held.is_none();
    match desk.now().trust {
        Trust::Lost(_) => status.deadline = None,
        Trust::Good | Trust::Drifting(_) if works && status.deadline.is_none() => {
            renew(desk, status);
        }
        Trust::Good | Trust::Drifting(_) => {}
    }
}

/// When to look again.
fn wakes(
    desk: &Desk<'_>,
    chain: &Chain,
    status: &RolloutStatus,
    told: Option<&Told>,
) -> Vec<Timestamp> {
    let mut wakes = chain.look.wakes.clone();
    if chain.step == Step::Wait {
        wakes.extend(status.deadline.as_ref().map(|at| at.0));
    }
    if chain.decides == Some(Signal::Stale) {
        let since = desk.given.unsure_since;
        wakes.extend(since.map(|since| later(since, PATIENCE)));
    }
    // It goes then, whatever is known.
    wakes.extend(news_until(desk));
    if let Some(told) = told {
        let revision = told.decision.subject.revision.as_deref();
        let revision = revision.and_then(|text| Revision::parse(text).ok());
        let question = Question::new(desk.now(), revision.as_ref());
        wakes.extend(told.gates.rule(question).until);
        wakes.extend(told.decision.next.as_ref().map(|next| next.0));
    }
    wakes
}

/// Until when the status is not written: only numbers differ, and they were written a moment ago.
fn withheld(
    desk: &Desk<'_>,
    before: &RolloutStatus,
    status: &RolloutStatus,
    moved: bool,
) -> Option<Timestamp> {
    let last = before
        .deadline
        .as_ref()?
        .0
        .checked_sub(patience(desk, before))
        .ok()?;
    let next = later(last, SELDOM);
    let says = |status: &RolloutStatus| -> Vec<(String, String, String)> {
        let all = status.conditions.iter();
        all.map(|it| (it.type_.clone(), it.status.clone(), it.reason.clone()))
            .collect()
    };
    let quiet = RolloutStatus {
        upgraded_replicas: before.upgraded_replicas,
        upgraded_ready_replicas: before.upgraded_ready_replicas,
        intent: status.intent.clone().map(|mut intent| {
            intent.available = before.intent.as_ref().and_then(|it| it.available);
            intent
        }),
        deadline: before.deadline.clone(),
        conditions: before.conditions.clone(),
        ..status.clone()
    };
    let is_quiet = !moved
        && status != before
        && says(status) == says(before)
        && quiet == *before
        && status.observed_generation == before.observed_generation;
    // Where the plan has become less patient since, the deadline says nothing of when that was.
    let is_moment = last <= desk.at() && desk.at() < next;
    (is_quiet && is_moment).then_some(next)
}

/// Whether the status says that the gates hold a batch back. None: they have not been asked.
pub fn waits_for_gates(status: &RolloutStatus) -> Option<bool> {
    let held = status.held.as_ref();
    let waits = held.is_some_and(|held| held.reason == super::CLOSED);
    status.last_decision.is_some().then_some(waits)
}

/// Whether the status says that a run goes on.
pub fn is_under_way(status: &RolloutStatus) -> bool {
    status.rolling_state.is_some_and(|state| match state {
        RollingState::RolloutSucceed | RollingState::RolloutFailed => false,
        RollingState::VerifyingSpec
        | RollingState::Initializing
        | RollingState::RollingInBatches
        | RollingState::Finalising
        | RollingState::RolloutFailing
        | RollingState::RolloutAbandoned
        | RollingState::RolloutDeleting => true,
    })
}
