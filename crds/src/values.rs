//! Values that several kinds share.

use std::borrow::Cow;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Whether a change may pass, as a status reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum State {
    /// It may.
    Open,
    /// It may not.
    Closed,
    /// Some revisions may, others may not. Where no revision is named, it counts as closed.
    Conditional,
}

impl State {
    /// Every state.
    pub const ALL: [State; 3] = [State::Open, State::Closed, State::Conditional];

    /// The word, as statuses and metrics have it.
    pub fn as_str(self) -> &'static str {
        match self {
            State::Open => "Open",
            State::Closed => "Closed",
            State::Conditional => "Conditional",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Open or closed, as a person asks for it in a spec or an annotation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Setting {
    /// Let changes pass.
    Open,
    /// Hold changes back. This is the default everywhere.
    #[default]
    Closed,
}

impl From<Setting> for State {
    fn from(setting: Setting) -> Self {
        match setting {
            Setting::Open => State::Open,
            Setting::Closed => State::Closed,
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Setting::Open => "open",
            Setting::Closed => "closed",
        })
    }
}

/// How several verdicts become one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Require {
    /// Every one must admit the change.
    #[default]
    All,
    /// One that admits the change is enough.
    OneOf,
}

impl fmt::Display for Require {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Require::All => "all",
            Require::OneOf => "oneOf",
        })
    }
}

/// A change of state that is known in advance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Transition {
    /// The instant of the change.
    pub at: Time,
    /// The state from that instant on.
    pub state: State,
}

/// A length of time as Go and Flux write it: whole or decimal numbers with the units `h`, `m`,
/// `s` or `ms`, the largest first by custom (`90m`, `1h30m`). Before them there may be a whole number
/// of days (`90d`, `1d12h`); a day is 24 hours, whatever the clocks do. At most 32 characters.
///
/// It is still text here; `sluice_core::duration` parses it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Duration(pub String);

impl Duration {
    /// The form that admission asks for.
    pub const PATTERN: &'static str =
        r"^([0-9]{1,5}d([0-9]+(\.[0-9]+)?(ms|s|m|h))*|([0-9]+(\.[0-9]+)?(ms|s|m|h))+)$";
}

/// A rule (CEL) in which `duration(self.field)` accepts days, too, which CEL does not know.
///
/// CEL cannot multiply a duration by a number either. But it can make instants from seconds, and the
/// difference of two instants is a duration. All the parts have a known size: otherwise the API server
/// estimates that the rule costs too much. Nothing may follow the days; for that case `0s` is put before
/// it.
pub(crate) fn with_days(rule: &str) -> String {
    const LENGTH: &str = "duration(self.";
    let mut parts = rule.split(LENGTH);
    let mut written = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (field, rest) = part.split_once(')').unwrap_or((part, ""));
        let days = format!("int(self.{field}.substring(0, self.{field}.indexOf('d')))");
        let more = format!("'0s' + self.{field}.substring(self.{field}.indexOf('d') + 1)");
        written += &format!(
            "(self.{field}.contains('d') ? timestamp({days} * 86400) - timestamp(0) + duration({more}) : \
             {LENGTH}{field})){rest}"
        );
    }
    written
}

impl From<&str> for Duration {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl JsonSchema for Duration {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "maxLength": 32, "pattern": Self::PATTERN })
    }
}

/// A number of pods, or a part of them in percent. What admission refuses can be read all the same, and is
/// refused once more.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum IntOrPercent {
    /// A number.
    Int(i64),
    /// A percentage, such as `25%`.
    Percent(String),
}

impl IntOrPercent {
    /// The form of a percentage that admission asks for.
    pub const PATTERN: &'static str = r"^(100|[1-9]?[0-9])%$";
}

impl fmt::Display for IntOrPercent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IntOrPercent::Int(number) => write!(f, "{number}"),
            IntOrPercent::Percent(text) => f.write_str(text),
        }
    }
}

impl JsonSchema for IntOrPercent {
    fn schema_name() -> Cow<'static, str> {
        "IntOrPercent".into()
    }

    fn inline_schema() -> bool {
        true
    }

    /// The limits are of numbers, and the pattern is of texts. Limits in a rule (CEL) would cost too much:
    /// the API server takes the text to be as long as a request may be.
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "x-kubernetes-int-or-string": true,
            "minimum": 0,
            "maximum": i32::MAX,
            "pattern": Self::PATTERN,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_of_a_rule_counts_days() {
        assert_eq!(
            with_days("!has(self.a) || duration(self.a) > duration('0s')"),
            "!has(self.a) || (self.a.contains('d') \
             ? timestamp(int(self.a.substring(0, self.a.indexOf('d'))) * 86400) - timestamp(0) \
             + duration('0s' + self.a.substring(self.a.indexOf('d') + 1)) \
             : duration(self.a)) > duration('0s')"
        );
        let two = with_days("duration(self.a) < duration(self.b)");
        assert_eq!(two.matches("* 86400").count(), 2);
        assert_eq!(with_days("self.a == 'd'"), "self.a == 'd'");
    }

    /// A rule that reads a duration without its days refuses what it should admit.
    #[test]
    fn no_rule_reads_a_length_without_its_days() {
        for crd in crate::all() {
            let text = serde_json::to_string(&crd).unwrap_or_default();
            let read = text.matches("duration(self.").count();
            let with_days = text.matches(": duration(self.").count();
            assert_eq!(read, with_days, "{:?}", crd.spec.names.kind);
        }
    }
}
