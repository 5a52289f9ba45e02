//! What is read of GitHub's replies.

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::names::Sha;
use crate::pulls::{Commit as Seen, MergeMethod, Mergeable, Pull, PullState};

#[derive(Deserialize)]
pub(super) struct Reference {
    pub(super) object: Made,
}

/// An object of Git.
#[derive(Deserialize)]
pub(super) struct Made {
    pub(super) sha: Sha,
}

#[derive(Deserialize)]
pub(super) struct Commit {
    pub(super) tree: Made,
}

/// A commit as Git has it, alone.
#[derive(Deserialize)]
pub(super) struct CommitShape {
    sha: Sha,
    message: String,
    parents: Vec<Made>,
}

/// A commit in a list.
#[derive(Deserialize)]
pub(super) struct ListedCommit {
    sha: Sha,
    commit: Told,
    parents: Vec<Made>,
}

#[derive(Deserialize)]
struct Told {
    message: String,
}

impl CommitShape {
    pub(super) fn read(self) -> Seen {
        Seen {
            sha: self.sha,
            parents: self.parents.into_iter().map(|parent| parent.sha).collect(),
            message: self.message,
        }
    }
}

impl ListedCommit {
    pub(super) fn read(self) -> Seen {
        Seen {
            sha: self.sha,
            parents: self.parents.into_iter().map(|parent| parent.sha).collect(),
            message: self.commit.message,
        }
    }
}

/// What a path leads to.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Object {
    One(Content),
    Folder(#[allow(dead_code, reason = "that it is a list says enough")] Vec<IgnoredAny>),
}

#[derive(Deserialize)]
pub(super) struct Content {
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) encoding: String,
    #[serde(default)]
    pub(super) content: String,
    pub(super) sha: Sha,
}

#[derive(Deserialize)]
pub(super) struct Compared {
    pub(super) ahead_by: u64,
}

/// Which methods are allowed is said to those who may push.
#[derive(Deserialize)]
pub(super) struct Repository {
    allow_merge_commit: Option<bool>,
    allow_squash_merge: Option<bool>,
    allow_rebase_merge: Option<bool>,
}

impl Repository {
    /// The first method that is allowed.
    pub(super) fn method(&self) -> MergeMethod {
        let methods = [
            (self.allow_merge_commit, MergeMethod::Merge),
            (self.allow_squash_merge, MergeMethod::Squash),
            (self.allow_rebase_merge, MergeMethod::Rebase),
        ];
        let allowed = methods
            .into_iter()
            .find(|(allowed, _)| *allowed == Some(true));
        allowed.map_or(MergeMethod::Merge, |(_, method)| method)
    }
}

#[derive(Deserialize)]
pub(super) struct PullShape {
    pub(super) number: u64,
    html_url: String,
    title: String,
    body: Option<String>,
    state: State,
    merged_at: Option<String>,
    merge_commit_sha: Option<Sha>,
    merged_by: Option<User>,
    mergeable: Option<bool>,
    #[serde(default)]
    draft: bool,
    #[serde(default)]
    labels: Vec<Label>,
    head: Side,
    base: Side,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Open,
    Closed,
}

#[derive(Deserialize)]
struct User {
    login: String,
}

#[derive(Deserialize)]
struct Label {
    name: String,
}

#[derive(Deserialize)]
struct Side {
    #[serde(rename = "ref")]
    branch: String,
    sha: Sha,
    repo: Option<Id>,
}

#[derive(Deserialize, PartialEq)]
struct Id {
    id: u64,
}

impl PullShape {
    /// Whether its head is a branch of the repository whose name begins so.
    pub(super) fn is_under(&self, prefix: &str) -> bool {
        self.is_own() && self.head.branch.starts_with(prefix)
    }

    /// A fork may be gone.
    fn is_own(&self) -> bool {
        self.head.repo.is_some() && self.head.repo == self.base.repo
    }

    pub(super) fn read(self) -> Pull {
        let own = self.is_own();
        let state = match (self.state, self.merged_at) {
            (State::Closed, Some(_)) => PullState::Merged {
                commit: self.merge_commit_sha,
                by: self.merged_by.map(|user| user.login),
            },
            (State::Closed, None) => PullState::Closed,
            (State::Open, _) => PullState::Open {
                head: self.head.sha,
                mergeable: match self.mergeable {
                    Some(true) => Mergeable::Yes,
                    Some(false) => Mergeable::Conflict,
                    None => Mergeable::Unknown,
                },
            },
        };
        Pull {
            number: self.number,
            url: self.html_url,
            title: self.title,
            body: self.body.unwrap_or_default(),
            own,
            draft: self.draft,
            labels: self.labels.into_iter().map(|label| label.name).collect(),
            head: self.head.branch,
            base: self.base.branch,
            state,
        }
    }
}
