//! What is remembered of repositories, and who is woken by what.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use serde_json::json;
use sluice_core::delivery::git_repository_access::report::Known;
use sluice_core::delivery::promotion_strategy::evidence::{
    Answer, Commit, Evidence, ForgeState, ForgeStatus, Heads, Question, Sight,
};
use sluice_core::delivery::pull_request::{Failure, Word};
use sluice_crds::GitRepositoryAccess;

use super::{Begun, Listed, Needed, Repositories, Said};
use crate::cluster::key::{KeyRef, ObjectKey, Work};
use crate::cluster::kind::Kind;
use crate::observe::clock::SetClock;

mod answers;
mod heads;
mod room;

/// The repositories of a process, and which accesses they have woken.
struct Scene {
    room: Repositories,
    clock: Arc<SetClock>,
    woken: Arc<Mutex<Vec<ObjectKey>>>,
}

impl Scene {
    fn new() -> Self {
        let clock = Arc::new(SetClock::new(at(0)));
        let woken = Arc::<Mutex<Vec<ObjectKey>>>::default();
        let told = Arc::clone(&woken);
        let room = Repositories::new(clock.clone(), move |access| {
            told.lock().push(access.clone());
        });
        let scene = Self { room, clock, woken };
        scene.see("u", 1);
        scene
    }

    fn see(&self, uid: &str, generation: i64) -> bool {
        let object: GitRepositoryAccess = serde_json::from_value(json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "GitRepositoryAccess",
            "metadata": {
                "namespace": "apps", "name": "shop", "uid": uid, "generation": generation,
            },
            "spec": {
                "provider": "gitea", "url": "https://git.example.com/acme/shop",
                "secretRef": {"name": "token"},
            },
        }))
        .unwrap();
        self.room.see(&object, Some(SignedDuration::from_mins(1)))
    }

    fn pass(&self, second: i64) {
        self.clock.set(at(second));
    }

    /// How often the access was woken since this was last asked.
    fn wakes(&self) -> usize {
        let woken = std::mem::take(&mut *self.woken.lock());
        assert!(woken.iter().all(|it| *it == access()));
        woken.len()
    }

    fn known(&self) -> Known {
        self.room.known(&access())
    }

    fn need(&self, by: &str, branches: &[&str]) {
        let branches = branches.iter().map(|it| (*it).to_owned()).collect();
        self.room.need(&access(), &strategy(by), branches);
    }

    fn heads(&self, by: &str) -> Sight<Arc<Heads>> {
        self.room.of(&access(), &strategy(by)).heads()
    }

    /// A list, from its begin to its end. Returns who is woken.
    fn list(&self, heads: &[(&str, &str)]) -> Vec<String> {
        self.room.begin_list(&access(), None);
        names(self.room.listed(&access(), Ok(listed(heads).into())))
    }

    /// The same, which fails.
    fn list_fails(&self, word: Word) -> Vec<String> {
        self.room.begin_list(&access(), None);
        let failure = Failure::new(word, format!("it is {word}"));
        names(self.room.listed(&access(), Err(failure)))
    }

    fn ask(&self, by: &str, questions: &[Question]) {
        let questions = questions.iter().cloned();
        self.room.ask(&access(), &strategy(by), questions);
    }

    fn sight(&self, question: &Question) -> Sight<Answer> {
        self.room.of(&access(), &strategy("one")).answer(question)
    }

    fn begin(&self) -> Vec<Question> {
        self.room.begin_questions(&access()).questions
    }

    /// Asks the forge what is due, which says the same to everything. Returns what it was asked, and who is
    /// woken.
    fn answer(&self, said: &Said) -> (Vec<Question>, Vec<String>) {
        let questions = self.begin();
        let all = questions.iter().map(|it| (it.clone(), said.clone()));
        let woken = self.room.answered(&access(), Ok(all.collect()));
        (questions, names(woken))
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + second).unwrap()
}

fn access() -> ObjectKey {
    let (namespace, name) = ("apps", "shop");
    KeyRef { namespace, name }.into()
}

fn strategy(name: &str) -> Work {
    let namespace = "apps";
    Work::own(Kind::PromotionStrategy, KeyRef { namespace, name }.into())
}

fn names(woken: BTreeSet<Work>) -> Vec<String> {
    woken
        .into_iter()
        .map(|it| it.key.name.to_string())
        .collect()
}

/// Branches with their commits; `notes` is what the notes are at.
fn listed(heads: &[(&str, &str)]) -> Heads {
    let mut branches: BTreeMap<_, _> = heads
        .iter()
        .map(|(branch, commit)| ((*branch).to_owned(), (*commit).to_owned()))
        .collect();
    let notes = branches.remove("notes");
    let notes = notes.map_or(Sight::Absent, Sight::Known);
    Heads { branches, notes }
}

fn text(text: &str) -> Said {
    Said::Answer(Some(Answer::Text(text.into())))
}

/// That a status of the forge says this.
fn statuses(description: &str) -> Said {
    let status = ForgeStatus {
        context: "ci".to_owned(),
        state: ForgeState::Success,
        description: description.to_owned(),
    };
    Said::Answer(Some(Answer::Statuses([status].into())))
}

fn nothing() -> Vec<String> {
    Vec::new()
}

/// A commit with such a message.
fn commit(message: String) -> Answer {
    Answer::Commit(Arc::new(Commit {
        tree: "t".repeat(40),
        parents: vec!["p".repeat(40)],
        at: at(0),
        message,
    }))
}

#[test]
fn another_replica_that_leads_begins_without_anything() {
    let scene = Scene::new();
    scene.need("one", &["dev"]);
    scene.list(&[("dev", "a")]);
    let question = Question::Metadata("a".to_owned());
    scene.ask("one", std::slice::from_ref(&question));
    scene.answer(&text("{}"));
    scene.room.clear();
    assert_eq!(scene.heads("one"), Sight::Pending);
    assert_eq!(scene.sight(&question), Sight::Pending);
    assert!(!scene.room.is_needed(&access()));
    assert_eq!(scene.known(), Known::default());
}

#[test]
fn what_nobody_needs_is_known_as_such_and_since_when() {
    let scene = Scene::new();
    assert_eq!(scene.known().idle_since, Some(at(0)));
    scene.pass(10);
    scene.need("one", &["dev"]);
    assert_eq!((scene.known().idle_since, scene.wakes()), (None, 1));
    scene.ask("other", &[Question::Commit("a".to_owned())]);
    scene.pass(20);
    scene.room.forget(&strategy("one"));
    assert!(scene.room.is_needed(&access()));
    scene.wakes();
    scene.room.forget(&strategy("other"));
    assert_eq!((scene.known().idle_since, scene.wakes()), (Some(at(20)), 1));
    scene.room.forget(&strategy("other"));
    assert_eq!(scene.wakes(), 0);
}

#[test]
fn of_another_access_with_the_same_name_nothing_is_known() {
    let scene = Scene::new();
    let question = Question::Metadata("a".to_owned());
    let learn = || {
        scene.need("one", &["dev"]);
        scene.list(&[("dev", "a")]);
        scene.ask("one", std::slice::from_ref(&question));
        scene.answer(&text("{}"));
        assert!(matches!(scene.heads("one"), Sight::Known(_)));
        assert!(matches!(scene.sight(&question), Sight::Known(_)));
    };
    learn();
    assert!(!scene.see("u", 1));
    assert!(scene.see("v", 1));
    assert_eq!(scene.heads("one"), Sight::Pending);
    assert_eq!(scene.sight(&question), Sight::Pending);
    // Both are wanted at once.
    learn();
    scene.room.gone(&access());
    assert_eq!(scene.heads("one"), Sight::Pending);
    assert_eq!(scene.sight(&question), Sight::Pending);
    assert!(!scene.see("w", 1));
    learn();
}

#[test]
fn with_another_spec_the_forge_is_asked_at_once() {
    let scene = Scene::new();
    scene.need("one", &["dev"]);
    scene.list(&[("dev", "a")]);
    scene.list_fails(Word::Unauthorized);
    scene.ask("one", &[Question::Metadata("a".to_owned())]);
    scene.answer(&Said::Failed(Failure::new(Word::Unauthorized, "no")));
    let known = scene.known();
    assert!(known.list.failing.is_some() && known.questions.failing.is_some());
    // What was begun with the spec of before says nothing.
    scene.room.begin_list(&access(), None);
    scene.begin();
    assert!(scene.see("u", 2));
    let failed = || Failure::new(Word::Unauthorized, "no");
    assert_eq!(scene.room.listed(&access(), Err(failed())), BTreeSet::new());
    let answered = scene.room.answered(&access(), Err(failed()));
    assert_eq!(answered, BTreeSet::new());
    let known = scene.known();
    assert!(known.list.failing.is_none() && known.questions.failing.is_none());
    assert_eq!(known.list.wanted_at, Some(at(0)));
    assert_eq!(known.questions.next_at, Some(at(0)));
    // What the forge has said before stays right.
    assert!(matches!(scene.heads("one"), Sight::Known(_)));
}

#[test]
fn a_decision_notes_what_it_has_asked() {
    let scene = Scene::new();
    scene.need("one", &["dev"]);
    scene.list(&[("dev", "a")]);
    let questions = [
        Question::Metadata("a".to_owned()),
        Question::Commit("a".to_owned()),
    ];
    let seen = scene.room.of(&access(), &strategy("one"));
    for question in &questions {
        assert_eq!(seen.answer(question), Sight::Pending);
    }
    // Its branches stay as they were when it began.
    scene.list(&[("dev", "b")]);
    assert_eq!(
        seen.heads(),
        Sight::Known(Arc::new(listed(&[("dev", "a")])))
    );
    assert_eq!(seen.asked(), BTreeSet::from(questions));
}
