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
    /// The state where they could decide, and no other window does.
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

/// The state at an instant.
pub(crate) struct Step {
    pub cause: Cause,
    /// Until when. None: for ever.
    pub until: Option<Timestamp>,
    /// How far that is known.
    pub known: Timestamp,
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

    /// Whether there are windows of which nothing is known.
    pub fn has_gaps(&self) -> bool {
        self.gaps.closed || self.gaps.open
    }

    /// What holds at `at`, and until when: closed windows beat open ones, and what is known beats
    /// what is not. Instants are asked for in ascending order.
    ///
    /// Windows that do not matter for as long as others decide are not followed meanwhile. With
    /// `state_only`, the cause is any that explains the state.
    pub fn step(&mut self, at: Timestamp, state_only: bool) -> Step {
        if state_only && let Some(settled) = self.settled_but_for_closed(at) {
            return settled;
        }
        if let Some(Cover { source, span }) = self.closed.at(at) {
            return Step {
                cause: Cause::ClosedBy(source),
                until: earliest([Some(span.end), self.closed.next(at)]),
                known: self.closed.known(),
            };
        }
        let closes = self.closed.next(at);
        let undecided = Cause::Undecided(self.gaps.state);
        let opens_anyway = state_only && self.gaps.open && self.gaps.state == State::Open;
        if self.unbounded || opens_anyway {
            let decided = self.unbounded && !self.gaps.closed;
            return Step {
                cause: if decided { Cause::Unbounded } else { undecided },
                until: closes,
                known: self.closed.known(),
            };
        }
        if let Some(Cover { source, span }) = self.open.at(at) {
            let inside = Cause::Inside(source);
            return Step {
                cause: if self.gaps.closed { undecided } else { inside },
                until: earliest([Some(span.end), self.open.next(at), closes]),
                known: self.closed.known().min(self.open.known()),
            };
        }
        let outside = Step {
            cause: if self.gaps.open {
                undecided
            } else {
                Cause::Outside
            },
            until: earliest([closes, self.open.next(at)]),
            known: self.closed.known().min(self.open.known()),
        };
        if state_only || self.gaps.open {
            return outside;
        }
        self.unless_too_late(at, &outside)
    }

    /// What holds outside of the open windows, the last parts of which are outside too.
    fn unless_too_late(&mut self, at: Timestamp, outside: &Step) -> Step {
        let (cause, ends) = match self.whole.at(at) {
            Some(Cover { source, span }) => (Cause::LastStart(source), Some(span.end)),
            None => (outside.cause, None),
        };
        Step {
            cause,
            until: earliest([ends, self.whole.next(at), outside.until]),
            known: outside.known.min(self.whole.known()),
        }
    }

    /// What holds at `at` with any closed windows, as far as only the state matters.
    fn settled_but_for_closed(&mut self, at: Timestamp) -> Option<Step> {
        let Gaps {
            closed,
            open,
            state,
        } = self.gaps;
        if closed && state == State::Closed {
            return Some(Step {
                cause: Cause::Undecided(state),
                until: None,
                known: Timestamp::MAX,
            });
        }
        let opens_anyway = self.unbounded || open && state == State::Open;
        (!opens_anyway && self.open.at(at).is_none()).then(|| Step {
            cause: Cause::Outside,
            until: self.open.next(at),
            known: self.open.known(),
        })
    }
}

/// The first of them; the end of time is none.
fn earliest<const N: usize>(instants: [Option<Timestamp>; N]) -> Option<Timestamp> {
    let first = instants.into_iter().flatten().min();
    first.filter(|at| *at < Timestamp::MAX)
}
