//! `manual`: a switch, with an end if it is given one.

use jiff::Timestamp;
use sluice_crds::gatekeeper::Manual;
use sluice_crds::{Setting, State};

use crate::text::refusal::Refusal;
use crate::text::words;
use crate::verdict::{Opinion, Reason};

/// The last instant that can be read lies within the day that begins here: 9999-12-30T22:00Z.
const END_OF_TIME: Timestamp = Timestamp::constant(253_402_128_000, 0);

/// What is wrong with the spec.
///
/// # Errors
/// Its end.
pub(crate) fn check(spec: &Manual) -> Result<(), Refusal> {
    match &spec.until {
        Some(until) if until.0 >= END_OF_TIME => Err(Refusal::new(
            "spec.manual.until",
            format!("`{}` is not before {END_OF_TIME}", until.0),
            "write an earlier instant, or remove it",
        )),
        Some(_) | None => Ok(()),
    }
}

/// Where the switch stands at `now`: as it was thrown, and after `until` the other way.
pub(crate) fn opinion(spec: &Manual, now: Timestamp) -> Opinion {
    let thrown = State::from(spec.state);
    let until = spec.until.as_ref().map(|until| until.0);
    let ended = until.is_some_and(|until| until <= now);
    let state = match (thrown, ended) {
        (state, false) => state,
        (State::Open, true) => State::Closed,
        (State::Closed | State::Conditional, true) => State::Open,
    };
    let next = until.filter(|_| !ended);
    Opinion {
        state,
        reason: Reason::Manual,
        until: next,
        next,
    }
}

/// Where the switch stands, in a sentence.
pub(crate) fn explain(spec: &Manual, opinion: &Opinion) -> String {
    let thrown = match spec.state {
        Setting::Open => "switched open",
        Setting::Closed => "switched closed",
    };
    let why = spec
        .reason
        .as_ref()
        .map(|reason| format!(" ({reason})"))
        .unwrap_or_default();
    match (&spec.until, opinion.next) {
        (Some(until), Some(_)) => format!("{thrown}{why} until {}", words::instant_utc(until.0)),
        (Some(until), None) => {
            format!("{thrown}{why}, which ended {}", words::instant_utc(until.0))
        }
        (None, _) => format!("{thrown}{why}"),
    }
}
