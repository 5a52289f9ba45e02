//! Beats, and attempts that are repeated.

use std::cell::Cell;

use rstest::rstest;

use super::*;
use crate::observation::Seen as _;

fn cadence(interval: &str) -> Cadence {
    Cadence {
        interval: duration::parse(&interval.into()).unwrap(),
        timeout: SignedDuration::from_secs(1),
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// A beat at each full minute.
fn minutely() -> Beat {
    Beat {
        interval: SignedDuration::from_mins(1),
        phase: 0,
    }
}

#[rstest]
// From one beat to the next.
#[case(0, 0, 60)]
#[case(60, 0, 120)]
#[case(70, 0, 120)]
#[case(113, 0, 120)]
// A beat that is too near is skipped.
#[case(115, 0, 180)]
// For a minute or less a failure changes nothing.
#[case(0, 1, 60)]
#[case(0, 7, 60)]
fn who_asks_keeps_the_beat(#[case] now: i64, #[case] failures: u32, #[case] next: i64) {
    assert_eq!(minutely().after(at(now), failures), Due::At(at(next)));
}

#[rstest]
#[case(0, 3600)]
#[case(1, 60)]
#[case(2, 120)]
#[case(6, 1920)]
#[case(7, 3600)]
#[case(40, 3600)]
#[case(u32::MAX, 3600)]
fn failures_are_repaired_before_a_long_interval_is_over(#[case] failures: u32, #[case] next: i64) {
    let hourly = Beat {
        interval: SignedDuration::from_hours(1),
        phase: 0,
    };
    assert_eq!(hourly.after(at(0), failures), Due::At(at(next)));
}

/// Those who begin together do not go on together, and nobody waits for much more than an interval.
#[rstest]
#[case("5s", 5)]
#[case("1m", 60)]
#[case("24h", 86_400)]
fn beats_are_spread_over_the_interval(#[case] interval: &str, #[case] seconds: i64) {
    let now = at(1_795_262_400);
    let wait = |n: i32| {
        let beat = Beat::new(cadence(interval), &format!("uid-{n}"));
        let Due::At(due) = beat.after(now, 0) else {
            panic!("it was asked just now");
        };
        due.duration_since(now).as_millis() as f64 / (seconds * 1000) as f64
    };
    let waits: Vec<_> = (0..1000).map(wait).collect();
    for tenth in 1..=10 {
        let from = f64::from(tenth) / 10.0;
        let within = waits
            .iter()
            .filter(|wait| (from..from + 0.1).contains(*wait));
        let count = within.count();
        assert!(
            (60..=140).contains(&count),
            "{count} wait for {from} of {interval}"
        );
    }
    assert!(waits.iter().all(|wait| (0.1..=1.1).contains(wait)));
    assert_eq!(
        Beat::new(cadence(interval), "uid-7"),
        Beat::new(cadence(interval), "uid-7")
    );
}

#[rstest]
#[case(Due::AtOnce, 0, true)]
#[case(Due::At(at(60)), 59, false)]
#[case(Due::At(at(60)), 60, true)]
#[case(Due::At(at(120)), 0, false)]
#[case::set_back(Due::At(at(1_000_000)), 0, true)]
fn what_is_due_is_asked(#[case] due: Due, #[case] now: i64, #[case] expected: bool) {
    assert_eq!(due.is_due(at(now), minutely().interval), expected);
}

#[test]
fn somebody_who_asks_for_a_look_gets_one() {
    let about = (&(), Arc::new(()));
    let mut seen = Seen::next(None, about, (), false, &minutely(), at(0));
    assert_eq!(
        (seen.is_due(at(1), &minutely()), seen.again()),
        (false, at(60))
    );
    seen.make_due();
    assert!(seen.is_due(at(1), &minutely()) && seen.again() <= at(1));
}

/// Fails so often, and then succeeds; how often it was tried.
async fn persisted(retries: usize, failing: u32, miss: Miss) -> (Result<(), Trouble>, u32) {
    let tries = Cell::new(0);
    let attempt = || async {
        tries.set(tries.get() + 1);
        match tries.get() <= failing {
            true => Err(miss.clone()),
            false => Ok(()),
        }
    };
    let outcome = persist(cadence("1m"), retries, attempt).await;
    (outcome, tries.get())
}

fn refused() -> String {
    "https://status.test: connection refused".to_owned()
}

#[tokio::test]
async fn what_may_pass_is_tried_again() {
    let passing = || Miss::passing(refused());
    let unavailable = Err(Trouble::Unavailable(refused()));
    assert_eq!(persisted(2, 0, passing()).await, (Ok(()), 1));
    assert_eq!(persisted(2, 2, passing()).await, (Ok(()), 3));
    assert_eq!(persisted(2, 3, passing()).await, (unavailable.clone(), 3));
    assert_eq!(persisted(0, 1, passing()).await, (unavailable, 1));
}

#[tokio::test]
async fn what_does_not_pass_is_not() {
    let unavailable = Err(Trouble::Unavailable(refused()));
    assert_eq!(
        persisted(5, 9, Miss::lasting(refused())).await,
        (unavailable, 1)
    );
    let broken = Err(Trouble::Broken("no JSON".to_owned()));
    assert_eq!(
        persisted(5, 9, Miss::broken("no JSON".to_owned())).await,
        (broken, 1)
    );
}

#[tokio::test]
async fn all_tries_fit_into_an_interval() {
    let second = Cadence {
        interval: SignedDuration::from_secs(1),
        ..cadence("1m")
    };
    let tries = Cell::new(0);
    let attempt = || async {
        tries.set(tries.get() + 1);
        tokio::time::timeout(Duration::from_millis(600), std::future::pending::<()>())
            .await
            .map_err(|_| Miss::passing(refused()))
    };
    let outcome = persist(second, 5, attempt).await;
    assert_eq!(
        (outcome, tries.get()),
        (Err(Trouble::Unavailable(refused())), 2)
    );

    let never = persist(second, 5, std::future::pending::<Result<(), Miss>>).await;
    let expected = "no turn to ask within the interval of 1s".to_owned();
    assert_eq!(never, Err(Trouble::Unasked(expected)));
}

#[rstest]
#[case(
    EgressError::ConnectionRefused,
    true,
    "http://status.test: connection refused"
)]
#[case(
    EgressError::NotHttp,
    false,
    "http://status.test: it is not an http or https address; write one that starts with https:// or http://"
)]
fn a_miss_tells_the_host_and_the_outcome(
    #[case] error: EgressError,
    #[case] may_pass: bool,
    #[case] expected: &str,
) {
    let miss = Miss::of("http://status.test:8080/private?key=1", &error);
    assert_eq!((miss.trouble.why(), miss.may_pass), (expected, may_pass));
}
