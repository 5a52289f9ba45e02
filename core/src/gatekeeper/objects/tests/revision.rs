//! The revision that objects are at.

use super::*;
use crate::verdict::question::Question;

/// A digest of one character.
fn commit(digit: &str) -> String {
    format!("env/test@sha1:{}", digit.repeat(40))
}

fn asked(digit: &str) -> Revision {
    Revision::parse(&commit(digit)).unwrap()
}

/// An object that is ready at a commit.
fn at_commit(name: &str, digit: &str) -> Value {
    let mut object = ready(name);
    object["status"]["lastAppliedRevision"] = commit(digit).into();
    object
}

fn placed(soak: i64) -> Rule {
    let expression = "object.status.lastAppliedRevision";
    rule(
        &json!({ "selector": {}, "revisionExpression": expression }),
        soak,
    )
}

/// What a rule says of a revision at a second, and why.
fn says(
    rule: &Rule,
    events: &[(i64, &str, Option<Value>)],
    revision: Option<&Revision>,
    second: i64,
) -> (State, Reason, String) {
    let observed = seen(rule, &course(rule, events));
    let question = Question::new(now(second), revision);
    let opinion = opinion(rule, Some(&observed), Setting::Closed, question);
    let words = explain(rule, Some(&observed), &opinion);
    (opinion.state, opinion.reason, words)
}

#[test]
fn the_revision_that_all_are_at_is_admitted_and_no_other() {
    let events = [
        (0, "web", Some(at_commit("web", "a"))),
        (0, "api", Some(at_commit("api", "a"))),
    ];
    let rule = placed(0);
    let says = |revision| says(&rule, &events, revision, 1);
    let words = "2 of 2 objects are as they should be, at env/test@aaaaaaaaaaaa".to_owned();
    let (here, elsewhere) = (asked("a"), asked("b"));
    assert_eq!(
        says(Some(&here)),
        (State::Open, Reason::ObjectsReady, words.clone())
    );
    assert_eq!(
        says(Some(&elsewhere)),
        (State::Closed, Reason::OtherRevision, words.clone())
    );
    assert_eq!(
        says(None),
        (State::Conditional, Reason::DependsOnRevision, words)
    );
}

#[test]
fn objects_at_different_revisions_admit_none() {
    let events = [
        (0, "web", Some(at_commit("web", "a"))),
        (0, "api", Some(at_commit("api", "b"))),
    ];
    let words = "Deployment apps/web: it is at env/test@aaaaaaaaaaaa, and Deployment apps/api at \
                 env/test@bbbbbbbbbbbb";
    for revision in [None, Some(asked("a")), Some(asked("b"))] {
        assert_eq!(
            says(&placed(0), &events, revision.as_ref(), 1),
            (State::Closed, Reason::ObjectsNotReady, words.to_owned())
        );
    }
}

/// So does that of a part whose objects are all elsewhere than those of another.
#[test]
fn parts_at_different_revisions_admit_none() {
    let rule = placed(0);
    let part = &rule.parts()[0];
    let course = |name: &str, digit| {
        let events = [(0, name, Some(at_commit(name, digit)))];
        course(&rule, &events)
    };
    let (web, api) = (course("web", "a"), course("api", "b"));
    let sighting = Sighting::of(&[(part, &web), (part, &api)], at(10_000));
    assert!(matches!(
        sighting.first_unsatisfied,
        Some(Unsatisfied::Object { .. })
    ));
    assert_eq!((sighting.satisfied_since, sighting.revision), (None, None));
}

#[test]
fn the_soak_begins_again_with_another_revision() {
    let events = [
        (0, "web", Some(at_commit("web", "a"))),
        (0, "api", Some(at_commit("api", "a"))),
        (90, "web", Some(at_commit("web", "b"))),
        (100, "api", Some(at_commit("api", "b"))),
    ];
    let rule = placed(60);
    let reason = |second| says(&rule, &events, Some(&asked("b")), second).1;
    assert_eq!(reason(159), Reason::Soaking);
    assert_eq!(reason(160), Reason::ObjectsReady);
}

/// The one that was elsewhere is gone: from then on all are at one revision.
#[test]
fn the_soak_begins_when_the_last_that_was_elsewhere_is_gone() {
    let events = [
        (0, "api", Some(at_commit("api", "a"))),
        (0, "web", Some(at_commit("web", "b"))),
        (100, "web", None),
    ];
    let rule = placed(60);
    let reason = |second| says(&rule, &events, Some(&asked("a")), second).1;
    assert_eq!(reason(159), Reason::Soaking);
    assert_eq!(reason(160), Reason::ObjectsReady);
}

#[rstest]
#[case::no_key(
    ready("web"),
    "its revision cannot be read: there is no key `lastAppliedRevision`"
)]
#[case::empty(at_revision(""), "its revision is none: it is empty")]
#[case::digest(
    at_revision("main@sha1:12"),
    "its revision is none: `sha1:12` is not a digest of a known length"
)]
fn an_object_without_a_revision_is_not_as_it_should_be(#[case] object: Value, #[case] why: &str) {
    let events = [(0, "web", Some(object))];
    let (state, reason, words) = says(&placed(0), &events, Some(&asked("a")), 1);
    assert_eq!((state, reason), (State::Closed, Reason::ObjectsNotReady));
    assert!(words.contains(why), "{words}");
}

fn at_revision(text: &str) -> Value {
    let mut object = ready("web");
    object["status"]["lastAppliedRevision"] = text.into();
    object
}

/// After a restart the count goes on only if the objects are at the revision that they were at.
#[test]
fn the_digest_is_of_the_revision_too() {
    let rule = placed(0);
    let digest = |digit| {
        let events = [(0, "web", Some(at_commit("web", digit)))];
        let observed = seen(&rule, &course(&rule, &events));
        sighting(&observed).digest.clone()
    };
    assert_eq!(digest("a"), digest("a"));
    assert!(digest("a").is_some());
    assert_ne!(digest("a"), digest("b"));
}
