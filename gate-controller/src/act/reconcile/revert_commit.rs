//! A look at a RevertCommit.

use std::sync::Arc;

use jiff::Timestamp;
use sluice_crds::RevertCommit;

use super::{Context, Outcome, Reconciled, git_repository_access};
use crate::cluster::key::{ObjectKey, Work};
use crate::cluster::kind::Kind;
use crate::observe::cache::{Cache, Change};
use crate::observe::world::World;

impl Reconciled for RevertCommit {
    const KIND: Kind = Kind::RevertCommit;
    const MANAGER: &'static str = "gate-controller-revertcommits";

    fn cache(world: &World) -> &Cache<Self> {
        &world.revert_commits
    }

    fn interests(&self, key: &ObjectKey) -> Vec<Work> {
        vec![git_repository_access::named(key, &self.spec.repo_ref)]
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
        _: &Context,
        _: &ObjectKey,
        _: Arc<Self>,
        _: Timestamp,
    ) -> Result<Outcome, kube::Error> {
        Ok(Outcome::Wake(None))
    }
}
