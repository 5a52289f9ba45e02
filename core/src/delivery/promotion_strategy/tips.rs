//! Step 1: what both branches of each environment have, and from which dry commit that was made.
//!
//! The file in a commit says it. A note on a proposed commit says up to which dry commit that stands, too: a
//! hydrator that has found nothing to change leaves it there. So an environment for which nothing is proposed
//! stands at what the note says. Notes on anything else say nothing: fewer people look at them than at branches.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use sluice_crds::PromotionStrategySpec;
use sluice_crds::promotion_strategy::{self as crds, Environment, EnvironmentStatus};

use super::evidence::{Answer, Commit, Evidence, Heads, Question, Sight};
use super::metadata::{self, Metadata};

/// What is asked of a repository in a look: what is not known is asked for.
pub(super) struct Asker<'g> {
    evidence: &'g dyn Evidence,
    wanted: RefCell<BTreeSet<Question>>,
    waits: Cell<bool>,
    /// The commits that were read in this look.
    read: RefCell<HashMap<String, Arc<Commit>>>,
}

impl<'g> Asker<'g> {
    pub(super) fn new(evidence: &'g dyn Evidence) -> Self {
        Self {
            evidence,
            wanted: RefCell::default(),
            waits: Cell::new(false),
            read: RefCell::default(),
        }
    }

    pub(super) fn heads(&self) -> Sight<Arc<Heads>> {
        self.evidence.heads()
    }

    /// Whether the branches were listed after an instant.
    pub(super) fn listed_after(&self, at: Timestamp) -> bool {
        self.evidence.listed_at().is_some_and(|listed| listed > at)
    }

    /// Whether there was no answer yet to something that was asked.
    pub(super) fn waits(&self) -> bool {
        self.waits.get()
    }

    /// What has to be asked for.
    pub(super) fn into_wanted(self) -> BTreeSet<Question> {
        self.wanted.into_inner()
    }

    fn ask(&self, question: Question) -> Sight<Answer> {
        let answer = self.evidence.answer(&question);
        let waits = answer == Sight::Pending;
        self.waits.set(self.waits.get() || waits);
        // What a forge was told changes, and is asked for again.
        if waits || matches!(question, Question::Statuses(_)) {
            self.wanted.borrow_mut().insert(question);
        }
        answer
    }

    pub(super) fn commit(&self, sha: &str) -> Sight<Arc<Commit>> {
        match self.ask(Question::Commit(sha.to_owned())) {
            Sight::Known(Answer::Commit(commit)) => {
                let mut read = self.read.borrow_mut();
                read.insert(sha.to_owned(), Arc::clone(&commit));
                Sight::Known(commit)
            }
            other => other.without_answer(),
        }
    }

    /// Whether `commit` is `base` or an ancestor of it. Nobody has to be asked about a commit that was
    /// read and its parents.
    pub(super) fn contains(&self, base: &str, commit: &str) -> Sight<bool> {
        if base == commit || self.is_parent(commit, base) {
            return Sight::Known(true);
        }
        if self.is_parent(base, commit) {
            return Sight::Known(false);
        }
        let (base, commit) = (base.to_owned(), commit.to_owned());
        match self.ask(Question::Contains { base, commit }) {
            Sight::Known(Answer::Contains(contains)) => Sight::Known(contains),
            other => other.without_answer(),
        }
    }

    fn is_parent(&self, parent: &str, of: &str) -> bool {
        let read = self.read.borrow();
        let mut parents = read.get(of).into_iter().flat_map(|it| &it.parents);
        parents.any(|it| it == parent)
    }

    pub(super) fn statuses(&self, sha: &str) -> Sight<Arc<[super::evidence::ForgeStatus]>> {
        match self.ask(Question::Statuses(sha.to_owned())) {
            Sight::Known(Answer::Statuses(statuses)) => Sight::Known(statuses),
            other => other.without_answer(),
        }
    }

    fn text(&self, question: Question) -> Sight<Arc<str>> {
        match self.ask(question) {
            Sight::Known(Answer::Text(text)) => Sight::Known(text),
            other => other.without_answer(),
        }
    }
}

impl Sight<Answer> {
    /// The same where it is no answer. An answer to another question is none.
    fn without_answer<T>(self) -> Sight<T> {
        match self {
            Sight::Known(_) => Sight::Failed("the answer is to another question".to_owned()),
            Sight::Absent => Sight::Absent,
            Sight::Pending => Sight::Pending,
            Sight::Failed(why) => Sight::Failed(why),
        }
    }
}

/// From which dry commit something was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Dry {
    /// From this one.
    Known(String),
    /// Nothing says.
    Unsaid,
    /// What says it is not right: why.
    Invalid(String),
    /// It is not known yet.
    Pending,
    /// It cannot be read: why.
    Unreadable(String),
}

impl Dry {
    pub(super) fn known(&self) -> Option<&str> {
        match self {
            Dry::Known(sha) => Some(sha),
            Dry::Unsaid | Dry::Invalid(_) | Dry::Pending | Dry::Unreadable(_) => None,
        }
    }
}

/// The newest commit of a branch.
#[derive(Clone, Debug)]
pub(super) struct Tip {
    pub(super) sha: String,
    pub(super) tree: Sight<String>,
    pub(super) dry: Dry,
    /// What the hydrator says of the dry commit.
    pub(super) said: Option<Metadata>,
    /// The commit with the same files that it only joins to a history.
    pub(super) joined: Option<String>,
}

impl Tip {
    fn read(asker: &Asker<'_>, sha: &str) -> Self {
        let commit = asker.commit(sha);
        let (dry, said) = said(asker, sha);
        let joined = joined(asker, &commit);
        Self {
            sha: sha.to_owned(),
            tree: commit.map(|commit| commit.tree.clone()),
            dry,
            said,
            joined,
        }
    }

    fn recorded(tip: &crds::Tip) -> Self {
        Self {
            sha: tip.hydrated_sha.clone(),
            tree: Sight::Known(tip.tree.clone()),
            dry: tip.dry_sha.clone().map_or(Dry::Unsaid, Dry::Known),
            said: None,
            joined: None,
        }
    }
}

impl<T> Sight<T> {
    /// What is known.
    pub(super) fn known(self) -> Option<T> {
        match self {
            Sight::Known(it) => Some(it),
            Sight::Absent | Sight::Pending | Sight::Failed(_) => None,
        }
    }

    /// The same of something else.
    pub(super) fn map<U>(self, map: impl FnOnce(T) -> U) -> Sight<U> {
        match self {
            Sight::Known(it) => Sight::Known(map(it)),
            Sight::Absent => Sight::Absent,
            Sight::Pending => Sight::Pending,
            Sight::Failed(why) => Sight::Failed(why),
        }
    }
}

/// The trailer of a commit that we have made on a proposed branch, which only joins histories.
pub(super) const KEEP: &str = "Sluice-Keep: ";

/// From which dry commit a commit of an environment branch was made.
pub(super) fn dry_of(asker: &Asker<'_>, sha: &str) -> Dry {
    said(asker, sha).0
}

/// The commit that a commit of ours joins to the history of an environment: it has the same files, and what
/// the environment had is named as the other parent. None: it is another one, or that is not known yet.
pub(super) fn joined(asker: &Asker<'_>, commit: &Sight<Arc<Commit>>) -> Option<String> {
    let Sight::Known(commit) = commit else {
        return None;
    };
    let [head, active] = commit.parents.as_slice() else {
        return None;
    };
    let trailer = format!("{KEEP}{active}");
    let says_so = commit.message.lines().any(|line| line == trailer);
    // Everybody can write the words. With the same files they say nothing wrong.
    let has_same = || match asker.commit(head) {
        Sight::Known(head) => head.tree == commit.tree,
        Sight::Absent | Sight::Pending | Sight::Failed(_) => false,
    };
    (says_so && has_same()).then(|| head.clone())
}

/// What the file of a commit says.
fn said(asker: &Asker<'_>, sha: &str) -> (Dry, Option<Metadata>) {
    read(asker.text(Question::Metadata(sha.to_owned())))
}

/// What the note on a commit says, or that on the commit which it only joins to a history. None: there is no
/// note.
fn noted(asker: &Asker<'_>, heads: &Heads, tip: &Tip) -> Option<Dry> {
    let both = [Some(&tip.sha), tip.joined.as_ref()];
    both.into_iter().flatten().find_map(|of| {
        let notes = match &heads.notes {
            Sight::Known(notes) => notes.clone(),
            Sight::Absent => return None,
            Sight::Pending => return Some(Dry::Pending),
            Sight::Failed(why) => return Some(Dry::Unreadable(why.clone())),
        };
        let of = of.clone();
        match asker.text(Question::Note { notes, of }) {
            Sight::Absent => None,
            found => Some(read(found).0),
        }
    })
}

fn read(found: Sight<Arc<str>>) -> (Dry, Option<Metadata>) {
    match found {
        Sight::Known(text) => match metadata::read(&text) {
            Ok(said) => (Dry::Known(said.dry_sha.clone()), Some(said)),
            Err(why) => (Dry::Invalid(why), None),
        },
        Sight::Absent => (Dry::Unsaid, None),
        Sight::Pending => (Dry::Pending, None),
        Sight::Failed(why) => (Dry::Unreadable(why), None),
    }
}

/// An environment with its branches.
pub(super) struct Env<'g> {
    pub(super) spec: &'g Environment,
    pub(super) place: usize,
    /// What the status says of it.
    pub(super) record: Option<&'g EnvironmentStatus>,
    /// None: its branch is not there.
    pub(super) active: Option<Tip>,
    /// None: nothing was ever proposed.
    pub(super) proposed: Option<Tip>,
    /// Whether something is proposed: the trees of both differ.
    pub(super) proposes: Sight<bool>,
    /// What it stands at.
    pub(super) stands_at: Dry,
}

impl Env<'_> {
    pub(super) fn branch(&self) -> &str {
        &self.spec.branch
    }
}

/// All environments. Where every branch has what the status says, and nothing is proposed, nothing is asked:
/// nothing can be decided from it.
pub(super) fn environments<'g>(
    asker: &Asker<'_>,
    heads: &Heads,
    spec: &'g PromotionStrategySpec,
    records: &'g [EnvironmentStatus],
) -> Vec<Env<'g>> {
    let all = spec.environments.iter().enumerate();
    let all: Vec<_> = all
        .map(|(place, environment)| Branches {
            spec: environment,
            place,
            record: records.iter().find(|it| it.branch == environment.branch),
            active: heads.branches.get(&environment.branch),
            proposed: heads.branches.get(&spec.proposed_branch(environment)),
        })
        .collect();
    let is_quiet = all.iter().all(Branches::are_quiet);
    all.into_iter()
        .map(|branches| match is_quiet {
            true => branches.recorded(),
            false => branches.read(asker, heads),
        })
        .collect()
}

/// The branches of an environment.
struct Branches<'g, 'h> {
    spec: &'g Environment,
    place: usize,
    record: Option<&'g EnvironmentStatus>,
    active: Option<&'h String>,
    proposed: Option<&'h String>,
}

impl<'g> Branches<'g, '_> {
    fn are_quiet(&self) -> bool {
        let Some((active, proposed)) = self.recorded_tips() else {
            return false;
        };
        Some(&active.hydrated_sha) == self.active
            && Some(&proposed.hydrated_sha) == self.proposed
            && active.tree == proposed.tree
    }

    fn recorded_tips(&self) -> Option<(&'g crds::Tip, &'g crds::Tip)> {
        let record = self.record?;
        Some((record.active.as_ref()?, record.proposed.as_ref()?))
    }

    fn recorded(self) -> Env<'g> {
        let tips = self.recorded_tips();
        let (active, proposed) = tips.unzip();
        let proposed = proposed.map(Tip::recorded);
        Env {
            spec: self.spec,
            place: self.place,
            record: self.record,
            stands_at: active.map_or(Dry::Unsaid, |it| Tip::recorded(it).dry),
            active: active.map(Tip::recorded),
            proposed,
            proposes: Sight::Known(false),
        }
    }

    fn read(self, asker: &Asker<'_>, heads: &Heads) -> Env<'g> {
        let active = self.active.map(|sha| Tip::read(asker, sha));
        let proposed = self.proposed.map(|sha| Tip::read(asker, sha));
        let proposes = proposes(active.as_ref(), proposed.as_ref());
        let both = (active.as_ref(), proposed.as_ref());
        let stands_at = self.stands_at((asker, heads), both, &proposes);
        Env {
            spec: self.spec,
            place: self.place,
            record: self.record,
            active,
            proposed,
            proposes,
            stands_at,
        }
    }

    fn stands_at(
        &self,
        (asker, heads): (&Asker<'_>, &Heads),
        (active, proposed): (Option<&Tip>, Option<&Tip>),
        proposes: &Sight<bool>,
    ) -> Dry {
        let Some(active) = active else {
            return Dry::Unsaid;
        };
        // Where nobody knows what notes there are, what they have said before is kept.
        let are_known = !matches!(heads.notes, Sight::Failed(_));
        match (proposes, proposed) {
            (Sight::Known(false), Some(proposed)) if are_known => up_to(asker, heads, proposed),
            (Sight::Pending, _) => Dry::Pending,
            _ => self.kept(asker, active),
        }
    }

    /// What a note has said before something else was proposed is kept as long as the branch has the same
    /// commit. It may only lie after what the commit itself says.
    fn kept(&self, asker: &Asker<'_>, active: &Tip) -> Dry {
        let record = self.record.and_then(|record| record.active.as_ref());
        let record = record.filter(|record| record.hydrated_sha == active.sha);
        let kept = record.and_then(|record| record.dry_sha.as_deref());
        match kept {
            Some(kept) => after(asker, Dry::Known(kept.to_owned()), &active.dry),
            None => active.dry.clone(),
        }
    }
}

/// The newest dry commit that a tip stands for: its note may only name one after that which it was made from.
pub(super) fn up_to(asker: &Asker<'_>, heads: &Heads, tip: &Tip) -> Dry {
    let note = noted(asker, heads, tip).map(|note| after(asker, note, &tip.dry));
    note.unwrap_or_else(|| tip.dry.clone())
}

/// What a note says, if that comes after what the commit itself says; else the latter.
fn after(asker: &Asker<'_>, note: Dry, own: &Dry) -> Dry {
    match (&note, own) {
        (Dry::Known(later), Dry::Known(first)) => match asker.contains(later, first) {
            Sight::Known(true) => note,
            Sight::Pending => Dry::Pending,
            Sight::Known(false) | Sight::Absent | Sight::Failed(_) => own.clone(),
        },
        (Dry::Pending, _) => Dry::Pending,
        _ => own.clone(),
    }
}

fn proposes(active: Option<&Tip>, proposed: Option<&Tip>) -> Sight<bool> {
    match (active.map(|it| &it.tree), proposed.map(|it| &it.tree)) {
        (_, None) => Sight::Known(false),
        // It is not said of a branch that is not there.
        (None, Some(_)) => Sight::Absent,
        (Some(Sight::Known(active)), Some(Sight::Known(proposed))) => {
            Sight::Known(active != proposed)
        }
        (Some(Sight::Failed(why)), _) | (_, Some(Sight::Failed(why))) => Sight::Failed(why.clone()),
        (Some(Sight::Absent), _) | (_, Some(Sight::Absent)) => {
            Sight::Failed("a commit that was just listed is not there any more".to_owned())
        }
        (Some(Sight::Pending), _) | (_, Some(Sight::Pending)) => Sight::Pending,
    }
}
