//! From the text of a schedule to windows that can be asked: every mistake is found here, whether
//! or not admission would have refused it.

use jiff::SignedDuration;
use jiff::tz::TimeZone;
use sluice_crds::gatekeeper as api;
use sluice_crds::{Duration, State};

use super::times::{self, Mistake};
use super::{Entry, Schedule, When};
use crate::text::refusal::{Refusal, Refusals};
use crate::time::cron::Cron;
use crate::time::span::Span;
use crate::time::window::Window;
use crate::time::{duration, zone};

/// The longest that one window lasts: beyond it a window is a state, not a window.
pub(crate) const LONGEST: SignedDuration = SignedDuration::from_hours(366 * 24);
/// The most windows in one list.
const MOST_WINDOWS: usize = 128;

pub(super) fn schedule(spec: &api::Schedule, path: &str) -> Result<Schedule, Refusals> {
    let mut reader = Reader {
        mistakes: Vec::new(),
        calendars: 0,
    };
    let zone = zone::find(&spec.time_zone).unwrap_or_else(|problem| {
        reader.refuse(format!("{path}.timeZone"), problem, zone::REMEDY);
        TimeZone::UTC
    });
    if spec.open.is_empty() && spec.closed.is_empty() {
        reader.refuse(
            path.to_owned(),
            "a schedule without windows is always open",
            "write at least one window under open or closed",
        );
    }
    let open = reader.list(&spec.open, &format!("{path}.open"), &zone);
    let closed = reader.list(&spec.closed, &format!("{path}.closed"), &zone);
    reader.refuse_shared_names(spec, path);
    for (n, _) in spec
        .closed
        .iter()
        .enumerate()
        .filter(|(_, w)| w.last_start.is_some())
    {
        reader.refuse(
            format!("{path}.closed[{n}].lastStart"),
            "lastStart belongs to open windows",
            "remove it",
        );
    }
    let read = Schedule {
        zone,
        zone_name: spec.time_zone.clone(),
        open,
        closed,
        undecided: State::Closed,
    };
    Refusals::unless_empty(reader.mistakes, read)
}

/// How messages call a window: by its name, else by what it says.
fn label(window: &api::Window, place: usize) -> String {
    let said = [&window.name, &window.cron, &window.from];
    said.into_iter()
        .flatten()
        .next()
        .cloned()
        .unwrap_or_else(|| format!("#{}", place + 1))
}

struct Reader {
    mistakes: Vec<Refusal>,
    calendars: usize,
}

impl Reader {
    fn refuse(&mut self, field: String, problem: impl Into<String>, remedy: &str) {
        self.mistakes.push(Refusal::new(field, problem, remedy));
    }

    fn list(&mut self, windows: &[api::Window], path: &str, zone: &TimeZone) -> Vec<Entry> {
        if windows.len() > MOST_WINDOWS {
            let problem = format!("{} windows are more than {MOST_WINDOWS}", windows.len());
            self.refuse(
                path.to_owned(),
                problem,
                "split the schedule into several gatekeepers",
            );
            return Vec::new();
        }
        let mut entries = Vec::with_capacity(windows.len());
        for (place, window) in windows.iter().enumerate() {
            let path = format!("{path}[{place}]");
            let Some(when) = self.when(window, &path, zone) else {
                continue;
            };
            let last_start = self.last_start(window, &path, &when);
            entries.push(Entry {
                label: label(window, place),
                reason: window.reason.clone(),
                when,
                last_start,
            });
        }
        entries
    }

    fn when(&mut self, window: &api::Window, path: &str, zone: &TimeZone) -> Option<When> {
        // Beside cron, `until` is a time of day.
        let dated = window.from.is_some() || (window.until.is_some() && window.cron.is_none());
        if window.duration.is_some() && window.cron.is_none() {
            self.refuse(
                format!("{path}.duration"),
                "duration belongs to cron",
                "remove it, or write cron",
            );
        }
        match (&window.cron, dated, &window.calendar) {
            (Some(cron), false, None) => self.cron(cron, window, path).map(When::Window),
            (None, true, None) => self.dated(window, path, zone).map(When::Window),
            (None, false, Some(calendar)) => self.calendar(calendar, path),
            _ => {
                self.refuse(
                    path.to_owned(),
                    "a window is given in exactly one way",
                    "write cron, or from and until, or calendar",
                );
                None
            }
        }
    }

    fn cron(&mut self, text: &str, window: &api::Window, path: &str) -> Option<Window> {
        let cron = Cron::parse(text)
            .map_err(|mistake| {
                self.refuse(format!("{path}.cron"), mistake.problem, &mistake.remedy);
            })
            .ok();
        match (&window.duration, &window.until) {
            (None, None) => cron.map(|cron| Window::Matching { cron }),
            (Some(duration), None) => {
                let duration = self.length(duration, format!("{path}.duration"))?;
                cron.map(|cron| Window::Recurring { cron, duration })
            }
            (None, Some(until)) => {
                let minute = self.time(times::minute_of_day(until), format!("{path}.until"))?;
                cron.map(|cron| Window::Until { cron, minute })
            }
            (Some(_), Some(_)) => {
                self.refuse(
                    format!("{path}.until"),
                    "a window has one end, and this one has two",
                    "give either duration or until",
                );
                None
            }
        }
    }

    fn time<T>(&mut self, read: Result<T, Mistake>, field: String) -> Option<T> {
        let refuse = |Mistake { problem, remedy }| self.refuse(field, problem, &remedy);
        read.map_err(refuse).ok()
    }

    /// A duration of a window: more than nothing, at most [`LONGEST`].
    fn length(&mut self, text: &Duration, field: String) -> Option<SignedDuration> {
        match duration::parse(text) {
            Err(problem) => {
                self.refuse(field, problem, duration::REMEDY);
                None
            }
            Ok(length) if length <= SignedDuration::ZERO => {
                self.refuse(
                    field,
                    format!("`{text}` is not longer than zero"),
                    duration::REMEDY,
                );
                None
            }
            Ok(length) if length > LONGEST => {
                let problem = format!("`{text}` is longer than 8784h (366 days)");
                self.refuse(
                    field,
                    problem,
                    "write a shorter duration, or a manual gatekeeper",
                );
                None
            }
            Ok(length) => Some(length),
        }
    }

    fn dated(&mut self, window: &api::Window, path: &str, zone: &TimeZone) -> Option<Window> {
        let (Some(from), Some(until)) = (&window.from, &window.until) else {
            self.refuse(
                path.to_owned(),
                "from and until belong together",
                "write both, or cron with until as a time of day",
            );
            return None;
        };
        let start = self.time(times::instant(from, zone), format!("{path}.from"));
        let end = self.time(times::instant(until, zone), format!("{path}.until"));
        let span = Span {
            start: start?,
            end: end?,
        };
        if span.is_empty() {
            let problem = format!("`{until}` is not later than from `{from}`");
            self.refuse(format!("{path}.until"), problem, "write a later time");
            return None;
        }
        Some(Window::Dated(span))
    }

    fn calendar(&mut self, calendar: &api::Calendar, path: &str) -> Option<When> {
        let path = format!("{path}.calendar");
        let before = self.mistakes.len();
        match (&calendar.config_map_ref, &calendar.url) {
            (Some(_), None) if calendar.cert_secret_ref.is_some() => {
                self.refuse(
                    format!("{path}.certSecretRef"),
                    "certSecretRef belongs to url",
                    "remove it",
                );
            }
            (Some(_), None) => {}
            (None, Some(url)) if url.starts_with("https://") => {}
            (None, Some(url)) => self.refuse(
                format!("{path}.url"),
                format!("`{url}` is not an https address"),
                "write one that starts with https://",
            ),
            (None, None) | (Some(_), Some(_)) => self.refuse(
                path.clone(),
                "a calendar is read from exactly one place",
                "write configMapRef or url",
            ),
        }
        self.interval(&calendar.interval, format!("{path}.interval"));
        let place = self.calendars;
        self.calendars += 1;
        (self.mistakes.len() == before).then(|| When::Calendar(calendar.clone(), place))
    }

    fn interval(&mut self, text: &Duration, field: String) {
        let bounds = SignedDuration::from_mins(1)..=SignedDuration::from_hours(168);
        match duration::parse(text) {
            Ok(interval) if bounds.contains(&interval) => {}
            Ok(_) => {
                let problem = format!("`{text}` is not between 1m and 168h");
                self.refuse(field, problem, "write an interval such as 1h");
            }
            Err(problem) => self.refuse(field, problem, duration::REMEDY),
        }
    }

    fn last_start(&mut self, window: &api::Window, path: &str, when: &When) -> SignedDuration {
        let Some(text) = &window.last_start else {
            return SignedDuration::ZERO;
        };
        let field = format!("{path}.lastStart");
        let whole = match when {
            When::Window(window) => window.longest(),
            When::Calendar(..) => Some(LONGEST),
        };
        let Some(whole) = whole else {
            self.refuse(
                field,
                "a cron without an end has nothing to count from",
                "write duration or until too",
            );
            return SignedDuration::ZERO;
        };
        match self.length(text, field.clone()) {
            Some(length) if length < whole => length,
            Some(_) => {
                let problem = format!("`{text}` leaves nothing of the window");
                self.refuse(field, problem, "write less than the window lasts");
                SignedDuration::ZERO
            }
            None => SignedDuration::ZERO,
        }
    }

    fn refuse_shared_names(&mut self, spec: &api::Schedule, path: &str) {
        let named = |list: &'static str, windows: &[api::Window]| -> Vec<(String, String)> {
            let field = |n| format!("{path}.{list}[{n}].name");
            let name = |(n, window): (usize, &api::Window)| Some((window.name.clone()?, field(n)));
            windows.iter().enumerate().filter_map(name).collect()
        };
        let mut all = named("open", &spec.open);
        all.extend(named("closed", &spec.closed));
        for (n, (name, field)) in all.iter().enumerate() {
            if all[..n].iter().any(|(other, _)| other == name) {
                self.refuse(
                    field.clone(),
                    format!("another window is named `{name}`"),
                    "give each window a name of its own",
                );
            }
        }
    }
}
