//! Three lists of windows together: from one cause to the next.

use jiff::Timestamp;

use super::list::{Covers, List};
use super::{Cause, Cover};

/// Everything that a schedule's windows cover.
pub(crate) struct Walk<C> {
    /// When `closed` windows last.
    closed: List<C>,
    /// When `open` windows admit.
    open: List<C>,
    /// When `open` windows last whose last part is too late to start in, that part included.
    whole: List<C>,
}

impl<C: Covers> Walk<C> {
    /// The windows of each list from `from` on. Without any in `open`, what is not closed is open.
    pub fn new(closed: Vec<C>, open: Vec<C>, whole: Vec<C>, from: Timestamp) -> Self {
        Self {
            closed: List::new(closed, from),
            open: List::new(open, from),
            whole: List::new(whole, from),
        }
    }

    /// What holds at `at`, and until when: closed windows beat open ones. Instants are asked for
    /// in ascending order.
    ///
    /// Windows that do not matter for as long as others decide are not followed meanwhile. With
    /// `state_only`, the cause is any that explains the state.
    pub fn step(&mut self, at: Timestamp, state_only: bool) -> (Cause, Option<Timestamp>) {
        if state_only && !self.open.is_empty() && self.open.at(at).is_none() {
            return (Cause::Outside, self.open.next(at));
        }
        if let Some(Cover { source, span }) = self.closed.at(at) {
            let until = earliest([Some(span.end), self.closed.next(at)]);
            return (Cause::ClosedBy(source), until);
        }
        let closes = self.closed.next(at);
        if self.open.is_empty() {
            return (Cause::Unbounded, closes);
        }
        if let Some(Cover { source, span }) = self.open.at(at) {
            let until = earliest([Some(span.end), self.open.next(at), closes]);
            return (Cause::Inside(source), until);
        }
        let changes = earliest([closes, self.open.next(at)]);
        if let Some(Cover { source, span }) = self.whole.at(at) {
            let until = earliest([Some(span.end), self.whole.next(at), changes]);
            return (Cause::LastStart(source), until);
        }
        (Cause::Outside, changes)
    }

    /// How far the windows are known.
    pub fn known(&self) -> Timestamp {
        let Self {
            closed,
            open,
            whole,
        } = self;
        closed.known().min(open.known()).min(whole.known())
    }
}

/// The first of them; the end of time is none.
fn earliest<const N: usize>(instants: [Option<Timestamp>; N]) -> Option<Timestamp> {
    let first = instants.into_iter().flatten().min();
    first.filter(|at| *at < Timestamp::MAX)
}
