//! The state machine: what a run does next, for every state and every signal.
//!
//! What comes in: the state, the signals that hold, and a few facts. What goes out: one [`Step`]. The table
//! has a cell for each state and each signal, and no cell is left to a default. In each row the first signal
//! counts that holds and is looked at there.

use super::signals::{Facts, Signal, Signals};
use super::state::State;

#[cfg(test)]
mod tests;

/// What a run does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing: it is over.
    Rest,
    /// It waits, and the deadline runs.
    Wait,
    /// It is held: what was decided is carried to its end, nothing new begins, and the deadline stands still.
    Hold,
    /// It goes to another state.
    Go(State),
    /// It goes to another state, although something was not done: that is told.
    GoTold(State),
    /// The next batch begins.
    NextBatch,
    /// It fails, and the batch is what has failed.
    FailBatch,
    /// It has failed, and the Rollout that is deleted may go.
    End,
    /// The same, although something was not done: that is told.
    EndTold,
    /// The Rollout that is deleted may go.
    LetGo,
}

/// What a run does next.
pub fn step(state: State, signals: Signals, facts: Facts) -> Step {
    let decides = deciding(state, signals, facts);
    match decides.and_then(|signal| cell(state, signal, facts)) {
        None => done(state, facts),
        Some(Step::Wait) if signals.has(Signal::Overdue) => {
            cell(state, Signal::Overdue, facts).unwrap_or(Step::Wait)
        }
        Some(step) => step,
    }
}

/// The first signal that holds and is looked at in this state. None: nothing is left to do.
pub fn deciding(state: State, signals: Signals, facts: Facts) -> Option<Signal> {
    Signal::ALL.into_iter().find(|signal| {
        // Both are looked at where it waits, and where nothing else is left.
        !matches!(signal, Signal::Overdue | Signal::Done)
            && signals.has(*signal)
            && cell(state, *signal, facts).is_some()
    })
}

/// A cell of the table. None: the signal is not looked at in this state, and the next one counts.
fn cell(state: State, signal: Signal, facts: Facts) -> Option<Step> {
    match state {
        State::VerifyingSpec => verifying(signal, facts),
        State::Initializing => initializing(signal, facts),
        State::BatchInitializing => batch_initializing(signal, facts),
        State::BatchInRolling => batch_in_rolling(signal, facts),
        State::BatchVerifying => batch_verifying(signal, facts),
        State::BatchFinalizing => batch_finalizing(signal, facts),
        State::BatchReady => batch_ready(signal, facts),
        State::Finalising => finalising(signal, facts),
        State::Failing => failing(signal, facts),
        State::Abandoned => abandoned(signal, facts),
        State::Deleting => deleting(signal, facts),
        State::Succeeded => succeeded(signal, facts),
        State::Failed => failed(signal, facts),
    }
}

/// The last column: nothing is left to do in this state.
fn done(state: State, facts: Facts) -> Step {
    match state {
        State::VerifyingSpec if facts.nothing_to_roll => Step::Go(State::Finalising),
        State::VerifyingSpec => Step::Go(State::Initializing),
        State::Initializing => Step::Go(State::BatchInitializing),
        State::BatchInitializing if facts.goal_met => Step::Go(State::BatchReady),
        State::BatchInitializing => Step::Go(State::BatchInRolling),
        State::BatchInRolling => Step::Go(State::BatchVerifying),
        State::BatchVerifying => Step::Go(State::BatchFinalizing),
        State::BatchFinalizing => Step::Go(State::BatchReady),
        State::BatchReady if facts.is_last => Step::Go(State::Finalising),
        State::BatchReady => Step::NextBatch,
        State::Finalising => Step::Go(State::Succeeded),
        State::Failing => Step::Go(State::Failed),
        State::Abandoned => Step::Go(State::VerifyingSpec),
        State::Deleting => Step::End,
        State::Succeeded | State::Failed => Step::Rest,
    }
}

/// Objects may come later, so that one that is not there is waited for.
fn verifying(signal: Signal, facts: Facts) -> Option<Step> {
    match signal {
        Signal::Stale | Signal::Contested | Signal::Paused | Signal::Closed => Some(Step::Hold),
        Signal::Deleted => Some(Step::Go(State::Deleting)),
        Signal::Modified => Some(Step::Go(State::VerifyingSpec)),
        Signal::Gone | Signal::Waiting => Some(Step::Wait),
        Signal::Refused | Signal::Overdue => Some(Step::Go(State::Failed)),
        Signal::Blind => None,
        Signal::Done => Some(done(State::VerifyingSpec, facts)),
    }
}

/// Gates count here only where the start itself makes pods of the new version.
fn initializing(signal: Signal, facts: Facts) -> Option<Step> {
    match signal {
        Signal::Stale | Signal::Contested | Signal::Paused | Signal::Closed => Some(Step::Hold),
        Signal::Deleted => Some(Step::Go(State::Deleting)),
        Signal::Modified => Some(Step::Go(State::Abandoned)),
        Signal::Gone | Signal::Refused | Signal::Overdue => Some(Step::Go(State::Failing)),
        Signal::Waiting => Some(Step::Wait),
        Signal::Blind => None,
        Signal::Done => Some(done(State::Initializing, facts)),
    }
}

fn batch_initializing(signal: Signal, facts: Facts) -> Option<Step> {
    match signal {
        Signal::Stale | Signal::Contested | Signal::Paused | Signal::Closed => Some(Step::Hold),
        Signal::Deleted => Some(Step::Go(State::Deleting)),
        Signal::Modified => Some(Step::Go(State::Abandoned)),
        Signal::Gone => Some(Step::Go(State::Failing)),
        Signal::Refused | Signal::Overdue => Some(Step::FailBatch),
        Signal::Waiting => Some(Step::Wait),
        Signal::Blind => None,
        Signal::Done => Some(done(State::BatchInitializing, facts)),
    }
}

/// A gate that closes now stops nothing: what was let out is carried to its end.
fn batch_in_rolling(signal: Signal, facts: Facts) -> Option<Step> {
    match signal {
        Signal::Stale | Signal::Contested | Signal::Paused => Some(Step::Hold),
        Signal::Deleted => Some(Step::Go(State::Deleting)),
        Signal::Modified => Some(Step::Go(State::Abandoned)),
        Signal::Gone => Some(Step::Go(State::Failing)),
        Signal::Waiting => Some(Step::Wait),
        Signal::Overdue => Some(Step::FailBatch),
        Signal::Refused | Signal::Closed | Signal::Blind => None,
        Signal::Done => Some(done(State::BatchInRolling, facts)),
    }
}

/// A value outside its range is waited for, and fails in the end. One that is not there holds: it neither
/// passes nor fails.
fn batch_verifying(signal: Signal, facts: Facts) -> Option<Step> {
    match signal {
        Signal::Stale | Signal::Contested | Signal::Paused | Signal::Blind => Some(Step::Hold),
        Signal::Deleted => Some(Step::Go(State::Deleting)),
        Signal::Modified => Some(Step::Go(State::Abandoned)),
        Signal::Gone => Some(Step::Go(State::Failing)),
        Signal::Waiting => Some(Step::Wait),
        Signal::Overdue => Some(Step::FailBatch),
        Signal::Refused | Signal::Closed => None,
        Signal::Done => Some(done(State::BatchVerifying, facts)),
    }
}

fn batch_finalizing(signal: Signal, facts: Facts) -> Option<Step> {
    match signal {
        Signal::Stale | Signal::Contested | Signal::Paused => Some(Step::Hold),
        Signal::Deleted => Some(Step::Go(State::Deleting)),
        Signal::Modified => Some(Step::Go(State::Abandoned)),
        Signal::Gone => Some(Step::Go(State::Failing)),
        Signal::Refused | Signal::Overdue => Some(Step::FailBatch),
        Signal::Waiting => Some(Step::Wait),
        Signal::Closed | Signal::Blind => None,
        Signal::Done => Some(done(State::BatchFinalizing, facts)),
    }
}

/// After the last batch no gate is asked: nothing goes out any more.
fn batch_ready(signal: Signal, facts: Facts) -> Option<Step> {
    match signal {
        Signal::Stale | Signal::Contested | Signal::Paused => Some(Step::Hold),
        Signal::Deleted => Some(Step::Go(State::Deleting)),
        Signal::Modified => Some(Step::Go(State::Abandoned)),
        Signal::Gone => Some(Step::Go(State::Failing)),
        Signal::Closed if facts.is_last => None,
        Signal::Closed => Some(Step::Hold),
        Signal::Refused | Signal::Blind | Signal::Waiting | Signal::Overdue => None,
        Signal::Done => Some(done(State::BatchReady, facts)),
    }
}

/// All pods are out: a hook that says no, or does not answer, changes nothing of that.
fn finalising(signal: Signal, facts: Facts) -> Option<Step> {
    match signal {
        Signal::Stale => Some(Step::Hold),
        Signal::Gone => Some(Step::Go(State::Failing)),
        Signal::Contested => facts.write_due.then_some(Step::GoTold(State::Succeeded)),
        Signal::Refused | Signal::Overdue => Some(Step::GoTold(State::Succeeded)),
        Signal::Waiting => Some(Step::Wait),
        Signal::Deleted | Signal::Modified | Signal::Paused | Signal::Closed | Signal::Blind => {
            None
        }
        Signal::Done => Some(done(State::Finalising, facts)),
    }
}

/// A workload that is gone counts as one without pods: the sources never stay short of them.
fn failing(signal: Signal, facts: Facts) -> Option<Step> {
    match signal {
        Signal::Stale => Some(Step::Hold),
        Signal::Deleted => Some(Step::Go(State::Deleting)),
        Signal::Contested => facts.write_due.then_some(Step::Hold),
        Signal::Waiting => Some(Step::Wait),
        Signal::Overdue => Some(Step::GoTold(State::Failed)),
        Signal::Modified
        | Signal::Gone
        | Signal::Refused
        | Signal::Paused
        | Signal::Closed
        | Signal::Blind => None,
        Signal::Done => Some(done(State::Failing, facts)),
    }
}

fn abandoned(signal: Signal, facts: Facts) -> Option<Step> {
    match signal {
        Signal::Stale => Some(Step::Hold),
        Signal::Deleted => Some(Step::Go(State::Deleting)),
        Signal::Contested => facts.write_due.then_some(Step::Hold),
        Signal::Waiting => Some(Step::Wait),
        Signal::Overdue => Some(Step::GoTold(State::VerifyingSpec)),
        Signal::Modified
        | Signal::Gone
        | Signal::Refused
        | Signal::Paused
        | Signal::Closed
        | Signal::Blind => None,
        Signal::Done => Some(done(State::Abandoned, facts)),
    }
}

/// A finalizer always goes: what others hold, and what takes too long, is told and left as it is.
fn deleting(signal: Signal, facts: Facts) -> Option<Step> {
    match signal {
        Signal::Stale => Some(Step::Hold),
        Signal::Contested | Signal::Overdue => Some(Step::EndTold),
        Signal::Waiting => Some(Step::Wait),
        Signal::Deleted
        | Signal::Modified
        | Signal::Gone
        | Signal::Refused
        | Signal::Paused
        | Signal::Closed
        | Signal::Blind => None,
        Signal::Done => Some(done(State::Deleting, facts)),
    }
}

fn succeeded(signal: Signal, facts: Facts) -> Option<Step> {
    match signal {
        Signal::Deleted => Some(Step::LetGo),
        Signal::Modified => Some(Step::Go(State::VerifyingSpec)),
        Signal::Stale
        | Signal::Gone
        | Signal::Contested
        | Signal::Refused
        | Signal::Paused
        | Signal::Closed
        | Signal::Blind
        | Signal::Waiting
        | Signal::Overdue => Some(Step::Rest),
        Signal::Done => Some(done(State::Succeeded, facts)),
    }
}

fn failed(signal: Signal, facts: Facts) -> Option<Step> {
    match signal {
        Signal::Deleted if facts.revert_due => Some(Step::Go(State::Deleting)),
        Signal::Deleted => Some(Step::LetGo),
        Signal::Modified => Some(Step::Go(State::VerifyingSpec)),
        Signal::Stale
        | Signal::Gone
        | Signal::Contested
        | Signal::Refused
        | Signal::Paused
        | Signal::Closed
        | Signal::Blind
        | Signal::Waiting
        | Signal::Overdue => Some(Step::Rest),
        Signal::Done => Some(done(State::Failed, facts)),
    }
}
