//! EXDATE, RDATE, RECURRENCE-ID and STATUS.

use rstest::rstest;

use super::*;

/// Four Mondays in London, 09:00 to 10:00, on both sides of the change of the clocks.
const SERIES: &str = "UID:1\nDTSTART;TZID=Europe/London:20260316T090000\nDTEND;TZID=Europe/London:20260316T100000\nRRULE:FREQ=WEEKLY;COUNT=4\n";
const MONDAYS: [&str; 4] = [
    "2026-03-16T09:00/10:00",
    "2026-03-23T09:00/10:00",
    "2026-03-30T09:00/10:00",
    "2026-04-06T09:00/10:00",
];

#[rstest]
#[case::zoned("EXDATE;TZID=Europe/London:20260323T090000", &[0, 2, 3])]
#[case::utc("EXDATE:20260330T080000Z", &[0, 1, 3])]
#[case::another_zone("EXDATE;TZID=Europe/Berlin:20260330T100000", &[0, 1, 3])]
#[case::outlook_zone("EXDATE;TZID=GMT Standard Time:20260330T090000", &[0, 1, 3])]
#[case::date("EXDATE;VALUE=DATE:20260323", &[0, 2, 3])]
#[case::list("EXDATE;TZID=Europe/London:20260323T090000,20260406T090000", &[0, 2])]
#[case::lines("EXDATE:20260323T090000Z\nEXDATE:20260406T080000Z", &[0, 2])]
#[case::first("EXDATE:20260316T090000Z", &[1, 2, 3])]
#[case::another_time("EXDATE:20260323T093000Z", &[0, 1, 2, 3])]
fn instances_are_left_out(#[case] without: &str, #[case] expected: &[usize]) {
    let expected: Vec<&str> = expected.iter().map(|n| MONDAYS[*n]).collect();
    assert_eq!(
        in_2026(&format!("{SERIES}{without}"), "Europe/London"),
        expected
    );
}

#[rstest]
#[case::date("EXDATE;VALUE=DATE:20260102")]
#[case::midnight_as_outlook_has_it("EXDATE;TZID=W. Europe Standard Time:20260102T000000")]
#[case::midnight_in_utc("EXDATE:20260102T000000Z")]
#[case::instant_of_midnight("EXDATE:20260102T050000Z")]
fn days_are_left_out(#[case] without: &str) {
    let series = "DTSTART;VALUE=DATE:20260101\nRRULE:FREQ=DAILY;COUNT=3\n";
    let found = in_2026(&format!("{series}{without}"), "America/New_York");
    let expected = [
        "2026-01-01T00:00/2026-01-02T00:00",
        "2026-01-03T00:00/2026-01-04T00:00",
    ];
    assert_eq!(found, expected);
}

#[rstest]
#[case::times(
    "DTSTART:20260105T090000\nDTEND:20260105T100000\nRDATE:20260107T120000,20260109T140000Z",
    &["2026-01-05T09:00/10:00", "2026-01-07T12:00/13:00", "2026-01-09T14:00/15:00"]
)]
#[case::days(
    "DTSTART;VALUE=DATE:20260105\nRDATE;VALUE=DATE:20260107",
    &["2026-01-05T00:00/2026-01-06T00:00", "2026-01-07T00:00/2026-01-08T00:00"]
)]
#[case::periods(
    "DTSTART:20260105T090000\nDURATION:PT1H\nRDATE;VALUE=PERIOD:20260107T120000/20260107T150000,20260109T140000/PT2H",
    &["2026-01-05T09:00/10:00", "2026-01-07T12:00/15:00", "2026-01-09T14:00/16:00"]
)]
#[case::with_a_rule_counts_once(
    "DTSTART:20260105T090000\nDURATION:PT1H\nRRULE:FREQ=DAILY;COUNT=2\nRDATE:20260106T090000\nRDATE:20260110T090000",
    &["2026-01-05T09:00/10:00", "2026-01-06T09:00/10:00", "2026-01-10T09:00/10:00"]
)]
#[case::unless_left_out(
    "DTSTART:20260105T090000\nDURATION:PT1H\nRDATE:20260106T090000\nEXDATE:20260106T090000",
    &["2026-01-05T09:00/10:00"]
)]
fn dates_are_added(#[case] properties: &str, #[case] expected: &[&str]) {
    assert_eq!(in_2026(properties, "Europe/London"), expected);
}

/// The series, with another event beside it.
fn with(other: &str) -> Vec<String> {
    let text = calendar(&format!(
        "BEGIN:VEVENT\n{SERIES}END:VEVENT\nBEGIN:VEVENT\n{other}\nEND:VEVENT\n"
    ));
    let calendar = read(&text, "Europe/London").unwrap();
    year_2026(&calendar, "Europe/London")
}

#[rstest]
#[case::moved(
    "UID:1\nRECURRENCE-ID;TZID=Europe/London:20260330T090000\nDTSTART:20260331T080000Z\nDTEND:20260331T093000Z",
    &["2026-03-16T09:00/10:00", "2026-03-23T09:00/10:00", "2026-03-31T09:00/10:30", "2026-04-06T09:00/10:00"]
)]
#[case::moved_first_named_in_utc(
    "UID:1\nRECURRENCE-ID:20260316T090000Z\nDTSTART:20260317T090000\nDURATION:PT1H",
    &["2026-03-17T09:00/10:00", "2026-03-23T09:00/10:00", "2026-03-30T09:00/10:00", "2026-04-06T09:00/10:00"]
)]
#[case::named_by_its_day(
    "UID:1\nRECURRENCE-ID;VALUE=DATE:20260316\nDTSTART:20260317T090000\nDURATION:PT1H",
    &["2026-03-17T09:00/10:00", "2026-03-23T09:00/10:00", "2026-03-30T09:00/10:00", "2026-04-06T09:00/10:00"]
)]
#[case::cancelled(
    "UID:1\nRECURRENCE-ID:20260323T090000Z\nDTSTART:20260323T090000Z\nSTATUS:CANCELLED",
    &["2026-03-16T09:00/10:00", "2026-03-30T09:00/10:00", "2026-04-06T09:00/10:00"]
)]
#[case::of_another_series(
    "UID:2\nRECURRENCE-ID:20260323T090000Z\nDTSTART:20260324T090000Z\nDURATION:PT1H",
    &["2026-03-16T09:00/10:00", "2026-03-23T09:00/10:00", "2026-03-24T09:00/10:00",
      "2026-03-30T09:00/10:00", "2026-04-06T09:00/10:00"]
)]
fn an_instance_is_replaced(#[case] other: &str, #[case] expected: &[&str]) {
    assert_eq!(with(other), expected);
}

#[test]
fn an_instance_that_moved_far_is_found_where_it_is() {
    let other = "UID:1\nRECURRENCE-ID:20260323T090000Z\nDTSTART:20260901T080000Z\nDURATION:PT1H";
    assert_eq!(with(other).last().unwrap(), "2026-09-01T09:00/10:00");
}

#[test]
fn with_its_series_an_instance_is_cancelled() {
    let text = calendar(
        "BEGIN:VEVENT\nUID:1\nDTSTART:20260101\nRRULE:FREQ=DAILY\nSTATUS:CANCELLED\nEND:VEVENT\n\
         BEGIN:VEVENT\nUID:1\nRECURRENCE-ID:20260102\nDTSTART:20260103\nEND:VEVENT\n",
    );
    let calendar = read(&text, "UTC").unwrap();
    assert_eq!(calendar.events(), 0);
    let all = span("2020-01-01T00:00:00Z", "2030-01-01T00:00:00Z");
    assert_eq!(calendar.occurrences(all), Ok(vec![]));
}

#[test]
fn an_occurrence_tells_its_event() {
    let text = calendar(
        "BEGIN:VEVENT\nUID:1\nDTSTART:20260101\nRRULE:FREQ=DAILY;COUNT=3\nSUMMARY:Freeze\nEND:VEVENT\n\
         BEGIN:VEVENT\nUID:1\nRECURRENCE-ID:20260102\nDTSTART:20260102\nSUMMARY:Thaw\nEND:VEVENT\n",
    );
    let calendar = read(&text, "UTC").unwrap();
    let found = calendar
        .occurrences(span("2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"))
        .unwrap();
    let names: Vec<_> = found
        .iter()
        .map(|o| calendar.summary(o.event).unwrap())
        .collect();
    assert_eq!(names, ["Freeze", "Thaw", "Freeze"]);
}
