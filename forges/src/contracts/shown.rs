//! What comes of a call, as the files have it.

use std::fmt::Display;

use crate::names::Sha;
use crate::outcome::{Act, ForgeError, Undone};
use crate::pulls::{Commit as Seen, Pull, PullState, SeenStatus};

pub(super) fn found<T>(
    asked: Result<Option<T>, ForgeError>,
    show: impl Fn(&T) -> String,
) -> String {
    match asked {
        Ok(Some(found)) => show(&found),
        Ok(None) => "none".to_owned(),
        Err(error) => format!("error: {error}"),
    }
}

pub(super) fn done<T>(act: Act<T>, show: impl Fn(T) -> String) -> String {
    let with = |word: &str, error: &dyn Display| format!("{word}: {error}");
    match act {
        Ok(made) => show(made),
        Err(Undone::Refused(error)) => with("refused", &error),
        Err(Undone::NotDone(error)) => with("not done", &error),
        Err(Undone::Unknown(error)) => with("unknown", &error),
    }
}

pub(super) fn shown_commit(commit: &Seen) -> String {
    let parents: Vec<_> = commit.parents.iter().map(Sha::as_str).collect();
    format!(
        "{} on [{}] {:?}",
        commit.sha,
        parents.join(" "),
        commit.message
    )
}

pub(super) fn shown_status(status: &SeenStatus) -> String {
    let SeenStatus {
        context,
        state,
        description,
        url,
    } = status;
    let url = url.as_deref().unwrap_or("?");
    format!("{context}: {state:?} {description:?} {url}")
}

pub(super) fn shown(pull: &Pull) -> String {
    let Pull {
        number,
        url,
        title,
        body,
        head,
        base,
        own,
        draft,
        labels,
        labels_cut,
        state,
    } = pull;
    let draft = if *draft { "a draft, " } else { "" };
    let labels = match labels.as_slice() {
        [] => String::new(),
        labels => format!("with {}, ", labels.join(" and ")),
    };
    let labels = labels
        + if *labels_cut {
            "with more labels, "
        } else {
            ""
        };
    let fork = if *own { "" } else { "of a fork, " };
    let state = match state {
        PullState::Open { head, mergeable } => format!("open at {head}, {mergeable:?}"),
        PullState::Merged { commit, by } => {
            let commit = commit.as_ref().map_or("?", Sha::as_str);
            format!("merged as {commit} by {}", by.as_deref().unwrap_or("?"))
        }
        PullState::Closed => "closed".to_owned(),
    };
    format!("#{number} {title:?} {body:?} {head} to {base}, {fork}{draft}{labels}{state}, {url}")
}
