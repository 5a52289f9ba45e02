//! For every text, nothing panics, and the result is consistent in itself.

use jiff::SignedDuration;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;

const OUTLOOK: &str = include_str!("../../../../tests/calendars/outlook.ics");
const LINES: &[&str] = &[
    "BEGIN:VCALENDAR",
    "END:VCALENDAR",
    "BEGIN:VEVENT",
    "END:VEVENT",
    "BEGIN:VTIMEZONE",
    "END:VTIMEZONE",
    "begin:",
    "END",
    "UID:1",
    "DTSTART:20260101",
    "DTSTART;VALUE=DATE:20260329",
    "DTSTART;TZID=Europe/London:20260329T013000",
    "DTSTART;TZID=\"a:b",
    "DTEND:20260330",
    "DURATION:PT8H",
    "DURATION:-P",
    "RRULE:FREQ=DAILY",
    "RRULE:FREQ=WEEKLY;BYDAY=é",
    "RRULE:FREQ=HOURLY;COUNT=9;BYHOUR=1",
    "EXDATE:20260102,",
    "RDATE:20260103/P1D",
    "RECURRENCE-ID:20260101",
    "STATUS:CANCELLED",
    "SEQUENCE:1",
    "DTSTAMP:20260101T000000Z",
    "BEGIN:STANDARD",
    "END:STANDARD",
    "BEGIN:DAYLIGHT",
    "END:DAYLIGHT",
    "DTSTART:20260329T020000",
    "TZOFFSETFROM:+0100",
    "TZOFFSETTO:+0100",
    "TZOFFSETTO:+0200",
    "RRULE:FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU",
    "DTSTART;TZID=x:20260329T013000",
    "TZID:x",
    "X-LIC-LOCATION:y",
    ":",
    ";",
    " ",
    "\t",
    "\r",
    "\u{feff}",
    "SUMMARY:\\",
    "summary:\\n",
];

/// Reads a text and asks for its occurrences; every result is consistent in itself.
fn check(text: &str) -> Result<(), TestCaseError> {
    let Ok(calendar) = read(text, "America/New_York") else {
        return Ok(());
    };
    for event in 0..=u16::MAX {
        let Some(summary) = calendar.summary(event) else {
            break;
        };
        prop_assert!(summary.chars().count() <= 80 && !summary.contains(|c: char| c.is_control()));
    }
    let within = super::span("2026-03-01T00:00:00Z", "2026-04-15T00:00:00Z");
    let Ok(found) = calendar.occurrences(within) else {
        return Ok(());
    };
    prop_assert!(found.len() <= MAX_OCCURRENCES);
    prop_assert!(found.is_sorted());
    for Occurrence { span, event } in found {
        prop_assert!(span.within(&within).is_some());
        prop_assert!(
            span.end.duration_since(span.start) <= SignedDuration::from_hours(24 * 366 + 24)
        );
        prop_assert!(usize::from(event) < calendar.events());
    }
    Ok(())
}

/// A change to a text: where, as a part of its length, and what.
#[derive(Clone, Debug)]
enum Edit {
    Remove(f64, usize),
    Insert(f64, String),
    CutAt(f64),
    Line(f64, &'static str),
    SwapLines(f64, f64),
}

fn edit() -> impl Strategy<Value = Edit> {
    let at = || 0.0..1.0_f64;
    prop_oneof![
        (at(), 1..20_usize).prop_map(|(at, n)| Edit::Remove(at, n)),
        (at(), "[A-Z0-9:;=,/\\\\ \r\nTZé-]{1,6}").prop_map(|(at, text)| Edit::Insert(at, text)),
        at().prop_map(Edit::CutAt),
        (at(), select(LINES)).prop_map(|(at, line)| Edit::Line(at, line)),
        (at(), at()).prop_map(|(a, b)| Edit::SwapLines(a, b)),
    ]
}

fn apply(text: &str, edit: &Edit) -> String {
    let place = |at: f64, of: usize| ((at * of as f64) as usize).min(of.saturating_sub(1));
    let mut characters: Vec<char> = text.chars().collect();
    let mut lines: Vec<&str> = text.lines().collect();
    let length = characters.len();
    match edit {
        _ if length == 0 || lines.is_empty() => return text.to_owned(),
        Edit::Remove(at, n) => {
            let from = place(*at, length);
            characters.drain(from..(from + n).min(length));
        }
        Edit::Insert(at, new) => {
            let from = place(*at, length);
            characters.splice(from..from, new.chars());
        }
        Edit::CutAt(at) => characters.truncate(place(*at, length)),
        Edit::Line(at, new) => {
            lines.insert(place(*at, lines.len()), new);
            return lines.join("\n");
        }
        Edit::SwapLines(a, b) => {
            let (a, b) = (place(*a, lines.len()), place(*b, lines.len()));
            lines.swap(a, b);
            return lines.join("\n");
        }
    }
    characters.into_iter().collect()
}

proptest! {
    #[test]
    fn bytes_are_harmless(bytes in vec(any::<u8>(), 0..400)) {
        check(&String::from_utf8_lossy(&bytes))?;
        check(&event(&String::from_utf8_lossy(&bytes)))?;
    }

    #[test]
    fn lines_in_any_order_are_harmless(lines in vec(select(LINES), 0..40)) {
        check(&lines.join("\n"))?;
        check(&event(&lines.join("\n")))?;
    }

    #[test]
    fn a_changed_calendar_is_harmless(edits in vec(edit(), 1..8)) {
        check(&edits.iter().fold(OUTLOOK.to_owned(), |text, edit| apply(&text, edit)))?;
    }

    /// Values that are nearly right.
    #[test]
    fn values_are_harmless(
        name in select(&["DTSTART", "DTEND", "DURATION", "RRULE", "RDATE", "EXDATE", "RECURRENCE-ID"][..]),
        value in "[0-9TZP/,;=:+-]{0,24}|FREQ=(DAILY|WEEKLY|MONTHLY|YEARLY|HOURLY)(;(BYDAY|COUNT|BYSETPOS|BYMONTHDAY|INTERVAL|BYWEEKNO)=[-+0-9MOTUFR,]{1,6}){0,3}",
    ) {
        check(&event(&format!("UID:1\nDTSTART:20260101T090000\n{name}:{value}")))?;
        check(&event(&format!("DTSTART:20260101\n{name}:{value}")))?;
    }
}
