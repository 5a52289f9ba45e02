//! The deadline of a run: an instant in the status.
//!
//! What comes in: the deadline so far, and what has happened. What goes out: the deadline now. Progress
//! sets it again. While the run is held it stands still: when the hold ends, it moves by the length of the hold. No
//! timer is in memory, so that a restart changes nothing of it.

use jiff::{SignedDuration, Timestamp};

use crate::time::clock::{Now, Trust};
use crate::time::span::later;

/// The deadline of a run, and the hold that it may be in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// When the run fails. While it is held, that of the instant at which the hold began.
    pub at: Timestamp,
    /// Since when it is held.
    pub held_since: Option<Timestamp>,
}

impl Deadline {
    /// That of a run that has made progress at `now`, and may go on for so long without any.
    pub fn new(now: Timestamp, patience: SignedDuration) -> Self {
        Self {
            at: later(now, patience),
            held_since: None,
        }
    }

    /// After a look at which the run was held, or was not.
    #[must_use]
    pub fn look(self, is_held: bool, now: Timestamp) -> Self {
        match (self.held_since, is_held) {
            (None, false) | (Some(_), true) => self,
            (None, true) => Self {
                held_since: Some(now),
                ..self
            },
            (Some(since), false) => {
                // A clock that was set back behind the beginning of a hold takes nothing away.
                let length = now.duration_since(since).max(SignedDuration::ZERO);
                Self {
                    at: later(self.at, length),
                    held_since: None,
                }
            }
        }
    }

    /// Whether it has passed: not while the run is held, nor while the clock cannot be relied on, which may
    /// have been moved by an hour. A few seconds more or less are nothing here.
    pub fn has_passed(self, now: Now) -> bool {
        match (self.held_since, now.trust) {
            (Some(_), _) | (_, Trust::Lost(_)) => false,
            (None, Trust::Good | Trust::Drifting(_)) => self.at <= now.at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minutes: i64) -> Timestamp {
        let noon: Timestamp = "2026-11-23T12:00:00Z".parse().unwrap();
        noon + SignedDuration::from_mins(minutes)
    }

    fn ten() -> Deadline {
        Deadline::new(at(0), SignedDuration::from_mins(10))
    }

    fn given(minutes: i64) -> Now {
        Now::given(at(minutes))
    }

    #[test]
    fn it_passes_without_progress() {
        assert!(!ten().has_passed(given(9)));
        assert!(ten().has_passed(given(10)));
        let later = Deadline::new(at(9), SignedDuration::from_mins(10));
        assert!(!later.has_passed(given(18)));
    }

    /// A night long, and over a restart: nothing is kept but what the status has.
    #[test]
    fn it_stands_still_while_the_run_is_held() {
        let held = ten().look(true, at(4));
        assert!(!held.has_passed(given(900)));
        assert_eq!(held.look(true, at(500)), held);
        let goes_on = held.look(false, at(904));
        assert!(!goes_on.has_passed(given(909)));
        assert!(goes_on.has_passed(given(910)));
        assert_eq!(goes_on.look(false, at(905)), goes_on);
    }

    #[test]
    fn a_clock_that_is_set_back_takes_nothing_away() {
        let held = ten().look(true, at(4));
        assert_eq!(held.look(false, at(-60)).at, at(10));
    }

    #[test]
    fn it_does_not_pass_while_the_clock_is_doubted() {
        let passed = |trust| ten().has_passed(Now { at: at(60), trust });
        assert!(!passed(Trust::Lost(SignedDuration::from_hours(1))));
        assert!(passed(Trust::Drifting(SignedDuration::from_secs(9))));
        assert!(passed(Trust::Good));
    }
}
