//! How `schedule` answers as a kind of gatekeeper: its windows with what was read of its calendars.

use std::borrow::Cow;
use std::sync::Arc;

use jiff::Timestamp;
use sluice_crds::gatekeeper::{self as api, CalendarStatus, EvidenceStatus};

use super::{Fault, Reading, Schedule, cause, explain};
use crate::gatekeeper::Evidence;
use crate::gatekeeper::kind::{Basis, Judge, KindSpec, Period, Setup, Text, Texts, Walk};
use crate::text::refusal::Refusals;
use crate::text::words;
use crate::time::calendar::Calendar;
use crate::time::timeline::{Cause, Moment, States, Timeline};
use crate::verdict::question::Question;
use crate::verdict::{Opinion, Reason};

const FIELD: &str = "spec.schedule";

impl KindSpec for api::Schedule {
    fn judge(&self, setup: &Setup<'_>) -> Result<Arc<dyn Judge>, Refusals> {
        let schedule = Schedule::read(self, FIELD)?.on_error(setup.on_error.into());
        let readings = setup.evidence.shared::<Vec<Reading>>();
        let known = readings.as_deref().map_or(&[][..], Vec::as_slice);
        let timeline = match setup.period {
            Period::From(from) => schedule.timeline(known, from),
            Period::Within(span) => schedule.timeline_within(known, span),
        };
        Ok(Arc::new(Scheduled {
            schedule,
            timeline,
            readings,
        }))
    }

    fn check(&self) -> Result<(), Refusals> {
        Schedule::read(self, FIELD).map(drop)
    }

    fn texts(&self) -> Vec<Text<'_>> {
        let check = |bytes: &[u8]| match Schedule::read(self, FIELD) {
            Ok(schedule) => {
                let read = Calendar::read(bytes, schedule.zone());
                read.map(drop).map_err(|error| error.to_string())
            }
            // What is wrong with the spec is reported already.
            Err(_) => Ok(()),
        };
        let windows = self.open.iter().chain(&self.closed);
        windows
            .filter_map(|window| window.calendar.as_ref()?.config_map_ref.as_ref())
            .map(|reference| Text {
                reference,
                field: FIELD,
                without: "onError decides",
                check: Box::new(check),
            })
            .collect()
    }

    fn read(&self, texts: &dyn Texts) -> Evidence {
        let Ok(schedule) = Schedule::read(self, FIELD) else {
            return Evidence::default();
        };
        let read = |source: &api::Calendar| {
            let Some(reference) = &source.config_map_ref else {
                return texts.without_addresses().map(Reading::Unavailable);
            };
            Some(match texts.text(reference)? {
                Err(why) => Reading::Unavailable(why),
                Ok(bytes) => match Calendar::read(bytes, schedule.zone()) {
                    Ok(calendar) => Reading::Read {
                        calendar: Arc::new(calendar),
                        good_until: None,
                        overdue: None,
                    },
                    Err(error) => Reading::Broken(error),
                },
            })
        };
        let calendars = schedule.calendars();
        let readings: Option<Vec<_>> = calendars.map(|(_, source)| read(source)).collect();
        readings.map_or_else(Evidence::default, Evidence::of)
    }
}

/// A schedule with its evidence.
#[derive(Debug)]
struct Scheduled {
    schedule: Schedule,
    timeline: Result<Timeline, Fault>,
    /// Of its calendars, in the order of [`Schedule::calendars`]. None: not read yet.
    readings: Option<Arc<Vec<Reading>>>,
}

impl Judge for Scheduled {
    fn opinion(&self, question: Question<'_>) -> Opinion {
        let good_until = self.good_until();
        if good_until.is_some_and(|end| end <= question.evidence_at().at) {
            return Opinion::closed(Reason::Expired);
        }
        let opinion = match self.moment(question.now.at) {
            Err(fault) => fault.opinion(),
            Ok(moment) => Opinion {
                state: moment.cause.state(),
                reason: reason_of(moment.cause),
                until: moment.holds_until(),
                next: moment.next,
            },
        };
        let good_until = good_until.filter(|_| !question.is_ahead());
        Opinion {
            until: opinion.until.into_iter().chain(good_until).min(),
            ..opinion
        }
    }

    fn explain(&self, opinion: &Opinion, question: Question<'_>) -> String {
        if let (Reason::Expired, Some(end)) = (opinion.reason, self.good_until()) {
            let end = words::instant_utc(end);
            return format!("its evidence expired {end}");
        }
        match self.moment(question.now.at) {
            Ok(moment) => explain(&self.schedule, self.readings(), &moment),
            Err(fault) => fault.to_string(),
        }
    }

    fn cause(&self, opinion: &Opinion, question: Question<'_>) -> String {
        let reason = opinion.reason;
        let by_windows = reason.is_by_window() || reason == Reason::EvidenceUnavailable;
        match self.moment(question.now.at) {
            Ok(moment) if by_windows => cause(&self.schedule, self.readings(), moment.cause),
            Ok(_) | Err(_) => self.explain(opinion, question),
        }
    }

    fn basis(&self) -> Basis {
        Basis::Clock
    }

    fn is_unread(&self, _: Question<'_>) -> bool {
        matches!(self.timeline, Err(Fault::Unread { .. }))
    }

    fn good_until(&self) -> Option<Timestamp> {
        self.readings().iter().filter_map(Reading::good_until).min()
    }

    fn status(&self, _: Timestamp) -> EvidenceStatus {
        let calendars = self.schedule.calendars().zip(self.readings());
        EvidenceStatus {
            calendars: calendars
                .map(|((window, _), reading)| reading.status(window))
                .collect(),
            ..EvidenceStatus::default()
        }
    }

    /// That a calendar cannot be read, even if the windows that are known decide without it.
    fn trouble(&self, reason: Reason) -> Reason {
        match self.schedule.missing(self.readings()) {
            Some(_) if reason.is_by_window() => Reason::EvidenceUnavailable,
            Some(_) | None => reason,
        }
    }

    fn is_ready_for(&self, at: Timestamp) -> bool {
        match &self.timeline {
            Ok(timeline) => timeline.at(at).is_some(),
            Err(fault) => fault.is_about(at),
        }
    }

    /// From the timeline and, behind its end, from one walk over the windows, however many instants
    /// are asked about.
    fn walk(&self) -> Option<Walk<'_>> {
        let timeline = self.timeline.as_ref().ok()?;
        // A timeline has the changes of the state. In addition, what is open may start or stop being open
        // by `onError` alone.
        let whole = self.schedule.missing(self.readings()).is_none();
        let mut behind: Option<States<_>> = None;
        Some(Box::new(move |at| {
            let at_hand = timeline.at(at).filter(|_| whole);
            let (cause, next) = match (at_hand, &mut behind) {
                (Some(moment), _) => (moment.cause, moment.next),
                (None, Some(states)) => states.at(at)?,
                (None, behind @ None) => {
                    let states = self.schedule.states(self.readings(), at).ok()?;
                    behind.insert(states).at(at)?
                }
            };
            Some(Opinion {
                next,
                ..Opinion::of(cause.state(), reason_of(cause))
            })
        }))
    }
}

impl Scheduled {
    fn readings(&self) -> &[Reading] {
        self.readings.as_deref().map_or(&[], Vec::as_slice)
    }

    /// The moment at `at`: from the timeline, or from one made for the occasion.
    fn moment(&self, at: Timestamp) -> Result<Moment, Cow<'_, Fault>> {
        match self.timeline.as_ref().map(|timeline| timeline.at(at)) {
            Ok(Some(moment)) => Ok(moment),
            Err(fault) if fault.is_about(at) => Err(Cow::Borrowed(fault)),
            Ok(None) | Err(_) => {
                let moment = self.schedule.moment(self.readings(), at);
                moment.map_err(Cow::Owned)
            }
        }
    }
}

impl Fault {
    /// Whether it is about `at`.
    fn is_about(&self, at: Timestamp) -> bool {
        self.within().is_none_or(|within| within.contains(at))
    }

    fn opinion(&self) -> Opinion {
        match self {
            Fault::Unread { .. } => Opinion::closed(Reason::NotObserved),
            Fault::Broken { within, .. } => Opinion {
                until: within.map(|within| within.end),
                ..Opinion::closed(Reason::EvidenceBroken)
            },
            Fault::TooMuch => Opinion::closed(Reason::EvidenceBroken),
        }
    }
}

impl Reading {
    /// Until when it may be relied on. None: until it is seen to change.
    fn good_until(&self) -> Option<Timestamp> {
        match self {
            Reading::Read { good_until, .. } => *good_until,
            Reading::Unavailable(_) | Reading::Broken(_) => None,
        }
    }

    /// As statuses have it: the calendar of this window.
    fn status(&self, window: &str) -> CalendarStatus {
        let (calendar, error) = match self {
            Reading::Read {
                calendar, overdue, ..
            } => (Some(calendar), overdue.as_ref().map(ToString::to_string)),
            Reading::Unavailable(why) => (None, Some(why.clone())),
            Reading::Broken(error) => (None, Some(error.to_string())),
        };
        CalendarStatus {
            window: window.to_owned(),
            events: calendar.and_then(|calendar| i64::try_from(calendar.events()).ok()),
            digest: calendar.map(|calendar| calendar.digest().to_owned()),
            error,
        }
    }
}

fn reason_of(cause: Cause) -> Reason {
    match cause {
        Cause::Inside(_) => Reason::InsideWindow,
        Cause::Unbounded => Reason::NoClosedWindow,
        Cause::ClosedBy(_) => Reason::ClosedWindow,
        Cause::LastStart(_) => Reason::LastStart,
        Cause::Outside => Reason::OutsideWindow,
        Cause::Undecided(_) => Reason::EvidenceUnavailable,
    }
}
