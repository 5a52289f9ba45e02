//! Objects, judged. Their specs and their course over time have files of their own.

use rstest::rstest;
use serde_json::{Value, json};
use sluice_crds::gatekeeper::Objects;

use super::*;
use crate::text::refusal::Refusals;

mod revision;
mod spec;
mod time;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn now(second: i64) -> Now {
    Now::given(at(second))
}

/// A spec with one part, of which `more` says the rest.
fn spec(more: &Value) -> Objects {
    let mut part = json!({ "apiVersion": "apps/v1", "kind": "Deployment" });
    for (key, value) in more.as_object().unwrap() {
        part[key] = value.clone();
    }
    serde_json::from_value(json!({ "serviceAccountName": "reader", "of": [part] })).unwrap()
}

fn read(spec: &Objects) -> Result<Rule, Refusals> {
    Rule::read(spec, "spec.objects")
}

/// A rule over all Deployments, with a soak in seconds.
fn rule(more: &Value, soak: i64) -> Rule {
    let mut spec = spec(more);
    spec.soak = (soak > 0).then(|| format!("{soak}s").as_str().into());
    read(&spec).unwrap()
}

fn all() -> Value {
    json!({ "selector": {} })
}

/// An object with this condition.
fn object(name: &str, condition: &Value) -> Value {
    json!({
        "metadata": { "name": name, "uid": format!("uid-{name}"), "generation": 4 },
        "status": { "conditions": [condition] },
    })
}

fn ready(name: &str) -> Value {
    object(
        name,
        &json!({ "type": "Ready", "status": "True", "lastTransitionTime": "then" }),
    )
}

fn unready(name: &str) -> Value {
    object(
        name,
        &json!({ "type": "Ready", "status": "False", "reason": "Failed" }),
    )
}

/// The rule's only part, followed through events: at a second, an object or the name of one that
/// is gone.
fn course(rule: &Rule, events: &[(i64, &str, Option<Value>)]) -> Course {
    let mut course = Course::begin(Some("apps"));
    for (second, name, object) in events {
        course.follow(&rule.parts()[0], name, object.clone(), at(*second));
    }
    course
}

fn seen(rule: &Rule, course: &Course) -> Observed {
    let parts = [(&rule.parts()[0], course)];
    Observed::Seen(Sighting::of(&parts, at(10_000)))
}

fn sighting(observed: &Observed) -> &Sighting {
    match observed {
        Observed::Seen(sighting) => sighting,
        Observed::Unavailable(why) => panic!("{why}"),
    }
}

/// What a rule says of objects that it sees at second 0, and why.
fn said(rule: &Rule, objects: &[Value], second: i64) -> (Reason, String) {
    let events: Vec<_> = objects
        .iter()
        .map(|object| {
            (
                0,
                object["metadata"]["name"].as_str().unwrap(),
                Some(object.clone()),
            )
        })
        .collect();
    let observed = seen(rule, &course(rule, &events));
    let opinion = opinion(rule, Some(&observed), Setting::Closed, now(second).into());
    let open = opinion.reason == Reason::ObjectsReady;
    assert_eq!(opinion.state == State::Open, open);
    (opinion.reason, explain(rule, Some(&observed), &opinion))
}

#[rstest]
#[case::ready(json!({ "type": "Ready", "status": "True" }), None)]
#[case::at_its_generation(json!({ "type": "Ready", "status": "True", "observedGeneration": 4 }), None)]
#[case::false_(json!({ "type": "Ready", "status": "False", "reason": "Failed" }), Some("its condition Ready is False (Failed), not True"))]
#[case::unknown(json!({ "type": "Ready", "status": "Unknown" }), Some("its condition Ready is Unknown, not True"))]
#[case::no_status(json!({ "type": "Ready" }), Some("its condition Ready is nothing, not True"))]
#[case::another(json!({ "type": "Available", "status": "True" }), Some("it has no condition Ready; it has Available"))]
#[case::old(
    json!({ "type": "Ready", "status": "True", "observedGeneration": 3 }),
    Some("its condition Ready is about generation 3, and it is at 4")
)]
#[case::hostile_reason(
    json!({ "type": "Ready", "status": "False", "reason": "a\u{1b}[31m\nb" }),
    Some("its condition Ready is False (a [31m b), not True")
)]
fn a_condition_is_judged(#[case] condition: Value, #[case] why: Option<&str>) {
    let rule = rule(&all(), 0);
    let judged = rule.parts()[0].judge(object("web", &condition));
    assert_eq!(judged.why.as_deref(), why);
}

#[rstest]
#[case::being_deleted(
    json!({ "metadata": { "deletionTimestamp": "2026-11-21T00:00:00Z" }, "status": { "conditions": [{ "type": "Ready", "status": "True" }] } }),
    Some("it is being deleted")
)]
#[case::of_the_status(
    json!({ "metadata": { "generation": 4 }, "status": { "observedGeneration": 3, "conditions": [{ "type": "Ready", "status": "True" }] } }),
    Some("its condition Ready is about generation 3, and it is at 4")
)]
#[case::of_the_condition_first(
    json!({ "metadata": { "generation": 4 }, "status": { "observedGeneration": 3, "conditions": [{ "type": "Ready", "status": "True", "observedGeneration": 4 }] } }),
    None
)]
#[case::without_generations(json!({ "status": { "conditions": [{ "type": "Ready", "status": "True" }] } }), None)]
#[case::without_conditions(
    json!({ "status": { "phase": "Running" } }),
    Some("it has no condition Ready; if objects of its kind have no conditions, write an `expression`")
)]
#[case::without_status(
    json!({ "data": {} }),
    Some("it has no condition Ready; if objects of its kind have no conditions, write an `expression`")
)]
#[case::nonsense(
    json!({ "metadata": 4, "status": { "conditions": "Ready" } }),
    Some("it has no condition Ready; if objects of its kind have no conditions, write an `expression`")
)]
fn an_object_is_judged(#[case] object: Value, #[case] why: Option<&str>) {
    let rule = rule(&all(), 0);
    assert_eq!(rule.parts()[0].judge(object).why.as_deref(), why);
}

#[rstest]
#[case::true_("object.status.replicas >= 2", None)]
#[case::false_("object.status.replicas > 2", Some("the expression is false"))]
#[case::of_the_spec("object.spec.paused == false", None)]
#[case::no_bool(
    "object.status.replicas",
    Some(
        "the expression cannot be evaluated: its value is a value of type int, not true or false"
    )
)]
#[case::no_such_key(
    "object.status.phase == 'x'",
    Some("the expression cannot be evaluated: there is no key `phase`")
)]
fn an_expression_is_judged(#[case] text: &str, #[case] why: Option<&str>) {
    let rule = rule(&json!({ "name": "web", "expression": text }), 0);
    let object = json!({
        "metadata": { "name": "web", "generation": 4 },
        "spec": { "paused": false },
        "status": { "replicas": 2, "observedGeneration": 4 },
    });
    assert_eq!(rule.parts()[0].judge(object.clone()).why.as_deref(), why);
    let mut lagging = object;
    lagging["status"]["observedGeneration"] = json!(3);
    let judged = rule.parts()[0].judge(lagging);
    let lags = "its status is about generation 3, and it is at 4";
    assert_eq!(judged.why.as_deref(), Some(lags));
}

#[rstest]
#[case::all_ready(&[ready("a"), ready("b")], 0, Reason::ObjectsReady, "2 of 2 objects are as they should be")]
#[case::one_ready(&[ready("a")], 0, Reason::ObjectsReady, "1 of 1 object is as it should be")]
#[case::some(
    &[ready("a"), unready("c"), unready("b")], 0, Reason::ObjectsNotReady,
    "Deployment apps/b: its condition Ready is False (Failed), not True"
)]
#[case::one(
    &[unready("a")], 0, Reason::ObjectsNotReady,
    "Deployment apps/a: its condition Ready is False (Failed), not True"
)]
#[case::nothing(&[], 0, Reason::NoObjects, "there is no Deployment in namespace apps")]
#[case::soaking(
    &[ready("a")], 600, Reason::Soaking,
    "1 of 1 object is as it should be since Thu 1970-01-01 00:00 UTC; it has to be for 10m, until Thu 1970-01-01 00:10 UTC"
)]
fn the_first_that_is_not_ready_is_named(
    #[case] objects: &[Value],
    #[case] soak: i64,
    #[case] reason: Reason,
    #[case] words: &str,
) {
    assert_eq!(
        said(&rule(&all(), soak), objects, 60),
        (reason, words.to_owned())
    );
}

#[test]
fn what_is_not_there_is_named() {
    let named = rule(&json!({ "name": "web" }), 0);
    let missing = (
        Reason::ObjectsNotReady,
        "there is no Deployment apps/web".to_owned(),
    );
    assert_eq!(said(&named, &[], 0), missing);
    assert_eq!(said(&named, &[ready("other")], 0), missing);
    let selector = json!({ "selector": {
        "matchLabels": { "app": "web" }, "matchExpressions": [{ "key": "canary", "operator": "DoesNotExist" }],
    } });
    let words = "there is no Deployment in namespace apps with labels app=web,!canary";
    assert_eq!(
        said(&rule(&selector, 0), &[ready("a")], 0),
        (Reason::NoObjects, words.to_owned())
    );
}

#[test]
fn evidence_that_cannot_be_had_is_decided_by_on_error() {
    let rule = rule(&all(), 0);
    let unavailable = Observed::Unavailable("may not list".to_owned());
    for (setting, state, words) in [
        (Setting::Open, State::Open, "may not list; onError is open"),
        (Setting::Closed, State::Closed, "may not list"),
    ] {
        let opinion = opinion(&rule, Some(&unavailable), setting, now(0).into());
        assert_eq!(
            (opinion.state, opinion.reason),
            (state, Reason::EvidenceUnavailable)
        );
        assert_eq!(explain(&rule, Some(&unavailable), &opinion), words);
    }
    // It covers nothing else.
    let nothing = seen(&rule, &course(&rule, &[]));
    let unready = seen(&rule, &course(&rule, &[(0, "a", Some(unready("a")))]));
    for observed in [None, Some(&nothing), Some(&unready)] {
        assert_eq!(
            opinion(&rule, observed, Setting::Open, now(0).into()).state,
            State::Closed
        );
    }
    assert_eq!(unavailable.status(), None);
}

#[test]
fn what_was_seen_runs_out() {
    let rule = rule(&all(), 0);
    let observed = seen(&rule, &course(&rule, &[(0, "a", Some(ready("a")))]));
    let at_second = |second| opinion(&rule, Some(&observed), Setting::Open, now(second).into());
    let before = at_second(9_999);
    assert_eq!(
        (before.state, before.until),
        (State::Open, Some(at(10_000)))
    );
    let after = at_second(10_000);
    assert_eq!(
        (after.state, after.reason),
        (State::Closed, Reason::Expired)
    );
}

#[test]
fn a_soak_is_not_over_by_a_clock_that_is_wrong() {
    let wrong = Now {
        at: at(500),
        trust: Trust::Lost(SignedDuration::from_secs(400)),
    };
    for (soak, reason) in [(100, Reason::ClockSkew), (0, Reason::ObjectsReady)] {
        let rule = rule(&all(), soak);
        let observed = seen(&rule, &course(&rule, &[(0, "a", Some(ready("a")))]));
        let opinion = opinion(&rule, Some(&observed), Setting::Open, wrong.into());
        assert_eq!(opinion.reason, reason);
    }
}

/// What is resumed at second 500 from the status of `before`, with `after` seen now.

#[test]
fn a_status_tells_what_was_seen() {
    let rule = rule(&all(), 0);
    let events = [(7, "a", Some(ready("a"))), (8, "b", Some(unready("b")))];
    let status = seen(&rule, &course(&rule, &events)).status().unwrap();
    assert_eq!((status.seen, status.satisfied), (2, 1));
    assert_eq!((status.satisfied_since, status.digest), (None, None));
    let status = seen(&rule, &course(&rule, &events[..1])).status().unwrap();
    assert_eq!(status.satisfied_since.unwrap().0, at(7));
    assert_eq!(status.digest.unwrap().len(), 32);
}
