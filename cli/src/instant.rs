//! Instants and lengths of time, as they are written on the command line and shown.
//!
//! What comes in: texts, and names of time zones. What goes out: instants, lengths, and texts again.
//! Uses the room `clock`.

use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use sluice_core::offline::simulate::Scene;
use sluice_core::text::words;
use sluice_core::time::{duration, zone};
use sluice_crds::Gatekeeper;

use crate::clock;

/// A time zone with its name.
#[derive(Clone, Debug)]
pub(crate) struct Zone {
    pub(crate) zone: TimeZone,
    pub(crate) name: String,
}

impl Zone {
    pub(crate) fn utc() -> Self {
        Self {
            zone: TimeZone::UTC,
            name: "UTC".to_owned(),
        }
    }

    /// The zone of that IANA name.
    pub(crate) fn named(name: &str) -> Result<Self> {
        let zone = zone::find(name).map_err(|problem| anyhow!("{problem}; {}", zone::REMEDY))?;
        Ok(Self {
            zone,
            name: name.to_owned(),
        })
    }

    /// The zone in which the windows of a gate, and of those behind it, are written; see
    /// [`Zone::shared`].
    pub(crate) fn of(scene: &Scene) -> Self {
        Self::shared(scene.time_zones())
    }

    /// The zone in which the windows of these are written; see [`Zone::shared`].
    pub(crate) fn of_gatekeepers<'k>(all: impl IntoIterator<Item = &'k Gatekeeper>) -> Self {
        let schedules = all.into_iter().filter_map(|it| it.spec.schedule.as_ref());
        Self::shared(schedules.map(|schedule| schedule.time_zone.as_str()))
    }

    /// The one zone that all these name who name one; UTC, which nobody has on the wall, counts
    /// for nothing. If there is none, or several, UTC.
    pub(crate) fn shared<'n>(names: impl IntoIterator<Item = &'n str>) -> Self {
        let utc = Self::utc();
        let mut local = names.into_iter().filter(|name| *name != utc.name);
        match local.next() {
            Some(first) if local.all(|other| other == first) => Self::named(first).unwrap_or(utc),
            _ => utc,
        }
    }

    /// The same without the zone, for a column whose heading names it.
    pub(crate) fn wall(&self, at: Timestamp) -> String {
        let text = self.text(at);
        let wall = text.strip_suffix(self.name.as_str()).unwrap_or(&text);
        wall.trim_end().to_owned()
    }

    /// An instant as its readers know it.
    pub(crate) fn text(&self, at: Timestamp) -> String {
        words::instant(at, &self.zone, &self.name)
    }
}

/// An instant: RFC 3339, `now`, or a local time without an offset if `zone` says where.
pub(crate) fn parse(text: &str, zone: Option<&Zone>) -> Result<Timestamp> {
    const REMEDY: &str =
        "write RFC 3339, such as 2026-11-20T18:00:00Z or 2026-11-20T18:00:00+01:00";
    if text == "now" {
        return Ok(clock::now());
    }
    if let Ok(instant) = text.parse::<Timestamp>() {
        return Ok(instant);
    }
    let Ok(wall) = text.parse::<DateTime>() else {
        bail!("`{text}` is not an instant; {REMEDY}")
    };
    let Some(zone) = zone else {
        bail!(
            "`{text}` says not where the clock shows it; write an offset, such as {text}Z, or give --zone"
        )
    };
    zone::resolve(&zone.zone, wall).with_context(|| format!("`{text}` is out of range; {REMEDY}"))
}

/// A length of time of more than nothing.
pub(crate) fn parse_duration(text: &str) -> Result<SignedDuration> {
    let length = duration::parse(&text.into())
        .map_err(|problem| anyhow!("{problem}; {}", duration::REMEDY))?;
    if !length.is_positive() {
        bail!("`{text}` is not longer than zero; {}", duration::REMEDY);
    }
    Ok(length)
}

/// How long to wait, as kubectl has it: a duration, a bare number of seconds, or 0 for none.
pub(crate) fn parse_timeout(text: &str) -> Result<Option<Duration>> {
    if let Ok(seconds) = text.parse::<u64>() {
        return Ok((seconds > 0).then(|| Duration::from_secs(seconds)));
    }
    let length = Duration::try_from(parse_duration(text)?);
    Ok(Some(
        length.with_context(|| format!("`{text}` is too long"))?,
    ))
}

/// How long ago, as kubectl writes it: `45s`, `12m`, `3h`, `4d`.
pub(crate) fn age(since: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(since).as_secs().max(0);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// How long something took, in its two greatest units: `6h 38m`, `6m 12s`, `38s`.
pub(crate) fn length(seconds: i64) -> String {
    let (great, small, ends) = match seconds.max(0) {
        seconds @ 0..60 => return format!("{seconds}s"),
        seconds @ 60..3_600 => (seconds / 60, seconds % 60, ["m", "s"]),
        seconds @ 3_600..86_400 => (seconds / 3_600, seconds % 3_600 / 60, ["h", "m"]),
        seconds => (seconds / 86_400, seconds % 86_400 / 3_600, ["d", "h"]),
    };
    match small {
        0 => format!("{great}{}", ends[0]),
        small => format!("{great}{} {small}{}", ends[0], ends[1]),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(&[], "UTC")]
    #[case(&["UTC"], "UTC")]
    #[case(&["Europe/London", "UTC", "Europe/London"], "Europe/London")]
    #[case(&["Europe/London", "Europe/Berlin"], "UTC")]
    fn one_zone_is_shared_or_utc(#[case] names: &[&str], #[case] expected: &str) {
        assert_eq!(Zone::shared(names.iter().copied()).name, expected);
    }

    #[rstest]
    #[case("2026-11-20T18:00:00Z", None, "2026-11-20T18:00:00Z")]
    #[case("2026-11-20T18:00:00+01:00", None, "2026-11-20T17:00:00Z")]
    #[case("2026-11-20T18:00Z", None, "2026-11-20T18:00:00Z")]
    #[case("2026-11-20T18:00:00", Some("Europe/Berlin"), "2026-11-20T17:00:00Z")]
    #[case("2026-11-20 18:00", Some("Europe/Berlin"), "2026-11-20T17:00:00Z")]
    #[case("2026-11-20", Some("Europe/Berlin"), "2026-11-19T23:00:00Z")]
    #[case(
        "2026-03-08T02:30:00",
        Some("America/New_York"),
        "2026-03-08T07:00:00Z"
    )]
    #[case("2026-11-20T18:00:00Z", Some("Europe/Berlin"), "2026-11-20T18:00:00Z")]
    fn instants_are_read(#[case] text: &str, #[case] zone: Option<&str>, #[case] expected: &str) {
        let zone = zone.map(|name| Zone::named(name).unwrap());
        assert_eq!(parse(text, zone.as_ref()).unwrap().to_string(), expected);
    }

    #[rstest]
    #[case("2026-11-20T18:00:00", "give --zone")]
    #[case("tomorrow", "`tomorrow` is not an instant; write RFC 3339")]
    #[case("2026-02-30T00:00:00Z", "is not an instant")]
    #[case("", "is not an instant")]
    fn what_is_no_instant_is_refused(#[case] text: &str, #[case] expected: &str) {
        let error = parse(text, None).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }

    #[rstest]
    #[case("0", None)]
    #[case("45", Some(45))]
    #[case("1m30s", Some(90))]
    fn timeouts_are_read_as_kubectl_reads_them(#[case] text: &str, #[case] seconds: Option<u64>) {
        let expected = seconds.map(Duration::from_secs);
        assert_eq!(parse_timeout(text).unwrap(), expected);
        assert!(parse_timeout("soon").is_err());
    }

    #[rstest]
    #[case(-1, "0s")]
    #[case(38, "38s")]
    #[case(360, "6m")]
    #[case(372, "6m 12s")]
    #[case(23_880, "6h 38m")]
    #[case(180_000, "2d 2h")]
    fn lengths_have_two_units(#[case] seconds: i64, #[case] expected: &str) {
        assert_eq!(length(seconds), expected);
    }

    #[rstest]
    #[case(119, "119s")]
    #[case(120, "2m")]
    #[case(7_200, "2h")]
    #[case(172_800, "2d")]
    #[case(-5, "0s")]
    fn ages_are_short(#[case] seconds: i64, #[case] expected: &str) {
        let at = |second| Timestamp::from_second(second).unwrap();
        assert_eq!(age(at(1_000_000), at(1_000_000 + seconds)), expected);
    }
}
