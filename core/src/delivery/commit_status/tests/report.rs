//! What a forge is told, when, and what the status says of that.

use jiff::{SignedDuration, Timestamp};
use rstest::rstest;
use serde_json::{Value, json};
use sluice_crds::commit_status::Phase;
use sluice_crds::{CommitStatus, CommitStatusStatus};

use super::super::report::{Errand, Given, Task, may_tell, refusal, report};
use super::super::{Post, Shown, is_same_name};
use super::commit_status;
use crate::delivery::act::Report;
use crate::delivery::pull_request::{Failure, Word};
use crate::time::clock::{Now, Trust};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + second).unwrap()
}

/// One CommitStatus, with what a controller does about it.
struct Scene {
    object: CommitStatus,
    errand: Errand,
    trust: Trust,
    strategy: Option<&'static str>,
    access: Result<(), String>,
}

impl Scene {
    fn new(other: &Value) -> Self {
        let mut object = commit_status(other);
        object.metadata.generation = Some(1);
        Self {
            object,
            errand: Errand::None,
            trust: Trust::Good,
            strategy: None,
            access: Ok(()),
        }
    }

    /// The forge shows it since second 0.
    fn told(other: &Value) -> Self {
        let mut scene = Self::new(other);
        scene.told_at(0);
        scene
    }

    fn respecify(&mut self, other: &Value) {
        let status = self.object.status.clone();
        let generation = self.object.metadata.generation.map(|it| it + 1);
        self.object = commit_status(other);
        self.object.status = status;
        self.object.metadata.generation = generation;
    }

    fn look(&self, second: i64) -> Report<CommitStatusStatus, Task> {
        let strategy = self.strategy.map(str::to_owned);
        let now = Now {
            at: at(second),
            trust: self.trust,
        };
        report(Given {
            object: self.object.clone().into(),
            refusal: refusal(&self.object, strategy, self.access.clone()),
            errand: self.errand.clone(),
            now,
        })
    }

    /// Looks, and writes the status.
    fn looks(&mut self, second: i64) -> Report<CommitStatusStatus, Task> {
        let report = self.look(second);
        self.object.status = Some(report.status.clone());
        self.errand = Errand::None;
        report
    }

    /// Looks, and what is to be told ends so.
    fn ends(
        &mut self,
        second: i64,
        result: Result<(), Failure>,
    ) -> Report<CommitStatusStatus, Task> {
        let task = self.task(second);
        self.errand = Errand::Over(Box::new((task.post, result)));
        self.looks(second)
    }

    fn told_at(&mut self, second: i64) -> Report<CommitStatusStatus, Task> {
        self.ends(second, Ok(()))
    }

    fn fails(&mut self, second: i64, word: Word) -> Report<CommitStatusStatus, Task> {
        self.ends(second, Err(Failure::new(word, "why")))
    }

    fn task(&mut self, second: i64) -> Task {
        let mut acts = self.looks(second).acts;
        assert_eq!(acts.len(), 1, "{acts:?}");
        acts.remove(0)
    }
}

/// The reason of `Ready`, and what else is there.
fn says(status: &CommitStatusStatus) -> (String, Vec<String>) {
    let ready = status.conditions.iter().find(|it| it.type_ == "Ready");
    let is = status.conditions.iter().filter(|it| it.status == "True");
    let reason = ready.map(|it| it.reason.clone()).unwrap_or_default();
    (reason, is.map(|it| it.type_.clone()).collect())
}

fn said(reason: &str, holds: &[&str]) -> (String, Vec<String>) {
    let holds = holds.iter().map(|it| (*it).to_owned());
    (reason.to_owned(), holds.collect())
}

#[test]
fn a_forge_is_told_once() {
    let mut scene = Scene::new(&json!({"description": "p99\n210 ms"}));
    let report = scene.looks(0);
    assert_eq!(says(&report.status), said("Posting", &["Reconciling"]));
    let [task] = report.acts.as_slice() else {
        panic!("{report:?}");
    };
    assert_eq!(task.post.shown, Shown::Success);
    assert_eq!(task.post.description, "p99 210 ms");
    assert!(!task.is_urgent);
    // While it is under way nothing is written, and nothing else is begun.
    scene.errand = under_way(task.post.clone(), false);
    let report = scene.look(1);
    assert!(!report.changed && report.acts.is_empty());
    scene.errand = Errand::None;
    let report = scene.told_at(2);
    assert_eq!(says(&report.status), said("Posted", &["Ready"]));
    let posted = report.status.posted.clone().unwrap();
    assert_eq!((posted.phase, posted.at.0), (Phase::Success, at(2)));
    assert_eq!(posted.digest.len(), 12);
    // Nor ever again, also by a process that knows nothing but the status.
    let report = scene.look(1_000_000);
    assert!(!report.changed && report.acts.is_empty() && report.wake.is_none());
}

#[rstest]
#[case::phase(json!({"phase": "failure"}), true)]
#[case::shown_alike(json!({"phase": "success"}), false)]
#[case::name(json!({"name": "other"}), true)]
#[case::sha(json!({"sha": "b".repeat(40)}), true)]
#[case::description(json!({"description": "more"}), true)]
#[case::url(json!({"url": "https://ci.example.com/8"}), true)]
#[case::repository(json!({"repoRef": {"name": "other"}}), true)]
#[case::end_to_come(json!({"expiresAt": "2030-01-01T00:00:00Z"}), false)]
fn what_differs_is_told_again(#[case] other: Value, #[case] expected: bool) {
    let mut scene = Scene::told(&json!({}));
    scene.respecify(&other);
    let report = scene.look(10);
    assert_eq!(!report.acts.is_empty(), expected);
    if expected {
        // The status follows when it is told.
        assert!(!report.changed);
        let report = scene.told_at(11);
        assert_eq!(report.status.observed_generation, Some(2));
    } else {
        assert_eq!(report.status.observed_generation, Some(2));
    }
}

#[rstest]
#[case("pending", Shown::Pending)]
#[case("queued", Shown::Pending)]
#[case("in_progress", Shown::Pending)]
#[case("success", Shown::Success)]
#[case("failure", Shown::Failure)]
#[case("cancelled", Shown::Failure)]
fn each_phase_is_shown(#[case] phase: &str, #[case] expected: Shown) {
    let object = commit_status(&json!({"phase": phase}));
    assert_eq!(Post::at(&object, at(0)).shown, expected);
}

fn under_way(post: Post, is_sent: bool) -> Errand {
    let post = Box::new(post);
    Errand::UnderWay { post, is_sent }
}

/// What is told by the way may wait for others for long.
#[test]
fn what_takes_a_success_back_does_not_wait_for_what_has_told_nothing() {
    let mut scene = Scene::told(&json!({}));
    scene.respecify(&json!({"description": "again"}));
    let waits = scene.task(1).post;
    scene.respecify(&json!({"phase": "failure"}));
    scene.errand = under_way(waits.clone(), true);
    assert!(scene.look(2).acts.is_empty());
    scene.errand = under_way(waits, false);
    let [task] = scene.look(2).acts.try_into().unwrap();
    assert!(task.is_urgent);
    // Nor does it begin twice.
    scene.errand = under_way(task.post, false);
    assert!(scene.look(2).acts.is_empty());
    // Anything else waits.
    let mut scene = Scene::told(&json!({}));
    scene.respecify(&json!({"description": "again"}));
    let waits = scene.task(1).post;
    scene.respecify(&json!({"description": "and again"}));
    scene.errand = under_way(waits, false);
    assert!(scene.look(2).acts.is_empty());
}

#[test]
fn a_long_description_is_cut() {
    let object = commit_status(&json!({"description": "é".repeat(500)}));
    let post = Post::at(&object, at(0));
    assert_eq!(post.description.chars().count(), 140);
    assert!(post.description.ends_with('…'));
}

#[test]
fn what_has_expired_is_pending() {
    let mut scene = Scene::told(&json!({"expiresAt": at(100).to_string()}));
    let report = scene.look(99);
    assert!(report.acts.is_empty());
    assert_eq!(report.wake, Some(at(100)));
    let task = scene.task(100);
    assert_eq!(task.post.shown, Shown::Pending);
    assert!(task.is_urgent);
    let report = scene.told_at(101);
    assert_eq!(
        report.status.posted.map(|it| it.phase),
        Some(Phase::Pending)
    );
    assert_eq!(report.wake, None);
}

#[test]
fn nothing_expires_while_the_clock_is_doubted() {
    let mut scene = Scene::told(&json!({"expiresAt": at(100).to_string()}));
    scene.trust = Trust::Lost(SignedDuration::from_hours(1));
    assert!(scene.look(100).acts.is_empty());
    scene.trust = Trust::Good;
    scene.told_at(100);
    // Nor does it come back.
    scene.trust = Trust::Lost(SignedDuration::from_hours(-1));
    assert!(scene.look(0).acts.is_empty());
}

#[test]
fn a_failure_is_tried_again_later_and_later() {
    let mut scene = Scene::new(&json!({}));
    let report = scene.fails(0, Word::Unanswered);
    assert_eq!(says(&report.status), said("Unanswered", &["Reconciling"]));
    assert_eq!(report.wake, Some(at(10)));
    let before = scene.look(9);
    assert!(!before.changed && before.acts.is_empty());
    let report = scene.fails(10, Word::NoCommit);
    assert_eq!(says(&report.status), said("NoCommit", &["Stalled"]));
    assert_eq!(report.status.attempts, Some(2));
    assert_eq!(report.wake, Some(at(30)));
    for second in [30, 1_000, 2_000, 3_000, 4_000, 5_000, 6_000] {
        scene.fails(second, Word::NoCommit);
    }
    let next = scene.look(6_000).wake;
    assert_eq!(next, Some(at(6_900)));
    let report = scene.told_at(6_900);
    assert_eq!(says(&report.status), said("Posted", &["Ready"]));
    assert_eq!(
        (report.status.attempts, report.status.next_attempt_at),
        (None, None)
    );
}

#[test]
fn another_spec_is_told_at_once() {
    let mut scene = Scene::new(&json!({}));
    scene.fails(0, Word::NoCommit);
    scene.respecify(&json!({"sha": "b".repeat(40)}));
    let report = scene.looks(1);
    assert_eq!(says(&report.status), said("Posting", &["Reconciling"]));
    assert_eq!((report.status.attempts, report.acts.len()), (None, 1));
    // The failure of what was to be told before counts for nothing.
    let old = Scene::new(&json!({})).task(0).post;
    scene.errand = Errand::Over(Box::new((old, Err(Failure::new(Word::Changed, "why")))));
    let report = scene.look(2);
    assert_eq!((report.status.attempts, report.acts.len()), (None, 1));
}

#[test]
fn a_forge_that_wants_to_be_left_alone_is_left_alone_but_for_what_is_taken_back() {
    let limited = |second| Failure {
        not_before: Some(at(second)),
        ..Failure::new(Word::RateLimited, "later")
    };
    let mut scene = Scene::told(&json!({}));
    scene.respecify(&json!({"description": "more"}));
    let report = scene.ends(10, Err(limited(3_600)));
    assert_eq!(report.wake, Some(at(3_600)));
    scene.respecify(&json!({"description": "still more"}));
    let report = scene.looks(20);
    assert!(report.acts.is_empty());
    assert_eq!(report.wake, Some(at(3_600)));
    assert_eq!(report.status.observed_generation, Some(3));
    scene.respecify(&json!({"phase": "failure"}));
    let task = scene.task(30);
    assert!(task.is_urgent);
    // That, too, is tried again in its time.
    scene.ends(30, Err(limited(3_600)));
    assert!(scene.look(31).acts.is_empty());
}

#[test]
fn what_expires_while_another_try_waits_is_taken_back_at_once() {
    let end = at(200).to_string();
    let mut scene = Scene::told(&json!({}));
    scene.respecify(&json!({"description": "more", "expiresAt": end}));
    for second in [10, 20, 40, 80] {
        scene.fails(second, Word::Unanswered);
    }
    let report = scene.fails(160, Word::Unanswered);
    assert_eq!(report.wake, Some(at(200)));
    assert!(scene.task(200).is_urgent);
    scene.fails(200, Word::Unanswered);
    assert!(scene.look(201).acts.is_empty());
}

#[rstest]
#[case::it_may_have_been_heard(Word::Unanswered, true)]
#[case::it_was_refused(Word::NoRight, false)]
fn what_returns_is_told_again_if_the_forge_may_show_something_else(
    #[case] word: Word,
    #[case] expected: bool,
) {
    let mut scene = Scene::told(&json!({}));
    scene.respecify(&json!({"phase": "failure"}));
    scene.fails(10, word);
    // It is still known that a success has to be taken back.
    assert!(scene.task(20).is_urgent);
    scene.respecify(&json!({}));
    let report = scene.looks(21);
    assert_eq!(!report.acts.is_empty(), expected);
    if !expected {
        assert_eq!(says(&report.status), said("Posted", &["Ready"]));
    }
}

#[test]
fn an_end_to_come_is_no_reason_to_try_again() {
    let end = at(1_000).to_string();
    let mut scene = Scene::told(&json!({}));
    scene.respecify(&json!({"phase": "pending", "expiresAt": end}));
    scene.fails(10, Word::Unanswered);
    let report = scene.look(11);
    assert!(report.acts.is_empty());
    assert_eq!(report.wake, Some(at(20)));
}

#[test]
fn a_name_of_somebody_else_is_refused() {
    let reserved = said("ReservedName", &["Stalled"]);
    for name in ["sluice/promotion", "Sluice/x", "sluice/"] {
        let report = Scene::new(&json!({"name": name})).look(0);
        assert_eq!(says(&report.status), reserved, "{name}");
        assert!(report.acts.is_empty());
    }
    let mut scene = Scene::told(&json!({}));
    scene.strategy = Some("the PromotionStrategy shop");
    let report = scene.looks(1);
    assert_eq!(says(&report.status), reserved);
    let message = &report.status.conditions[0].message;
    assert!(message.contains("`load-test` is the statusName of the PromotionStrategy shop"));
    // What was told stays told.
    scene.strategy = None;
    let report = scene.looks(2);
    assert_eq!(says(&report.status), said("Posted", &["Ready"]));
    assert!(report.acts.is_empty());
    assert!(is_same_name("Load-Test ", "load-test") && !is_same_name("a", "ab"));
}

/// Otherwise anyone who reserves a name afterwards would keep on show what is not true any more.
#[test]
fn a_success_is_taken_back_also_under_a_name_that_was_reserved_since() {
    let reserved = said("ReservedName", &["Stalled"]);
    let told = || {
        let mut scene = Scene::told(&json!({}));
        scene.strategy = Some("the PromotionStrategy shop");
        scene
    };
    let mut scene = told();
    scene.respecify(&json!({"phase": "failure", "description": "p99 910 ms"}));
    let report = scene.looks(1);
    let task = report.acts.into_iter().next().unwrap();
    assert!(task.is_urgent);
    assert_eq!(says(&report.status), reserved);
    assert!(may_tell(
        scene.object.status.as_ref(),
        &task.post,
        Some(&("ReservedName", String::new()))
    ));
    assert!(!may_tell(
        scene.object.status.as_ref(),
        &task.post,
        Some(&("InvalidSpec", String::new()))
    ));
    // What fails is tried again.
    let report = scene.fails(2, Word::Unanswered);
    assert_eq!(
        (says(&report.status), report.wake),
        (reserved.clone(), Some(at(12)))
    );
    let report = scene.ends(12, Ok(()));
    assert!(report.acts.is_empty());
    // It says nothing more by that name.
    for phase in ["success", "pending"] {
        scene.respecify(&json!({"phase": phase}));
        assert!(scene.looks(20).acts.is_empty(), "{phase}");
    }
    // And nothing where it has not told that success.
    for other in [
        json!({"phase": "failure", "name": "other"}),
        json!({"phase": "failure", "sha": "0".repeat(40)}),
        json!({"phase": "failure", "repoRef": {"name": "other"}}),
        json!({"phase": "success", "description": "again"}),
    ] {
        let mut scene = told();
        scene.respecify(&other);
        assert!(scene.looks(1).acts.is_empty(), "{other}");
    }
}

/// An earlier version has not written where it was told: that follows from the words, if they are the same.
#[test]
fn what_an_earlier_version_has_told_is_taken_back_where_that_is_known() {
    for (other, is_taken_back) in [
        (json!({"phase": "failure"}), true),
        (json!({"phase": "failure", "name": "other"}), false),
    ] {
        let mut scene = Scene::told(&json!({}));
        let status = scene.object.status.as_mut().unwrap();
        status.posted.as_mut().unwrap().place = None;
        scene.strategy = Some("the PromotionStrategy shop");
        scene.respecify(&other);
        let taken_back = scene.looks(1).acts.len() == 1;
        assert_eq!(taken_back, is_taken_back, "{other}");
    }
}

#[test]
fn an_access_that_may_not_be_used_is_told() {
    let mut scene = Scene::new(&json!({}));
    scene.access = Err("the access is not there".to_owned());
    let report = scene.looks(0);
    assert_eq!(says(&report.status), said("AccessNotUsable", &["Stalled"]));
    assert!(report.acts.is_empty() && report.wake.is_none());
    scene.access = Ok(());
    assert_eq!(says(&scene.told_at(1).status), said("Posted", &["Ready"]));
    // A mistake in the spec is told first.
    let mut scene = Scene::new(&json!({"sha": "7f3a"}));
    scene.access = Err("the access is not there".to_owned());
    assert_eq!(
        says(&scene.look(0).status),
        said("InvalidSpec", &["Stalled"])
    );
}

#[test]
fn what_was_told_while_the_spec_changed_is_recorded() {
    let mut scene = Scene::new(&json!({}));
    let first = scene.task(0).post;
    scene.respecify(&json!({"phase": "failure"}));
    scene.errand = Errand::Over(Box::new((first, Ok(()))));
    let report = scene.looks(1);
    assert_eq!(
        report.status.posted.map(|it| it.phase),
        Some(Phase::Success)
    );
    let [task] = report.acts.as_slice() else {
        panic!("{:?}", report.acts);
    };
    assert!(task.is_urgent && task.post.shown == Shown::Failure);
}
