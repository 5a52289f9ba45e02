//! Carries out what was decided about a pipeline: its status, then what follows from it.

use std::sync::Arc;

use sluice_core::delivery::pipeline::Report;
use sluice_crds::Pipeline;

use super::news;
use crate::act::reconcile::{Context, Outcome, status};
use crate::cluster::key::ObjectKey;

/// Writes the status onto this version of the pipeline. Where it admits something, that is the act.
pub(super) async fn apply(
    context: &Context,
    key: &ObjectKey,
    object: &Arc<Pipeline>,
    report: Report,
) -> Result<Outcome, kube::Error> {
    let Report {
        status,
        changed,
        acts: _,
        wake,
    } = report;
    if changed {
        let written = status::write(context, object.as_ref(), status).await?;
        news::tell(context, key, object, &written);
    }
    Ok(Outcome::Wake(wake))
}
