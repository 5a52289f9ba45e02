//! What is known of the repositories that promotions by branches go through.
//!
//! What comes in: who needs which branches of which GitRepositoryAccess, what they ask about its commits, and
//! what its forge has answered. What goes out: what is known, without a request; what is to be asked next;
//! who has to look again because of an answer; and a call for each access that somebody needs something of.
//!
//! All of it is as new as this process leads, and bounded: answers that nobody asks for are dropped some time
//! after they were last asked for. Nothing here asks a forge: that is the look at the GitRepositoryAccess.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use parking_lot::{Mutex, MutexGuard};
use sluice_core::delivery::git_repository_access::report;
use sluice_core::delivery::promotion_strategy::evidence::{
    Answer, Evidence, Heads, Question, Sight,
};
use sluice_core::delivery::pull_request::Failure;
use sluice_crds::GitRepositoryAccess;

use crate::cluster::key::{ObjectKey, Work};
use crate::observe::clock::Clock;

mod branches;
mod kept;
mod questions;
mod repository;
mod room;
#[cfg(test)]
mod tests;

use repository::Repository;
use room::Whole;

/// The most bytes of a text in an answer.
pub const LONGEST_TEXT: usize = 64 << 10;
/// How many questions are asked in one errand.
const AT_ONCE: usize = 16;

type All = HashMap<ObjectKey, Repository>;

/// The repositories of all accesses.
pub struct Repositories {
    all: Arc<Mutex<All>>,
    whole: Whole,
    clock: Arc<dyn Clock>,
    wake: Box<dyn Fn(&ObjectKey) + Send + Sync>,
}

/// What has come of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Where the branches point to.
    pub heads: Heads,
    /// Branches of which that is not known, and why.
    pub unlisted: BTreeMap<String, String>,
    /// The names with which very much begins, in full: those are to be listed last the next time.
    pub wide: BTreeSet<String>,
    /// When its forge was asked. None: when the list was begun.
    pub at: Option<Timestamp>,
}

impl From<Heads> for Listed {
    fn from(heads: Heads) -> Self {
        Self {
            heads,
            unlisted: BTreeMap::new(),
            wide: BTreeSet::new(),
            at: None,
        }
    }
}

/// What a list has to bring.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needed {
    /// The branches that somebody needs.
    pub branches: BTreeSet<String>,
    /// What is to be listed last ([`Listed::wide`]).
    pub wide: BTreeSet<String>,
    /// Whether a merge waits for it.
    pub is_awaited: bool,
}

/// Questions that are begun to be asked, one after another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Begun {
    /// These.
    pub questions: Vec<Question>,
    /// Whether nobody can decide without them much longer: there are no answers, or they are nearly too old.
    pub are_needed: bool,
}

/// What a forge says to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// This. None: there is no such thing.
    Answer(Option<Answer>),
    /// Something that cannot be used: why. Nothing is wrong with the forge.
    Unusable(String),
    /// It does not answer this: nothing follows for others.
    FailedAlone(Failure),
    /// It does not answer.
    Failed(Failure),
}

impl Repositories {
    /// Nothing is known or needed yet. `wake` is called with each access whose forge may have to be asked.
    pub fn new(clock: Arc<dyn Clock>, wake: impl Fn(&ObjectKey) + Send + Sync + 'static) -> Self {
        Self {
            all: Arc::default(),
            whole: Whole::default(),
            clock,
            wake: Box::new(wake),
        }
    }

    /// From now on `by` needs these branches of a repository, and no others of it. It is woken when what is
    /// known of them has changed.
    pub fn need(&self, access: &ObjectKey, by: &Work, branches: BTreeSet<String>) {
        self.change(access, |repository, now| repository.need(by, branches, now));
    }

    /// From now on `by` wants answers to these, and to no others about a repository. It is woken when one of
    /// them has changed. Answers that may change are renewed for as long as they are wanted.
    pub fn ask(
        &self,
        access: &ObjectKey,
        by: &Work,
        questions: impl IntoIterator<Item = Question>,
    ) {
        let questions: BTreeSet<_> = questions.into_iter().collect();
        self.change(access, |repository, now| {
            repository.ask(by, &questions, now)
        });
    }

    /// It needs nothing of any repository any more: it is gone, or others decide about it.
    pub fn forget(&self, by: &Work) {
        let of: Vec<_> = {
            let all = self.lock();
            let of = all.iter().filter(|(_, it)| it.is_needed_by(by));
            of.map(|(access, _)| access.clone()).collect()
        };
        for access in of {
            self.need(&access, by, BTreeSet::new());
            self.ask(&access, by, []);
        }
    }

    /// What is known of a repository now, as `by` needs it. Its branches are those of this moment, for as long
    /// as this is held.
    pub fn of(&self, access: &ObjectKey, by: &Work) -> Seen {
        let now = self.clock.now();
        let all = self.lock();
        let heads = all.get(access).map(|repository| repository.heads(by, now));
        Seen {
            all: Arc::clone(&self.all),
            access: access.clone(),
            heads: heads.unwrap_or(Sight::Pending),
            listed_at: all.get(access).and_then(|it| it.branches.listed_at()),
            read_by: all.get(access).and_then(Repository::read_by),
            is_list_failing: all.get(access).is_some_and(|it| it.branches.is_failing()),
            asked: Mutex::default(),
            now,
        }
    }

    /// Whether a merge waits for a list that was not begun yet.
    pub fn is_list_awaited(&self, access: &ObjectKey) -> bool {
        let all = self.lock();
        all.get(access).is_some_and(Repository::is_list_awaited)
    }

    /// Whether anybody needs a repository.
    pub fn is_needed(&self, access: &ObjectKey) -> bool {
        let all = self.lock();
        all.get(access)
            .is_some_and(|repository| !repository.is_idle())
    }

    /// As of when the branches of a repository are known. None: they were not listed.
    pub fn listed_at(&self, access: &ObjectKey) -> Option<Timestamp> {
        let all = self.lock();
        all.get(access)?.branches.listed_at()
    }

    /// Whether an access may read its repository, as this process has found out by listing that. None: it has
    /// not, or its forge has not answered yet.
    pub fn may_read(&self, access: &ObjectKey) -> Option<bool> {
        let now = self.clock.now();
        let all = self.lock();
        all.get(access)?.branches.may_be_read(now)
    }

    /// The branches may have changed: a fresh list is wanted now. There is at most one a second, and none
    /// before the forge wants to be asked again.
    pub fn list_now(&self, access: &ObjectKey) {
        self.change(access, Repository::list_now);
    }

    /// The same for one who waits for that list, and is woken by its end, whatever it says.
    pub fn list_for(&self, access: &ObjectKey, by: &Work) {
        self.change(access, |repository, now| repository.list_for(by, now));
    }

    /// The answer to a question may have changed: it is wanted again now, if anybody asks it. There is at
    /// most one a second.
    pub fn renew(&self, access: &ObjectKey, question: &Question) {
        self.change(access, |repository, now| {
            repository.questions.renew(question, now)
        });
    }

    /// Another replica leads.
    pub fn clear(&self) {
        self.lock().clear();
    }

    /// A GitRepositoryAccess is gone. Those who need it need the next one of its name, too.
    pub fn gone(&self, access: &ObjectKey) {
        self.change(access, |repository, now| {
            repository.gone(now);
            false
        });
    }

    /// A GitRepositoryAccess as it is looked at now. Returns whether it is another one than before, or has
    /// another spec: what was asked for that before says nothing.
    pub fn see(&self, object: &GitRepositoryAccess, interval: Option<SignedDuration>) -> bool {
        let (access, now) = (ObjectKey::of(object), self.clock.now());
        let mut all = self.lock();
        let new = || Repository::of(self.whole.clone());
        let repository = all.entry(access).or_insert_with(new);
        repository.see(object.uid(), object.metadata.generation, interval, now)
    }

    /// What the look at an access decides from. What is under way is not known here.
    pub fn known(&self, access: &ObjectKey) -> report::Known {
        let now = self.clock.now();
        let all = self.lock();
        let known = all.get(access).map(|repository| repository.known(now));
        known.unwrap_or_default()
    }

    /// A list is begun, for this request of a person. Returns of what.
    pub fn begin_list(&self, access: &ObjectKey, request: Option<String>) -> Needed {
        let now = self.clock.now();
        let mut all = self.lock();
        let repository = all.get_mut(access);
        let begun = repository.map(|repository| repository.begin_list(request, now));
        begun.unwrap_or_default()
    }

    /// What has come of the list. Returns who has to look again.
    pub fn listed(&self, access: &ObjectKey, listed: Result<Listed, Failure>) -> BTreeSet<Work> {
        let news = |repository: &mut Repository, now| repository.listed(listed, now);
        self.take_in(access, news)
    }

    /// Questions are begun to be asked: of a namespace those that are needed before its others.
    pub fn begin_questions(&self, access: &ObjectKey) -> Begun {
        let now = self.clock.now();
        let mut all = self.lock();
        let repository = all.get_mut(access);
        let begun = repository.map(|repository| repository.questions.begin(AT_ONCE, now));
        begun.unwrap_or_default()
    }

    /// What has come of the questions: answers to some of them, or nothing at all. Returns who has to look
    /// again.
    pub fn answered(
        &self,
        access: &ObjectKey,
        said: Result<Vec<(Question, Said)>, Failure>,
    ) -> BTreeSet<Work> {
        self.make_room();
        let news = |repository: &mut Repository, now| repository.questions.answered(said, now);
        let woken = self.take_in(access, news);
        self.make_room();
        woken
    }

    /// Drops answers that nobody asks for where all take nearly as much as they may: of the repository first that
    /// has most of them, so that those stay of one that has few.
    fn make_room(&self) {
        if !self.whole.is_tight() {
            return;
        }
        let mut all = self.lock();
        while self.whole.is_tight() {
            let questions = all.values_mut().map(|it| &mut it.questions);
            match questions.max_by_key(|it| it.kept()) {
                Some(most) if most.kept() > 0 => most.give_way(),
                Some(_) | None => return,
            }
        }
    }

    /// Who has to look again because something has become too old to decide from.
    pub fn outdated(&self, access: &ObjectKey) -> BTreeSet<Work> {
        self.take_in(access, Repository::outdated)
    }

    fn take_in(
        &self,
        access: &ObjectKey,
        news: impl FnOnce(&mut Repository, Timestamp) -> BTreeSet<Work>,
    ) -> BTreeSet<Work> {
        let now = self.clock.now();
        let mut all = self.lock();
        let repository = all.get_mut(access);
        let woken = repository.map(|repository| news(repository, now));
        woken.unwrap_or_default()
    }

    /// Changes what is needed. The access is woken if that returns true.
    fn change(&self, access: &ObjectKey, change: impl FnOnce(&mut Repository, Timestamp) -> bool) {
        let now = self.clock.now();
        let wakes = {
            let mut all = self.lock();
            let new = || Repository::of(self.whole.clone());
            let repository = all.entry(access.clone()).or_insert_with(new);
            let wakes = change(repository, now);
            if repository.is_empty() {
                all.remove(access);
            }
            wakes
        };
        if wakes {
            (self.wake)(access);
        }
    }

    fn lock(&self) -> MutexGuard<'_, All> {
        self.all.lock()
    }
}

/// What is known of a repository, for one decision. It notes what it was asked: [`Repositories::ask`] takes
/// that once the decision is made ([`Seen::asked`]).
pub struct Seen {
    all: Arc<Mutex<All>>,
    access: ObjectKey,
    heads: Sight<Arc<Heads>>,
    listed_at: Option<Timestamp>,
    read_by: Option<String>,
    is_list_failing: bool,
    asked: Mutex<BTreeSet<Question>>,
    now: Timestamp,
}

impl Seen {
    /// Everything that it was asked, whether or not there was an answer.
    pub fn asked(&self) -> BTreeSet<Question> {
        self.asked.lock().clone()
    }
}

impl Evidence for Seen {
    fn heads(&self) -> Sight<Arc<Heads>> {
        self.heads.clone()
    }

    fn listed_at(&self) -> Option<Timestamp> {
        self.listed_at
    }

    fn read_by(&self) -> Option<String> {
        self.read_by.clone()
    }

    fn is_list_failing(&self) -> bool {
        self.is_list_failing
    }

    fn answer(&self, question: &Question) -> Sight<Answer> {
        {
            let mut asked = self.asked.lock();
            if !asked.contains(question) {
                asked.insert(question.clone());
            }
        }
        let all = self.all.lock();
        let repository = all.get(&self.access);
        let answer = repository.map(|it| it.questions.sight(question, self.now));
        answer.unwrap_or(Sight::Pending)
    }
}
