//! iCalendar files, and the times that their events cover.

use bolero::TypeGenerator;
use jiff::{SignedDuration, Timestamp};
use sluice_core::time::calendar::{Calendar, MAX_DAYS, MAX_OCCURRENCES, Occurrence};
use sluice_core::time::span::Span;
use sluice_core::time::zone;

use super::target::Target;

pub const TARGET: Target = Target {
    name: "calendar",
    words: &[
        "BEGIN:VEVENT\n",
        "END:VEVENT\n",
        "BEGIN:VALARM\n",
        "END:VALARM\n",
        "BEGIN:VTIMEZONE\nTZID:Custom\nX-LIC-LOCATION:Europe/Berlin\nEND:VTIMEZONE\n",
        "BEGIN:VTIMEZONE\nTZID:Own\nEND:VTIMEZONE\n",
        "BEGIN:STANDARD\nDTSTART:16011028T030000\nRRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=10\nTZOFFSETFROM:+0200\nTZOFFSETTO:+0100\nEND:STANDARD\n",
        "BEGIN:DAYLIGHT\nDTSTART:16010325T020000\nRRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=3\nTZOFFSETFROM:+0100\nTZOFFSETTO:+0200\nEND:DAYLIGHT\n",
        "TZOFFSETTO:-1130\n",
        "UID:1\n",
        "UID:2\n",
        "SUMMARY:\\, \\n \u{202e}\n",
        "DTSTART:20260301\n",
        "DTSTART:20260329T013000Z\n",
        "DTSTART;TZID=Europe/London:20261025T013000\n",
        "DTEND:20260302\n",
        "DURATION:PT90M\n",
        "DURATION:P1W\n",
        "RRULE:FREQ=DAILY\n",
        "RRULE:FREQ=HOURLY;INTERVAL=5\n",
        "RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=3,10\n",
        "RDATE;VALUE=PERIOD:20260303T000000Z/PT1H\n",
        "EXDATE:20260304\n",
        "RECURRENCE-ID:20260305\n",
        "STATUS:CANCELLED\n",
        "SEQUENCE:2\n",
        "DTSTAMP:20260101T000000Z\n",
        "RRULE:\n",
        ";COUNT=3",
        ";UNTIL=20270101",
        ";INTERVAL=2",
        ";BYDAY=MO,2TU",
        ";BYMONTHDAY=-1",
        ";BYSETPOS=1,-1",
        ";BYWEEKNO=53",
        ";BYYEARDAY=366",
        ";BYHOUR=1,2",
        ";BYMINUTE=0,30",
        ";WKST=SU",
        ";TZID=Custom",
        ";TZID=Own",
        ";TZID=\"UTC+05:45\"",
        ";VALUE=DATE",
        "FREQ=WEEKLY",
        "FREQ=MONTHLY",
        "FREQ=MINUTELY",
        "FREQ=SECONDLY",
        "99991231",
        "00010101",
        "20240229",
        "T240000",
        "Z",
        "\r\n",
        "\n ",
        "\0",
        "ä",
        "\u{feff}",
        "\"",
    ],
    texts: 1_200,
};

const ZONES: [&str; 4] = [
    "UTC",
    "America/New_York",
    "Australia/Lord_Howe",
    "Pacific/Apia",
];

/// Which span to ask about, and in which zone the calendar is.
#[derive(Debug, TypeGenerator)]
pub struct Question {
    zone: u8,
    /// A second between 2020 and 2040.
    #[generator(1_577_836_800..2_208_988_800_i64)]
    from: i64,
    /// In minutes: up to two years.
    #[generator(1..=2 * 366 * 24 * 60_i64)]
    length: i64,
    /// Where to cut the span in two, in parts of 256.
    part: u8,
}

impl Default for Question {
    /// The year 2026.
    fn default() -> Self {
        Self {
            zone: 0,
            from: 1_767_225_600,
            length: 365 * 24 * 60,
            part: 128,
        }
    }
}

impl Question {
    fn span(&self) -> Span {
        let start = Timestamp::from_second(self.from).unwrap();
        let end = start + SignedDuration::from_mins(self.length);
        Span { start, end }
    }

    fn parts(&self) -> [Span; 2] {
        let Span { start, end } = self.span();
        let middle = start + end.duration_since(start) * i32::from(self.part) / 256;
        [Span { start, end: middle }, Span { start: middle, end }]
    }
}

/// What it covers is right in itself, does not depend on how one asks, nor on how lines are
/// folded.
pub fn holds(text: &str, question: &Question) -> bool {
    let zone = zone::find(ZONES[usize::from(question.zone) % ZONES.len()]).unwrap();
    let Ok(calendar) = Calendar::parse(text, &zone) else {
        return false;
    };
    names_are_short(&calendar);
    let within = question.span();
    let found = calendar.occurrences(within);
    let folded = Calendar::read(&folded(text), &zone).map(|calendar| calendar.occurrences(within));
    assert_eq!(folded.as_ref(), Ok(&found), "folded: {text:?}");
    let Ok(found) = found else {
        return true;
    };
    occurrences_are_right(&found, &calendar, within);
    for part in question.parts() {
        if part.is_empty() {
            continue;
        }
        let inside = |occurrence: &&Occurrence| occurrence.span.within(&part).is_some();
        let expected: Vec<_> = found.iter().filter(inside).copied().collect();
        assert_eq!(calendar.occurrences(part), Ok(expected), "within {part:?}");
    }
    true
}

fn names_are_short(calendar: &Calendar) {
    for event in 0..calendar.events() {
        let name = calendar.summary(u16::try_from(event).unwrap());
        let name = name.unwrap_or_default();
        assert!(name.chars().count() <= 80, "{name:?}");
        assert!(!name.contains(char::is_control), "{name:?}");
    }
}

fn occurrences_are_right(found: &[Occurrence], calendar: &Calendar, within: Span) {
    assert!(found.len() <= MAX_OCCURRENCES);
    assert!(found.is_sorted_by(|one, next| one < next));
    // A day of a change of the clocks may have more hours.
    let longest = SignedDuration::from_hours((MAX_DAYS + 1) * 24);
    for Occurrence { span, event } in found {
        assert!(span.within(&within).is_some(), "{span:?}");
        assert!(span.end.duration_since(span.start) <= longest, "{span:?}");
        assert!(usize::from(*event) < calendar.events());
    }
}

/// The same text with its lines folded, as many programs write it, also inside of characters: RFC
/// 5545, 3.1.
fn folded(text: &str) -> Vec<u8> {
    let mut folded = Vec::new();
    for line in text.split_inclusive('\n') {
        let place = line.trim_end().len().min(20);
        let (start, end) = line.as_bytes().split_at(place);
        folded.extend_from_slice(start);
        if place < line.trim_end().len() {
            folded.extend_from_slice(b"\r\n\t");
        }
        folded.extend_from_slice(end);
    }
    folded
}
