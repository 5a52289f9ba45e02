//! Carries out what was decided about a pipeline: its status, then what follows from it.

use std::sync::Arc;

use sluice_core::delivery::pipeline::{self, Act, Report};
use sluice_crds::Pipeline;

use super::{admit, news, notify};
use crate::act::reconcile::{Context, Outcome, status};
use crate::cluster::key::{ObjectKey, Work};
use crate::cluster::kind::Kind;

/// Writes the status onto this version of the pipeline. Where it admits something, that is the act. Only if
/// the API server accepts it, does what follows: until then outcomes are kept, and nothing is begun.
pub(super) async fn apply(
    context: &Context,
    key: &ObjectKey,
    object: &Arc<Pipeline>,
    report: Report,
) -> Result<Outcome, kube::Error> {
    let Report {
        status,
        changed,
        acts,
        wake,
    } = report;
    if changed {
        let awaited = pipeline::awaited(&status);
        let written = status::write(context, object.as_ref(), status).await?;
        news::tell(context, key, object, &written);
        let work = Work::own(Kind::Pipeline, key.clone());
        context
            .errands
            .keep(&work, |errand| awaited.contains(errand));
    }
    for act in acts {
        match act {
            Act::Notify(notice) => notify::begin(context, key, object, &notice),
            Act::Admit(admission) => admit::begin(context, key, object, &admission),
            // `available` refuses the strategy that these belong to.
            Act::Create(_)
            | Act::Change { .. }
            | Act::Delete(_)
            | Act::LookAt(_)
            | Act::Recall(_) => {}
        }
    }
    Ok(Outcome::Wake(wake))
}
