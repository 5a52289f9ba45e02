//! Recent answers: as much of them as is needed to recognize a new answer, and no more.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, Hash, Hasher, RandomState};

use jiff::Timestamp;
use sluice_core::delivery::rollout;
use sluice_crds::audit::Decided;
use sluice_crds::{Decision, Rollout, Subject};

use super::budget::Budgets;
use super::{Asker, FOLD, Lines, news};
use crate::cluster::key::{KeyRef, ObjectKey};

mod question;

use question::{Question, has_passed};

/// How many questions are known at once.
const QUESTIONS: usize = 10_000;
/// How many bytes they may take, about: those with many gates make room sooner.
const BYTES: usize = 16 << 20;

/// All that was answered.
pub(super) struct Known {
    /// By a hash of the question that nobody outside can guess. If two have the same hash, an answer is
    /// reported once more than necessary.
    questions: HashMap<u64, Question>,
    hasher: RandomState,
    /// How many answers there were.
    answers: u64,
    /// How many events may be sent.
    budgets: Budgets,
    /// How many bytes the questions take, about.
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
    /// Whether the audit log has to report it, and how many equal answers it did not report before.
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

impl Waiting {
    /// Its name, as caches have it.
    pub(super) fn key(&self) -> KeyRef<'_> {
        KeyRef {
            namespace: &self.namespace,
            name: &self.name,
        }
    }

    /// What the status of a Rollout says. None: it has asked nothing.
    pub(super) fn rollout(object: &Rollout) -> Option<Self> {
        let waits = rollout::waits_for_gates(object.status.as_ref()?)?;
        let ObjectKey { namespace, name } = ObjectKey::of(object);
        Some(Self {
            kind: rollout::KIND.to_owned(),
            namespace: namespace.to_string(),
            name: name.to_string(),
            waits,
        })
    }
}

impl Default for Known {
    fn default() -> Self {
        Self {
            questions: HashMap::new(),
            hasher: RandomState::new(),
            answers: 0,
            budgets: Budgets::default(),
            bytes: 0,
        }
    }
}

impl Known {
    /// Notes an answer, and says what it is worth.
    pub(super) fn note(&mut self, decision: &Decision, asker: Asker<'_>, lines: Lines) -> News {
        let (now, answer) = (decision.at.0, self.answer(decision));
        let (topic, key) = self.question(decision, asker);
        let hash = self.hasher.hash_one(asker);
        let is_full = self.questions.len() >= QUESTIONS && !self.questions.contains_key(&key);
        let mut counted = match is_full || self.bytes > BYTES {
            true => self.make_room(),
            false => Vec::new(),
        };
        self.answers += 1;
        let known = self.questions.entry(key).or_insert_with(|| Question {
            subject: decision.subject.clone(),
            asker: hash,
            is_known: asker.speaks_for(&decision.subject),
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
            Lines::All | Lines::Each => true,
        };
        if is_new && !keep {
            // No line of the new answer says how many there were of the one before.
            counted.extend(known.counted(now));
        }
        let line = match (is_new, lines) {
            (true, _) => Some(known.renew(decision, answer)),
            (false, Lines::Each) => Some(known.by_itself(now)),
            (false, Lines::None | Lines::News | Lines::All) => known.again(now, keep),
        };
        if is_new && keep {
            known.decided = Some(Decided {
                asked_by: asker.name().map(str::to_owned),
                repeated: 0,
                decision: decision.clone(),
            });
        }
        if is_new {
            let bytes = known.weigh();
            self.bytes = self.bytes - known.bytes + bytes;
            known.bytes = bytes;
        }
        let wanted = match known.is_known && known.is_due(now) {
            true => news::wanted(decision),
            false => 0,
        };
        let mut spend = || match asker {
            Asker::Controller => self.budgets.spend_own(now),
            Asker::Caller(_) | Asker::Stranger => self.budgets.spend(hash, now),
        };
        let events = (0..wanted).take_while(|_| spend()).count();
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

    /// Two hashes of who asks for what, without step and revision and with them: the gates that a policy
    /// adds are not asked for.
    fn question(&self, decision: &Decision, asker: Asker<'_>) -> (u64, u64) {
        let Subject {
            kind,
            namespace,
            name,
            environment,
            action,
            step,
            revision,
        } = &decision.subject;
        let mut hash = self.hasher.build_hasher();
        (asker, kind, namespace, name, environment, action).hash(&mut hash);
        decision.require.hash(&mut hash);
        let own = decision.checked.iter().filter(|gate| gate.policy.is_none());
        own.for_each(|gate| gate.gate.hash(&mut hash));
        let topic = hash.finish();
        (step, revision).hash(&mut hash);
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
            let (Some(name), true, false) = (name, question.is_known, question.is_forgotten(now))
            else {
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

    /// Forgets what is not asked any more. Returns what was counted and has to be reported.
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

    /// Everything that was counted and has to be reported, even if it is not due yet.
    pub(super) fn drain(&mut self) -> Vec<Decided> {
        let all = self.questions.values_mut();
        all.filter_map(|it| it.counted(it.asked.0)).collect()
    }

    /// Makes room by forgetting the questions of those who use more than their share: of each of them the
    /// quarter that was not asked for longest, so that this is seldom needed. Returns what was counted of
    /// them and has to be reported.
    fn make_room(&mut self) -> Vec<Decided> {
        let mut askers: HashMap<u64, (usize, Vec<u64>)> = HashMap::new();
        for question in self.questions.values() {
            let (bytes, asked) = askers.entry(question.asker).or_default();
            *bytes += question.bytes;
            asked.push(question.asked.1);
        }
        let share = self.bytes / askers.len().max(1);
        let most = askers.values().map(|(bytes, _)| *bytes).max();
        // Where all take the same, nobody takes more than their share.
        askers.retain(|_, (bytes, _)| *bytes > share || Some(*bytes) == most);
        let oldest: HashMap<u64, u64> = (askers.into_iter())
            .map(|(asker, (_, mut asked))| {
                let quarter = asked.len() / 4;
                let (_, oldest, _) = asked.select_nth_unstable(quarter);
                (asker, *oldest)
            })
            .collect();
        let mut counted = Vec::new();
        self.retain(|question| {
            let oldest = oldest.get(&question.asker);
            let stays = oldest.is_none_or(|oldest| question.asked.1 > *oldest);
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
