//! What is reported of a pull request when its status has changed: in the log, and by events.

use sluice_crds::pull_request::PullRequestState;
use sluice_crds::{PullRequest, PullRequestStatus};

use crate::act::reconcile::Context;
use crate::cluster::key::{ObjectKey, Work};
use crate::cluster::kind::Kind;
use crate::tell::events::{About, More, Told, notifications};

/// A piece of news.
#[derive(Debug, PartialEq, Eq)]
struct Item {
    warning: bool,
    /// One word.
    reason: String,
    /// A sentence.
    message: String,
}

/// Reports what is new.
pub(super) fn tell(context: &Context, key: &ObjectKey, before: &PullRequest, now: &PullRequest) {
    let (Some(is), nothing) = (now.status.as_ref(), PullRequestStatus::default()) else {
        return;
    };
    let revision = now.spec.about.revision.as_ref();
    for item in news(before.status.as_ref().unwrap_or(&nothing), is) {
        tracing::info!(
            kind = "PullRequest",
            namespace = %key.namespace,
            name = %key.name,
            reason = item.reason,
            "{}",
            item.message
        );
        let annotations = revision.iter().map(|revision| {
            let name = notifications::REVISION.to_owned();
            (name, (*revision).clone())
        });
        context.events.tell(Told {
            about: About::new(Work::own(Kind::PullRequest, key.clone()), now),
            warning: item.warning,
            reason: item.reason.into(),
            action: "Promote",
            note: item.message.into(),
            more: Some(Box::new(More {
                annotations: annotations.collect(),
                ..More::default()
            })),
        });
    }
}

fn news(before: &PullRequestStatus, now: &PullRequestStatus) -> Vec<Item> {
    let item = |warning, reason: &str, message: String| Item {
        warning,
        reason: reason.to_owned(),
        message,
    };
    let mut news = Vec::new();
    if now.state != before.state {
        let page = now.url.as_deref().unwrap_or("the pull request");
        let by = now.merged_by.as_deref().unwrap_or("somebody");
        news.extend(match now.state {
            None | Some(PullRequestState::Pending) => None,
            Some(PullRequestState::Open) => {
                Some(item(false, "PullRequestOpened", format!("{page} is open")))
            }
            Some(PullRequestState::Merged) => {
                Some(item(false, "Merged", format!("{page} was merged by {by}")))
            }
            Some(PullRequestState::Closed) => {
                let message = match &now.url {
                    Some(page) => format!("{page} was closed without a merge"),
                    None => "it was never opened, and will not be".to_owned(),
                };
                Some(item(false, "Closed", message))
            }
            Some(PullRequestState::AlreadyInBase) => {
                let message = "the target branch has the change already".to_owned();
                Some(item(false, "AlreadyInBase", message))
            }
            Some(PullRequestState::Missing) => {
                let message = format!("the forge does not know {page} any more");
                Some(item(true, "Missing", message))
            }
        });
    }
    let is_told = now.outcome == before.outcome || now.outcome.as_deref() == Some("ClosedByOthers");
    if let (Some(outcome), false) = (&now.outcome, is_told) {
        let message = now.message.clone().unwrap_or_default();
        news.push(item(true, outcome, message));
    }
    news
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reasons(before: &PullRequestStatus, now: &PullRequestStatus) -> Vec<String> {
        let news = news(before, now).into_iter();
        news.map(|item| format!("{} {}: {}", item.warning, item.reason, item.message))
            .collect()
    }

    #[test]
    fn each_change_is_told_once() {
        let nothing = PullRequestStatus::default();
        let open = PullRequestStatus {
            state: Some(PullRequestState::Open),
            url: Some("https://git.example.com/a/b/pulls/7".to_owned()),
            ..nothing.clone()
        };
        let merged = PullRequestStatus {
            state: Some(PullRequestState::Merged),
            merged_by: Some("alice".to_owned()),
            ..open.clone()
        };
        let failing = PullRequestStatus {
            outcome: Some("Unauthorized".to_owned()),
            message: Some("the token is not accepted".to_owned()),
            attempts: Some(1),
            ..open.clone()
        };
        let again = PullRequestStatus {
            attempts: Some(2),
            ..failing.clone()
        };
        assert_eq!(
            reasons(&nothing, &open),
            ["false PullRequestOpened: https://git.example.com/a/b/pulls/7 is open"]
        );
        assert_eq!(
            reasons(&open, &merged),
            ["false Merged: https://git.example.com/a/b/pulls/7 was merged by alice"]
        );
        assert_eq!(
            reasons(&open, &failing),
            ["true Unauthorized: the token is not accepted"]
        );
        for (before, now) in [(&open, &open), (&failing, &again), (&failing, &open)] {
            assert_eq!(reasons(before, now), [""; 0]);
        }
        let closed = PullRequestStatus {
            state: Some(PullRequestState::Closed),
            ..nothing.clone()
        };
        assert_eq!(
            reasons(&nothing, &closed),
            ["false Closed: it was never opened, and will not be"]
        );
    }
}
