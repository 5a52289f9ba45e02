//! What follows from the status of a Rollout, once it was accepted: its workloads are written in the name of its
//! account, hooks are called, and the finalizer is added or removed.

use std::sync::Arc;

use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::core::Request;
use serde::de::IgnoredAny;
use serde_json::Value;
use sluice_core::delivery::rollout::given::Pod;
use sluice_core::delivery::rollout::{Act, Write};
use sluice_crds::rollout::marks;
use sluice_crds::{Rollout, RolloutStatus};

use super::account::Account;
use super::requests;
use crate::act::reconcile::consumer::{self, Consumer};
use crate::act::reconcile::{Context, Reconciled, news};
use crate::cluster::failure;
use crate::cluster::key::{ObjectKey, Work};
use crate::observe::workloads::place;

impl Consumer for Rollout {
    const ACTION: &'static str = "Rollout";

    type Act = Act;

    fn needs_newest(act: &Act) -> bool {
        match act {
            Act::Finalize(_) => false,
            Act::Write(_) | Act::DeletePod(_) | Act::Call(_) => true,
        }
    }

    fn accepted(
        context: &Context,
        key: &ObjectKey,
        object: &Self,
        before: &RolloutStatus,
        now: &RolloutStatus,
    ) {
        if let Some(item) = super::news::of(before, now) {
            news::tell(context, key, object, item);
        }
    }

    async fn carry_out(
        context: &Context,
        key: &ObjectKey,
        object: &mut Arc<Self>,
        act: Act,
    ) -> Result<(), kube::Error> {
        match act {
            Act::Finalize(hold) => {
                let written = consumer::finalize(context, object.as_ref(), marks::FINALIZER, hold);
                *object = written.await?;
                // Nobody else tells that it is done.
                context.waker.wake(Work::own(Self::KIND, key.clone()));
                Ok(())
            }
            Act::Write(write) => patch(context, key, object, *write).await,
            Act::DeletePod(pod) => delete(context, key, object, &pod).await,
            Act::Call(calling) => {
                let own = Work::own(Self::KIND, key.clone());
                context.calls.begin(context, object, &own, *calling);
                Ok(())
            }
        }
    }
}

/// Writes to a workload, onto the version that was seen. What the API server answers is remembered, so that
/// nothing is decided from what is older.
async fn patch(
    context: &Context,
    key: &ObjectKey,
    object: &Rollout,
    write: Write,
) -> Result<(), kube::Error> {
    let Write {
        what: _,
        name,
        patch,
    } = write;
    let params = PatchParams {
        field_manager: Some(Rollout::MANAGER.to_owned()),
        ..PatchParams::default()
    };
    let request = requests(key, &name).patch(&name.name, &params, &Patch::Merge(patch));
    let account = Account::of(context, key, object);
    let written: Value = account.send(name.kind.as_str(), request).await?;
    let place = place(&key.namespace, &name);
    context.workloads.wrote(key, &place, &written);
    Ok(())
}

/// Deletes this pod, and no other of its name.
async fn delete(
    context: &Context,
    key: &ObjectKey,
    object: &Rollout,
    pod: &Pod,
) -> Result<(), kube::Error> {
    let params = DeleteParams {
        preconditions: Some(Preconditions {
            uid: Some(pod.uid.clone()),
            resource_version: None,
        }),
        ..DeleteParams::default()
    };
    let pods = Request::new(format!("/api/v1/namespaces/{}/pods", key.namespace));
    let request = pods.delete(&pod.name, &params);
    let account = Account::of(context, key, object);
    match account.send::<IgnoredAny>("Pod", request).await {
        Err(error) if !failure::is_gone(&error) => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
}
