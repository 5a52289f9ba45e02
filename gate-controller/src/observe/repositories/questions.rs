//! What is asked about the commits of a repository, and the answers.
//!
//! Each question is asked once, however many want to know. Most answers are right for ever. A failure of the
//! forge holds all questions for a while; the one that has failed then waits behind all others.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use sluice_core::delivery::git_repository_access::report::{Asking, Failing};
use sluice_core::delivery::promotion_strategy::evidence::{Answer, Question, Sight};
use sluice_core::delivery::pull_request::Failure;

use super::Said;
use super::kept::Kept;
use crate::cluster::key::Work;

mod asked;

use asked::{Answered, Asked, Shown, later};

/// The most bytes that the answers about a repository take, about.
const MOST_BYTES: usize = 16 << 20;
/// The least time between two answers to one question.
const APART: SignedDuration = SignedDuration::from_secs(1);

/// The questions about a repository.
#[derive(Default)]
pub(super) struct Questions {
    asked: HashMap<Arc<Question>, Asked>,
    by: HashMap<Work, BTreeSet<Arc<Question>>>,
    kept: Kept,
    /// How much memory the answers take that somebody asks for.
    bytes: usize,
    turn: u64,
    /// Those that are being asked.
    begun: Vec<Arc<Question>>,
    /// How the forge has failed last.
    failing: Option<Failing>,
}

impl Questions {
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
            return (known, false);
        }
        let question = Arc::new(question.clone());
        let kept = self.kept.take(&question);
        let is_new = kept.is_none();
        self.turn += 1;
        let answered = kept.map(|answer| Answered {
            answer: Ok(answer),
            at: now,
            absent: 2,
        });
        self.bytes += answered.as_ref().map_or(0, |it| it.size(&question));
        let asked = Asked {
            who: BTreeSet::from([by.clone()]),
            turn: self.turn,
            next_at: is_new.then_some(now),
            shown: match is_new {
                true => Shown::Nothing,
                false => Shown::Answer,
            },
            answered,
            failing: None,
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
        if !asked.who.is_empty() {
            return;
        }
        let answered = self.asked.remove(question).and_then(|it| it.answered);
        if let Some(answered) = answered {
            self.bytes -= answered.size(question);
            self.keep(question, answered);
        }
    }

    fn keep(&mut self, question: &Arc<Question>, answered: Answered) {
        if answered.again(question).is_none()
            && let Ok(answer) = answered.answer
        {
            self.kept.keep(Arc::clone(question), answer);
            self.make_room();
        }
    }

    /// Drops answers that nobody asks for. Returns whether there is room for those that somebody does.
    fn make_room(&mut self) -> bool {
        let is_full = |it: &Self| it.bytes + it.kept.bytes() > MOST_BYTES;
        while is_full(self) && self.kept.drop_oldest() {}
        !is_full(self)
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
        (self.kept, self.bytes) = (Kept::default(), 0);
        self.try_again(now);
        for asked in self.asked.values_mut() {
            (asked.answered, asked.next_at) = (None, Some(now));
            asked.shown = Shown::Nothing;
        }
    }

    pub(super) fn known(&self, now: Timestamp) -> Asking {
        let all = || self.asked.iter();
        let next_at = all().filter_map(|(_, asked)| asked.next_at).min();
        let failing = all().filter(|(_, asked)| asked.failing.is_some());
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

    /// The next questions that are due, at most so many.
    pub(super) fn begin(&mut self, most: usize, now: Timestamp) -> Vec<Question> {
        let due = self.asked.iter();
        let mut due: Vec<_> = due
            .filter(|(_, asked)| asked.next_at.is_some_and(|at| at <= now))
            .map(|(question, asked)| (asked.turn, question))
            .collect();
        due.sort_unstable_by_key(|(turn, _)| *turn);
        due.truncate(most);
        self.begun = due.iter().map(|(_, it)| Arc::clone(it)).collect();
        let begun = self.begun.iter();
        begun.map(|question| question.as_ref().clone()).collect()
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
            Said::Answer(_) | Said::Unusable(_) => None,
        });
        let before = self.failing.take();
        let began_failing = failure.is_some() && before.is_none();
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
        let answer = match said {
            Said::Answer(answer) => Ok(answer),
            Said::Unusable(why) => Err(why),
            Said::Failed(failure) => {
                let asked = known.and_then(|known| self.asked.get_mut(&known));
                let Some(asked) = asked else {
                    return BTreeSet::new();
                };
                asked.fail(failure, self.turn, now);
                return asked.woken(&question, self.failing.as_ref(), now, false);
            }
        };
        let Some(question) = known else {
            // Nobody wants to know any more.
            self.keep(&Arc::new(question), Answered::new(answer, None, now));
            return BTreeSet::new();
        };
        let mut is_new = self.settle(&question, answer, now);
        if !self.make_room() {
            is_new = false;
            let why = format!(
                "the answers about this repository take more than {} MiB",
                MOST_BYTES >> 20
            );
            self.settle(&question, Err(why), now);
        }
        let failing = self.failing.as_ref();
        let asked = self.asked.get_mut(&question);
        let woken = asked.map(|asked| asked.woken(&question, failing, now, is_new));
        woken.unwrap_or_default()
    }

    /// Notes the answer to a question that somebody asks. Returns whether it is another one than before.
    fn settle(
        &mut self,
        question: &Question,
        answer: Result<Option<Answer>, String>,
        now: Timestamp,
    ) -> bool {
        let Some(asked) = self.asked.get_mut(question) else {
            return false;
        };
        let before = asked.answered.take();
        let is_new = before.as_ref().is_none_or(|it| it.answer != answer);
        let answered = Answered::new(answer, before.as_ref(), now);
        self.bytes -= before.map_or(0, |it| it.size(question));
        self.bytes += answered.size(question);
        (asked.turn, asked.failing) = (self.turn, None);
        asked.next_at = answered.again(question).map(|wait| later(now, wait));
        asked.answered = Some(answered);
        is_new
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
