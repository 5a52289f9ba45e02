//! Metrics: whether a value has been within its range for long enough since the pods of a batch are there.
//!
//! What comes in: the last value of the gatekeeper that measures it, and since when it was within the range.
//! What goes out: whether the batch may go on, and since when it is within the range now. Outside of the range
//! it is waited for, until the deadline. A value that is missing holds: it neither passes nor fails.

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use sluice_crds::gatekeeper::Range;

use super::hook::hash;
use super::plan::Metric;

/// The range of a gatekeeper that is missing: nothing is measured, either.
pub const ANY: Range = Range {
    min: None,
    max: None,
};

/// A value that counts: a number, measured once, and not expired.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// The number.
    pub value: f64,
    /// When it was asked for.
    pub at: Timestamp,
}

/// What a metric says of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There is no value that counts.
    Blind,
    /// It was last measured before the pods were there, or before the row began.
    Unmeasured,
    /// It is outside the range.
    Outside,
    /// It is within the range, and not for long enough.
    Soaking,
    /// It is good.
    Good,
}

/// What a metric is, as a hash: a row counts for this alone. Its name is not enough, for the plan and a batch may
/// each have one of the same name, and a metric may be changed meanwhile. `own`: the range of the gatekeeper.
pub fn checksum(metric: &Metric, own: Range) -> String {
    let Metric {
        name,
        gatekeeper,
        interval,
        range,
    } = metric;
    let Range { min, max } = range.unwrap_or(own);
    let interval = interval.map(|it| it.to_string());
    hash(&json!([name, gatekeeper, interval, min, max]))
}

/// What the metric says. `own`: the range of the gatekeeper. `began`: since when the pods of the batch are
/// looked at. `since`: since when the value was within the range, at the last look. The second result is the
/// same for this look.
pub fn judge(
    metric: &Metric,
    own: Range,
    measured: Option<Measured>,
    began: Timestamp,
    since: Option<Timestamp>,
) -> (Verdict, Option<Timestamp>) {
    let Some(Measured { value, at }) = measured.filter(|it| !it.value.is_nan()) else {
        return (Verdict::Blind, None);
    };
    // A row that began before the pods were there is none of theirs.
    let since = since.filter(|since| *since >= began);
    // What a replica that has just become leader knows may be older than the row.
    if at < since.unwrap_or(began) {
        return (Verdict::Unmeasured, since);
    }
    if !is_within(metric.range.unwrap_or(own), value) {
        return (Verdict::Outside, None);
    }
    let since = since.unwrap_or(at);
    let long_enough = metric.interval.unwrap_or(SignedDuration::ZERO);
    match at.duration_since(since) >= long_enough {
        true => (Verdict::Good, Some(since)),
        false => (Verdict::Soaking, Some(since)),
    }
}

fn is_within(range: Range, value: f64) -> bool {
    range.min.is_none_or(|min| value >= min) && range.max.is_none_or(|max| value <= max)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const OWN: Range = Range {
        min: None,
        max: Some(0.02),
    };

    fn at(minutes: i64) -> Timestamp {
        let noon: Timestamp = "2026-11-23T12:00:00Z".parse().unwrap();
        noon + SignedDuration::from_mins(minutes)
    }

    fn metric(minutes: Option<i64>, range: Option<Range>) -> Metric {
        Metric {
            name: "error-rate".into(),
            gatekeeper: "error-rate".into(),
            interval: minutes.map(SignedDuration::from_mins),
            range,
        }
    }

    fn measured(value: f64, minute: i64) -> Option<Measured> {
        Some(Measured {
            value,
            at: at(minute),
        })
    }

    #[rstest]
    #[case::nothing(None, Verdict::Blind)]
    #[case::no_number(measured(f64::NAN, 1), Verdict::Blind)]
    #[case::before_the_pods(measured(0.01, -1), Verdict::Unmeasured)]
    #[case::outside(measured(0.03, 1), Verdict::Outside)]
    #[case::at_the_limit(measured(0.02, 1), Verdict::Good)]
    #[case::within(measured(0.0, 0), Verdict::Good)]
    fn one_measurement(#[case] seen: Option<Measured>, #[case] expected: Verdict) {
        let (verdict, _) = judge(&metric(None, None), OWN, seen, at(0), None);
        assert_eq!(verdict, expected);
    }

    /// Another replica leads, which knows only an older value: nothing of the row is lost, and nothing is won.
    #[rstest]
    #[case::before_the_pods(measured(0.01, -1))]
    #[case::within(measured(0.01, 2))]
    #[case::outside(measured(0.5, 2))]
    fn a_value_from_before_the_row_changes_nothing_of_it(#[case] seen: Option<Measured>) {
        let since = Some(at(3));
        let row = metric(Some(5), None);
        let old = judge(&row, OWN, seen, at(0), since);
        assert_eq!(old, (Verdict::Unmeasured, since));
        let next = judge(&row, OWN, measured(0.01, 8), at(0), old.1);
        assert_eq!(next, (Verdict::Good, since));
    }

    #[test]
    fn a_range_of_its_own_counts_instead() {
        let own = Range {
            min: Some(0.1),
            max: None,
        };
        let metric = metric(None, Some(own));
        let verdict = |value| judge(&metric, OWN, measured(value, 1), at(0), None).0;
        assert_eq!(
            [verdict(0.2), verdict(0.01)],
            [Verdict::Good, Verdict::Outside]
        );
    }

    /// A value a minute, for five minutes in a row.
    #[test]
    fn a_row_has_to_be_long_enough() {
        let metric = metric(Some(5), None);
        let mut since = Some(at(-10));
        let mut look = |value, minute| {
            let (verdict, now) = judge(&metric, OWN, measured(value, minute), at(0), since);
            since = now;
            verdict
        };
        for minute in 0..4 {
            assert_eq!(look(0.01, minute), Verdict::Soaking, "{minute}");
        }
        // One value outside breaks it, and so does one that is missing.
        assert_eq!(look(0.5, 4), Verdict::Outside);
        assert_eq!(look(0.01, 5), Verdict::Soaking);
        assert_eq!(look(f64::NAN, 6), Verdict::Blind);
        for minute in 7..12 {
            assert_eq!(look(0.01, minute), Verdict::Soaking, "{minute}");
        }
        assert_eq!(look(0.01, 12), Verdict::Good);
        assert_eq!(since, Some(at(7)));
    }
}
