//! How far the clock is from the API server's.

use std::time::Duration;

use jiff::fmt::rfc2822::DateTimeParser;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::client::Body;
use sluice_core::time::clock::{REPORTED, Trust};

use crate::observe::clock::Clock;

/// How often the clocks are compared, by the monotonic clock: the other one is in question.
const EVERY: Duration = Duration::from_secs(60);

/// How long one comparison may take: its own length is its error.
const PATIENCE: Duration = Duration::from_secs(5);

/// How soon after a first comparison that failed.
const SOON: Duration = Duration::from_secs(1);

/// Waits until the clocks should be compared again, or for the first time.
#[allow(
    clippy::disallowed_methods,
    reason = "on the monotonic clock: the other one is in question"
)]
pub async fn pause(is_known: bool) {
    tokio::time::sleep(if is_known { EVERY } else { SOON }).await;
}

/// Compares the clocks once. None: the API server did not say what time it is.
pub async fn compare(client: &Client, clock: &dyn Clock) -> Option<Trust> {
    let request = http::Request::get("/version").body(Body::empty()).ok()?;
    let before = clock.now();
    let response = tokio::time::timeout(PATIENCE, client.send(request))
        .await
        .ok()?
        .ok()?;
    let after = clock.now();
    let date = response.headers().get(http::header::DATE)?.to_str().ok()?;
    let theirs = DateTimeParser::new().parse_timestamp(date).ok()?;
    Some(Trust::from_difference(difference(before, after, theirs)))
}

/// Whether a comparison says what was known already. The API server's clock is read in whole
/// seconds, so that differences seem to change a little from one comparison to the next.
pub fn is_as_good(known: Trust, found: Trust) -> bool {
    match (known, found) {
        (Trust::Good, Trust::Good) => true,
        (Trust::Drifting(known), Trust::Drifting(found))
        | (Trust::Lost(known), Trust::Lost(found)) => (known - found).abs() <= REPORTED,
        _ => false,
    }
}

/// Ours minus theirs, as far as it is certain: `theirs` was true at some time between `before` and
/// `after`, and means any time within the second that it starts.
fn difference(before: Timestamp, after: Timestamp, theirs: Timestamp) -> SignedDuration {
    let second = SignedDuration::from_secs(1);
    let ahead = before.duration_since(theirs) - second;
    let behind = after.duration_since(theirs);
    if ahead.is_positive() {
        ahead
    } else if behind.is_negative() {
        behind
    } else {
        SignedDuration::ZERO
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn a_difference_that_stays_about_the_same_is_no_news() {
        let lost = |seconds| Trust::Lost(SignedDuration::from_secs(seconds));
        assert!(is_as_good(lost(40), lost(39)));
        assert!(!is_as_good(lost(40), lost(-40)));
        assert!(!is_as_good(lost(31), Trust::Good));
    }

    #[rstest]
    #[case::within_its_second(10_500, 10_600, 10, 0)]
    #[case::a_slow_answer(8_000, 12_000, 10, 0)]
    #[case::ahead(45_000, 45_100, 10, 34_000)]
    #[case::behind(10_000, 10_100, 60, -49_900)]
    fn only_what_is_certain_counts(
        #[case] before: i64,
        #[case] after: i64,
        #[case] theirs: i64,
        #[case] expected: i128,
    ) {
        let at = |millis| Timestamp::from_millisecond(millis).unwrap();
        let found = difference(at(before), at(after), at(theirs * 1000));
        assert_eq!(found.as_millis(), expected);
    }
}
