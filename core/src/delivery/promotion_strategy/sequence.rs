//! Step 4: what comes after what, by the dry commits.
//!
//! Files are made from one dry commit. They stand for all later ones, too, up to the one that their note
//! names: nothing was to be changed for those. So what is proposed may be merged where every environment
//! before has files that stand for one of the same dry commits.

use sluice_crds::promotion_strategy::{Arrival, Wait};

use super::at::At;
use super::checks::short;
use super::evidence::Sight;
use super::tips::{self, Dry, Env};
use super::waits::{pending, wait};

/// The first rule of the proposal: no moving backwards.
pub(super) fn forwards(at: &At<'_, '_>) -> Option<Wait> {
    let proposed = at.tip.dry.known()?;
    let dry_branch = &at.given.object.spec.dry_branch;
    let Some(head) = at.heads.branches.get(dry_branch) else {
        let message =
            format!("there is no branch {dry_branch}; write the one that people commit to");
        return Some(wait("DryBranchMissing", message));
    };
    match at.asker.contains(head, proposed) {
        Sight::Known(true) => {}
        Sight::Known(false) | Sight::Absent => {
            let message = format!("{} is not on the branch {dry_branch}", short(proposed));
            return Some(wait("NotOnDryBranch", message));
        }
        Sight::Pending => return Some(pending()),
        Sight::Failed(why) => return Some(wait("AncestryUnknown", why)),
    }
    let me = &at.me.env;
    let mut later = at.graph.after(me.place).filter_map(|it| at.all.get(it));
    at.goes_back(me, &me.stands_at, proposed)
        .or_else(|| later.find_map(|later| behind(at, &later.env, proposed)))
}

/// Whether a later environment has files that were made from something newer.
fn behind(at: &At<'_, '_>, later: &Env<'_>, proposed: &str) -> Option<Wait> {
    let made_from = &later.active.as_ref()?.dry;
    let wait = at.goes_back(later, made_from, proposed)?;
    match at.up_to() {
        Dry::Known(newest) if newest != proposed => {
            at.goes_back(later, made_from, &newest).map(|_| wait)
        }
        Dry::Pending => Some(pending()),
        _ => Some(wait),
    }
}

/// The second rule: every environment before has what is proposed here.
pub(super) fn in_order(at: &At<'_, '_>) -> Option<Wait> {
    let proposed = at.tip.dry.known()?;
    let mut before = at.graph.before(at.me.env.place);
    before.find_map(|place| {
        let earlier = at.all.get(place)?;
        let (branch, proposes) = (earlier.env.branch(), short(proposed));
        let waits = |message: String| Some(wait("WaitsForEnvironment", message));
        match &earlier.arrived {
            // Also where it is overwritten: what it says of itself proves nothing.
            Some(arrived) if arrived.by == Arrival::Foreign => {
                return waits(format!(
                    "{branch} has a commit that somebody else has pushed"
                ));
            }
            // Nor does it while nobody knows who has pushed it.
            None if earlier.env.active.is_some() => {
                let message = format!("it is not known how {branch} got its commit");
                return Some(wait("ForgePending", message));
            }
            Some(_) | None => {}
        }
        match (at.has(&earlier.env, proposed), &earlier.env.stands_at) {
            (Sight::Known(true), _) => None,
            (Sight::Pending, _) => Some(pending()),
            (Sight::Failed(why), _) => Some(wait("AncestryUnknown", why)),
            (Sight::Known(false) | Sight::Absent, Dry::Known(there)) => waits(format!(
                "{branch} is at {}, and not at {proposes}",
                short(there)
            )),
            (Sight::Known(false) | Sight::Absent, _) => {
                waits(format!("{branch} is not at {proposes} yet"))
            }
        }
    })
}

impl At<'_, '_> {
    /// The newest dry commit that what is proposed stands for. It is asked for only where something would wait
    /// otherwise: notes are read one by one.
    fn up_to(&self) -> Dry {
        tips::up_to(self.asker, self.heads, self.tip)
    }

    /// Whether what is proposed would go back behind a dry commit that an environment has.
    fn goes_back(&self, env: &Env<'_>, there: &Dry, proposed: &str) -> Option<Wait> {
        let branch = env.branch();
        let there = match there {
            Dry::Known(there) => there,
            // Nothing was promoted to it yet.
            Dry::Unsaid => return None,
            Dry::Pending => return Some(pending()),
            Dry::Invalid(why) | Dry::Unreadable(why) => {
                let message = format!("it is not known at which commit {branch} is: {why}");
                return Some(wait("AncestryUnknown", message));
            }
        };
        match self.asker.contains(proposed, there) {
            Sight::Known(true) => return None,
            Sight::Pending => return Some(pending()),
            Sight::Failed(why) => return Some(wait("AncestryUnknown", why)),
            Sight::Known(false) | Sight::Absent => {}
        }
        let (new, old) = (short(proposed), short(there));
        match self.asker.contains(there, proposed) {
            Sight::Known(true) => {
                let message = format!("{branch} is at {old} already, which comes after {new}");
                Some(wait("MovesBackwards", message))
            }
            Sight::Known(false) | Sight::Absent => {
                let message = format!(
                    "{branch} is at {old}, and neither of it and {new} comes after the other"
                );
                Some(wait("Diverged", message))
            }
            Sight::Pending => Some(pending()),
            Sight::Failed(why) => Some(wait("AncestryUnknown", why)),
        }
    }

    /// Whether an environment has files that stand for a dry commit which what is proposed stands for.
    fn has(&self, env: &Env<'_>, proposed: &str) -> Sight<bool> {
        let (Dry::Known(there), Some(active)) = (&env.stands_at, &env.active) else {
            return match env.stands_at {
                Dry::Pending => Sight::Pending,
                _ => Sight::Known(false),
            };
        };
        if there == proposed {
            return Sight::Known(true);
        }
        match self.is_newer(there, proposed) {
            Sight::Known(true) => {}
            other => return other,
        }
        let made_from = active.dry.known().unwrap_or(there);
        match self.asker.contains(proposed, made_from) {
            Sight::Known(false) | Sight::Absent => {}
            other => return other,
        }
        match self.up_to() {
            Dry::Known(newest) => self.asker.contains(&newest, made_from),
            Dry::Pending => Sight::Pending,
            _ => Sight::Known(false),
        }
    }

    /// Whether one dry commit comes after another. What is older, as it mostly is, costs no question that the
    /// first rule has not asked.
    fn is_newer(&self, one: &str, other: &str) -> Sight<bool> {
        match self.asker.contains(other, one) {
            Sight::Known(true) => Sight::Known(false),
            Sight::Known(false) | Sight::Absent => self.asker.contains(one, other),
            unknown => unknown,
        }
    }

    /// The environments whose checks prove what is proposed here: those directly before, and for one that has
    /// it only because there was nothing to change, those before it, too.
    pub(super) fn proving(&self) -> Vec<usize> {
        let proposed = self.tip.dry.known();
        let changed = |place: usize| {
            let active = self.all.get(place)?.env.active.as_ref()?;
            let (made_from, proposed) = (active.dry.known()?, proposed?);
            let is_newer = || self.is_newer(made_from, proposed) == Sight::Known(true);
            Some(made_from == proposed || is_newer())
        };
        let mut all: Vec<usize> = Vec::new();
        let mut left: Vec<usize> = self.graph.directly_before(self.me.env.place).to_vec();
        while let Some(place) = left.pop() {
            if all.contains(&place) {
                continue;
            }
            all.push(place);
            if changed(place) != Some(true) {
                left.extend(self.graph.directly_before(place));
            }
        }
        all.sort_unstable();
        all
    }
}
