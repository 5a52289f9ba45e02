//! What is asked about the commits of a repository, and the answers.
//!
//! Each question is asked once, however many want to know. Most answers are right for ever. A failure of the
//! forge holds all questions for a while; the one that has failed then waits behind all others.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use sluice_core::delivery::git_repository_access::report::{Asking, Failing};
use sluice_core::delivery::promotion_strategy::evidence::{Answer, Question, Sight};
use sluice_core::delivery::pull_request::{Failure, Word};

use super::Said;
use super::kept::{Kept, size};
use crate::cluster::key::Work;

/// The most bytes that the answers about a repository take, about.
const MOST_BYTES: usize = 16 << 20;
/// How old an answer may get that may change.
const RENEWED: SignedDuration = SignedDuration::from_mins(1);
const STALE: SignedDuration = SignedDuration::from_mins(5);
/// The least time between two answers to one question.
const APART: SignedDuration = SignedDuration::from_secs(1);
/// After how long something is asked again that was not there, or could not be used.
const SELDOM: SignedDuration = SignedDuration::from_hours(1);

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

/// A question that somebody asks.
#[derive(Default)]
struct Asked {
    who: BTreeSet<Work>,
    /// Its place among all others.
    turn: u64,
    /// When it is to be asked next. None: never.
    next_at: Option<Timestamp>,
    answered: Option<Answered>,
    failing: Option<Failing>,
    /// What those are told who ask.
    shown: Shown,
}

/// What a forge has answered.
struct Answered {
    /// None: there is no such thing. An error: it is of no use.
    answer: Result<Option<Answer>, String>,
    at: Timestamp,
    /// How often in a row it has said that there is no such thing.
    absent: u32,
}

/// What somebody is told, but for the answer itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Shown {
    #[default]
    Nothing,
    Answer,
    Unusable,
    Failed(Word),
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
        let nobody = BTreeSet::new();
        let question = match self.asked.get_key_value(&question) {
            Some((known, _)) => Arc::clone(known),
            None => {
                if let Said::Answer(answer) = said {
                    let answered = Answered::new(Ok(answer), None, now);
                    self.keep(&Arc::new(question), answered);
                }
                return nobody;
            }
        };
        let Some(asked) = self.asked.get_mut(&question) else {
            return nobody;
        };
        asked.turn = self.turn;
        let answer = match said {
            Said::Answer(answer) => Ok(answer),
            Said::Unusable(why) => Err(why),
            Said::Failed(failure) => {
                asked.fail(failure, now);
                return match asked.note_shown(&question, self.failing.as_ref(), now) {
                    true => asked.who.clone(),
                    false => nobody,
                };
            }
        };
        let before = asked.answered.take();
        let is_new = before.as_ref().is_none_or(|it| it.answer != answer);
        let answered = Answered::new(answer, before.as_ref(), now);
        self.bytes -= before.map_or(0, |it| it.size(&question));
        self.bytes += answered.size(&question);
        asked.next_at = answered.again(&question).map(|wait| later(now, wait));
        (asked.answered, asked.failing) = (Some(answered), None);
        if !self.make_room() {
            self.refuse(&question, now);
        }
        let Some(asked) = self.asked.get_mut(&question) else {
            return nobody;
        };
        match asked.note_shown(&question, self.failing.as_ref(), now) || is_new {
            true => asked.who.clone(),
            false => nobody,
        }
    }

    /// There is no room for an answer.
    fn refuse(&mut self, question: &Arc<Question>, now: Timestamp) {
        let Some(asked) = self.asked.get_mut(question) else {
            return;
        };
        let why = format!(
            "the answers about this repository take more than {} MiB",
            MOST_BYTES >> 20
        );
        let refused = Answered::new(Err(why), None, now);
        asked.next_at = Some(later(now, SELDOM));
        let before = asked.answered.replace(refused);
        self.bytes -= before.map_or(0, |it| it.size(question));
        self.bytes += asked.answered.as_ref().map_or(0, |it| it.size(question));
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

impl Asked {
    fn fail(&mut self, failure: Failure, now: Timestamp) {
        let failing = Failing::again(self.failing.as_ref(), failure, now);
        self.next_at = Some(failing.next_at(now));
        self.failing = Some(failing);
    }

    /// `forge`: how the forge fails now, if it does.
    fn sight(&self, question: &Question, forge: Option<&Failing>, now: Timestamp) -> Sight<Answer> {
        let failing = self.failing.as_ref().or(forge);
        let failing = failing.map(|it| it.failure.message.clone());
        match &self.answered {
            None => failing.map_or(Sight::Pending, Sight::Failed),
            Some(_) if self.is_stale(question, now) => {
                let late = "it was not read again for too long";
                Sight::Failed(failing.unwrap_or_else(|| late.to_owned()))
            }
            Some(answered) => match &answered.answer {
                Ok(Some(answer)) => Sight::Known(answer.clone()),
                Ok(None) => Sight::Absent,
                Err(why) => Sight::Failed(why.clone()),
            },
        }
    }

    /// Notes what those are told who ask. Returns whether that is something else than before, but for the
    /// answer itself.
    fn note_shown(&mut self, question: &Question, forge: Option<&Failing>, now: Timestamp) -> bool {
        let failing = self.failing.as_ref().or(forge);
        let failing = failing.map(|it| it.failure.word);
        let shown = match &self.answered {
            None => failing.map_or(Shown::Nothing, Shown::Failed),
            Some(_) if self.is_stale(question, now) => {
                Shown::Failed(failing.unwrap_or(Word::Unanswered))
            }
            Some(answered) if answered.answer.is_err() => Shown::Unusable,
            Some(_) => Shown::Answer,
        };
        let before = std::mem::replace(&mut self.shown, shown);
        // Nobody decides otherwise because it is not known any more why nothing is known.
        before != shown && shown != Shown::Nothing
    }

    fn is_stale(&self, question: &Question, now: Timestamp) -> bool {
        matches!(question, Question::Statuses(_))
            && self
                .answered
                .as_ref()
                .is_some_and(|it| later(it.at, STALE) <= now)
    }

    fn stale_at(&self, question: &Question) -> Option<Timestamp> {
        let answered = self.answered.as_ref()?;
        let gets_stale = matches!(question, Question::Statuses(_)) && self.shown == Shown::Answer;
        gets_stale.then(|| later(answered.at, STALE))
    }
}

impl Answered {
    fn new(answer: Result<Option<Answer>, String>, before: Option<&Self>, at: Timestamp) -> Self {
        let absent = match answer {
            Ok(None) => before.map_or(0, |before| before.absent).saturating_add(1),
            Ok(Some(_)) | Err(_) => 0,
        };
        Self { answer, at, absent }
    }

    /// After how long it is asked again. None: it is right for ever. What is not there may be on its way: a
    /// forge shows by its API what was pushed a moment later than by Git. After that only commits may come.
    fn again(&self, question: &Question) -> Option<SignedDuration> {
        match (question, &self.answer) {
            (Question::Statuses(_), Ok(_)) => Some(RENEWED),
            (_, Ok(Some(_))) => None,
            (_, Ok(None)) if self.absent < 2 => Some(RENEWED),
            (Question::Metadata(_) | Question::Note { .. }, Ok(None)) => None,
            (Question::Commit(_) | Question::Contains { .. }, Ok(None)) | (_, Err(_)) => {
                Some(SELDOM)
            }
        }
    }

    fn size(&self, question: &Question) -> usize {
        match &self.answer {
            Ok(answer) => size(question, answer.as_ref()),
            Err(why) => size(question, None) + why.len(),
        }
    }
}

fn later(at: Timestamp, wait: SignedDuration) -> Timestamp {
    at.saturating_add(wait).unwrap_or(at)
}
