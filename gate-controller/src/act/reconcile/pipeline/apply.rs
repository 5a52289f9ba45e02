//! What follows from the status of a pipeline, once it was accepted.

use std::sync::Arc;

use serde_json::json;
use sluice_core::delivery::pipeline::{self, Act, Errand};
use sluice_crds::pull_request::marks::LABELS;
use sluice_crds::{Pipeline, PipelineStatus};

use super::{admit, news, notify, recall};
use crate::act::reconcile::consumer::Consumer;
use crate::act::reconcile::news::tell;
use crate::act::reconcile::{Context, Reconciled, owned};
use crate::cluster::key::{ObjectKey, Work};
use crate::cluster::kind::Kind;

impl Consumer for Pipeline {
    const ACTION: &'static str = "Promote";

    type Act = Act;

    /// Outcomes that it does not wait for any more are forgotten: not before, so that none is lost.
    fn accepted(
        context: &Context,
        key: &ObjectKey,
        object: &Self,
        before: &PipelineStatus,
        now: &PipelineStatus,
    ) {
        news::tell(context, key, object, before, now);
        let awaited = pipeline::awaited(now);
        let work = Work::own(Kind::Pipeline, key.clone());
        context.errands.keep(&work, |errand| match errand {
            // Until there is a run, forges are asked what was promoted before.
            Errand::Recall(..) => now.run.is_none(),
            Errand::Try(..) => awaited.contains(errand),
        });
    }

    async fn carry_out(
        context: &Context,
        key: &ObjectKey,
        object: &mut Arc<Self>,
        act: Act,
    ) -> Result<(), kube::Error> {
        let closing = news::of_closing(&act);
        carry_out(context, key, object, act).await?;
        if let Some(item) = closing {
            tell(context, key, object.as_ref(), item);
        }
        Ok(())
    }
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
