//! A look at a GitRepositoryAccess.

use std::sync::Arc;

use jiff::Timestamp;
use sluice_core::verdict::condition::{READY, find};
use sluice_crds::GitRepositoryAccess;
use sluice_crds::git_repository_access::AccessReference;

use super::{Context, Outcome, Reconciled};
use crate::cluster::key::{ObjectKey, Work};
use crate::cluster::kind::Kind;
use crate::observe::cache::{Cache, Change};
use crate::observe::world::World;

impl Reconciled for GitRepositoryAccess {
    const KIND: Kind = Kind::GitRepositoryAccess;
    const MANAGER: &'static str = "gate-controller-gitrepositoryaccesses";

    fn cache(world: &World) -> &Cache<Self> {
        &world.accesses
    }

    /// It names Secrets alone, which are not watched.
    fn interests(&self, _: &ObjectKey) -> Vec<Work> {
        Vec::new()
    }

    /// Those who name it wait while it is not ready.
    fn may_matter(change: &Change<'_, Self>) -> bool {
        change.is_respecified() || change.differs(readiness)
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

/// Whether it can be used, and why not.
fn readiness(access: &GitRepositoryAccess) -> Option<(String, String)> {
    let ready = find(&access.status.as_ref()?.conditions, READY)?;
    Some((ready.status.clone(), ready.reason.clone()))
}

/// The access that an object named `key` means.
pub(super) fn named(key: &ObjectKey, access: &AccessReference) -> Work {
    let AccessReference { name, namespace } = access;
    let access = key.naming(namespace.as_deref(), name);
    Work::own(Kind::GitRepositoryAccess, access)
}
