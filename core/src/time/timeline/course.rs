//! A walk from stretch to stretch, as far as anything is known.

use jiff::Timestamp;
use sluice_crds::State;

use super::Cause;
use super::list::Covers;
use super::walk::{Step, Walk};
use crate::time::span::Span;

/// A walk on its way.
pub(crate) struct Course<C> {
    walk: Walk<C>,
    /// Where the next stretch starts. None: there is none.
    at: Option<Timestamp>,
    /// Where it ends at the latest.
    end: Timestamp,
    /// From where on nothing is known.
    unknown: Option<Timestamp>,
}

/// A time with one cause. The next one may have the same.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch {
    pub start: Timestamp,
    pub cause: Cause,
    /// When another time of the windows decides. None: never.
    pub until: Option<Timestamp>,
}

impl Stretch {
    /// Whether its cause changes at `at` in any case. An event of a calendar may be followed by
    /// the same event.
    pub fn changes_at(&self, at: Timestamp) -> bool {
        self.until == Some(at) && !self.cause.is_by_event()
    }

    fn outcome(&self) -> (State, bool) {
        let decided = !matches!(self.cause, Cause::Undecided(_));
        (self.cause.state(), decided)
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

    /// Skips what is before `at`.
    fn skip_to(&mut self, at: Timestamp) {
        self.at = self.at.map(|next| next.max(at));
    }

    /// The instant after which nothing is known. None: it has ended, or continues.
    pub fn unknown(&self) -> Option<Timestamp> {
        self.unknown
    }
}

/// The outcome of a course from one instant to a later one: the state, and whether that is decided.
pub(crate) struct States<C> {
    course: Course<C>,
    /// Causes that make no difference are left out.
    state_only: bool,
    now: Option<Stretch>,
    /// The next one with another outcome.
    next: Option<Stretch>,
}

impl<C: Covers> States<C> {
    /// Through `span`. Where all windows are known, only the state matters.
    pub fn new(walk: Walk<C>, span: Span) -> Self {
        Self {
            state_only: !walk.has_gaps(),
            course: Course::new(walk, span),
            now: None,
            next: None,
        }
    }

    /// What holds at `at`, which is no earlier than at the last call, and when the
    /// outcome changes. None: it is not known.
    pub fn at(&mut self, at: Timestamp) -> Option<(Cause, Option<Timestamp>)> {
        if self.now.is_none() || self.next.is_some_and(|next| next.start <= at) {
            self.now = self.next.take();
            if self.course.at.is_some_and(|next| next <= at) {
                self.course.skip_to(at);
                self.now = self.course.next(self.state_only);
            }
            let now = self.now?;
            self.next = std::iter::from_fn(|| self.course.next(self.state_only))
                .find(|then| then.outcome() != now.outcome());
        }
        let unknown = self.course.unknown().is_some_and(|unknown| unknown <= at);
        let cause = self.now.filter(|_| !unknown)?.cause;
        Some((cause, self.next.map(|next| next.start)))
    }
}
