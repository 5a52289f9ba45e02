//! One question that somebody asks, and what is known of it.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use sluice_core::delivery::git_repository_access::report::Failing;
use sluice_core::delivery::promotion_strategy::evidence::{Answer, Question, Sight};
use sluice_core::delivery::pull_request::{Failure, Word};

use crate::cluster::key::Work;
use crate::observe::repositories::kept::size;
use crate::observe::repositories::room::Room;

/// How old an answer may get that may change.
const RENEWED: SignedDuration = SignedDuration::from_mins(1);
const STALE: SignedDuration = SignedDuration::from_mins(5);
/// How old it is when it has to be renewed, so that it does not get older than that.
const NEEDED: SignedDuration = SignedDuration::from_mins(4);
/// After how long something is asked again that was not there, or could not be used.
const SELDOM: SignedDuration = SignedDuration::from_hours(1);
/// After how long something is first asked again for whose answer there was no room.
const FIRST: SignedDuration = SignedDuration::from_secs(10);

/// A question that somebody asks.
pub(super) struct Asked {
    pub(super) who: BTreeSet<Work>,
    /// Its place among all others.
    pub(super) turn: u64,
    /// When it is to be asked next. None: never.
    pub(super) next_at: Option<Timestamp>,
    pub(super) answered: Option<Answered>,
    pub(super) failing: Option<Failing>,
    /// Whether that says nothing of others.
    pub(super) fails_alone: bool,
    /// In whose share the answer is.
    pub(super) of: Option<Work>,
    /// Whether the last answer was dropped because there was no room for it.
    pub(super) is_refused: bool,
    /// What those are told who ask.
    pub(super) shown: Shown,
}

/// What a forge has answered.
pub(super) struct Answered {
    /// None: there is no such thing. An error: it is of no use.
    pub(super) answer: Result<Option<Answer>, String>,
    pub(super) at: Timestamp,
    /// How often in a row it has said that there is no such thing.
    pub(super) absent: u32,
}

/// What somebody is told, but for the answer itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    Nothing,
    Answer,
    Unusable,
    Failed(Word),
}

impl Asked {
    /// The forge has failed, for this one alone or altogether. Others take their turn before it is asked again.
    pub(super) fn fail(
        &mut self,
        question: &Question,
        (failure, alone): (Failure, bool),
        turn: u64,
        now: Timestamp,
    ) {
        (self.turn, self.fails_alone) = (turn, alone);
        // It was not asked, because it is not needed yet.
        let needed = self.needed_at(question);
        let needed = needed.filter(|_| failure.word == Word::ForgeThrottled);
        let failing = Failing::again(self.failing.as_ref(), failure, now);
        let next = failing.next_at(now);
        self.next_at = Some(needed.map_or(next, |needed| needed.min(next)));
        self.failing = Some(failing);
    }

    /// Takes an answer in, with its place among all questions. Returns whether it is another one than before.
    ///
    /// Where there is no room for it, what is known of something that changes stays until it is too old. Of anything
    /// else it is said why it is not known.
    pub(super) fn settle(
        &mut self,
        question: &Question,
        answer: Result<Option<Answer>, String>,
        (room, turn): (&mut Room, u64),
        now: Timestamp,
    ) -> bool {
        let answered = Answered::new(answer, self.answered.as_ref(), now);
        let of = match self.share(room, question, &answered) {
            Ok(of) => of,
            Err(why) => {
                self.refuse(question, why, (room, turn), now);
                return false;
            }
        };
        let before = self.answered.as_ref();
        let is_new = before.is_none_or(|it| it.answer != answered.answer);
        self.take(question, answered, of, (room, turn), now);
        is_new
    }

    /// There is no room for its answer, and there may be later: it is asked again, each time after twice as long.
    fn refuse(
        &mut self,
        question: &Question,
        why: String,
        (room, turn): (&mut Room, u64),
        now: Timestamp,
    ) {
        let has_answer = |it: &Answered| matches!(it.answer, Ok(Some(_)));
        if !self.answered.as_ref().is_some_and(has_answer)
            && let Some(before) = self.answered.take()
        {
            room.remove(self.of.take().as_ref(), before.size(question));
        }
        let times = self.failing.as_ref().filter(|_| self.is_refused);
        let times = times.map_or(0, |it| it.times);
        if times == 0 {
            tracing::warn!(?question, why, "an answer of a forge is dropped");
        }
        let wait = FIRST.saturating_mul(1 << times.min(10)).min(SELDOM);
        let failure = Failure {
            not_before: Some(later(now, wait)),
            ..Failure::new(Word::Unanswered, why)
        };
        self.fail(question, (failure, true), turn, now);
        self.is_refused = true;
    }

    fn take(
        &mut self,
        question: &Question,
        answered: Answered,
        of: Option<Work>,
        (room, turn): (&mut Room, u64),
        now: Timestamp,
    ) {
        if let Some(before) = &self.answered {
            room.remove(self.of.as_ref(), before.size(question));
        }
        let of = of.or_else(|| self.who.first().cloned());
        room.add(of.as_ref(), answered.size(question));
        (self.turn, self.failing) = (turn, None);
        (self.of, self.is_refused) = (of, false);
        self.next_at = answered.again(question).map(|wait| later(now, wait));
        self.answered = Some(answered);
    }

    /// In whose share an answer fits. What gets no larger fits where it is.
    ///
    /// # Errors
    /// In that of nobody who asks: why.
    fn share(
        &self,
        room: &mut Room,
        question: &Question,
        answered: &Answered,
    ) -> Result<Option<Work>, String> {
        let size = answered.size(question);
        let held = self.answered.as_ref().map(|it| it.size(question));
        let held = held.unwrap_or_default();
        if size <= held {
            return Ok(self.of.clone());
        }
        // The one before makes room for it.
        room.remove(self.of.as_ref(), held);
        let mut share = Ok(None);
        for by in self.of.iter().chain(&self.who) {
            share = room.has_share(by, size).map(|()| Some(by.clone()));
            if share.is_ok() {
                break;
            }
        }
        room.add(self.of.as_ref(), held);
        share
    }

    /// Whether nobody can decide without an answer much longer, and there may be room for one.
    pub(super) fn is_needed(&self, question: &Question, now: Timestamp) -> bool {
        let needed = self.needed_at(question);
        let is_awaited = self.answered.is_none() && !self.is_refused;
        is_awaited || needed.is_some_and(|at| at <= now)
    }

    /// When a known answer has to be renewed. None: it does not get too old.
    fn needed_at(&self, question: &Question) -> Option<Timestamp> {
        let answered = self.answered.as_ref()?;
        matches!(question, Question::Statuses(_)).then(|| later(answered.at, NEEDED))
    }

    /// `forge`: how the forge fails now, if it does.
    pub(super) fn sight(
        &self,
        question: &Question,
        forge: Option<&Failing>,
        now: Timestamp,
    ) -> Sight<Answer> {
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
    pub(super) fn note_shown(
        &mut self,
        question: &Question,
        forge: Option<&Failing>,
        now: Timestamp,
    ) -> bool {
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

    /// Who has to look again: all who ask, if the answer is new, or something else is told than before.
    pub(super) fn woken(
        &mut self,
        question: &Question,
        forge: Option<&Failing>,
        now: Timestamp,
        is_new: bool,
    ) -> BTreeSet<Work> {
        match self.note_shown(question, forge, now) || is_new {
            true => self.who.clone(),
            false => BTreeSet::new(),
        }
    }

    fn is_stale(&self, question: &Question, now: Timestamp) -> bool {
        matches!(question, Question::Statuses(_))
            && self
                .answered
                .as_ref()
                .is_some_and(|it| later(it.at, STALE) <= now)
    }

    pub(super) fn stale_at(&self, question: &Question) -> Option<Timestamp> {
        let answered = self.answered.as_ref()?;
        let gets_stale = matches!(question, Question::Statuses(_)) && self.shown == Shown::Answer;
        gets_stale.then(|| later(answered.at, STALE))
    }
}

impl Answered {
    pub(super) fn new(
        answer: Result<Option<Answer>, String>,
        before: Option<&Self>,
        at: Timestamp,
    ) -> Self {
        let absent = match answer {
            Ok(None) => before.map_or(0, |before| before.absent).saturating_add(1),
            Ok(Some(_)) | Err(_) => 0,
        };
        Self { answer, at, absent }
    }

    /// After how long it is asked again. None: it is right for ever. What is not there may be on its way: a
    /// forge shows by its API what was pushed a moment later than by Git. After that only commits may come.
    pub(super) fn again(&self, question: &Question) -> Option<SignedDuration> {
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

    /// How much memory it takes. What is of no use takes about as much as a question without an answer, and is
    /// counted as little.
    pub(super) fn size(&self, question: &Question) -> usize {
        match &self.answer {
            Ok(answer) => size(question, answer.as_ref()),
            Err(_) => 0,
        }
    }
}

pub(super) fn later(at: Timestamp, wait: SignedDuration) -> Timestamp {
    at.saturating_add(wait).unwrap_or(at)
}
