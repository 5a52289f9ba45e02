//! Whole files as Outlook and Google export them.

use super::*;

const OUTLOOK: &str = include_str!("../../../../tests/calendars/outlook.ics");
const GOOGLE: &str = include_str!("../../../../tests/calendars/google-holidays.ics");

#[test]
fn outlook() {
    let calendar = read(OUTLOOK, "Europe/Berlin").unwrap();
    assert_eq!(calendar.events(), 3);
    assert_eq!(calendar.summary(1), Some("Release train (a day later)"));
    let found = year_2026(&calendar, "Europe/Berlin");
    let expected = [
        "2026-03-25T14:00/17:00",
        "2026-03-28T00:00+01:00/2026-03-30T00:00+02:00",
        "2026-04-01T14:00/17:00",
        "2026-04-16T09:00/12:00",
        "2026-04-22T14:00/17:00",
        "2026-04-29T14:00/17:00",
    ];
    assert_eq!(found, expected);
}

#[test]
fn google_holidays_count_although_they_are_transparent() {
    let calendar = read(GOOGLE, "Europe/London").unwrap();
    assert_eq!(calendar.events(), 2);
    assert_eq!(calendar.summary(0), Some("Christmas Day"));
    let found = year_2026(&calendar, "Europe/London");
    let expected = [
        "2026-12-25T00:00/2026-12-26T00:00",
        "2026-12-28T00:00/2026-12-29T00:00",
    ];
    assert_eq!(found, expected);
}

#[test]
fn line_ends_folds_and_a_byte_order_mark_do_not_matter() {
    let read = |text: &str| {
        let zone = zone::find("Europe/Berlin").unwrap();
        Calendar::parse(text, &zone).unwrap().events
    };
    let expected = read(OUTLOOK);
    assert_eq!(read(&OUTLOOK.replace("\r\n", "\n")), expected);
    assert_eq!(read(&format!("\u{feff}{OUTLOOK}")), expected);
    assert_eq!(read(&OUTLOOK.replace("DTSTART", "DTST\r\n ART")), expected);
    assert_eq!(read(&OUTLOOK.replace("DTSTART", "DTST\r\n\tART")), expected);
    assert_eq!(read(&OUTLOOK.replacen("\r\n", "\n", 9)), expected);
    assert_eq!(
        read(&OUTLOOK.replace("BEGIN:VEVENT", "\r\nbegin:vevent ")),
        expected
    );
    assert_eq!(read(OUTLOOK.trim_end()), expected);
    assert_eq!(read(&OUTLOOK.repeat(2)).len(), 6);
}

#[test]
fn what_is_no_event_is_passed_over() {
    let text = calendar(
        "BEGIN:VTODO\nDTSTART:nonsense\nBEGIN:VALARM\nTRIGGER:-PT15M\nEND:VALARM\nEND:VTODO\n\
         BEGIN:VJOURNAL\nno colon here\nEND:VJOURNAL\n\
         BEGIN:VFREEBUSY\nFREEBUSY:20260101T000000Z/PT1H\nEND:VFREEBUSY\n\
         BEGIN:VEVENT\nDTSTART:20260101\nBEGIN:VALARM\nDURATION:nonsense\nEND:VALARM\nX-OTHER;A=b:c\nEND:VEVENT\n",
    );
    let calendar = read(&text, "UTC").unwrap();
    let found = local(
        &calendar,
        "UTC",
        "2025-01-01T00:00:00Z",
        "2027-01-01T00:00:00Z",
    );
    assert_eq!(found, ["2026-01-01T00:00/2026-01-02T00:00"]);
}
