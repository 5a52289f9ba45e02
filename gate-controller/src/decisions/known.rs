//! What was answered of late: as much of it as tells news from what is known, and no more.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hash, Hasher, RandomState};

use jiff::{SignedDuration, Timestamp};
use sluice_crds::audit::Decided;
use sluice_crds::{Decision, Subject};

use super::{FOLD, FORGET, Lines, TELL_AGAIN, news};

/// How many questions are known at once.
const QUESTIONS: usize = 10_000;
/// How many bytes they may take, about: those with many gates make room sooner.
const BYTES: usize = 16 << 20;
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
    /// How many bytes the questions take, about.
    bytes: usize,
}

/// How many events may be sent: so many at once, and then one a second.
struct Budget {
    /// Since when they might have been sent and were not.
    unspent: Timestamp,
}

/// A question, and its last answer.
struct Question {
    subject: Subject,
    /// A hash of the same question about any revision.
    topic: u64,
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
    /// How many bytes it takes, about.
    bytes: usize,
}

/// What an answer is worth.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct News {
    /// Whether it is another one than before.
    pub(super) is_new: bool,
    /// Since when it has been yes, or no.
    pub(super) since: Timestamp,
    /// How many events are to tell it.
    pub(super) events: usize,
    /// How many more should, were there not so many.
    pub(super) dropped: u64,
    /// What was counted of other answers, which are forgotten by now: the audit log is to tell it.
    pub(super) counted: Vec<Decided>,
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
    /// Whether the last answer to any of its questions was no.
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
            bytes: 0,
        }
    }
}

impl Known {
    /// Notes an answer, and says what it is worth.
    pub(super) fn note(
        &mut self,
        decision: &Decision,
        asked_by: Option<&str>,
        lines: Lines,
    ) -> News {
        let (now, answer) = (decision.at.0, self.answer(decision));
        let (topic, key) = self.question(decision, asked_by);
        let is_full = self.questions.len() >= QUESTIONS && !self.questions.contains_key(&key);
        let mut counted = match is_full || self.bytes > BYTES {
            true => self.make_room(),
            false => Vec::new(),
        };
        self.answers += 1;
        let known = self.questions.entry(key).or_insert_with(|| Question {
            subject: decision.subject.clone(),
            topic,
            allowed: decision.allowed,
            answer: None,
            since: now,
            asked: (now, 0),
            event: None,
            line: now,
            repeated: 0,
            decided: None,
            bytes: 0,
        });
        known.asked = (now, self.answers);
        let is_new = known.answer != Some(answer);
        let keep = match lines {
            Lines::None => false,
            Lines::News => is_new,
            Lines::All => true,
        };
        if is_new && !keep {
            // No line of the new answer says how many there were of the one before.
            counted.extend(known.counted(now));
        }
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
        if is_new {
            let bytes = known.weigh();
            self.bytes = self.bytes - known.bytes + bytes;
            known.bytes = bytes;
        }
        let wanted = match known.is_due(now) {
            true => news::wanted(decision),
            false => 0,
        };
        let events = (0..wanted).take_while(|_| self.budget.spend(now)).count();
        if events > 0 {
            known.event = Some(now);
        }
        let dropped = match is_new || events > 0 {
            true => wanted - events,
            // It is tried again when it is asked again.
            false => 0,
        };
        News {
            is_new,
            since: known.since,
            events,
            dropped: dropped as u64,
            counted,
            line: line.filter(|_| keep),
        }
    }

    /// Two hashes of who asks for what, without the revision and with it: the gates that a policy
    /// adds are not asked for.
    fn question(&self, decision: &Decision, asked_by: Option<&str>) -> (u64, u64) {
        let Subject {
            kind,
            namespace,
            name,
            action,
            revision,
        } = &decision.subject;
        let mut hash = self.hasher.build_hasher();
        (asked_by, kind, namespace, name, action).hash(&mut hash);
        decision.require.hash(&mut hash);
        let own = decision.checked.iter().filter(|gate| gate.policy.is_none());
        own.for_each(|gate| gate.gate.hash(&mut hash));
        let topic = hash.finish();
        revision.hash(&mut hash);
        (topic, hash.finish())
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

    /// Everything that has a name, and whether the last answer to any of its questions was no. Asked
    /// about another revision, it does not wait for the one before any more.
    pub(super) fn waiting(&self, now: Timestamp) -> Vec<Waiting> {
        type Who<'a> = (&'a str, &'a str, &'a str);
        let mut last: HashMap<(Who<'_>, u64), (u64, bool)> = HashMap::new();
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
            let who: Who<'_> = (kind, namespace, name);
            let last = last.entry((who, question.topic)).or_default();
            *last = answer.max(*last);
        }
        let mut all: BTreeMap<Who<'_>, bool> = BTreeMap::new();
        for ((who, _), (_, waits)) in last {
            *all.entry(who).or_default() |= waits;
        }
        let all = all.into_iter();
        all.map(|((kind, namespace, name), waits)| Waiting {
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            waits,
        })
        .collect()
    }

    /// Forgets what nobody asks any more. Returns what was counted and is to be told.
    pub(super) fn sweep(&mut self, now: Timestamp) -> Vec<Decided> {
        let mut counted = Vec::new();
        self.retain(|question| {
            let forgotten = question.is_forgotten(now);
            if question.repeated > 0 && (forgotten || has_passed(question.line, FOLD, now)) {
                counted.extend(question.counted(now));
            }
            !forgotten
        });
        counted
    }

    /// All that was counted and is to be told, whenever that is due.
    pub(super) fn drain(&mut self) -> Vec<Decided> {
        let all = self.questions.values_mut();
        all.filter_map(|it| it.counted(it.asked.0)).collect()
    }

    /// Those go that were not asked for longest: a quarter, so that it is seldom done. Returns what
    /// was counted of them, and is to be told.
    fn make_room(&mut self) -> Vec<Decided> {
        let mut asked: Vec<u64> = self.questions.values().map(|it| it.asked.1).collect();
        let quarter = asked.len() / 4;
        let (_, oldest, _) = asked.select_nth_unstable(quarter);
        let oldest = *oldest;
        let mut counted = Vec::new();
        self.retain(|question| {
            let stays = question.asked.1 > oldest;
            if !stays {
                counted.extend(question.counted(question.asked.0));
            }
            stays
        });
        counted
    }

    /// Keeps some of the questions.
    fn retain(&mut self, mut stays: impl FnMut(&mut Question) -> bool) {
        self.questions.retain(|_, question| stays(question));
        self.bytes = self.questions.values().map(|it| it.bytes).sum();
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

    /// How many bytes it takes, about.
    fn weigh(&self) -> usize {
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

/// How many bytes its words take.
fn letters(subject: &Subject) -> usize {
    let Subject {
        kind,
        namespace,
        name,
        action,
        revision,
    } = subject;
    let others = [name, revision].into_iter().flatten().map(String::len);
    kind.len() + namespace.len() + action.len() + others.sum::<usize>()
}

fn has_passed(since: Timestamp, length: SignedDuration, now: Timestamp) -> bool {
    now.duration_since(since) >= length
}
