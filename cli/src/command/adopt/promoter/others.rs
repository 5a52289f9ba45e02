//! Objects of kinds in whose place nothing is printed, whatever is in them.

use super::theirs::Theirs;
use super::{guard, order};

/// What becomes of such an object.
pub(super) enum Other {
    /// Nothing of it is needed.
    Lost(String),
    /// It does something that nothing of Sluice does in its place.
    Refused(String),
}

/// The kinds that are read.
const READ: [&str; 5] = [
    "ClusterScmProvider",
    "CommitStatus",
    "GitRepository",
    "PromotionStrategy",
    "ScmProvider",
];

/// What its controllers make for themselves.
const MADE: [&str; 5] = [
    "ChangeTransferPolicy",
    "ChangeTransferPolicyHistory",
    "PromotionStrategyHistory",
    "PullRequest",
    "RevertCommit",
];

/// What brings an environment back.
const BACK: [&str; 2] = ["RestoreActiveCommit", "RevertActiveCommit"];

/// None: it is of a kind that is read.
pub(super) fn other(theirs: &Theirs) -> Option<Other> {
    let kind = theirs.kind.as_str();
    if READ.contains(&kind) || guard::is_one(kind) || order::told(kind).is_some() {
        return None;
    }
    let lost = |what: &str| Some(Other::Lost(what.to_owned()));
    let refused = |why: &str| Some(Other::Refused(why.to_owned()));
    match kind {
        "ControllerConfiguration" => lost(
            "titles and texts of pull requests are Sluice's own, and intervals are flags and fields",
        ),
        _ if MADE.contains(&kind) => {
            lost("Sluice makes its own. Open pull requests are found by their branches")
        }
        _ if BACK.contains(&kind) => refused(
            "an environment is brought back by a RevertCommit of ours: once the strategy is not suspended any \
             more, write one with `kubectl gate revert`",
        ),
        _ => refused(
            "the kind is not known here. Find out what it does for you, and write that by hand; or leave what \
             needs it to GitOps Promoter",
        ),
    }
}
