//! The instant of a decision, and whether the clock that it was read from can be relied on.

use jiff::{SignedDuration, Timestamp};

/// Above this difference from the API server's clock, the difference is reported.
pub const REPORTED: SignedDuration = SignedDuration::from_secs(5);
/// Above this difference, nothing is open any more by time alone.
pub const LOST: SignedDuration = SignedDuration::from_secs(30);

/// How far a clock can be relied on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// As far as anyone knows it is right.
    Good,
    /// It differs from the API server's by more than [`REPORTED`].
    Drifting(SignedDuration),
    /// It differs from the API server's by more than [`LOST`].
    Lost(SignedDuration),
}

impl Trust {
    /// What a difference (ours less the API server's) means. The API server's `Date` is in whole
    /// seconds, so that up to one second of difference is none.
    pub fn from_difference(difference: SignedDuration) -> Self {
        let size = difference.abs();
        if size > LOST {
            Trust::Lost(difference)
        } else if size > REPORTED {
            Trust::Drifting(difference)
        } else {
            Trust::Good
        }
    }
}

/// The instant of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// The instant.
    pub at: Timestamp,
    /// How far the clock that it was read from can be relied on.
    pub trust: Trust,
}

impl Now {
    /// An instant that is given, not measured: a simulation's, a test's.
    pub fn given(at: Timestamp) -> Self {
        Self {
            at,
            trust: Trust::Good,
        }
    }

    /// The same clock at another instant.
    #[must_use]
    pub fn moved_to(self, at: Timestamp) -> Self {
        Self { at, ..self }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(0, "good")]
    #[case(5, "good")]
    #[case(-6, "drifting")]
    #[case(30, "drifting")]
    #[case(31, "lost")]
    #[case(-3600, "lost")]
    fn a_clock_is_judged_by_its_difference(#[case] seconds: i64, #[case] expected: &str) {
        let trust = match Trust::from_difference(SignedDuration::from_secs(seconds)) {
            Trust::Good => "good",
            Trust::Drifting(_) => "drifting",
            Trust::Lost(_) => "lost",
        };
        assert_eq!(trust, expected);
    }
}
