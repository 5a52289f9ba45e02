//! What a gatekeeper with a schedule says at an instant.

use std::borrow::Cow;

use jiff::Timestamp;

use super::Keeper;
use super::schedule::{self, Fault, Schedule};
use crate::time::clock::Now;
use crate::time::timeline::{Cause, Moment, Timeline};
use crate::verdict::{Opinion, Reason};

impl Keeper {
    pub(super) fn scheduled(
        &self,
        schedule: &Schedule,
        timeline: Result<&Timeline, &Fault>,
        now: Now,
    ) -> Opinion {
        match self.moment(schedule, timeline, now.at) {
            Err(fault) => self.in_want_of_a_calendar(&fault, now),
            Ok(moment) => Opinion {
                state: moment.cause.state(),
                reason: reason_of(moment.cause),
                until: moment.holds_until(),
                next: moment.next,
            },
        }
    }

    /// The moment at `at`: from the timeline at hand, or from one made for the occasion.
    pub(super) fn moment<'a>(
        &self,
        schedule: &Schedule,
        at_hand: Result<&Timeline, &'a Fault>,
        at: Timestamp,
    ) -> Result<Moment, Cow<'a, Fault>> {
        match at_hand {
            Ok(timeline) => match timeline.at(at) {
                Some(moment) => Ok(moment),
                None => schedule
                    .moment(self.evidence.calendars(), at)
                    .map_err(Cow::Owned),
            },
            Err(fault) if holds(fault, at) => Err(Cow::Borrowed(fault)),
            Err(_) => schedule
                .moment(self.evidence.calendars(), at)
                .map_err(Cow::Owned),
        }
    }

    fn in_want_of_a_calendar(&self, fault: &Fault, now: Now) -> Opinion {
        match fault {
            Fault::Unread { .. } => self.as_reported(now),
            Fault::Broken { within, .. } => Opinion {
                until: within.map(|within| within.end),
                ..Opinion::closed(Reason::EvidenceBroken)
            },
            Fault::TooMuch => Opinion::closed(Reason::EvidenceBroken),
        }
    }

    pub(super) fn explain_schedule(
        &self,
        schedule: &Schedule,
        timeline: Result<&Timeline, &Fault>,
        now: Now,
    ) -> String {
        match self.moment(schedule, timeline, now.at) {
            Ok(moment) => schedule::explain(schedule, self.evidence.calendars(), &moment),
            Err(fault) => fault.to_string(),
        }
    }
}

pub(super) fn reason_of(cause: Cause) -> Reason {
    match cause {
        Cause::Inside(_) => Reason::InsideWindow,
        Cause::Unbounded => Reason::NoClosedWindow,
        Cause::ClosedBy(_) => Reason::ClosedWindow,
        Cause::LastStart(_) => Reason::LastStart,
        Cause::Outside => Reason::OutsideWindow,
        Cause::Undecided(_) => Reason::EvidenceUnavailable,
    }
}

/// Whether `fault` is about `at`.
pub(super) fn holds(fault: &Fault, at: Timestamp) -> bool {
    fault.within().is_none_or(|within| within.contains(at))
}
