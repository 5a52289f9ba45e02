//! What is read of GitLab's replies.

use serde::Deserialize;

use crate::call::Call;
use crate::names::Sha;
use crate::outcome::{ForgeError, Trouble};
use crate::pulls::{Commit as Seen, Mergeable, Pull, PullState};

#[derive(Deserialize)]
pub(super) struct BranchShape {
    pub(super) commit: Commit,
}

#[derive(Deserialize)]
pub(super) struct Commit {
    pub(super) id: Sha,
}

/// A commit with what was written about it. In a list its parents may be left out.
#[derive(Deserialize)]
pub(super) struct CommitShape {
    id: Sha,
    message: String,
    #[serde(default)]
    parent_ids: Vec<Sha>,
}

impl CommitShape {
    pub(super) fn read(self) -> Seen {
        Seen {
            sha: self.id,
            parents: self.parent_ids,
            message: self.message,
        }
    }
}

#[derive(Deserialize)]
pub(super) struct Made {
    pub(super) id: Sha,
    pub(super) parent_ids: Vec<Sha>,
}

#[derive(Deserialize)]
pub(super) struct FileShape {
    pub(super) content: String,
    pub(super) encoding: String,
    pub(super) blob_id: Sha,
}

/// A merge request. Its number in the project is `iid`.
#[derive(Deserialize)]
pub(super) struct RequestShape {
    iid: u64,
    web_url: String,
    title: String,
    description: Option<String>,
    state: State,
    sha: Option<Sha>,
    merge_commit_sha: Option<Sha>,
    squash_commit_sha: Option<Sha>,
    merge_user: Option<User>,
    detailed_merge_status: Option<String>,
    source_branch: String,
    target_branch: String,
    source_project_id: Option<u64>,
    target_project_id: u64,
    #[serde(default)]
    draft: bool,
    #[serde(default)]
    labels: Vec<String>,
}

/// A request is locked while it is being merged.
#[derive(Clone, Copy, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum State {
    Opened,
    Locked,
    Closed,
    Merged,
}

#[derive(Deserialize)]
struct User {
    username: String,
}

impl RequestShape {
    /// Whether its head is a branch of the project whose name begins so.
    pub(super) fn is_under(&self, prefix: &str) -> bool {
        self.source_project_id == Some(self.target_project_id)
            && self.source_branch.starts_with(prefix)
    }

    /// Whether there is something to merge: the source may be gone.
    pub(super) fn has_head(&self) -> bool {
        self.sha.is_some()
    }

    pub(super) fn read(self, call: &Call<'_>) -> Result<Pull, ForgeError> {
        let mergeable = self.mergeable();
        let state = match (self.state, self.sha) {
            // Where a merge is a fast-forward, the head itself is in the base.
            (State::Merged, head) => PullState::Merged {
                commit: self.merge_commit_sha.or(self.squash_commit_sha).or(head),
                by: self.merge_user.map(|user| user.username),
            },
            (State::Opened | State::Locked, Some(head)) => PullState::Open { head, mergeable },
            (State::Opened | State::Locked, None) => {
                return Err(call.error(Trouble::NotUnderstood("sha".to_owned())));
            }
            (State::Closed, _) => PullState::Closed,
        };
        Ok(Pull {
            number: self.iid,
            url: self.web_url,
            title: self.title,
            body: self.description.unwrap_or_default(),
            own: self.source_project_id == Some(self.target_project_id),
            draft: self.draft,
            labels: self.labels,
            labels_cut: false,
            head: self.source_branch,
            base: self.target_branch,
            state,
        })
    }

    /// Whether files go together. What else holds a merge is said when it is tried.
    fn mergeable(&self) -> Mergeable {
        let unknown = ["unchecked", "checking", "preparing", "approvals_syncing"];
        match (self.state, self.detailed_merge_status.as_deref()) {
            (State::Locked, _) => Mergeable::Unknown,
            // Before GitLab 15.6.
            (_, None) => Mergeable::Unsaid,
            (_, Some(status)) if unknown.contains(&status) => Mergeable::Unknown,
            (_, Some("conflict")) => Mergeable::Conflict,
            (_, Some(_)) => Mergeable::Yes,
        }
    }
}
