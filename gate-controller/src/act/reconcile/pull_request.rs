//! A look at a pull request: what has to be done at its forge, as an errand, and what is reported of it.

use std::sync::Arc;

use jiff::Timestamp;
use sluice_core::delivery::pipeline;
use sluice_crds::PullRequest;

use super::{Context, Outcome, Reconciled};
use crate::cluster::key::{ObjectKey, Work};
use crate::cluster::kind::Kind;
use crate::observe::cache::{Cache, Change};
use crate::observe::world::World;

impl Reconciled for PullRequest {
    const KIND: Kind = Kind::PullRequest;
    const MANAGER: &'static str = "gate-controller-pullrequests";

    fn cache(world: &World) -> &Cache<Self> {
        &world.pull_requests
    }

    /// Its owner, whose status says whether it may be merged.
    fn interests(&self, key: &ObjectKey) -> Vec<Work> {
        let about = &self.spec.about;
        let is_ours = about.kind == pipeline::KIND;
        let owner = is_ours.then(|| Work::own(Kind::Pipeline, key.naming(None, &about.name)));
        owner.into_iter().collect()
    }

    /// Nothing is decided by it but what its owner records, which the watch wakes.
    fn may_matter(_: &Change<'_, Self>) -> bool {
        false
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
