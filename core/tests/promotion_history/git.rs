//! What a leader knows of the repository: the branches as they were listed, and what it has asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use sluice_core::delivery::promotion_strategy::evidence::{
    Answer, Evidence, Heads, Question, Sight,
};
use sluice_core::delivery::promotion_strategy::metadata;

use crate::repository::Repository;

/// What a leader knows.
#[derive(Clone, Default)]
pub(super) struct Known {
    /// The repository as it was when its branches were listed.
    pub(super) listed: Option<Arc<Repository>>,
    /// When that was.
    pub(super) listed_at: Option<Timestamp>,
    answers: Arc<BTreeMap<Question, Sight<Answer>>>,
    /// What it wants to know.
    pub(super) wanted: BTreeSet<Question>,
    /// The forge has not answered when it was asked last.
    fails: bool,
}

impl Known {
    /// The forge answers what is wanted, or nothing. What a note says is as old as the list.
    pub(super) fn learn(&mut self, now: &Repository, answers: bool) {
        self.fails = !answers;
        let Some(listed) = self.listed.as_ref().filter(|_| answers) else {
            return;
        };
        let newest = of(listed).notes.clone();
        let is_old = |notes: &String| newest != Sight::Known(notes.clone());
        for question in std::mem::take(&mut self.wanted) {
            let answer = match &question {
                Question::Note { notes, .. } if is_old(notes) => continue,
                Question::Note { .. } => listed.truth(&question),
                _ => now.truth(&question),
            };
            Arc::make_mut(&mut self.answers).insert(question, answer);
        }
    }

    /// The commit that a branch has, as far as it was listed.
    pub(super) fn head(&self, branch: &str) -> Option<String> {
        self.listed.as_ref()?.find(branch)
    }
}

fn of(repository: &Repository) -> Arc<Heads> {
    match repository.heads() {
        Sight::Known(heads) => heads,
        other => unreachable!("{other:?}"),
    }
}

impl Evidence for Known {
    fn heads(&self) -> Sight<Arc<Heads>> {
        match &self.listed {
            Some(listed) => listed.heads(),
            None if self.fails => Sight::Failed("the forge is down".to_owned()),
            None => Sight::Pending,
        }
    }

    fn read_by(&self) -> Option<String> {
        Some("access".to_owned())
    }

    fn listed_at(&self) -> Option<Timestamp> {
        self.listed_at
    }

    fn is_list_failing(&self) -> bool {
        self.listed.is_some() && self.fails
    }

    fn answer(&self, question: &Question) -> Sight<Answer> {
        match self.answers.get(question) {
            Some(answer) => answer.clone(),
            None if self.fails => Sight::Failed("the forge is down".to_owned()),
            None => Sight::Pending,
        }
    }
}

/// From which dry commit a commit was made, as its file says.
pub(super) fn dry(git: &Repository, sha: &str) -> Option<String> {
    said(git, &Question::Metadata(sha.to_owned()))
}

/// What the note on a commit says.
pub(super) fn noted(git: &Repository, sha: &str) -> Option<String> {
    let (notes, of) = (String::new(), sha.to_owned());
    said(git, &Question::Note { notes, of })
}

fn said(git: &Repository, question: &Question) -> Option<String> {
    match git.truth(question) {
        Sight::Known(Answer::Text(text)) => metadata::read(&text).ok().map(|it| it.dry_sha),
        _ => None,
    }
}

/// The commit with the same files that a commit only joins to a history, if it is such a one.
pub(super) fn joined<'r>(git: &'r Repository, sha: &str) -> Option<&'r str> {
    match git.parents(sha) {
        [head, _] if git.tree(head) == git.tree(sha) => Some(head),
        _ => None,
    }
}
