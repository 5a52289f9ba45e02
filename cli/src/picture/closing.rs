//! What keeps a gate from being open on a day, as it is noted beside the day.

use jiff::civil::Date;

use super::days::{Kind, Picture, whole};

/// That no window is open is seen in the picture.
const SEEN: [&str; 2] = ["outside every open window", "too late to start in"];

/// What is noted beside the days: each cause itself, or its number where there is no room for that.
pub(super) struct Causes<'a> {
    /// Those of each day.
    days: Vec<(Date, Vec<&'a str>)>,
    /// Those that have a number, in the order of it. None: causes are written out.
    numbered: Option<Vec<&'a str>>,
}

impl<'a> Causes<'a> {
    /// The causes of all days, written out if each day's take at most `room` columns.
    pub(super) fn of(picture: &'a Picture, room: usize) -> Self {
        let causes = |day| (day, closing(picture, day));
        let days: Vec<_> = picture.days().into_iter().map(causes).collect();
        let fits = |(_, causes): &(Date, Vec<&str>)| written_out(causes).chars().count() <= room;
        let mut numbered: Vec<&str> = Vec::new();
        for cause in days.iter().flat_map(|(_, causes)| causes) {
            if !numbered.contains(cause) {
                numbered.push(cause);
            }
        }
        let all_fit = days.iter().all(fits);
        Self {
            days,
            numbered: (!all_fit).then_some(numbered),
        }
    }

    /// What is noted beside `day`.
    pub(super) fn beside(&self, day: Date) -> String {
        let mut days = self.days.iter();
        let Some((_, causes)) = days.find(|(known, _)| *known == day) else {
            return String::new();
        };
        match self.numbered {
            None => written_out(causes),
            Some(_) if causes.is_empty() => String::new(),
            Some(_) => {
                let numbers = causes.iter().filter_map(|cause| self.place(cause));
                let numbers = numbers.map(|number| number.to_string());
                format!("[{}]", numbers.collect::<Vec<_>>().join(","))
            }
        }
    }

    /// The number of a cause, if it has one.
    pub(super) fn number(&self, cause: &str) -> Option<String> {
        Some(format!("[{}]", self.place(cause)?))
    }

    fn place(&self, cause: &str) -> Option<usize> {
        let numbered = self.numbered.as_ref()?;
        let place = numbered.iter().position(|known| *known == cause)?;
        Some(place + 1)
    }
}

/// What closes or forces the gate that day, without what the picture shows: each cause once.
pub(super) fn closing(picture: &Picture, day: Date) -> Vec<&str> {
    let mut closing: Vec<&str> = Vec::new();
    let met = picture.within(whole(day, &picture.zone));
    let met = met.filter(|(_, stretch)| Kind::of(stretch) != Kind::Open);
    for cause in met.flat_map(|(_, stretch)| &stretch.causes) {
        let is_seen = SEEN.iter().any(|seen| cause.contains(seen));
        if !is_seen && !closing.contains(&cause.as_str()) {
            closing.push(cause);
        }
    }
    closing
}

/// Without the name of the gatekeeper.
fn short(cause: &str) -> &str {
    let short = cause
        .split_once("closed by window ")
        .or_else(|| cause.split_once(": "));
    short.map_or(cause, |(_, short)| short)
}

fn written_out(causes: &[&str]) -> String {
    let mut all: Vec<&str> = Vec::new();
    for cause in causes.iter().map(|cause| short(cause)) {
        // Two gatekeepers may say the same.
        if !all.contains(&cause) {
            all.push(cause);
        }
    }
    all.join("; ")
}
