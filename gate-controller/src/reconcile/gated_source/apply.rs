//! Carries out what was decided about a gated source: its status, then what follows from it.

use std::sync::Arc;

use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use sluice_core::gated_source::{Act, Report};
use sluice_crds::gated_source::marks;
use sluice_crds::{GatedSource, GatedSourceStatus};

use super::flux::Writer;
use super::{news, stored};
use crate::key::{ObjectKey, Work};
use crate::reconcile::{Context, status};

/// Who owns the status and the finalizer.
const STATUS_MANAGER: &str = "gate-controller-gatedsources";

/// Writes the status onto this version of the gated source; only if the API server takes it, does
/// what follows.
pub(super) async fn apply(
    context: &Context,
    key: &ObjectKey,
    object: &Arc<GatedSource>,
    report: Report,
) -> Result<(), kube::Error> {
    let Report {
        status,
        changed,
        acts,
        wake: _,
    } = report;
    let mut present = Arc::clone(object);
    if changed {
        present = write(context, key, object, status).await?;
        context
            .telling()
            .tell(&Work::GatedSource(key.clone()), object.as_ref());
        news::tell(context, key, object, &present);
    }
    let writer = Writer { context, key };
    for act in acts {
        match act {
            Act::Write(child) => writer.child(*child).await?,
            Act::Serve { artifact, before } => writer.serve(&artifact, &before).await?,
            Act::Suspend {
                kind,
                suspend,
                before,
            } => {
                writer.suspend(kind, suspend, &before).await?;
            }
            Act::Delete { kind, before } => writer.delete(kind, &before).await?,
            Act::Finalize(hold) => finalize(context, key, &present, hold).await?,
            Act::Fetch { child, url, digest } => {
                stored::fetch(context, &key.namespace, &child, &digest, &url);
            }
            Act::Retain { child, digests } => {
                stored::retain(context, &key.namespace, &child, &digests);
            }
        }
    }
    Ok(())
}

/// Writes the status. Returns the gated source as it is then.
async fn write(
    context: &Context,
    key: &ObjectKey,
    object: &GatedSource,
    status: GatedSourceStatus,
) -> Result<Arc<GatedSource>, kube::Error> {
    let (client, version) = (&context.client, object.metadata.resource_version.as_deref());
    let wrote =
        status::write::<GatedSource, _>(client, key, version, STATUS_MANAGER, &status).await?;
    (0..wrote.requests).for_each(|_| context.wrote("GatedSource"));
    let mut written = object.clone();
    written.status = Some(status);
    written.metadata.resource_version = wrote.version;
    let written = Arc::new(written);
    context.world.gated_sources.put(Arc::clone(&written));
    Ok(written)
}

/// Puts the finalizer onto the gated source, or takes it away.
async fn finalize(
    context: &Context,
    key: &ObjectKey,
    object: &GatedSource,
    hold: bool,
) -> Result<(), kube::Error> {
    let mut finalizers = object.metadata.finalizers.clone().unwrap_or_default();
    finalizers.retain(|it| it != marks::FINALIZER);
    if hold {
        finalizers.push(marks::FINALIZER.to_owned());
    }
    let patch = json!({ "metadata": {
        "resourceVersion": object.metadata.resource_version,
        "finalizers": finalizers,
    }});
    let params = PatchParams {
        field_manager: Some(STATUS_MANAGER.to_owned()),
        ..PatchParams::default()
    };
    let api: Api<GatedSource> = Api::namespaced(context.client.clone(), &key.namespace);
    let written = api
        .patch_metadata(&key.name, &params, &Patch::Merge(&patch))
        .await?;
    context.wrote("GatedSource");
    // One that is going is gone with its last finalizer.
    if object.metadata.deletion_timestamp.is_none() {
        let mut present = object.clone();
        present.metadata.finalizers = written.metadata.finalizers;
        present.metadata.resource_version = written.metadata.resource_version;
        context.world.gated_sources.put(Arc::new(present));
    }
    Ok(())
}
