//! How `approval` answers as a kind of gatekeeper: what it requires with the votes that there are.

use std::sync::Arc;

use jiff::Timestamp;
use sluice_crds::Gatekeeper;
use sluice_crds::gatekeeper::{ApprovalRule, EvidenceStatus};

use super::{Approvals, Authors, Votes};
use crate::gatekeeper::Evidence;
use crate::gatekeeper::kind::{self, Basis, Judge, KindSpec, Known, Setup, Text, Texts};
use crate::text::refusal::Refusals;
use crate::verdict::Opinion;
use crate::verdict::question::Question;

/// How many revisions a status names that were voted on.
const MOST_VOTED_ON: usize = 20;

impl KindSpec for ApprovalRule {
    fn judge(&self, setup: &Setup<'_>) -> Result<Arc<dyn Judge>, Refusals> {
        Ok(Arc::new(Voted {
            rule: Approvals::read(self, "spec.approval")?,
            votes: setup.evidence.shared().unwrap_or_default(),
        }))
    }

    fn texts(&self) -> Vec<Text<'_>> {
        let place = ("spec.approval.forbidSelf", "nothing is approved");
        let text = |reference| kind::list(reference, place, Authors::parse);
        self.config_map_refs().map(text).collect()
    }

    fn read(&self, texts: &dyn Texts) -> Evidence {
        let authors = kind::lists(texts, self.config_map_refs(), Authors::parse);
        Evidence::of(Votes {
            authors: authors.and_then(|authors| authors.into_iter().next()),
            ..Votes::default()
        })
    }

    fn complete(&self, object: &Gatekeeper, observed: Evidence, known: &dyn Known) -> Evidence {
        let authors = observed
            .get()
            .and_then(|votes: &Votes| votes.authors.clone());
        Evidence::of(Votes {
            ballot: known.ballot(object),
            unreadable: known.unreadable(object),
            authors,
            verified: known.is_verified(object),
        })
    }
}

/// The rule with its evidence.
#[derive(Debug)]
struct Voted {
    rule: Approvals,
    votes: Arc<Votes>,
}

impl Judge for Voted {
    fn opinion(&self, question: Question<'_>) -> Opinion {
        let Question { now, revision, .. } = question;
        self.rule.opinion(&self.votes, revision, now.at)
    }

    fn explain(&self, opinion: &Opinion, question: Question<'_>) -> String {
        let Question { now, revision, .. } = question;
        self.rule.explain(&self.votes, revision, opinion, now.at)
    }

    fn basis(&self) -> Basis {
        Basis::Clock
    }

    fn is_unread(&self, question: Question<'_>) -> bool {
        question.revision.is_none() && self.rule.forbids_self && self.votes.authors.is_none()
    }

    fn good_until(&self) -> Option<Timestamp> {
        None
    }

    fn status(&self, now: Timestamp) -> EvidenceStatus {
        EvidenceStatus {
            votes: self.rule.latest(&self.votes, MOST_VOTED_ON, now),
            ..EvidenceStatus::default()
        }
    }
}
