//! `schedule`: windows in time, by cron, by date, by calendar.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::{CertificateReference, ConfigMapKeyReference, Duration, default_interval};
use crate::values::with_days;

/// Windows in which changes may, or may not, go out. Closed windows beat open ones; windows of
/// one list may overlap, their union counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.open) && size(self.open) > 0 || has(self.closed) && size(self.closed) > 0")
        .message("a schedule without windows is always open; write at least one window under open or closed"),
    validation = Rule::new("!has(self.closed) || self.closed.all(w, !has(w.lastStart))")
        .message("closed: lastStart belongs to open windows; remove it")
        .field_path(".closed"),
    validation = Rule::new("!has(self.open) || !has(self.closed) || self.open.all(w, !has(w.name) || self.closed.all(c, !has(c.name) || c.name != w.name))")
        .message("open: a window has the name of a closed one; give each window a name of its own")
        .field_path(".open")
)]
pub struct Schedule {
    /// The IANA time zone in which the windows are written, such as `Europe/London`.
    #[serde(default = "default_time_zone")]
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^[A-Za-z0-9_+\-/]+$"))]
    pub time_zone: String,

    /// Windows in which changes may go out. None: at any time that no `closed` window covers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128))]
    #[x_kube(
        validation = Rule::new("self.all(a, !has(a.name) || self.exists_one(b, has(b.name) && b.name == a.name))")
            .message("open: two windows have the same name; give each window a name of its own")
    )]
    pub open: Vec<Window>,

    /// Windows in which nothing may go out, even inside an `open` window.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128))]
    #[x_kube(
        validation = Rule::new("self.all(a, !has(a.name) || self.exists_one(b, has(b.name) && b.name == a.name))")
            .message("closed: two windows have the same name; give each window a name of its own")
    )]
    pub closed: Vec<Window>,
}

fn default_time_zone() -> String {
    "UTC".to_owned()
}

/// A window, given by one of `cron`, `from` with `until`, or `calendar`. Its start is inside the window,
/// its end is outside.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("[has(self.cron), has(self.from) || has(self.until) && !has(self.cron), has(self.calendar)].filter(given, given).size() == 1")
        .message("a window is given in exactly one way; write cron, or from and until, or calendar"),
    validation = Rule::new("has(self.cron) || has(self.from) == has(self.until)")
        .message("from and until belong together; write both, or cron with until as a time of day"),
    validation = Rule::new("!has(self.from) || has(self.cron) || !has(self.until) || self.until.size() > 5")
        .message("until: beside from it is a local date and time; write one such as 2026-12-19T00:00:00")
        .field_path(".until"),
    validation = Rule::new("!has(self.cron) || has(self.from) || !has(self.until) || self.until.size() <= 5")
        .message("until: beside cron it is a time of day; write one such as 04:00")
        .field_path(".until"),
    validation = Rule::new("!has(self.until) || self.until != '24:00'")
        .message("until: no clock shows 24:00; write 00:00")
        .field_path(".until"),
    validation = Rule::new("!has(self.from) || !has(self.until) || self.until.size() <= 5 || self.from < self.until")
        .message("until: must be later than from")
        .field_path(".until"),
    validation = Rule::new("!has(self.cron) || !has(self.duration) || !has(self.until)")
        .message("until: a window has one end; give either duration or until")
        .field_path(".until"),
    validation = Rule::new("!has(self.duration) || has(self.cron)")
        .message("duration: belongs to cron; remove it, or write cron")
        .field_path(".duration"),
    validation = Rule::new(with_days("!has(self.duration) || (duration(self.duration) > duration('0s') && duration(self.duration) <= duration('8784h'))"))
        .message("duration: must be longer than zero and at most 8784h (366 days); write a duration such as 8h or 90m")
        .field_path(".duration"),
    validation = Rule::new("!has(self.lastStart) || !has(self.cron) || has(self.duration) || has(self.until)")
        .message("lastStart: a cron without an end has nothing to count from; write duration or until too")
        .field_path(".lastStart"),
    validation = Rule::new(with_days("!has(self.lastStart) || (duration(self.lastStart) > duration('0s') && (!has(self.duration) || duration(self.lastStart) < duration(self.duration)))"))
        .message("lastStart: must be longer than zero and shorter than duration")
        .field_path(".lastStart")
)]
pub struct Window {
    /// A name for messages, unique within the schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    )]
    pub name: Option<String>,

    /// Why this window is there, for messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub reason: Option<String>,

    /// When the window starts: minute, hour, day of month, month, day of week, in the schedule's
    /// time zone. With neither `duration` nor `until`: every minute that matches is inside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub cron: Option<String>,

    /// How long the window lasts from each start, in elapsed time, such as `8h`. Or write `until`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<Duration>,

    /// The start of a dated window: local time in the schedule's time zone, without an offset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 19),
        regex(pattern = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}$")
    )]
    pub from: Option<String>,

    /// The end of the window, in the schedule's time zone; this instant is outside. Beside `from`: local
    /// time, without an offset. Beside `cron`: the local hour and minute at which it ends, such as
    /// `"04:00"`; on the day of the start if that is later than the start, otherwise on the next day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 19), regex(pattern = Window::UNTIL))]
    pub until: Option<String>,

    /// The windows are the events of an iCalendar file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calendar: Option<Calendar>,

    /// Nothing new starts in this last part of an open window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_start: Option<Duration>,
}

impl Window {
    /// The form of `until`: a local date and time, or a time of day.
    pub const UNTIL: &'static str =
        r"^([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}|([01][0-9]|2[0-3]):[0-5][0-9])$";
}

/// Where an iCalendar file (RFC 5545) is read from: a ConfigMap, or an address.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.configMapRef) != has(self.url)")
        .message("a calendar is read from exactly one place; write configMapRef or url"),
    validation = Rule::new("has(self.url) || !has(self.certSecretRef)")
        .message("certSecretRef: belongs to url; remove it")
        .field_path(".certSecretRef"),
    validation = Rule::new(with_days("duration(self.interval) >= duration('1m') && duration(self.interval) <= duration('168h')"))
        .message("interval: must be between 1m and 168h")
        .field_path(".interval")
)]
pub struct Calendar {
    /// A key of a ConfigMap in the gatekeeper's namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map_ref: Option<ConfigMapKeyReference>,

    /// An https address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048), regex(pattern = r"^https://[^\s@]+$"))]
    pub url: Option<String>,

    /// How often the address is read again. A calendar stays good for three intervals after it was read.
    #[serde(default = "default_interval")]
    pub interval: Duration,

    /// A Secret in the gatekeeper's namespace with the key `ca.crt`: the CA certificates to trust
    /// in addition to the public authorities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert_secret_ref: Option<CertificateReference>,
}
