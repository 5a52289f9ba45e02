//! Why a schedule is open or closed, in a sentence.

use jiff::Timestamp;
use sluice_crds::State;

use super::{Entry, Reading, Schedule, When, calendar};
use crate::text::words;
use crate::time::timeline::{Cause, Moment, Source};

/// Names the window that decides, why it is there, when that ends, and what could not be asked:
/// `closed by window 'fridays' (No deploys on Fridays) until Sat 2026-11-21 00:00 Europe/London`.
pub(crate) fn explain(schedule: &Schedule, readings: &[Reading], moment: &Moment) -> String {
    let missing = missing(schedule, readings, moment.cause);
    let why = schedule.why(moment.cause, readings);
    let until = match (moment.cause, moment.until) {
        (Cause::Undecided(State::Open), Some(until)) => {
            format!(", which decides until {}", schedule.wall_clock(until))
        }
        (Cause::Undecided(_), Some(until)) => {
            let until = schedule.wall_clock(until);
            format!("; onError is closed, which decides until {until}")
        }
        (Cause::Undecided(_), None) => String::new(),
        (_, Some(until)) => format!(" until {}", schedule.wall_clock(until)),
        (_, None) if moment.end.is_some() => ", with no change known ahead".to_owned(),
        (_, None) => ", with no change ahead".to_owned(),
    };
    let next = match moment.next {
        Some(next) if Some(next) != moment.until => {
            let opens = moment.cause.state() != State::Open;
            let becomes = if opens { "opens" } else { "closes" };
            format!("; {becomes} {}", schedule.wall_clock(next))
        }
        _ => String::new(),
    };
    format!("{why}{until}{next}{missing}")
}

/// The same without the instants.
pub(crate) fn cause(schedule: &Schedule, readings: &[Reading], cause: Cause) -> String {
    let why = schedule.why(cause, readings);
    format!("{why}{}", missing(schedule, readings, cause))
}

/// What could not be asked, where something else decided.
fn missing(schedule: &Schedule, readings: &[Reading], cause: Cause) -> String {
    match (cause, schedule.missing(readings)) {
        (Cause::Undecided(_), _) | (_, None) => String::new(),
        (_, Some(missing)) => format!("; {missing}"),
    }
}

impl Schedule {
    fn wall_clock(&self, at: Timestamp) -> String {
        words::instant(at, &self.zone, &self.zone_name)
    }

    fn why(&self, cause: Cause, readings: &[Reading]) -> String {
        let window = |source| self.window(cause, source, readings);
        match cause {
            Cause::Inside(source) => format!("inside window {}", window(source)),
            Cause::Unbounded => "outside every closed window".to_owned(),
            Cause::ClosedBy(source) => format!("closed by window {}", window(source)),
            Cause::LastStart(source) => format!("too late to start in window {}", window(source)),
            Cause::Outside => "outside every open window".to_owned(),
            Cause::Undecided(state) => {
                let missing = self.missing(readings);
                let missing = missing.map_or_else(String::new, |missing| missing.to_string());
                match state == State::Open {
                    true => format!("{missing}; onError is open"),
                    false => missing,
                }
            }
        }
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
            When::Calendar(_, place) => calendar(readings, *place),
            When::Window(_) => None,
        };
        let event = source.event.and_then(|event| calendar?.summary(event));
        match event.or(reason.as_deref()) {
            Some(more) => format!("'{label}' ({more})"),
            None => format!("'{label}'"),
        }
    }
}
