//! What a forge is told about a commit.

use jiff::Timestamp;
use sluice_crds::CommitStatus;
use sluice_crds::commit_status::Phase;

use crate::delivery::pull_request::Key;
use crate::text::words::clean;

/// The most characters of a description: more is cut by a forge, or refused.
const LONGEST: usize = 140;

/// What a forge is told about a commit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Post {
    /// The access to the repository, with its namespace if the CommitStatus says one.
    pub access: String,
    /// The commit.
    pub sha: String,
    /// What it is called there.
    pub name: String,
    /// How it stands.
    pub shown: Shown,
    /// The same in a sentence, or nothing.
    pub description: String,
    /// Where people see more.
    pub url: Option<String>,
}

/// How something stands, as a forge shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shown {
    /// It is not known yet.
    Pending,
    /// It is as it should be.
    Success,
    /// It is not.
    Failure,
}

impl Shown {
    /// How a forge shows a phase.
    fn of(phase: Phase) -> Self {
        match phase {
            Phase::Pending | Phase::Queued | Phase::InProgress => Self::Pending,
            Phase::Success => Self::Success,
            Phase::Failure | Phase::Cancelled => Self::Failure,
        }
    }

    /// The phase that a status has for it.
    pub(super) fn phase(self) -> Phase {
        match self {
            Self::Pending => Phase::Pending,
            Self::Success => Phase::Success,
            Self::Failure => Phase::Failure,
        }
    }
}

impl Post {
    /// What is to be told at an instant.
    pub fn at(object: &CommitStatus, now: Timestamp) -> Self {
        Self::of(object, ends(object).is_some_and(|end| end <= now))
    }

    /// What is to be told before it expires, or after that.
    pub(super) fn of(object: &CommitStatus, has_expired: bool) -> Self {
        let spec = &object.spec;
        let access = &spec.repo_ref;
        let namespace = access.namespace.as_deref().unwrap_or_default();
        let description = spec.description.as_deref().unwrap_or_default();
        Self {
            access: format!("{namespace}/{}", access.name),
            sha: spec.sha.clone(),
            name: spec.name.clone(),
            shown: match has_expired {
                true => Shown::Pending,
                false => Shown::of(spec.phase),
            },
            description: clean(description, LONGEST),
            url: spec.url.clone(),
        }
    }

    /// The same as a success.
    pub(super) fn as_success(&self) -> Self {
        Self {
            shown: Shown::Success,
            ..self.clone()
        }
    }

    /// What stands for where it is told: what is told there takes the place of what was told before.
    pub(super) fn place(&self) -> String {
        Key::of(&[&self.access, &self.sha, &self.name]).to_string()
    }

    /// What stands for all of it: the same only for what is told in the same words.
    pub fn digest(&self) -> String {
        let Self {
            access,
            sha,
            name,
            shown,
            description,
            url,
        } = self;
        let url = url.as_deref().unwrap_or_default();
        let shown = shown.phase().as_str();
        Key::of(&[access, sha, name, shown, description, url]).to_string()
    }
}

/// When it expires, if ever.
pub(super) fn ends(object: &CommitStatus) -> Option<Timestamp> {
    object.spec.expires_at.as_ref().map(|end| end.0)
}
