//! One event: its times, its zone, its length, and days on which the clocks change.

use rstest::rstest;

use super::*;

#[rstest]
#[case::with_an_end(
    "DTSTART:20260706T090000\nDTEND:20260706T170000",
    "2026-07-06T09:00/17:00"
)]
#[case::with_a_duration("DTSTART:20260706T090000\nDURATION:PT8H", "2026-07-06T09:00/17:00")]
#[case::utc(
    "DTSTART:20260706T090000Z\nDTEND:20260706T100000Z",
    "2026-07-06T10:00/11:00"
)]
#[case::zoned(
    "DTSTART;TZID=America/New_York:20260706T090000\nDTEND;TZID=America/New_York:20260706T100000",
    "2026-07-06T14:00/15:00"
)]
#[case::quoted_zone(
    "DTSTART;TZID=\"America/New_York\":20260706T090000\nDURATION:PT1H",
    "2026-07-06T14:00/15:00"
)]
#[case::outlook_zone(
    "DTSTART;TZID=Eastern Standard Time:20260706T090000\nDURATION:PT1H",
    "2026-07-06T14:00/15:00"
)]
#[case::unique_zone(
    "DTSTART;TZID=/example.org/1/America/New_York:20260706T090000\nDURATION:PT1H",
    "2026-07-06T14:00/15:00"
)]
#[case::two_zones(
    "DTSTART;TZID=America/New_York:20260706T090000\nDTEND:20260706T140000Z",
    "2026-07-06T14:00/15:00"
)]
#[case::a_day("DTSTART;VALUE=DATE:20260706", "2026-07-06T00:00/2026-07-07T00:00")]
#[case::a_day_by_its_form("DTSTART:20260706", "2026-07-06T00:00/2026-07-07T00:00")]
#[case::days(
    "DTSTART;VALUE=DATE:20260706\nDTEND;VALUE=DATE:20260709",
    "2026-07-06T00:00/2026-07-09T00:00"
)]
#[case::days_by_duration(
    "DTSTART;VALUE=DATE:20260706\nDURATION:P3D",
    "2026-07-06T00:00/2026-07-09T00:00"
)]
#[case::a_day_that_ends_on_itself(
    "DTSTART;VALUE=DATE:20260706\nDTEND;VALUE=DATE:20260706",
    "2026-07-06T00:00/2026-07-07T00:00"
)]
#[case::lower_case(
    "dtstart;tzid=america/new_york:20260706t090000\ndtend;value=date-time:20260706t140000z",
    "2026-07-06T14:00/15:00"
)]
fn an_event_covers_from_its_start_to_its_end(#[case] properties: &str, #[case] expected: &str) {
    assert_eq!(in_2026(properties, "Europe/London"), [expected]);
}

#[rstest]
#[case::no_end("DTSTART:20260706T090000")]
#[case::no_length("DTSTART:20260706T090000\nDTEND:20260706T090000")]
#[case::cancelled("DTSTART;VALUE=DATE:20260706\nSTATUS:CANCELLED")]
#[case::another_year("DTSTART;VALUE=DATE:20250706")]
fn an_event_without_length_covers_nothing(#[case] properties: &str) {
    assert_eq!(in_2026(properties, "Europe/London"), [""; 0]);
}

#[test]
fn events_that_take_no_time_do_not_count() {
    let dropped = [
        "DTSTART:20260706T090000\nRRULE:FREQ=DAILY",
        "DTSTART:20260706T090000\nDTEND:20260706T090000\nRRULE:FREQ=DAILY;COUNT=1000000",
        "DTSTART:20260706T090000\nDURATION:PT0S\nRDATE:20260707T090000",
    ];
    for properties in dropped {
        assert_eq!(read(&event(properties), "UTC").unwrap().events(), 0);
    }
    // A period has a length of its own.
    let period =
        "DTSTART:20260706T090000\nRDATE;VALUE=PERIOD:20260707T090000/PT1H\nRRULE:FREQ=DAILY";
    assert_eq!(read(&event(period), "UTC").unwrap().events(), 1);
    assert_eq!(in_2026(period, "UTC"), ["2026-07-07T09:00/10:00"]);
}

#[rstest]
// In London the clocks go forward on 2026-03-29 at 01:00 and back on 2026-10-25 at 02:00.
#[case::short_day(
    "DTSTART;VALUE=DATE:20260329",
    "2026-03-29T00:00+00:00/2026-03-30T00:00+01:00"
)]
#[case::long_day(
    "DTSTART;VALUE=DATE:20261025",
    "2026-10-25T00:00+01:00/2026-10-26T00:00+00:00"
)]
#[case::night_by_the_clock(
    "DTSTART:20260328T220000\nDTEND:20260329T060000",
    "2026-03-28T22:00+00:00/2026-03-29T06:00+01:00"
)]
#[case::night_elapsed(
    "DTSTART:20260328T220000\nDURATION:PT8H",
    "2026-03-28T22:00+00:00/2026-03-29T07:00+01:00"
)]
#[case::a_day_by_the_clock(
    "DTSTART:20260328T220000\nDURATION:P1D",
    "2026-03-28T22:00+00:00/2026-03-29T22:00+01:00"
)]
#[case::a_day_elapsed(
    "DTSTART:20260328T220000\nDURATION:PT24H",
    "2026-03-28T22:00+00:00/2026-03-29T23:00+01:00"
)]
#[case::starts_in_the_gap(
    "DTSTART:20260329T013000\nDTEND:20260329T030000",
    "2026-03-29T02:00/03:00"
)]
#[case::ends_in_the_gap(
    "DTSTART:20260329T003000\nDTEND:20260329T013000",
    "2026-03-29T00:30+00:00/02:00+01:00"
)]
#[case::starts_in_the_overlap(
    "DTSTART:20261025T013000\nDTEND:20261025T030000",
    "2026-10-25T01:30+01:00/03:00+00:00"
)]
#[case::ends_in_the_overlap(
    "DTSTART:20261025T003000\nDTEND:20261025T013000",
    "2026-10-25T00:30/01:30"
)]
fn clocks_that_change_in_london(#[case] properties: &str, #[case] expected: &str) {
    assert_eq!(in_2026(properties, "Europe/London"), [expected]);
}

#[rstest]
// In New York they go forward on 2026-03-08 at 02:00 and back on 2026-11-01 at 02:00.
#[case::gap("DTSTART:20260308T023000\nDURATION:PT1H", "2026-03-08T03:00/04:00")]
#[case::overlap(
    "DTSTART:20261101T013000\nDURATION:PT1H",
    "2026-11-01T01:30-04:00/01:30-05:00"
)]
#[case::overlap_ends_in_utc(
    "DTSTART:20261031T220000\nDTEND:20261101T063000Z",
    "2026-10-31T22:00-04:00/2026-11-01T01:30-05:00"
)]
#[case::night(
    "DTSTART:20261031T220000\nDTEND:20261101T060000",
    "2026-10-31T22:00-04:00/2026-11-01T06:00-05:00"
)]
fn clocks_that_change_in_new_york(#[case] properties: &str, #[case] expected: &str) {
    assert_eq!(in_2026(properties, "America/New_York"), [expected]);
}

/// What the clocks skip as a whole lasts as long as ever, from the first instant after the gap, as it
/// does for cron.
#[rstest]
#[case::part_of_the_gap(
    "DTSTART:20260308T021500\nDTEND:20260308T024500",
    &["2026-03-08T03:00/03:30"]
)]
#[case::the_gap("DTSTART:20260308T020000\nDTEND:20260308T030000", &["2026-03-08T03:00/04:00"])]
#[case::every_day(
    "DTSTART:20260307T020000\nDTEND:20260307T030000\nRRULE:FREQ=DAILY;COUNT=3",
    &["2026-03-07T02:00/03:00", "2026-03-08T03:00/04:00", "2026-03-09T02:00/03:00"]
)]
#[case::a_period(
    "DTSTART:20260307T020000\nDURATION:PT1H\nRDATE;VALUE=PERIOD:20260308T020000/20260308T023000",
    &["2026-03-07T02:00/03:00", "2026-03-08T03:00/03:30"]
)]
#[case::a_minute_more_ends_by_the_clock(
    "DTSTART:20260308T020000\nDTEND:20260308T030100",
    &["2026-03-08T03:00/03:01"]
)]
fn what_the_clocks_skip_is_not_lost(#[case] properties: &str, #[case] expected: &[&str]) {
    assert_eq!(in_2026(properties, "America/New_York"), expected);
}

#[test]
fn an_end_before_the_start_is_refused_also_in_a_gap() {
    let text = event("DTSTART:20260308T024500\nDTEND:20260308T021500");
    let refusal = read(&text, "America/New_York").unwrap_err().to_string();
    assert!(refusal.contains("DTEND: is before DTSTART"), "{refusal}");
}

#[test]
fn occurrences_are_those_that_overlap_and_they_are_not_cut() {
    let calendar = read(&event("DTSTART:20260706T090000Z\nDURATION:PT8H"), "UTC").unwrap();
    let count = |from, until| calendar.occurrences(span(from, until)).unwrap();
    let whole = Occurrence {
        span: span("2026-07-06T09:00:00Z", "2026-07-06T17:00:00Z"),
        event: 0,
    };
    assert_eq!(
        count("2026-07-06T16:59:59Z", "2026-07-06T17:00:00Z"),
        [whole]
    );
    assert_eq!(
        count("2026-07-06T00:00:00Z", "2026-07-06T09:00:01Z"),
        [whole]
    );
    assert_eq!(count("2026-07-06T17:00:00Z", "2026-07-07T00:00:00Z"), []);
    assert_eq!(count("2026-07-06T00:00:00Z", "2026-07-06T09:00:00Z"), []);
    assert_eq!(count("2026-07-06T12:00:00Z", "2026-07-06T12:00:00Z"), []);
    assert_eq!(count("2026-07-07T00:00:00Z", "2026-07-06T00:00:00Z"), []);
}

#[test]
fn a_zone_may_be_named_by_its_place() {
    let text = calendar(
        "BEGIN:VTIMEZONE\nTZID:Head office\nX-LIC-LOCATION:Europe/Berlin\nBEGIN:STANDARD\nTZOFFSETTO:+0100\nEND:STANDARD\nEND:VTIMEZONE\n\
         BEGIN:VEVENT\nDTSTART;TZID=Head office:20260706T090000\nDURATION:PT1H\nEND:VEVENT\n",
    );
    let calendar = read(&text, "UTC").unwrap();
    let found = year_2026(&calendar, "Europe/Berlin");
    assert_eq!(found, ["2026-07-06T09:00/10:00"]);
}

#[test]
fn summaries_are_cleaned_and_cut() {
    let long = "x".repeat(100);
    let text = calendar(&format!(
        "BEGIN:VEVENT\nDTSTART:20260101\nSUMMARY:Change\\, freeze\\n\u{1b}[31m \u{202e}now\nEND:VEVENT\n\
         BEGIN:VEVENT\nDTSTART:20260101\nsummary:In lower\\, case\nEND:VEVENT\n\
         BEGIN:VEVENT\nDTSTART:20260101\nSUMMARY:{long}\nEND:VEVENT\n\
         BEGIN:VEVENT\nDTSTART:20260101\nSUMMARY:\nEND:VEVENT\n"
    ));
    let calendar = read(&text, "UTC").unwrap();
    assert_eq!(calendar.events(), 4);
    assert_eq!(calendar.summary(0), Some("Change, freeze [31m now"));
    assert_eq!(calendar.summary(1), Some("In lower, case"));
    let cut = calendar.summary(2).unwrap();
    assert_eq!((cut.chars().count(), cut.ends_with('…')), (80, true));
    assert_eq!((calendar.summary(3), calendar.summary(4)), (None, None));
}

#[test]
fn the_digest_is_that_of_the_text() {
    let text = event("DTSTART:20260101");
    let calendar = read(&text, "UTC").unwrap();
    // As sha256sum has it.
    assert_eq!(calendar.digest(), "64e4f8547aef");
    let other = read(&text.replace('\n', "\r\n"), "UTC").unwrap();
    assert_ne!(calendar.digest(), other.digest());
}
