//! Several revisions of one event.

use rstest::rstest;

use super::*;

/// The days of January 2026 that these events cover.
fn days(events: &[&str]) -> Vec<i8> {
    let components: String = events
        .iter()
        .map(|event| format!("BEGIN:VEVENT\n{event}\nEND:VEVENT\n"))
        .collect();
    let calendar = read(&calendar(&components), "UTC").unwrap();
    let january = span("2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z");
    let found = calendar.occurrences(january).unwrap();
    let start = |found: &Occurrence| found.span.start.to_zoned(TimeZone::UTC).day();
    found.iter().map(start).collect()
}

/// Two revisions of one event, on the 1st and on the 2nd.
#[rstest]
#[case::sequence("SEQUENCE:0", "SEQUENCE:1", &[2])]
#[case::sequence_is_a_number("SEQUENCE:10", "SEQUENCE:9", &[1])]
#[case::sequence_is_0_unless_it_is_written("SEQUENCE:1", "", &[1])]
#[case::negative("SEQUENCE:-1", "", &[2])]
#[case::sequence_before_stamps(
    "SEQUENCE:1\nDTSTAMP:20250101T000000Z", "SEQUENCE:0\nDTSTAMP:20250102T000000Z", &[1]
)]
#[case::stamp("DTSTAMP:20250101T000000Z", "DTSTAMP:20250101T000001Z", &[2])]
#[case::modified("LAST-MODIFIED:20250102T000000Z", "LAST-MODIFIED:20250101T000000Z", &[1])]
#[case::modified_of_one_stamp(
    "DTSTAMP:20250101T000000Z\nLAST-MODIFIED:20250101T000000Z",
    "DTSTAMP:20250101T000000Z\nLAST-MODIFIED:20250102T000000Z", &[2]
)]
#[case::stamp_before_modified(
    "DTSTAMP:20250102T000000Z\nLAST-MODIFIED:20250101T000000Z",
    "DTSTAMP:20250101T000000Z\nLAST-MODIFIED:20250102T000000Z", &[1]
)]
#[case::cancelled("SEQUENCE:1", "SEQUENCE:2\nSTATUS:CANCELLED", &[])]
#[case::cancelled_before("SEQUENCE:2", "SEQUENCE:1\nSTATUS:CANCELLED", &[1])]
// What nobody can tell apart counts.
#[case::nothing_tells("", "", &[1, 2])]
#[case::the_same("SEQUENCE:3\nDTSTAMP:20250101T000000Z", "SEQUENCE:3\nDTSTAMP:20250101T000000Z", &[1, 2])]
#[case::one_has_a_stamp("DTSTAMP:20250101T000000Z", "", &[1, 2])]
#[case::stamps_of_two_kinds("DTSTAMP:20250101T000000Z", "LAST-MODIFIED:20250101T000000Z", &[1, 2])]
#[case::on_some_clock("DTSTAMP:20250101T000000", "DTSTAMP:20250102T000000Z", &[1, 2])]
#[case::no_stamp("DTSTAMP:yesterday", "DTSTAMP:20250102T000000Z", &[1, 2])]
#[case::two_stamps("DTSTAMP:20250101T000000Z\nDTSTAMP:20250103T000000Z", "DTSTAMP:20250102T000000Z", &[1, 2])]
#[case::cancelled_at_once("", "STATUS:CANCELLED", &[1])]
fn the_newest_revision_counts(#[case] first: &str, #[case] second: &str, #[case] expected: &[i8]) {
    let (one, other) = (
        format!("UID:1\nDTSTART:20260101\n{first}"),
        format!("UID:1\nDTSTART:20260102\n{second}"),
    );
    assert_eq!(days(&[&one, &other]), expected);
    assert_eq!(days(&[&other, &one]), expected);
}

#[rstest]
#[case::of_another_event("UID:1\nSEQUENCE:0", "UID:2\nSEQUENCE:1")]
#[case::of_nothing("SEQUENCE:0", "SEQUENCE:1")]
#[case::without_a_name("UID:\nSEQUENCE:0", "UID:\nSEQUENCE:1")]
fn other_events_are_no_revisions(#[case] first: &str, #[case] second: &str) {
    let found = days(&[
        &format!("DTSTART:20260101\n{first}"),
        &format!("DTSTART:20260102\n{second}"),
    ]);
    assert_eq!(found, [1, 2]);
}

#[test]
fn instances_have_revisions_of_their_own() {
    const SERIES: &str = "UID:1\nDTSTART:20260101\nRRULE:FREQ=WEEKLY;COUNT=3\nSEQUENCE:9";
    let moved = |of: &str, to: &str, sequence: i64| {
        format!("UID:1\nRECURRENCE-ID:{of}\nDTSTART:{to}\nSEQUENCE:{sequence}")
    };
    // The series has a higher number, and is not a revision of its instance.
    let first = moved("20260108", "20260109", 1);
    assert_eq!(days(&[SERIES, &first]), [1, 9, 15]);
    let second = moved("20260108", "20260110", 2);
    assert_eq!(days(&[SERIES, &first, &second]), [1, 10, 15]);
    assert_eq!(days(&[&second, &first, SERIES]), [1, 10, 15]);
    let other = moved("20260115", "20260116", 0);
    assert_eq!(days(&[SERIES, &first, &other]), [1, 9, 16]);
    // The same instant, by another clock.
    let timed = "UID:1\nDTSTART:20260101T090000Z\nDURATION:PT1H\nRRULE:FREQ=WEEKLY;COUNT=2";
    let old = "UID:1\nRECURRENCE-ID:20260108T090000Z\nDTSTART:20260109T090000Z\nDURATION:PT1H";
    let new = "UID:1\nRECURRENCE-ID;TZID=Europe/Berlin:20260108T100000\nDTSTART:20260110T090000Z\nDURATION:PT1H\nSEQUENCE:1";
    assert_eq!(days(&[timed, old, new]), [1, 10]);
}

#[test]
fn an_older_revision_that_is_wrong_refuses_the_calendar() {
    let text = calendar(
        "BEGIN:VEVENT\nUID:1\nDTSTART:tomorrow\nEND:VEVENT\n\
         BEGIN:VEVENT\nUID:1\nDTSTART:20260101\nSEQUENCE:1\nEND:VEVENT\n",
    );
    assert!(read(&text, "UTC").is_err());
}

#[test]
fn older_revisions_are_not_events() {
    let event = |sequence: usize| {
        format!("BEGIN:VEVENT\nUID:1\nDTSTART:20260101\nSEQUENCE:{sequence}\nEND:VEVENT\n")
    };
    let text = calendar(&(0..MAX_EVENTS).map(event).collect::<String>());
    assert_eq!(read(&text, "UTC").unwrap().events(), 1);
}
