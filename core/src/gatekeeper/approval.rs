//! `approval`: people's votes on one revision, counted.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use sluice_crds::approval::Vote;
use sluice_crds::gatekeeper::{ApprovalRule as Spec, ApprovalStatus};
use sluice_crds::{Approval, Duration, State};

use crate::revision::Revision;
use crate::text::lines;
use crate::text::refusal::{Refusal, Refusals};
use crate::time::duration;
use crate::verdict::{Opinion, Reason};

mod ballot;
mod kind;
mod person;
mod votes;

pub use ballot::{Ballot, MOST_VOTES};
pub use person::is_nobody;
pub use votes::Votes;

/// The longest an approval counts: a year and a day.
const LONGEST: SignedDuration = SignedDuration::from_hours(8784);

/// The rule that a spec describes.
#[derive(Clone, Debug)]
pub struct Approvals {
    required: usize,
    valid_for: SignedDuration,
    groups: Vec<String>,
    forbids_self: bool,
}

/// The authors of revisions, as they stand in a ConfigMap.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Authors(Vec<(Revision, String)>);

/// What came of reading the authors.
pub type Reading = crate::evidence::reading::Reading<Authors>;

/// The votes on one revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally<'a> {
    /// Who approves, and until when that counts.
    pub approved: BTreeMap<&'a str, Timestamp>,
    /// Who rejects.
    pub rejected: Vec<&'a str>,
}

impl Authors {
    /// Reads a list: a revision in full and, after a space, the user name of its author, a line
    /// each; what follows a `#` is a comment.
    ///
    /// # Errors
    /// The first line that makes no sense, and why.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut authors = Vec::new();
        for (number, line) in lines::entries(text) {
            let Some((revision, author)) = line.split_once(char::is_whitespace) else {
                return Err(format!(
                    "line {number}: there is no author; write the revision, a space, and the user \
                     name"
                ));
            };
            let revision =
                Revision::parse(revision).map_err(|why| format!("line {number}: {why}"))?;
            authors.push((revision, author.trim().to_owned()));
        }
        Ok(Self(authors))
    }

    /// Everybody who is named as an author of a revision.
    fn of(&self, revision: &Revision) -> Vec<&str> {
        let all = self.0.iter().filter(|(known, _)| known.is(revision));
        all.map(|(_, author)| author.as_str()).collect()
    }
}

fn validity(text: &Duration, field: &str) -> Result<SignedDuration, Refusal> {
    let field = format!("{field}.validFor");
    let length =
        duration::parse(text).map_err(|problem| Refusal::new(&field, problem, duration::REMEDY))?;
    if length.is_positive() && length <= LONGEST {
        return Ok(length);
    }
    let problem = format!(
        "`{}` must be longer than zero and at most 8784h (366 days)",
        duration::text(length)
    );
    let remedy = "write how long an approval counts, such as 168h";
    Err(Refusal::new(field, problem, remedy))
}

impl Approvals {
    /// Reads a spec. `field` is where it stands.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn read(spec: &Spec, field: &str) -> Result<Self, Refusals> {
        let Spec {
            required,
            valid_for,
            groups,
            forbid_self,
        } = spec;
        let mut mistakes = Vec::new();
        if !(1..=16).contains(required) {
            mistakes.push(Refusal::new(
                format!("{field}.required"),
                format!("{required} is not between 1 and 16"),
                "write how many people have to approve",
            ));
        }
        let valid_for = validity(valid_for, field).unwrap_or_else(|mistake| {
            mistakes.push(mistake);
            SignedDuration::ZERO
        });
        let rule = Self {
            required: usize::from(*required),
            valid_for,
            groups: groups.clone(),
            forbids_self: forbid_self.is_some(),
        };
        Refusals::unless_empty(mistakes, rule)
    }

    /// The votes that count on the revisions that were voted on last, at most `most` of them.
    pub(crate) fn latest(&self, votes: &Votes, most: usize, now: Timestamp) -> Vec<ApprovalStatus> {
        let Votes {
            ballot, authors, ..
        } = votes;
        let mut latest: Vec<_> = ballot.all().collect();
        latest.retain(|(approval, _)| self.is_in_force(approval, now));
        latest.sort_by_key(|(approval, _)| {
            let created = approval.metadata.creation_timestamp.as_ref();
            std::cmp::Reverse((created.map(|at| at.0), &approval.metadata.name))
        });
        let mut revisions: Vec<&Revision> = Vec::new();
        for revision in latest.into_iter().filter_map(|(_, revision)| revision) {
            if !revisions.iter().any(|known| known.is(revision)) {
                revisions.push(revision);
            }
            if revisions.len() == most {
                break;
            }
        }
        let status = |revision: &&Revision| {
            let authors = match authors {
                Some(Reading::Read(authors)) => authors.of(revision),
                Some(Reading::Unavailable(_) | Reading::Broken(_)) | None => Vec::new(),
            };
            self.tally(ballot, &authors, revision, now).status(revision)
        };
        revisions.iter().map(status).collect()
    }

    /// The votes on `revision` that count at `now`: one a person, a rejection for as long as it is
    /// there.
    pub fn tally<'a>(
        &self,
        ballot: &'a Ballot,
        authors: &[&str],
        revision: &Revision,
        now: Timestamp,
    ) -> Tally<'a> {
        let mut tally = Tally::default();
        let about = ballot.about(revision);
        for approval in about.filter(|approval| approval.metadata.deletion_timestamp.is_none()) {
            let vote = &approval.spec;
            match vote.decision {
                Vote::Reject if !tally.rejected.contains(&vote.by.as_str()) => {
                    tally.rejected.push(&vote.by);
                }
                Vote::Reject => {}
                Vote::Approve => {
                    let until = self.counts_until(approval);
                    if until > now && self.may_vote(approval, authors) {
                        let known = tally.approved.entry(&vote.by).or_insert(until);
                        *known = until.max(*known);
                    }
                }
            }
        }
        tally.rejected.sort_unstable();
        tally
    }

    /// Whether a vote may still count: a rejection for as long as it is there, an approval until it
    /// runs out. Whether the person who gave it may vote is another question.
    pub fn is_in_force(&self, approval: &Approval, now: Timestamp) -> bool {
        approval.metadata.deletion_timestamp.is_none()
            && match approval.spec.decision {
                Vote::Reject => true,
                Vote::Approve => self.counts_until(approval) > now,
            }
    }

    /// Until when an approval counts. One that no API server has taken yet counts for as long as it
    /// is there; a simulation says when one in a file was taken.
    pub fn counts_until(&self, approval: &Approval) -> Timestamp {
        let Some(created) = &approval.metadata.creation_timestamp else {
            return Timestamp::MAX;
        };
        let until = created.0.saturating_add(self.valid_for);
        until.unwrap_or(Timestamp::MAX)
    }

    /// When the next of the approvals runs out that count at `now`.
    fn next_end(&self, ballot: &Ballot, now: Timestamp) -> Option<Timestamp> {
        let ends = ballot
            .all()
            .map(|(approval, _)| self.counts_until(approval));
        ends.filter(|end| *end > now && *end < Timestamp::MAX).min()
    }

    fn may_vote(&self, approval: &Approval, authors: &[&str]) -> bool {
        let vote = &approval.spec;
        let named = || vote.groups.iter().filter(|it| self.groups.contains(it));
        let in_a_group = self.groups.is_empty() || named().next().is_some();
        in_a_group
            && !is_nobody(&vote.by, named())
            && !(self.forbids_self && authors.contains(&vote.by.as_str()))
    }

    /// Whether a ServiceAccount approves of `revision`, and that does not count.
    fn ignores_an_account(&self, ballot: &Ballot, revision: &Revision, now: Timestamp) -> bool {
        ballot.about(revision).any(|approval| {
            let vote = &approval.spec;
            let named = vote.groups.iter().filter(|it| self.groups.contains(it));
            vote.decision == Vote::Approve
                && is_nobody(&vote.by, named)
                && approval.metadata.deletion_timestamp.is_none()
                && self.counts_until(approval) > now
        })
    }

    /// The opinion that follows from the votes.
    pub(crate) fn opinion(
        &self,
        votes: &Votes,
        revision: Option<&Revision>,
        now: Timestamp,
    ) -> Opinion {
        let ballot = &votes.ballot;
        let authors = match (self.forbids_self, &votes.authors, revision) {
            (false, _, _) => Vec::new(),
            (true, None, _) => return Opinion::closed(Reason::NotObserved),
            (true, Some(Reading::Unavailable(_)), _) => {
                return Opinion::closed(Reason::EvidenceUnavailable);
            }
            (true, Some(Reading::Broken(_)), _) => return Opinion::closed(Reason::EvidenceBroken),
            (true, Some(Reading::Read(_)), None) => Vec::new(),
            (true, Some(Reading::Read(authors)), Some(revision)) => {
                let authors = authors.of(revision);
                if authors.is_empty() {
                    return Opinion::closed(Reason::EvidenceUnavailable);
                }
                authors
            }
        };
        if !votes.verified {
            return Opinion::closed(Reason::UnverifiedIdentity);
        }
        if votes.unreadable.is_some() || ballot.is_too_large() {
            return Opinion::closed(Reason::EvidenceBroken);
        }
        let Some(revision) = revision else {
            return Opinion {
                until: self.next_end(ballot, now),
                ..Opinion::of(State::Conditional, Reason::DependsOnRevision)
            };
        };
        let tally = self.tally(ballot, &authors, revision, now);
        if !tally.rejected.is_empty() {
            return Opinion::closed(Reason::Rejected);
        }
        match tally.holds_until(self.required) {
            None => Opinion::closed(Reason::AwaitingApproval),
            Some(until) => {
                let until = Some(until).filter(|until| *until < Timestamp::MAX);
                Opinion {
                    until,
                    next: until,
                    ..Opinion::of(State::Open, Reason::Approved)
                }
            }
        }
    }

    /// Why it is so, in a sentence.
    pub(crate) fn explain(
        &self,
        votes: &Votes,
        revision: Option<&Revision>,
        opinion: &Opinion,
        now: Timestamp,
    ) -> String {
        let Votes {
            ballot,
            unreadable,
            authors,
            verified: _,
        } = votes;
        match opinion.reason {
            Reason::NotObserved => return "the authors have not been read yet".to_owned(),
            Reason::UnverifiedIdentity => {
                return "nobody verifies who approves; install the admission policies of the \
                        chart, or run the controller with --trust-unverified-identity"
                    .to_owned();
            }
            Reason::EvidenceBroken if unreadable.is_some() => {
                return unreadable.as_deref().unwrap_or_default().to_owned();
            }
            Reason::EvidenceBroken if ballot.is_too_large() => {
                return format!(
                    "there are {} Approvals for it, more than {MOST_VOTES}; delete those that are \
                     no longer needed",
                    ballot.len()
                );
            }
            _ => {}
        }
        match authors {
            Some(Reading::Unavailable(why)) => {
                return format!("the authors are unavailable: {why}");
            }
            Some(Reading::Broken(why)) => return format!("the list of authors is broken: {why}"),
            Some(Reading::Read(_)) | None => {}
        }
        let Some(revision) = revision else {
            return format!(
                "it depends on the revision: {} of the votes on it have to approve, none reject",
                self.required
            );
        };
        let authors = match authors {
            Some(Reading::Read(authors)) if self.forbids_self => authors.of(revision),
            _ => Vec::new(),
        };
        if self.forbids_self && authors.is_empty() {
            return format!("the author of {revision} is unknown");
        }
        let tally = self.tally(ballot, &authors, revision, now);
        if !tally.rejected.is_empty() {
            let by = tally.rejected.join(", ");
            return match ballot.may_reject_another(revision) {
                true => format!(
                    "{revision} may be what {by} rejected: no source shows its name; wait until the \
                     source shows it, or reject by commit or digest"
                ),
                false => format!("{revision} is rejected by {by}"),
            };
        }
        let by: Vec<&str> = tally.approved.keys().copied().collect();
        let by = match by.len() {
            0 => String::new(),
            _ => format!(" ({})", by.join(", ")),
        };
        let lacks = tally.approved.len() < self.required;
        let ignored = match lacks && self.ignores_an_account(ballot, revision, now) {
            true => {
                "; ServiceAccounts are not people, and count only if a group of theirs is in \
                 spec.approval.groups"
            }
            false => "",
        };
        format!(
            "{revision} has {} of {} approvals{by}{ignored}",
            tally.approved.len(),
            self.required
        )
    }
}

impl Tally<'_> {
    /// Until when at least `required` people approve, if they do.
    fn holds_until(&self, required: usize) -> Option<Timestamp> {
        let mut ends: Vec<Timestamp> = self.approved.values().copied().collect();
        ends.sort_unstable_by(|a, b| b.cmp(a));
        ends.get(required.checked_sub(1)?).copied()
    }

    /// As a status has it.
    pub fn status(&self, revision: &Revision) -> ApprovalStatus {
        ApprovalStatus {
            revision: revision.to_string(),
            approved_by: self.approved.keys().map(ToString::to_string).collect(),
            rejected_by: self.rejected.iter().map(ToString::to_string).collect(),
        }
    }
}

#[cfg(test)]
mod tests;
