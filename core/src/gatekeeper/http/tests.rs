//! How an http rule is read, and how answers are judged.

use jiff::SignedDuration;
use rstest::rstest;
use serde_json::Value as Json;

use super::*;
use crate::evidence::polling::Trouble;

fn spec(with: &Json) -> api::Http {
    let mut spec = json!({ "url": "https://status.example.com/ready?team=a" });
    spec.as_object_mut()
        .unwrap()
        .extend(with.as_object().unwrap().clone());
    serde_json::from_value(spec).unwrap()
}

fn rule(with: &Json) -> Rule {
    read(&spec(with), "spec.http").unwrap()
}

fn ready() -> Rule {
    rule(&json!({ "expectedStatuses": [200, 204], "expression": "status == 204 || body.ready" }))
}

fn at(minute: i64) -> Timestamp {
    // Sat 2026-11-21 12:00 UTC.
    Timestamp::from_second(1_795_262_400 + minute * 60).unwrap()
}

fn now(minute: i64) -> Now {
    Now::given(at(minute))
}

fn after(rule: &Rule, status: u16, body: &str) -> Observed {
    let answer = rule.answer(status, body.as_bytes());
    Polled::next(None, Ok(answer), rule.cadence, at(0))
}

fn unavailable() -> Trouble {
    Trouble::Unavailable("https://status.example.com: timed out after 10s".to_owned())
}

#[test]
fn what_is_left_out_has_defaults() {
    let rule = rule(&json!({}));
    assert_eq!(rule.cadence.interval, SignedDuration::from_mins(1));
    assert_eq!(rule.cadence.timeout, SignedDuration::from_secs(10));
    assert_eq!((rule.retries, &rule.statuses), (2, &vec![200]));
}

#[rstest]
#[case(json!({ "url": "status" }), "spec.http.url: it is not an http or https address; write one")]
#[case(json!({ "url": "http://s", "secretRef": { "name": "s" } }), "spec.http.secretRef: secrets are sent")]
#[case(json!({ "expectedStatuses": [] }), "spec.http.expectedStatuses: it has 0 statuses; write between")]
#[case(json!({ "expectedStatuses": [200, 99] }), "spec.http.expectedStatuses[1]: 99 is not an HTTP status; write one")]
#[case(json!({ "expectedStatuses": [600] }), "spec.http.expectedStatuses[0]: 600 is not an HTTP status")]
#[case(json!({ "expectedStatuses": [-1] }), "spec.http.expectedStatuses[0]: -1 is not an HTTP status")]
#[case(json!({ "expectedStatuses": vec![200; 17] }), "spec.http.expectedStatuses: it has 17 statuses")]
#[case(json!({ "expression": "body.ready ==" }), "spec.http.expression: at character ")]
#[case(json!({ "expression": "reply.ready" }), "spec.http.expression: there is no variable `reply`; there is `status` and `body`; write a condition in CEL")]
#[case(json!({ "retries": 6 }), "spec.http.retries: 6 is not between 0 and 5; write a number from 0")]
#[case(json!({ "retries": -1 }), "spec.http.retries: -1 is not between 0 and 5")]
#[case(json!({ "interval": "1s" }), "spec.http.interval: `1s` must be between 5s and 24h")]
fn mistakes_are_refused(#[case] with: Json, #[case] expected: &str) {
    let refusals = read(&spec(&with), "spec.http").unwrap_err().to_string();
    assert!(refusals.starts_with(expected), "{refusals}");
}

#[test]
fn all_mistakes_are_told_at_once() {
    let with = json!({ "url": "", "expectedStatuses": [], "expression": "1", "retries": 9 });
    let refusals = read(&spec(&with), "spec.http").unwrap_err();
    assert_eq!(refusals.iter().count(), 4);
}

#[rstest]
#[case(
    200,
    r#"{"ready": true, "secret": "s3cr3t"}"#,
    State::Open,
    Reason::AsExpected,
    "it answered 200, and the body satisfies spec.http.expression"
)]
#[case(
    204,
    r#"{}"#,
    State::Open,
    Reason::AsExpected,
    "it answered 204, and the body satisfies spec.http.expression"
)]
#[case(
    200,
    r#"{"ready": false}"#,
    State::Closed,
    Reason::UnexpectedBody,
    "the body does not satisfy spec.http.expression"
)]
#[case(
    503,
    r#"{"ready": true}"#,
    State::Closed,
    Reason::UnexpectedStatus,
    "it answered 503, expected 200 or 204"
)]
#[case(
    302,
    "",
    State::Closed,
    Reason::UnexpectedStatus,
    "it answered 302, expected 200 or 204; redirects are not followed"
)]
#[case(
    200,
    "<html>s3cr3t</html>",
    State::Closed,
    Reason::EvidenceBroken,
    "the body is not JSON"
)]
#[case(204, "", State::Closed, Reason::EvidenceBroken, "the body is not JSON")]
#[case(
    200,
    r#"{"state": "s3cr3t"}"#,
    State::Closed,
    Reason::EvidenceBroken,
    "spec.http.expression cannot be evaluated: there is no key `ready`"
)]
#[case(
    200,
    r#"{"ready": "s3cr3t"}"#,
    State::Closed,
    Reason::EvidenceBroken,
    "spec.http.expression cannot be evaluated: `||` does not take bool and string"
)]
fn answers_are_judged(
    #[case] status: u16,
    #[case] body: &str,
    #[case] state: State,
    #[case] reason: Reason,
    #[case] message: &str,
) {
    let rule = ready();
    let observed = after(&rule, status, body);
    let opinion = opinion(&rule, Some(&observed), Setting::Open, now(0));
    assert_eq!((opinion.state, opinion.reason), (state, reason));
    assert_eq!((opinion.until, opinion.next), (Some(at(3)), None));
    let said = explain(&rule, Some(&observed), &opinion, now(0));
    assert_eq!(said, format!("{message}, asked Sat 2026-11-21 12:00 UTC"));
    assert_eq!(cause(&rule, Some(&observed), &opinion, now(0)), message);
    assert!(!format!("{observed:?}").contains("s3cr3t"), "{observed:?}");
}

#[rstest]
#[case(200, State::Open, Reason::AsExpected, "it answered 200")]
#[case(
    201,
    State::Closed,
    Reason::UnexpectedStatus,
    "it answered 201, expected 200"
)]
fn without_an_expression_the_body_is_not_looked_at(
    #[case] status: u16,
    #[case] state: State,
    #[case] reason: Reason,
    #[case] message: &str,
) {
    let rule = rule(&json!({}));
    assert!(!rule.wants_body(status));
    let observed = after(&rule, status, "not JSON");
    let opinion = opinion(&rule, Some(&observed), Setting::Open, now(0));
    assert_eq!((opinion.state, opinion.reason), (state, reason));
    assert_eq!(cause(&rule, Some(&observed), &opinion, now(0)), message);
}

#[rstest]
#[case(
    Setting::Open,
    State::Open,
    "https://status.example.com: timed out after 10s; onError is open"
)]
#[case(
    Setting::Closed,
    State::Closed,
    "https://status.example.com: timed out after 10s"
)]
fn what_cannot_be_had_is_for_on_error(
    #[case] on_error: Setting,
    #[case] state: State,
    #[case] message: &str,
) {
    let rule = ready();
    let observed = Polled::next(None, Err(unavailable()), rule.cadence, at(0));
    let opinion = opinion(&rule, Some(&observed), on_error, now(0));
    assert_eq!(
        (opinion.state, opinion.reason),
        (state, Reason::EvidenceUnavailable)
    );
    assert_eq!(explain(&rule, Some(&observed), &opinion, now(0)), message);
}

#[test]
fn a_failure_leaves_the_last_answer_while_that_counts() {
    let rule = ready();
    let first = after(&rule, 200, r#"{"ready": true}"#);
    let then = Polled::next(Some(first), Err(unavailable()), rule.cadence, at(1));
    let opinion = |minute| opinion(&rule, Some(&then), Setting::Closed, now(minute));
    assert_eq!(
        (opinion(2).state, opinion(2).reason),
        (State::Open, Reason::AsExpected)
    );
    let said = explain(&rule, Some(&then), &opinion(2), now(2));
    let since = "; since then: https://status.example.com: timed out after 10s";
    assert!(said.ends_with(since), "{said}");
    assert_eq!(
        (opinion(3).state, opinion(3).reason),
        (State::Closed, Reason::EvidenceUnavailable)
    );
}

#[test]
fn what_nobody_asked_for_or_asked_for_again_opens_nothing() {
    let rule = ready();
    let nobody = opinion(&rule, None, Setting::Open, now(0));
    assert_eq!(
        (nobody.state, nobody.reason),
        (State::Closed, Reason::NotObserved)
    );
    let observed = after(&rule, 200, r#"{"ready": true}"#);
    let late = opinion(&rule, Some(&observed), Setting::Open, now(3));
    assert_eq!((late.state, late.reason), (State::Closed, Reason::Expired));
}

#[rstest]
#[case(200, r#"{"ready": true}"#, Some(true))]
#[case(200, r#"{"ready": false}"#, Some(false))]
#[case(200, "<html>", Some(false))]
#[case(503, "", None)]
fn statuses_tell_the_status_and_whether_it_satisfies(
    #[case] code: u16,
    #[case] body: &str,
    #[case] satisfied: Option<bool>,
) {
    let rule = ready();
    let observed = after(&rule, code, body);
    let told = status(&observed);
    assert_eq!(
        (told.status, told.satisfied, told.error.as_ref()),
        (Some(code.into()), satisfied, None)
    );
    // And after a restart it has the state that it reports.
    let restored = rule.restored(&told, at(2)).unwrap();
    let state = |observed: &Observed| opinion(&rule, Some(observed), Setting::Open, now(2)).state;
    assert_eq!(state(&restored), state(&observed));
    assert_eq!(rule.restored(&told, at(3)), None);
    assert_eq!(rule.restored(&told, at(-1)), None);
}

#[test]
fn a_status_without_an_answer_restores_nothing() {
    let rule = ready();
    let observed = Polled::next(None, Err(unavailable()), rule.cadence, at(0));
    let told = status(&observed);
    let expected = json!({ "error": "https://status.example.com: timed out after 10s" });
    assert_eq!(serde_json::to_value(&told).unwrap(), expected);
    assert_eq!(rule.restored(&told, at(0)), None);
    let unjudged = HttpStatus {
        satisfied: None,
        ..status(&after(&rule, 200, "{}"))
    };
    assert_eq!(rule.restored(&unjudged, at(0)), None);
}
