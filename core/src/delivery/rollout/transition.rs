//! From one state to the next: what the status says then, and what is told.
//!
//! What comes in: the status, the state to which the run goes, and what was seen. What goes out: the status
//! with the intent of that state. Nothing is written to a workload before it is accepted.

use jiff::{SignedDuration, Timestamp};
use sluice_crds::RolloutStatus;
use sluice_crds::rollout::{
    BatchDecision, BatchRollingState, BatchStatus, Intent, OnFailure, Outcome, PastRun, Run, Size,
};

use super::begin::Beginning;
use super::calls::batch;
use super::course::{Course, count};
use super::desk::{Desk, sizes};
use super::ending::{comes_back_whole, left, rearmed};
use super::given::Name;
use super::hold::Deadline;
use super::identity;
use super::look::{Gates, Look};
use super::state::State;
use crate::time::stamp::time;
use crate::verdict::condition::cut;

/// How many runs are kept.
const HISTORY: usize = 5;
/// How much is kept of a decision, with that of each other batch: how many gates, and how many bytes of what they
/// say.
const GATES: usize = 8;
const LONGEST: usize = 512;

/// Something that people are told once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct News {
    /// Whether something is wrong.
    pub is_warning: bool,
    /// In one word.
    pub reason: &'static str,
    /// In a sentence.
    pub message: String,
}

/// The status that a look makes.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub(super) status: RolloutStatus,
    pub(super) news: Vec<News>,
    /// Whether something is intended now that was not before: nothing more follows in this look.
    pub(super) intends: bool,
    /// Whether the run has gone on.
    pub(super) moved: bool,
}

impl Draft {
    pub(super) fn new(status: RolloutStatus) -> Self {
        Self {
            status,
            news: Vec::new(),
            intends: false,
            moved: false,
        }
    }

    pub(super) fn tell(&mut self, is_warning: bool, reason: &'static str, message: String) {
        self.news.push(News {
            is_warning,
            reason,
            message,
        });
    }

    /// There was progress: the deadline begins again.
    pub(super) fn progress(&mut self, desk: &Desk<'_>) {
        self.moved = true;
        self.release(desk.at());
        let deadline = Deadline::new(desk.at(), desk.plan.deadline);
        self.status.deadline = Some(time(deadline.at));
    }

    /// It is held no longer: its length belongs to the batch.
    pub(super) fn release(&mut self, now: Timestamp) {
        let Some(held) = self.status.held.take() else {
            return;
        };
        let length = now.duration_since(held.since.0).max(SignedDuration::ZERO);
        let index = batch(&self.status);
        if let Some(batch) = self
            .status
            .batches
            .get_mut(index)
            .filter(|it| it.done.is_none())
        {
            *batch.waited.get_or_insert(0) += length.as_secs();
        }
    }

    fn intend(&mut self, desk: &Desk<'_>, batch: Option<i32>, sizes: Option<Vec<Size>>) {
        self.intends |= sizes.is_some();
        self.status.intent = sizes.map(|sizes| Intent {
            batch,
            at: time(desk.at()),
            sizes,
            available: None,
        });
    }

    /// The run ends with other sizes than it had intended.
    pub(super) fn settle(&mut self, desk: &Desk<'_>, sizes: Vec<Size>) {
        self.progress(desk);
        self.intend(desk, None, Some(sizes));
    }

    /// The run goes to another state.
    pub(super) fn go(&mut self, desk: &Desk<'_>, next: State, look: &mut Look, gates: Gates<'_>) {
        let before = State::read(&self.status, desk.batches()).ok();
        let held_since = self.status.held.as_ref().map(|held| held.since.0);
        self.progress(desk);
        self.status.rolling_state = Some(next.rolling());
        if let Some(batch) = next.batch() {
            self.status.batch_rolling_state = Some(batch);
        }
        match next {
            State::VerifyingSpec => self.reset(desk, before),
            State::Initializing => self.begin(desk, look.beginning.take()),
            State::BatchInitializing => self.begin_batch(desk, before, held_since),
            State::BatchInRolling => self.let_out(desk, gates),
            State::BatchReady => self.end_batch(desk, before),
            State::Finalising => self.finalise(desk, look.beginning.take()),
            State::Failing | State::Abandoned | State::Deleting => self.end(desk, next, look),
            State::Succeeded | State::Failed => self.over(desk, next, look),
            // What the metrics have said in the end stays beside the batch.
            State::BatchFinalizing => self.status.metrics = look.metrics.take().unwrap_or_default(),
            State::BatchVerifying => {}
        }
    }

    /// What was said of a former run is in the history.
    fn reset(&mut self, desk: &Desk<'_>, before: Option<State>) {
        if before == Some(State::Abandoned) {
            let message = "it gave way to another run".to_owned();
            self.remember(desk, State::Abandoned, message);
        }
        let status = std::mem::take(&mut self.status);
        self.status = RolloutStatus {
            observed_generation: status.observed_generation,
            last_handled_reconcile_at: status.last_handled_reconcile_at,
            last_handled_retry_at: identity::retry(desk.object()),
            rolling_state: Some(State::VerifyingSpec.rolling()),
            deadline: status.deadline,
            last_decision: status.last_decision,
            history: status.history,
            conditions: status.conditions,
            ..RolloutStatus::default()
        };
    }

    fn latch(&mut self, beginning: Beginning) -> Course {
        let Beginning {
            run,
            course,
            total,
            original,
            ..
        } = beginning;
        self.status.rollout_target_size = Some(count(total));
        self.status.rollout_original_size = Some(count(original));
        self.status.run = Some(run);
        course
    }

    /// What is latched is itself an intent: the workloads are claimed, and get their starting sizes.
    fn begin(&mut self, desk: &Desk<'_>, beginning: Option<Beginning>) {
        let Some(beginning) = beginning else {
            return;
        };
        let message = format!("the rollout of {} begins", beginning.run.revision);
        self.intend(desk, None, Some(beginning.start.clone()));
        self.latch(beginning);
        self.tell(false, "RolloutBegins", message);
    }

    fn course(&self, desk: &Desk<'_>) -> Option<Course> {
        let run = self.status.run.as_ref()?;
        Course::of(desk.plan, run, &self.status).ok()
    }

    /// The next batch, or the first one.
    fn begin_batch(&mut self, desk: &Desk<'_>, before: Option<State>, held: Option<Timestamp>) {
        let is_next = before == Some(State::BatchReady);
        let index = if is_next { batch(&self.status) + 1 } else { 0 };
        self.status.current_batch = i32::try_from(index).ok();
        self.status.hooks.clear();
        self.status.metrics.clear();
        self.status.intent = None;
        let goal = self.course(desk).map_or(0, |it| it.goal(desk.plan, index));
        // It has begun to wait when the one before it was done.
        let began = held.unwrap_or(desk.at());
        let waited = desk.at().duration_since(began).as_secs();
        self.status.batches.truncate(index);
        self.status.batches.push(BatchStatus {
            goal: count(goal),
            checksum: None,
            decision: None,
            began: Some(time(began)),
            ready: None,
            done: None,
            waited: (waited > 0).then_some(waited),
            worked: None,
        });
    }

    /// The intent of a batch: all its sizes at once.
    fn let_out(&mut self, desk: &Desk<'_>, gates: Gates<'_>) {
        let index = batch(&self.status);
        let Some((run, course)) = self.status.run.clone().zip(self.course(desk)) else {
            return;
        };
        let goal = course.goal(desk.plan, index);
        let sizes = course.sizes(goal, &sizes(&desk.of_run(&run)));
        self.intend(desk, i32::try_from(index).ok(), Some(sizes));
        let decision = decision(desk.at(), gates);
        let message = format!(
            "{} goes out, to {goal} pods: {}",
            desk.called(index),
            decision.message
        );
        if let Some(batch) = self.status.batches.get_mut(index) {
            batch.checksum = Some(identity::batch(desk.object(), index));
            batch.decision = Some(decision);
        }
        self.tell(false, "BatchBegins", message);
    }

    fn end_batch(&mut self, desk: &Desk<'_>, before: Option<State>) {
        let index = batch(&self.status);
        let is_passed = before == Some(State::BatchInitializing);
        let Some(batch) = self.status.batches.get_mut(index) else {
            return;
        };
        let checksum = || identity::batch(desk.object(), index);
        batch.checksum.get_or_insert_with(checksum);
        let (now, goal) = (desk.at(), batch.goal);
        let began = batch.began.as_ref().map_or(now, |it| it.0);
        let took = now.duration_since(began).as_secs();
        batch.done = Some(time(now));
        batch.worked = Some((took - batch.waited.unwrap_or(0)).max(0));
        let (reason, what) = match is_passed {
            true => ("AlreadyThere", "was there already"),
            false => ("BatchDone", "is done"),
        };
        let message = format!("{} {what}: {goal} pods", desk.called(index));
        self.tell(false, reason, message);
    }

    /// All batches are out, or there was nothing to roll: then the run is latched here.
    fn finalise(&mut self, desk: &Desk<'_>, beginning: Option<Beginning>) {
        if let Some(beginning) = beginning {
            self.latch(beginning);
            self.intends = true;
            self.status.outcome = Some(Outcome {
                reason: "AlreadyThere".to_owned(),
                message: "nothing was left to roll out".to_owned(),
            });
        }
        let Some(run) = self.status.run.clone() else {
            return;
        };
        let sizes = rearmed(&run, &desk.of_run(&run), desk.plan.members.rearms());
        self.intend(desk, None, sizes);
    }

    /// The run ends without success: it is settled, or the old version comes back.
    fn end(&mut self, desk: &Desk<'_>, next: State, look: &Look) {
        if next == State::Failing {
            let outcome = look.outcome();
            self.tell(true, "RolloutFails", outcome.message.clone());
            self.status.outcome = Some(outcome);
        }
        let reverts = (next == State::Failing && desk.plan.on_failure == OnFailure::Revert)
            || (next == State::Deleting && desk.plan.revert_on_delete);
        let Some((run, course)) = self.status.run.clone().zip(self.course(desk)) else {
            self.status.intent = None;
            return;
        };
        let members = desk.of_run(&run);
        // A revert that is on its way goes on.
        self.status.reverted |= reverts;
        let sizes = left(&course, (&self.status, &run), &members);
        self.intend(desk, None, sizes);
    }

    fn over(&mut self, desk: &Desk<'_>, next: State, look: &Look) {
        self.status.deadline = None;
        self.status.intent = None;
        if next == State::Failed && self.status.outcome.is_none() {
            self.status.outcome = Some(match desk.is_deleted() {
                true => Outcome {
                    reason: "Deleted".to_owned(),
                    message: "its Rollout was deleted".to_owned(),
                },
                false => look.outcome(),
            });
        }
        if !self.is_back(desk) {
            let message =
                "not all pods of the old version are back, for no source is left that had some";
            self.left_undone(Outcome {
                reason: "NoSource".to_owned(),
                message: message.to_owned(),
            });
        }
        let outcome = self.status.outcome.clone();
        let revision = self.status.run.as_ref().map_or("it", |run| &run.revision);
        let (is_warning, reason, message) = match (next, outcome) {
            (State::Succeeded, None) => (false, "RolloutSucceeded", format!("{revision} is out")),
            (State::Succeeded, Some(it)) => (
                false,
                "RolloutSucceeded",
                format!("{revision} is out; {}", it.message),
            ),
            (_, outcome) => (
                true,
                "RolloutFailed",
                outcome.map_or_else(String::new, |it| it.message),
            ),
        };
        self.tell(is_warning, reason, message.clone());
        self.remember(desk, next, message);
    }

    /// Whether the old version could come back with all of its pods, where it was to come back. Of what cannot be read it
    /// is not known.
    fn is_back(&self, desk: &Desk<'_>) -> bool {
        let run = self.status.run.as_ref().filter(|_| self.status.reverted);
        let all = run.zip(self.course(desk));
        all.is_none_or(|(run, course)| {
            let mut names = run.workloads.iter().filter_map(|it| Name::of(&it.r#ref));
            names.any(|name| desk.unsure(&name).is_some())
                || comes_back_whole(&course, run, &desk.of_run(run))
        })
    }

    /// The run is over, and goes into the history once.
    fn remember(&mut self, desk: &Desk<'_>, state: State, message: String) {
        let Some(Run { id, revision, .. }) = self.status.run.clone() else {
            return;
        };
        self.status.history.retain(|run| run.id != id);
        self.status.history.insert(
            0,
            PastRun {
                id,
                revision,
                state: state.rolling(),
                message,
                upgraded_replicas: self.status.upgraded_replicas.unwrap_or(0),
                ended: time(desk.at()),
            },
        );
        self.status.history.truncate(HISTORY);
    }

    /// Something was not done, and the run goes on all the same.
    pub(super) fn left_undone(&mut self, outcome: Outcome) {
        self.tell(true, "LeftUndone", outcome.message.clone());
        let said = self.status.outcome.take();
        self.status.outcome = Some(match said {
            None => outcome,
            Some(said) => Outcome {
                message: format!("{}; {}", said.message, outcome.message),
                ..said
            },
        });
    }

    /// The batch is what has failed.
    pub(super) fn fail_batch(&mut self) {
        self.status.batch_rolling_state = Some(BatchRollingState::BatchVerifyFailed);
    }
}

/// The decision that lets a batch out, in short.
fn decision(now: Timestamp, gates: Gates<'_>) -> BatchDecision {
    match gates {
        Gates::Told(_, decision) => BatchDecision {
            at: time(decision.at.0),
            decided_by: decision.decided_by.iter().take(GATES).cloned().collect(),
            message: cut(decision.message.clone(), LONGEST),
        },
        Gates::Unasked | Gates::Assumed | Gates::None => BatchDecision {
            at: time(now),
            decided_by: Vec::new(),
            message: "no gate has to let it out".to_owned(),
        },
    }
}
