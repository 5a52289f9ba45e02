//! Step 6: what the forge is told of the newest dry commit: in how many environments it is.
//!
//! It is told as a CommitStatus is ([`commit_status`](crate::delivery::commit_status)), of which there is no
//! object: who may write those may say that a check has passed, and this is none.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use sluice_crds::commit_status::Phase;
use sluice_crds::promotion_strategy::EnvironmentStatus;
use sluice_crds::{CommitStatus, CommitStatusSpec, CommitStatusStatus, PromotionStrategy};

use super::{Act, Given};
use crate::delivery::act;
use crate::delivery::commit_status::report::{Errand, Given as Telling, report as tell};

/// What the names of these commit statuses begin with.
const PREFIX: &str = "sluice/dry";

/// What becomes of it in a look.
pub(super) struct Report {
    pub(super) status: Option<CommitStatusStatus>,
    pub(super) acts: Vec<Act>,
    pub(super) wake: Option<Timestamp>,
}

/// What the status of a strategy has the forge told. None: nothing.
pub fn dry_commit_status(object: &PromotionStrategy) -> Option<CommitStatus> {
    wanted(object, &object.status.as_ref()?.environments)
}

fn wanted(object: &PromotionStrategy, environments: &[EnvironmentStatus]) -> Option<CommitStatus> {
    let (metadata, spec) = (&object.metadata, &object.spec);
    if !spec.dry_commit_status || spec.suspend {
        return None;
    }
    let sha = newest(environments)?;
    let (reached, all) = (reached(environments, sha), environments.len());
    let namespace = metadata.namespace.as_deref().unwrap_or_default();
    let name = metadata.name.as_deref().unwrap_or_default();
    Some(CommitStatus {
        metadata: ObjectMeta {
            name: metadata.name.clone(),
            namespace: metadata.namespace.clone(),
            generation: metadata.generation,
            ..ObjectMeta::default()
        },
        spec: CommitStatusSpec {
            repo_ref: spec.repo_ref.clone(),
            sha: sha.to_owned(),
            name: format!("{PREFIX}/{namespace}/{name}"),
            phase: if reached == all {
                Phase::Success
            } else {
                Phase::Pending
            },
            description: Some(format!("in {reached} of {all} environments")),
            url: None,
            expires_at: None,
        },
        status: object
            .status
            .as_ref()
            .and_then(|it| it.dry_commit_status.clone()),
    })
}

/// The newest dry commit: what is proposed for the first environment, or what that has.
pub(super) fn newest(environments: &[EnvironmentStatus]) -> Option<&str> {
    let first = environments.first()?;
    let tips = [first.proposed.as_ref(), first.active.as_ref()];
    let mut known = tips
        .into_iter()
        .flatten()
        .filter_map(|tip| tip.dry_sha.as_deref());
    known.next()
}

/// How many environments have it.
fn reached(environments: &[EnvironmentStatus], sha: &str) -> usize {
    let has = |it: &&EnvironmentStatus| {
        let active = it.active.as_ref();
        active.and_then(|tip| tip.dry_sha.as_deref()) == Some(sha)
    };
    environments.iter().filter(has).count()
}

/// What the status says of it, and what has to be done.
pub(super) fn report(given: &Given, environments: &[EnvironmentStatus]) -> Report {
    let object = given.object.as_ref();
    let before = object
        .status
        .as_ref()
        .and_then(|it| it.dry_commit_status.clone());
    let is_over = matches!(given.dry_errand, Errand::Over(_));
    let told = is_over.then_some(Act::Told);
    let Some(wanted) = wanted(object, environments) else {
        return Report {
            status: before.filter(|_| object.spec.dry_commit_status),
            acts: told.into_iter().collect(),
            wake: None,
        };
    };
    let act::Report {
        status,
        changed: _,
        acts,
        wake,
    } = tell(Telling {
        object: Arc::new(wanted),
        refusal: None,
        errand: given.dry_errand.clone(),
        now: given.now,
    });
    Report {
        status: Some(status),
        acts: told
            .into_iter()
            .chain(acts.into_iter().map(Act::Tell))
            .collect(),
        wake,
    }
}
