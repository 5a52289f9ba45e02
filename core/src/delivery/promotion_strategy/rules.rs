//! Step 4: what holds back what is proposed.
//!
//! Each rule is asked, whatever the others say: the first that holds something back decides, and all of them
//! are told.
//!
//! | rule | holds back |
//! |---|---|
//! | [`usable`] | where the strategy, the repository or the branches cannot be used |
//! | [`metadata`] | what does not say from which dry commit it was made |
//! | [`foreign`] | while the branch has something that somebody else has pushed |
//! | [`forwards`] | what is not on the dry branch, or would go back behind this or a later environment |
//! | [`held`] | what was taken back and is not fixed |
//! | [`in_order`] | what an environment before does not have |
//! | [`active_checks`] | what the checks of the environments before have not passed |
//! | [`proposed_checks`] | what its own checks have not passed |
//! | [`pull_request`] | what its pull request cannot merge |
//! | [`upkeep`] | what has to be joined to the history of its environment first |
//!
//! The gates are asked after all of these, and a person last.

use sluice_crds::promotion_strategy::{Join, Wait};

use super::at::At;
use super::checks::short;
use super::evidence::Sight;
use super::merges;
use super::pulls::{Pull, Standing};
use super::reverting::UNSEEN;
use super::sequence::{forwards, in_order};
use super::tips::{Dry, Env};
use super::waits::{first_failing, pending, throttled, wait};
use super::{Access, Given, upkeep};
use crate::time::clock::Trust;
use crate::time::stamp::time;

type Rule = fn(&At<'_, '_>) -> Option<Wait>;

/// Whether it may ever be merged as it is.
const FIT: [Rule; 5] = [usable, metadata, foreign, forwards, held];

/// Whether it may be merged now.
const READY: [Rule; 4] = [in_order, active_checks, proposed_checks, pull_request];

/// Everything that holds it back, what decides first; and the order to join it to the history of its
/// environment, if that is all that is missing for it to be merged some time.
pub(super) fn waits(at: &At<'_, '_>) -> (Vec<Wait>, Option<Join>) {
    let ask = |rules: &[Rule]| rules.iter().filter_map(|rule| rule(at)).collect::<Vec<_>>();
    let mut waits = ask(&FIT);
    let joining = waits.is_empty().then(|| upkeep::join(at)).flatten();
    waits.extend(ask(&READY));
    let (wait, order) = joining.unzip();
    waits.extend(wait);
    (waits, order.flatten())
}

fn usable(at: &At<'_, '_>) -> Option<Wait> {
    let given = at.given;
    if given.object.spec.suspend {
        return Some(wait("Suspended", "the PromotionStrategy is suspended"));
    }
    if let Trust::Lost(_) = given.now.trust {
        // An order has an end, which nobody would see.
        let message = "the clock of the controller is not right; nothing is merged until it is";
        return Some(wait("ClockLost", message));
    }
    if let Access::NotReady(why) = &given.access {
        return Some(wait("AccessNotReady", why));
    }
    if let Some(wait) = unusable(given, &at.me.env) {
        return Some(wait);
    }
    match &at.me.env.proposes {
        Sight::Pending => Some(pending()),
        Sight::Failed(why) => Some(wait("ForgeUnavailable", why)),
        Sight::Known(_) | Sight::Absent => None,
    }
}

/// Why nothing can ever be merged into a branch, whatever is proposed.
pub(super) fn unusable(given: &Given, env: &Env<'_>) -> Option<Wait> {
    let branch = env.branch();
    let owner = given.surroundings.get(env.place)?.owned_by.as_ref();
    if let Some(owner) = owner {
        let message = format!(
            "the branch {branch} belongs to the older PromotionStrategy {owner}; give it another branch"
        );
        return Some(wait("BranchOwned", message));
    }
    env.active.is_none().then(|| {
        let message = format!("there is no branch {branch}; push one, it may be empty");
        wait("ActiveBranchMissing", message)
    })
}

/// An environment that was never promoted to may be without metadata. What is proposed may not.
fn metadata(at: &At<'_, '_>) -> Option<Wait> {
    let active = at
        .me
        .env
        .active
        .as_ref()
        .map(|it| (&it.dry, at.branch().to_owned()));
    let proposed_branch = at.given.object.spec.proposed_branch(at.me.env.spec);
    let proposed = Some((&at.tip.dry, proposed_branch));
    let both = [proposed, active];
    both.into_iter().flatten().enumerate().find_map(|(place, (dry, branch))| match dry {
        Dry::Unsaid if place == 0 => {
            let message = format!(
                "{branch} at {} has no note and no file hydrator.metadata that says from which commit it was \
                 made; have the hydrator write one",
                short(&at.tip.sha)
            );
            Some(wait("NoMetadata", message))
        }
        Dry::Invalid(why) => Some(wait("MetadataInvalid", format!("hydrator.metadata of {branch}: {why}"))),
        Dry::Unreadable(why) => Some(wait("ForgeUnavailable", why)),
        Dry::Pending => Some(pending()),
        Dry::Known(_) | Dry::Unsaid => None,
    })
}

fn foreign(at: &At<'_, '_>) -> Option<Wait> {
    match (&at.me.arrived, &at.me.env.active) {
        (Some(_), Some(active)) if at.me.is_foreign() => {
            let message = format!(
                "somebody has pushed {} to {}, which is no promotion; accept it with `kubectl gate accept`, or \
                 push what was promoted again",
                short(&active.sha),
                at.branch()
            );
            Some(wait("ForeignCommit", message))
        }
        (None, Some(_)) => Some(pending()),
        _ => None,
    }
}

fn held(at: &At<'_, '_>) -> Option<Wait> {
    if let Some(revert) = &at.me.reverting {
        let (branch, name) = (at.branch(), revert.name());
        let message = format!("{branch} is being brought back by the RevertCommit {name}");
        return Some(wait("Reverting", message));
    }
    let proposed = at.tip.dry.known()?;
    at.me.held.iter().find_map(|held| {
        let fixed_by = at.fix_of(held);
        let message = format!(
            "{} was taken back by the RevertCommit {}; delete that, or name the commit that fixes it in its \
             spec.fixedBy",
            short(&held.dry_sha),
            held.revert_commit
        );
        // What the held commit has already does not fix it.
        let is_fix = |fix: &str| match at.asker.contains(&held.dry_sha, fix) {
            Sight::Known(true) => Sight::Known(false),
            Sight::Pending => Sight::Pending,
            Sight::Known(false) | Sight::Absent | Sight::Failed(_) => {
                at.asker.contains(proposed, fix)
            }
        };
        match fixed_by.map(is_fix) {
            Some(Sight::Known(true)) => None,
            Some(Sight::Pending) => Some(pending()),
            Some(Sight::Known(false) | Sight::Absent | Sight::Failed(_)) | None => {
                Some(wait("Held", message))
            }
        }
    })
}

/// The third rule: the checks of the environments before pass on what they have.
fn active_checks(at: &At<'_, '_>) -> Option<Wait> {
    at.proving().into_iter().find_map(|place| {
        let earlier = at.all.get(place)?;
        first_failing(&earlier.active_checks, earlier.env.branch())
    })
}

/// The fourth rule: the checks of what is proposed pass.
fn proposed_checks(at: &At<'_, '_>) -> Option<Wait> {
    let branch = at.given.object.spec.proposed_branch(at.me.env.spec);
    first_failing(&at.me.proposed_checks, &branch)
}

fn pull_request(at: &At<'_, '_>) -> Option<Wait> {
    match &at.me.pull.standing {
        Standing::Open => at.hindered(at.me.pull.object?.status.as_ref()?),
        Standing::None | Standing::Coming => Some(wait(
            "PullRequestPending",
            "its pull request is being opened",
        )),
        Standing::Failing(word, why) => {
            let message = format!("its pull request cannot be opened or read: {word}: {why}");
            Some(wait("PullRequestFailed", message))
        }
        Standing::Throttled(why, until) => Some(throttled(why, until.clone())),
        Standing::Behind => {
            let message = format!("its pull request does not show {} yet", short(&at.tip.sha));
            Some(wait("PullRequestPending", message))
        }
        Standing::Merged => {
            let message =
                "its pull request is merged, and the branch was not seen to have that yet";
            let status = at.me.pull.object?.status.as_ref();
            let again = status.and_then(|status| merges::again_at(status, at.given.now.at));
            Some(Wait {
                next: again.map(time),
                ..wait("PullRequestPending", message)
            })
        }
        Standing::ClosedByPerson => {
            let name = at.me.pull.record.as_ref().map(|it| it.name.as_str());
            let message = format!(
                "its pull request was closed, by somebody or because its branch was deleted for a moment; to have \
                 another one opened delete the PullRequest {}, or push something else to {}",
                name.unwrap_or_default(),
                at.given.object.spec.proposed_branch(at.me.env.spec)
            );
            Some(wait("ClosedByPerson", message))
        }
    }
}

/// What keeps a revert from being merged, other than gates and people.
pub(super) fn of_revert(pull: &Pull<'_>) -> Option<Wait> {
    let message = match &pull.standing {
        Standing::Open => return None,
        Standing::ClosedByPerson => {
            let message = "a person has closed the pull request that brings it back";
            return Some(wait("ClosedByPerson", message));
        }
        Standing::Failing(word, why) => {
            let message = format!("the pull request that brings it back fails: {word}: {why}");
            return Some(wait("PullRequestFailed", message));
        }
        Standing::Throttled(why, until) => return Some(throttled(why, until.clone())),
        Standing::Merged => UNSEEN,
        Standing::None | Standing::Coming | Standing::Behind => {
            "the pull request that brings it back is being opened"
        }
    };
    Some(wait("PullRequestPending", message))
}
