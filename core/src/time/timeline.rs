//! The states of a schedule: from when on it is open or closed, and because of which window.
//!
//! A timeline is built once for some time ahead and then answers "now, and when next?" by binary
//! search, without allocating.

use jiff::Timestamp;
use sluice_crds::State;

use super::span::Span;

mod course;
mod list;
mod walk;

pub(crate) use course::States;
use course::{Course, Stretch};
pub(crate) use list::Covers;
pub(crate) use walk::{Gaps, Lists, Walk};

/// A window in a schedule's list, and the event if the window is a calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source {
    /// The place in the list `open` or `closed`.
    pub window: u16,
    /// The event of its calendar.
    pub event: Option<u16>,
}

/// Why a schedule is open or closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// Inside this `open` window, and in no closed one.
    Inside(Source),
    /// There are no `open` windows, and no closed one covers the instant.
    Unbounded,
    /// Inside this `closed` window.
    ClosedBy(Source),
    /// Inside this `open` window, but too late to start in it.
    LastStart(Source),
    /// In no `open` window.
    Outside,
    /// A window that is not known could decide, and none that is known does: it counts as this.
    Undecided(State),
}

impl Cause {
    /// What it makes the schedule.
    pub fn state(self) -> State {
        match self {
            Cause::Inside(_) | Cause::Unbounded => State::Open,
            Cause::ClosedBy(_) | Cause::LastStart(_) | Cause::Outside => State::Closed,
            Cause::Undecided(state) => state,
        }
    }

    fn is_by_event(self) -> bool {
        match self {
            Cause::Inside(source) | Cause::ClosedBy(source) | Cause::LastStart(source) => {
                source.event.is_some()
            }
            Cause::Unbounded | Cause::Outside | Cause::Undecided(_) => false,
        }
    }
}

/// A time that one window, or one event of a calendar, covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cover {
    /// The time.
    pub span: Span,
    /// Whose times they are.
    pub source: Source,
}

#[derive(Clone, Debug, PartialEq)]
struct Segment {
    start: Timestamp,
    cause: Cause,
}

/// A schedule's states for some time ahead.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    /// Ascending; the first starts where the timeline does; neighbors differ.
    segments: Vec<Segment>,
    /// The first instant that is not covered. None: the last segment has no end.
    end: Option<Timestamp>,
    /// When the cause of the last segment changes, as far as that is known.
    last_change: Option<Timestamp>,
    /// The changes of state that are known, perhaps beyond `end`.
    changes: Vec<(Timestamp, State)>,
}

/// What a timeline says of an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Why it is what it is.
    pub cause: Cause,
    /// When the cause changes, though perhaps not the state. None: not before `end`.
    pub until: Option<Timestamp>,
    /// Where the timeline ends: what follows is not known. None: it does not end.
    pub end: Option<Timestamp>,
    /// When the state changes. None: not as far as anyone has looked.
    pub next: Option<Timestamp>,
}

impl Moment {
    /// When it ends. None: never.
    pub fn holds_until(&self) -> Option<Timestamp> {
        self.until.into_iter().chain(self.end).min()
    }
}

/// How much of the time ahead is put into a timeline.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// From the start to an end, or to where nothing is expected any more.
    pub span: Span,
    /// Up to and with so many changes of state, and the next one for an end.
    pub changes: usize,
    /// With so many segments.
    pub segments: usize,
}

impl Timeline {
    /// The states that `walk` comes through, as far as `extent` goes.
    pub(crate) fn new(walk: Walk<impl Covers>, extent: Extent) -> Self {
        let mut course = Course::new(walk, extent.span);
        let mut timeline = Self {
            segments: Vec::new(),
            end: None,
            last_change: None,
            changes: Vec::new(),
        };
        let mut last: Option<Stretch> = None;
        while let Some(stretch) = course.next(timeline.end.is_some()) {
            let Stretch { start, cause, .. } = stretch;
            if last.is_some_and(|last| last.cause.state() != cause.state()) {
                timeline.changes.push((start, cause.state()));
                if timeline.changes.len() > extent.changes {
                    timeline.end_at(start, true);
                    return timeline;
                }
            }
            last = Some(stretch);
            timeline.add(Segment { start, cause }, extent.segments);
        }
        if let Some(unknown) = course.unknown() {
            timeline.end_at(unknown, last.is_some_and(|last| last.changes_at(unknown)));
        }
        timeline
    }

    /// Ends it, if it has not ended before; with a change of the cause, or because nothing more is known.
    fn end_at(&mut self, end: Timestamp, changes: bool) {
        if self.end.is_none() {
            self.end = Some(end);
            self.last_change = self.end.filter(|_| changes);
        }
    }

    fn add(&mut self, segment: Segment, most: usize) {
        if self.end.is_some()
            || self
                .segments
                .last()
                .is_some_and(|last| last.cause == segment.cause)
        {
            return;
        }
        if self.segments.len() < most {
            self.segments.push(segment);
        } else {
            self.end_at(segment.start, true);
        }
    }

    /// The same, ending at `end` if it does not before.
    pub(crate) fn up_to(mut self, end: Timestamp) -> Self {
        self.end = Some(self.end.map_or(end, |before| before.min(end)));
        self
    }

    /// What holds at `instant`, without allocating. None where the timeline does not reach: build
    /// another.
    pub fn at(&self, instant: Timestamp) -> Option<Moment> {
        if self.end.is_some_and(|end| instant >= end) {
            return None;
        }
        let behind = self
            .segments
            .partition_point(|segment| segment.start <= instant);
        let now = self.segments.get(behind.checked_sub(1)?)?;
        let passed = self.changes.partition_point(|change| change.0 <= instant);
        Some(Moment {
            cause: now.cause,
            until: self
                .segments
                .get(behind)
                .map_or(self.last_change, |segment| Some(segment.start)),
            end: self.end,
            next: self.changes.get(passed).map(|change| change.0),
        })
    }

    /// Every change of state after the start that is known, ascending: the last may be where the
    /// timeline ends.
    pub fn changes(&self) -> impl Iterator<Item = (Timestamp, State)> + '_ {
        self.changes.iter().copied()
    }

    /// Every stretch with one cause, ascending, the first from the start.
    pub fn causes(&self) -> impl Iterator<Item = (Timestamp, Cause)> + '_ {
        self.segments
            .iter()
            .map(|segment| (segment.start, segment.cause))
    }
}
