//! The revert that is carried out now, and what the commit of a revert says of itself.

use std::sync::Arc;

use sluice_crds::RevertCommit;
use sluice_crds::promotion_strategy::{Environment, Held};
use sluice_crds::pull_request::Tree;
use sluice_crds::revert_commit::RevertMerge;

use super::checks::short;
use super::evidence::Sight;
use super::tips::{Asker, Env};
use super::words;
use crate::text::words::clean;

/// The trailers of a commit that brings an environment back: the RevertCommit, and the dry commit that it
/// takes back.
const REVERT: &str = "Sluice-Revert: ";
const HELD: &str = "Sluice-Held: ";

/// What is said of a merge that the branch does not have, or not any more.
pub(super) const UNSEEN: &str = "the pull request that brings it back is merged, and the branch was not seen to have that \
                                 yet; if somebody has taken it away, delete the RevertCommit, and create another one";

/// The one that is carried out now.
#[derive(Clone)]
pub(super) struct Current<'g> {
    pub(super) object: &'g Arc<RevertCommit>,
    pub(super) tree: String,
}

impl Current<'_> {
    pub(super) fn name(&self) -> &str {
        self.object.metadata.name.as_deref().unwrap_or_default()
    }

    /// The last part of the name of its branch, which no other RevertCommit has, of whatever time.
    pub(super) fn branch(&self) -> String {
        let uid = self.object.metadata.uid.as_deref().unwrap_or_default();
        format!("{}-{}", self.name(), uid.get(..8).unwrap_or(uid))
    }

    /// What its pull request changes.
    pub(super) fn change(&self, env: &Env<'_>) -> Tree {
        let spec = &self.object.spec;
        let reason = clean(&spec.reason, words::LONGEST);
        let taken = env.active.as_ref().and_then(|tip| tip.dry.known());
        let created = self.object.metadata.creation_timestamp.as_ref();
        Tree {
            of: self.tree.clone(),
            parent: spec.from.clone(),
            message: format!(
                "Bring {} back to {}\n\n{reason}\n\n{REVERT}{}\n{HELD}{}\n",
                env.branch(),
                short(&spec.dry_sha),
                self.name(),
                taken.unwrap_or("unknown"),
            ),
            date: created.map_or(0, |at| at.0.as_second()),
        }
    }

    pub(super) fn merges(&self, environment: &Environment) -> RevertMerge {
        let usual = match environment.auto_merge {
            true => RevertMerge::Auto,
            false => RevertMerge::Manual,
        };
        self.object.spec.merge.unwrap_or(usual)
    }
}

/// What the commit of a revert says that it has taken back. A merge of it has it as its second parent.
pub(super) fn of_commit(asker: &Asker<'_>, sha: &str) -> Sight<Option<Held>> {
    let commit = match asker.commit(sha) {
        Sight::Known(commit) => commit,
        other => return other.map(|_| None),
    };
    match (said(&commit.message), commit.parents.get(1)) {
        (Some(held), _) => Sight::Known(Some(held)),
        (None, Some(merged)) => asker.commit(merged).map(|merged| said(&merged.message)),
        (None, None) => Sight::Known(None),
    }
}

/// What the message of a revert says that it has taken back.
pub(super) fn said(message: &str) -> Option<Held> {
    let value = |key: &str| message.lines().find_map(|line| line.strip_prefix(key));
    Some(Held {
        dry_sha: value(HELD)?.to_owned(),
        revert_commit: value(REVERT)?.to_owned(),
    })
}
