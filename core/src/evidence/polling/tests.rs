//! How the shared fields are read, and for how long answers count.

use rstest::rstest;

use super::*;

fn asked(address: &str) -> Asked<'_> {
    Asked {
        path: "spec.metric",
        field: "address",
        address,
        with_query: false,
        has_secret: false,
        has_authorities: false,
        interval: Box::leak(Box::new(Duration::from("1m"))),
        timeout: Box::leak(Box::new(Duration::from("10s"))),
    }
}

fn problems(asked: &Asked) -> Vec<String> {
    let mut mistakes = Vec::new();
    asked.read(&mut mistakes);
    mistakes.iter().map(ToString::to_string).collect()
}

#[rstest]
#[case("https://prometheus.example.com")]
#[case("http://prometheus.monitoring.svc:9090")]
#[case("https://10.0.0.1/prometheus/")]
#[case("https://[2001:db8::1]:9090")]
fn addresses_are_read(#[case] address: &str) {
    assert_eq!(problems(&asked(address)), [""; 0]);
}

#[rstest]
#[case(
    "",
    "it is not an http or https address; write one that starts with https:// or http://"
)]
#[case("prometheus:9090", "it is not an http or https address")]
#[case("ftp://prometheus", "it is not an http or https address")]
#[case("https://", "it is not an http or https address")]
#[case("https:///metrics", "it is not an http or https address")]
#[case("https://?query", "it is not an http or https address")]
#[case(
    "https://me:secret@prometheus",
    "the address has an @; remove it; credentials are read from secretRef"
)]
#[case("https://prome theus", "the address has a space in it")]
#[case(
    "https://prometheus/?a=b",
    "the address has a query of its own; write what comes before /api/v1/query"
)]
#[case("https://prometheus/#a", "the address has a query of its own")]
fn what_is_no_address_is_refused(#[case] address: &str, #[case] expected: &str) {
    let problems = problems(&asked(address));
    let [problem] = problems.as_slice() else {
        panic!("{problems:?}");
    };
    assert!(
        problem.starts_with(&format!("spec.metric.address: {expected}")),
        "{problem}"
    );
}

#[test]
fn a_query_may_be_where_it_is_of_use() {
    let asked = Asked {
        with_query: true,
        ..asked("https://status.example.com/?team=a")
    };
    assert_eq!(problems(&asked), [""; 0]);
}

#[test]
fn an_address_has_an_end() {
    let long = format!("https://{}", "a".repeat(LONGEST_ADDRESS - 8));
    assert_eq!(problems(&asked(&long)), [""; 0]);
    let longer = format!("{long}a");
    let expected =
        "spec.metric.address: the address is longer than 2048 characters; write a shorter one";
    assert_eq!(problems(&asked(&longer)), [expected]);
}

#[test]
fn secrets_are_for_https() {
    let both = |address| Asked {
        has_secret: true,
        has_authorities: true,
        ..asked(address)
    };
    assert_eq!(problems(&both("https://prometheus")), [""; 0]);
    assert_eq!(
        problems(&both("http://prometheus")),
        [
            "spec.metric.secretRef: secrets are sent over https only; write an https address",
            "spec.metric.certSecretRef: it belongs to an https address; remove it, or write an \
             https address",
        ]
    );
}

#[rstest]
#[case("5s", "10s", "5s")]
#[case("24h", "10s", "10s")]
#[case("1m", "250ms", "250ms")]
fn nobody_is_waited_for_longer_than_the_interval(
    #[case] interval: &str,
    #[case] timeout: &str,
    #[case] expected: &str,
) {
    let (interval, timeout) = (interval.into(), timeout.into());
    let asked = Asked {
        interval: &interval,
        timeout: &timeout,
        ..asked("https://prometheus")
    };
    let mut mistakes = Vec::new();
    let cadence = asked.read(&mut mistakes);
    assert!(mistakes.is_empty(), "{mistakes:?}");
    assert_eq!(duration::text(cadence.timeout), expected);
}

#[rstest]
#[case("4s", "10s", "spec.metric.interval: `4s` must be between 5s and 24h")]
#[case(
    "24h1s",
    "10s",
    "spec.metric.interval: `24h1s` must be between 5s and 24h"
)]
#[case("often", "10s", "spec.metric.interval: `often` is not a duration")]
#[case(
    "1m",
    "0s",
    "spec.metric.timeout: `0s` must be longer than zero and at most 10s"
)]
#[case(
    "1m",
    "10s1ms",
    "spec.metric.timeout: `10s1ms` must be longer than zero and at most 10s"
)]
fn durations_have_limits(#[case] interval: &str, #[case] timeout: &str, #[case] expected: &str) {
    let (interval, timeout) = (interval.into(), timeout.into());
    let asked = Asked {
        interval: &interval,
        timeout: &timeout,
        ..asked("https://prometheus")
    };
    let problems = problems(&asked);
    assert!(
        problems.len() == 1 && problems[0].starts_with(expected),
        "{problems:?}"
    );
}

const CADENCE: Cadence = Cadence {
    interval: SignedDuration::from_mins(1),
    timeout: SignedDuration::from_secs(10),
};

fn at(minute: i64) -> Timestamp {
    Timestamp::from_second(minute * 60).unwrap()
}

fn unavailable() -> Trouble {
    Trouble::Unavailable("status 503".to_owned())
}

/// Attempts a minute apart from minute 0 on: an answer, or none.
fn polled(attempts: &[Option<char>]) -> Polled<char> {
    let polled = attempts
        .iter()
        .zip(0..)
        .fold(None, |before, (attempt, minute)| {
            let attempt = attempt.ok_or_else(unavailable);
            Some(Polled::next(before, attempt, CADENCE, at(minute)))
        });
    polled.unwrap()
}

fn said(polled: &Polled<char>, minute: i64) -> String {
    match polled.at(at(minute)) {
        Standing::Good(had) => had.answer.to_string(),
        Standing::Trouble(trouble) => trouble.why().to_owned(),
        Standing::Expired(end) => format!("expired at {end}"),
        Standing::Nothing => "nothing".to_owned(),
    }
}

#[test]
fn an_answer_counts_for_three_intervals() {
    let polled = polled(&[Some('a')]);
    assert_eq!(polled.good_until(), Some(at(3)));
    let told = [0, 2, 3].map(|minute| said(&polled, minute));
    assert_eq!(told, ["a", "a", "expired at 1970-01-01T00:03:00Z"]);
}

#[test]
fn a_failure_leaves_the_last_answer_while_that_counts() {
    let polled = polled(&[Some('a'), None, None]);
    assert_eq!(
        (said(&polled, 2), polled.error()),
        ("a".to_owned(), Some("status 503"))
    );
    assert_eq!(said(&polled, 3), "status 503");
}

#[test]
fn an_answer_that_counts_no_more_is_forgotten_by_the_next_failure() {
    let polled = polled(&[Some('a'), None, None, None]);
    assert_eq!((polled.last.as_ref(), polled.good_until()), (None, None));
    assert_eq!(said(&polled, 0), "status 503");
}

#[test]
fn an_answer_ends_trouble() {
    let polled = polled(&[Some('a'), None, Some('b')]);
    assert_eq!((said(&polled, 4), polled.error()), ("b".to_owned(), None));
}

#[test]
fn what_was_never_answered_is_in_trouble_at_once() {
    assert_eq!(said(&polled(&[None]), 0), "status 503");
}

#[rstest]
#[case(Setting::Open, State::Open, "status 503; onError is open")]
#[case(Setting::Closed, State::Closed, "status 503")]
fn what_cannot_be_had_is_for_on_error(
    #[case] on_error: Setting,
    #[case] state: State,
    #[case] message: &str,
) {
    let polled = polled(&[None]);
    let standing = polled.at(at(0));
    let opinion = standing.opinion(on_error);
    assert_eq!(
        (opinion.state, opinion.reason),
        (state, Reason::EvidenceUnavailable)
    );
    assert_eq!(standing.explain(&opinion), message);
}

/// What makes no sense, and what nobody has asked for again, opens nothing.
#[test]
fn nothing_else_is_for_on_error() {
    let broken = Polled::<char>::next(
        None,
        Err(Trouble::Broken("no JSON".to_owned())),
        CADENCE,
        at(0),
    );
    let opinion = broken.at(at(0)).opinion(Setting::Open);
    assert_eq!(
        (opinion.state, opinion.reason),
        (State::Closed, Reason::EvidenceBroken)
    );
    let expired = polled(&[Some('a')]);
    let standing = expired.at(at(3));
    let opinion = standing.opinion(Setting::Open);
    assert_eq!(
        (opinion.state, opinion.reason),
        (State::Closed, Reason::Expired)
    );
    let message = "its evidence expired Thu 1970-01-01 00:03 UTC";
    assert_eq!(standing.explain(&opinion), message);
}
