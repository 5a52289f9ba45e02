//! A look at a CommitStatus.

use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt;
use sluice_crds::CommitStatus;

use super::{Context, Outcome, Reconciled, git_repository_access};
use crate::cluster::key::{ObjectKey, Work};
use crate::cluster::kind::Kind;
use crate::observe::cache::{Cache, Change};
use crate::observe::world::World;

impl Reconciled for CommitStatus {
    const KIND: Kind = Kind::CommitStatus;
    const MANAGER: &'static str = "gate-controller-commitstatuses";

    fn cache(world: &World) -> &Cache<Self> {
        &world.commit_statuses
    }

    fn interests(&self, key: &ObjectKey) -> Vec<Work> {
        vec![git_repository_access::named(key, &self.spec.repo_ref)]
    }

    /// PromotionStrategies read its spec and its labels. Each is interested in all that are in a namespace:
    /// which of them it reads depends on labels and commits.
    fn may_matter(change: &Change<'_, Self>) -> bool {
        change.is_respecified() || change.differs(|it| it.labels().clone())
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
