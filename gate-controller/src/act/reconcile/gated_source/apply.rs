//! What follows from the status of a gated source, once it was accepted.

use std::sync::Arc;

use sluice_core::delivery::gated_source::Act;
use sluice_crds::gated_source::marks;
use sluice_crds::{GatedSource, GatedSourceStatus};

use super::flux::Writer;
use super::{news, stored};
use crate::act::reconcile::Context;
use crate::act::reconcile::consumer::{self, Consumer};
use crate::cluster::key::ObjectKey;

impl Consumer for GatedSource {
    const ACTION: &'static str = "Admit";

    type Act = Act;

    fn needs_newest(act: &Act) -> bool {
        match act {
            Act::Write(_) | Act::Serve { .. } | Act::Suspend { .. } | Act::Delete { .. } => true,
            Act::Finalize(_) | Act::Fetch { .. } | Act::Retain { .. } => false,
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
                let written = consumer::finalize(context, object.as_ref(), marks::FINALIZER, hold);
                *object = written.await?;
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
