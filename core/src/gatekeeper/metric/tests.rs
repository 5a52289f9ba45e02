//! How a metric is read, and stories of the results of its query, in minutes.

use rstest::rstest;
use serde_json::{Value as Json, json};

use super::*;

const TOO_MANY: &str = "three";

fn spec(with: &Json) -> api::Metric {
    let mut spec = json!({
        "address": "https://prometheus.example.com",
        "query": "sum(rate(requests_total[5m]))",
        "range": { "min": 0.99 },
    });
    spec.as_object_mut()
        .unwrap()
        .extend(with.as_object().unwrap().clone());
    serde_json::from_value(spec).unwrap()
}

fn rule(with: &Json) -> Rule {
    read(&spec(with), "spec.metric").unwrap()
}

fn at(minute: i64) -> Timestamp {
    // Sat 2026-11-21 12:00 UTC.
    Timestamp::from_second(1_795_262_400 + minute * 60).unwrap()
}

fn now(minute: i64) -> Now {
    Now::given(at(minute))
}

/// The result of an attempt, in short: a number, `NaN`, `three` samples, no answer (``), or `<html>`.
fn attempt(short: &str) -> Result<Answer, Trouble> {
    match short {
        "" => Err(Trouble::Unavailable("status 503".to_owned())),
        "<html>" => Err(Trouble::Broken("the answer is not JSON".to_owned())),
        TOO_MANY => Ok(Answer::TooMany(3)),
        number => Ok(Answer::of(number).unwrap()),
    }
}

/// Attempts from minute 0 on, a minute apart.
fn observed(rule: &Rule, attempts: &[&str]) -> Observed {
    let observed = attempts
        .iter()
        .zip(0..)
        .fold(None, |before, (short, minute)| {
            Some(Observed::next(before, attempt(short), rule, at(minute)))
        });
    observed.unwrap()
}

fn judged(rule: &Rule, observed: &Observed, minute: i64) -> (State, Reason) {
    let opinion = opinion(rule, Some(observed), Setting::Closed, now(minute));
    (opinion.state, opinion.reason)
}

fn said(rule: &Rule, observed: &Observed, minute: i64) -> String {
    let opinion = opinion(rule, Some(observed), Setting::Closed, now(minute));
    explain(rule, Some(observed), &opinion, now(minute))
}

#[test]
fn what_is_left_out_has_defaults() {
    let rule = rule(&json!({}));
    assert_eq!(rule.cadence.interval, SignedDuration::from_mins(1));
    assert_eq!(rule.cadence.timeout, SignedDuration::from_secs(10));
    assert_eq!(
        (rule.for_, rule.on_no_data),
        (SignedDuration::ZERO, Setting::Closed)
    );
}

#[rstest]
#[case(json!({ "address": "prometheus:9090" }), "spec.metric.address: it is not an http or https address")]
#[case(json!({ "address": "http://p", "secretRef": { "name": "s" } }), "spec.metric.secretRef: secrets are sent")]
#[case(json!({ "query": " " }), "spec.metric.query: the query is empty; write a query in PromQL")]
#[case(json!({ "query": "x".repeat(4097) }), "spec.metric.query: the query is longer than 4096")]
#[case(json!({ "range": {} }), "spec.metric.range: a range without limits admits everything; write min")]
#[case(json!({ "range": { "min": 2, "max": 1 } }), "spec.metric.range.min: it is above max; write the")]
#[case(json!({ "interval": "1s" }), "spec.metric.interval: `1s` must be between 5s and 24h")]
#[case(json!({ "timeout": "1m" }), "spec.metric.timeout: `1m` must be longer than zero and at most 10s")]
#[case(json!({ "for": "0s" }), "spec.metric.for: `0s` must be longer than zero and at most 168h")]
#[case(json!({ "for": "169h" }), "spec.metric.for: `169h` must be longer than zero and at most 168h")]
#[case(json!({ "for": "long" }), "spec.metric.for: `long` is not a duration")]
fn mistakes_are_refused(#[case] with: Json, #[case] expected: &str) {
    let refusals = read(&spec(&with), "spec.metric").unwrap_err().to_string();
    assert!(refusals.starts_with(expected), "{refusals}");
}

#[test]
fn all_mistakes_are_told_at_once() {
    let with = json!({ "address": "", "query": "", "range": {}, "interval": "", "for": "" });
    let refusals = read(&spec(&with), "spec.metric").unwrap_err();
    assert_eq!(refusals.iter().count(), 5);
}

#[test]
fn a_limit_that_is_no_number_is_refused() {
    let mut spec = spec(&json!({}));
    spec.range.min = Some(f64::NAN);
    let refusals = read(&spec, "spec.metric").unwrap_err().to_string();
    assert_eq!(
        refusals,
        "spec.metric.range: a limit is not a number; write a number"
    );
    spec.range = api::Range {
        min: Some(0.0),
        max: Some(f64::NAN),
    };
    assert!(read(&spec, "spec.metric").is_err());
}

#[rstest]
#[case("0.982", Some(0.982))]
#[case("1e+09", Some(1e9))]
#[case("-0", Some(0.0))]
#[case("+Inf", Some(f64::INFINITY))]
#[case("-Inf", Some(f64::NEG_INFINITY))]
fn numbers_are_read_as_prometheus_writes_them(#[case] text: &str, #[case] value: Option<f64>) {
    let Some(Answer::Value(sample)) = Answer::of(text) else {
        panic!("{text} is a value");
    };
    assert_eq!((Some(sample.value()), sample.text()), (value, text));
}

#[test]
fn what_is_no_number_is_no_data_or_nothing() {
    assert_eq!(Answer::of("NaN"), Some(Answer::NoData));
    for text in ["", "one", "0x10", "1 ", &"1".repeat(65)] {
        assert_eq!(Answer::of(text), None, "{text}");
    }
}

#[rstest]
#[case(json!({ "min": 1 }), "1", None)]
#[case(json!({ "min": 1 }), "0.999", Some("below min 1"))]
#[case(json!({ "min": 1 }), "+Inf", None)]
#[case(json!({ "max": 0.05 }), "0.05", None)]
#[case(json!({ "max": 0.05 }), "0.051", Some("above max 0.05"))]
#[case(json!({ "max": 0.05 }), "-Inf", None)]
#[case(json!({ "max": 0.05 }), "+Inf", Some("above max 0.05"))]
#[case(json!({ "min": 1, "max": 2 }), "1.5", None)]
#[case(json!({ "min": 1, "max": 2 }), "2.5", Some("above max 2"))]
#[case(json!({ "min": 1, "max": 1 }), "1", None)]
#[case(json!({ "min": -2, "max": 0 }), "-2.1", Some("below min -2"))]
fn limits_belong_to_the_range(
    #[case] range: Json,
    #[case] value: &str,
    #[case] outside: Option<&str>,
) {
    let rule = rule(&json!({ "range": range }));
    let observed = observed(&rule, &[value]);
    let expected = match outside {
        None => (State::Open, Reason::InRange),
        Some(_) => (State::Closed, Reason::OutOfRange),
    };
    assert_eq!(judged(&rule, &observed, 0), expected);
    let said = said(&rule, &observed, 0);
    let place = outside.map_or("within m".to_owned(), str::to_owned);
    assert!(said.starts_with(&format!("{value} is {place}")), "{said}");
}

#[rstest]
#[case("0.982", "0.982 is below min 0.99, measured Sat 2026-11-21 12:00 UTC")]
#[case("0.995", "0.995 is within min 0.99, measured Sat 2026-11-21 12:00 UTC")]
#[case("NaN", "the query returns no value, asked Sat 2026-11-21 12:00 UTC")]
#[case("", "status 503")]
#[case("<html>", "the answer is not JSON")]
#[case(
    TOO_MANY,
    "the query returns 3 samples; write one that returns a single one: aggregate, as in \
     sum(...), or select one by its labels, asked Sat 2026-11-21 12:00 UTC"
)]
fn value_threshold_and_time_are_told(#[case] short: &str, #[case] expected: &str) {
    let rule = rule(&json!({}));
    assert_eq!(said(&rule, &observed(&rule, &[short]), 0), expected);
}

#[test]
fn what_is_wrong_since_the_last_answer_is_told() {
    let rule = rule(&json!({}));
    let observed = observed(&rule, &["0.995", ""]);
    let expected = "0.995 is within min 0.99, measured Sat 2026-11-21 12:00 UTC; since then: \
                    status 503";
    assert_eq!(said(&rule, &observed, 1), expected);
}

/// One after another; what holds after the last of them.
#[rstest]
#[case(&["0.995"], State::Open, Reason::InRange)]
#[case(&["0.995", "0.9"], State::Closed, Reason::OutOfRange)]
#[case(&["0.9", "0.995"], State::Open, Reason::InRange)]
#[case(&["NaN"], State::Closed, Reason::NoData)]
#[case(&[TOO_MANY], State::Closed, Reason::EvidenceBroken)]
#[case(&["0.995", TOO_MANY], State::Closed, Reason::EvidenceBroken)]
#[case(&[""], State::Closed, Reason::EvidenceUnavailable)]
#[case(&["<html>"], State::Closed, Reason::EvidenceBroken)]
#[case(&["0.995", ""], State::Open, Reason::InRange)]
#[case(&["0.995", "<html>"], State::Open, Reason::InRange)]
#[case(&["0.9", ""], State::Closed, Reason::OutOfRange)]
#[case(&["0.995", "", ""], State::Open, Reason::InRange)]
#[case(&["0.995", "", "", ""], State::Closed, Reason::EvidenceUnavailable)]
#[case(&["0.995", "", "", "<html>"], State::Closed, Reason::EvidenceBroken)]
#[case(&["0.995", "", "", "", "0.995"], State::Open, Reason::InRange)]
fn the_last_answer_decides(
    #[case] attempts: &[&str],
    #[case] state: State,
    #[case] reason: Reason,
) {
    let rule = rule(&json!({}));
    let observed = observed(&rule, attempts);
    let last = i64::try_from(attempts.len()).unwrap() - 1;
    assert_eq!(judged(&rule, &observed, last), (state, reason));
}

#[test]
fn nobody_asked_opens_nothing() {
    let rule = rule(&json!({}));
    let opinion = opinion(&rule, None, Setting::Open, now(0));
    assert_eq!(
        (opinion.state, opinion.reason),
        (State::Closed, Reason::NotObserved)
    );
    assert_eq!(
        explain(&rule, None, &opinion, now(0)),
        "the query has not been asked yet"
    );
}

#[rstest]
#[case(&[""], Setting::Open, State::Open, Reason::EvidenceUnavailable)]
#[case(&["0.9", ""], Setting::Open, State::Closed, Reason::OutOfRange)]
#[case(&["0.9", "", "", ""], Setting::Open, State::Open, Reason::EvidenceUnavailable)]
#[case(&["<html>"], Setting::Open, State::Closed, Reason::EvidenceBroken)]
#[case(&[TOO_MANY], Setting::Open, State::Closed, Reason::EvidenceBroken)]
#[case(&["NaN"], Setting::Open, State::Closed, Reason::NoData)]
fn on_error_is_for_what_cannot_be_had(
    #[case] attempts: &[&str],
    #[case] on_error: Setting,
    #[case] state: State,
    #[case] reason: Reason,
) {
    let rule = rule(&json!({}));
    let observed = observed(&rule, attempts);
    let last = i64::try_from(attempts.len()).unwrap() - 1;
    let opinion = opinion(&rule, Some(&observed), on_error, now(last));
    assert_eq!((opinion.state, opinion.reason), (state, reason));
}

#[test]
fn an_answer_runs_out_after_three_intervals() {
    let rule = rule(&json!({}));
    let observed = observed(&rule, &["0.995"]);
    assert_eq!(observed.good_until(), Some(at(3)));
    let until = |minute| opinion(&rule, Some(&observed), Setting::Open, now(minute)).until;
    assert_eq!((until(0), until(2)), (Some(at(3)), Some(at(3))));
    assert_eq!(
        judged(&rule, &observed, 3),
        (State::Closed, Reason::Expired)
    );
    let expected = "its evidence expired Sat 2026-11-21 12:03 UTC";
    assert_eq!(said(&rule, &observed, 3), expected);
}

#[test]
fn a_row_has_to_be_long_enough() {
    let rule = rule(&json!({ "for": "2m" }));
    let observed = observed(&rule, &["0.9", "0.995", "0.997"]);
    assert_eq!(observed.within_since, Some(at(1)));
    let first = opinion(&rule, Some(&observed), Setting::Closed, now(2));
    assert_eq!(
        (first.state, first.reason),
        (State::Closed, Reason::Soaking)
    );
    assert_eq!((first.next, first.until), (Some(at(3)), Some(at(3))));
    assert_eq!(
        said(&rule, &observed, 2),
        "0.997 is within min 0.99 since Sat 2026-11-21 12:01 UTC, and has to be for 2m, which an \
         answer from Sat 2026-11-21 12:03 UTC on can show, measured Sat 2026-11-21 12:02 UTC"
    );
    let observed = Observed::next(Some(observed), attempt("0.998"), &rule, at(3));
    let then = opinion(&rule, Some(&observed), Setting::Closed, now(3));
    assert_eq!(
        (then.state, then.reason, then.next),
        (State::Open, Reason::InRange, None)
    );
    assert_eq!(then.until, Some(at(6)));
    assert_eq!(
        said(&rule, &observed, 3),
        "0.998 is within min 0.99 since Sat 2026-11-21 12:01 UTC, measured Sat 2026-11-21 12:03 UTC"
    );
}

/// Attempts from minute 0 on; whether it is open at each minute after the last of them.
#[rstest]
#[case::one_answer_and_silence(&["0.995", ""], &[1, 2], false)]
#[case::nobody_was_asked_since(&["0.995"], &[1, 2], false)]
#[case::silence_at_the_end(&["0.995", "0.995", ""], &[2, 3], false)]
#[case::nonsense_at_the_end(&["0.995", "0.995", "<html>"], &[2, 3], false)]
#[case::an_answer_at_the_end(&["0.995", "", "0.995"], &[2, 3, 4], true)]
#[case::silence_after_the_end(&["0.995", "", "0.995", "", ""], &[4], true)]
fn time_that_nobody_measured_is_no_part_of_a_row(
    #[case] attempts: &[&str],
    #[case] minutes: &[i64],
    #[case] open: bool,
) {
    let rule = rule(&json!({ "for": "2m" }));
    let observed = observed(&rule, attempts);
    for minute in minutes {
        let expected = match open {
            true => (State::Open, Reason::InRange),
            false => (State::Closed, Reason::Soaking),
        };
        assert_eq!(judged(&rule, &observed, *minute), expected, "{minute}");
    }
    let opinion = opinion(&rule, Some(&observed), Setting::Closed, now(2));
    assert_eq!(opinion.until, observed.good_until());
}

#[test]
fn a_row_that_a_status_tells_of_is_as_long_as_its_last_answer() {
    let rule = rule(&json!({ "for": "2m" }));
    let status = observed(&rule, &["0.995", "0.996"]).status(&rule);
    let restored = Observed::restored(&status, &rule, at(3)).unwrap();
    assert_eq!(
        judged(&rule, &restored, 3),
        (State::Closed, Reason::Soaking)
    );
    let next = Observed::next(Some(restored), attempt("0.997"), &rule, at(3));
    assert_eq!(judged(&rule, &next, 3), (State::Open, Reason::InRange));
}

#[test]
fn a_row_that_outlasts_its_answer_is_promised_no_longer_than_that() {
    let rule = rule(&json!({ "for": "1h" }));
    let observed = observed(&rule, &["0.995"]);
    let opinion = opinion(&rule, Some(&observed), Setting::Closed, now(0));
    assert_eq!((opinion.next, opinion.until), (Some(at(60)), Some(at(3))));
}

#[rstest]
#[case(&["0.995"], 2, Some(0.995))]
#[case(&["0.9"], 0, Some(0.9))]
#[case(&["0.995"], 3, None)]
#[case(&["0.995", ""], 2, Some(0.995))]
#[case(&["0.995", "NaN"], 1, None)]
#[case(&["0.995", TOO_MANY], 1, None)]
#[case(&[""], 0, None)]
fn a_value_is_told_while_it_counts(
    #[case] attempts: &[&str],
    #[case] minute: i64,
    #[case] value: Option<f64>,
) {
    let rule = rule(&json!({}));
    assert_eq!(observed(&rule, attempts).value(at(minute)), value);
}

/// Since when the value is within, after attempts from minute 0 on.
#[rstest]
#[case(&["0.995", "0.996", "0.997"], Some(0))]
#[case(&["0.995", "0.9", "0.997"], Some(2))]
#[case(&["0.995", "0.9"], None)]
#[case(&["0.995", "NaN", "0.997"], Some(2))]
#[case(&["0.995", TOO_MANY, "0.997"], Some(2))]
// A gap within which the last answer still counts.
#[case(&["0.995", "", "0.997"], Some(0))]
#[case(&["0.995", "", "", "<html>"], None)]
#[case(&["0.995", "", "0.9", "0.997"], Some(3))]
// A longer one.
#[case(&["0.995", "", "", "", "0.997"], Some(4))]
#[case(&["", "0.997"], Some(1))]
fn rows_begin_anew_when_they_break(#[case] attempts: &[&str], #[case] since: Option<i64>) {
    let rule = rule(&json!({ "for": "10m" }));
    let observed = observed(&rule, attempts);
    assert_eq!(observed.within_since, since.map(at));
}

#[test]
fn a_row_ends_where_nobody_looked_for_too_long() {
    let rule = rule(&json!({ "for": "10m" }));
    let first = observed(&rule, &["0.995"]);
    let soon = Observed::next(Some(first.clone()), attempt("0.995"), &rule, at(2));
    assert_eq!(soon.within_since, Some(at(0)));
    let late = Observed::next(Some(first), attempt("0.995"), &rule, at(3));
    assert_eq!(late.within_since, Some(at(3)));
}

#[test]
fn a_clock_that_was_set_back_begins_the_row_anew() {
    let rule = rule(&json!({ "for": "10m" }));
    let before = Observed::next(None, attempt("0.995"), &rule, at(1000));
    let after = Observed::next(Some(before), attempt("0.995"), &rule, at(0));
    assert_eq!(
        (after.within_since, after.good_until()),
        (Some(at(0)), Some(at(3)))
    );
}

#[test]
fn a_row_is_not_over_by_a_clock_that_cannot_be_relied_on() {
    let lost = Now {
        at: at(1),
        trust: Trust::Lost(SignedDuration::from_secs(40)),
    };
    let reason = |rule: &Rule| {
        let observed = observed(rule, &["0.995", "0.995"]);
        opinion(rule, Some(&observed), Setting::Closed, lost).reason
    };
    assert_eq!(reason(&rule(&json!({ "for": "1m" }))), Reason::ClockSkew);
    assert_eq!(reason(&rule(&json!({ "for": "2m" }))), Reason::Soaking);
    assert_eq!(reason(&rule(&json!({}))), Reason::InRange);
}

#[rstest]
#[case(&["NaN"], State::Closed, Reason::Soaking)]
#[case(&["NaN", "NaN"], State::Open, Reason::NoData)]
#[case(&["NaN", "0.995"], State::Open, Reason::InRange)]
#[case(&["0.995", "NaN"], State::Open, Reason::NoData)]
#[case(&["0.9", "NaN"], State::Closed, Reason::Soaking)]
fn no_data_may_count_as_a_value_within(
    #[case] attempts: &[&str],
    #[case] state: State,
    #[case] reason: Reason,
) {
    let rule = rule(&json!({ "onNoData": "open", "for": "1m" }));
    let observed = observed(&rule, attempts);
    let last = i64::try_from(attempts.len()).unwrap() - 1;
    assert_eq!(judged(&rule, &observed, last), (state, reason));
    let said = said(&rule, &observed, last);
    assert_eq!(
        said.contains("onNoData is open"),
        attempts.last() == Some(&"NaN"),
        "{said}"
    );
}

#[rstest]
#[case("0.982", "the value is below min 0.99")]
#[case("0.995", "the value is within min 0.99, but not yet for 10m")]
#[case("NaN", "the query returns no value")]
#[case(TOO_MANY, "the query returns several samples")]
#[case("", "status 503")]
fn a_cause_stays_while_nothing_else_changes(#[case] short: &str, #[case] expected: &str) {
    let rule = rule(&json!({ "for": "10m" }));
    let observed = observed(&rule, &[short]);
    let opinion = opinion(&rule, Some(&observed), Setting::Closed, now(0));
    assert_eq!(cause(&rule, Some(&observed), &opinion, now(0)), expected);
}

#[test]
fn statuses_tell_value_range_and_times() {
    let rule = rule(&json!({ "range": { "min": 0.99, "max": 1 } }));
    let status = observed(&rule, &["0.9", "0.995", ""]).status(&rule);
    let expected = json!({
        "value": "0.995", "range": "min 0.99, max 1", "error": "status 503",
        "observedAt": "2026-11-21T12:01:00Z", "withinSince": "2026-11-21T12:01:00Z",
    });
    assert_eq!(serde_json::to_value(status).unwrap(), expected);
    let nothing = observed(&rule, &[""]).status(&rule);
    let expected = json!({ "range": "min 0.99, max 1", "error": "status 503" });
    assert_eq!(serde_json::to_value(nothing).unwrap(), expected);
}

#[test]
fn a_row_goes_on_after_a_restart() {
    let rule = rule(&json!({ "for": "10m" }));
    let status = observed(&rule, &["0.995", "0.996", "0.997"]).status(&rule);
    let restored = Observed::restored(&status, &rule, at(4)).unwrap();
    assert_eq!(
        (restored.within_since, restored.good_until()),
        (Some(at(0)), Some(at(5)))
    );
    let next = Observed::next(Some(restored), attempt("0.998"), &rule, at(4));
    assert_eq!(next.within_since, Some(at(0)));
}

#[rstest]
#[case::run_out("0.995", 3)]
#[case::from_the_future("0.995", -1)]
#[case::without_a_value("NaN", 0)]
fn what_counts_no_more_is_not_restored(#[case] short: &str, #[case] minute: i64) {
    let rule = rule(&json!({}));
    let status = observed(&rule, &[short]).status(&rule);
    assert_eq!(Observed::restored(&status, &rule, at(minute)), None);
}
