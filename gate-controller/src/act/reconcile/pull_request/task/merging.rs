//! The merge that an order asks for.

use std::time::Duration;

use jiff::Timestamp;
use sluice_core::delivery::promotion_strategy::KIND;
use sluice_core::delivery::pull_request::{Outcome, Word};
use sluice_crds::pipeline::MergeMethod as Method;
use sluice_forges::{Merge, MergeMethod, Pull, Sha, Trouble, Undone, Wants};
use tokio::time::Instant;

use super::{Job, Stopped};

impl Job<'_> {
    /// Merges this commit, and nothing after the end of the order, nor with the label that holds it back. Whatever
    /// the forge says, it is looked at afterwards what has become of the pull request.
    pub(super) async fn merge(
        &self,
        number: u64,
        commit: &Sha,
        method: Option<Method>,
        hold_label: Option<&str>,
        not_after: Timestamp,
    ) -> Result<Outcome, Stopped> {
        // That its time is over is no failure: there may be another order.
        let may = |wants| Some((self.desk.may_act)(wants)?.min(self.end(not_after)?));
        if may(Wants::Turn).is_none() {
            let late = Stopped::new(Word::Changed, "the order to merge it has ended");
            return Ok(Outcome::Held(late.at(self.desk.clock.now())));
        }
        let method = match method {
            Some(Method::Merge) => Some(MergeMethod::Merge),
            Some(Method::Squash) => Some(MergeMethod::Squash),
            Some(Method::Rebase) => Some(MergeMethod::Rebase),
            // What joins histories would be lost.
            None if self.object.spec.about.kind == KIND => Some(MergeMethod::NoRebase),
            None => None,
        };
        let merge = Merge {
            head: commit,
            base: &self.base,
            method,
            is_held: &|pull| self.is_followed() && is_held(pull, hold_label),
        };
        // It is asked again after the forge was looked at.
        let merge = self.forge().merge(number, &merge, &may);
        let ours = Some(commit).filter(|_| !self.is_followed());
        // It was sent: that it cannot be looked at does not say that it was not merged.
        let unknown = |stopped: Stopped| Stopped::new(Word::Unanswered, stopped.why);
        let look = async || self.look_at(number, ours).await.map_err(unknown);
        let Err(undone) = merge.await else {
            return look().await;
        };
        match (&undone, &undone.error().trouble) {
            // For Gitea, a commit that is in its base already is not ready for ever.
            (_, Trouble::NotYet)
                if ours.is_some() && self.is_in_base(commit).await.map_err(unknown)? =>
            {
                match self
                    .forge()
                    .pull(number)
                    .await
                    .map_err(|it| unknown(it.into()))?
                {
                    Some(pull) => self.close_merged_otherwise(pull, commit).await,
                    None => Ok(Outcome::NoPull),
                }
            }
            (
                Undone::Refused(_) | Undone::NotDone(_),
                Trouble::NotYet
                | Trouble::Conflict
                | Trouble::NotMergeable(_)
                | Trouble::NoSuchMethod
                | Trouble::OnlyRebases
                | Trouble::Changed
                | Trouble::Overtaken,
            ) => Ok(Outcome::Held(
                Stopped::from(undone).at(self.desk.clock.now()),
            )),
            // The strategy orders nothing while something fails: it would never be tried again.
            (Undone::Refused(_), Trouble::NoRight(_)) if self.object.spec.about.kind == KIND => Ok(
                Outcome::Held(Stopped::from(undone).at(self.desk.clock.now())),
            ),
            (
                _,
                Trouble::AlreadyMerged
                | Trouble::Closed
                | Trouble::HeadMoved
                | Trouble::HeldBack
                | Trouble::Absent(_),
            ) => look().await,
            // It may be under way there.
            (Undone::Unknown(_), _) => match look().await? {
                seen @ Outcome::Seen(
                    _,
                    sluice_core::delivery::pull_request::Fate::Merged { .. },
                ) => Ok(seen),
                _ => Err(undone.into()),
            },
            // It was not sent, or the forge has said that it does not merge.
            (Undone::Refused(_) | Undone::NotDone(_), _) => Ok(Outcome::Unsent(
                Stopped::from(undone).at(self.desk.clock.now()),
            )),
        }
    }

    /// The end of an order on the clock by which requests end. None: it has ended.
    fn end(&self, not_after: Timestamp) -> Option<Instant> {
        let left = not_after.duration_since(self.desk.clock.now());
        let left = Duration::try_from(left).ok().filter(|left| !left.is_zero());
        Some(Instant::now() + left?)
    }
}

/// Whether one whose branch somebody else pushes to is held back by what was not known yet when its merge was
/// ordered: it is a draft by now, or has the label.
fn is_held(pull: &Pull, hold_label: Option<&str>) -> bool {
    let mut labels = pull.labels.iter();
    let is_labelled = labels.any(|label| Some(label.as_str()) == hold_label);
    pull.draft || is_labelled || pull.labels_cut && hold_label.is_some()
}
