//! Carries out what was decided about a pipeline: its status, then what follows from it.

use std::sync::Arc;

use serde_json::json;
use sluice_core::delivery::pipeline::{self, Act, Errand, Report};
use sluice_crds::pull_request::marks::LABELS;
use sluice_crds::{Pipeline, PipelineStatus};

use super::{admit, news, notify, recall};
use crate::act::reconcile::{Context, Outcome, Reconciled, owned, status, write};
use crate::cluster::failure;
use crate::cluster::key::{ObjectKey, Work};
use crate::cluster::kind::Kind;

/// Writes the status onto this version of the pipeline. Where it admits something, that is the act. Only if
/// the API server accepts it, does what follows: until then outcomes are kept, and nothing is begun. If it
/// refuses one of the writes that follow, the others go on, and the status reports the refusal.
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
    let mut present = Arc::clone(object);
    if changed {
        let awaited = pipeline::awaited(&status);
        // Until there is a run, forges are asked what was promoted before.
        let asks_forges = status.run.is_none();
        present = write(context, key, object, status).await?;
        let work = Work::own(Kind::Pipeline, key.clone());
        context.errands.keep(&work, |errand| match errand {
            Errand::Recall(..) => asks_forges,
            Errand::Try(..) => awaited.contains(errand),
        });
    }
    let mut refusal = None;
    for act in acts {
        let what = what(&act);
        let closing = news::of_closing(&act);
        match carry_out(context, key, &present, act).await {
            Ok(()) => {
                if let Some(item) = closing {
                    news::tell_item(context, key, &present, item);
                }
            }
            Err(error) if failure::is_refusal(&error) => {
                refusal.get_or_insert((what, error));
            }
            Err(error) => return Err(error),
        }
    }
    let Some((what, error)) = refusal else {
        return Ok(Outcome::Wake(wake));
    };
    let refused = write::refused(what, &error);
    if let Some(status) = pipeline::refused(&present, &refused, context.clock.now()) {
        write(context, key, &present, status).await?;
    }
    let error = Box::new(error);
    Ok(Outcome::Unfinished { error, wake })
}

/// Writes the status, and reports what is new in it. Returns the pipeline as it is then.
async fn write(
    context: &Context,
    key: &ObjectKey,
    object: &Pipeline,
    status: PipelineStatus,
) -> Result<Arc<Pipeline>, kube::Error> {
    let written = status::write(context, object, status).await?;
    news::tell(context, key, object, &written);
    Ok(written)
}

/// Which object it writes, in words.
fn what(act: &Act) -> String {
    let name = match act {
        Act::Create(object) => object.metadata.name.as_deref(),
        Act::Change { before, .. } | Act::Belong { before, .. } | Act::Delete(before) => {
            before.metadata.name.as_deref()
        }
        Act::LookAt(_) | Act::Recall(_) | Act::Notify(_) | Act::Admit(_) => None,
    };
    format!("the PullRequest {}", name.unwrap_or_default())
}

async fn carry_out(
    context: &Context,
    key: &ObjectKey,
    object: &Pipeline,
    act: Act,
) -> Result<(), kube::Error> {
    match act {
        Act::Create(child) => owned::create(context, Pipeline::MANAGER, *child).await,
        Act::Change {
            before,
            suspend,
            close,
        } => {
            if (before.spec.suspend, &before.spec.close) == (suspend, &close) {
                return Ok(());
            }
            let patch = json!({ "spec": { "suspend": suspend, "close": close } });
            owned::change(context, Pipeline::MANAGER, &before, patch).await
        }
        Act::Belong {
            before,
            labels,
            mark,
            owners,
        } => {
            let mut metadata = json!({ "labels": labels, "annotations": { LABELS: mark } });
            if let Some(owners) = owners {
                metadata["ownerReferences"] = json!(owners);
            }
            let patch = json!({ "metadata": metadata });
            owned::change(context, Pipeline::MANAGER, &before, patch).await
        }
        Act::Delete(before) => owned::delete(context, Pipeline::MANAGER, &before).await,
        Act::LookAt(name) => {
            let child = key.naming(None, &name);
            context.at_forges.look_now(context, &child);
            Ok(())
        }
        Act::Recall(recall) => {
            recall::begin(context, key, *recall);
            Ok(())
        }
        Act::Notify(notice) => {
            notify::begin(context, key, object, &notice);
            Ok(())
        }
        Act::Admit(admission) => {
            admit::begin(context, key, object, &admission);
            Ok(())
        }
    }
}
