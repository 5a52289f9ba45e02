//! What is asked about the commits of a repository, and the answers.
//!
//! Each question is asked once, however many want to know. Most answers are right for ever. A failure of the
//! forge holds all questions for a while; the one that has failed then waits behind all others. What fails of one
//! question alone, as anyone who pushes can make it fail, says nothing of others.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use sluice_core::delivery::git_repository_access::report::{Asking, Failing};
use sluice_core::delivery::promotion_strategy::evidence::{Answer, Question, Sight};
use sluice_core::delivery::pull_request::Failure;

use super::kept::Kept;
use super::room::{MOST_KEPT, Room, Whole};
use super::{Begun, Said};
use crate::cluster::key::Work;

mod asked;
mod turns;

use asked::{Answered, Asked, Shown};
use turns::{Due, Turns};

/// The least time between two answers to one question.
const APART: SignedDuration = SignedDuration::from_secs(1);

/// The questions about a repository.
#[derive(Default)]
pub(super) struct Questions {
    asked: HashMap<Arc<Question>, Asked>,
    by: HashMap<Work, BTreeSet<Arc<Question>>>,
    kept: Kept,
    room: Room,
    turn: u64,
    turns: Turns,
    /// Those that are being asked.
    begun: Vec<Arc<Question>>,
    /// How the forge has failed last.
    failing: Option<Failing>,
}

impl Questions {
    pub(super) fn of(whole: Whole) -> Self {
        Self {
            room: Room::of(whole),
            ..Self::default()
        }
    }

    /// Returns whether something is to be asked of the forge because of this.
    pub(super) fn ask(
        &mut self,
        by: &Work,
        questions: &BTreeSet<Question>,
        now: Timestamp,
    ) -> bool {
        let before = self.by.remove(by).unwrap_or_default();
        let stays = |question: &Arc<Question>| questions.contains(question.as_ref());
        let (mut all, gone): (BTreeSet<_>, BTreeSet<_>) = before.into_iter().partition(stays);
        for question in gone {
            self.leave(by, &question);
        }
        let mut is_new = false;
        for question in questions {
            if !all.contains(question) {
                let (question, asks) = self.join(by, question, now);
                is_new |= asks;
                all.insert(question);
            }
        }
        if !all.is_empty() {
            self.by.insert(by.clone(), all);
        }
        is_new
    }

    /// One more asks it. Returns whether it is to be asked of the forge because of this.
    fn join(&mut self, by: &Work, question: &Question, now: Timestamp) -> (Arc<Question>, bool) {
        let known = self.asked.get_key_value(question);
        let known = known.map(|(known, _)| Arc::clone(known));
        if let (Some(known), Some(asked)) = (known, self.asked.get_mut(question)) {
            asked.who.insert(by.clone());
            // There may be room for it in the share of this one.
            let again = asked.is_refused;
            if again {
                (asked.is_refused, asked.next_at) = (false, Some(now));
            }
            return (known, again);
        }
        let question = Arc::new(question.clone());
        let kept = self.kept.take(&mut self.room, &question);
        let kept = kept.map(|answer| Answered {
            answer: Ok(answer),
            at: now,
            absent: 2,
        });
        let has_share = |it: &Answered| self.room.has_share(by, it.size(&question)).is_ok();
        let kept = kept.filter(has_share);
        let is_new = kept.is_none();
        self.turn += 1;
        if let Some(answered) = &kept {
            self.room.add(Some(by), answered.size(&question));
        }
        let asked = Asked {
            who: BTreeSet::from([by.clone()]),
            turn: self.turn,
            next_at: is_new.then_some(now),
            shown: match is_new {
                true => Shown::Nothing,
                false => Shown::Answer,
            },
            of: kept.is_some().then(|| by.clone()),
            answered: kept,
            failing: None,
            fails_alone: false,
            is_refused: false,
        };
        self.asked.insert(Arc::clone(&question), asked);
        (question, is_new)
    }

    /// One less asks it. An answer that is right for ever is kept for a while.
    fn leave(&mut self, by: &Work, question: &Arc<Question>) {
        let Some(asked) = self.asked.get_mut(question) else {
            return;
        };
        asked.who.remove(by);
        if let Some(next) = asked.who.first() {
            if let Some(answered) = &asked.answered
                && asked.of.as_ref() == Some(by)
            {
                let size = answered.size(question);
                self.room.remove(Some(by), size);
                self.room.add(Some(next), size);
                asked.of = Some(next.clone());
            }
            return;
        }
        let Some(asked) = self.asked.remove(question) else {
            return;
        };
        if let Some(answered) = asked.answered {
            self.room.remove(asked.of.as_ref(), answered.size(question));
            self.keep(question, answered);
        }
    }

    fn keep(&mut self, question: &Arc<Question>, answered: Answered) {
        if answered.again(question).is_none()
            && let Ok(answer) = answered.answer
        {
            self.kept.keep(&mut self.room, Arc::clone(question), answer);
            while self.room.kept() > MOST_KEPT && self.kept.drop_oldest(&mut self.room) {}
        }
    }

    /// How much is kept that nobody asks for.
    pub(super) fn kept(&self) -> usize {
        self.room.kept()
    }

    /// Drops the older half of what nobody asks for, or less of it if that is enough.
    pub(super) fn give_way(&mut self) {
        let half = self.room.kept() / 2;
        let room = &mut self.room;
        while room.kept() > half && room.is_tight() && self.kept.drop_oldest(room) {}
    }

    pub(super) fn is_asked_by(&self, by: &Work) -> bool {
        self.by.contains_key(by)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.asked.is_empty()
    }

    /// Returns whether something is to be asked of the forge because of this.
    pub(super) fn renew(&mut self, question: &Question, now: Timestamp) -> bool {
        let Some(asked) = self.asked.get_mut(question) else {
            return false;
        };
        let answered = asked.answered.as_ref();
        let apart = answered.and_then(|it| it.at.checked_add(APART).ok());
        let at = apart.map_or(now, |apart| apart.max(now));
        asked.next_at = Some(asked.next_at.map_or(at, |next| next.min(at)));
        true
    }

    /// What is known about one.
    pub(super) fn sight(&self, question: &Question, now: Timestamp) -> Sight<Answer> {
        if let Some(asked) = self.asked.get(question) {
            return asked.sight(question, self.failing.as_ref(), now);
        }
        match self.kept.get(question) {
            Some(answer) => answer.map_or(Sight::Absent, |answer| Sight::Known(answer.clone())),
            None => Sight::Pending,
        }
    }

    /// Whatever failed before says nothing about the next try.
    pub(super) fn try_again(&mut self, now: Timestamp) {
        self.failing = None;
        self.begun.clear();
        for asked in self.asked.values_mut() {
            if asked.failing.take().is_some() {
                asked.next_at = Some(now);
            }
        }
    }

    /// Nothing is known any more.
    pub(super) fn reset(&mut self, now: Timestamp) {
        self.kept = Kept::default();
        self.room.clear();
        self.try_again(now);
        for asked in self.asked.values_mut() {
            (asked.answered, asked.next_at) = (None, Some(now));
            (asked.of, asked.is_refused) = (None, false);
            asked.shown = Shown::Nothing;
        }
    }

    pub(super) fn known(&self, now: Timestamp) -> Asking {
        let all = || self.asked.iter();
        let next_at = all().filter_map(|(_, asked)| asked.next_at).min();
        let failing = all().filter(|(_, asked)| asked.failing.is_some() && !asked.fails_alone);
        let failing = failing.min_by(|(one, _), (other, _)| one.cmp(other));
        let failing = failing.and_then(|(_, asked)| asked.failing.as_ref());
        let held = self.failing.as_ref().map(|failing| failing.next_at(now));
        Asking {
            is_under_way: false,
            next_at: next_at.map(|at| held.map_or(at, |held| held.max(at))),
            stale_at: all().filter_map(|(it, asked)| asked.stale_at(it)).min(),
            failing: failing.map(|it| it.failure.clone()),
        }
    }

    /// The next questions that are due, at most so many, of the namespaces in turn.
    pub(super) fn begin(&mut self, most: usize, now: Timestamp) -> Begun {
        let due = self.asked.iter();
        let due = due.filter(|(_, asked)| asked.next_at.is_some_and(|at| at <= now));
        let due = due.map(|(question, asked)| Due {
            question,
            who: &asked.who,
            turn: asked.turn,
            is_needed: asked.is_needed(question, now),
        });
        let (begun, are_needed) = self.turns.next(due.collect(), most);
        let questions = begun.iter().map(|it| it.as_ref().clone());
        let questions = questions.collect();
        self.begun = begun;
        Begun {
            questions,
            are_needed,
        }
    }

    /// Takes answers in, or why there are none. Returns who has to look again.
    pub(super) fn answered(
        &mut self,
        said: Result<Vec<(Question, Said)>, Failure>,
        now: Timestamp,
    ) -> BTreeSet<Work> {
        let begun = std::mem::take(&mut self.begun);
        let said = said.unwrap_or_else(|failure| {
            let first = begun.first().map(|it| it.as_ref().clone());
            first
                .map(|it| (it, Said::Failed(failure)))
                .into_iter()
                .collect()
        });
        let failure = said.iter().find_map(|(_, said)| match said {
            Said::Failed(failure) => Some(failure.clone()),
            Said::Answer(_) | Said::Unusable(_) | Said::FailedAlone(_) => None,
        });
        let before = self.failing.take();
        let began_failing = failure.is_some() && before.is_none();
        // Where it has answered others meanwhile, they are not held for longer and longer because of one.
        let answers = said.iter().any(|(_, said)| matches!(said, Said::Answer(_)));
        let before = before.filter(|_| !answers);
        self.failing = failure.map(|it| Failing::again(before.as_ref(), it, now));
        let mut woken = BTreeSet::new();
        for (question, said) in said {
            // Others were not asked: their answer would belong to a spec of before.
            if begun.iter().any(|it| **it == question) {
                woken.extend(self.take(question, said, now));
            }
        }
        if began_failing {
            woken.extend(self.outdated(now));
        }
        woken
    }

    fn take(&mut self, question: Question, said: Said, now: Timestamp) -> BTreeSet<Work> {
        self.turn += 1;
        let known = self.asked.get_key_value(&question);
        let known = known.map(|(known, _)| Arc::clone(known));
        let (failure, alone) = match said {
            Said::Answer(answer) => return self.take_answer(question, known, Ok(answer), now),
            Said::Unusable(why) => return self.take_answer(question, known, Err(why), now),
            Said::FailedAlone(failure) => (failure, true),
            Said::Failed(failure) => (failure, false),
        };
        let asked = known.and_then(|known| self.asked.get_mut(&known));
        let Some(asked) = asked else {
            return BTreeSet::new();
        };
        asked.fail(&question, (failure, alone), self.turn, now);
        asked.woken(&question, self.failing.as_ref(), now, false)
    }

    fn take_answer(
        &mut self,
        question: Question,
        known: Option<Arc<Question>>,
        answer: Result<Option<Answer>, String>,
        now: Timestamp,
    ) -> BTreeSet<Work> {
        let Some(question) = known else {
            // Nobody wants to know any more.
            self.keep(&Arc::new(question), Answered::new(answer, None, now));
            return BTreeSet::new();
        };
        let Some(asked) = self.asked.get_mut(&question) else {
            return BTreeSet::new();
        };
        let place = (&mut self.room, self.turn);
        let is_new = asked.settle(&question, answer, place, now);
        asked.woken(&question, self.failing.as_ref(), now, is_new)
    }

    /// Who is told something else now than before.
    pub(super) fn outdated(&mut self, now: Timestamp) -> BTreeSet<Work> {
        let mut woken = BTreeSet::new();
        for (question, asked) in &mut self.asked {
            if asked.note_shown(question, self.failing.as_ref(), now) {
                woken.extend(asked.who.iter().cloned());
            }
        }
        woken
    }
}
