//! Carries out what was decided about a gated source: its status, then what follows from it.

use std::sync::Arc;

use kube::Api;
use kube::core::{PartialObjectMeta, Status};
use serde_json::json;
use sluice_core::delivery::gated_source::{self, Act, Report};
use sluice_crds::gated_source::marks;
use sluice_crds::{GatedSource, GatedSourceStatus};

use super::flux::Writer;
use super::{news, stored};
use crate::act::reconcile::write::{self, Part};
use crate::act::reconcile::{Context, Outcome, Reconciled, status};
use crate::cluster::failure;
use crate::cluster::key::ObjectKey;

/// Writes the status onto this version of the gated source, and only if the API server accepts it, does
/// what follows. If it refuses one of these writes, the others go on, and the status reports the refusal.
pub(super) async fn apply(
    context: &Context,
    key: &ObjectKey,
    object: &Arc<GatedSource>,
    report: Report,
) -> Result<Outcome, kube::Error> {
    let Report {
        status,
        changed,
        acts,
        wake,
    } = report;
    let mut present = Arc::clone(object);
    if changed {
        present = write(context, key, object, status).await?;
    }
    let mut refusal = None;
    // A status that was written went onto the newest version.
    let mut is_newest = changed;
    for act in acts {
        if !is_newest && is_of_others(&act) {
            confirm(context, key, &present).await?;
            is_newest = true;
        }
        let what = act.writes().unwrap_or_default();
        match carry_out(context, key, &mut present, act).await {
            Err(error) if failure::is_refusal(&error) => {
                refusal.get_or_insert((what, error));
            }
            done => done?,
        }
    }
    let Some((what, error)) = refusal else {
        return Ok(Outcome::Wake(wake));
    };
    let refused = write::refused(what, &error);
    if let Some(status) = gated_source::refused(&present, &refused, context.clock.now()) {
        write(context, key, &present, status).await?;
    }
    let error = Box::new(error);
    Ok(Outcome::Unfinished { error, wake })
}

/// Whether it writes onto other objects than the gated source itself.
fn is_of_others(act: &Act) -> bool {
    match act {
        Act::Write(_) | Act::Serve { .. } | Act::Suspend { .. } | Act::Delete { .. } => true,
        Act::Fetch { .. } | Act::Retain { .. } | Act::Finalize(_) => false,
    }
}

/// Makes sure that this is the gated source as the API server has it.
///
/// The caches of several kinds do not show the same instant. A replica that has just become leader may
/// know the child that a former leader made for the last admission, but not yet that admission: the child
/// would go back to the one before. The child that is written onto was seen before this request, so the
/// answer has at least the admission that the child was made for.
///
/// # Errors
/// It was replaced by another version (a conflict), or the API server does not answer.
async fn confirm(
    context: &Context,
    key: &ObjectKey,
    object: &GatedSource,
) -> Result<(), kube::Error> {
    let api: Api<GatedSource> = Api::namespaced(context.client.clone(), &key.namespace);
    let newest = api.get_metadata(&key.name).await?;
    if newest.metadata.resource_version == object.metadata.resource_version {
        return Ok(());
    }
    let why = "the cache has an earlier version of the gated source, from which nothing is written";
    let conflict = Status::failure(why, "Conflict").with_code(409);
    Err(kube::Error::Api(conflict.boxed()))
}

async fn carry_out(
    context: &Context,
    key: &ObjectKey,
    present: &mut Arc<GatedSource>,
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
            *present = finalize(context, present, hold).await?;
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

/// Writes the status, and reports what is new in it. Returns the gated source as it is then.
async fn write(
    context: &Context,
    key: &ObjectKey,
    object: &GatedSource,
    status: GatedSourceStatus,
) -> Result<Arc<GatedSource>, kube::Error> {
    let written = status::write(context, object, status).await?;
    news::tell(context, key, object, &written);
    Ok(written)
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
