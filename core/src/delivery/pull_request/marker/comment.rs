//! What a comment says of the value before it.

use serde_json::{Map, Value};

use super::{LONGEST, Problem};
use crate::delivery::pull_request::Promotion;
use crate::revision::Revision;
use crate::text::words::clean;

/// What makes a comment a marker.
const KEY: &str = "$promotion";

/// What of a revision is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Whole,
    /// The digits of the commit, as `spec.ref.commit` of a GitRepository has them.
    Commit,
    /// The commit or digest with its algorithm.
    Digest,
    /// The branch or tag.
    Ref,
    /// The version that the tag or chart has, without a leading `v`.
    Version,
}

impl Part {
    fn parse(word: &str) -> Option<Self> {
        let named = [Self::Commit, Self::Digest, Self::Ref, Self::Version];
        named.into_iter().find(|part| part.word() == word)
    }

    /// As the fourth part of a marker.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Commit => "commit",
            Self::Digest => "digest",
            Self::Ref => "ref",
            Self::Version => "version",
        }
    }

    /// That part of a revision, if it has one.
    pub(super) fn of(self, revision: &Revision) -> Option<String> {
        match self {
            Self::Whole => Some(revision.as_str().to_owned()),
            Self::Commit => {
                let (algorithm, digits) = revision.digest()?.split_once(':')?;
                matches!(algorithm, "sha1" | "sha256").then(|| digits.to_owned())
            }
            Self::Digest => revision.digest().map(str::to_owned),
            Self::Ref => revision.name().map(str::to_owned),
            Self::Version => revision.version().map(ToString::to_string),
        }
    }
}

/// Which part of the revision the value before this comment has to be. None: the comment is no marker of
/// this promotion.
pub(super) fn part(comment: &str, promotion: &Promotion<'_>) -> Result<Option<Part>, Problem> {
    let json = comment.trim();
    if !(json.starts_with('{') && json.contains(KEY)) {
        return Ok(None);
    }
    let written: Map<String, Value> = serde_json::from_str(json).map_err(|error| broken(&error))?;
    let text = match written.get(KEY) {
        // It stands in a marker of somebody else.
        None => return Ok(None),
        Some(Value::String(text)) => text,
        Some(_) => return Err(Problem::Marker(format!("`{KEY}` is no text"))),
    };
    let (named, word) = match text.split(':').count() {
        3 => (text.as_str(), None),
        4 => text
            .rsplit_once(':')
            .map_or((text.as_str(), None), |(named, word)| (named, Some(word))),
        _ => {
            let shown = clean(text, LONGEST);
            return Err(Problem::Marker(format!(
                "`{shown}` has neither three parts nor four"
            )));
        }
    };
    if named != promotion.to_string() {
        return Ok(None);
    }
    let Some(word) = word else {
        return Ok(Some(Part::Whole));
    };
    let part = Part::parse(word);
    part.map(Some)
        .ok_or_else(|| Problem::Part(clean(word, LONGEST)))
}

/// Without the line, which is always the first of the JSON.
fn broken(error: &serde_json::Error) -> Problem {
    let text = error.to_string();
    let what = text.split(" at line ").next().unwrap_or_default();
    Problem::Marker(format!("its JSON is broken ({what})"))
}
