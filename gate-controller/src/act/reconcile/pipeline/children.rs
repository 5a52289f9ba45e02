//! The PullRequests of a pipeline: those that are there, and what is written to them.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::core::Status;
use kube::core::object::HasSpec;
use serde_json::json;
use sluice_core::delivery::pipeline;
use sluice_crds::pull_request::marks::LABELS;
use sluice_crds::{Pipeline, PullRequest};

use crate::act::reconcile::write::{Part, Writer};
use crate::act::reconcile::{Context, Reconciled};
use crate::cluster::failure;
use crate::cluster::key::{ObjectKey, Work};
use crate::cluster::kind::Kind;
use crate::observe::world::World;

/// Those that name this pipeline.
pub(super) fn of(world: &World, key: &ObjectKey) -> Vec<Arc<PullRequest>> {
    let interested = world.interested(&Work::own(Kind::Pipeline, key.clone()));
    let own = interested
        .into_iter()
        .filter(|work| work.kind == Kind::PullRequest);
    let seen = own.filter_map(|work| world.pull_requests.get(work.key.borrowed()));
    seen.filter_map(|seen| seen.object().cloned()).collect()
}

/// Creates one. If there is one of its name, it is this one: the watch brings it. One that the watch has
/// brought, and that is another, was made by somebody else: it is told, and nothing is promoted by it.
pub(super) async fn create(context: &Context, object: PullRequest) -> Result<(), kube::Error> {
    let made = serde_json::to_value(&object).map_err(kube::Error::SerdeError)?;
    match writer(context, &object).create::<PullRequest>(made).await {
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

/// Changes what may change in one.
pub(super) async fn change(
    context: &Context,
    before: &PullRequest,
    suspend: bool,
    close: Option<String>,
) -> Result<(), kube::Error> {
    if (before.spec().suspend, &before.spec().close) == (suspend, &close) {
        return Ok(());
    }
    let patch = json!({ "spec": { "suspend": suspend, "close": close } });
    let writer = writer(context, before);
    let changed = writer.merge(Part::Whole, &before.metadata, patch).await?;
    take_in(context, changed);
    Ok(())
}

/// Gives one these labels, or takes them away, and gives it these owners, if it gets any.
pub(super) async fn belong(
    context: &Context,
    before: &PullRequest,
    (labels, mark): (&BTreeMap<String, Option<String>>, Option<String>),
    owners: Option<Vec<OwnerReference>>,
) -> Result<(), kube::Error> {
    let mut metadata = json!({ "labels": labels, "annotations": { LABELS: mark } });
    if let Some(owners) = owners {
        metadata["ownerReferences"] = json!(owners);
    }
    let patch = json!({ "metadata": metadata });
    let writer = writer(context, before);
    let changed = writer.merge(Part::Whole, &before.metadata, patch).await?;
    take_in(context, changed);
    Ok(())
}

/// Deletes this one.
pub(super) async fn delete(context: &Context, before: &PullRequest) -> Result<(), kube::Error> {
    writer(context, before).delete(&before.metadata).await
}

fn writer<'c>(context: &'c Context, object: &PullRequest) -> Writer<'c> {
    context.writer(object, Pipeline::MANAGER)
}

/// It is known at once, ahead of the watch, which then brings nothing new: it is looked at now.
fn take_in(context: &Context, object: PullRequest) {
    let key = ObjectKey::of(&object);
    let work = Work::own(Kind::PullRequest, key.clone());
    context.world.note(&work, object.interests(&key));
    context.world.pull_requests.put(Arc::new(object));
    context.waker.wake(work);
}
