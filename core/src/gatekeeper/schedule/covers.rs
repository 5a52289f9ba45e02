//! When each window of a schedule is: by its cron or dates, or by the events of its calendar.

use jiff::{SignedDuration, Timestamp};

use super::events::{Dense, Events};
use super::{Entry, Fault, Reading, Schedule, When, calendar, missing};
use crate::time::calendar::Calendar;
use crate::time::timeline::{Cover, Covers, Gaps, Lists, Source, Walk};
use crate::time::window::{Next, Reach, Spans};

/// What each window may take at least, however many there are: enough to look at one window's
/// longest duration behind the start, and some years ahead.
const LEAST_STEPS: u32 = 4_000;
/// What each may take at least to look at a calendar on one day: enough for all the events that
/// one may have.
const LEAST_STEPS_OF_A_DAY: u32 = 30_000;

/// How many steps one window may take. A step is an event, a day, a time that is looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    /// For everything that lies ahead.
    pub ahead: u32,
    /// For the first day alone, if that share is not enough even for it. None: 0.
    pub first_day: u32,
}

/// A window with its place in its list.
type Numbered<'a> = (u16, &'a Entry);

impl Schedule {
    /// Its windows within `reach`, whose steps they share; and `first_day` steps in addition, so that
    /// the day of `reach.from` is known in any case.
    ///
    /// # Errors
    /// A calendar that is missing among the readings, or makes no sense.
    pub(super) fn walk<'a>(
        &'a self,
        readings: &'a [Reading],
        reach: Reach,
        first_day: u32,
    ) -> Result<Walk<WindowCovers<'a>>, Fault> {
        if let Some(fault) = self.fault(readings) {
            return Err(fault);
        }
        let whole = |entry: &&Numbered<'a>| entry.1.last_start > SignedDuration::ZERO;
        let closed = Self::listed(&self.closed, readings);
        let open = Self::listed(&self.open, readings);
        let whole: Vec<_> = open.iter().filter(whole).copied().collect();
        let all = u32::try_from(open.len() + whole.len() + closed.len()).unwrap_or(u32::MAX);
        let share = |steps: u32| steps / all.max(1);
        let share = Share {
            ahead: share(reach.steps).max(LEAST_STEPS),
            first_day: match first_day {
                0 => 0,
                steps => share(steps).max(LEAST_STEPS_OF_A_DAY),
            },
        };
        let reach = Reach {
            steps: share.ahead,
            ..reach
        };
        let covers = |entries: Vec<Numbered<'a>>, shortened: fn(&Entry) -> SignedDuration| {
            let covers = |entry: Numbered<'a>| {
                self.covers(entry, readings, (reach, share), shortened(entry.1))
                    .transpose()
            };
            let found = entries.into_iter().filter_map(covers);
            found.collect::<Result<Vec<_>, Fault>>()
        };
        let lists = Lists {
            closed: covers(closed, |_| SignedDuration::ZERO)?,
            open: covers(open, |entry| entry.last_start)?,
            whole: covers(whole, |_| SignedDuration::ZERO)?,
            gaps: Gaps {
                closed: missing(&self.closed, readings).is_some(),
                open: missing(&self.open, readings).is_some(),
                state: self.undecided,
            },
        };
        Ok(Walk::new(lists, reach.from))
    }

    /// The windows of a list, without those that say no more than one before them: their calendar
    /// is the same, and that is the one named.
    fn listed<'a>(entries: &'a [Entry], readings: &[Reading]) -> Vec<Numbered<'a>> {
        let mut known: Vec<(&Calendar, SignedDuration)> = Vec::new();
        let mut is_new = |entry: &Entry| {
            let When::Calendar(_, place) = entry.when else {
                return true;
            };
            let Some(calendar) = calendar(readings, place) else {
                return true;
            };
            let same = |&(other, last_start): &(&Calendar, SignedDuration)| {
                last_start == entry.last_start
                    && (std::ptr::eq(other, calendar) || other == calendar)
            };
            let new = !known.iter().any(same);
            known.push((calendar, entry.last_start));
            new
        };
        (0..)
            .zip(entries)
            .filter(|(_, entry)| is_new(entry))
            .collect()
    }

    /// None: the calendar cannot be read.
    fn covers<'a>(
        &'a self,
        (window, entry): Numbered<'a>,
        readings: &'a [Reading],
        (reach, share): (Reach, Share),
        shortened: SignedDuration,
    ) -> Result<Option<WindowCovers<'a>>, Fault> {
        Ok(match &entry.when {
            When::Window(when) => Some(WindowCovers::Window {
                window,
                spans: when.spans(&self.zone, reach, shortened),
            }),
            When::Calendar(_, place) => {
                let Some(calendar) = calendar(readings, *place) else {
                    return Ok(None);
                };
                let events = Events::new(window, calendar, reach, share, shortened);
                let broken = |Dense { day, error }| Fault::Broken {
                    window: entry.label.clone(),
                    error,
                    within: Some(day),
                };
                Some(WindowCovers::Calendar(events.map_err(broken)?))
            }
        })
    }
}

/// When one window is.
pub(crate) enum WindowCovers<'a> {
    Window { window: u16, spans: Spans<'a> },
    Calendar(Events<'a>),
}

impl Covers for WindowCovers<'_> {
    fn next_cover(&mut self) -> Next<Cover> {
        match self {
            WindowCovers::Window { window, spans } => match spans.next_span() {
                Next::Some(span) => Next::Some(Cover {
                    source: Source {
                        window: *window,
                        event: None,
                    },
                    span,
                }),
                Next::Never => Next::Never,
                Next::Unknown(from) => Next::Unknown(from),
            },
            WindowCovers::Calendar(events) => events.next_cover(),
        }
    }

    fn skip(&mut self, to: Timestamp, whole: bool) {
        match self {
            WindowCovers::Window { spans, .. } => spans.skip(to, whole),
            WindowCovers::Calendar(events) => events.skip(to),
        }
    }
}
