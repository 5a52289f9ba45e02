//! What stands in the place of a check that an object of GitOps Promoter writes: gates, or nothing.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::names::Names;
use super::theirs::{Found, Theirs};
use super::{order, scheduled, timed, web_request};
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
            kind if is_one(kind) => ("", Err(UNKNOWN.to_owned())),
            _ => return None,
        };
        let key = own.unwrap_or(default).to_owned();
        Some(Self { of, key, by })
    }

    /// Whether it is for that strategy.
    pub(super) fn is_for(&self, strategy: &Theirs) -> bool {
        self.of.is_about(strategy)
    }
}

/// Whether objects of this kind write a check for a strategy, other than that of the order.
pub(super) fn is_one(kind: &str) -> bool {
    const SUFFIX: &str = "CommitStatus";
    kind.ends_with(SUFFIX) && kind != SUFFIX && order::told(kind).is_none()
}

const ARGO_CD: &str = "nobody reads Applications of Argo CD for a check. Let the notifications of Argo CD write a \
                       commit status, and read that by `forge`; or write a gatekeeper over objects that selects \
                       the Applications, and name its gate in activeGates; or let Flux apply the branches, and \
                       write `flux`";
const GIT: &str =
    "no rule reads the message of a commit. Let CI judge it, and read what CI says by `forge`";
const UNKNOWN: &str = "the kind is not known here. Let what finds it out write a CommitStatus with this key; or \
                       write a gate, and remove the check";

/// A gatekeeper, and the gate that it keeps. Both have the name.
///
/// # Errors
/// What admission would say.
pub(super) fn kept_gate(
    of: &Theirs,
    name: &str,
    notes: Notes,
    spec: &Value,
) -> Result<[Converted; 2], String> {
    let keepers = [name.to_owned()];
    Ok([keeper(of, name, notes, spec)?, gate(of, name, &keepers)?])
}

/// # Errors
/// What admission would say.
pub(super) fn keeper(
    of: &Theirs,
    name: &str,
    notes: Notes,
    spec: &Value,
) -> Result<Converted, String> {
    let key = (of.namespace.as_str(), name);
    let keeper = notes.finish(ours("Gatekeeper", key, &Value::Null, spec));
    keeper.map_err(|mistakes| wrong(&mistakes))
}

/// A gate that is open while all of these gatekeepers are.
///
/// # Errors
/// What admission would say.
pub(super) fn gate(of: &Theirs, name: &str, keepers: &[String]) -> Result<Converted, String> {
    let key = (of.namespace.as_str(), name);
    let keepers: Vec<_> = keepers.iter().map(|it| json!({"name": it})).collect();
    let kept = json!({ "gatekeepers": keepers });
    let gate = of.notes().finish(ours("Gate", key, &Value::Null, &kept));
    gate.map_err(|mistakes| wrong(&mistakes))
}

fn wrong(mistakes: &[String]) -> String {
    format!("it cannot be written as a gate: {}", mistakes.join("; "))
}
