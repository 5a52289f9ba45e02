//! One question, as far as it is known.

use jiff::{SignedDuration, Timestamp};
use sluice_crds::audit::Decided;
use sluice_crds::{Decision, Subject};

use crate::observe::clock::SET_BACK;
use crate::tell::decisions::{FOLD, FORGET, TELL_AGAIN};

/// A question, and its last answer.
pub(super) struct Question {
    pub(super) subject: Subject,
    /// A hash of who asks.
    pub(super) asker: u64,
    /// Whether they may speak for the subject: others are not shown to wait.
    pub(super) is_known: bool,
    /// A hash of the same question about any revision.
    pub(super) topic: u64,
    pub(super) allowed: bool,
    /// A hash of the answer.
    pub(super) answer: Option<u64>,
    /// Since when it has been yes, or no.
    pub(super) since: Timestamp,
    /// When it was asked last, and as the how manieth of all.
    pub(super) asked: (Timestamp, u64),
    /// When events last reported it.
    pub(super) event: Option<Timestamp>,
    /// When the audit log last reported it.
    pub(super) line: Timestamp,
    /// How many equal answers were not reported there since.
    pub(super) repeated: u64,
    /// What to report there.
    pub(super) decided: Option<Decided>,
    /// How many bytes it takes, about.
    pub(super) bytes: usize,
}

impl Question {
    /// Another answer. Returns how many equal ones were not reported before it.
    pub(super) fn renew(&mut self, decision: &Decision, answer: u64) -> u64 {
        let now = decision.at.0;
        if self.allowed != decision.allowed {
            self.allowed = decision.allowed;
            self.since = now;
        }
        self.answer = Some(answer);
        self.event = None;
        self.line = now;
        self.decided = None;
        std::mem::take(&mut self.repeated)
    }

    /// The same answer, which is reported by itself. Returns how many were not reported before it.
    pub(super) fn by_itself(&mut self, now: Timestamp) -> u64 {
        self.line = now;
        std::mem::take(&mut self.repeated)
    }

    /// The same answer. Returns how many were not reported before it, if it is to be reported.
    pub(super) fn again(&mut self, now: Timestamp, keep: bool) -> Option<u64> {
        if keep && has_passed(self.line, FOLD, now) {
            return Some(self.by_itself(now));
        }
        self.repeated += u64::from(keep);
        None
    }

    /// Whether events are to tell it now.
    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        match self.event {
            None => true,
            Some(told) => !self.allowed && has_passed(told, TELL_AGAIN, now),
        }
    }

    pub(super) fn is_forgotten(&self, now: Timestamp) -> bool {
        has_passed(self.asked.0, FORGET, now)
    }

    /// How many bytes it takes, about.
    pub(super) fn weigh(&self) -> usize {
        let decided = self.decided.as_ref().map_or(0, |decided| {
            let Decision {
                subject,
                checked,
                decided_by,
                message,
                ..
            } = &decided.decision;
            let gates = checked.iter().map(|gate| {
                let policy = gate.policy.as_ref().map_or(0, String::len);
                size_of_val(gate)
                    + gate.gate.len()
                    + policy
                    + gate.reason.len()
                    + gate.message.len()
            });
            let deciders = decided_by.iter().map(|gate| size_of_val(gate) + gate.len());
            let asked_by = decided.asked_by.as_ref().map_or(0, String::len);
            asked_by
                + letters(subject)
                + gates.sum::<usize>()
                + deciders.sum::<usize>()
                + message.len()
        });
        size_of_val(self) + letters(&self.subject) + decided
    }

    /// The last of the equal answers, with nothing after it: it reports the others.
    pub(super) fn counted(&mut self, now: Timestamp) -> Option<Decided> {
        self.line = now;
        let repeated = std::mem::take(&mut self.repeated).checked_sub(1)?;
        let mut decided = self.decided.clone()?;
        decided.repeated = repeated;
        decided.decision.at.0 = self.asked.0;
        Some(decided)
    }
}

/// How many bytes its words take.
fn letters(subject: &Subject) -> usize {
    let Subject {
        kind,
        namespace,
        name,
        environment,
        action,
        step,
        revision,
    } = subject;
    let others = [name, environment, step, revision]
        .into_iter()
        .flatten()
        .map(String::len);
    kind.len() + namespace.len() + action.len() + others.sum::<usize>()
}

pub(super) fn has_passed(since: Timestamp, length: SignedDuration, now: Timestamp) -> bool {
    let passed = now.duration_since(since);
    // After a clock was set back, nobody waits until it has been there again.
    passed >= length || passed < -SET_BACK
}
