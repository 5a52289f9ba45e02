//! From the TZID of a time to a zone whose rules are known here.

use std::collections::HashMap;

use jiff::tz::TimeZone;

use super::clean;
use crate::zone;

/// The zones that times of a calendar can be in.
pub(super) struct Zones<'a> {
    /// The zone of floating times and of all-day events.
    pub default: &'a TimeZone,
    /// By TZID, the place that a VTIMEZONE names.
    places: &'a HashMap<String, String>,
}

impl<'a> Zones<'a> {
    pub fn new(default: &'a TimeZone, places: &'a HashMap<String, String>) -> Self {
        Self { default, places }
    }

    /// The zone that a TZID means: by its own name, else by the place its VTIMEZONE names. The
    /// rules inside a VTIMEZONE are not read: nobody keeps those up to date.
    ///
    /// # Errors
    /// What is wrong with the TZID, without a remedy.
    pub fn find(&self, id: &str) -> Result<TimeZone, String> {
        let place = || self.places.get(id).and_then(|place| known(place));
        known(id).or_else(place).ok_or_else(|| {
            let id = clean(id, 60);
            format!("there is no time zone `{id}`")
        })
    }
}

/// An IANA name, a Windows name, or an id such as `/example.org/20260101/Europe/London` or
/// `tzone://Microsoft/Utc` that ends in one.
fn known(id: &str) -> Option<TimeZone> {
    let named = |name: &str| zone::find(name).ok();
    if let Some(found) = named(id).or_else(|| zone::windows::iana(id).and_then(named)) {
        return Some(found);
    }
    if !id.starts_with('/') && !id.contains("://") {
        return None;
    }
    // IANA names have at most three parts; the longest that fits is meant.
    let parts: Vec<&str> = id.rsplit('/').take(3).collect();
    (1..=parts.len())
        .rev()
        .map(|n| {
            parts[..n]
                .iter()
                .rev()
                .copied()
                .collect::<Vec<_>>()
                .join("/")
        })
        .find_map(|name| named(&name))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("Europe/London", "Europe/London")]
    #[case("W. Europe Standard Time", "Europe/Berlin")]
    #[case("/freeassociation.sourceforge.net/Europe/London", "Europe/London")]
    #[case("/citadel.org/20100714_1/America/New_York", "America/New_York")]
    #[case("/x/America/Argentina/Ushuaia", "America/Argentina/Ushuaia")]
    #[case("tzone://Microsoft/Utc", "UTC")]
    #[case("Own 1", "Europe/Paris")]
    fn zones_are_known_by_many_names(#[case] id: &str, #[case] expected: &str) {
        let places = HashMap::from([("Own 1".to_owned(), "Europe/Paris".to_owned())]);
        let found = Zones::new(&TimeZone::UTC, &places).find(id);
        assert_eq!(found, Ok(zone::find(expected).unwrap()));
    }

    #[rstest]
    #[case("Customized Time Zone")]
    #[case("tzone://Microsoft/Custom")]
    #[case("Mars/Europe/London")]
    #[case("Etc/Unknown")]
    #[case("/example.org/Etc/Unknown")]
    #[case("Own 2")]
    #[case("")]
    #[case("/")]
    fn other_names_are_refused(#[case] id: &str) {
        let places = HashMap::from([("Own 2".to_owned(), "Here".to_owned())]);
        assert!(Zones::new(&TimeZone::UTC, &places).find(id).is_err());
    }
}
