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
    /// Hold changes back. The default wherever nothing is said.
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

/// A change of state that is known ahead.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Transition {
    /// The instant of the change.
    pub at: Time,
    /// The state from that instant on.
    pub state: State,
}

/// A length of time as Go and Flux write it: whole or decimal numbers with the units `h`, `m`,
/// `s` or `ms`, the largest first by custom (`90m`, `1h30m`). At most 32 characters.
///
/// Still text here; `sluice_core::duration` gives it its meaning.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Duration(pub String);

impl Duration {
    /// The form that admission asks for.
    pub const PATTERN: &'static str = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$";
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
