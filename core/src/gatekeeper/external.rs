//! `external`: what a third party reports, as long as it holds.

use std::sync::Arc;

use jiff::Timestamp;
use sluice_crds::gatekeeper::{External, ExternalReport};
use sluice_crds::{Gatekeeper, State};

use super::Evidence;
use super::given::{self, Given};
use super::kind::{Basis, Judge, KindSpec, Known, Setup};
use crate::revision::Revision;
use crate::text::refusal::Refusals;
use crate::text::words;
use crate::verdict::question::Question;
use crate::verdict::{Opinion, Reason};

/// The most characters of a reason that are shown.
const LONGEST_REASON: usize = 256;

/// What was reported: the evidence of the rule.
#[derive(Clone, Debug, Default, PartialEq)]
struct Observed {
    report: Option<ExternalReport>,
    /// The present one of the spec.
    generation: Option<i64>,
    /// Whether it is verified who reports.
    verified: bool,
}

impl KindSpec for External {
    fn judge(&self, setup: &Setup<'_>) -> Result<Arc<dyn Judge>, Refusals> {
        Ok(Arc::new(Reported {
            spec: self.clone(),
            observed: setup.evidence.shared().unwrap_or_default(),
        }))
    }

    fn complete(&self, object: &Gatekeeper, _: Evidence, known: &dyn Known) -> Evidence {
        let report = object.status.as_ref().and_then(|it| it.report.as_deref());
        Evidence::of(Observed {
            report: report.cloned(),
            generation: object.metadata.generation,
            verified: known.is_verified(object),
        })
    }

    fn given(&self, _: Given, _: &given::Course<'_>) -> Result<Evidence, String> {
        Err("it is of the kind external: write report".to_owned())
    }
}

/// The rule with its evidence.
#[derive(Debug)]
struct Reported {
    spec: External,
    observed: Arc<Observed>,
}

impl Judge for Reported {
    fn opinion(&self, question: Question<'_>) -> Opinion {
        let Observed {
            report,
            generation,
            verified,
        } = &*self.observed;
        let (report, revision) = (report.as_ref(), question.revision);
        let now = question.now.at;
        opinion(&self.spec, report, *generation, *verified, revision, now)
    }

    fn explain(&self, opinion: &Opinion, _: Question<'_>) -> String {
        explain(&self.spec, self.observed.report.as_ref(), opinion)
    }

    fn basis(&self) -> Basis {
        Basis::Reports
    }

    fn is_unread(&self, _: Question<'_>) -> bool {
        false
    }

    fn good_until(&self) -> Option<Timestamp> {
        let report = self.observed.report.as_ref();
        report.map(|report| report.expires_at.0)
    }
}

/// The opinion that the report gives. A report counts only if it is from one of the writers, about this
/// generation of the spec, not expired, and if it is verified who writes it.
fn opinion(
    spec: &External,
    report: Option<&ExternalReport>,
    generation: Option<i64>,
    verified: bool,
    revision: Option<&Revision>,
    now: Timestamp,
) -> Opinion {
    let Some(report) = report else {
        return Opinion::closed(Reason::NotReported);
    };
    if Some(report.for_generation) != generation {
        return Opinion::closed(Reason::NotReported);
    }
    if report.expires_at.0 <= now {
        return Opinion::closed(Reason::Expired);
    }
    if !verified || !spec.writers.contains(&report.by) {
        return Opinion::closed(Reason::UnverifiedIdentity);
    }
    let state = match (State::from(report.state), revision) {
        (State::Open, None) if !report.revisions.is_empty() => State::Conditional,
        (State::Open, Some(revision)) if !report.revisions.is_empty() => {
            let named =
                |text: &String| Revision::parse(text).is_ok_and(|reported| reported.is(revision));
            match report.revisions.iter().any(named) {
                true => State::Open,
                false => {
                    return Opinion {
                        until: Some(report.expires_at.0),
                        ..Opinion::closed(Reason::RevisionNotListed)
                    };
                }
            }
        }
        (state, _) => state,
    };
    // That it expires is no change to foretell: reports are renewed.
    Opinion {
        until: Some(report.expires_at.0),
        ..Opinion::of(state, Reason::External)
    }
}

/// What was reported, in a sentence.
fn explain(spec: &External, report: Option<&ExternalReport>, opinion: &Opinion) -> String {
    let Some(report) = report else {
        return format!(
            "nothing was reported yet; {} may",
            spec.writers.join(" or ")
        );
    };
    match opinion.reason {
        Reason::NotReported => format!(
            "what was reported is about generation {} of the spec, not about the present one",
            report.for_generation
        ),
        Reason::Expired => format!(
            "the report of {} expired {}",
            report.by,
            words::instant_utc(report.expires_at.0)
        ),
        Reason::UnverifiedIdentity if !spec.writers.contains(&report.by) => {
            format!(
                "{} reported, but is not among spec.external.writers",
                report.by
            )
        }
        Reason::UnverifiedIdentity => format!(
            "{} reported, but nobody verified that; install the admission policies of the chart, \
             or run the controller with --trust-unverified-identity",
            report.by
        ),
        _ => {
            let only = match report.revisions.len() {
                0 => String::new(),
                count => format!(" for {count} revisions"),
            };
            let why = report.reason.as_ref();
            let why = why.map(|reason| format!(" ({})", words::clean(reason, LONGEST_REASON)));
            let why = why.unwrap_or_default();
            // Without its end: another report that says the same is not reported as a change.
            format!("reported {}{only} by {}{why}", report.state, report.by)
        }
    }
}

#[cfg(test)]
mod tests;
