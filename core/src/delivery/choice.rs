//! Which change goes out: the newest that the gates admit.
//!
//! What comes in: the gates that a consumer has to pass, and the changes that it could make. What goes
//! out: one of these changes with the decision about it, and until when that holds.

use jiff::Timestamp;
use sluice_crds::{Decision, Subject};

use crate::gate::set::Gathered;
use crate::revision::Revision;
use crate::time::clock::Now;
use crate::time::stamp::time;
use crate::verdict::question::Question;

/// The gates that a consumer has to pass, asked at one instant.
#[derive(Clone, Debug)]
pub struct Gates {
    /// The gates.
    pub gathered: Gathered,
    /// Who asks, and what it wants to do. Each decision adds the revision.
    pub subject: Subject,
    /// The instant.
    pub now: Now,
}

/// A change that could go out.
#[derive(Clone, Debug, PartialEq)]
pub struct Change<T> {
    /// The change, as its consumer knows it.
    pub what: T,
    /// All of it, as decisions name it.
    pub name: String,
    /// The parts that the gates are asked about. All of them have to pass.
    pub parts: Vec<Asked>,
}

/// A part of a change, as the gates are asked about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// How decisions name it.
    pub name: String,
    /// Its revision, as the gates judge it. None: it cannot be read.
    pub revision: Option<Revision>,
}

/// The change that goes out, or would if the gates admitted it.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice<T> {
    /// The newest change that the gates admit; if they admit none, the newest of all.
    pub change: Change<T>,
    /// What the gates say of it.
    pub decision: Decision,
    /// Until when no other change may be admitted if no change is seen.
    pub next: Option<Timestamp>,
    /// The newer changes, which the gates hold back.
    pub held_back: Vec<Change<T>>,
}

impl Gates {
    /// The same questions for other gates.
    #[must_use]
    pub fn with(&self, gathered: Gathered) -> Self {
        Self {
            gathered,
            subject: self.subject.clone(),
            now: self.now,
        }
    }

    fn question<'q>(&self, revision: Option<&'q Revision>) -> Question<'q> {
        Question::new(self.now, revision)
    }

    /// What the gates say of a revision, or of every revision that comes next. `name` is how the decision
    /// names it.
    pub fn decide(&self, name: Option<&str>, revision: Option<&Revision>) -> Decision {
        self.gathered
            .decide(self.subject_of(name), self.question(revision))
    }

    /// Who asks about a revision, as it is written in a decision.
    pub fn subject_of(&self, name: Option<&str>) -> Subject {
        Subject {
            revision: name.map(str::to_owned),
            ..self.subject.clone()
        }
    }

    /// Until when the answer about every revision that comes next holds, if no change is seen.
    pub fn until(&self) -> Option<Timestamp> {
        self.gathered.rule(self.question(None)).until
    }

    /// Whether the gates admit every part, and until when that holds. Without words, so it is cheap.
    pub fn admit(&self, parts: &[Asked]) -> (bool, Option<Timestamp>) {
        let rule = |part: &Asked| self.gathered.rule(self.question(part.revision.as_ref()));
        let rulings: Vec<_> = parts.iter().map(rule).collect();
        let until = rulings.iter().filter_map(|ruling| ruling.until).min();
        (rulings.iter().all(|ruling| ruling.allowed), until)
    }

    /// What the gates say of a change. If it has several parts: what they say of the first part that they
    /// hold back. An answer about all parts can change as soon as the answer about one can.
    pub fn decide_change<T>(&self, change: &Change<T>) -> Decision {
        let mut next: Option<Timestamp> = None;
        for part in &change.parts {
            let decision = self.decide(Some(&part.name), part.revision.as_ref());
            let changes_at = decision.next.as_ref().map(|at| at.0);
            next = next.into_iter().chain(changes_at).min();
            if !decision.allowed {
                return decision;
            }
        }
        let revision = change.parts.first().and_then(|part| part.revision.as_ref());
        Decision {
            next: next.map(time),
            ..self.decide(Some(&change.name), revision)
        }
    }

    /// The newest of `changes` that the gates admit; if they admit none, the newest of all. The newest
    /// is the last. None: there are no changes.
    pub fn choose<T: Clone>(&self, mut changes: Vec<Change<T>>) -> Option<Choice<T>> {
        let (mut held_back, mut next) = (Vec::new(), None::<Timestamp>);
        let mut chosen = None;
        while let Some(change) = changes.pop() {
            let (admitted, until) = self.admit(&change.parts);
            next = next.into_iter().chain(until).min();
            if admitted {
                chosen = Some(change);
                break;
            }
            held_back.push(change);
        }
        let change = chosen.or_else(|| held_back.first().cloned())?;
        Some(Choice {
            decision: self.decide_change(&change),
            change,
            next,
            held_back,
        })
    }

    /// Until when the gates admit every part that they admit now, at most until `end`.
    pub fn open_until(&self, parts: &[Asked], end: Timestamp) -> Timestamp {
        let closes = parts.iter().filter_map(|part| {
            let question = self.question(part.revision.as_ref());
            self.gathered.closes(question, end)
        });
        closes.fold(end, Timestamp::min)
    }
}
