//! RRULE.

use rstest::rstest;

use super::*;

/// The days of 2026 on which a whole-day event recurs that first takes place on `start`.
fn days(start: &str, rule: &str) -> Vec<String> {
    let found = in_2026(&format!("DTSTART;VALUE=DATE:{start}\nRRULE:{rule}"), "UTC");
    found.iter().map(|span| span[..10].to_owned()).collect()
}

/// In New York the hour from 01:00 is shown twice on 2026-11-01, from 05:00Z and from 06:00Z. What
/// begins in it begins the first time.
#[rstest]
#[case::before("20261101T054459Z", 2)]
#[case::at_its_instant("20261101T054500Z", 3)]
#[case::in_the_second_hour("20261101T063000Z", 3)]
#[case::at_the_same_reading_again("20261101T064500Z", 3)]
fn until_is_an_instant(#[case] until: &str, #[case] count: usize) {
    let event = event(&format!(
        "DTSTART;TZID=America/New_York:20261030T014500\nDURATION:PT1H\nRRULE:FREQ=DAILY;UNTIL={until}"
    ));
    let calendar = read(&event, "UTC").unwrap();
    let november = span("2026-10-01T00:00:00Z", "2026-12-01T00:00:00Z");
    assert_eq!(calendar.occurrences(november).unwrap().len(), count);
}

#[rstest]
#[case::daily_until("20260101", "FREQ=DAILY;UNTIL=20260103", "01-01 01-02 01-03")]
#[case::daily_count("20260101", "FREQ=DAILY;COUNT=3", "01-01 01-02 01-03")]
#[case::every_third_day("20260101", "FREQ=DAILY;INTERVAL=3;COUNT=4", "01-01 01-04 01-07 01-10")]
#[case::weekly_by_its_day("20260105", "FREQ=WEEKLY;COUNT=3", "01-05 01-12 01-19")]
#[case::weekly_on_days(
    "20260105",
    "FREQ=WEEKLY;BYDAY=MO,FR;COUNT=4",
    "01-05 01-09 01-12 01-16"
)]
#[case::lower_case("20260105", "freq=weekly;byday=mo,fr;count=2", "01-05 01-09")]
// RFC 5545, section 3.8.5.3, at the end: where weeks begin matters.
#[case::weeks_from_monday(
    "20260106",
    "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=MO",
    "01-06 01-11 01-20 01-25"
)]
#[case::weeks_from_sunday(
    "20260106",
    "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=SU",
    "01-06 01-18 01-20 02-01"
)]
#[case::monthly_by_its_day("20260131", "FREQ=MONTHLY;COUNT=3", "01-31 03-31 05-31")]
#[case::last_of_month("20260131", "FREQ=MONTHLY;BYMONTHDAY=-1;COUNT=3", "01-31 02-28 03-31")]
#[case::third_saturday("20260117", "FREQ=MONTHLY;BYDAY=3SA;COUNT=3", "01-17 02-21 03-21")]
#[case::last_friday("20260130", "FREQ=MONTHLY;BYDAY=-1FR;COUNT=3", "01-30 02-27 03-27")]
#[case::fifth_saturday("20260131", "FREQ=MONTHLY;BYDAY=5SA;COUNT=3", "01-31 05-30 08-29")]
#[case::numbered_and_plain(
    "20260105",
    "FREQ=MONTHLY;BYDAY=MO,2TU;COUNT=6",
    "01-05 01-12 01-13 01-19 01-26 02-02"
)]
#[case::friday_13("20260213", "FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13", "02-13 03-13 11-13")]
#[case::last_working_day(
    "20260130",
    "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1;COUNT=3",
    "01-30 02-27 03-31"
)]
#[case::second_day_of_each_week(
    "20260107",
    "FREQ=WEEKLY;BYDAY=MO,WE,FR;BYSETPOS=2;COUNT=2",
    "01-07 01-14"
)]
#[case::quarters("20260101", "FREQ=YEARLY;BYMONTH=1,4,7,10", "01-01 04-01 07-01 10-01")]
#[case::day_100("20260410", "FREQ=YEARLY;BYYEARDAY=100,-1", "04-10 12-31")]
#[case::week_20("20250513", "FREQ=YEARLY;BYWEEKNO=20", "05-12")]
#[case::week_20_monday("20260511", "FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO", "05-11")]
// 29 December 2025 is in week 1 of 2026, and in the year 2025.
#[case::every_other_week_1("20241230", "FREQ=YEARLY;INTERVAL=2;BYWEEKNO=1;BYDAY=MO,TH", "01-01")]
#[case::last_week("20251222", "FREQ=YEARLY;BYWEEKNO=-1;BYDAY=MO", "12-28")]
#[case::thanksgiving("20231123", "FREQ=YEARLY;BYMONTH=11;BYDAY=4TH", "11-26")]
#[case::day_of_every_month("20260113", "FREQ=YEARLY;BYMONTHDAY=13;COUNT=3", "01-13 02-13 03-13")]
#[case::leap_day("20240229", "FREQ=YEARLY", "")]
#[case::every_other_year("20240301", "FREQ=YEARLY;INTERVAL=2", "03-01")]
#[case::odd_year("20230301", "FREQ=YEARLY;INTERVAL=2", "")]
#[case::every_18_months("20241001", "FREQ=MONTHLY;INTERVAL=18", "04-01")]
#[case::months_of_days("20260101", "FREQ=DAILY;BYMONTH=1;BYMONTHDAY=1,15", "01-01 01-15")]
#[case::first_does_not_match("20260101", "FREQ=WEEKLY;BYDAY=FR;COUNT=3", "01-01 01-02 01-09")]
#[case::ended_long_ago("19700101", "FREQ=DAILY;UNTIL=20251231", "")]
#[case::ended_before_it_began("20260105", "FREQ=DAILY;UNTIL=20260101", "")]
#[case::one("20260105", "FREQ=DAILY;COUNT=1", "01-05")]
fn days_of_2026(#[case] start: &str, #[case] rule: &str, #[case] expected: &str) {
    let expected: Vec<String> = expected
        .split_whitespace()
        .map(|day| format!("2026-{day}"))
        .collect();
    assert_eq!(days(start, rule), expected);
}

/// Whole days end with a date. Some programs write a time instead, in UTC or by their own clocks.
#[rstest]
#[case::date("20260103")]
#[case::midnight_in_utc("20260103T000000Z")]
#[case::last_second_in_utc("20260103T235959Z")]
#[case::midnight_on_no_clock("20260103T000000")]
#[case::last_second_on_no_clock("20260103T235959")]
fn whole_days_end_on_the_day_that_is_written(#[case] until: &str) {
    let series = format!("DTSTART;VALUE=DATE:20260101\nRRULE:FREQ=DAILY;UNTIL={until}");
    for zone in [
        "America/New_York",
        "UTC",
        "Asia/Tokyo",
        "Pacific/Kiritimati",
    ] {
        let expected = [
            "2026-01-01T00:00/2026-01-02T00:00",
            "2026-01-02T00:00/2026-01-03T00:00",
            "2026-01-03T00:00/2026-01-04T00:00",
        ];
        assert_eq!(in_2026(&series, zone), expected, "{zone}");
    }
}

#[rstest]
#[case::midnight_in_new_york("20260102T050000Z")]
#[case::last_second_in_new_york("20260103T045959Z")]
fn whole_days_may_end_with_a_midnight_on_their_own_clocks(#[case] until: &str) {
    let series = format!("DTSTART;VALUE=DATE:20260101\nRRULE:FREQ=DAILY;UNTIL={until}");
    let expected = [
        "2026-01-01T00:00/2026-01-02T00:00",
        "2026-01-02T00:00/2026-01-03T00:00",
    ];
    assert_eq!(in_2026(&series, "America/New_York"), expected);
}

#[test]
fn leap_days_come_every_four_years() {
    let calendar = read(
        &event("DTSTART;VALUE=DATE:20240229\nRRULE:FREQ=YEARLY"),
        "UTC",
    )
    .unwrap();
    let found = local(
        &calendar,
        "UTC",
        "2025-01-01T00:00:00Z",
        "2033-01-01T00:00:00Z",
    );
    assert_eq!(
        found,
        [
            "2028-02-29T00:00/2028-03-01T00:00",
            "2032-02-29T00:00/2032-03-01T00:00"
        ]
    );
}

#[rstest]
#[case::hours(
    "DTSTART:20260706T090000\nDURATION:PT30M\nRRULE:FREQ=HOURLY;INTERVAL=5;COUNT=4",
    &["2026-07-06T09:00/09:30", "2026-07-06T14:00/14:30", "2026-07-06T19:00/19:30", "2026-07-07T00:00/00:30"]
)]
#[case::hours_of_fridays(
    "DTSTART:20260703T090000\nDURATION:PT15M\nRRULE:FREQ=HOURLY;BYDAY=FR;BYHOUR=9,16;BYMINUTE=0,30;COUNT=5",
    &["2026-07-03T09:00/09:15", "2026-07-03T09:30/09:45", "2026-07-03T16:00/16:15",
      "2026-07-03T16:30/16:45", "2026-07-10T09:00/09:15"]
)]
#[case::twice_a_day(
    "DTSTART:20260706T090000\nDTEND:20260706T100000\nRRULE:FREQ=DAILY;BYHOUR=9,21;COUNT=3",
    &["2026-07-06T09:00/10:00", "2026-07-06T21:00/22:00", "2026-07-07T09:00/10:00"]
)]
#[case::the_last_time_of_a_day(
    "DTSTART:20260706T213000\nDURATION:PT1H\nRRULE:FREQ=DAILY;BYHOUR=9,21;BYMINUTE=0,30;BYSETPOS=-1;COUNT=2",
    &["2026-07-06T21:30/22:30", "2026-07-07T21:30/22:30"]
)]
#[case::night_by_the_clock(
    "DTSTART:20260328T220000\nDTEND:20260329T060000\nRRULE:FREQ=DAILY;COUNT=2",
    &["2026-03-28T22:00+00:00/2026-03-29T06:00+01:00", "2026-03-29T22:00/2026-03-30T06:00"]
)]
#[case::night_elapsed(
    "DTSTART:20260327T220000\nDURATION:PT8H\nRRULE:FREQ=DAILY;COUNT=2",
    &["2026-03-27T22:00/2026-03-28T06:00", "2026-03-28T22:00+00:00/2026-03-29T07:00+01:00"]
)]
#[case::days_across_a_change(
    "DTSTART;VALUE=DATE:20260328\nRRULE:FREQ=DAILY;COUNT=3",
    &["2026-03-28T00:00/2026-03-29T00:00", "2026-03-29T00:00+00:00/2026-03-30T00:00+01:00",
      "2026-03-30T00:00/2026-03-31T00:00"]
)]
#[case::through_the_gap(
    "DTSTART:20260328T013000\nDURATION:PT1H\nRRULE:FREQ=DAILY;COUNT=3",
    &["2026-03-28T01:30/02:30", "2026-03-29T02:00/03:00", "2026-03-30T01:30/02:30"]
)]
#[case::once_in_the_overlap(
    "DTSTART:20261024T013000\nDTEND:20261024T014500\nRRULE:FREQ=DAILY;COUNT=3",
    &["2026-10-24T01:30/01:45", "2026-10-25T01:30/01:45", "2026-10-26T01:30/01:45"]
)]
#[case::hours_of_a_short_day(
    "DTSTART:20260329T000000\nDURATION:PT5M\nRRULE:FREQ=HOURLY;COUNT=4",
    &["2026-03-29T00:00/00:05", "2026-03-29T02:00/02:05", "2026-03-29T03:00/03:05"]
)]
#[case::until_is_inclusive(
    "DTSTART:20260706T090000\nDURATION:PT1H\nRRULE:FREQ=DAILY;UNTIL=20260707T080000Z",
    &["2026-07-06T09:00/10:00", "2026-07-07T09:00/10:00"]
)]
#[case::until_an_instant_before(
    "DTSTART:20260706T090000\nDURATION:PT1H\nRRULE:FREQ=DAILY;UNTIL=20260707T075959Z",
    &["2026-07-06T09:00/10:00"]
)]
#[case::until_a_day_includes_it(
    "DTSTART:20260706T090000\nDURATION:PT1H\nRRULE:FREQ=DAILY;UNTIL=20260707",
    &["2026-07-06T09:00/10:00", "2026-07-07T09:00/10:00"]
)]
#[case::until_the_end_of_time(
    "DTSTART:20261231T090000\nDURATION:PT1H\nRRULE:FREQ=DAILY;UNTIL=99991231T235959Z",
    &["2026-12-31T09:00/10:00"]
)]
#[case::until_a_time_of_the_zone(
    "DTSTART:20260706T090000\nDURATION:PT1H\nRRULE:FREQ=DAILY;UNTIL=20260707T090000",
    &["2026-07-06T09:00/10:00", "2026-07-07T09:00/10:00"]
)]
fn times_in_london(#[case] properties: &str, #[case] expected: &[&str]) {
    assert_eq!(in_2026(properties, "Europe/London"), expected);
}

#[test]
fn a_week_that_began_before_is_found() {
    let text = event("DTSTART;VALUE=DATE:20200101\nDURATION:P7D\nRRULE:FREQ=MONTHLY");
    let calendar = read(&text, "UTC").unwrap();
    let found = local(
        &calendar,
        "UTC",
        "2026-07-07T23:59:00Z",
        "2026-07-08T12:00:00Z",
    );
    assert_eq!(found, ["2026-07-01T00:00/2026-07-08T00:00"]);
}
