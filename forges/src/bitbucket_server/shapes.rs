//! What is read of Bitbucket's replies.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::names::Sha;
use crate::outcome::Trouble;
use crate::pulls::{Commit as Seen, Mergeable, Pull, PullState};

/// What the full names of branches begin with.
const BRANCHES: &str = "refs/heads/";

#[derive(Deserialize)]
pub(super) struct Commit {
    pub(super) id: Sha,
}

/// A commit with what was written about it.
#[derive(Deserialize)]
pub(super) struct CommitShape {
    id: Sha,
    message: String,
    parents: Vec<Commit>,
}

impl CommitShape {
    pub(super) fn read(self) -> Seen {
        Seen {
            sha: self.id,
            parents: self.parents.into_iter().map(|parent| parent.id).collect(),
            message: self.message,
        }
    }
}

#[derive(Deserialize)]
pub(super) struct Made {
    pub(super) id: Sha,
    pub(super) parents: Vec<Commit>,
}

/// A pull request. Whether it can be merged is another question, and is said when it is tried.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PullShape {
    id: u64,
    /// Changes with the pull request.
    pub(super) version: i64,
    title: String,
    description: Option<String>,
    state: State,
    from_ref: Side,
    to_ref: Side,
    /// Old ones have no drafts.
    pub(super) draft: Option<bool>,
    #[serde(default)]
    reviewers: Vec<Reviewer>,
    #[serde(default)]
    properties: Properties,
    #[serde(default)]
    links: Links,
}

#[derive(Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum State {
    Open,
    Merged,
    Declined,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Side {
    /// `refs/heads/…`
    id: String,
    latest_commit: Sha,
    repository: Repository,
}

#[derive(Deserialize, PartialEq)]
struct Repository {
    id: u64,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Properties {
    merge_commit: Option<Commit>,
}

#[derive(Default, Deserialize)]
struct Links {
    #[serde(default, rename = "self")]
    own: Vec<Link>,
}

#[derive(Deserialize)]
struct Link {
    href: String,
}

#[derive(Deserialize)]
struct Reviewer {
    user: User,
}

#[derive(Deserialize)]
struct User {
    name: String,
}

/// How pull requests are merged.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SettingsShape {
    merge_config: MergeConfig,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MergeConfig {
    default_strategy: Strategy,
    #[serde(default)]
    strategies: Vec<Strategy>,
}

#[derive(Deserialize)]
struct Strategy {
    id: String,
    #[serde(default)]
    enabled: bool,
}

impl SettingsShape {
    /// The strategy that is to be asked for so that no commits are made again. None: that of the repository does
    /// not.
    pub(super) fn without_rebase(self) -> Result<Option<String>, Trouble> {
        let rebases = |it: &Strategy| it.id.starts_with("rebase");
        let MergeConfig {
            default_strategy,
            strategies,
        } = self.merge_config;
        if !rebases(&default_strategy) {
            return Ok(None);
        }
        let mut all = strategies.into_iter();
        let other = all.find(|it| it.enabled && !rebases(it));
        other.map_or(Err(Trouble::OnlyRebases), |it| Ok(Some(it.id)))
    }
}

impl PullShape {
    /// Those who are asked to review it, as they are named in a request.
    pub(super) fn reviewers(&self) -> Value {
        let named = |reviewer: &Reviewer| json!({"user": {"name": reviewer.user.name}});
        self.reviewers.iter().map(named).collect()
    }

    /// Whether its head is a branch of the repository whose name begins so.
    pub(super) fn is_under(&self, prefix: &str) -> bool {
        let head = self.from_ref.id.strip_prefix(BRANCHES);
        self.from_ref.repository == self.to_ref.repository
            && head.is_some_and(|head| head.starts_with(prefix))
    }

    pub(super) fn read(self) -> Pull {
        let branch = |id: String| match id.strip_prefix(BRANCHES) {
            Some(branch) => branch.to_owned(),
            None => id,
        };
        let state = match self.state {
            State::Open => PullState::Open {
                head: self.from_ref.latest_commit,
                mergeable: Mergeable::Unsaid,
            },
            State::Merged => PullState::Merged {
                commit: self.properties.merge_commit.map(|commit| commit.id),
                by: None,
            },
            State::Declined => PullState::Closed,
        };
        let url = self.links.own.into_iter().next();
        Pull {
            number: self.id,
            url: url.map(|link| link.href).unwrap_or_default(),
            title: self.title,
            body: self.description.unwrap_or_default(),
            own: self.from_ref.repository == self.to_ref.repository,
            draft: self.draft.unwrap_or_default(),
            labels: Vec::new(),
            labels_cut: false,
            head: branch(self.from_ref.id),
            base: branch(self.to_ref.id),
            state,
        }
    }
}
