//! What is read of Gitea's replies.

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::call::Call;
use crate::names::Sha;
use crate::outcome::{ForgeError, Trouble};
use crate::pulls::{Commit, Mergeable, Pull, PullState};

/// The references that begin with a name.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum References {
    Several(Vec<Reference>),
    One(Reference),
}

#[derive(Deserialize)]
pub(super) struct Reference {
    /// `refs/heads/…`
    #[serde(rename = "ref")]
    pub(super) name: String,
    pub(super) object: Object,
}

/// What a path leads to.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum ContentShape {
    Entry {
        #[serde(rename = "type")]
        kind: String,
        content: Option<String>,
        sha: Sha,
    },
    Folder(#[allow(dead_code, reason = "that it is a list says enough")] Vec<IgnoredAny>),
}

/// Its `commit.tree.sha` is the commit's own id, so that it is not read.
#[derive(Deserialize)]
pub(super) struct CommitShape {
    sha: Sha,
    commit: Told,
    parents: Vec<Object>,
}

#[derive(Deserialize)]
struct Told {
    message: String,
}

impl CommitShape {
    pub(super) fn read(self) -> Commit {
        Commit {
            sha: self.sha,
            parents: self.parents.into_iter().map(|parent| parent.sha).collect(),
            message: self.commit.message,
        }
    }
}

#[derive(Deserialize)]
pub(super) struct Committing {
    pub(super) commit: NewCommit,
}

#[derive(Deserialize)]
pub(super) struct NewCommit {
    pub(super) sha: Sha,
    pub(super) parents: Vec<Object>,
}

#[derive(Deserialize)]
pub(super) struct Object {
    pub(super) sha: Sha,
}

/// Which methods are allowed is said to those who may push.
#[derive(Deserialize)]
pub(super) struct RepositoryShape {
    pub(super) default_merge_style: String,
    #[serde(default)]
    allow_merge_commits: bool,
    #[serde(default)]
    allow_squash_merge: bool,
    #[serde(default)]
    allow_fast_forward_only_merge: bool,
}

impl RepositoryShape {
    /// The style that it prefers, or else the first that it allows, among those that make no commits again.
    pub(super) fn without_rebase(self) -> Result<String, Trouble> {
        let styles = [
            ("merge", self.allow_merge_commits),
            ("squash", self.allow_squash_merge),
            ("fast-forward-only", self.allow_fast_forward_only_merge),
        ];
        let allowed = || styles.iter().filter(|(_, allowed)| *allowed);
        let preferred = allowed().find(|(style, _)| *style == self.default_merge_style);
        let found = preferred.or_else(|| allowed().next());
        found.map_or(Err(Trouble::OnlyRebases), |(style, _)| {
            Ok((*style).to_owned())
        })
    }
}

#[derive(Deserialize)]
pub(super) struct PullShape {
    pub(super) number: u64,
    html_url: String,
    title: String,
    #[serde(default)]
    body: Option<String>,
    state: String,
    merged: bool,
    mergeable: bool,
    merge_commit_sha: Option<String>,
    merged_by: Option<User>,
    draft: Option<bool>,
    labels: Option<Vec<Label>>,
    head: Side,
    base: Side,
}

#[derive(Deserialize)]
struct User {
    login: String,
}

#[derive(Deserialize)]
struct Label {
    name: String,
}

/// The label keeps the name of a branch that was deleted; the reference does not.
#[derive(Deserialize)]
struct Side {
    label: String,
    sha: String,
    repo_id: i64,
}

impl PullShape {
    /// Whether its head is a branch of the repository whose name begins so.
    pub(super) fn is_under(&self, prefix: &str) -> bool {
        self.is_own() && self.head.label.starts_with(prefix)
    }

    /// Whether its head is a branch of the repository.
    pub(super) fn is_own(&self) -> bool {
        self.head.repo_id == self.base.repo_id
    }

    pub(super) fn read(self, call: &Call<'_>) -> Result<Pull, ForgeError> {
        let own = self.is_own();
        let wrong = |place: &str| call.error(Trouble::NotUnderstood(place.to_owned()));
        let state = match (self.state.as_str(), self.merged) {
            (_, true) => PullState::Merged {
                commit: self.merge_commit_sha.as_deref().and_then(Sha::parse),
                by: self.merged_by.map(|user| user.login),
            },
            ("open", false) => PullState::Open {
                head: Sha::parse(&self.head.sha).ok_or_else(|| wrong("head.sha"))?,
                mergeable: match self.mergeable {
                    true => Mergeable::Yes,
                    false => Mergeable::Unknown,
                },
            },
            ("closed", false) => PullState::Closed,
            _ => return Err(wrong("state")),
        };
        // Old ones do not say it. It is in the title.
        let drafts = ["WIP:", "[WIP]"];
        let title = self.title.to_uppercase();
        let is_draft = || drafts.iter().any(|mark| title.starts_with(mark));
        let labels = self.labels.unwrap_or_default().into_iter();
        Ok(Pull {
            number: self.number,
            url: self.html_url,
            draft: self.draft.unwrap_or_else(is_draft),
            labels: labels.map(|label| label.name).collect(),
            labels_cut: false,
            title: self.title,
            body: self.body.unwrap_or_default(),
            own,
            head: self.head.label,
            base: self.base.label,
            state,
        })
    }
}
