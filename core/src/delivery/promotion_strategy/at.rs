//! What a rule is asked about: an environment, what is proposed for it, and what is seen of all the others.

use jiff::Timestamp;
use sluice_crds::PullRequestStatus;
use sluice_crds::promotion_strategy::{Held, Wait};

use super::Given;
use super::evidence::Heads;
use super::graph::Graph;
use super::pulls;
use super::seen::Seen;
use super::tips::{Asker, Tip};
use super::waits::{throttled, wait};

/// What a rule is asked about.
pub(super) struct At<'a, 'g> {
    pub(super) given: &'a Given,
    pub(super) asker: &'a Asker<'a>,
    pub(super) heads: &'a Heads,
    pub(super) graph: &'a Graph,
    pub(super) all: &'a [Seen<'g>],
    pub(super) me: &'a Seen<'g>,
    /// What is proposed.
    pub(super) tip: &'a Tip,
}

impl<'g> At<'_, 'g> {
    pub(super) fn branch(&self) -> &str {
        self.me.env.branch()
    }

    /// When the first of the checks ends by which it may be merged.
    pub(super) fn checks_end(&self) -> Option<Timestamp> {
        let before = self.proving().into_iter();
        let before = before.filter_map(|place| self.all.get(place));
        let checks = before.flat_map(|earlier| &earlier.active_checks);
        let checks = checks.chain(&self.me.proposed_checks);
        checks.filter_map(|check| check.next).min()
    }

    /// The commit that fixes what was taken back.
    pub(super) fn fix_of(&self, held: &Held) -> Option<&str> {
        let mut reverts = self.given.reverts.iter();
        let revert = reverts.find(|it| it.metadata.name.as_deref() == Some(&held.revert_commit))?;
        revert.spec.fixed_by.as_deref()
    }

    /// What keeps an open pull request from being merged.
    pub(super) fn hindered(&self, status: &PullRequestStatus) -> Option<Wait> {
        // What is kept for merges keeps none back.
        let limited = pulls::throttled(status).filter(|_| status.attempts.is_some());
        if let Some((why, until)) = limited {
            return Some(throttled(why, until));
        }
        if let (Some(_), Some(word)) = (status.attempts, &status.outcome) {
            let why = status.message.as_deref().unwrap_or_default();
            let message = format!("its pull request cannot be worked on: {word}: {why}");
            return Some(wait("PullRequestFailed", message));
        }
        let label = &self.given.object.spec.hold_label;
        if status.draft {
            return Some(wait("Draft", "its pull request is a draft"));
        }
        if status.labels.contains(label) {
            return Some(wait(
                "HeldByLabel",
                format!("its pull request has the label {label}"),
            ));
        }
        status.conflict.then(|| {
            let message = format!("its pull request has conflicts with {}", self.branch());
            wait("Conflict", message)
        })
    }
}
