//! Large, endless and hostile calendars: the work is bounded, and that is said.

use rstest::rstest;

use super::*;

const ALWAYS: (&str, &str) = ("-009999-01-03T00:00:00Z", "9999-12-30T00:00:00Z");

fn events(count: usize, properties: &str) -> String {
    calendar(&format!("BEGIN:VEVENT\n{properties}\nEND:VEVENT\n").repeat(count))
}

/// How many steps the answer for January 2026 takes.
fn steps(properties: &str) -> u32 {
    let calendar = read(&event(properties), "Europe/London").unwrap();
    let january = span("2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z");
    let mut steps = Steps::new(MAX_STEPS);
    calendar.events[0]
        .visit(january, &mut steps, |_| Ok(()))
        .unwrap();
    MAX_STEPS - steps.left()
}

#[rstest]
#[case::daily("DTSTART:19700101T090000\nDURATION:PT1H\nRRULE:FREQ=DAILY")]
#[case::counted("DTSTART:19700101T090000\nDURATION:PT1H\nRRULE:FREQ=DAILY;COUNT=30000")]
#[case::every_third("DTSTART:16010101T090000\nDURATION:PT1H\nRRULE:FREQ=DAILY;INTERVAL=3")]
#[case::weekly("DTSTART:16010101T090000\nDURATION:PT1H\nRRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,TU")]
#[case::monthly("DTSTART:16010101T090000\nDURATION:PT1H\nRRULE:FREQ=MONTHLY;BYDAY=-1FR")]
#[case::yearly("DTSTART:16010101T090000\nDURATION:PT1H\nRRULE:FREQ=YEARLY")]
#[case::seldom("DTSTART:16010101T090000\nDURATION:PT1H\nRRULE:FREQ=DAILY;BYMONTH=2;BYMONTHDAY=29")]
fn an_old_rule_costs_no_more_than_a_new_one(#[case] properties: &str) {
    let steps = steps(properties);
    assert!(steps < 100, "{steps}");
}

#[test]
fn a_text_that_is_too_long_is_not_looked_at() {
    let text = format!("BEGIN:VCALENDAR{}", " ".repeat(MAX_TEXT));
    let error = read(&text, "UTC").unwrap_err();
    assert_eq!(error, CalendarError::TooLong { bytes: text.len() });
    assert_eq!(
        error.to_string(),
        "the calendar has 1048591 bytes, more than 1048576; leave out past events, or split it"
    );
}

#[test]
fn a_line_may_be_long_unless_it_matters() {
    let long = "x".repeat(MAX_LINE);
    assert!(
        read(
            &event(&format!("DTSTART:20260101\nDESCRIPTION:{long}")),
            "UTC"
        )
        .is_ok()
    );
    let error = read(&event(&format!("DTSTART:20260101\nSUMMARY:{long}")), "UTC").unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 5: SUMMARY has more than 65536 bytes; write it in several lines of the same name, or shorter"
    );
}

#[test]
fn events_are_counted() {
    let most = read(&events(MAX_EVENTS, "DTSTART:20260101"), "UTC").unwrap();
    assert_eq!(most.events(), MAX_EVENTS);
    let error = read(&events(MAX_EVENTS + 1, "DTSTART:20260101"), "UTC").unwrap_err();
    assert_eq!(error, CalendarError::TooManyEvents);
    assert_eq!(
        error.to_string(),
        "the calendar has more than 2000 events; leave out past events, or split it"
    );
}

#[test]
fn occurrences_are_counted() {
    let hourly = "DTSTART:20260101T000000\nDURATION:PT5M\nRRULE:FREQ=HOURLY";
    let calendar = read(&event(hourly), "UTC").unwrap();
    let most = calendar.occurrences(span("2026-01-01T00:00:00Z", "2028-04-13T08:00:00Z"));
    assert_eq!(most.unwrap().len(), MAX_OCCURRENCES);
    let error = calendar
        .occurrences(span("2026-01-01T00:00:00Z", "2028-04-13T09:00:00Z"))
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the events recur more than 20000 times from 2026-01-01T00:00:00Z to 2028-04-13T09:00:00Z; write fewer, longer events, or split the calendar"
    );
}

#[test]
fn a_rule_that_hardly_ever_matches_is_given_up() {
    let seldom = "DTSTART:20260101T000000\nDURATION:PT5M\nRRULE:FREQ=DAILY;BYDAY=MO;BYMONTH=2;BYMONTHDAY=29,-30";
    let calendar = read(&events(20, seldom), "UTC").unwrap();
    let error = calendar.occurrences(span(ALWAYS.0, ALWAYS.1)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the recurrences take too many steps to follow; write simpler RRULEs, UNTIL instead of a high COUNT, or split the calendar"
    );
}

#[test]
fn counting_is_given_up() {
    let counted = "DTSTART:20260101T000000\nDURATION:PT1H\nRRULE:FREQ=DAILY;COUNT=1000000";
    let text = events(3, counted);
    assert_eq!(read(&text, "UTC"), Err(CalendarError::TooManySteps));
}

#[rstest]
// The `rrule` crate holds the 31 million instances of the first year before it yields one.
#[case::every_second_of_the_year(&format!(
    "FREQ=YEARLY;BYMONTHDAY={};BYHOUR={};BYMINUTE={};BYSECOND={}",
    numbers(1, 31), numbers(0, 23), numbers(0, 59), numbers(0, 59)
))]
#[case::one_of_them(&format!(
    "FREQ=YEARLY;BYMONTHDAY={};BYHOUR={};BYMINUTE={};BYSECOND={};BYSETPOS=-1",
    numbers(1, 31), numbers(0, 23), numbers(0, 59), numbers(0, 59)
))]
#[case::long_lists(&format!("FREQ=YEARLY;BYMONTHDAY={}", ["1"; 20_000].join(",")))]
#[case::every_day_of_the_week(&format!("FREQ=YEARLY;BYDAY={}", ["MO,1MO,-1MO"; 5_000].join(",")))]
fn a_rule_with_long_lists_is_followed_or_given_up(#[case] rule: &str) {
    let text = event(&format!(
        "DTSTART:20260101T000000\nDURATION:PT1S\nRRULE:{rule}"
    ));
    let calendar = read(&text, "UTC").unwrap();
    match calendar.occurrences(span("2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z")) {
        Ok(found) => assert!(found.len() <= MAX_OCCURRENCES),
        Err(error) => assert!(matches!(error, CalendarError::TooManyOccurrences { .. })),
    }
}

fn numbers(from: u8, to: u8) -> String {
    (from..=to)
        .map(|n| n.to_string())
        .collect::<Vec<_>>()
        .join(",")
}

#[test]
fn deep_nesting_costs_nothing() {
    let begins = "BEGIN:X\n".repeat(50_000);
    let ends = "END:X\n".repeat(50_000);
    let text = calendar(&format!(
        "BEGIN:VEVENT\nDTSTART:20260101\n{begins}{ends}END:VEVENT\n"
    ));
    assert_eq!(read(&text, "UTC").unwrap().events(), 1);
}

#[test]
fn many_dates_are_read() {
    let dates = ["20260102T000000"; 4_000].join(",");
    let lines = format!("EXDATE:{dates}\nRDATE:{dates}\n").repeat(7);
    let text = event(&format!("DTSTART:20260101T000000\nDURATION:PT1H\n{lines}"));
    let calendar = read(&text, "America/New_York").unwrap();
    let all = calendar.occurrences(span(ALWAYS.0, ALWAYS.1)).unwrap();
    assert_eq!(all.len(), 1);
}

#[test]
fn the_ends_of_time_are_harmless() {
    for start in ["00000101T000000", "99991230T000000", "00000101", "99991229"] {
        for rule in [
            "DAILY;INTERVAL=9999",
            "WEEKLY;BYDAY=MO;WKST=SU;INTERVAL=9999",
            "MONTHLY;BYSETPOS=1;BYDAY=MO;INTERVAL=4799",
            "YEARLY;BYWEEKNO=1,53,-1;INTERVAL=399",
        ] {
            let text = event(&format!("DTSTART:{start}\nRRULE:FREQ={rule}"));
            let calendar = read(&text, "Pacific/Apia").unwrap();
            assert!(
                calendar.occurrences(span(ALWAYS.0, ALWAYS.1)).is_ok(),
                "{text}"
            );
        }
    }
}
