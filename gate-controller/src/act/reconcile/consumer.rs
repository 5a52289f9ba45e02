//! Consumers of gates, such as a Pipeline: the one order in which their looks do things.
//!
//! What comes in: what the gates have answered, and then what was decided from that. What goes out: the answers
//! as they were recorded, and then the status, and everything that follows from it.
//!
//! What was decided is recorded first, then written into the status, and then done. If it is stopped in between,
//! the rest is done later, from the status alone.

use std::sync::Arc;

use kube::core::{NamespaceResourceScope, PartialObjectMeta, Status};
use kube::{Api, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use sluice_core::delivery::act::{self, Act as _, Report};
use sluice_core::delivery::asked::Asked;
use sluice_crds::Decision;

use super::write::Part;
use super::{Context, Outcome, Reconciled, status, write};
use crate::cluster::failure;
use crate::cluster::key::ObjectKey;

/// A kind of consumer.
pub(super) trait Consumer:
    Reconciled<Status: act::Status + Serialize>
    + Resource<Scope = NamespaceResourceScope>
    + DeserializeOwned
{
    /// What it does, in one word, as events have it.
    const ACTION: &'static str;

    /// What follows from its status.
    type Act: act::Act + Send;

    /// Whether this is done only from the newest version of the consumer, because it changes something else. What
    /// is written onto the consumer itself the API server refuses for any other version.
    fn needs_newest(act: &Self::Act) -> bool {
        act.writes().is_some()
    }

    /// Reports what is new in a status that the API server has accepted, and remembers it. `object` has it.
    fn accepted(
        context: &Context,
        key: &ObjectKey,
        object: &Self,
        before: &Self::Status,
        now: &Self::Status,
    );

    /// Does one of the things that follow. `object` is the consumer as it is now.
    ///
    /// # Errors
    /// The API server refused a write, or did not answer.
    fn carry_out(
        context: &Context,
        key: &ObjectKey,
        object: &mut Arc<Self>,
        act: Self::Act,
    ) -> impl Future<Output = Result<(), kube::Error>> + Send;
}

/// Records a decision, and returns it as it was recorded: a yes that could not be recorded has become a no.
/// `takes_effect`: something is done by it now. Otherwise nothing waits for the record.
pub(super) async fn record(context: &Context, decision: &Decision, takes_effect: bool) -> Decision {
    match takes_effect {
        true => context.decisions.act(decision.clone()).await.decision,
        false => {
            context.decisions.look(decision);
            decision.clone()
        }
    }
}

/// The same for each answer of a look, in their order.
pub(super) async fn record_all<W>(context: &Context, asked: &[Asked<W>]) -> Vec<Decision> {
    let mut recorded = Vec::new();
    for Asked {
        decision,
        takes_effect,
        ..
    } in asked
    {
        recorded.push(record(context, decision, *takes_effect).await);
    }
    recorded
}

/// Writes the status onto this version of the consumer. Where it admits or orders something, that is the act.
/// Only if the API server accepts it, does what follows. If it refuses one of these writes, the others go on,
/// and the status reports the refusal.
pub(super) async fn apply<K: Consumer>(
    context: &Context,
    key: &ObjectKey,
    object: &Arc<K>,
    report: Report<K::Status, K::Act>,
) -> Result<Outcome, kube::Error> {
    let Report {
        status,
        changed,
        acts,
        wake,
    } = report;
    let mut present = Arc::clone(object);
    if changed {
        present = write(context, key, object.as_ref(), status).await?;
    }
    let mut refusal = None;
    // A status that was written went onto the newest version.
    let mut is_newest = changed;
    for act in acts {
        let what = act.writes();
        if !is_newest && K::needs_newest(&act) {
            confirm(context, key, present.as_ref()).await?;
            is_newest = true;
        }
        match K::carry_out(context, key, &mut present, act).await {
            Err(error) if failure::is_refusal(&error) => {
                refusal.get_or_insert((what, error));
            }
            done => done?,
        }
    }
    let Some((what, error)) = refusal else {
        return Ok(Outcome::Wake(wake));
    };
    let refused = write::refused(what.unwrap_or_default(), &error).conditions();
    if let Some(status) = act::with_ready(present.as_ref(), refused, context.clock.now()) {
        write(context, key, present.as_ref(), status).await?;
    }
    let error = Box::new(error);
    Ok(Outcome::Unfinished { error, wake })
}

/// Writes the status, and reports what is new in it. Returns the consumer as it is then.
///
/// # Errors
/// The API server refuses the write, or does not answer.
pub(super) async fn write<K: Consumer>(
    context: &Context,
    key: &ObjectKey,
    object: &K,
    status: K::Status,
) -> Result<Arc<K>, kube::Error> {
    let written = status::write(context, object, status).await?;
    let nothing = K::Status::default();
    let before = object.status().unwrap_or(&nothing);
    if let Some(now) = written.status() {
        K::accepted(context, key, &written, before, now);
    }
    Ok(written)
}

/// Adds a finalizer to the consumer, or removes it. Returns the consumer as it is then.
///
/// # Errors
/// The API server refuses the write, or does not answer.
pub(super) async fn finalize<K: Consumer>(
    context: &Context,
    object: &K,
    finalizer: &str,
    hold: bool,
) -> Result<Arc<K>, kube::Error> {
    let before = object.meta();
    let mut finalizers = before.finalizers.clone().unwrap_or_default();
    finalizers.retain(|it| it != finalizer);
    if hold {
        finalizers.push(finalizer.to_owned());
    }
    let patch = json!({ "metadata": { "finalizers": finalizers } });
    let writer = context.writer(object, K::MANAGER);
    let written: PartialObjectMeta<K> = writer.merge(Part::Metadata, before, patch).await?;
    let mut present = object.clone();
    let metadata = present.meta_mut();
    metadata.finalizers = written.metadata.finalizers;
    metadata.resource_version = written.metadata.resource_version;
    // An object that is being deleted is gone with its last finalizer.
    Ok(match metadata.deletion_timestamp {
        None => context.take_in(present),
        Some(_) => Arc::new(present),
    })
}

/// Makes sure that this is the consumer as the API server has it.
///
/// The caches of several kinds do not show the same instant. A replica that has just become leader may
/// know the child that a former leader made for the last admission, but not yet that admission: the child
/// would go back to the one before. The child that is written onto was seen before this request, so the
/// answer has at least the admission that the child was made for.
///
/// # Errors
/// It was replaced by another version (a conflict), or the API server does not answer.
async fn confirm<K: Consumer>(
    context: &Context,
    key: &ObjectKey,
    object: &K,
) -> Result<(), kube::Error> {
    let api: Api<K> = Api::namespaced(context.client.clone(), &key.namespace);
    let newest = api.get_metadata(&key.name).await?;
    if newest.metadata.resource_version == object.meta().resource_version {
        return Ok(());
    }
    let why = "the cache has an earlier version of the object, from which nothing is written";
    let conflict = Status::failure(why, "Conflict").with_code(409);
    Err(kube::Error::Api(conflict.boxed()))
}
