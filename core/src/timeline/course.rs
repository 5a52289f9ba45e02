//! A walk from stretch to stretch, as far as anything is known.

use jiff::Timestamp;

use super::Cause;
use super::list::Covers;
use super::walk::{Step, Walk};
use crate::span::Span;

/// A walk on its way.
pub(crate) struct Course<C> {
    walk: Walk<C>,
    /// Where the next stretch starts. None: there is none.
    at: Option<Timestamp>,
    /// Where it ends at the latest.
    end: Timestamp,
    /// From where on nobody knows.
    unknown: Option<Timestamp>,
}

/// A time with one cause. The next one may have the same.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch {
    pub start: Timestamp,
    pub cause: Cause,
    /// When another time of the windows comes to decide. None: never.
    pub until: Option<Timestamp>,
}

impl Stretch {
    /// Whether its cause changes at `at`, whatever follows. After one event of a calendar may come
    /// the same once more.
    pub fn changes_at(&self, at: Timestamp) -> bool {
        self.until == Some(at) && !self.cause.is_by_event()
    }
}

impl<C: Covers> Course<C> {
    /// Through `span`.
    pub fn new(walk: Walk<C>, span: Span) -> Self {
        Self {
            walk,
            at: Some(span.start),
            end: span.end,
            unknown: None,
        }
    }

    /// The next stretch. With `state_only`, its cause is any that explains the state.
    pub fn next(&mut self, state_only: bool) -> Option<Stretch> {
        let start = self.at.filter(|at| *at < self.end)?;
        let Step {
            cause,
            until,
            known,
        } = self.walk.step(start, state_only);
        if known <= start {
            self.unknown = Some(start);
            self.at = None;
            return None;
        }
        let known = Some(known).filter(|known| *known < Timestamp::MAX);
        self.at = until.into_iter().chain(known).min();
        Some(Stretch {
            start,
            cause,
            until,
        })
    }

    /// From where on nobody knows. None: it came to its end, or is still on its way.
    pub fn unknown(&self) -> Option<Timestamp> {
        self.unknown
    }
}
