//! Gate sets: whether a change may pass all the gates that it has to.
//!
//! What comes in: the gates that a consumer names, and those that policies add, each with
//! everything that it depends on ([`gather`] finds it). What goes out: a [`Ruling`] in a
//! microsecond or two, which says until when it holds, and a [`Decision`], which says with its
//! words which gates were checked, which decided, and when time changes that.

use jiff::Timestamp;
use sluice_crds::{CheckedGate, Decision, Require, State, Subject};

use crate::gate::{self, Named, View};
use crate::time::stamp::time;
use crate::verdict::question::Question;
use crate::verdict::{Opinion, Reason};

mod gathered;
mod news;
mod redacted;
#[cfg(test)]
mod tests;
mod words;

pub use gathered::{Gathered, Sources, gather, gather_all, gather_among};
pub use redacted::redacted;

/// Several gates, and how their answers combine.
#[derive(Clone, Debug)]
pub struct Set<'a> {
    /// How.
    pub require: Require,
    /// The policy that asks for them. None: the subject itself does.
    pub policy: Option<Policy<'a>>,
    /// The gates, as `namespace/name`.
    pub gates: Vec<(&'a str, Named<View<'a>>)>,
}

/// A policy that asks for gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy<'a> {
    /// Its name.
    pub name: &'a str,
    /// Why it is not known whether it concerns the subject. It counts as if it did.
    pub doubt: Option<&'a str>,
}

/// What several sets answer, without words: cheap to make.
#[derive(Clone, Debug, PartialEq)]
pub struct Ruling {
    /// Whether the change may pass.
    pub allowed: bool,
    /// Until when this holds if no change is seen: at that instant time changes the answer, or its
    /// evidence expires unless it is renewed. None: for ever.
    pub until: Option<Timestamp>,
    /// What each set answers, in their order.
    outcomes: Vec<Outcome>,
}

/// What a set answers.
#[derive(Clone, Debug, PartialEq)]
struct Outcome {
    allowed: bool,
    /// What each gate says, and whether it lets the change pass.
    said: Vec<(Opinion, bool)>,
}

/// Whether a change may pass every one of `sets`, of which the first is its own. A set without
/// gates lets nothing pass.
pub fn rule<'q>(sets: &[Set<'_>], question: impl Into<Question<'q>>) -> Ruling {
    let question = question.into();
    let outcomes: Vec<Outcome> = (sets.iter())
        .map(|set| Outcome::of(set, question))
        .collect();
    let said = outcomes.iter().flat_map(|outcome| &outcome.said);
    Ruling {
        allowed: !outcomes.is_empty() && outcomes.iter().all(|outcome| outcome.allowed),
        until: said.filter_map(|(opinion, _)| opinion.until).min(),
        outcomes,
    }
}

/// The same with its words, about what `subject` wants to do.
pub fn decide<'q>(
    subject: Subject,
    sets: &[Set<'_>],
    question: impl Into<Question<'q>>,
) -> Decision {
    let question = question.into();
    let ruling = rule(sets, question);
    let checked: Vec<CheckedGate> = (sets.iter().zip(&ruling.outcomes))
        .flat_map(|(set, outcome)| checked(set, outcome, question))
        .collect();
    let decisive = words::decisive(sets, &ruling, &checked);
    Decision {
        allowed: ruling.allowed,
        at: time(question.now.at),
        subject,
        require: sets.first().map(|set| set.require).unwrap_or_default(),
        decided_by: decisive.iter().map(|gate| gate.name.to_owned()).collect(),
        message: words::explain(sets, &ruling, &decisive),
        next: next_change(sets, question).map(time),
        checked,
    }
}

/// How the gates that somebody asks combine: Open lets pass. Decisions and calendars both use this one
/// fold.
pub(crate) fn fold(require: Require, said: impl Iterator<Item = Opinion>) -> State {
    gate::fold::fold(require, said).state
}

impl Outcome {
    fn of(set: &Set<'_>, question: Question<'_>) -> Self {
        let said: Vec<(Opinion, bool)> = (set.gates.iter())
            .map(|(_, gate)| {
                let opinion = opinion(gate, question);
                (opinion, opinion.admits(set.require))
            })
            .collect();
        Self {
            allowed: fold(set.require, said.iter().map(|(opinion, _)| *opinion)) == State::Open,
            said,
        }
    }

    /// The places of the gates that decided: all that answer as the whole set does. Where one gate is
    /// enough and the change may pass, only the first.
    fn decided_by(&self, require: Require) -> impl Iterator<Item = usize> {
        let most = match (require, self.allowed) {
            (Require::OneOf, true) => 1,
            (Require::OneOf, false) | (Require::All, _) => usize::MAX,
        };
        let same = self.said.iter().enumerate();
        let same = same.filter(|(_, (_, passes))| *passes == self.allowed);
        same.map(|(place, _)| place).take(most)
    }
}

/// The earliest instant at which time changes what a gate says. The expiry of a measurement does not
/// count: it moves with every look.
fn next_change(sets: &[Set<'_>], question: Question<'_>) -> Option<Timestamp> {
    let gates = sets.iter().flat_map(|set| &set.gates);
    let changes = gates.filter_map(|(_, gate)| gate::next_change(gate.here()?, question));
    changes.min()
}

/// How many instants ahead are checked, at most, to find when gates close.
const MOST_LOOKS: usize = 256;

/// The first instant before `end` at which time closes what lets the change pass now. Instants at which
/// only the cause changes, such as one window that follows another, are left out; evidence is assumed to
/// be renewed before it expires. None: it stays open until `end`.
pub fn closes<'q>(
    sets: &[Set<'_>],
    question: impl Into<Question<'q>>,
    end: Timestamp,
) -> Option<Timestamp> {
    let mut question = question.into().ahead();
    for _ in 0..MOST_LOOKS {
        let next = next_change(sets, question).filter(|next| *next < end)?;
        question = question.moved_to(next);
        if !rule(sets, question).allowed {
            return Some(next);
        }
    }
    // It is open until here. Later instants were not checked.
    Some(question.now.at)
}

/// What a gate says, and until when that holds.
fn opinion(gate: &Named<View<'_>>, question: Question<'_>) -> Opinion {
    let asked = gate.asked(Reason::GateMissing);
    asked.map_or_else(|closed| closed, |view| gate::opinion(view, question))
}

/// The gates of a set with what they say, in words.
fn checked(set: &Set<'_>, outcome: &Outcome, question: Question<'_>) -> Vec<CheckedGate> {
    let gates = set.gates.iter().zip(&outcome.said);
    let checked = gates.map(|((name, gate), (opinion, _))| CheckedGate {
        gate: (*name).to_owned(),
        policy: set.policy.map(|policy| policy.name.to_owned()),
        state: opinion.state,
        reason: opinion.reason.as_str().to_owned(),
        message: match gate {
            Named::Here(view) => gate::explain(view, question).2,
            absent => absent.obstacle("gate").unwrap_or_default(),
        },
    });
    checked.collect()
}
