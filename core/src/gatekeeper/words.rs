//! Why a gatekeeper says what it says.

use super::Keeper;
use crate::time::clock::Trust;
use crate::verdict::question::Question;
use crate::verdict::{Opinion, Reason};

impl Keeper {
    /// Why it says what it says, without the instants that would make each day's words
    /// different.
    pub(crate) fn cause(&self, question: Question<'_>) -> String {
        let opinion = self.opinion(question);
        let judge = self.judge().filter(|_| {
            let is_above_all_kinds =
                matches!(opinion.reason, Reason::Suspended | Reason::ClockSkew);
            !is_above_all_kinds && self.status_fallback(&opinion, question).is_none()
        });
        match judge {
            Some(judge) => judge.cause(&opinion, question),
            None => self.verdict(question).message,
        }
    }

    pub(super) fn explain(&self, opinion: &Opinion, question: Question<'_>) -> String {
        match (opinion.reason, &self.judge) {
            (Reason::Suspended, _) => "it is suspended".to_owned(),
            (Reason::ClockSkew, _) => skew(question.now.trust),
            (_, Err(refusals)) => format!("its spec is refused: {refusals}"),
            (_, Ok(judge)) => judge.explain(opinion, question),
        }
    }
}

fn skew(trust: Trust) -> String {
    match trust {
        Trust::Good => "the clock is right again".to_owned(),
        Trust::Drifting(by) | Trust::Lost(by) => format!(
            "the clock differs by {}s from the API server's, so nothing is open by time alone",
            by.as_secs()
        ),
    }
}
