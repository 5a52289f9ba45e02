//! How long a gate stays in a state, and why.

use jiff::{SignedDuration, Timestamp};
use sluice_crds::{Require, State};

use super::Scene;
use crate::gate::Answer;
use crate::gatekeeper::Keeper;
use crate::revision::Revision;
use crate::time::clock::Now;
use crate::time::span::Span;
use crate::verdict::Reason;
use crate::verdict::question::Question;

/// How many instants are examined for one answer: office hours for centuries, or five weeks of
/// windows that open and close every minute.
const MOST_LOOKS: usize = 100_000;
/// How much time is looked through at once: what a schedule holds of it is held in memory.
const STEP: SignedDuration = SignedDuration::from_hours(30 * 24);

/// A stretch of time in which a gate is in one state because of the same causes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// From when until when.
    pub span: Span,
    /// Open or closed, and why.
    pub answer: Answer,
    /// What makes it so, each a short sentence: `office-hours: outside every open window`.
    pub causes: Vec<String>,
    /// Whether it counts as closed only because the state is not known here.
    pub unknown: bool,
}

impl Stretch {
    /// Whether somebody forces the gate.
    pub fn is_forced(&self) -> bool {
        self.answer.reason == Reason::Forced
    }
}

/// The stretches of some time, ascending, without gaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretches {
    /// The stretches.
    pub list: Vec<Stretch>,
    /// Where the time asked for is longer than could be looked through: the last instant known.
    pub cut_off: Option<Timestamp>,
}

impl Stretches {
    /// The stretches at whose start the state changes, the first one included.
    pub fn changes(&self) -> impl Iterator<Item = &Stretch> {
        let before = std::iter::once(None).chain(self.list.iter().map(|s| Some(s.answer.state)));
        self.list
            .iter()
            .zip(before)
            .filter(|(stretch, before)| Some(stretch.answer.state) != *before)
            .map(|(stretch, _)| stretch)
    }
}

impl Scene {
    /// The states of the gate from `span.start` until `span.end`, for every revision.
    pub fn stretches(&mut self, span: Span) -> Stretches {
        self.stretches_about(span, None)
    }

    /// The same for a revision. None: what depends on it is conditional.
    pub fn stretches_about(&mut self, span: Span, revision: Option<&Revision>) -> Stretches {
        self.stretches_in(span, revision, MOST_LOOKS)
    }

    /// The same, examining at most so many instants.
    pub(super) fn stretches_in(
        &mut self,
        span: Span,
        revision: Option<&Revision>,
        mut looks: usize,
    ) -> Stretches {
        let mut list = Vec::new();
        let mut at = span.start;
        while at < span.end {
            let end = at
                .saturating_add(STEP)
                .unwrap_or(Timestamp::MAX)
                .min(span.end);
            let step = Span { start: at, end };
            at = self.walk(step, revision, &mut looks, &mut list);
            if at < end {
                return Stretches {
                    list,
                    cut_off: Some(at),
                };
            }
        }
        Stretches {
            list,
            cut_off: None,
        }
    }

    /// Adds the stretches of `step`, and returns how far it came.
    fn walk(
        &mut self,
        step: Span,
        revision: Option<&Revision>,
        looks: &mut usize,
        list: &mut Vec<Stretch>,
    ) -> Timestamp {
        self.make_ready_for(step);
        let mut at = step.start;
        while at < step.end && *looks > 0 {
            *looks -= 1;
            let question = Question::new(Now::given(at), revision);
            let answer = self.answer(question);
            let (causes, unknown) = self.causes(answer, question);
            let end = self
                .boundary(question)
                .map_or(step.end, |end| end.min(step.end));
            match list.last_mut() {
                Some(last) if (last.answer, &last.causes) == (answer, &causes) => {
                    last.span.end = end;
                }
                _ => {
                    let span = Span { start: at, end };
                    list.push(Stretch {
                        span,
                        answer,
                        causes,
                        unknown,
                    });
                }
            }
            at = end;
        }
        at
    }

    /// What makes the gate what it is, and whether that is only a want of knowledge.
    fn causes(&self, answer: Answer, question: Question<'_>) -> (Vec<String>, bool) {
        if let Some(force) = self.forced(question.now.at) {
            let cause = format!("forced {} by {}: {}", force.state, force.by, force.reason);
            return (vec![cause], false);
        }
        if answer.decided_by.is_none() {
            let cause = match answer.reason {
                Reason::Default => format!("{} by default", self.gate().spec.default),
                Reason::Suspended => "the gate is suspended".to_owned(),
                Reason::Cycle => "the gate depends on itself".to_owned(),
                _ => "the spec of the gate is refused".to_owned(),
            };
            return (vec![cause], false);
        }
        let spec = &self.gate().spec;
        let said: Vec<(String, Said)> = (spec.gatekeepers.iter())
            .zip(self.keepers())
            .map(|(reference, keeper)| {
                let said = |keeper| Said::by(keeper, spec.require, question);
                let said = keeper.map_or_else(Said::missing, said);
                (reference.name.clone(), said)
            })
            .filter(|(_, said)| said.state == answer.state)
            .collect();
        let unknown = match spec.require {
            Require::All => said.iter().all(|(_, said)| said.unknown),
            Require::OneOf => said.iter().any(|(_, said)| said.unknown),
        };
        (
            said.into_iter()
                .map(|(name, said)| format!("{name}: {}", said.what))
                .collect(),
            unknown,
        )
    }
}

/// What a gatekeeper has to say for itself.
struct Said {
    /// What it makes of the gate.
    state: State,
    what: String,
    unknown: bool,
}

impl Said {
    fn by(keeper: &Keeper, require: Require, question: Question<'_>) -> Self {
        let opinion = keeper.opinion(question);
        Self {
            state: opinion.counts_as(require),
            what: keeper.cause(question),
            unknown: matches!(opinion.reason, Reason::NotObserved | Reason::Expired),
        }
    }

    fn missing() -> Self {
        let what = "there is no such gatekeeper".to_owned();
        Self {
            state: State::Closed,
            what,
            unknown: false,
        }
    }
}
