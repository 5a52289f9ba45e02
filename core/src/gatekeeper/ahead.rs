//! What a gatekeeper will say, as far as time alone decides.
//!
//! What comes in: the gatekeeper, and instants in ascending order. What goes out: an [`Opinion`]
//! for each, from one walk where its kind has one.

use jiff::Timestamp;
use sluice_crds::State;

use super::kind::{Judge, Walk};
use super::{Keeper, by_time};
use crate::time::clock::Trust;
use crate::time::span::later;
use crate::verdict::question::Question;
use crate::verdict::status::{HORIZON, UPCOMING};
use crate::verdict::{Opinion, Reason};

/// How many instants are looked at for one list of changes. Windows that come and go every minute
/// without any effect would have it look for ever.
pub(crate) const MOST_LOOKS: usize = 2_000;

/// A gatekeeper that is asked about one instant after the other. Its evidence is taken to be
/// renewed before it runs out: what has run out already is not.
pub(crate) struct Ahead<'a> {
    keeper: &'a Keeper,
    question: Question<'a>,
    /// It has run out.
    expired: bool,
    walk: Option<Walk<'a>>,
}

impl Keeper {
    /// How much there is to ask for one answer: itself, and everything behind the gates that it
    /// names.
    pub(crate) fn weight(&self) -> usize {
        1 + self.judge().map_or(0, Judge::weight_behind)
    }

    /// What it answers from now on.
    pub(crate) fn ahead<'a>(&'a self, question: Question<'a>) -> Ahead<'a> {
        Ahead {
            keeper: self,
            question: question.ahead(),
            expired: self.opinion(question).reason == Reason::Expired,
            walk: (self.judge().filter(|_| !self.object.spec.suspend)).and_then(Judge::walk),
        }
    }

    /// Its next changes of state that are known ahead: at most [`UPCOMING`], within [`HORIZON`].
    pub fn upcoming<'q>(&self, question: impl Into<Question<'q>>) -> Vec<(Timestamp, State)> {
        let question = question.into();
        let now = question.now.at;
        let horizon = later(now, HORIZON);
        let mut changes: Vec<(Timestamp, State)> = Vec::new();
        let mut ahead = self.ahead(question);
        let (mut at, mut state) = (now, None);
        for _ in 0..MOST_LOOKS / self.weight() {
            let Some(opinion) = ahead.at(at) else { break };
            if state.is_some_and(|state| state != opinion.state) {
                changes.push((at, opinion.state));
            }
            state = Some(opinion.state);
            match opinion.next {
                Some(next) if next <= horizon && changes.len() < UPCOMING => at = next,
                _ => break,
            }
        }
        changes
    }
}

impl Ahead<'_> {
    /// What it says at `at`, which is no earlier than at the last call. `next` is when it says something
    /// different that may matter to a gate, though perhaps not another state; `until` is left out. None:
    /// not known.
    pub fn at(&mut self, at: Timestamp) -> Option<Opinion> {
        let question = self.question.moved_to(at);
        let opinion = match &mut self.walk {
            _ if self.expired => Opinion::closed(Reason::Expired),
            Some(walk) => by_time(walk(at)?, question.now),
            None => self.keeper.opinion(question),
        };
        let never_opens = matches!(question.now.trust, Trust::Lost(_));
        Some(Opinion {
            until: None,
            next: opinion.next.filter(|_| !never_opens),
            ..opinion
        })
    }
}
