//! What the clocks on the wall do to a day: hours that they skip, and hours that they show twice.

use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, Offset};
use jiff::{SignedDuration, Timestamp};

use super::days::whole;
use crate::instant::Zone;

/// Behind a time of day that the clocks show for the second time.
pub(super) const SECOND_TIME: char = '*';

/// A change of the clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// They go forward: what lies between is no time of that day.
    Skips(DateTime, DateTime),
    /// They go back: what lies between is shown twice.
    Repeats(DateTime, DateTime),
}

impl Change {
    /// In words; `marked`, if a time beside it is.
    pub(super) fn text(self, marked: bool) -> String {
        let hours = |from: DateTime, to: DateTime| {
            let clock = |wall: DateTime| wall.strftime("%H:%M").to_string();
            format!("{}-{}", clock(from), clock(to))
        };
        match self {
            Change::Skips(from, to) => format!("the clocks skip {}", hours(from, to)),
            Change::Repeats(from, to) if marked => format!(
                "the clocks show {} twice; {SECOND_TIME} marks the second time",
                hours(from, to)
            ),
            Change::Repeats(from, to) => format!("the clocks show {} twice", hours(from, to)),
        }
    }
}

/// What the clocks do on `day`.
pub(super) fn changes(day: Date, zone: &Zone) -> Vec<Change> {
    let whole = whole(day, zone);
    let moment = SignedDuration::from_nanos(1);
    let before = |at: Timestamp| at.saturating_sub(moment).unwrap_or(at);
    let transitions = zone.zone.following(before(whole.start));
    let that_day = transitions.take_while(|change| change.timestamp() < whole.end);
    that_day
        .filter_map(|change| {
            let at = change.timestamp();
            change_at(at, zone.zone.to_offset(before(at)), change.offset())
        })
        .collect()
}

fn change_at(at: Timestamp, before: Offset, after: Offset) -> Option<Change> {
    let (old, new) = (before.to_datetime(at), after.to_datetime(at));
    match old.cmp(&new) {
        std::cmp::Ordering::Less => Some(Change::Skips(old, new)),
        std::cmp::Ordering::Equal => None,
        std::cmp::Ordering::Greater => Some(Change::Repeats(new, old)),
    }
}

/// A time of day as the clocks show it, marked where they show it for the second time; the end of
/// `day` is 24:00.
pub(super) fn clock_text(at: Timestamp, day: Date, zone: &Zone) -> String {
    let zoned = at.to_zoned(zone.zone.clone());
    if zoned.date() > day {
        return "24:00".to_owned();
    }
    let form = if zoned.second() == 0 {
        "%H:%M"
    } else {
        "%H:%M:%S"
    };
    let mut text = zoned.strftime(form).to_string();
    let readings = zone.zone.to_ambiguous_timestamp(zoned.datetime());
    if let AmbiguousOffset::Fold { after, .. } = readings.offset()
        && after == zoned.offset()
    {
        text.push(SECOND_TIME);
    }
    text
}
