//! Times as windows write them: local dates with a time, and times of day.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;

use crate::time::zone;

/// What is wrong with a time, and what to write instead.
pub(super) struct Mistake {
    pub problem: String,
    pub remedy: String,
}

/// The instant of a local date and time such as `2026-12-19T00:00:00`.
pub(super) fn instant(text: &str, zone: &TimeZone) -> Result<Timestamp, Mistake> {
    let read = local(text).and_then(|wall| zone::resolve(zone, wall));
    read.ok_or_else(|| Mistake {
        problem: format!("`{text}` is not a local date and time"),
        remedy: in_place_of_local(text),
    })
}

/// The one form that sorts as it reads; jiff would take dates, fractions and more.
fn local(text: &str) -> Option<DateTime> {
    let whole = text.len() == "2026-12-19T00:00:00".len();
    let read = || DateTime::strptime("%Y-%m-%dT%H:%M:%S", text).ok();
    whole.then(read).flatten()
}

fn in_place_of_local(text: &str) -> String {
    // A date as people write it, and not in one of the other forms that jiff takes.
    let day = |text: &str| {
        let day = text.parse::<Date>().ok()?;
        (day.to_string() == text).then_some(day)
    };
    let end_of_day = text.strip_suffix("T24:00:00").and_then(day);
    if let Some(next) = end_of_day.and_then(|day| day.tomorrow().ok()) {
        format!("write the next day's midnight: {next}T00:00:00")
    } else if day(text).is_some() {
        format!("write it with a time: {text}T00:00:00")
    } else {
        "write one such as 2026-12-19T00:00:00, without an offset: timeZone applies".to_owned()
    }
}

/// The minute of a time of day such as `04:00`, 0 to 1439.
pub(super) fn minute_of_day(text: &str) -> Result<u16, Mistake> {
    let number = |digits: &str| match digits.as_bytes() {
        [b'0'..=b'9', b'0'..=b'9'] => digits.parse::<u16>().ok(),
        _ => None,
    };
    let split = text.split_once(':');
    let read = split.and_then(|(hour, minute)| Some((number(hour)?, number(minute)?)));
    match read {
        Some((hour @ 0..24, minute @ 0..60)) => Ok(hour * 60 + minute),
        _ => Err(Mistake {
            problem: format!("`{text}` is not a time of day"),
            remedy: in_place_of_time(text, read),
        }),
    }
}

fn in_place_of_time(text: &str, read: Option<(u16, u16)>) -> String {
    if read == Some((24, 0)) {
        "write 00:00".to_owned()
    } else if local(text).is_some() {
        "write one such as 04:00 beside cron; a date belongs to from, without cron".to_owned()
    } else {
        "write hours and minutes such as 04:00 or 17:30, from 00:00 to 23:59".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("00:00", 0)]
    #[case("04:05", 245)]
    #[case("23:59", 1439)]
    fn times_of_day_are_read(#[case] text: &str, #[case] minute: u16) {
        assert_eq!(minute_of_day(text).ok(), Some(minute));
    }

    #[rstest]
    #[case::midnight("24:00", "write 00:00")]
    #[case::later("24:01", "write hours and minutes such as 04:00")]
    #[case::no_minute("04:60", "write hours and minutes such as 04:00")]
    #[case::one_digit("4:00", "write hours and minutes such as 04:00")]
    #[case::seconds("04:00:00", "write hours and minutes such as 04:00")]
    #[case::sign("+4:00", "write hours and minutes such as 04:00")]
    #[case::half("4pm", "write hours and minutes such as 04:00")]
    #[case::nothing("", "write hours and minutes such as 04:00")]
    #[case::date("2026-12-20T00:00:00", "a date belongs to from")]
    fn what_is_no_time_of_day_is_refused(#[case] text: &str, #[case] remedy: &str) {
        let told = minute_of_day(text).err().unwrap().remedy;
        assert!(told.contains(remedy), "{told}");
    }

    #[rstest]
    #[case::end_of_a_day("2026-11-20T24:00:00", "2026-11-21T00:00:00")]
    #[case::end_of_a_month("2026-11-30T24:00:00", "2026-12-01T00:00:00")]
    #[case::end_of_february("2028-02-28T24:00:00", "2028-02-29T00:00:00")]
    #[case::end_of_a_year("2026-12-31T24:00:00", "2027-01-01T00:00:00")]
    #[case::date("2026-12-19", "2026-12-19T00:00:00")]
    #[case::no_such_day("2026-02-30T24:00:00", "one such as 2026-12-19T00:00:00")]
    #[case::later_than_midnight("2026-11-20T24:00:01", "one such as 2026-12-19T00:00:00")]
    #[case::offset("2026-11-20T10:00:00Z", "one such as 2026-12-19T00:00:00")]
    fn remedies_are_times_that_are_read(#[case] text: &str, #[case] meant: &str) {
        let told = instant(text, &TimeZone::UTC).err().unwrap().remedy;
        assert!(told.contains(meant), "{told}");
        let written = meant.rsplit(' ').next().unwrap();
        assert!(instant(written, &TimeZone::UTC).is_ok(), "{told}");
    }
}
