//! What is refused, where it stands, and what to write instead.

use rstest::rstest;

use super::*;

const DAY: &str = "DTSTART;VALUE=DATE:20260101\n";
const TIME: &str = "DTSTART:20260101T090000\n";

fn message(text: &str) -> String {
    read(text, "Europe/London").unwrap_err().to_string()
}

#[rstest]
#[case::empty(
    "",
    "the text does not begin with BEGIN:VCALENDAR; give the text of an iCalendar (.ics) file"
)]
#[case::a_web_page(
    "<!DOCTYPE html>\n<html>",
    "the text does not begin with BEGIN:VCALENDAR; give the text of an iCalendar (.ics) file"
)]
#[case::only_an_event(
    "BEGIN:VEVENT\nEND:VEVENT\n",
    "the text does not begin with BEGIN:VCALENDAR; give the text of an iCalendar (.ics) file"
)]
#[case::cut_short(
    "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:20260101\n",
    "line 2: BEGIN:VEVENT has no end; write END:VEVENT; the file may be cut short"
)]
#[case::crossed(
    "BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:a\n  b\nEND:VCALENDAR\n",
    "line 5: END:VCALENDAR does not match BEGIN:VEVENT in line 2; write END:VEVENT first"
)]
#[case::event_in_event(
    "BEGIN:VCALENDAR\nBEGIN:VEVENT\nBEGIN:VEVENT\n",
    "line 3: BEGIN:VEVENT is inside of VEVENT; end the component before it, and write events directly in a VCALENDAR"
)]
#[case::text_after_the_end(
    "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:20260101\nEND:VEVENT\nEND:VCALENDAR\nEND:VCALENDAR",
    "line 6: is outside of the calendar; remove it"
)]
#[case::no_colon(
    "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDESCRIPTION:one\ntwo\nEND:VEVENT\nEND:VCALENDAR\n",
    "line 4: is not of the form NAME:VALUE; begin it with a space if it continues the line before"
)]
fn a_text_that_is_no_calendar(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(message(text), expected);
}

/// Nobody can tell where its parameters end, so that nothing is read in it.
#[rstest]
#[case::status("STATUS;X-NOTE=5\" pipe:CANCELLED", "STATUS")]
#[case::open("STATUS;X=\"foo:CANCELLED", "STATUS")]
#[case::uid("UID;X=\"a:b", "UID")]
#[case::dates("EXDATE;X=\"a:20260101T090000", "EXDATE")]
fn a_quote_that_is_never_closed(#[case] wrong: &str, #[case] name: &str) {
    let text = event(&format!("{TIME}DURATION:PT1H\n{wrong}"));
    let said = format!("{name} has a quote that is never closed; write NAME;PARAMETER=");
    assert!(message(&text).contains(&said), "{}", message(&text));
}

/// Not taken for the time zone that counts where none is named.
#[rstest]
#[case("\"\"")]
#[case("\" \"")]
#[case(" ")]
fn a_time_zone_without_a_name(#[case] zone: &str) {
    let text = event(&format!(
        "DTSTART;TZID={zone}:20260101T090000\nDURATION:PT1H"
    ));
    assert!(read(&text, "Europe/London").is_err());
}

#[rstest]
#[case::no_start("", "DTSTART: is missing; write a date such as")]
#[case::no_time(
    "DTSTART:tomorrow",
    "DTSTART: `tomorrow` is not a date or time; write a date such as"
)]
#[case::no_value(
    "DTSTART;VALUE=DATE",
    "DTSTART: `` is not a date or time; write a date such as"
)]
#[case::no_such_day("DTSTART:20260230", "DTSTART: `20260230` is not a date or time; write")]
#[case::no_date(
    "DTSTART;VALUE=DATE:20260101T000000",
    "DTSTART: VALUE=DATE, and `20260101T000000` is a time; write"
)]
#[case::no_time_of_day(
    "DTSTART;VALUE=DATE-TIME:20260101",
    "DTSTART: VALUE=DATE-TIME, and `20260101` is a date; write"
)]
#[case::two_starts(
    "DTSTART:20260101\nDTSTART:20260102",
    "DTSTART: is written more than once; write one DTSTART per event"
)]
#[case::unknown_zone(
    "DTSTART;TZID=Customized Time Zone:20260101T090000",
    "DTSTART;TZID: there is no time zone `Customized Time Zone`; write an IANA time zone such as UTC, Europe/London or America/New_York"
)]
#[case::end_before_start(
    "DTSTART:20260101T090000\nDTEND:20260101T085959",
    "DTEND: is before DTSTART; write a later time"
)]
#[case::end_of_another_kind(
    "DTSTART:20260101\nDTEND:20260102T000000",
    "DTEND: is a time, and DTSTART is a date; write a date"
)]
#[case::end_of_the_other_kind(
    "DTSTART:20260101T000000\nDTEND:20260102",
    "DTEND: is a date, and DTSTART is a time; write a time"
)]
#[case::end_and_another_duration(
    "DTSTART:20260101\nDTEND:20260102\nDURATION:P2D",
    "DURATION: ends at another time than DTEND; write one of the two"
)]
#[case::end_and_no_duration(
    "DTSTART:20260101T090000\nDTEND:20260101T100000\nDURATION:PT0S",
    "DURATION: ends at another time than DTEND; write one of the two"
)]
#[case::sequence(
    "DTSTART:20260101\nSEQUENCE:first",
    "SEQUENCE: `first` is not a number; write a whole number such as 1"
)]
#[case::hours_of_days(
    "DTSTART:20260101\nRRULE:FREQ=HOURLY",
    "RRULE: FREQ=HOURLY has no meaning for whole days; write FREQ=DAILY, or DTSTART as a time"
)]
#[case::one_of_the_hours_of_a_day(
    "DTSTART:20260101\nRRULE:FREQ=DAILY;BYHOUR=9,17;BYSETPOS=2",
    "RRULE: BYSETPOS without another BY list has no meaning; leave out one of the two"
)]
#[case::too_long(
    "DTSTART:20260101\nDTEND:20270103",
    "DTEND: the event is longer than 366 days; split it, or let it recur with RRULE"
)]
#[case::duration_too_long(
    "DTSTART:20260101\nDURATION:P53W",
    "DURATION: the event is longer than 366 days; split it, or let it recur with RRULE"
)]
#[case::duration(
    "DTSTART:20260101\nDURATION:1 day",
    "DURATION: `1 day` is not a duration; write a duration such as PT8H, P1D or P1DT12H"
)]
#[case::beyond_time(
    "DTSTART:99991231T235959\nDURATION:P1D",
    "DTSTART: `99991231T235959` is not a date or time; write"
)]
#[case::ends_beyond_time(
    "DTSTART:99991230\nDURATION:P5D",
    "DTSTART: is too far from today; write a year before 9999"
)]
#[case::exrule(
    "DTSTART:20260101\nEXRULE:FREQ=DAILY",
    "EXRULE: is not part of iCalendar since 2009, and is not read; write the dates to leave out as EXDATE"
)]
#[case::exdate(
    "DTSTART:20260101\nEXDATE:20260102,,",
    "EXDATE: `` is not a date or time; write"
)]
#[case::rdate_of_another_kind(
    "DTSTART:20260101\nRDATE:20260102T090000",
    "RDATE: is a date and DTSTART a time, or the other way round; write both"
)]
#[case::rdate_period(
    "DTSTART:20260101T090000\nRDATE:20260102T090000/20260102T080000",
    "RDATE: has a period that ends before it starts; write a later end"
)]
#[case::rdate_period_too_long(
    "DTSTART:20260101T090000\nRDATE:20260102T090000/P400D",
    "RDATE: the event is longer than 366 days; split it"
)]
#[case::id_without_uid(
    "DTSTART:20260101\nRECURRENCE-ID:20260101",
    "RECURRENCE-ID: the event has no UID that says to which series it belongs; write the UID of the series"
)]
#[case::id_with_range(
    "UID:1\nDTSTART:20260101\nRECURRENCE-ID;RANGE=THISANDFUTURE:20260101",
    "RECURRENCE-ID: RANGE, which changes all later instances, is not read; end the series with UNTIL, and write a second one"
)]
fn an_event_that_is_wrong(#[case] properties: &str, #[case] expected: &str) {
    let message = message(&event(properties));
    assert!(message.contains(&format!(": {expected}")), "{message}");
}

#[rstest]
#[case::frequency_missing(
    "BYDAY=MO",
    "FREQ is missing; write a rule such as FREQ=WEEKLY;BYDAY=MO,FR"
)]
#[case::nothing_in_it(";", "FREQ is missing; write a rule such as FREQ=WEEKLY;BYDAY=MO,FR")]
#[case::another_calendar(
    "RSCALE=HEBREW;FREQ=YEARLY",
    "RSCALE=HEBREW is not read; write RSCALE=GREGORIAN, or the dates as RDATE"
)]
#[case::other_days(
    "RSCALE=GREGORIAN;FREQ=MONTHLY;BYMONTHDAY=31;SKIP=BACKWARD",
    "SKIP=BACKWARD is not read; write SKIP=OMIT, or the dates as RDATE"
)]
#[case::frequency(
    "FREQ=FORTNIGHTLY",
    "FREQ=FORTNIGHTLY is not known; write YEARLY, MONTHLY, WEEKLY, DAILY or HOURLY"
)]
#[case::minutely(
    "FREQ=MINUTELY",
    "FREQ=MINUTELY recurs too often; write FREQ=HOURLY or DAILY with a longer event, or a window with cron"
)]
#[case::secondly("FREQ=SECONDLY;INTERVAL=60", "FREQ=SECONDLY recurs too often; write")]
#[case::no_part("FREQ=DAILY;MO", "`MO` is not of the form NAME=VALUE; write")]
#[case::unknown_part(
    "FREQ=DAILY;BYEASTER=0",
    "`BYEASTER=0` is not known; leave it out; known are FREQ, UNTIL,"
)]
#[case::twice(
    "FREQ=WEEKLY;BYDAY=MO;BYDAY=TU",
    "BYDAY is written more than once; write one list, with commas"
)]
#[case::interval(
    "FREQ=DAILY;INTERVAL=0",
    "INTERVAL=0 is out of range; write a number from 1 to 9999"
)]
#[case::count(
    "FREQ=DAILY;COUNT=-1",
    "COUNT=-1 is out of range; write a number from 1 to 1000000"
)]
#[case::count_and_until(
    "FREQ=DAILY;COUNT=2;UNTIL=20260105",
    "COUNT with UNTIL has no meaning; leave out one of the two"
)]
#[case::until(
    "FREQ=DAILY;UNTIL=soon",
    "UNTIL=SOON is not a date or time; write a date such as 20261231"
)]
#[case::week_start("FREQ=DAILY;WKST=1", "WKST=1 is not a day of the week; write MO, TU")]
#[case::day(
    "FREQ=WEEKLY;BYDAY=MONDAY",
    "BYDAY has `MONDAY`; write days such as MO, 2TU"
)]
#[case::day_number("FREQ=MONTHLY;BYDAY=54MO", "BYDAY has `54MO`; write days such as")]
#[case::day_zero("FREQ=MONTHLY;BYDAY=0MO", "BYDAY has `0MO`; write days such as")]
#[case::not_ascii("FREQ=MONTHLY;BYDAY=aé€", "BYDAY has `Aé€`; write days such as")]
#[case::half_a_letter("FREQ=MONTHLY;BYDAY=é", "BYDAY has `é`; write days such as")]
#[case::month(
    "FREQ=YEARLY;BYMONTH=13",
    "BYMONTH has `13`; write numbers from 1 to 12"
)]
#[case::no_month("FREQ=YEARLY;BYMONTH=", "BYMONTH has ``; write numbers from 1 to 12")]
#[case::leap_month(
    "FREQ=YEARLY;BYMONTH=5L",
    "BYMONTH has `5L`; write numbers from 1 to 12"
)]
#[case::month_day(
    "FREQ=MONTHLY;BYMONTHDAY=0",
    "BYMONTHDAY has `0`; write numbers from 1 to 31, or the same with a minus"
)]
#[case::hour("FREQ=DAILY;BYHOUR=24", "BYHOUR has `24`; write numbers from 0 to 23")]
#[case::negative_hour("FREQ=DAILY;BYHOUR=-1", "BYHOUR has `-1`; write numbers from 0 to 23")]
#[case::smallest("FREQ=MONTHLY;BYMONTHDAY=-32768", "BYMONTHDAY has `-32768`; write")]
#[case::weeks(
    "FREQ=MONTHLY;BYWEEKNO=20",
    "BYWEEKNO without FREQ=YEARLY has no meaning; leave out one of the two"
)]
#[case::year_days(
    "FREQ=DAILY;BYYEARDAY=20",
    "BYYEARDAY without FREQ=YEARLY has no meaning; leave out"
)]
#[case::month_days(
    "FREQ=WEEKLY;BYMONTHDAY=20",
    "BYMONTHDAY with FREQ=WEEKLY has no meaning; leave out"
)]
#[case::numbered_days(
    "FREQ=WEEKLY;BYDAY=2TU",
    "a numbered day in BYDAY without FREQ=MONTHLY or YEARLY has no meaning"
)]
#[case::numbered_days_of_weeks(
    "FREQ=YEARLY;BYDAY=2TU;BYWEEKNO=20",
    "a numbered day in BYDAY with BYWEEKNO has no meaning"
)]
#[case::positions(
    "FREQ=DAILY;BYSETPOS=1",
    "BYSETPOS without another BY list has no meaning"
)]
#[case::positions_of_hours(
    "FREQ=HOURLY;BYMINUTE=1;BYSETPOS=1",
    "BYSETPOS with FREQ=HOURLY has no meaning"
)]
fn a_rule_that_is_wrong(#[case] rule: &str, #[case] expected: &str) {
    let message = message(&event(&format!("{TIME}RRULE:{rule}")));
    let expected = format!("event in line 3: RRULE: {expected}");
    assert!(message.starts_with(&expected), "{message}");
}

#[rstest]
#[case::no_such_day("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30")]
#[case::however_it_ends("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30;UNTIL=20270101")]
#[case::however_often("FREQ=DAILY;BYMONTH=4;BYMONTHDAY=31;COUNT=1000000")]
#[case::no_such_day_of_the_month("FREQ=YEARLY;BYYEARDAY=100;BYMONTH=1")]
#[case::no_such_week("FREQ=YEARLY;BYWEEKNO=20;BYMONTH=1")]
#[case::no_sixth_monday("FREQ=MONTHLY;BYDAY=MO;BYSETPOS=6")]
#[case::no_leap_year("FREQ=YEARLY;INTERVAL=4;BYMONTH=2;BYMONTHDAY=29")]
#[case::no_such_hour("FREQ=HOURLY;INTERVAL=24;BYHOUR=10")]
fn a_rule_that_never_matches(#[case] rule: &str) {
    let message = message(&event(&format!(
        "SUMMARY:Payday\n{TIME}DURATION:PT1H\nRRULE:{rule}"
    )));
    assert_eq!(
        message,
        "event `Payday`: RRULE: never occurs again: nothing matches it in 400 years; correct its lists, or remove it"
    );
}

#[rstest]
#[case::every_28_years("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO")]
#[case::once("FREQ=YEARLY;COUNT=1")]
#[case::ended_before_it_recurs("FREQ=YEARLY;UNTIL=20260601")]
#[case::far_between("FREQ=YEARLY;INTERVAL=400")]
fn a_rule_that_matches_in_the_end(#[case] rule: &str) {
    let text = event(&format!("{TIME}DURATION:PT1H\nRRULE:{rule}"));
    assert!(read(&text, "Europe/London").is_ok());
}

#[test]
fn whole_days_that_end_with_any_time_are_refused() {
    let text = event(&format!("{DAY}RRULE:FREQ=DAILY;UNTIL=20260105T120000Z"));
    assert_eq!(
        message(&text),
        "event in line 3: RRULE: UNTIL=20260105T120000Z is a time, and DTSTART is a date; write a date such as 20261231"
    );
}

#[test]
fn two_rules_are_refused() {
    let message = message(&event(&format!("{DAY}RRULE:FREQ=DAILY\nRRULE:FREQ=YEARLY")));
    assert_eq!(
        message,
        "event in line 3: RRULE: is written more than once; write one RRULE per event"
    );
}

#[rstest]
#[case::both("SUMMARY:Christmas\nUID:4711@x", "`Christmas` (UID 4711@x)")]
#[case::summary("SUMMARY:Christmas\\, all day", "`Christmas, all day`")]
#[case::uid("UID:4711\u{7}", "with UID 4711")]
#[case::neither("", "in line 3")]
fn the_event_is_named(#[case] properties: &str, #[case] expected: &str) {
    let message = message(&event(properties));
    assert!(
        message.starts_with(&format!("event {expected}: DTSTART: ")),
        "{message}"
    );
}

#[rstest]
#[case::property("UID:1\nDTSTART:tomorrow", 5)]
#[case::behind_a_fold("SUMMARY:a\n\u{20}b\nDTSTART;TZID=Nowhere:20260101T000000", 6)]
#[case::missing("UID:1", 3)]
#[case::rule("DTSTART:20260101\nRRULE:FREQ=DAILY;BYMONTH=4;BYMONTHDAY=31", 5)]
fn the_line_is_known(#[case] properties: &str, #[case] expected: usize) {
    let text = calendar(&format!("BEGIN:VEVENT\n{properties}\nEND:VEVENT\n"));
    let CalendarError::Event { line, .. } = read(&text, "UTC").unwrap_err() else {
        panic!("it is of an event");
    };
    assert_eq!(line, expected);
}
