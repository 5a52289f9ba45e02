//! Step 3: the way back.
//!
//! A RevertCommit names what an environment has and where it goes back to. It is carried out by a pull
//! request with one commit: the files of the destination on what the environment has. What it takes back is
//! held until the RevertCommit is deleted, or names what fixes it. One whose environment has something else
//! by now does nothing: applied again from a file, it brings nothing back a second time.

use std::sync::Arc;

use sluice_crds::promotion_strategy::{Arrival, Held};
use sluice_crds::{PullRequest, RevertCommit};

use super::arrival::Arrived;
use super::checks::short;
use super::evidence::Sight;
use super::reverting::{Current, of_commit, said};
use super::tips::{Asker, Dry, Env, dry_of};
use super::{Given, pulls};
use crate::delivery::revert_commit;

mod told;

pub(super) use told::statuses;

/// How many are told of.
const MOST: usize = 8;

/// Where a RevertCommit leads.
#[derive(Clone, Debug)]
enum Destination {
    /// To these files.
    Known(String),
    /// It is not known yet.
    Reading,
    /// Nowhere: why, in one word and in a sentence.
    Unknown(&'static str, String),
}

/// A RevertCommit of an environment.
pub(super) struct Candidate<'g> {
    object: &'g Arc<RevertCommit>,
    destination: Destination,
    /// Whether the environment has what it takes back.
    is_due: bool,
    /// Whether it has it, or had it last.
    matters: bool,
}

/// The RevertCommits of an environment, the oldest first. Those that are refused are told by themselves.
pub(super) fn candidates<'g>(
    given: &'g Given,
    asker: &Asker<'_>,
    env: &Env<'_>,
) -> Vec<Candidate<'g>> {
    let all = given.reverts.iter().filter(|it| {
        it.spec.active_branch == env.branch()
            && it.metadata.deletion_timestamp.is_none()
            && revert_commit::check(it).is_ok()
    });
    let mut all: Vec<_> = all.collect();
    all.sort_by_key(|it| {
        let created = it.metadata.creation_timestamp.as_ref().map(|at| at.0);
        (created, it.metadata.name.clone())
    });
    let has = |sha: &str| env.active.as_ref().is_some_and(|tip| tip.sha == sha);
    let had = |sha: &str| {
        let before = env.record.and_then(|record| record.active.as_ref());
        before.is_some_and(|tip| tip.hydrated_sha == sha)
    };
    let candidate = |object: &'g Arc<RevertCommit>| {
        let from = object.spec.from.as_str();
        let matters = has(from) || had(from);
        Candidate {
            destination: match matters {
                true => destination(asker, env, object),
                false => Destination::Reading,
            },
            is_due: has(from),
            matters,
            object,
        }
    };
    all.into_iter().map(candidate).collect()
}

/// Whether it is known where all lead that may have been carried out.
pub(super) fn are_known(candidates: &[Candidate<'_>]) -> bool {
    let mut matter = candidates.iter().filter(|it| it.matters);
    !matter.any(|it| matches!(it.destination, Destination::Reading))
}

/// The trees that they lead back to.
pub(super) fn trees(candidates: &[Candidate<'_>]) -> Vec<String> {
    let trees = candidates.iter().filter_map(|it| match &it.destination {
        Destination::Known(tree) => Some(tree.clone()),
        Destination::Reading | Destination::Unknown(..) => None,
    });
    trees.collect()
}

fn destination(asker: &Asker<'_>, env: &Env<'_>, object: &RevertCommit) -> Destination {
    let spec = &object.spec;
    let healthy = env.record.map_or(&[][..], |record| &record.last_healthy);
    let known = healthy.iter().find(|it| it.dry_sha == spec.dry_sha);
    let hydrated = match (&spec.hydrated_sha, known) {
        (Some(sha), Some(known)) if known.hydrated_sha == *sha => sha,
        (None, Some(known)) => &known.hydrated_sha,
        (Some(sha), _) => match is_made_from(asker, spec, sha) {
            Ok(Sight::Known(())) => sha,
            Ok(_) => return Destination::Reading,
            Err((reason, why)) => return Destination::Unknown(reason, why),
        },
        // It is where it is to go back to, healthy or not.
        (None, None) if is_there(env, spec) => &spec.from,
        (None, None) => {
            let known: Vec<_> = healthy.iter().map(|it| short(&it.dry_sha)).collect();
            let why = format!(
                "{} was not healthy with {} as far as is known; write one of {}, or the commit of the branch in \
                 hydratedSHA",
                env.branch(),
                short(&spec.dry_sha),
                if known.is_empty() {
                    "none".to_owned()
                } else {
                    known.join(", ")
                },
            );
            return Destination::Unknown("DestinationUnknown", why);
        }
    };
    if let Some(wrong) = goes_forward(asker, env, &spec.dry_sha) {
        return wrong;
    }
    let before = env.record.map_or(&[][..], |record| &record.held);
    if before.iter().any(|held| held.dry_sha == spec.dry_sha) {
        let why = format!(
            "{} was taken back itself, and is held",
            short(&spec.dry_sha)
        );
        return Destination::Unknown("DestinationHeld", why);
    }
    if before.len() >= MOST {
        let why =
            format!("{MOST} commits are held already; delete a RevertCommit whose commit is fixed");
        return Destination::Unknown("TooManyHeld", why);
    }
    match asker.commit(hydrated) {
        Sight::Known(commit) => Destination::Known(commit.tree.clone()),
        Sight::Pending | Sight::Failed(_) => Destination::Reading,
        Sight::Absent => {
            let why = format!("the repository has no commit {} any more", short(hydrated));
            Destination::Unknown("DestinationUnknown", why)
        }
    }
}

/// Whether the environment has what is taken back, and that was made of the dry commit to go back to.
fn is_there(env: &Env<'_>, spec: &sluice_crds::RevertCommitSpec) -> bool {
    env.active.as_ref().is_some_and(|active| {
        let mut both = [&env.stands_at, &active.dry].into_iter();
        active.sha == spec.from && both.any(|it| it.known() == Some(&spec.dry_sha))
    })
}

/// Whether a commit of the branch was made from the dry commit to go back to.
fn is_made_from(
    asker: &Asker<'_>,
    spec: &sluice_crds::RevertCommitSpec,
    hydrated: &str,
) -> Result<Sight<()>, (&'static str, String)> {
    let (shown, from) = (short(hydrated), short(&spec.from));
    match asker.contains(&spec.from, hydrated) {
        Sight::Known(true) => {}
        Sight::Pending | Sight::Failed(_) => return Ok(Sight::Pending),
        Sight::Known(false) | Sight::Absent => {
            let why =
                format!("hydratedSHA: {shown} is no ancestor of {from}; write one of the branch");
            return Err(("NotAnAncestor", why));
        }
    }
    match dry_of(asker, hydrated) {
        Dry::Known(dry) if dry == spec.dry_sha => Ok(Sight::Known(())),
        Dry::Pending | Dry::Unreadable(_) => Ok(Sight::Pending),
        Dry::Known(_) | Dry::Unsaid | Dry::Invalid(_) => {
            let dry = short(&spec.dry_sha);
            let why = format!("hydratedSHA: {shown} was not made from {dry}; correct one of them");
            Err(("DestinationMismatch", why))
        }
    }
}

/// A revert never goes forward.
fn goes_forward(asker: &Asker<'_>, env: &Env<'_>, to: &str) -> Option<Destination> {
    // Somebody else may have pushed something that says nothing of itself.
    let active = env.active.as_ref()?.dry.known()?;
    let forward = || {
        let why = format!(
            "{} does not come before {}, which is active",
            short(to),
            short(active)
        );
        Destination::Unknown("GoesForward", why)
    };
    if active == to {
        return None;
    }
    match asker.contains(active, to) {
        Sight::Known(true) => None,
        Sight::Known(false) | Sight::Absent => Some(forward()),
        Sight::Pending | Sight::Failed(_) => Some(Destination::Reading),
    }
}

/// The one that is carried out: the oldest whose environment has what it takes back.
pub(super) fn current<'g>(
    given: &Given,
    env: &Env<'_>,
    candidates: &[Candidate<'g>],
) -> Option<Current<'g>> {
    let active = env.active.as_ref()?;
    let is_free = given.surroundings.get(env.place)?.owned_by.is_none();
    let may = given.reverts_verified && !given.object.spec.suspend && is_free;
    let due = candidates.iter().filter(|it| may && it.is_due);
    due.filter_map(|it| match &it.destination {
        Destination::Known(tree) if active.tree != Sight::Known(tree.clone()) => Some(Current {
            object: it.object,
            tree: tree.clone(),
        }),
        Destination::Known(_) | Destination::Reading | Destination::Unknown(..) => None,
    })
    .next()
}

/// What is held: what was taken back before, and what is being taken back, as long as the RevertCommit is
/// there. `written`: what reverts say of an environment of which nothing else is known.
pub(super) fn held(
    (given, asker): (&Given, &Asker<'_>),
    env: &Env<'_>,
    candidates: &[Candidate<'_>],
    current: Option<&Current<'_>>,
    arrived: Option<&Arrived>,
    written: Vec<Held>,
) -> Vec<Held> {
    // Also one whose spec is refused, perhaps since somebody has changed it.
    let named = |name: &str| {
        let mut all = given.reverts.iter();
        all.find(|it| {
            it.metadata.name.as_deref() == Some(name) && it.metadata.deletion_timestamp.is_none()
        })
    };
    let is_there = |name: &str| named(name).is_some();
    let before = env.record.map_or(&[][..], |record| &record.held);
    let is_fixed = |held: &Held| {
        let fix = named(&held.revert_commit).and_then(|it| it.spec.fixed_by.as_deref());
        let active = env.active.as_ref().and_then(|tip| tip.dry.known());
        let both = active.zip(fix);
        both.is_some_and(|(active, fix)| {
            asker.contains(active, fix) == Sight::Known(true)
                && asker.contains(&held.dry_sha, fix) == Sight::Known(false)
        })
    };
    // What the environment has with its fix is held no longer.
    let left = before.iter().cloned().chain(written);
    let left = left.filter(|it| is_there(&it.revert_commit) && !is_fixed(it));
    let mut all: Vec<Held> = Vec::new();
    for held in left {
        if !all.contains(&held) {
            all.push(held);
        }
    }
    let was = env.record.and_then(|record| record.active.as_ref());
    let has_gone_back = arrived.is_some_and(|it| it.by == Arrival::Revert);
    let taking = current.map(|it| {
        (
            it.name(),
            env.active.as_ref().and_then(|tip| tip.dry.known()),
        )
    });
    let taken = candidates
        .iter()
        .find(|it| has_gone_back && was.is_some_and(|was| was.hydrated_sha == it.object.spec.from));
    let taken = taken.map(|it| (it.name(), was.and_then(|was| was.dry_sha.as_deref())));
    for (name, dry) in taking.into_iter().chain(taken) {
        let Some(dry) = dry.filter(|_| !all.iter().any(|it| it.revert_commit == name)) else {
            continue;
        };
        all.push(Held {
            dry_sha: dry.to_owned(),
            revert_commit: name.to_owned(),
        });
    }
    all
}

/// What reverts have taken back, for an environment of which nothing else is known any more. Of any other environment
/// nothing is read. Their commits say so, and their pull requests: a forge that squashes keeps no message of a commit.
pub(super) fn written(
    asker: &Asker<'_>,
    env: &Env<'_>,
    own: &[&Arc<PullRequest>],
) -> Sight<Vec<Held>> {
    let is_known = env.record.is_some_and(|record| record.active.is_some());
    let Some(active) = env.active.as_ref().filter(|_| !is_known) else {
        return Sight::Known(Vec::new());
    };
    let merged = pulls::reverts(asker, env, own);
    let mut all: Vec<Held> = merged.filter_map(|tree| said(&tree.message)).collect();
    of_commit(asker, &active.sha).map(|held| {
        all.extend(held);
        all
    })
}

impl Candidate<'_> {
    fn name(&self) -> &str {
        self.object.metadata.name.as_deref().unwrap_or_default()
    }
}
