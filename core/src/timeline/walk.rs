//! Three lists of windows together: from one cause to the next.

use jiff::Timestamp;
use sluice_crds::State;

use super::list::{Covers, List};
use super::{Cause, Cover};

/// The windows of a schedule, as far as they are known.
pub(crate) struct Lists<C> {
    /// When `closed` windows last.
    pub closed: Vec<C>,
    /// When `open` windows admit.
    pub open: Vec<C>,
    /// When `open` windows last whose last part is too late to start in, that part included.
    pub whole: Vec<C>,
    /// What is not known.
    pub gaps: Gaps,
}

/// Windows of which nothing is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gaps {
    /// Whether there are such among the `closed` ones.
    pub closed: bool,
    /// Whether there are such among the `open` ones.
    pub open: bool,
    /// What it comes to where they could decide, and no other window does.
    pub state: State,
}

/// Everything that a schedule's windows cover.
pub(crate) struct Walk<C> {
    closed: List<C>,
    open: List<C>,
    whole: List<C>,
    gaps: Gaps,
    /// Without any `open` windows, what is not closed is open.
    unbounded: bool,
}

impl<C: Covers> Walk<C> {
    /// The windows of each list from `from` on.
    pub fn new(lists: Lists<C>, from: Timestamp) -> Self {
        let Lists {
            closed,
            open,
            whole,
            gaps,
        } = lists;
        Self {
            unbounded: open.is_empty() && !gaps.open,
            closed: List::new(closed, from),
            open: List::new(open, from),
            whole: List::new(whole, from),
            gaps,
        }
    }

    /// What holds at `at`, and until when: closed windows beat open ones, and what is known beats
    /// what is not. Instants are asked for in ascending order.
    ///
    /// Windows that do not matter for as long as others decide are not followed meanwhile. With
    /// `state_only`, the cause is any that explains the state.
    pub fn step(&mut self, at: Timestamp, state_only: bool) -> (Cause, Option<Timestamp>) {
        if state_only && let Some(settled) = self.settled_but_for_closed(at) {
            return settled;
        }
        if let Some(Cover { source, span }) = self.closed.at(at) {
            let until = earliest([Some(span.end), self.closed.next(at)]);
            return (Cause::ClosedBy(source), until);
        }
        let closes = self.closed.next(at);
        let undecided = Cause::Undecided(self.gaps.state);
        let unless_closed = |cause| if self.gaps.closed { undecided } else { cause };
        if self.unbounded {
            return (unless_closed(Cause::Unbounded), closes);
        }
        if state_only && self.gaps.open && self.gaps.state == State::Open {
            return (undecided, closes);
        }
        if let Some(Cover { source, span }) = self.open.at(at) {
            let until = earliest([Some(span.end), self.open.next(at), closes]);
            return (unless_closed(Cause::Inside(source)), until);
        }
        let changes = earliest([closes, self.open.next(at)]);
        if self.gaps.open {
            return (undecided, changes);
        }
        if let Some(Cover { source, span }) = self.whole.at(at) {
            let until = earliest([Some(span.end), self.whole.next(at), changes]);
            return (Cause::LastStart(source), until);
        }
        (Cause::Outside, changes)
    }

    /// What holds at `at` whatever the closed windows are, as far as only the state matters.
    fn settled_but_for_closed(&mut self, at: Timestamp) -> Option<(Cause, Option<Timestamp>)> {
        let Gaps {
            closed,
            open,
            state,
        } = self.gaps;
        if closed && state == State::Closed {
            return Some((Cause::Undecided(state), None));
        }
        let outside = !self.unbounded && !(open && state == State::Open);
        (outside && self.open.at(at).is_none()).then(|| (Cause::Outside, self.open.next(at)))
    }

    /// How far the windows are known.
    pub fn known(&self) -> Timestamp {
        let Self {
            closed,
            open,
            whole,
            gaps: _,
            unbounded: _,
        } = self;
        closed.known().min(open.known()).min(whole.known())
    }
}

/// The first of them; the end of time is none.
fn earliest<const N: usize>(instants: [Option<Timestamp>; N]) -> Option<Timestamp> {
    let first = instants.into_iter().flatten().min();
    first.filter(|at| *at < Timestamp::MAX)
}
