//! What a gatekeeper will say, as far as time alone decides.
//!
//! What comes in: the gatekeeper, and instants in ascending order. What goes out: an [`Opinion`]
//! for each, from the timeline at hand and, behind its end, from one walk over the windows, however
//! many instants are asked about.

use jiff::Timestamp;
use sluice_crds::State;

use super::schedule::{Schedule, WindowCovers};
use super::{Keeper, Rule, reason_of};
use crate::gate::nested::Nested;
use crate::time::clock::Trust;
use crate::time::timeline::{States, Timeline};
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
    /// What follows the timeline at hand.
    states: Option<States<WindowCovers<'a>>>,
}

impl Keeper {
    /// How much there is to ask for one answer: itself, and everything behind the gates that it
    /// names.
    pub(crate) fn weight(&self) -> usize {
        let behind: usize = self.evidence.gates().iter().map(Nested::weight).sum();
        1 + behind
    }

    /// What it answers from now on.
    pub(crate) fn ahead<'a>(&'a self, question: Question<'a>) -> Ahead<'a> {
        Ahead {
            keeper: self,
            question: question.ahead(),
            expired: self.opinion(question).reason == Reason::Expired,
            states: None,
        }
    }

    /// Its next changes of state that are known ahead: at most [`UPCOMING`], within [`HORIZON`].
    pub fn upcoming<'q>(&self, question: impl Into<Question<'q>>) -> Vec<(Timestamp, State)> {
        let question = question.into();
        let now = question.now.at;
        let horizon = now.saturating_add(HORIZON).unwrap_or(Timestamp::MAX);
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

impl<'a> Ahead<'a> {
    /// What it says at `at`, which is no earlier than at the last call. `next` is when it says
    /// anything else that may matter to a gate, though perhaps not another state; `until` is not
    /// told. None: nobody knows.
    pub fn at(&mut self, at: Timestamp) -> Option<Opinion> {
        let question = self.question.moved_to(at);
        let opinion = match self.keeper.rule.as_ref() {
            _ if self.expired => Opinion::closed(Reason::Expired),
            Ok(Rule::Schedule {
                schedule,
                timeline: Ok(timeline),
            }) if !self.keeper.object.spec.suspend => {
                let opinion = self.scheduled(schedule, timeline, at)?;
                self.keeper.by_time(opinion, question.now)
            }
            _ => self.keeper.lasting(question),
        };
        let never_opens = matches!(question.now.trust, Trust::Lost(_));
        Some(Opinion {
            until: None,
            next: opinion.next.filter(|_| !never_opens),
            ..opinion
        })
    }

    fn scheduled(
        &mut self,
        schedule: &'a Schedule,
        at_hand: &Timeline,
        at: Timestamp,
    ) -> Option<Opinion> {
        let readings = self.keeper.evidence.calendars();
        // A timeline has the changes of the state. What is open may besides become, or cease to
        // be, so by `onError` alone.
        let at_hand = match schedule.missing(readings) {
            None => at_hand.at(at),
            Some(_) => None,
        };
        let (cause, next) = match (at_hand, &mut self.states) {
            (Some(moment), _) => (moment.cause, moment.next),
            (None, Some(states)) => states.at(at)?,
            (None, states @ None) => {
                let new = schedule.states(readings, at).ok()?;
                states.insert(new).at(at)?
            }
        };
        Some(Opinion {
            state: cause.state(),
            reason: reason_of(cause),
            until: None,
            next,
        })
    }
}
