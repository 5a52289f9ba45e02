//! A look at a CommitStatus: its forge is told what was found out, as an errand, and what is reported of that.
//!
//! To tell the same twice does no harm. So the status is written after the errand, whose outcome is kept until
//! the API server has accepted it.

use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt;
use sluice_core::delivery::act;
use sluice_core::delivery::commit_status::is_same_name;
use sluice_core::delivery::commit_status::report::{self, Errand, Given, Refusal};
use sluice_crds::CommitStatus;

use super::promotion_strategy::access::may_use;
use super::promotion_strategy::rivals;
use super::{Context, Outcome, Reconciled, git_repository_access, status};
use crate::act::forges::Located;
use crate::cluster::key::{ObjectKey, Work};
use crate::cluster::kind::Kind;
use crate::observe::cache::{Cache, Change, Progress};
use crate::observe::repositories::Repositories;
use crate::observe::world::World;

mod news;
pub(crate) mod postings;
#[cfg(test)]
mod tests;

impl Reconciled for CommitStatus {
    const KIND: Kind = Kind::CommitStatus;
    const MANAGER: &'static str = "gate-controller-commitstatuses";

    fn cache(world: &World) -> &Cache<Self> {
        &world.commit_statuses
    }

    /// The watch of strategies wakes it, too, when the names change that are reserved in its repository.
    fn interests(&self, key: &ObjectKey) -> Vec<Work> {
        vec![git_repository_access::named(key, &self.spec.repo_ref)]
    }

    /// PromotionStrategies read its spec and its labels. Each is interested in all that are in a namespace:
    /// which of them it reads depends on labels and commits.
    fn may_matter(change: &Change<'_, Self>) -> bool {
        change.is_respecified() || change.differs(|it| it.labels().clone())
    }

    async fn look(
        context: &Context,
        key: &ObjectKey,
        object: Arc<Self>,
        at: Timestamp,
    ) -> Result<Outcome, kube::Error> {
        let world = &context.world;
        let known = [
            world.accesses.progress(),
            world.promotion_strategies.progress(),
        ];
        match known.contains(&Progress::Unanswered) {
            // What is not known yet wakes it as soon as it is known.
            true => Ok(Outcome::Wake(None)),
            false => look(context, key, object, at).await,
        }
    }
}

async fn look(
    context: &Context,
    key: &ObjectKey,
    object: Arc<CommitStatus>,
    at: Timestamp,
) -> Result<Outcome, kube::Error> {
    let (world, desk) = (&context.world, &context.postings);
    let own = Work::own(Kind::CommitStatus, key.clone());
    let errand = desk.errand(&own);
    let is_over = matches!(errand, Errand::Over(_));
    let act::Report {
        status,
        changed,
        acts,
        wake,
    } = report::report(Given {
        refusal: refusal(world, &context.repositories, key, &object),
        errand,
        now: world.now(at),
        object: Arc::clone(&object),
    });
    if changed {
        let written = status::write(context, object.as_ref(), status).await?;
        news::tell(context, key, &object, &written);
    }
    if is_over {
        desk.accepted(&own);
    }
    for task in acts {
        desk.begin(context, &own, &object.spec.repo_ref, task);
    }
    if world.commit_statuses.get(key.borrowed()).is_none() {
        // It was deleted meanwhile.
        desk.forget(&own);
    }
    Ok(Outcome::Wake(wake))
}

/// Why the forge may not be told, as this process knows it now.
fn refusal(
    world: &World,
    repositories: &Repositories,
    key: &ObjectKey,
    object: &CommitStatus,
) -> Option<Refusal> {
    let access = Located::to_tell(world, &key.namespace, &object.spec.repo_ref);
    let access = access.map(|_| ()).map_err(|failure| failure.why);
    let reserved_by = reserved_by(world, repositories, key, object);
    report::refusal(object, reserved_by, access)
}

/// The strategy of the same repository that has its name as its statusName, whichever access it names. It has to
/// be one that may promote there; and one with another access has to have read the repository: otherwise anybody
/// could reserve names there.
fn reserved_by(
    world: &World,
    repositories: &Repositories,
    key: &ObjectKey,
    object: &CommitStatus,
) -> Option<String> {
    let own = git_repository_access::named(key, &object.spec.repo_ref);
    let mut found = rivals::of_repository(world, &own.key);
    found.retain(|(it, strategy)| {
        let access = git_repository_access::named(it, &strategy.spec.repo_ref);
        is_same_name(&strategy.spec.status_name, &object.spec.name)
            && may_use(world, it, strategy)
            && (access == own || rivals::has_read(world, repositories, it, strategy))
    });
    let (own, others): (Vec<_>, Vec<_>) = found
        .into_iter()
        .map(|(it, _)| it)
        .partition(|it| it.namespace == key.namespace);
    match own.into_iter().min() {
        Some(own) => Some(format!("the PromotionStrategy {}", own.name)),
        None if others.is_empty() => None,
        // Who reads this may not read there.
        None => Some("a PromotionStrategy of another namespace".to_owned()),
    }
}
