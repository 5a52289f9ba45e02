//! The one way to write to the API server.
//!
//! What comes in: which object, what to make of it, and what it was when that was decided. What goes out:
//! one request, which the API server refuses onto any other version of the object. It is sent only while
//! this replica leads, and is counted. What was written is in the caches at once, ahead of the watch, so
//! that a second look does not write the same again.

use std::sync::Arc;

use http::Request;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::request;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Value, json};
use sluice_core::delivery::act::Refused;

use super::{Context, Reconciled};
use crate::cluster::failure;
use crate::cluster::key::{Cluster, ObjectKey, Work};
use crate::observe::cache::{Change, Seen};
use crate::tell::counters::KindLabels;

/// Which part of an object is written and returned.
#[derive(Clone, Copy, Debug)]
pub(super) enum Part {
    Whole,
    Metadata,
    Status,
}

/// Writes one object.
pub(super) struct Writer<'a> {
    pub(super) context: &'a Context,
    pub(super) work: Work,
    /// Who owns what is written.
    pub(super) manager: &'static str,
}

impl Writer<'_> {
    /// Creates it.
    pub(super) async fn create<A: DeserializeOwned>(
        &self,
        mut object: Value,
    ) -> Result<A, kube::Error> {
        self.name(&mut object);
        object["metadata"]["namespace"] = (*self.work.key.namespace).into();
        let params = PostParams {
            field_manager: Some(self.manager.to_owned()),
            ..PostParams::default()
        };
        let body = serde_json::to_vec(&object).map_err(kube::Error::SerdeError)?;
        self.send(self.requests().create(&params, body)).await
    }

    /// Changes what a merge patch (RFC 7396) names. `before` is what it was decided from.
    pub(super) async fn merge<A: DeserializeOwned>(
        &self,
        part: Part,
        before: &ObjectMeta,
        mut patch: Value,
    ) -> Result<A, kube::Error> {
        patch["metadata"]["resourceVersion"] = json!(before.resource_version);
        let params = PatchParams {
            field_manager: Some(self.manager.to_owned()),
            ..PatchParams::default()
        };
        self.patch(part, &params, &Patch::Merge(patch)).await
    }

    /// Sets these fields, and owns them (server-side apply). `before` is what that was decided from.
    /// Without its uid, an object that is gone would be created.
    pub(super) async fn apply<A: DeserializeOwned>(
        &self,
        part: Part,
        before: &ObjectMeta,
        mut fields: Value,
    ) -> Result<A, kube::Error> {
        self.name(&mut fields);
        let metadata = &mut fields["metadata"];
        metadata["uid"] = json!(before.uid);
        metadata["resourceVersion"] = json!(before.resource_version);
        let force = PatchParams::apply(self.manager).force();
        self.patch(part, &force, &Patch::Apply(fields)).await
    }

    /// Deletes it: this version, and no other object of its name. The watch brings the result.
    pub(super) async fn delete(&self, before: &ObjectMeta) -> Result<(), kube::Error> {
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: before.uid.clone(),
                resource_version: before.resource_version.clone(),
            }),
            ..DeleteParams::default()
        };
        let request = self.requests().delete(&self.work.key.name, &params);
        match self.send::<IgnoredAny>(request).await {
            Err(error) if !failure::is_gone(&error) => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    fn name(&self, object: &mut Value) {
        object["apiVersion"] = self.work.kind.api_version().into();
        object["kind"] = self.work.kind.as_str().into();
        object["metadata"]["name"] = (*self.work.key.name).into();
    }

    async fn patch<A: DeserializeOwned>(
        &self,
        part: Part,
        params: &PatchParams,
        patch: &Patch<Value>,
    ) -> Result<A, kube::Error> {
        let (requests, name) = (self.requests(), &*self.work.key.name);
        let request = match part {
            Part::Whole => requests.patch(name, params, patch),
            Part::Metadata => requests.patch_metadata(name, params, patch),
            Part::Status => requests.patch_subresource("status", name, params, patch),
        };
        self.send(request).await
    }

    fn requests(&self) -> kube::core::Request {
        kube::core::Request::new(self.work.path())
    }

    async fn send<A: DeserializeOwned>(
        &self,
        request: Result<Request<Vec<u8>>, request::Error>,
    ) -> Result<A, kube::Error> {
        let request = request.map_err(kube::Error::BuildRequest)?;
        let refused = |why: String| Err(kube::Error::Service(why.into()));
        if let Cluster::Named(name) = &self.work.cluster {
            return refused(format!("nothing is written to the cluster {name}"));
        }
        if self.context.leadership.left().is_none() {
            return refused("this replica does not lead any more".to_owned());
        }
        let answer = self.context.client.request(request).await?;
        let kind = self.work.kind.as_str();
        let writes = &self.context.counters.writes;
        writes.get_or_create(&KindLabels { kind }).inc();
        Ok(answer)
    }
}

/// A write that the API server has refused, as a status says it.
pub(super) fn refused(what: String, error: &kube::Error) -> Refused {
    let (code, message) = match error {
        kube::Error::Api(status) => (status.code, status.message.clone()),
        other => (0, other.to_string()),
    };
    Refused {
        what,
        code,
        message,
    }
}

impl Context {
    /// Writes an object of ours.
    pub(super) fn writer<K: Reconciled>(&self, object: &K, manager: &'static str) -> Writer<'_> {
        Writer {
            context: self,
            work: Work::own(K::KIND, ObjectKey::of(object)),
            manager,
        }
    }

    /// Takes in an object of ours as it was written, and wakes those that it concerns.
    pub(super) fn take_in<K: Reconciled>(&self, written: K) -> Arc<K> {
        let written = Arc::new(written);
        let before = K::cache(&self.world).renew(Arc::clone(&written));
        if let Some(before) = before {
            let key = ObjectKey::of(written.as_ref());
            let change = Change {
                key: &key,
                before: Some(&before),
                now: Some(&Seen::Object(Arc::clone(&written))),
            };
            if K::may_matter(&change) {
                self.waker.concerned(&Work::own(K::KIND, key));
            }
        }
        written
    }
}
