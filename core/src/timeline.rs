//! What a schedule comes to: from when on it is open or closed, and because of which window.
//!
//! A timeline is built once for a stretch of time and then answers "now, and when next?" by one
//! binary search.

use std::collections::BTreeSet;

use jiff::Timestamp;
use sluice_crds::State;

use crate::span::Span;

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
}

impl Cause {
    /// What it makes the schedule.
    pub fn state(self) -> State {
        match self {
            Cause::Inside(_) | Cause::Unbounded => State::Open,
            Cause::ClosedBy(_) | Cause::LastStart(_) | Cause::Outside => State::Closed,
        }
    }
}

/// The times that one window, or one event of a calendar, covers.
#[derive(Clone, Debug)]
pub struct Cover {
    /// Whose times they are.
    pub source: Source,
    /// The times.
    pub span: Span,
}

/// Everything that a schedule's windows cover in some stretch of time.
#[derive(Clone, Debug, Default)]
pub struct Covers {
    /// Whether the schedule has `open` windows at all.
    pub bounded: bool,
    /// When `open` windows admit.
    pub open: Vec<Cover>,
    /// When `open` windows last, their last-start part included.
    pub whole: Vec<Cover>,
    /// When `closed` windows last.
    pub closed: Vec<Cover>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Segment {
    start: Timestamp,
    cause: Cause,
}

/// A schedule's states through a stretch of time.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    /// Ascending; the first starts where the timeline does; neighbors differ.
    segments: Vec<Segment>,
    /// The first instant not covered. None: nothing changes any more.
    end: Option<Timestamp>,
}

/// What a timeline says of an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Why it is what it is.
    pub cause: Cause,
    /// When the cause changes, though perhaps not the state, or the timeline ends. None: never.
    pub until: Option<Timestamp>,
    /// When the state changes, or the timeline ends. None: never.
    pub next: Option<Timestamp>,
}

impl Timeline {
    /// The states that `covers` come to within `span`.
    pub(crate) fn new(covers: &Covers, span: Span) -> Self {
        let mut segments: Vec<Segment> = Vec::new();
        for segment in sweep(covers, span) {
            if segments
                .last()
                .is_none_or(|last| last.cause != segment.cause)
            {
                segments.push(segment);
            }
        }
        Self {
            segments,
            end: Some(span.end),
        }
    }

    /// The same, with nothing after it.
    pub(crate) fn for_ever(self) -> Self {
        Self { end: None, ..self }
    }

    /// The same, cut off behind its `changes`-th change of state, to hold no more than is asked
    /// of it.
    pub(crate) fn cut_behind(mut self, changes: usize) -> Self {
        let cut = self.changes().nth(changes);
        if let Some((at, _)) = cut {
            self.segments.retain(|segment| segment.start < at);
            self.segments.shrink_to_fit();
            self.end = Some(at);
        }
        self
    }

    /// What holds at `instant`, in a single search, without allocating. None where the timeline
    /// does not reach: build another.
    pub fn at(&self, instant: Timestamp) -> Option<Moment> {
        if self.end.is_some_and(|end| instant >= end) {
            return None;
        }
        let behind = self
            .segments
            .partition_point(|segment| segment.start <= instant);
        let (now, later) = (self.segments[..behind].last()?, &self.segments[behind..]);
        let differs = |segment: &&Segment| segment.cause.state() != now.cause.state();
        Some(Moment {
            cause: now.cause,
            until: later.first().map(|segment| segment.start).or(self.end),
            next: later
                .iter()
                .find(differs)
                .map(|segment| segment.start)
                .or(self.end),
        })
    }

    /// Every change of state after the start, ascending.
    pub fn changes(&self) -> impl Iterator<Item = (Timestamp, State)> + '_ {
        self.segments.windows(2).filter_map(|pair| {
            let (from, to) = (pair[0].cause.state(), pair[1].cause.state());
            (from != to).then_some((pair[1].start, to))
        })
    }

    /// Every stretch with one cause, ascending, the first from the start.
    pub fn causes(&self) -> impl Iterator<Item = (Timestamp, Cause)> + '_ {
        self.segments
            .iter()
            .map(|segment| (segment.start, segment.cause))
    }
}

/// Which of the three lists of [`Covers`] a boundary belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum List {
    Open,
    Whole,
    Closed,
}

/// The covers around the sweep's instant, by their end: the one that lasts longest explains best.
#[derive(Default)]
struct Around {
    open: BTreeSet<(Timestamp, Source)>,
    whole: BTreeSet<(Timestamp, Source)>,
    closed: BTreeSet<(Timestamp, Source)>,
}

impl Around {
    fn list(&mut self, list: List) -> &mut BTreeSet<(Timestamp, Source)> {
        match list {
            List::Open => &mut self.open,
            List::Whole => &mut self.whole,
            List::Closed => &mut self.closed,
        }
    }

    fn cause(&self, bounded: bool) -> Cause {
        if let Some(&(_, source)) = self.closed.last() {
            Cause::ClosedBy(source)
        } else if !bounded {
            Cause::Unbounded
        } else if let Some(&(_, source)) = self.open.last() {
            Cause::Inside(source)
        } else if let Some(&(_, source)) = self.whole.last() {
            Cause::LastStart(source)
        } else {
            Cause::Outside
        }
    }
}

/// One segment for each instant at which any window starts or ends, the first at `span.start`.
fn sweep(covers: &Covers, span: Span) -> Vec<Segment> {
    let mut boundaries = Vec::new();
    for (list, covered) in [
        (List::Open, &covers.open),
        (List::Whole, &covers.whole),
        (List::Closed, &covers.closed),
    ] {
        for Cover {
            source,
            span: whole,
        } in covered
        {
            if let Some(inside) = whole.within(&span) {
                // Named by its true end, which may lie behind the stretch looked at.
                boundaries.push((inside.start, true, list, (whole.end, *source)));
                boundaries.push((inside.end, false, list, (whole.end, *source)));
            }
        }
    }
    boundaries.sort_unstable();
    let mut around = Around::default();
    let mut segments = Vec::new();
    let mut at = span.start;
    let mut rest = boundaries.into_iter().peekable();
    while at < span.end {
        while let Some((_, starts, list, cover)) = rest.next_if(|boundary| boundary.0 <= at) {
            if starts {
                around.list(list).insert(cover);
            } else {
                around.list(list).remove(&cover);
            }
        }
        segments.push(Segment {
            start: at,
            cause: around.cause(covers.bounded),
        });
        at = rest.peek().map_or(span.end, |boundary| boundary.0);
    }
    segments
}
