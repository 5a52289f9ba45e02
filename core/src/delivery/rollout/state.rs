//! The states of a run: those of the OAM rollout design, one for each row of the state machine.

use sluice_crds::RolloutStatus;
use sluice_crds::rollout::{BatchRollingState, RollingState};

/// How far a run is. While batches go out, it is also said how far the present batch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// The plan and the workloads are looked at.
    VerifyingSpec,
    /// The workloads get their starting sizes.
    Initializing,
    /// The batch waits for its gates and for the hooks before it.
    BatchInitializing,
    /// Its pods are made and taken away.
    BatchInRolling,
    /// Its pods become available, and metrics are looked at.
    BatchVerifying,
    /// The hooks after it are called.
    BatchFinalizing,
    /// It is done.
    BatchReady,
    /// All batches are out, and the rest is done.
    Finalising,
    /// It fails: what is half done is settled, or the old version is brought back.
    Failing,
    /// It gives way to another run.
    Abandoned,
    /// The Rollout is deleted.
    Deleting,
    /// It has succeeded.
    Succeeded,
    /// It has failed.
    Failed,
}

/// A status that no run can have written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Illegal;

impl State {
    /// Every state, in the order of the table.
    pub const ALL: [State; 13] = [
        State::VerifyingSpec,
        State::Initializing,
        State::BatchInitializing,
        State::BatchInRolling,
        State::BatchVerifying,
        State::BatchFinalizing,
        State::BatchReady,
        State::Finalising,
        State::Failing,
        State::Abandoned,
        State::Deleting,
        State::Succeeded,
        State::Failed,
    ];

    /// The state that a status says, of a plan with so many batches. A status without one is that of a run
    /// that begins.
    ///
    /// # Errors
    /// No run can have written it: batches go out, and it is not said which one of the plan, or how far it
    /// is.
    pub fn read(status: &RolloutStatus, batches: usize) -> Result<Self, Illegal> {
        Ok(match status.rolling_state {
            None | Some(RollingState::VerifyingSpec) => State::VerifyingSpec,
            Some(RollingState::Initializing) => State::Initializing,
            Some(RollingState::RollingInBatches) => {
                let index = status.current_batch.and_then(|it| usize::try_from(it).ok());
                index.filter(|index| *index < batches).ok_or(Illegal)?;
                State::of_batch(status.batch_rolling_state)?
            }
            Some(RollingState::Finalising) => State::Finalising,
            Some(RollingState::RolloutFailing) => State::Failing,
            Some(RollingState::RolloutSucceed) => State::Succeeded,
            Some(RollingState::RolloutAbandoned) => State::Abandoned,
            Some(RollingState::RolloutDeleting) => State::Deleting,
            Some(RollingState::RolloutFailed) => State::Failed,
        })
    }

    fn of_batch(state: Option<BatchRollingState>) -> Result<Self, Illegal> {
        match state {
            Some(BatchRollingState::BatchInitializing) => Ok(State::BatchInitializing),
            Some(BatchRollingState::BatchInRolling) => Ok(State::BatchInRolling),
            Some(BatchRollingState::BatchVerifying) => Ok(State::BatchVerifying),
            Some(BatchRollingState::BatchFinalizing) => Ok(State::BatchFinalizing),
            Some(BatchRollingState::BatchReady) => Ok(State::BatchReady),
            // One that has failed is never the present batch of a run that goes on.
            Some(BatchRollingState::BatchVerifyFailed) | None => Err(Illegal),
        }
    }

    /// What a status says of it.
    pub fn rolling(self) -> RollingState {
        match self {
            State::VerifyingSpec => RollingState::VerifyingSpec,
            State::Initializing => RollingState::Initializing,
            State::BatchInitializing
            | State::BatchInRolling
            | State::BatchVerifying
            | State::BatchFinalizing
            | State::BatchReady => RollingState::RollingInBatches,
            State::Finalising => RollingState::Finalising,
            State::Failing => RollingState::RolloutFailing,
            State::Abandoned => RollingState::RolloutAbandoned,
            State::Deleting => RollingState::RolloutDeleting,
            State::Succeeded => RollingState::RolloutSucceed,
            State::Failed => RollingState::RolloutFailed,
        }
    }

    /// What a status says of the batch. None: the state is not one of a batch, and what was said of the last
    /// one stays.
    pub fn batch(self) -> Option<BatchRollingState> {
        match self {
            State::BatchInitializing => Some(BatchRollingState::BatchInitializing),
            State::BatchInRolling => Some(BatchRollingState::BatchInRolling),
            State::BatchVerifying => Some(BatchRollingState::BatchVerifying),
            State::BatchFinalizing => Some(BatchRollingState::BatchFinalizing),
            State::BatchReady => Some(BatchRollingState::BatchReady),
            State::VerifyingSpec
            | State::Initializing
            | State::Finalising
            | State::Failing
            | State::Abandoned
            | State::Deleting
            | State::Succeeded
            | State::Failed => None,
        }
    }

    /// Whether nothing happens any more by itself.
    pub fn is_over(self) -> bool {
        matches!(self, State::Succeeded | State::Failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(state: State) -> RolloutStatus {
        RolloutStatus {
            rolling_state: Some(state.rolling()),
            batch_rolling_state: state.batch(),
            current_batch: Some(1),
            ..RolloutStatus::default()
        }
    }

    #[test]
    fn a_status_says_each_state() {
        for state in State::ALL {
            assert_eq!(State::read(&status(state), 2), Ok(state));
        }
        let nothing = RolloutStatus::default();
        assert_eq!(State::read(&nothing, 2), Ok(State::VerifyingSpec));
    }

    #[test]
    fn every_word_of_the_api_is_read() {
        let batches = BatchRollingState::ALL.map(Some);
        for rolling in RollingState::ALL {
            for batch in batches.into_iter().chain([None]) {
                let status = RolloutStatus {
                    rolling_state: Some(rolling),
                    batch_rolling_state: batch,
                    current_batch: Some(0),
                    ..RolloutStatus::default()
                };
                let is_illegal = rolling == RollingState::RollingInBatches
                    && matches!(batch, None | Some(BatchRollingState::BatchVerifyFailed));
                assert_eq!(
                    State::read(&status, 1).is_err(),
                    is_illegal,
                    "{rolling:?} {batch:?}"
                );
            }
        }
    }

    #[test]
    fn a_batch_beyond_the_plan_is_illegal() {
        let mut status = status(State::BatchReady);
        for wrong in [Some(2), Some(-1), None] {
            status.current_batch = wrong;
            assert_eq!(State::read(&status, 2), Err(Illegal), "{wrong:?}");
        }
        // Behind the batches the number only tells what was last.
        status.rolling_state = Some(RollingState::Finalising);
        assert_eq!(State::read(&status, 2), Ok(State::Finalising));
    }
}
