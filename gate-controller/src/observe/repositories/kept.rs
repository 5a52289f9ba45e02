//! Answers that nobody asks for now, and that stay right for ever: those that were asked for last.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use sluice_core::delivery::promotion_strategy::evidence::{Answer, Commit, Question};

use super::room::Room;

/// How many are kept.
pub(super) const MOST: usize = 4_096;

/// Such answers.
#[derive(Default)]
pub(super) struct Kept {
    answers: HashMap<Arc<Question>, (u64, Option<Answer>)>,
    /// By the order in which they came, oldest first.
    order: BTreeMap<u64, Arc<Question>>,
    next: u64,
}

impl Kept {
    /// Keeps one. The oldest are dropped where there are too many.
    pub(super) fn keep(
        &mut self,
        room: &mut Room,
        question: Arc<Question>,
        answer: Option<Answer>,
    ) {
        self.take(room, &question);
        room.add(None, size(&question, answer.as_ref()));
        self.order.insert(self.next, Arc::clone(&question));
        self.answers.insert(question, (self.next, answer));
        self.next += 1;
        while self.answers.len() > MOST && self.drop_oldest(room) {}
    }

    /// Takes one out.
    #[allow(
        clippy::option_option,
        reason = "the inner one says that there is no such thing"
    )]
    pub(super) fn take(&mut self, room: &mut Room, question: &Question) -> Option<Option<Answer>> {
        let (place, answer) = self.answers.remove(question)?;
        self.order.remove(&place);
        room.remove(None, size(question, answer.as_ref()));
        Some(answer)
    }

    /// One of them.
    #[allow(
        clippy::option_option,
        reason = "the inner one says that there is no such thing"
    )]
    pub(super) fn get(&self, question: &Question) -> Option<Option<&Answer>> {
        let (_, answer) = self.answers.get(question)?;
        Some(answer.as_ref())
    }

    /// Whether there was one.
    pub(super) fn drop_oldest(&mut self, room: &mut Room) -> bool {
        let oldest = self.order.pop_first();
        oldest.is_some_and(|(_, question)| {
            self.take(room, &question);
            true
        })
    }
}

/// How much memory a question takes with its answer, about: what is held, also where a text has been cut.
pub(super) fn size(question: &Question, answer: Option<&Answer>) -> usize {
    /// Of what has no text.
    const ENTRY: usize = 256;
    let names = match question {
        Question::Commit(it) | Question::Metadata(it) | Question::Statuses(it) => it.capacity(),
        Question::Note { notes, of } => notes.capacity() + of.capacity(),
        Question::Contains { base, commit } => base.capacity() + commit.capacity(),
    };
    let texts = match answer {
        None | Some(Answer::Contains(_)) => 0,
        Some(Answer::Text(text)) => text.len(),
        Some(Answer::Commit(commit)) => {
            let Commit {
                tree,
                parents,
                at: _,
                message,
            } = commit.as_ref();
            let ids: usize = parents.iter().map(String::capacity).sum();
            let places = parents.capacity() * size_of::<String>();
            tree.capacity() + ids + places + message.capacity()
        }
        Some(Answer::Statuses(statuses)) => {
            let each = statuses.iter();
            each.map(|it| it.context.capacity() + it.description.capacity() + 64)
                .sum()
        }
    };
    ENTRY + names + texts
}
