//! What was answered of late: as much of it as tells news from what is known, and no more.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};

use jiff::{SignedDuration, Timestamp};
use sluice_crds::audit::Decided;
use sluice_crds::{Decision, Subject};

use super::{FOLD, FORGET, TELL_AGAIN};

/// How many questions are known at once: some 16 MiB of them with an audit log.
const QUESTIONS: usize = 10_000;
/// How many events may be sent at once: whoever asks something new each time must not fill the API
/// server.
const EVENTS: i64 = 200;

/// All that was answered.
pub(super) struct Known {
    /// By a hash of the question that nobody outside can foretell. Should two have the same, an
    /// answer is told once more than it had to be.
    questions: HashMap<u64, Question>,
    hasher: RandomState,
    /// How many answers there were.
    answers: u64,
    /// How many events may be sent.
    budget: Budget,
    /// What was counted of questions that had to make room, and is to be told.
    evicted: Vec<Decided>,
}

/// How many events may be sent: so many at once, and then one a second.
struct Budget {
    /// Since when they might have been sent and were not.
    unspent: Timestamp,
}

/// A question, and its last answer.
struct Question {
    subject: Subject,
    allowed: bool,
    /// A hash of the answer.
    answer: Option<u64>,
    /// Since when it has been yes, or no.
    since: Timestamp,
    /// When it was asked last, and as the how manieth of all.
    asked: (Timestamp, u64),
    /// When events told it last.
    event: Option<Timestamp>,
    /// When the audit log told it last.
    line: Timestamp,
    /// How many equal answers were not told there since.
    repeated: u64,
    /// What is told there.
    decided: Option<Decided>,
}

/// What an answer is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct News {
    /// Whether it is another one than before.
    pub(super) is_new: bool,
    /// Since when it has been yes, or no.
    pub(super) since: Timestamp,
    /// Whether events are to tell it.
    pub(super) is_event: bool,
    /// Whether they should, were there not so many.
    pub(super) is_dropped: bool,
    /// Whether the audit log is to tell it, and how many equal ones it was not told before.
    pub(super) line: Option<u64>,
}

/// Something that asks, and whether it waits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Waiting {
    /// Its kind.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Whether the last answer was no.
    pub waits: bool,
}

impl Default for Known {
    fn default() -> Self {
        Self {
            questions: HashMap::new(),
            hasher: RandomState::new(),
            answers: 0,
            budget: Budget {
                unspent: Timestamp::MIN,
            },
            evicted: Vec::new(),
        }
    }
}

impl Known {
    /// Notes an answer, and says what it is worth. `keep`: the audit log tells it.
    pub(super) fn note(&mut self, decision: &Decision, asked_by: Option<&str>, keep: bool) -> News {
        let (now, answer) = (decision.at.0, self.answer(decision));
        let key = self.question(decision, asked_by);
        if !self.questions.contains_key(&key) {
            self.make_room();
        }
        self.answers += 1;
        let known = self.questions.entry(key).or_insert_with(|| Question {
            subject: decision.subject.clone(),
            allowed: decision.allowed,
            answer: None,
            since: now,
            asked: (now, 0),
            event: None,
            line: now,
            repeated: 0,
            decided: None,
        });
        known.asked = (now, self.answers);
        let is_new = known.answer != Some(answer);
        let line = match is_new {
            true => Some(known.renew(decision, answer)),
            false => known.again(now, keep),
        };
        if is_new && keep {
            known.decided = Some(Decided {
                asked_by: asked_by.map(str::to_owned),
                repeated: 0,
                decision: decision.clone(),
            });
        }
        let is_due = known.is_due(now);
        let is_event = is_due && self.budget.spend(now);
        if is_event {
            known.event = Some(now);
        }
        News {
            is_new,
            since: known.since,
            is_event,
            is_dropped: is_new && is_due && !is_event,
            line,
        }
    }

    /// A hash of who asks for what: the gates that a policy adds are not asked for.
    fn question(&self, decision: &Decision, asked_by: Option<&str>) -> u64 {
        let mut hash = self.hasher.build_hasher();
        asked_by.hash(&mut hash);
        decision.subject.hash(&mut hash);
        decision.require.hash(&mut hash);
        let own = decision.checked.iter().filter(|gate| gate.policy.is_none());
        own.for_each(|gate| gate.gate.hash(&mut hash));
        hash.finish()
    }

    /// A hash of the outcome and its reasons: not of the words, in which what was measured moves.
    fn answer(&self, decision: &Decision) -> u64 {
        let mut hash = self.hasher.build_hasher();
        decision.allowed.hash(&mut hash);
        decision.decided_by.hash(&mut hash);
        for gate in &decision.checked {
            (&gate.gate, &gate.policy, gate.state, &gate.reason).hash(&mut hash);
        }
        hash.finish()
    }

    /// Everything that has a name, and whether its last answer was no.
    pub(super) fn waiting(&self, now: Timestamp) -> Vec<Waiting> {
        let mut last: HashMap<(&str, &str, &str), (u64, bool)> = HashMap::new();
        for question in self.questions.values() {
            let Subject {
                kind,
                namespace,
                name,
                ..
            } = &question.subject;
            let (Some(name), false) = (name, question.is_forgotten(now)) else {
                continue;
            };
            let answer = (question.asked.1, !question.allowed);
            let last = last.entry((kind, namespace, name)).or_default();
            *last = answer.max(*last);
        }
        let mut all: Vec<Waiting> = (last.into_iter())
            .map(|((kind, namespace, name), (_, waits))| Waiting {
                kind: kind.to_owned(),
                namespace: namespace.to_owned(),
                name: name.to_owned(),
                waits,
            })
            .collect();
        all.sort();
        all
    }

    /// Forgets what nobody asks any more. Returns what was counted and is to be told.
    pub(super) fn sweep(&mut self, now: Timestamp) -> Vec<Decided> {
        let mut counted = std::mem::take(&mut self.evicted);
        self.questions.retain(|_, question| {
            let forgotten = question.is_forgotten(now);
            if question.repeated > 0 && (forgotten || has_passed(question.line, FOLD, now)) {
                counted.extend(question.counted(now));
            }
            !forgotten
        });
        counted
    }

    /// Where there are too many, those go that were not asked for longest: a quarter, so that it is
    /// seldom done.
    fn make_room(&mut self) {
        if self.questions.len() < QUESTIONS {
            return;
        }
        let mut asked: Vec<u64> = self.questions.values().map(|it| it.asked.1).collect();
        let (_, oldest, _) = asked.select_nth_unstable(QUESTIONS / 4);
        let oldest = *oldest;
        let evicted = &mut self.evicted;
        self.questions.retain(|_, question| {
            let stays = question.asked.1 > oldest;
            if !stays && question.repeated > 0 {
                evicted.extend(question.counted(question.asked.0));
            }
            stays
        });
    }
}

impl Budget {
    /// Whether another may be sent.
    fn spend(&mut self, now: Timestamp) -> bool {
        let most = SignedDuration::from_secs(EVENTS);
        let earliest = now.saturating_sub(most).unwrap_or(Timestamp::MIN);
        // A clock that was set back must not silence them.
        let unspent = match self.unspent > now {
            true => now,
            false => self.unspent.max(earliest),
        };
        if unspent >= now {
            return false;
        }
        let one = SignedDuration::from_secs(1);
        self.unspent = unspent.saturating_add(one).unwrap_or(now);
        true
    }
}

impl Question {
    /// Another answer. Returns how many equal ones were not told before it.
    fn renew(&mut self, decision: &Decision, answer: u64) -> u64 {
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

    /// The same answer. Returns how many were not told before it, where it is to be told.
    fn again(&mut self, now: Timestamp, keep: bool) -> Option<u64> {
        if has_passed(self.line, FOLD, now) {
            self.line = now;
            return Some(std::mem::take(&mut self.repeated));
        }
        self.repeated += u64::from(keep);
        None
    }

    /// Whether events are to tell it now.
    fn is_due(&self, now: Timestamp) -> bool {
        match self.event {
            None => true,
            Some(told) => !self.allowed && has_passed(told, TELL_AGAIN, now),
        }
    }

    fn is_forgotten(&self, now: Timestamp) -> bool {
        has_passed(self.asked.0, FORGET, now)
    }

    /// The last of the equal answers that nothing came after: it tells of the others.
    fn counted(&mut self, now: Timestamp) -> Option<Decided> {
        self.line = now;
        let repeated = std::mem::take(&mut self.repeated).checked_sub(1)?;
        let mut decided = self.decided.clone()?;
        decided.repeated = repeated;
        decided.decision.at.0 = self.asked.0;
        Some(decided)
    }
}

fn has_passed(since: Timestamp, length: SignedDuration, now: Timestamp) -> bool {
    now.duration_since(since) >= length
}
