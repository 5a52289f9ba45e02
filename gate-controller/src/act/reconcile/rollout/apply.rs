//! What follows from the status of a Rollout, once it was accepted: its workloads are written in the name of its
//! account, hooks are called, and the finalizer is added or removed.

use std::sync::Arc;

use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::core::{PartialObjectMeta, Request};
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use sluice_core::delivery::rollout::given::{Name, Pod};
use sluice_core::delivery::rollout::{Act, Write};
use sluice_crds::rollout::marks;
use sluice_crds::{Rollout, RolloutStatus};

use super::account::Account;
use crate::act::reconcile::consumer::Consumer;
use crate::act::reconcile::write::Part;
use crate::act::reconcile::{Context, Reconciled};
use crate::cluster::failure;
use crate::cluster::key::{ObjectKey, Work};

impl Consumer for Rollout {
    const ACTION: &'static str = "Rollout";

    type Act = Act;

    fn is_of_itself(act: &Act) -> bool {
        match act {
            Act::Finalize(_) => true,
            Act::Write(_) | Act::DeletePod(_) | Act::Call(_) => false,
        }
    }

    fn accepted(_: &Context, _: &ObjectKey, _: &Self, _: &RolloutStatus, _: &RolloutStatus) {}

    async fn carry_out(
        context: &Context,
        key: &ObjectKey,
        object: &mut Arc<Self>,
        act: Act,
    ) -> Result<(), kube::Error> {
        match act {
            Act::Finalize(hold) => {
                *object = finalize(context, object, hold).await?;
                // Nobody else tells that it is done.
                context.waker.wake(Work::own(Self::KIND, key.clone()));
                Ok(())
            }
            Act::Write(write) => patch(context, key, object, *write).await,
            Act::DeletePod(pod) => delete(context, key, object, &pod).await,
            Act::Call(calling) => {
                let own = Work::own(Self::KIND, key.clone());
                context.calls.begin(context, &own, *calling);
                Ok(())
            }
        }
    }
}

/// The requests for a workload.
fn requests(key: &ObjectKey, name: &Name) -> Request {
    let (version, plural) = (name.kind.api_version(), name.kind.plural());
    let namespace = &key.namespace;
    Request::new(format!("/apis/{version}/namespaces/{namespace}/{plural}"))
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
    context.workloads.wrote(key, &written);
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

/// Adds the finalizer to the Rollout, or removes it. Returns the Rollout as it is then.
async fn finalize(
    context: &Context,
    object: &Rollout,
    hold: bool,
) -> Result<Arc<Rollout>, kube::Error> {
    let mut finalizers = object.metadata.finalizers.clone().unwrap_or_default();
    finalizers.retain(|it| it != marks::FINALIZER);
    if hold {
        finalizers.push(marks::FINALIZER.to_owned());
    }
    let patch = json!({ "metadata": { "finalizers": finalizers } });
    let writer = context.writer(object, Rollout::MANAGER);
    let written: PartialObjectMeta<Rollout> = writer
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
