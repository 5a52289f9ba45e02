//! Pull requests: what they change, what they say, and what has to be done at the forge.
//!
//! What comes in: which environment of which pipeline is to get a revision, and the [`files`] of a
//! repository. What goes out: the files with the revision in every value that has a [`marker`] of that
//! environment, and the [`words`] of the pull request.
//!
//! There are three kinds of them: with a commit that changes marked values, with a commit that has the tree
//! of another one, and those of a branch that somebody else pushes to ([`is_followed`]). All go the same way.
//!
//! What comes in, too ([`Given`]): a PullRequest, what its [`owner`] says of it, what has come of the last
//! [`errand`] to the forge, and the instant. What goes out ([`report`]): its status, at most one [`Task`] to
//! be done at the forge, and when to look again. A task is begun only after the API server has accepted the
//! status, which has everything that was done before: the commit, before a pull request is opened for it.

use std::fmt;

use sha2::{Digest, Sha256};
use sluice_crds::PullRequest;

mod conditions;
pub mod errand;
pub mod files;
pub mod marker;
pub mod owner;
mod report;
mod shown;
mod step;
mod taken;
mod telling;
#[cfg(test)]
pub(crate) mod tests;
pub mod trailers;
pub mod words;

pub use conditions::is_throttled;
pub use errand::{Failure, Fate, Joining, Mergeable, Outcome, Pull, Task, Telling, Text, Word};
pub use owner::{Owner, Says};
pub use report::{Errand, Given, Looked, Recent, Told, report};

/// Whether somebody else pushes to the branch of a PullRequest: its head moves, and the branch stays.
pub fn is_followed(object: &PullRequest) -> bool {
    object.spec.change.is_none()
}

/// A PullRequest, as messages name it.
pub(super) fn called(object: &PullRequest) -> String {
    let name = object.metadata.name.as_deref();
    format!("the PullRequest {}", name.unwrap_or_default())
}

/// Where a promotion leads: one environment of one pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promotion<'a> {
    /// The namespace of the pipeline.
    pub namespace: &'a str,
    /// The name of the pipeline.
    pub pipeline: &'a str,
    /// The name of the environment. Like the other two it holds no `:`.
    pub environment: &'a str,
}

/// As a marker names it: `flux-system:podinfo:prod`.
impl fmt::Display for Promotion<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            namespace,
            pipeline,
            environment,
        } = self;
        write!(f, "{namespace}:{pipeline}:{environment}")
    }
}

/// What stands for several texts where there is no room for them: twelve hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key([u8; 6]);

impl Key {
    /// The key of some texts. Other texts, or the same with other borders between them, have another.
    pub fn of(texts: &[&str]) -> Self {
        let mut hash = Sha256::new();
        for text in texts {
            // The length says where each ends.
            hash.update((text.len() as u64).to_be_bytes());
            hash.update(text);
        }
        let [a, b, c, d, e, f, ..]: [u8; 32] = hash.finalize().into();
        Self([a, b, c, d, e, f])
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
