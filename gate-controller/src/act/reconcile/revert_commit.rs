//! A look at a RevertCommit: it reports what the strategy of its environment says of it, and does nothing else.

use std::sync::Arc;

use jiff::Timestamp;
use sluice_core::delivery::act;
use sluice_core::delivery::revert_commit::report::{Given, report};
use sluice_crds::RevertCommit;

use super::{Context, Outcome, Reconciled, git_repository_access, status};
use crate::cluster::key::{ObjectKey, Work};
use crate::cluster::kind::Kind;
use crate::observe::cache::{Cache, Change, Progress};
use crate::observe::world::World;

#[cfg(test)]
mod tests;

impl Reconciled for RevertCommit {
    const KIND: Kind = Kind::RevertCommit;
    const MANAGER: &'static str = "gate-controller-revertcommits";

    fn cache(world: &World) -> &Cache<Self> {
        &world.revert_commits
    }

    /// Of strategies all that are in its namespace: which of them promote to its branch is in their specs.
    fn interests(&self, key: &ObjectKey) -> Vec<Work> {
        vec![
            git_repository_access::named(key, &self.spec.repo_ref),
            Work::all(Kind::PromotionStrategy, &key.namespace),
        ]
    }

    /// PromotionStrategies hold what it takes back, and promote nothing while it is under way.
    fn may_matter(change: &Change<'_, Self>) -> bool {
        change.is_respecified()
            || change.differs(|it| {
                let status = it.status.as_ref()?;
                Some((status.phase, status.pull_request.clone()))
            })
    }

    async fn look(
        context: &Context,
        key: &ObjectKey,
        object: Arc<Self>,
        at: Timestamp,
    ) -> Result<Outcome, kube::Error> {
        let world = &context.world;
        if world.promotion_strategies.progress() == Progress::Unanswered {
            // What is not known yet wakes it as soon as it is known.
            return Ok(Outcome::Wake(None));
        }
        let access = git_repository_access::named(key, &object.spec.repo_ref);
        let strategies = world.promotion_strategies.select(|it, strategy| {
            it.namespace == key.namespace
                && strategy.metadata.deletion_timestamp.is_none()
                && git_repository_access::named(it, &strategy.spec.repo_ref) == access
        });
        let act::Report {
            status,
            changed,
            acts: _,
            wake,
        } = report(Given {
            object: Arc::clone(&object),
            strategies: strategies.into_iter().map(|(_, it)| it).collect(),
            now: at,
        });
        if changed {
            status::write(context, object.as_ref(), status).await?;
        }
        Ok(Outcome::Wake(wake))
    }
}
