//! Requests for Flux's objects. Each goes onto the version that it was decided from; the answer of the
//! API server is in the caches at once.

use std::collections::BTreeMap;

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use serde_json::{Map, Value, json};
use sluice_core::delivery::gated_source::Child;
use sluice_core::verdict::condition::{READY, find_true};
use sluice_crds::flux::{Artifact, FluxKind, FluxObject};
use sluice_crds::gated_source::{SourceKind, marks};

use super::super::patch;
use crate::act::reconcile::Context;
use crate::act::reconcile::write::{self, Part};
use crate::cluster::key::{ObjectKey, Work};
use crate::observe::cache::Change;

/// Who owns what is written onto Flux's objects.
const MANAGER: &str = "gate-controller-gatedsources";

/// Writes on behalf of a gated source.
pub(super) struct Writer<'a> {
    pub(super) context: &'a Context,
    pub(super) key: &'a ObjectKey,
}

impl Writer<'_> {
    /// Makes a child, or makes it what it has to be.
    pub(super) async fn child(&self, child: Child) -> Result<(), kube::Error> {
        let Child {
            kind,
            name,
            spec,
            annotations,
            labels,
            before,
        } = child;
        let Some(before) = before else {
            let labels: BTreeMap<String, String> = (labels.into_iter())
                .filter_map(|(name, value)| Some((name, value?)))
                .collect();
            let metadata = json!({ "annotations": annotations, "labels": labels });
            return self.create(kind, &name, metadata, spec).await;
        };
        let (mut all, mut labelled) = (before.annotations().clone(), before.labels().clone());
        all.extend(annotations);
        for (name, value) in labels {
            match value {
                Some(value) => drop(labelled.insert(name, value)),
                None => drop(labelled.remove(&name)),
            }
        }
        let metadata =
            |annotations: &_, labels: &_| json!({"annotations": annotations, "labels": labels});
        let is = document(
            metadata(before.annotations(), before.labels()),
            before.spec.clone(),
        );
        let wanted = document(metadata(&all, &labelled), spec);
        match patch::between(&is, &wanted) {
            Some(patch) => self.patch(kind, &before, patch).await,
            None => Ok(()),
        }
    }

    async fn create(
        &self,
        kind: FluxKind,
        name: &str,
        metadata: Value,
        spec: Map<String, Value>,
    ) -> Result<(), kube::Error> {
        let object = json!({ "metadata": metadata, "spec": spec });
        let created = self.of(kind, name).create(object).await?;
        self.wrote(kind, created);
        Ok(())
    }

    /// Suspends a source in the name of these gated sources; if there are none, resumes it.
    pub(super) async fn suspend(
        &self,
        kind: SourceKind,
        holders: &BTreeSet<String>,
        before: &FluxObject,
    ) -> Result<(), kube::Error> {
        let (mark, suspend) = match holders.is_empty() {
            true => (Value::Null, Value::Null),
            false => {
                let names: Vec<&str> = holders.iter().map(String::as_str).collect();
                (Value::from(names.join(",")), Value::Bool(true))
            }
        };
        let patch = json!({
            "metadata": { "annotations": { (marks::SUSPENDED_BY): mark } },
            "spec": { "suspend": suspend },
        });
        self.patch(FluxKind::Source(kind), before, patch).await
    }

    /// Writes into the status of an ExternalArtifact what it serves.
    pub(super) async fn serve(
        &self,
        artifact: &Artifact,
        before: &FluxObject,
    ) -> Result<(), kube::Error> {
        let kind = FluxKind::ExternalArtifact;
        let ready = find_true(&before.status.conditions, READY);
        let since = ready.map(|ready| ready.last_transition_time.clone());
        // Written as a whole: what others have put into its metadata is removed.
        let fields = |artifact: Option<&Artifact>| match serde_json::to_value(artifact) {
            Ok(Value::Object(fields)) => Ok(fields),
            Ok(_) => Ok(Map::new()),
            Err(error) => Err(kube::Error::SerdeError(error)),
        };
        let is = fields(before.status.artifact.as_ref())?;
        let artifact_patch = patch::between(&is, &fields(Some(artifact))?);
        let patch = json!({
            "status": {
                "artifact": artifact_patch.unwrap_or_else(|| json!({})),
                "conditions": [{
                    "type": READY,
                    "status": "True",
                    "reason": "Succeeded",
                    "message": format!("stored artifact for revision '{}'", artifact.revision),
                    "observedGeneration": before.metadata.generation,
                    "lastTransitionTime": since.unwrap_or_else(|| Time(self.context.clock.now())),
                }],
            },
        });
        let writer = self.of(kind, &before.name_any());
        let written = writer.merge(Part::Status, &before.metadata, patch).await?;
        self.wrote(kind, written);
        Ok(())
    }

    /// Deletes a child: this one, and no other of its name. A child that is being deleted needs nothing
    /// more.
    pub(super) async fn delete(
        &self,
        kind: FluxKind,
        before: &FluxObject,
    ) -> Result<(), kube::Error> {
        if before.metadata.deletion_timestamp.is_some() {
            return Ok(());
        }
        self.of(kind, &before.name_any())
            .delete(&before.metadata)
            .await
    }

    async fn patch(
        &self,
        kind: FluxKind,
        before: &FluxObject,
        patch: Value,
    ) -> Result<(), kube::Error> {
        let writer = self.of(kind, &before.name_any());
        let patched = writer.merge(Part::Whole, &before.metadata, patch).await?;
        self.wrote(kind, patched);
        Ok(())
    }

    /// Writes an object of Flux beside the gated source.
    fn of(&self, kind: FluxKind, name: &str) -> write::Writer<'_> {
        write::Writer {
            context: self.context,
            work: Work::own(kind.into(), self.key.naming(None, name)),
            manager: MANAGER,
        }
    }

    /// Takes in what was written, and wakes everything that it concerns, including the gated source that
    /// it was written for: its status has to report the new state.
    fn wrote(&self, kind: FluxKind, object: FluxObject) {
        let key = ObjectKey::of(&object);
        if let Some(put) = self.context.world.flux.put(kind, object) {
            let change = Change {
                key: &key,
                before: put.before.as_ref(),
                now: Some(&put.now),
            };
            self.context.waker.flux(kind, &change);
        }
    }
}

fn document(metadata: Value, spec: Map<String, Value>) -> Map<String, Value> {
    Map::from_iter([
        ("metadata".to_owned(), metadata),
        ("spec".to_owned(), Value::Object(spec)),
    ])
}
