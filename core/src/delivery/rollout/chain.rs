//! A look from its first step to its last: as far as the run goes before something has to be accepted, done or
//! waited for.

use sluice_crds::RolloutStatus;

use super::calls::{self, Heard};
use super::desk::Desk;
use super::look::{Gates, Look, look};
use super::signals::Signal;
use super::state::{Illegal, State};
use super::step::{Step, deciding, step};
use super::transition::Draft;

/// More steps than any look takes: each batch of a run that is there already takes two.
const MOST_STEPS: usize = 100;

/// How far the run goes in a look.
pub(super) struct Chain {
    /// The status that it makes.
    pub(super) draft: Draft,
    /// The state at the end.
    pub(super) state: State,
    /// What it does there.
    pub(super) step: Step,
    /// What was seen there.
    pub(super) look: Look,
    /// The signal that has decided there.
    pub(super) decides: Option<Signal>,
    /// The batch about which the gates count.
    pub(super) asks: Option<usize>,
}

impl Chain {
    /// How far the run goes from `before`, with gates that say this.
    pub(super) fn new(desk: &Desk<'_>, before: &RolloutStatus, gates: Gates<'_>) -> Self {
        let mut chain = Self {
            draft: Draft::new(before.clone()),
            state: State::VerifyingSpec,
            step: Step::Wait,
            look: Look::default(),
            decides: None,
            asks: None,
        };
        if before.rolling_state.is_none() {
            let begins = &mut Look::default();
            chain.draft.go(desk, State::VerifyingSpec, begins, gates);
        }
        for _ in 0..MOST_STEPS {
            if chain.hears(desk) || !chain.goes_on(desk, gates) || chain.draft.intends {
                break;
            }
        }
        chain
    }

    /// Whether answers of hooks have come: they are accepted before anything follows.
    fn hears(&mut self, desk: &Desk<'_>) -> bool {
        let Ok(state) = State::read(&self.draft.status, desk.batches()) else {
            return false;
        };
        let Some(run) = self.draft.status.run.clone() else {
            return false;
        };
        let heard = calls::hear(desk, &mut self.draft.status, &run, state);
        match heard {
            Heard::Nothing => return false,
            Heard::Again => self.draft.moved = true,
            Heard::Answer => self.draft.progress(desk),
        }
        (self.state, self.step, self.decides) = (state, Step::Wait, None);
        true
    }

    /// One step. False: it stays there.
    fn goes_on(&mut self, desk: &Desk<'_>, gates: Gates<'_>) -> bool {
        let read = State::read(&self.draft.status, desk.batches());
        let seen = read.and_then(|state| {
            let look = look(desk, &self.draft.status, state, gates)?;
            Ok((state, look))
        });
        let (state, mut seen) = match seen {
            Ok(seen) => seen,
            Err(Illegal) => return self.illegal(desk, read.ok(), gates),
        };
        if let Some(sizes) = seen.settles.take() {
            self.draft.settle(desk, sizes);
            self.state = state;
            self.look = seen;
            return false;
        }
        let decides = deciding(state, seen.signals, seen.facts);
        let next = step(state, seen.signals, seen.facts);
        if decides.is_none_or(|signal| signal >= Signal::Closed) {
            self.asks = self.asks.or(seen.asks);
        }
        let to = match next {
            Step::Rest | Step::Wait | Step::Hold | Step::LetGo => None,
            Step::Go(to) | Step::GoTold(to) => Some(to),
            Step::NextBatch => Some(State::BatchInitializing),
            Step::FailBatch => Some(State::Failing),
            Step::End | Step::EndTold => Some(State::Failed),
        };
        if let Some(to) = to {
            if matches!(next, Step::GoTold(_) | Step::EndTold) {
                self.draft.left_undone(seen.outcome());
            }
            self.draft.go(desk, to, &mut seen, gates);
            if next == Step::FailBatch {
                self.draft.fail_batch();
            }
        }
        self.state = to.unwrap_or(state);
        self.step = if to.is_some() { Step::Wait } else { next };
        (self.look, self.decides) = (seen, decides);
        to.is_some()
    }

    /// No run can have written this status. What it says of workloads cannot be relied on, either: they stay as
    /// they are.
    fn illegal(&mut self, desk: &Desk<'_>, state: Option<State>, gates: Gates<'_>) -> bool {
        let to = match state {
            Some(State::Failing | State::Deleting) => State::Failed,
            Some(_) | None if desk.is_deleted() => State::Deleting,
            Some(_) | None => State::Failing,
        };
        self.draft.go(desk, to, &mut Look::default(), gates);
        self.state = to;
        true
    }
}
