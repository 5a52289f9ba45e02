//! What is seen of a run in its state: the signals and facts of the state machine, each with its words.
//!
//! What comes in: what is given, a status, and what the gates say. What goes out: a [`Look`], from which the
//! state machine takes its step, and the report its words.

use jiff::Timestamp;
use sluice_crds::rollout::{MetricRecord, Outcome, Size};
use sluice_crds::{Decision, RolloutStatus};

use super::applied::unknown_applier;
use super::begin::Beginning;
use super::calls::Calling;
use super::course::Course;
use super::desk::{Desk, OfRun};
use super::ending::Ending;
use super::given::Member;
use super::hold::Deadline;
use super::signals::{Facts, Signal, Signals};
use super::state::{Illegal, State};
use super::why::{Why, short};
use crate::time::span::later;

mod batches;
mod ends;
mod verifying;

pub(super) use batches::{is_started, keeps_from_pods};

/// What the gates of a batch say.
#[derive(Clone, Copy, Debug)]
pub(super) enum Gates<'d> {
    /// They have not been asked.
    Unasked,
    /// Whatever they say, what would follow if they let it out.
    Assumed,
    /// There are none.
    None,
    /// They have been asked about this batch, and what they say was recorded.
    Told(usize, &'d Decision),
}

/// What is seen of a run.
#[derive(Debug, Default)]
pub(super) struct Look {
    pub(super) signals: Signals,
    pub(super) facts: Facts,
    /// Why each signal holds, as far as it needs words.
    whys: Vec<(Signal, Why)>,
    /// The batch about which the gates count here.
    pub(super) asks: Option<usize>,
    /// Verifying: the run that would begin.
    pub(super) beginning: Option<Beginning>,
    /// The hook that is called.
    pub(super) call: Option<Box<Calling>>,
    /// What is left to do at an end.
    pub(super) ending: Ending,
    /// At an end: the sizes that have to be written instead of those that are intended, for pods are missing.
    pub(super) settles: Option<Vec<Size>>,
    /// Over: workloads have to be given back before another run begins.
    pub(super) gives_back: bool,
    /// What the metrics say.
    pub(super) metrics: Option<Vec<MetricRecord>>,
    /// Initializing: whether the start itself makes pods of the new version, if the gates let it.
    pub(super) makes_pods: bool,
    /// Whether the pods of the batch are there.
    pub(super) is_ready: bool,
    /// When to look again, in addition to the deadline.
    pub(super) wakes: Vec<Timestamp>,
}

impl Look {
    /// This signal holds: why.
    fn say(&mut self, signal: Signal, why: Why) {
        self.signals = self.signals.with(signal, true);
        self.whys.push((signal, why));
    }

    fn wait(&mut self, message: impl Into<String>) {
        self.say(Signal::Waiting, Why::new("Progressing", message));
    }

    /// Why this signal holds.
    pub(super) fn why_of(&self, signal: Signal) -> Option<&Why> {
        let mut all = self.whys.iter();
        all.find(|(it, _)| *it == signal).map(|(_, why)| why)
    }

    /// How a run ends that is refused, overdue, or has lost a workload.
    pub(super) fn outcome(&self) -> Outcome {
        let ends = [Signal::Gone, Signal::Contested, Signal::Refused];
        let why = ends.iter().find_map(|signal| self.why_of(*signal));
        let (reason, message) = match (why, self.why_of(Signal::Waiting)) {
            (Some(why), _) => (why.reason, why.message.clone()),
            (None, Some(why)) => (
                "ProgressDeadlineExceeded",
                format!("there was no progress for too long: {}", why.message),
            ),
            (None, None) => ("IllegalState", "the status makes no sense".to_owned()),
        };
        Outcome {
            reason: reason.to_owned(),
            message: short(message),
        }
    }
}

/// What is seen of the run that `status` has, in this state.
///
/// # Errors
/// No run can have written the status.
pub(super) fn look(
    desk: &Desk<'_>,
    status: &RolloutStatus,
    state: State,
    gates: Gates<'_>,
) -> Result<Look, Illegal> {
    let mut look = Look::default();
    everywhere(desk, status, &mut look);
    look.wakes.extend(desk.next_available());
    match state {
        State::VerifyingSpec => verifying::look(desk, status, gates, &mut look),
        State::Succeeded | State::Failed => ends::over(desk, status, state, &mut look),
        State::Deleting if status.run.is_none() => {}
        State::Initializing
        | State::BatchInitializing
        | State::BatchInRolling
        | State::BatchVerifying
        | State::BatchFinalizing
        | State::BatchReady => batches::look(desk, status, state, gates, &mut look)?,
        State::Finalising | State::Failing | State::Abandoned | State::Deleting => {
            ends::look(desk, status, state, &mut look)?;
        }
    }
    Ok(look)
}

/// The signals that every state has.
fn everywhere(desk: &Desk<'_>, status: &RolloutStatus, look: &mut Look) {
    let is_modified = desk.is_modified(status);
    let is_overdue = deadline(desk, status).has_passed(desk.now());
    look.signals = look
        .signals
        .with(Signal::Deleted, desk.is_deleted())
        .with(Signal::Modified, is_modified)
        .with(Signal::Overdue, is_overdue);
    if desk.plan.paused {
        let message = "rolloutPlan.paused is true: nothing new begins";
        let by = Some("spec.rolloutPlan.paused".to_owned());
        look.say(
            Signal::Paused,
            Why {
                by,
                ..Why::new("Paused", message)
            },
        );
    }
}

/// The deadline of the run, as the status has it.
pub(super) fn deadline(desk: &Desk<'_>, status: &RolloutStatus) -> Deadline {
    let held_since = status.held.as_ref().map(|held| held.since.0);
    match &status.deadline {
        Some(at) => Deadline {
            at: at.0,
            held_since,
        },
        None => Deadline {
            held_since,
            ..Deadline::new(desk.at(), desk.plan.deadline)
        },
    }
}

/// A workload of the run is not known well enough, or gone.
fn presence(desk: &Desk<'_>, members: &[OfRun<'_>], look: &mut Look, only_target: bool) {
    let names = members
        .iter()
        .filter_map(|(record, _)| super::given::Name::of(&record.r#ref));
    let unsure = names.into_iter().find_map(|name| desk.unsure(&name));
    if let Some(why) = unsure.filter(|_| waits_for_news(desk)) {
        look.say(Signal::Stale, why);
    }
    let count = if only_target { 1 } else { members.len() };
    let gone = members
        .iter()
        .take(count)
        .find(|(_, member)| member.is_none());
    if let Some((record, _)) = gone {
        let message = format!(
            "{} {} is gone, or is another object of the same name",
            record.r#ref.kind, record.r#ref.name
        );
        look.say(Signal::Gone, Why::new("WorkloadGone", message));
    }
}

/// Whether an autoscaler has a workload has to be known before anything goes out. Where a run ends it does not
/// keep it from its end.
fn autoscalers(desk: &Desk<'_>, look: &mut Look) {
    if let Err(why) = &desk.given.autoscalers
        && waits_for_news(desk)
    {
        let message = format!("the HorizontalPodAutoscalers cannot be listed: {why}");
        look.say(Signal::Stale, Why::new("NotReadable", message));
    }
}

/// Whether Flux writes again what a run writes has to be known in the same way.
fn appliers<'g: 'm, 'm>(
    desk: &Desk<'g>,
    members: impl Iterator<Item = (usize, &'m Member<'g>)>,
    look: &mut Look,
) {
    let mut members = members.filter(|_| waits_for_news(desk));
    let unknown =
        members.find_map(|(place, member)| unknown_applier(desk.given, member, place == 0));
    if let Some((applier, why)) = unknown {
        look.say(Signal::Stale, Why::unreadable(applier, why));
    }
}

/// Whether what is not up to date is waited for. One that is deleted does not wait for ever: a right may have been
/// taken away, and its namespace may have to go.
pub(super) fn waits_for_news(desk: &Desk<'_>) -> bool {
    news_until(desk).is_none_or(|until| desk.at() < until)
}

/// Until when what is not up to date is waited for. None: without end. What was not known before the Rollout was deleted
/// does not cut its end short.
pub(super) fn news_until(desk: &Desk<'_>) -> Option<Timestamp> {
    let deleted = desk.object().metadata.deletion_timestamp.as_ref()?.0;
    let since = desk.given.unsure_since?.max(deleted);
    Some(later(since, desk.plan.deadline))
}

/// Whether a batch may go out, as far as the plan and the gates say.
fn closed(desk: &Desk<'_>, index: usize, gates: Gates<'_>, look: &mut Look) {
    let called = desk.called(index);
    if !desk.plan.lets_out(index) {
        let last = desk.plan.partition.unwrap_or(0);
        let by = Some("spec.rolloutPlan.lastBatchToRollout".to_owned());
        let message = format!("{called} waits: lastBatchToRollout is {last}");
        look.say(
            Signal::Closed,
            Why {
                by,
                ..Why::new("LastBatch", message)
            },
        );
        return;
    }
    look.asks = Some(index);
    let closed = match gates {
        Gates::Assumed | Gates::None => return,
        Gates::Told(of, decision) if of == index && decision.allowed => return,
        Gates::Told(of, decision) if of == index => Why {
            by: decision.decided_by.first().cloned(),
            reason: super::CLOSED,
            message: format!("{called} waits: {}", decision.message),
        },
        Gates::Told(..) | Gates::Unasked => Why::new(
            "GatesNotAsked",
            format!("{called} waits for its gates to be asked"),
        ),
    };
    look.say(Signal::Closed, closed);
}

/// The course of the run that a status has.
fn course(desk: &Desk<'_>, status: &RolloutStatus) -> Result<Course, Illegal> {
    let run = status.run.as_ref().ok_or(Illegal)?;
    Course::of(desk.plan, run, status)
}
