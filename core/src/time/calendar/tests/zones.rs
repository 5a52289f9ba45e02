//! Time zones that are known by their VTIMEZONE.

use proptest::prelude::*;
use proptest::sample::select;
use rstest::rstest;

use super::*;

const CENTRAL_EUROPE: &str = "BEGIN:STANDARD
DTSTART:16011028T030000
RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=10
TZOFFSETFROM:+0200
TZOFFSETTO:+0100
END:STANDARD
BEGIN:DAYLIGHT
DTSTART:16010325T020000
RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=3
TZOFFSETFROM:+0100
TZOFFSETTO:+0200
END:DAYLIGHT
";
/// Lotus Notes repeats the time of day in the rule.
const EASTERN: &str = "BEGIN:STANDARD
DTSTART:19501101T020000
TZOFFSETFROM:-0400
TZOFFSETTO:-0500
RRULE:FREQ=YEARLY;BYMINUTE=0;BYHOUR=2;BYDAY=1SU;BYMONTH=11
END:STANDARD
BEGIN:DAYLIGHT
DTSTART:19500301T000000
TZOFFSETFROM:-0500
TZOFFSETTO:-0400
RRULE:FREQ=YEARLY;BYMINUTE=0;BYHOUR=2;BYDAY=2SU;BYMONTH=3
END:DAYLIGHT
";
const SYDNEY: &str = "BEGIN:DAYLIGHT
DTSTART:16011007T020000
RRULE:FREQ=YEARLY;INTERVAL=1;BYDAY=1SU;BYMONTH=10
TZOFFSETFROM:+1000
TZOFFSETTO:+1100
END:DAYLIGHT
BEGIN:STANDARD
DTSTART:16010401T030000
RRULE:FREQ=YEARLY;INTERVAL=1;BYDAY=1SU;BYMONTH=4
TZOFFSETFROM:+1100
TZOFFSETTO:+1000
END:STANDARD
";
const LORD_HOWE: &str = "BEGIN:STANDARD
DTSTART:20080406T020000
RRULE:FREQ=YEARLY;BYMONTH=4;BYDAY=1SU
TZOFFSETFROM:+1100
TZOFFSETTO:+1030
END:STANDARD
BEGIN:DAYLIGHT
DTSTART:20081005T020000
RRULE:FREQ=YEARLY;BYMONTH=10;BYDAY=1SU
TZOFFSETFROM:+1030
TZOFFSETTO:+1100
END:DAYLIGHT
";
/// Where the time in winter is the one that is moved.
const DUBLIN: &str = "BEGIN:STANDARD
DTSTART:19710328T010000
RRULE:FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU
TZOFFSETFROM:+0000
TZOFFSETTO:+0100
END:STANDARD
BEGIN:DAYLIGHT
DTSTART:19711031T020000
RRULE:FREQ=YEARLY;BYMONTH=10;BYDAY=-1SU
TZOFFSETFROM:+0100
TZOFFSETTO:+0000
END:DAYLIGHT
";
const INDIA: &str = "BEGIN:STANDARD
DTSTART:16010101T000000
TZOFFSETFROM:+0530
TZOFFSETTO:+0530
END:STANDARD
";

fn defined(id: &str, rules: &str, properties: &str) -> String {
    calendar(&format!(
        "BEGIN:VTIMEZONE\nTZID:{id}\n{rules}END:VTIMEZONE\nBEGIN:VEVENT\n{properties}\nEND:VEVENT\n"
    ))
}

proptest! {
    /// A zone by its rules beside the same one by its name.
    #[test]
    fn rules_make_the_zone_that_they_are_of(
        (rules, name) in select(&[
            (CENTRAL_EUROPE, "Europe/Berlin"),
            (EASTERN, "America/New_York"),
            (SYDNEY, "Australia/Sydney"),
            (LORD_HOWE, "Australia/Lord_Howe"),
            (DUBLIN, "Europe/Dublin"),
            (INDIA, "Asia/Kolkata"),
        ][..]),
        year in 2010..2080_i16,
        (hour, minute) in (0..24_i8, 0..60_i8),
        hours in 1..40_i64,
        by_clock in any::<bool>(),
    ) {
        let length = if by_clock {
            let end = jiff::civil::date(year, 1, 1).at(hour, minute, 0, 0);
            let end = end.checked_add(jiff::SignedDuration::from_hours(hours)).unwrap();
            format!("DTEND;TZID=Own zone:{}", end.strftime("%Y%m%dT%H%M%S"))
        } else {
            format!("DURATION:PT{hours}H")
        };
        let text = defined("Own zone", rules, &format!(
            "DTSTART;TZID=Own zone:{year}0101T{hour:02}{minute:02}00\n{length}\nRRULE:FREQ=DAILY;COUNT=400"
        ));
        let named = text.replace("TZID=Own zone", &format!("TZID={name}"));
        let all = super::span("2000-01-01T00:00:00Z", "2100-01-01T00:00:00Z");
        let found = read(&text, "Asia/Tokyo").unwrap().occurrences(all).unwrap();
        prop_assert_eq!(found.len(), 400);
        prop_assert_eq!(&found, &read(&named, "Asia/Tokyo").unwrap().occurrences(all).unwrap());
    }
}

/// As programs name zones that nobody else knows.
#[rstest]
#[case("Customized Time Zone")]
#[case("tzone://Microsoft/Custom")]
#[case("GMT +0100 (Standard) / GMT +0200 (Daylight)")]
#[case("(UTC+01:00) Amsterdam\\, Berlin\\, Bern\\, Rom\\, Stockholm\\, Wien")]
#[case("W. Europe\0\0\0")]
fn a_zone_is_known_by_its_rules(#[case] id: &str) {
    let quoted = id.replace('\\', "");
    let text = defined(
        id,
        CENTRAL_EUROPE,
        &format!("DTSTART;TZID=\"{quoted}\":20260706T090000\nDURATION:PT1H"),
    );
    let calendar = read(&text, "America/New_York").unwrap();
    let july = span("2026-07-01T00:00:00Z", "2026-08-01T00:00:00Z");
    let found = calendar.occurrences(july).unwrap();
    assert_eq!(found[0].span.start.to_string(), "2026-07-06T07:00:00Z");
}

/// The names come first: nobody keeps the rules in a VTIMEZONE up to date.
#[rstest]
#[case::iana("Asia/Tokyo", "")]
#[case::windows("Tokyo Standard Time", "")]
#[case::numbered("Tokyo Standard Time 1", "")]
#[case::shown("(UTC+09:00) Osaka\\, Sapporo\\, Tokyo", "")]
#[case::offset("UTC+09", "")]
#[case::place("Own zone", "X-LIC-LOCATION:Asia/Tokyo\n")]
#[case::rules_that_are_not_understood("Asia/Tokyo", "BEGIN:STANDARD\nno colon\nEND:STANDARD\n")]
fn a_name_comes_before_rules(#[case] id: &str, #[case] more: &str) {
    let quoted = id.replace('\\', "");
    let text = defined(
        id,
        &format!("{more}{CENTRAL_EUROPE}"),
        &format!("DTSTART;TZID=\"{quoted}\":20260706T090000\nDURATION:PT1H"),
    );
    let calendar = read(&text, "UTC").unwrap();
    let july = span("2026-07-01T00:00:00Z", "2026-08-01T00:00:00Z");
    let found = calendar.occurrences(july).unwrap();
    assert_eq!(found[0].span.start.to_string(), "2026-07-06T00:00:00Z");
}

/// IANA has no summer in EST, and people do.
#[rstest]
#[case::alone("", Some("2026-07-06T14:00:00Z"))]
#[case::with_rules(EASTERN, Some("2026-07-06T13:00:00Z"))]
#[case::with_rules_that_are_not_plain("BEGIN:STANDARD\nEND:STANDARD\n", None)]
fn a_name_that_means_two_things_is_read_by_rules(
    #[case] rules: &str,
    #[case] expected: Option<&str>,
) {
    let mut text = defined(
        "EST",
        rules,
        "DTSTART;TZID=EST:20260706T090000\nDURATION:PT1H",
    );
    if rules.is_empty() {
        text = text.replace("TZID:EST", "TZID:Other");
    }
    let july = span("2026-07-01T00:00:00Z", "2026-08-01T00:00:00Z");
    let found = read(&text, "UTC").map(|calendar| calendar.occurrences(july).unwrap());
    let start = found.ok().map(|found| found[0].span.start.to_string());
    assert_eq!(start.as_deref(), expected);
}

const EVENT: &str = "DTSTART;TZID=Own zone:20260706T090000\nDURATION:PT1H";

#[rstest]
#[case::none("", "it has 0 STANDARD and 0 DAYLIGHT, not one and at most one")]
#[case::only_daylight(
    "BEGIN:DAYLIGHT\nDTSTART:19700101T000000\nTZOFFSETFROM:+0100\nTZOFFSETTO:+0100\nEND:DAYLIGHT\n",
    "it has 0 STANDARD and 1 DAYLIGHT"
)]
#[case::several(&CENTRAL_EUROPE.repeat(2), "it has 2 STANDARD and 2 DAYLIGHT")]
#[case::until(
    &CENTRAL_EUROPE.replace("BYMONTH=3", "BYMONTH=3;UNTIL=20300101T000000Z"),
    "its RRULE is not of the form FREQ=YEARLY;BYMONTH=10;BYDAY=-1SU"
)]
#[case::count(&CENTRAL_EUROPE.replace("BYMONTH=3", "BYMONTH=3;COUNT=9"), "its RRULE is not")]
#[case::interval(&CENTRAL_EUROPE.replace("BYMONTH=3", "BYMONTH=3;INTERVAL=2"), "its RRULE is not")]
#[case::monthly(&CENTRAL_EUROPE.replace("YEARLY", "MONTHLY"), "its RRULE is not")]
#[case::two_months(&CENTRAL_EUROPE.replace("BYMONTH=3", "BYMONTH=3,4"), "its RRULE is not")]
#[case::no_month(&CENTRAL_EUROPE.replace(";BYMONTH=3", ""), "its RRULE is not")]
#[case::every_sunday(&CENTRAL_EUROPE.replace("-1SU", "SU"), "its RRULE is not")]
#[case::fifth_sunday(&CENTRAL_EUROPE.replace("-1SU", "5SU"), "its RRULE is not")]
#[case::second_last_sunday(&CENTRAL_EUROPE.replace("-1SU", "-2SU"), "its RRULE is not")]
#[case::two_days(&CENTRAL_EUROPE.replace("-1SU", "-1SA,-1SU"), "its RRULE is not")]
#[case::date(&CENTRAL_EUROPE.replace("BYDAY=-1SU", "BYMONTHDAY=31"), "its RRULE is not")]
#[case::two_hours(&CENTRAL_EUROPE.replace("BYMONTH=3", "BYMONTH=3;BYHOUR=2,3"), "its RRULE is not")]
#[case::nonsense(&CENTRAL_EUROPE.replace("YEARLY", "SOMETIMES"), "its RRULE is not")]
#[case::two_rules(
    &CENTRAL_EUROPE.replace("END:DAYLIGHT", "RRULE:FREQ=YEARLY\nEND:DAYLIGHT"),
    "RRULE in it is written more than once"
)]
#[case::no_rules(
    &CENTRAL_EUROPE.replace("RRULE", "X-RULE"),
    "its STANDARD and DAYLIGHT do not both recur every year"
)]
#[case::one_rule(
    &CENTRAL_EUROPE.replacen("RRULE", "X-RULE", 1),
    "its STANDARD and DAYLIGHT do not both recur every year"
)]
#[case::dates(
    &CENTRAL_EUROPE.replace("END:DAYLIGHT", "RDATE:20260330T020000\nEND:DAYLIGHT"),
    "RDATE in it is not read"
)]
#[case::without_dates(
    &CENTRAL_EUROPE.replace("END:DAYLIGHT", "EXDATE:20260330T020000\nEND:DAYLIGHT"),
    "EXDATE in it is not read"
)]
#[case::offsets_that_do_not_meet(
    &CENTRAL_EUROPE.replace("TZOFFSETFROM:+0100", "TZOFFSETFROM:+0000"),
    "its STANDARD and DAYLIGHT do not begin from each other's offset"
)]
#[case::no_offset(&CENTRAL_EUROPE.replacen("TZOFFSETTO", "X", 1), "TZOFFSETTO is missing in it")]
#[case::offset(&CENTRAL_EUROPE.replace("+0200", "0200"), "is no offset such as +0100")]
#[case::offset_without_minutes(&CENTRAL_EUROPE.replace("+0200", "+02"), "is no offset")]
#[case::offset_of_an_hour_of_minutes(&CENTRAL_EUROPE.replace("+0200", "+0160"), "is no offset")]
#[case::offset_of_no_place(&CENTRAL_EUROPE.replace("+0200", "+1500"), "is no offset")]
#[case::offset_that_is_not_ascii(&CENTRAL_EUROPE.replace("+0200", "é200"), "is no offset")]
#[case::no_start(&CENTRAL_EUROPE.replacen("DTSTART", "X", 1), "DTSTART is missing in it")]
#[case::start_in_utc(
    &CENTRAL_EUROPE.replace("T020000", "T020000Z"),
    "its DTSTART is no local time"
)]
#[case::start_without_a_time(
    &CENTRAL_EUROPE.replace("T020000", ""),
    "its DTSTART is no local time"
)]
#[case::daylight_begins_later(
    &CENTRAL_EUROPE.replace("16010325", "20270328"),
    "its STANDARD and DAYLIGHT begin more than a year apart"
)]
#[case::standard_by_itself_every_year(
    "BEGIN:STANDARD\nDTSTART:19700101T000000\nRRULE:FREQ=YEARLY;BYMONTH=10;BYDAY=-1SU\nTZOFFSETFROM:+0200\nTZOFFSETTO:+0100\nEND:STANDARD\n",
    "it has a STANDARD every year, and no DAYLIGHT"
)]
#[case::a_line_that_cannot_be_read(
    &CENTRAL_EUROPE.replace("END:DAYLIGHT", "no colon\nEND:DAYLIGHT"),
    "a line in it cannot be read"
)]
#[case::written_twice(
    &format!("{CENTRAL_EUROPE}END:VTIMEZONE\nBEGIN:VTIMEZONE\nTZID:Own zone\n{INDIA}"),
    "it is written more than once, with other rules"
)]
fn rules_that_are_not_plain(#[case] rules: &str, #[case] why: &str) {
    let message = read(&defined("Own zone", rules, EVENT), "UTC")
        .unwrap_err()
        .to_string();
    let expected =
        "DTSTART;TZID: there is no time zone `Own zone`, and its VTIMEZONE is not understood: ";
    assert!(message.contains(expected), "{message}");
    assert!(message.contains(why), "{message}");
    assert!(
        message.contains("; write an IANA time zone such as"),
        "{message}"
    );
    // Nobody asks for rules of which nobody has need.
    let known = EVENT.replace("Own zone", "Europe/London");
    assert!(read(&defined("Own zone", rules, &known), "UTC").is_ok());
    assert!(read(&defined("Europe/London", rules, &known), "UTC").is_ok());
}

#[rstest]
#[case::the_same_twice(&format!("{CENTRAL_EUROPE}END:VTIMEZONE\nBEGIN:VTIMEZONE\nTZID:Own zone\n{CENTRAL_EUROPE}"), 7)]
#[case::both_of_one_offset(&CENTRAL_EUROPE.replace("+0200", "+0100"), 8)]
#[case::seconds(&CENTRAL_EUROPE.replace("+0200", "+020000"), 7)]
#[case::in_lower_case(&CENTRAL_EUROPE.to_ascii_lowercase(), 7)]
#[case::other_properties(
    &CENTRAL_EUROPE.replace("END:DAYLIGHT", "TZNAME:Sommerzeit\nCOMMENT:x\nRDATE:\nEND:DAYLIGHT"), 7
)]
#[case::since_a_change_before(
    "BEGIN:STANDARD\nDTSTART:20141026T020000\nTZOFFSETFROM:+0400\nTZOFFSETTO:+0300\nEND:STANDARD\n",
    6
)]
fn rules_that_are_plain(#[case] rules: &str, #[case] hour: i8) {
    let calendar = read(&defined("Own zone", rules, EVENT), "UTC").unwrap();
    let july = span("2026-07-01T00:00:00Z", "2026-08-01T00:00:00Z");
    let found = calendar.occurrences(july).unwrap();
    assert_eq!(found[0].span.start.to_zoned(TimeZone::UTC).hour(), hour);
}

/// Rules say nothing of the time before them.
#[rstest]
#[case::change_ahead(
    "BEGIN:STANDARD\nDTSTART:20261025T030000\nTZOFFSETFROM:+0200\nTZOFFSETTO:+0100\nEND:STANDARD\n",
    "20260706T090000",
    Some("2026-10-25T01:00:00Z")
)]
#[case::behind_that_change(
    "BEGIN:STANDARD\nDTSTART:20261025T030000\nTZOFFSETFROM:+0200\nTZOFFSETTO:+0100\nEND:STANDARD\n",
    "20261026T090000",
    None
)]
// Its TZOFFSETFROM holds since the change before the first one that is written.
#[case::rules_ahead(
    &CENTRAL_EUROPE.replace("16011028", "20261025").replace("16010325", "20270328"),
    "20260328T090000",
    Some("2026-03-29T01:00:00Z")
)]
#[case::half_a_year_before_rules(
    &CENTRAL_EUROPE.replace("16011028", "20261025").replace("16010325", "20270328"),
    "20260329T090000",
    None
)]
fn times_before_the_rules(#[case] rules: &str, #[case] start: &str, #[case] since: Option<&str>) {
    let event = EVENT.replace("20260706T090000", start);
    let message = read(&defined("Own zone", rules, &event), "UTC")
        .err()
        .map(|error| error.to_string());
    let expected = since.map(|since| {
        format!("DTSTART;TZID: its VTIMEZONE says nothing of `{start}`, only of times since {since}; write an IANA time zone such as UTC, Europe/London or America/New_York")
    });
    let told = message
        .as_deref()
        .and_then(|message| message.split_once(": "));
    assert_eq!(told.map(|(_, told)| told), expected.as_deref());
    assert_eq!(message.is_some(), expected.is_some());
}

#[test]
fn many_zones_are_read_soon() {
    let zones: String = (0..3_000)
        .map(|n| format!("BEGIN:VTIMEZONE\nTZID:Zone {n}\n{CENTRAL_EUROPE}END:VTIMEZONE\n"))
        .collect();
    let text = calendar(&format!("{zones}BEGIN:VEVENT\n{EVENT}\nEND:VEVENT\n"));
    let text = text.replace("Own zone", "Zone 2999");
    assert_eq!(read(&text, "UTC").unwrap().events(), 1);
}
