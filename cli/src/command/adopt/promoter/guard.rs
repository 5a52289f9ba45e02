//! What stands in the place of a check that an object of GitOps Promoter writes: gates, or nothing.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::names::Names;
use super::theirs::{Found, Theirs};
use super::{scheduled, timed, web_request};
use crate::converted::{Converted, Notes, ours};

/// Which list of a strategy names a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Active,
    Proposed,
}

impl Side {
    /// The list of checks.
    pub(super) fn checks(self) -> &'static str {
        match self {
            Side::Active => "activeCommitStatuses",
            Side::Proposed => "proposedCommitStatuses",
        }
    }

    /// The gates of an environment that are asked at the same time.
    pub(super) fn gates(self) -> &'static str {
        match self {
            Side::Active => "activeGates",
            Side::Proposed => "gates",
        }
    }
}

/// An object that writes a check for a strategy.
pub(super) struct Guard<'f> {
    pub(super) of: &'f Theirs,
    pub(super) key: String,
    /// What stands in its place. Nothing: why, and what to do instead.
    pub(super) by: Result<Gates, String>,
}

/// Gates that take the place of a check.
pub(super) struct Gates {
    pub(super) side: Side,
    /// The name of the gate of each branch.
    pub(super) of: BTreeMap<String, String>,
    /// Whether an environment waits that has no gate. It does if nobody writes the check for it.
    pub(super) others_wait: bool,
    /// The gates, and what they need.
    pub(super) documents: Vec<Converted>,
}

impl<'f> Guard<'f> {
    /// The guards of all strategies.
    pub(super) fn all(found: &'f Found) -> Vec<Self> {
        let mut names = Names::default();
        let all = found.all();
        all.filter_map(|of| Self::of(of, found, &mut names))
            .collect()
    }

    fn of(of: &'f Theirs, found: &Found, names: &mut Names) -> Option<Self> {
        let own = of.spec()["key"].as_str();
        let (default, by) = match of.kind.as_str() {
            "TimedCommitStatus" => ("timer", timed::gates(of, names)),
            "ScheduledCommitStatus" => ("", scheduled::gates(of, names)),
            "WebRequestCommitStatus" => ("", web_request::gates(of, found, names)),
            "ArgoCDCommitStatus" => ("argocd-health", Err(ARGO_CD.to_owned())),
            "GitCommitStatus" => ("", Err(GIT.to_owned())),
            _ => return None,
        };
        let key = own.unwrap_or(default).to_owned();
        Some(Self { of, key, by })
    }

    /// Whether it is for that strategy.
    pub(super) fn is_for(&self, strategy: &Theirs) -> bool {
        self.of.namespace == strategy.namespace
            && self.of.names("promotionStrategyRef") == strategy.name
    }
}

const ARGO_CD: &str = "nobody reads Applications of Argo CD for a check. Let the notifications of Argo CD write a \
                       commit status, and read that by `forge`; or write a gatekeeper over objects that selects \
                       the Applications, and name its gate in activeGates; or let Flux apply the branches, and \
                       write `flux`";
const GIT: &str =
    "no rule reads the message of a commit. Let CI judge it, and read what CI says by `forge`";

/// A gatekeeper, and the gate that it keeps. Both have the name.
///
/// # Errors
/// What admission would say.
pub(super) fn gate(
    of: &Theirs,
    name: &str,
    notes: Notes,
    spec: &Value,
) -> Result<[Converted; 2], String> {
    let key = (of.namespace.as_str(), name);
    let metadata = &Value::Null;
    let keeper = notes.finish(ours("Gatekeeper", key, metadata, spec));
    let kept = json!({"gatekeepers": [{"name": name}]});
    let gate = of.notes().finish(ours("Gate", key, metadata, &kept));
    let wrong =
        |mistakes: Vec<String>| format!("it cannot be written as a gate: {}", mistakes.join("; "));
    Ok([keeper.map_err(wrong)?, gate.map_err(wrong)?])
}
