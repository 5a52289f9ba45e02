//! What a git forge is asked and told for pull requests.
//!
//! What comes in: the [`Address`] of a repository, a token, and a question or an act. What goes out: what
//! the forge has in words that are the same for all forges, or what came of the act: done, refused, not
//! done, or unknown. Nothing is decided here. Every request leaves through [`sluice_egress`].

mod address;
mod bitbucket_server;
mod call;
#[cfg(test)]
mod contracts;
mod forge;
mod git;
mod gitea;
mod github;
mod gitlab;
mod names;
mod outcome;
mod pulls;
#[cfg(test)]
#[path = "../../egress/src/test_server.rs"]
mod test_server;

pub use address::{Address, AddressError, Provider};
pub use call::{Access, Ended, Heard, May, Pace, Pacing, Protocol, Told, Urgency, Wants, Way};
pub use forge::Forge;
pub use git::{CommitObject, Named, NewCommit, Reference, Signature, Target, Update};
pub use github::{App, AppError, AppTokens};
pub use names::{Branch, FilePath, NameError, Sha};
pub use outcome::{Act, ForgeError, Missing, Trouble, Undone, Wait, Words};
pub use pulls::{
    Blob, Change, ChangedFile, Commit, Committed, File, MOST_LABELS, Merge, MergeMethod, Mergeable,
    NewPull, Pull, PullState, SeenStatus, Status, StatusState, surplus,
};
