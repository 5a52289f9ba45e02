//! Step 5: what a status says in conditions.

use std::collections::BTreeMap;

use sluice_crds::Pipeline;
use sluice_crds::pipeline::{EnvironmentState, EnvironmentStatus};

use super::{Missing, Trouble, words};
pub use crate::delivery::act::BLOCKED;
use crate::text::words::clean;
use crate::verdict::condition::{READY, Wanted};

/// The first environment does not run one revision healthily; present only then.
pub const PROMOTION_PENDING: &str = "PromotionPending";

/// Everything that a look has found out before the conditions.
pub(super) struct Findings<'a> {
    pub(super) object: &'a Pipeline,
    pub(super) environments: &'a BTreeMap<String, EnvironmentStatus>,
    /// What is missing, with the name of its target.
    pub(super) troubles: &'a [(String, &'a Trouble)],
    /// Why the first environment does not run one revision healthily.
    pub(super) unsteady: Option<&'a str>,
    /// What is said of a write that was refused, as long as it has to be retried.
    pub(super) write_refused: Option<Vec<Wanted>>,
}

/// All the conditions.
pub(super) fn all(found: &Findings<'_>) -> Vec<Wanted> {
    let mut wanted = ready(found);
    wanted.push(blocked(found));
    wanted.extend(
        found
            .unsteady
            .map(|why| Wanted::new(PROMOTION_PENDING, true, "EnvironmentNotReady", why)),
    );
    wanted
}

fn ready(found: &Findings<'_>) -> Vec<Wanted> {
    if found.object.spec.suspend {
        let message = "suspended: nothing is promoted, merged or closed";
        return vec![Wanted::new(READY, true, "Suspended", message)];
    }
    if let Some(refused) = &found.write_refused {
        return refused.clone();
    }
    if let Some((target, trouble)) = found.troubles.first() {
        let reason = match trouble.what {
            Missing::Cluster => "TargetClusterNotFound",
            Missing::Connection => "TargetClusterNotReady",
            Missing::App => "TargetNotReadable",
        };
        let message = format!("{target}: {}", clean(&trouble.message, words::LONGEST));
        return vec![Wanted::new(READY, false, reason, message)];
    }
    let failed = in_order(found).find(|(_, it)| it.state == EnvironmentState::Failed);
    if let Some((name, environment)) = failed {
        let message = format!("{name}: {}", words::of(environment, name));
        return vec![Wanted::new(READY, false, "PromotionFailed", message)];
    }
    let message = "every target can be read, and no promotion fails";
    vec![Wanted::new(READY, true, "ReconciliationSucceeded", message)]
}

fn blocked(found: &Findings<'_>) -> Wanted {
    let mut all = in_order(found);
    let held = all.find(|(_, environment)| match environment.state {
        EnvironmentState::Unapproved
        | EnvironmentState::Rejected
        | EnvironmentState::GatesClosed
        | EnvironmentState::CyclicGates => true,
        EnvironmentState::Passed
        | EnvironmentState::Waiting
        | EnvironmentState::Arriving
        | EnvironmentState::NotReady
        | EnvironmentState::Unknown
        | EnvironmentState::Unpromoted
        | EnvironmentState::Closing
        | EnvironmentState::Promoting
        | EnvironmentState::Failed
        | EnvironmentState::PullRequestOpen
        | EnvironmentState::Promoted
        | EnvironmentState::NoEffect
        | EnvironmentState::Abandoned
        | EnvironmentState::Suspended => false,
    });
    match held {
        Some((name, environment)) => {
            let message = format!("{name}: {}", words::of(environment, name));
            Wanted::new(BLOCKED, true, environment.state.as_str(), message)
        }
        None => Wanted::new(
            BLOCKED,
            false,
            "NothingBlocked",
            "nothing waits for gates or people",
        ),
    }
}

/// The environments in the order of the spec.
fn in_order<'a>(
    found: &Findings<'a>,
) -> impl Iterator<Item = (&'a str, &'a EnvironmentStatus)> + use<'a> {
    let all = found.environments;
    let specs = found.object.spec.environments.iter();
    specs.filter_map(|spec| Some((spec.name.as_str(), all.get(&spec.name)?)))
}
