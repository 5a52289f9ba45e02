//! Why a schedule is open or closed, in a sentence.

use jiff::Timestamp;
use sluice_crds::State;

use super::{Entry, Reading, Schedule, When, calendar};
use crate::timeline::{Cause, Moment, Source};
use crate::words;

/// Names the window that decides, why it is there, and when that ends:
/// `closed by window 'fridays' (No deploys on Fridays) until Sat 2026-11-21 00:00 Europe/London`.
pub(crate) fn explain(schedule: &Schedule, readings: &[Reading], moment: &Moment) -> String {
    let window = |source| schedule.window(moment.cause, source, readings);
    let why = match moment.cause {
        Cause::Inside(source) => format!("inside window {}", window(source)),
        Cause::Unbounded => "outside every closed window".to_owned(),
        Cause::ClosedBy(source) => format!("closed by window {}", window(source)),
        Cause::LastStart(source) => {
            format!("too late to start in window {}", window(source))
        }
        Cause::Outside => "outside every open window".to_owned(),
    };
    let until = match moment.until {
        Some(until) => format!(" until {}", schedule.wall_clock(until)),
        None => ", with no change ahead".to_owned(),
    };
    let next = match moment.next {
        Some(next) if Some(next) != moment.until => {
            let becomes = match moment.cause.state() {
                State::Open => "closes",
                State::Closed => "opens",
            };
            format!("; {becomes} {}", schedule.wall_clock(next))
        }
        _ => String::new(),
    };
    format!("{why}{until}{next}")
}

impl Schedule {
    fn wall_clock(&self, at: Timestamp) -> String {
        words::instant(at, &self.zone, &self.zone_name)
    }

    fn window(&self, cause: Cause, source: Source, readings: &[Reading]) -> String {
        let Some(entry) = self.entry(cause) else {
            return format!("#{}", source.window + 1);
        };
        let Entry {
            label,
            reason,
            when,
            last_start: _,
        } = entry;
        let calendar = match when {
            When::Calendar(_, place) => calendar(readings, *place, entry).ok(),
            When::Window(_) => None,
        };
        let event = source.event.and_then(|event| calendar?.summary(event));
        match event.or(reason.as_deref()) {
            Some(more) => format!("'{label}' ({more})"),
            None => format!("'{label}'"),
        }
    }
}
