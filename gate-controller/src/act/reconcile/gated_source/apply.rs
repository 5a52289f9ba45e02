//! What follows from the status of a gated source, once it was accepted.

use std::sync::Arc;

use kube::core::PartialObjectMeta;
use serde_json::json;
use sluice_core::delivery::gated_source::Act;
use sluice_crds::gated_source::marks;
use sluice_crds::{GatedSource, GatedSourceStatus};

use super::flux::Writer;
use super::{news, stored};
use crate::act::reconcile::consumer::Consumer;
use crate::act::reconcile::write::Part;
use crate::act::reconcile::{Context, Reconciled};
use crate::cluster::key::ObjectKey;

impl Consumer for GatedSource {
    const ACTION: &'static str = "Admit";

    type Act = Act;

    fn is_of_itself(act: &Act) -> bool {
        match act {
            Act::Finalize(_) => true,
            Act::Write(_) | Act::Serve { .. } | Act::Suspend { .. } | Act::Delete { .. } => false,
            Act::Fetch { .. } | Act::Retain { .. } => false,
        }
    }

    fn accepted(
        context: &Context,
        key: &ObjectKey,
        object: &Self,
        before: &GatedSourceStatus,
        now: &GatedSourceStatus,
    ) {
        news::tell(context, key, object, before, now);
    }

    async fn carry_out(
        context: &Context,
        key: &ObjectKey,
        object: &mut Arc<Self>,
        act: Act,
    ) -> Result<(), kube::Error> {
        let writer = Writer { context, key };
        match act {
            Act::Write(child) => writer.child(*child).await,
            Act::Serve { artifact, before } => writer.serve(&artifact, &before).await,
            Act::Suspend {
                kind,
                holders,
                before,
            } => writer.suspend(kind, &holders, &before).await,
            Act::Delete { kind, before } => writer.delete(kind, &before).await,
            Act::Finalize(hold) => {
                *object = finalize(context, object, hold).await?;
                Ok(())
            }
            Act::Fetch { child, url, digest } => {
                stored::fetch(context, &key.namespace, &child, &digest, &url);
                Ok(())
            }
            Act::Retain { child, digests } => {
                stored::retain(context, &key.namespace, &child, &digests);
                Ok(())
            }
        }
    }
}

/// Adds the finalizer to the gated source, or removes it. Returns the gated source as it is then.
async fn finalize(
    context: &Context,
    object: &GatedSource,
    hold: bool,
) -> Result<Arc<GatedSource>, kube::Error> {
    let mut finalizers = object.metadata.finalizers.clone().unwrap_or_default();
    finalizers.retain(|it| it != marks::FINALIZER);
    if hold {
        finalizers.push(marks::FINALIZER.to_owned());
    }
    let patch = json!({ "metadata": { "finalizers": finalizers } });
    let writer = context.writer(object, GatedSource::MANAGER);
    let written: PartialObjectMeta<GatedSource> = writer
        .merge(Part::Metadata, &object.metadata, patch)
        .await?;
    let mut present = object.clone();
    present.metadata.finalizers = written.metadata.finalizers;
    present.metadata.resource_version = written.metadata.resource_version;
    // An object that is being deleted is gone with its last finalizer.
    Ok(match object.metadata.deletion_timestamp {
        None => context.take_in(present),
        Some(_) => Arc::new(present),
    })
}
