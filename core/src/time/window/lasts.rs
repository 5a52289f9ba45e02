//! How long a window lasts that starts at a minute of a day.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::time::span::{earlier, later};
use crate::time::zone;

pub(super) const MINUTE: SignedDuration = SignedDuration::from_mins(1);
pub(super) const DAY: SignedDuration = SignedDuration::from_hours(24);
const MINUTES_A_DAY: u16 = 1440;

/// How long each occurrence lasts.
#[derive(Clone, Copy, Debug)]
pub(super) enum Lasts {
    /// The minute that matches, each time that the clock shows it.
    Minute,
    /// Elapsed time.
    For(SignedDuration),
    /// Until the clock shows a minute of the day, less `shortened`.
    Until {
        minute: u16,
        shortened: SignedDuration,
    },
}

impl Lasts {
    /// When it ends that starts at `minute`, both counted from the midnight of a regular day.
    pub fn end(self, minute: u16) -> SignedDuration {
        match self {
            Lasts::Minute => MINUTE * (i32::from(minute) + 1),
            Lasts::For(duration) => MINUTE * i32::from(minute) + duration,
            Lasts::Until {
                minute: until,
                shortened,
            } => MINUTE * i32::from(minute + minutes_until(minute, until)) - shortened,
        }
    }

    /// How far behind an instant something may have started that still lasts.
    pub fn longest(self) -> SignedDuration {
        match self {
            Lasts::Minute => SignedDuration::ZERO,
            Lasts::For(duration) => duration,
            // A day on the clock, in which the clocks are turned back by at most a day.
            Lasts::Until { .. } => DAY * 2,
        }
    }

    /// The ends of what starts on `day`, on which the clocks may be changed.
    pub fn on(self, day: Date, zone: &TimeZone) -> Ends {
        let at = |day: Date, minute: u16| {
            let (hour, of_hour) = (
                i8::try_from(minute / 60).ok()?,
                i8::try_from(minute % 60).ok()?,
            );
            zone::resolve(zone, day.at(hour, of_hour, 0, 0))
        };
        match self {
            Lasts::Minute => Ends::For(MINUTE),
            Lasts::For(duration) => Ends::For(duration),
            Lasts::Until { minute, shortened } => Ends::Until {
                minute,
                shortened,
                same_day: at(day, minute),
                next_day: day.tomorrow().ok().and_then(|next| at(next, minute)),
            },
        }
    }
}

/// When it ends what starts on one day.
pub(super) enum Ends {
    /// So long after its start.
    For(SignedDuration),
    /// When the clock shows `minute` on that day, or on the next, less `shortened`.
    Until {
        minute: u16,
        shortened: SignedDuration,
        same_day: Option<Timestamp>,
        next_day: Option<Timestamp>,
    },
}

impl Ends {
    /// The end of what starts at `start`, which the clock should show as `minute`. What the clocks
    /// skip as a whole lasts as long as they would have shown.
    pub fn after(&self, start: Timestamp, minute: u16) -> Timestamp {
        match *self {
            Ends::For(duration) => later(start, duration),
            Ends::Until {
                minute: until,
                shortened,
                same_day,
                next_day,
            } => {
                let end = if until > minute { same_day } else { next_day };
                let as_long = || later(start, MINUTE * i32::from(minutes_until(minute, until)));
                let end = end.filter(|end| *end > start).unwrap_or_else(as_long);
                earlier(end, shortened)
            }
        }
    }
}

/// How many minutes after `minute` the clock shows `until`: at least one, at most a day.
pub(super) fn minutes_until(minute: u16, until: u16) -> u16 {
    match until > minute {
        true => until - minute,
        false => MINUTES_A_DAY - minute + until,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn until_is_later_today_or_else_tomorrow() {
        assert_eq!(minutes_until(120, 240), 120);
        assert_eq!(minutes_until(1320, 240), 360);
        assert_eq!(minutes_until(240, 240), 1440);
        assert_eq!(minutes_until(0, 1439), 1439);
        assert_eq!(minutes_until(1439, 0), 1);
    }
}
