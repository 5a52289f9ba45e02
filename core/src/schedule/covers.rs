//! When each window of a schedule is: by its cron or dates, or by the events of its calendar.

use std::collections::VecDeque;

use jiff::{SignedDuration, Timestamp};

use super::{Entry, Fault, Reading, Schedule, When, calendar, missing};
use crate::calendar::{Calendar, Occurrence};
use crate::span::Span;
use crate::timeline::{Cover, Covers, Gaps, Lists, Source, Walk};
use crate::window::{Next, Reach, Spans};

const DAY: SignedDuration = SignedDuration::from_hours(24);
/// How much of a calendar is looked at first, and at most at once.
const FIRST_DAYS: i32 = 10;
const MOST_DAYS: i32 = 400;
/// What each window may take at least, however many there are: enough to look at one window's
/// longest duration behind the start, and some years ahead.
const LEAST_STEPS: u32 = 4_000;

impl Schedule {
    /// Its windows within `reach`, whose steps they share.
    ///
    /// # Errors
    /// A calendar that is missing among the readings, or makes no sense.
    pub(super) fn walk<'a>(
        &'a self,
        readings: &'a [Reading],
        reach: Reach,
    ) -> Result<Walk<WindowCovers<'a>>, Fault> {
        if let Some(fault) = self.fault(readings) {
            return Err(fault);
        }
        let none = SignedDuration::ZERO;
        let late = self
            .open
            .iter()
            .filter(|entry| entry.last_start > none)
            .count();
        let all = u32::try_from(self.open.len() + late + self.closed.len()).unwrap_or(u32::MAX);
        let reach = Reach {
            steps: (reach.steps / all.max(1)).max(LEAST_STEPS),
            ..reach
        };
        let list = |entries: &'a [Entry], shortened: fn(&Entry) -> Option<SignedDuration>| {
            (0..)
                .zip(entries)
                .filter_map(|(window, entry)| Some((window, entry, shortened(entry)?)))
                .filter_map(|(window, entry, by)| {
                    self.covers(window, entry, readings, reach, by).transpose()
                })
                .collect::<Result<Vec<_>, Fault>>()
        };
        let lists = Lists {
            closed: list(&self.closed, |_| Some(SignedDuration::ZERO))?,
            open: list(&self.open, |entry| Some(entry.last_start))?,
            whole: list(&self.open, |entry| {
                (entry.last_start > SignedDuration::ZERO).then_some(SignedDuration::ZERO)
            })?,
            gaps: Gaps {
                closed: missing(&self.closed, readings).is_some(),
                open: missing(&self.open, readings).is_some(),
                state: self.undecided,
            },
        };
        Ok(Walk::new(lists, reach.from))
    }

    /// None: the calendar cannot be had.
    fn covers<'a>(
        &'a self,
        window: u16,
        entry: &'a Entry,
        readings: &'a [Reading],
        reach: Reach,
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
                let events = Events::new(window, calendar, reach, shortened);
                let broken = |error| Fault::Broken {
                    window: entry.label.clone(),
                    error,
                };
                Some(WindowCovers::Calendar(events.map_err(broken)?))
            }
        })
    }
}

/// When one window is.
pub(super) enum WindowCovers<'a> {
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

/// When the events of a calendar are, looked up piece by piece.
pub(super) struct Events<'a> {
    window: u16,
    calendar: &'a Calendar,
    shortened: SignedDuration,
    ready: VecDeque<Occurrence>,
    /// Up to where it was looked at.
    looked: Timestamp,
    /// From where a start counts: earlier ones were told.
    told: Timestamp,
    days: i32,
    limit: Timestamp,
}

impl<'a> Events<'a> {
    /// # Errors
    /// What is wrong with the calendar in the first piece of time.
    fn new(
        window: u16,
        calendar: &'a Calendar,
        reach: Reach,
        shortened: SignedDuration,
    ) -> Result<Self, crate::calendar::CalendarError> {
        let mut new = Self {
            window,
            calendar,
            shortened,
            ready: VecDeque::new(),
            looked: reach.from,
            told: Timestamp::MIN,
            days: FIRST_DAYS,
            limit: reach.limit,
        };
        new.look_further()?;
        Ok(new)
    }

    fn look_further(&mut self) -> Result<(), crate::calendar::CalendarError> {
        let piece = Span {
            start: self.looked,
            end: self
                .looked
                .saturating_add(DAY * self.days)
                .unwrap_or(Timestamp::MAX),
        };
        let told = self.told;
        let found = self.calendar.occurrences(piece)?;
        self.ready
            .extend(found.into_iter().filter(|found| found.span.start >= told));
        self.looked = piece.end;
        // Those that overlap the next piece and started before it are told by then.
        self.told = piece.end;
        self.days = (self.days * 2).min(MOST_DAYS);
        Ok(())
    }

    fn next_cover(&mut self) -> Next<Cover> {
        loop {
            if let Some(Occurrence { span, event }) = self.ready.pop_front() {
                let span = span.shortened(self.shortened);
                if span.is_empty() {
                    continue;
                }
                return Next::Some(Cover {
                    source: Source {
                        window: self.window,
                        event: Some(event),
                    },
                    span,
                });
            }
            if self.looked >= self.limit {
                return Next::Never;
            }
            if self.look_further().is_err() {
                return Next::Unknown(self.looked);
            }
        }
    }

    fn skip(&mut self, to: Timestamp) {
        if self.looked < to {
            self.ready.clear();
            self.looked = to;
            self.told = Timestamp::MIN;
        }
    }
}
