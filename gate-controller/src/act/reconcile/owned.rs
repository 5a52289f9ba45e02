//! The PullRequests of an owner, such as a Pipeline: those that are there, and what is written to them.
//!
//! `manager`: the field manager of the owner, who writes it.

use std::sync::Arc;

use kube::core::Status;
use serde_json::Value;
use sluice_core::delivery::pipeline;
use sluice_crds::PullRequest;

use super::write::Part;
use super::{Context, Reconciled};
use crate::cluster::failure;
use crate::cluster::key::{ObjectKey, Work};
use crate::cluster::kind::Kind;
use crate::observe::world::World;

/// Those that name this owner.
pub(super) fn of(world: &World, owner: &Work) -> Vec<Arc<PullRequest>> {
    let interested = world.interested(owner);
    let own = interested
        .into_iter()
        .filter(|work| work.kind == Kind::PullRequest);
    let seen = own.filter_map(|work| world.pull_requests.get(work.key.borrowed()));
    seen.filter_map(|seen| seen.object().cloned()).collect()
}

/// Creates one. If there is one of its name, it is this one: the watch brings it. One that the watch has
/// brought, and that is another, was made by somebody else: it is told, and nothing is promoted by it.
pub(super) async fn create(
    context: &Context,
    manager: &'static str,
    object: PullRequest,
) -> Result<(), kube::Error> {
    let made = serde_json::to_value(&object).map_err(kube::Error::SerdeError)?;
    match context
        .writer(&object, manager)
        .create::<PullRequest>(made)
        .await
    {
        Ok(created) => take_in(context, created),
        Err(error) if failure::is_overtaken(&error) => {
            let key = ObjectKey::of(&object);
            let seen = context.world.pull_requests.get(key.borrowed());
            let seen = seen.and_then(|seen| seen.object().cloned());
            if seen.is_some_and(|seen| !pipeline::is_same(&seen, &object)) {
                return Err(in_the_way());
            }
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Another object has the name. It is a refusal: it stays until somebody deletes that.
fn in_the_way() -> kube::Error {
    let message = "there is one of this name that was made by somebody else; delete it, and the controller \
                   makes its own";
    kube::Error::Api(Status::failure(message, "Invalid").with_code(422).boxed())
}

/// Changes one by a merge patch.
pub(super) async fn change(
    context: &Context,
    manager: &'static str,
    before: &PullRequest,
    patch: Value,
) -> Result<(), kube::Error> {
    let writer = context.writer(before, manager);
    let changed = writer.merge(Part::Whole, &before.metadata, patch).await?;
    take_in(context, changed);
    Ok(())
}

/// Deletes this one.
pub(super) async fn delete(
    context: &Context,
    manager: &'static str,
    before: &PullRequest,
) -> Result<(), kube::Error> {
    let writer = context.writer(before, manager);
    writer.delete(&before.metadata).await
}

/// It is known at once, ahead of the watch, which then brings nothing new: it is looked at now.
fn take_in(context: &Context, object: PullRequest) {
    let key = ObjectKey::of(&object);
    let work = Work::own(Kind::PullRequest, key.clone());
    context.world.note(&work, object.interests(&key));
    context.world.pull_requests.put(Arc::new(object));
    context.waker.wake(work);
}

#[cfg(test)]
mod tests;
