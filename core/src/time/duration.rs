//! Lengths of time, from their text.
//!
//! A day is 24 hours, also where the clocks are changed.

use jiff::SignedDuration;
use sluice_crds::Duration;

/// What to write where a duration is wanted.
pub const REMEDY: &str =
    "write a duration such as 90m, 1h30m or 7d; the units are d (24 hours), h, m, s and ms";

/// The most digits of a number of days: as many as an API server can count with (292 years).
const MOST_DIGITS_OF_DAYS: usize = 5;

/// The length that `text` means: a whole number of days, if it begins with one, and numbers with units,
/// added up, as Go's `time.ParseDuration` reads them, without signs and without the units below a
/// millisecond.
///
/// # Errors
/// What is wrong with the text, without the remedy: see [`REMEDY`].
pub fn parse(text: &Duration) -> Result<SignedDuration, String> {
    let wrong = || format!("`{text}` is not a duration");
    if text.0.len() > 32 {
        return Err(format!("`{text}` is longer than 32 characters"));
    }
    if text.0.is_empty() {
        return Err("the duration is empty".to_owned());
    }
    let (days, mut rest) = days(text)?;
    let mut total = days;
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .ok_or_else(wrong)?;
        let (number, after) = rest.split_at(digits);
        let letters = after
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        if number.is_empty() || unit.is_empty() {
            return Err(wrong());
        }
        let unit = match unit {
            "h" => SignedDuration::from_secs(3600),
            "m" => SignedDuration::from_secs(60),
            "s" => SignedDuration::from_secs(1),
            "ms" => SignedDuration::from_millis(1),
            "d" => return Err(format!("`{text}` has days that do not come first")),
            _ => return Err(format!("`{text}` has the unknown unit `{unit}`")),
        };
        let part = part(number, unit).ok_or_else(wrong)?;
        total = total
            .checked_add(part)
            .ok_or_else(|| format!("`{text}` is too long"))?;
        rest = after;
    }
    Ok(total)
}

/// The days that it begins with, and the rest. Go has no days.
fn days(text: &Duration) -> Result<(SignedDuration, &str), String> {
    let none = (SignedDuration::ZERO, text.0.as_str());
    let Some((number, rest)) = text.0.split_once('d') else {
        return Ok(none);
    };
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    let is_unit = !rest.starts_with(|c: char| c.is_ascii_alphabetic());
    if number.is_empty() || !number.chars().all(is_number) || !is_unit {
        return Ok(none);
    }
    if number.contains('.') {
        return Err(format!("`{text}` has a part of a day; write it in hours"));
    }
    match number.parse::<i64>() {
        Ok(days) if number.len() <= MOST_DIGITS_OF_DAYS => {
            Ok((SignedDuration::from_hours(days * 24), rest))
        }
        _ => Err(format!("`{text}` is too long")),
    }
}

/// So many units. Whole ones, as most are, are the quick case: lengths are read for each decision.
fn part(number: &str, unit: SignedDuration) -> Option<SignedDuration> {
    match number.parse::<i32>() {
        Ok(whole) => unit.checked_mul(whole),
        Err(_) => SignedDuration::try_from_nanos_i128(nanos(number, unit.as_nanos())?),
    }
}

/// A decimal number of units, in nanoseconds; finer digits than a nanosecond are dropped.
fn nanos(number: &str, per_unit: i128) -> Option<i128> {
    let (whole, fraction) = match number.split_once('.') {
        Some((whole, fraction)) if !fraction.is_empty() => (whole, fraction),
        Some(_) => return None,
        None => (number, ""),
    };
    let mut total = whole
        .parse::<u64>()
        .ok()
        .map(i128::from)?
        .checked_mul(per_unit)?;
    let mut scale = per_unit;
    for digit in fraction.chars() {
        scale /= 10;
        total += i128::from(digit.to_digit(10)?) * scale;
    }
    Some(total)
}

/// The same length as Go reads it, and so Flux: without days. A text that is no duration stays as
/// it is.
pub fn without_days(text: &Duration) -> String {
    match parse(text) {
        Ok(length) if text.0.contains('d') => self::text(length),
        _ => text.0.clone(),
    }
}

/// A duration as people write it: `1h30m`, `45s`.
pub fn text(duration: SignedDuration) -> String {
    let mut seconds = duration.as_secs();
    let mut out = String::new();
    for (unit, length) in [("h", 3600), ("m", 60)] {
        if seconds >= length {
            out.push_str(&format!("{}{unit}", seconds / length));
            seconds %= length;
        }
    }
    let millis = duration.subsec_millis();
    if seconds != 0 || (millis == 0 && out.is_empty()) {
        out.push_str(&format!("{seconds}s"));
    }
    if millis != 0 {
        out.push_str(&format!("{millis}ms"));
    }
    out
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("8h", 28_800_000)]
    #[case("1h30m", 5_400_000)]
    #[case("1.5h", 5_400_000)]
    #[case("90m", 5_400_000)]
    #[case("250ms", 250)]
    #[case("0s", 0)]
    #[case("1d", 86_400_000)]
    #[case("90d", 7_776_000_000)]
    #[case("1d12h", 129_600_000)]
    #[case("007d0.5s", 604_800_500)]
    #[case("99999d", 8_639_913_600_000)]
    fn durations_are_read_as_go_reads_them_and_days_too(
        #[case] written: &str,
        #[case] millis: i128,
    ) {
        assert_eq!(parse(&written.into()).unwrap().as_millis(), millis);
    }

    #[rstest]
    #[case("")]
    #[case("2a")]
    #[case("1000days")]
    #[case("8")]
    #[case("h")]
    #[case("-1h")]
    #[case("1.h")]
    #[case("1..5h")]
    #[case("99999999999999999999h")]
    #[case("1h 30m")]
    #[case("d")]
    #[case("1.5d")]
    #[case("12h1d")]
    #[case("1d1d")]
    #[case("1d12")]
    #[case("1d ")]
    #[case("-1d")]
    #[case("1day")]
    #[case("100000d")]
    fn what_is_no_duration_is_refused(#[case] written: &str) {
        assert!(parse(&written.into()).is_err());
    }

    #[rstest]
    #[case("1.5d", "`1.5d` has a part of a day; write it in hours")]
    #[case("12h1d", "`12h1d` has days that do not come first")]
    #[case("1000days", "`1000days` has the unknown unit `days`")]
    #[case("100000d", "`100000d` is too long")]
    fn what_is_wrong_with_days_is_told(#[case] written: &str, #[case] problem: &str) {
        assert_eq!(parse(&written.into()).unwrap_err(), problem);
    }

    #[rstest]
    #[case("2d", "48h")]
    #[case("1d12h30m", "36h30m")]
    #[case("90m", "90m")]
    #[case("1.5h", "1.5h")]
    #[case("12h1d", "12h1d")]
    fn go_reads_what_is_written_without_days(#[case] written: &str, #[case] text: &str) {
        assert_eq!(without_days(&written.into()), text);
    }

    #[rstest]
    #[case("8h", "8h")]
    #[case("90m", "1h30m")]
    #[case("61s", "1m1s")]
    #[case("1500ms", "1s500ms")]
    #[case("3h48s868ms", "3h48s868ms")]
    #[case("2d", "48h")]
    #[case("0s", "0s")]
    fn durations_are_written_as_people_write_them(#[case] written: &str, #[case] text_: &str) {
        assert_eq!(text(parse(&written.into()).unwrap()), text_);
    }
}
