//! How far each RevertCommit is, as the status says it.

use sluice_crds::promotion_strategy::{Held, RevertStatus};
use sluice_crds::pull_request::PullRequestState;
use sluice_crds::revert_commit::RevertPhase;

use super::{Candidate, Destination, MOST, short};
use crate::delivery::promotion_strategy::pulls::{Pull, Standing};
use crate::delivery::promotion_strategy::reverting::{Current, UNSEEN};
use crate::delivery::promotion_strategy::{Given, words};
use crate::text::words::clean;

impl Candidate<'_> {
    /// How far it is.
    fn status(
        &self,
        given: &Given,
        held: &[Held],
        current: Option<(&Current<'_>, &Pull<'_>)>,
    ) -> RevertStatus {
        let said = |phase, reason: &str, message: String| RevertStatus {
            name: self.name().to_owned(),
            generation: self.object.metadata.generation,
            phase,
            reason: reason.to_owned(),
            message: clean(&message, words::LONGEST),
            pull_request: None,
            url: None,
        };
        let branch = &self.object.spec.active_branch;
        if let Some((_, pull)) = current.filter(|(it, _)| it.name() == self.name()) {
            return self.under_way(pull, said);
        }
        if !self.is_due {
            let is_merged = held.iter().any(|it| it.revert_commit == self.name());
            return match is_merged {
                true => said(
                    RevertPhase::Merged,
                    "Merged",
                    format!("{branch} is back, and what was taken back is held"),
                ),
                false => said(
                    RevertPhase::Superseded,
                    "Superseded",
                    format!(
                        "{branch} does not have {} any more",
                        short(&self.object.spec.from)
                    ),
                ),
            };
        }
        match &self.destination {
            _ if !given.reverts_verified => {
                let message = "nobody verifies who brings something back; install the admission policies of \
                               the chart, or run the controller with --trust-unverified-identity";
                said(RevertPhase::Stalled, "Unverified", message.to_owned())
            }
            _ if given.object.spec.suspend => said(
                RevertPhase::Pending,
                "Suspended",
                "the PromotionStrategy is suspended".to_owned(),
            ),
            Destination::Unknown(reason, why) => said(RevertPhase::Stalled, reason, why.clone()),
            Destination::Reading => said(
                RevertPhase::Pending,
                "ForgePending",
                "the repository is being read".to_owned(),
            ),
            Destination::Known(_) if current.is_some() => said(
                RevertPhase::Pending,
                "AnotherIsUnderWay",
                format!("{branch} is being brought back by another one"),
            ),
            Destination::Known(_) => said(
                RevertPhase::Done,
                "AlreadyThere",
                format!("{branch} has those files already"),
            ),
        }
    }

    fn under_way(
        &self,
        pull: &Pull<'_>,
        said: impl Fn(RevertPhase, &str, String) -> RevertStatus,
    ) -> RevertStatus {
        let record = pull.record.as_ref();
        let is_open = record.and_then(|it| it.state) == Some(PullRequestState::Open);
        let status = match &pull.standing {
            Standing::ClosedByPerson => {
                let message = "a person has closed its pull request; delete the RevertCommit, and create \
                               another one if it is still wanted";
                said(RevertPhase::Stalled, "ClosedByPerson", message.to_owned())
            }
            Standing::Failing(word, why) => said(
                RevertPhase::Pending,
                "PullRequestFailed",
                format!("{word}: {why}"),
            ),
            Standing::Throttled(why, _) => {
                said(RevertPhase::Pending, "ForgeThrottled", why.clone())
            }
            Standing::Merged => said(
                RevertPhase::Pending,
                "PullRequestPending",
                UNSEEN.to_owned(),
            ),
            Standing::None | Standing::Coming | Standing::Behind | Standing::Open => {
                match is_open {
                    true => said(
                        RevertPhase::Open,
                        "Open",
                        "its pull request is open".to_owned(),
                    ),
                    false => said(
                        RevertPhase::Pending,
                        "Opening",
                        "its pull request is being opened".to_owned(),
                    ),
                }
            }
        };
        RevertStatus {
            pull_request: record.map(|it| it.name.clone()),
            url: record.and_then(|it| it.url.clone()),
            ..status
        }
    }
}

/// How far each of them is: the newest, and the one that is carried out, which may be the oldest.
pub(in super::super) fn statuses(
    given: &Given,
    candidates: &[Candidate<'_>],
    held: &[Held],
    current: Option<(&Current<'_>, &Pull<'_>)>,
) -> Vec<RevertStatus> {
    let is_current =
        |it: &Candidate<'_>| current.is_some_and(|(current, _)| current.name() == it.name());
    let surplus = candidates.len().saturating_sub(MOST);
    let mut others = 0;
    let told = candidates.iter().filter(|it| {
        others += usize::from(!is_current(it));
        is_current(it) || others > surplus
    });
    told.map(|it| it.status(given, held, current)).collect()
}
