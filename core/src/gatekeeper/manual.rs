//! `manual`: a switch, with an end if it is given one.

use std::sync::Arc;

use jiff::Timestamp;
use sluice_crds::gatekeeper::Manual;
use sluice_crds::{Setting, State};

use super::kind::{Basis, Judge, KindSpec, Setup};
use crate::text::refusal::{Refusal, Refusals};
use crate::text::words;
use crate::verdict::question::Question;
use crate::verdict::{Opinion, Reason};

/// The last instant that can be read lies within the day that begins here: 9999-12-30T22:00Z.
const END_OF_TIME: Timestamp = Timestamp::constant(253_402_128_000, 0);

impl KindSpec for Manual {
    fn judge(&self, _: &Setup<'_>) -> Result<Arc<dyn Judge>, Refusals> {
        match &self.until {
            Some(until) if until.0 >= END_OF_TIME => Err(Refusals::from(Refusal::new(
                "spec.manual.until",
                format!("`{}` is not before {END_OF_TIME}", until.0),
                "write an earlier instant, or remove it",
            ))),
            Some(_) | None => Ok(Arc::new(self.clone())),
        }
    }
}

/// A switch has no evidence.
impl Judge for Manual {
    /// As it was thrown, and after `until` the other way.
    fn opinion(&self, question: Question<'_>) -> Opinion {
        let until = self.until.as_ref().map(|until| until.0);
        let ended = until.is_some_and(|until| until <= question.now.at);
        let state = match (State::from(self.state), ended) {
            (state, false) => state,
            (State::Open, true) => State::Closed,
            (State::Closed | State::Conditional, true) => State::Open,
        };
        let next = until.filter(|_| !ended);
        Opinion {
            until: next,
            next,
            ..Opinion::of(state, Reason::Manual)
        }
    }

    fn explain(&self, opinion: &Opinion, _: Question<'_>) -> String {
        let thrown = match self.state {
            Setting::Open => "switched open",
            Setting::Closed => "switched closed",
        };
        let why = self.reason.as_ref();
        let why = why.map_or_else(String::new, |reason| format!(" ({reason})"));
        let Some(until) = &self.until else {
            return format!("{thrown}{why}");
        };
        let end = words::instant_utc(until.0);
        match opinion.next {
            Some(_) => format!("{thrown}{why} until {end}"),
            None => format!("{thrown}{why}, which ended {end}"),
        }
    }

    fn basis(&self) -> Basis {
        Basis::Clock
    }

    fn is_unread(&self, _: Question<'_>) -> bool {
        false
    }

    fn good_until(&self) -> Option<Timestamp> {
        None
    }
}
