//! Step 5: a merge is ordered only from branches that were listed a moment ago.
//!
//! A repository may be listed once an hour, because webhooks tell what changes in between. Where a webhook is lost,
//! nothing may be merged that is no longer there, and nothing that is older than what has come since.

use jiff::SignedDuration;

use super::plan::{Asked, Plan, What};
use super::waits::wait;
use super::{Act, Given, settled};

/// How old a list may be. That is longer than the minute after which they are listed by default, by the time that a
/// list takes: who lists so often does not wait.
const FRESH: SignedDuration = SignedDuration::from_secs(75);

/// The branches into which a merge would be ordered now that was not ordered before.
pub(super) fn due(plans: &[Plan], asked: &[Asked]) -> Vec<String> {
    let is_new = |branch: &str| {
        let mut answers = asked.iter();
        answers.any(|it| it.environment == branch && it.what != What::Pass && it.takes_effect)
    };
    let due = plans.iter().filter(|plan| {
        let is_auto = plan.merge.as_ref().is_some_and(|merge| merge.is_auto);
        is_auto && is_new(&plan.status.branch)
    });
    due.map(|plan| plan.status.branch.clone()).collect()
}

/// Whether the list is too old to order a merge. Nobody knows how old one is that was made later: the clock was set
/// back.
pub(super) fn is_stale(given: &Given) -> bool {
    let listed = given.evidence.listed_at();
    listed.is_none_or(|at| given.now.at.duration_since(at).abs() > FRESH)
}

/// Orders nothing for these branches now, and has a fresh list made.
pub(super) fn hold(given: &Given, plans: &mut [Plan], asked: &mut Vec<Asked>, due: &[String]) {
    asked.retain(|it| it.what == What::Pass || !due.contains(&it.environment));
    let plans = plans.iter_mut();
    for plan in plans.filter(|plan| due.contains(&plan.status.branch)) {
        let why = match given.evidence.is_list_failing() {
            true => wait(
                "ForgeUnavailable",
                "a merge is ordered only from branches that were listed within the last minute, and they \
                 cannot be listed now; the GitRepositoryAccess says why",
            ),
            false => wait(
                "ForgePending",
                "the branches are listed once more before the merge is ordered",
            ),
        };
        settled::hold(plan, why);
        plan.merge = None;
        plan.acts.push(Act::Freshen);
    }
}
