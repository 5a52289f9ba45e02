//! What is asked of a forge, when, and what the status says of that.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use rstest::rstest;
use serde_json::json;
use sluice_crds::{GitRepositoryAccess, GitRepositoryAccessStatus};

use super::interval;
use super::report::{Act, Asking, Failing, Given, Known, Listing, report};
use crate::delivery::act::Report;
use crate::delivery::pull_request::{Failure, Word};
use crate::verdict::status::REQUESTED_AT;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + second).unwrap()
}

fn object() -> GitRepositoryAccess {
    serde_json::from_value(json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "GitRepositoryAccess",
        "metadata": {"namespace": "apps", "name": "shop", "uid": "u", "generation": 1},
        "spec": {
            "provider": "gitea", "url": "https://git.example.com/acme/shop",
            "secretRef": {"name": "token"}, "interval": "1m",
        },
    }))
    .unwrap()
}

struct Scene {
    object: GitRepositoryAccess,
    known: Known,
}

impl Scene {
    /// Somebody needs it.
    fn new() -> Self {
        let list = Listing {
            is_needed: true,
            ..Listing::default()
        };
        Self {
            object: object(),
            known: Known {
                list,
                ..Known::default()
            },
        }
    }

    fn idle_since(second: i64) -> Self {
        let mut scene = Self::new();
        scene.known.list.is_needed = false;
        scene.known.idle_since = Some(at(second));
        scene
    }

    /// Listed at this second.
    fn listed(second: i64) -> Self {
        let mut scene = Self::new();
        let list = &mut scene.known.list;
        (list.begun_at, list.listed_at) = (Some(at(second)), Some(at(second)));
        scene
    }

    fn failing(word: Word, times: u32, second: i64) -> Self {
        let mut scene = Self::new();
        scene.fail(word, times, second);
        scene
    }

    fn fail(&mut self, word: Word, times: u32, second: i64) {
        let list = &mut self.known.list;
        list.begun_at = Some(at(second));
        list.failing = Some(Failing {
            times,
            at: at(second),
            failure: Failure::new(word, "it does not"),
        });
    }

    fn request(&mut self, value: &str) {
        let annotations = self.object.metadata.annotations.get_or_insert_default();
        annotations.insert(REQUESTED_AT.to_owned(), value.to_owned());
    }

    fn look(&mut self, second: i64) -> Report<GitRepositoryAccessStatus, Act> {
        let report = report(Given {
            object: Arc::new(self.object.clone()),
            interval: interval(&self.object),
            known: self.known.clone(),
            now: at(second),
        });
        self.object.status = Some(report.status.clone());
        report
    }

    /// The seconds from now until a list is due. None: it is not before something changes.
    fn list_in(&mut self, second: i64) -> Option<i64> {
        let report = self.look(second);
        if report
            .acts
            .iter()
            .any(|act| matches!(act, Act::List { .. }))
        {
            return Some(0);
        }
        Some(report.wake?.duration_since(at(second)).as_secs())
    }

    /// The conditions, each as `Type=Status Reason`.
    fn says(&self) -> Vec<String> {
        let status = self.object.status.as_ref().unwrap();
        let said = status.conditions.iter();
        said.map(|it| format!("{}={} {}", it.type_, it.status, it.reason))
            .collect()
    }
}

#[test]
fn branches_are_listed_once_an_interval_while_somebody_needs_them() {
    let mut scene = Scene::new();
    assert_eq!(scene.list_in(0), Some(0));
    assert_eq!(
        scene.says(),
        ["Ready=False Listing", "Reconciling=True Listing"]
    );
    scene.known.list.is_under_way = true;
    assert_eq!(scene.list_in(1), None);
    let mut scene = Scene::listed(0);
    assert_eq!(scene.list_in(1), Some(59));
    assert_eq!(scene.says(), ["Ready=True Listed"]);
    assert_eq!(scene.list_in(60), Some(0));
    scene.object.spec.interval = "10m".into();
    assert_eq!(scene.list_in(60), Some(540));
    // The clock was set back.
    assert_eq!(scene.list_in(-100), Some(0));
}

#[test]
fn a_list_that_says_nothing_new_writes_nothing() {
    let mut scene = Scene::listed(0);
    assert!(scene.look(1).changed);
    for second in [2, 61, 3_600] {
        scene.known.list.listed_at = Some(at(second));
        assert!(!scene.look(second).changed);
    }
}

#[test]
fn a_fresh_list_is_made_at_once_but_not_twice_in_a_second() {
    let mut scene = Scene::listed(0);
    scene.known.list.wanted_at = Some(at(0));
    assert_eq!(scene.list_in(0), Some(1));
    assert_eq!(scene.list_in(1), Some(0));
    // Nobody needs it.
    scene.known.list.is_needed = false;
    scene.known.idle_since = Some(at(0));
    assert_eq!(scene.list_in(1), Some(59));
    assert!(scene.look(120).acts.is_empty());
}

#[test]
fn the_first_list_waits_for_others_who_need_the_repository() {
    let mut scene = Scene::new();
    scene.known.list.unlisted_at = Some(at(0));
    assert_eq!(scene.list_in(0), Some(1));
    assert_eq!(scene.list_in(1), Some(0));
    let mut scene = Scene::listed(0);
    scene.known.list.unlisted_at = Some(at(10));
    assert_eq!(scene.list_in(10), Some(1));
    assert_eq!(scene.list_in(11), Some(0));
}

#[rstest]
#[case::first(1, 10)]
#[case::second(2, 20)]
#[case::fifth(5, 160)]
#[case::sixth(6, 300)]
#[case::many(1_000, 300)]
fn each_failure_is_waited_for_longer(#[case] times: u32, #[case] wait: i64) {
    let mut scene = Scene::failing(Word::Unanswered, times, 0);
    assert_eq!(scene.list_in(0), Some(wait));
    assert_eq!(scene.list_in(wait), Some(0));
    // A branch that is needed since then does not change that.
    scene.known.list.unlisted_at = Some(at(1));
    assert_eq!(scene.list_in(2), Some(wait - 2));
    // Nor does somebody who says that something has changed.
    scene.known.list.wanted_at = Some(at(2));
    assert_eq!(scene.list_in(2), Some(wait - 2));
    assert_eq!(scene.list_in(wait), Some(0));
}

#[test]
fn nothing_is_asked_before_the_forge_wants_to_be_asked() {
    let mut scene = Scene::failing(Word::RateLimited, 1, 0);
    let list = &mut scene.known.list;
    list.failing.as_mut().unwrap().failure.not_before = Some(at(900));
    list.wanted_at = Some(at(1));
    scene.request("now");
    assert_eq!(scene.list_in(2), Some(898));
    assert_eq!(scene.list_in(900), Some(0));
}

#[rstest]
#[case::passing(Word::Unanswered, "Reconciling=True Unanswered")]
#[case::lasting(Word::Unauthorized, "Stalled=True Unauthorized")]
#[case::secret(Word::SecretNotUsable, "Stalled=True SecretNotUsable")]
fn a_failure_is_said_until_it_is_over(#[case] word: Word, #[case] more: &str) {
    let mut scene = Scene::failing(word, 1, 0);
    assert!(scene.look(1).changed);
    assert_eq!(scene.says(), [&*format!("Ready=False {word}"), more]);
    scene.fail(word, 2, 10);
    assert!(!scene.look(11).changed);
    let mut scene = Scene {
        object: scene.object,
        ..Scene::listed(20)
    };
    scene.look(21);
    assert_eq!(scene.says(), ["Ready=True Listed"]);
}

#[test]
fn how_long_to_wait_is_written_once() {
    let mut scene = Scene::failing(Word::RateLimited, 1, 0);
    scene.look(1);
    scene.fail(Word::RateLimited, 2, 10);
    let failing = scene.known.list.failing.as_mut().unwrap();
    failing.failure.message = "it asks to wait for 7s".to_owned();
    assert!(!scene.look(11).changed);
}

#[test]
fn without_anybody_who_needs_it_nothing_is_asked() {
    let mut scene = Scene::idle_since(0);
    let report = scene.look(0);
    assert!(report.changed && report.acts.is_empty());
    assert_eq!(report.wake, None);
    assert_eq!(scene.says(), ["Ready=True NotNeeded"]);
}

/// Who needs it is not known yet when a process has just begun to lead.
#[test]
fn what_a_status_says_stands_for_a_minute_after_nobody_needs_it() {
    let mut scene = Scene::listed(0);
    scene.look(0);
    scene.known = Scene::idle_since(100).known;
    // The look may have begun a moment before.
    assert!(!scene.look(99).changed);
    let report = scene.look(100);
    assert!(!report.changed);
    assert_eq!(report.wake, Some(at(160)));
    assert_eq!(scene.says(), ["Ready=True Listed"]);
    assert!(scene.look(160).changed);
    assert_eq!(scene.says(), ["Ready=True NotNeeded"]);
    // It is needed again: that it can be read is said once it was.
    scene.known = Scene::new().known;
    assert!(!scene.look(161).changed);
}

#[test]
fn a_request_is_answered_by_a_fresh_list_also_where_nobody_needs_it() {
    for mut scene in [Scene::listed(0), Scene::idle_since(0)] {
        scene.look(5);
        scene.request("one");
        let list = Act::List {
            request: Some("one".to_owned()),
        };
        let report = scene.look(10);
        assert_eq!(report.acts, [list]);
        assert_eq!(report.status.last_handled_reconcile_at, None);
        // It fails, and is tried again like any other.
        scene.known.list.requested = Some("one".to_owned());
        scene.fail(Word::Unanswered, 1, 10);
        assert_eq!(scene.list_in(11), Some(9));
        assert_eq!(scene.says()[0], "Ready=False Unanswered");
        // It is there.
        let list = &mut scene.known.list;
        (list.failing, list.listed_at) = (None, Some(at(20)));
        list.handled = Some("one".to_owned());
        let report = scene.look(21);
        let handled = report.status.last_handled_reconcile_at;
        assert_eq!(handled.as_deref(), Some("one"));
        assert!(report.acts.is_empty() && !scene.look(21).changed);
        assert!(scene.says()[0].starts_with("Ready=True"));
    }
}

#[test]
fn questions_are_asked_when_it_is_their_time() {
    let mut scene = Scene::listed(0);
    scene.known.questions = Asking {
        next_at: Some(at(5)),
        stale_at: Some(at(30)),
        ..Asking::default()
    };
    assert_eq!(scene.look(0).wake, Some(at(5)));
    assert_eq!(scene.look(5).acts, [Act::Answer]);
    scene.known.questions.is_under_way = true;
    let report = scene.look(5);
    assert_eq!((report.acts, report.wake), (Vec::new(), Some(at(30))));
    let failure = Failure::new(Word::NoRight, "it cannot read the statuses of a commit");
    scene.known.questions.failing = Some(failure);
    scene.look(6);
    assert_eq!(
        scene.says(),
        ["Ready=False NoRight", "Stalled=True NoRight"]
    );
}

#[test]
fn a_spec_that_is_wrong_is_said_and_nothing_asked() {
    let mut scene = Scene::new();
    scene.object.spec.interval = "1s".into();
    scene.request("now");
    let report = scene.look(0);
    assert!(report.acts.is_empty());
    assert_eq!(
        scene.says(),
        ["Ready=False InvalidSpec", "Stalled=True InvalidSpec"]
    );
    let status = report.status;
    assert_eq!(
        status.conditions[0].message,
        "spec.interval: it is no duration between 10s and 1h; write one, such as 1m"
    );
    assert_eq!(interval(&object()), Ok(SignedDuration::from_mins(1)));
}
