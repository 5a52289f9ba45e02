//! A look at a pull request: what has to be done at its forge, as an errand, and what is reported of it.

use std::sync::Arc;

use jiff::Timestamp;
use sluice_core::delivery::act;
use sluice_core::delivery::pull_request::{self, Errand, Given, Looked};
use sluice_crds::PullRequest;
use sluice_crds::pull_request::{About, RepositoryKind};

use super::{Context, Outcome, Reconciled, SOON, git_repository_access, status};
use crate::cluster::key::{ObjectKey, Work};
use crate::cluster::kind::Kind;
use crate::observe::cache::{Cache, Change};
use crate::observe::world::World;
use at_forges::Ask;
use owners::Found;

pub(crate) mod at_forges;
pub mod lists;
mod news;
mod owners;
pub mod task;
#[cfg(test)]
mod tests;

impl Reconciled for PullRequest {
    const KIND: Kind = Kind::PullRequest;
    const MANAGER: &'static str = "gate-controller-pullrequests";

    fn cache(world: &World) -> &Cache<Self> {
        &world.pull_requests
    }

    /// Its owner, whose status says whether it may be merged, and the access to its repository.
    fn interests(&self, key: &ObjectKey) -> Vec<Work> {
        let access = match self.spec.repository.kind() {
            Some(RepositoryKind::Access(access)) => Some(access),
            Some(RepositoryKind::Address { .. }) | None => None,
        };
        let access = access.map(|access| git_repository_access::named(key, access));
        owner(key, &self.spec.about)
            .into_iter()
            .chain(access)
            .collect()
    }

    /// Nothing is decided by it but what its owner records, which the watch wakes.
    fn may_matter(_: &Change<'_, Self>) -> bool {
        false
    }

    async fn look(
        context: &Context,
        key: &ObjectKey,
        object: Arc<Self>,
        at: Timestamp,
    ) -> Result<Outcome, kube::Error> {
        let world = &context.world;
        let is_known = match owner(key, &object.spec.about).map(|owner| owner.kind) {
            Some(Kind::PromotionStrategy) => {
                world.promotion_strategies.is_synced() && world.accesses.is_synced()
            }
            _ => world.pipelines.is_synced(),
        };
        match is_known {
            true => look(context, key, object, at).await,
            // It is not known what its owner says, or who may use its repository.
            false => Ok(Outcome::Wake(at.checked_add(SOON).ok())),
        }
    }
}

/// What a PullRequest named `key` is about, if that is of a kind that makes PullRequests.
pub(crate) fn owner(key: &ObjectKey, about: &About) -> Option<Work> {
    let kinds = [Kind::Pipeline, Kind::PromotionStrategy].into_iter();
    let mut kinds = kinds.filter(|kind| kind.as_str() == about.kind);
    let owner = key.naming(None, &about.name);
    kinds.next().map(|kind| Work::own(kind, owner))
}

/// Writes the status. Only if the API server accepts it, the next task is begun: until then the outcome of
/// the last one is kept.
async fn look(
    context: &Context,
    key: &ObjectKey,
    object: Arc<PullRequest>,
    at: Timestamp,
) -> Result<Outcome, kube::Error> {
    let given = gather(context, key, &object, at);
    let is_over = matches!(given.errand, Errand::Over(_));
    let Looked { report, recent } = pull_request::report(given);
    let act::Report {
        status,
        changed,
        acts,
        wake,
    } = report;
    let mut present = Arc::clone(&object);
    if changed {
        present = status::write(context, object.as_ref(), status).await?;
        news::tell(context, key, &object, &present);
    }
    let desk = &context.at_forges;
    if is_over {
        desk.accepted(key);
        if desk.is_asked(key) {
            context
                .waker
                .wake(Work::own(Kind::PullRequest, key.clone()));
        }
    }
    desk.remember(key, recent);
    for task in acts {
        desk.begin(context, key, Arc::clone(&present), task);
    }
    if context.world.pull_requests.get(key.borrowed()).is_none() {
        // It was deleted meanwhile.
        desk.forget(key);
    }
    Ok(Outcome::Wake(wake))
}

/// Everything that the decision needs, from memory.
fn gather(context: &Context, key: &ObjectKey, object: &Arc<PullRequest>, now: Timestamp) -> Given {
    let desk = &context.at_forges;
    let owner = Found::of(&context.world, key, &object.spec.about);
    let owner = owner.as_ref();
    let (mut recent, errand) = (desk.recent(key), desk.errand(key));
    // A look that was begun before says nothing of it.
    let asked = (errand == Errand::None).then(|| desk.take_asked(key));
    if let Some(asked) = asked.flatten() {
        match asked {
            Ask::Alone => recent.is_asked_for = true,
            Ask::ByList => recent.is_news = true,
        }
        desk.remember(key, recent.clone());
    }
    Given {
        object: Arc::clone(object),
        owner: owner.and_then(|owner| owner.says(object)),
        is_owner_current: owner.is_some_and(|owner| desk.is_current(context, owner)),
        recent,
        errand,
        now,
    }
}
