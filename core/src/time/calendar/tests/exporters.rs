//! What programs write beside the letter of RFC 5545, or at its edges, and nobody can change.

use rstest::rstest;

use super::*;

#[rstest]
#[case::hours("FREQ=DAILY;COUNT=2;BYHOUR=9")]
#[case::several_times("FREQ=DAILY;COUNT=2;BYHOUR=9,17;BYMINUTE=0,30;BYSECOND=15")]
#[case::of_one_week("FREQ=WEEKLY;BYDAY=MO,TU;COUNT=2;BYHOUR=23")]
#[case::chosen("FREQ=MONTHLY;BYMONTHDAY=5,6;BYSETPOS=1,2;BYHOUR=9,17;UNTIL=20260131")]
fn whole_days_have_no_times_of_day(#[case] rule: &str) {
    let found = in_2026(
        &format!("DTSTART;VALUE=DATE:20260105\nRRULE:{rule}"),
        "Europe/London",
    );
    let expected = [
        "2026-01-05T00:00/2026-01-06T00:00",
        "2026-01-06T00:00/2026-01-07T00:00",
    ];
    assert_eq!(found, expected);
}

/// A fold counts bytes in many programs, and so it may stand inside of a character.
#[test]
fn a_fold_may_stand_inside_of_a_character() {
    let text = event("UID:1\nSUMMARY:März 😀 frei\nDTSTART:20260101");
    let expected = read(&text, "UTC").unwrap();
    assert_eq!(expected.summary(0), Some("März 😀 frei"));
    let begin = text.find("SUMMARY").unwrap();
    let end = text.find("\nDTSTART").unwrap();
    for place in begin + 1..end {
        for fold in ["\r\n ", "\n\t"] {
            let (before, behind) = text.as_bytes().split_at(place);
            let folded = [before, fold.as_bytes(), behind].concat();
            let calendar = Calendar::read(&folded, &TimeZone::UTC).unwrap();
            assert_eq!(calendar.summary(0), expected.summary(0), "{place}");
            assert_eq!(calendar.events, expected.events, "{place}");
        }
    }
}

#[rstest]
#[case::at_once(b"\xff", 1)]
#[case::in_its_line(b"BEGIN:VCALENDAR\nX:\xff\nEND:VCALENDAR\n", 2)]
#[case::behind_folds(b"BEGIN:VCALENDAR\r\nX:a\r\n b\r\n c\xff\r\nEND:VCALENDAR\r\n", 4)]
#[case::at_a_fold(b"BEGIN:VCALENDAR\nX:\xc3\n \n \xc3\nEND:VCALENDAR\n", 2)]
#[case::behind_a_fold(b"BEGIN:VCALENDAR\nX:\n \xff\nEND:VCALENDAR\n", 3)]
fn what_is_no_utf_8_is_refused_in_its_line(#[case] text: &[u8], #[case] line: usize) {
    let error = Calendar::read(text, &TimeZone::UTC).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("line {line}: it is not UTF-8; save the file as UTF-8")
    );
}

/// Evolution, Outlook, Confluence and Google repeat in an instance what its series says.
#[rstest]
#[case::rule("RRULE:FREQ=WEEKLY;COUNT=3")]
#[case::rule_that_makes_no_sense("RRULE:FREQ=FORTNIGHTLY")]
#[case::rule_of_another_kind("EXRULE:FREQ=DAILY")]
#[case::dates("RDATE;VALUE=DATE:20260107")]
#[case::day_to_which_it_moved("EXDATE;VALUE=DATE:20260106")]
fn an_instance_does_not_recur(#[case] copied: &str) {
    let text = calendar(&format!(
        "BEGIN:VEVENT\nUID:1\nDTSTART;VALUE=DATE:20260105\nRRULE:FREQ=WEEKLY;COUNT=2\nEND:VEVENT\n\
         BEGIN:VEVENT\nUID:1\nRECURRENCE-ID;VALUE=DATE:20260105\nDTSTART;VALUE=DATE:20260106\n{copied}\nEND:VEVENT\n"
    ));
    let calendar = read(&text, "UTC").unwrap();
    let found = year_2026(&calendar, "UTC");
    let expected = [
        "2026-01-06T00:00/2026-01-07T00:00",
        "2026-01-12T00:00/2026-01-13T00:00",
    ];
    assert_eq!(found, expected);
}

#[rstest]
#[case::rule("RRULE:")]
#[case::rules("RRULE:\nRRULE: \nEXRULE:")]
#[case::dates("EXDATE:\nRDATE:")]
#[case::dates_with_parameters("EXDATE;TZID=Europe/London:\nRDATE;VALUE=PERIOD:")]
#[case::sequence("SEQUENCE:")]
#[case::in_lower_case("rrule:\nexdate:")]
fn what_says_nothing_is_nothing(#[case] empty: &str) {
    let found = in_2026(
        &format!("DTSTART:20260105T090000\nDURATION:PT1H\n{empty}"),
        "UTC",
    );
    assert_eq!(found, ["2026-01-05T09:00/10:00"]);
}

/// A line without a colon may be cut short: nobody can tell what it said.
#[rstest]
#[case("RRULE;X=1")]
#[case("RRULE;X=\"a:\"")]
fn what_is_cut_short_is_not_nothing(#[case] cut: &str) {
    let text = event(&format!("DTSTART:20260105T090000\nDURATION:PT1H\n{cut}"));
    assert!(read(&text, "UTC").is_err());
}

#[rstest]
#[case("RSCALE=GREGORIAN;FREQ=MONTHLY;BYMONTHDAY=31;COUNT=2;SKIP=OMIT")]
#[case("FREQ=MONTHLY;rscale=gregorian;COUNT=2")]
#[case("FREQ=MONTHLY;COUNT=2;SKIP=OMIT")]
fn a_rule_may_name_the_calendar_of_all_rules(#[case] rule: &str) {
    let found = in_2026(&format!("DTSTART;VALUE=DATE:20260131\nRRULE:{rule}"), "UTC");
    let expected = [
        "2026-01-31T00:00/2026-02-01T00:00",
        "2026-03-31T00:00/2026-04-01T00:00",
    ];
    assert_eq!(found, expected);
}

#[rstest]
#[case::days(
    "DTSTART:20260706\nDTEND:20260707\nDURATION:P1D",
    "2026-07-06T00:00/2026-07-07T00:00"
)]
#[case::hours(
    "DTSTART:20260706T090000\nDTEND:20260706T100000\nDURATION:PT1H",
    "2026-07-06T09:00/10:00"
)]
// In London this night has nine hours.
#[case::elapsed(
    "DTSTART:20261024T220000\nDTEND:20261025T060000\nDURATION:PT9H",
    "2026-10-24T22:00+01:00/2026-10-25T06:00+00:00"
)]
fn an_end_and_a_duration_may_say_the_same(#[case] properties: &str, #[case] expected: &str) {
    assert_eq!(in_2026(properties, "Europe/London"), [expected]);
}

#[test]
fn of_an_end_and_a_duration_the_end_counts_for_instances() {
    let found = in_2026(
        "DTSTART:20260327T220000\nDTEND:20260328T060000\nDURATION:PT8H\nRRULE:FREQ=DAILY;COUNT=2",
        "Europe/London",
    );
    let expected = [
        "2026-03-27T22:00/2026-03-28T06:00",
        "2026-03-28T22:00+00:00/2026-03-29T06:00+01:00",
    ];
    assert_eq!(found, expected);
}

/// A feed of freezes has no events while none is planned.
#[rstest]
#[case::bare("")]
#[case::with_a_zone("BEGIN:VTIMEZONE\nTZID:Europe/London\nEND:VTIMEZONE\n")]
#[case::with_a_task("BEGIN:VTODO\nEND:VTODO\n")]
fn a_calendar_without_events_covers_nothing(#[case] components: &str) {
    let calendar = read(&calendar(components), "Europe/London").unwrap();
    assert_eq!((calendar.events(), calendar.summary(0)), (0, None));
    let ever = span("-009999-01-03T00:00:00Z", "9999-12-30T00:00:00Z");
    assert_eq!(calendar.occurrences(ever), Ok(vec![]));
    assert_eq!(calendar.end(), Some(Timestamp::MIN));
}
