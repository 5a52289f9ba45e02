//! Who owns the annotations of a force, as the API server keeps it in `metadata.managedFields`.
//!
//! Flux removes fields that only `kubectl` or Flux itself has written, so the controller owns every
//! annotation of a force that it has noted. Anybody who may update a gate may also write its managed
//! fields: if the controller does not own an annotation any more, it takes ownership again.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry};
use serde_json::{Map, Value, json};
use sluice_crds::Gate;
use sluice_crds::gate::annotations::FORCE_SEEN;

use super::note::PARTS;

/// The field manager of the controller for the annotations of a force.
pub const MANAGER: &str = "gate-controller-force";

/// What an apply is called among the managed fields.
const APPLY: &str = "Apply";

/// The annotations of a force that the gate has, with the controller's note.
fn present(annotations: &BTreeMap<String, String>) -> impl Iterator<Item = (&str, &String)> {
    let all = PARTS.into_iter().chain([FORCE_SEEN]);
    all.filter_map(|name| Some((name, annotations.get(name)?)))
}

/// The annotations that the controller has to own and does not. None: it owns all of them, or the owners
/// are not known, as with a gate that is read from a file.
pub(super) fn lost(
    gate: &Gate,
    annotations: &BTreeMap<String, String>,
) -> Option<BTreeMap<String, String>> {
    let entries = gate.metadata.managed_fields.as_ref()?;
    let owned = |name: &str| {
        let field = format!("f:{name}");
        let mut own = entries.iter().filter(|entry| is_own(entry));
        own.any(|entry| fields(entry).is_some_and(|fields| fields.contains_key(&field)))
    };
    if present(annotations).all(|(name, _)| owned(name)) {
        return None;
    }
    let all = present(annotations);
    Some(
        all.map(|(name, value)| (name.to_owned(), value.clone()))
            .collect(),
    )
}

/// Whether the entry is that of the controller for the annotations of a force.
pub fn is_own(entry: &ManagedFieldsEntry) -> bool {
    entry.manager.as_deref() == Some(MANAGER)
        && entry.operation.as_deref() == Some(APPLY)
        && entry.subresource.as_deref().unwrap_or_default().is_empty()
}

fn fields(entry: &ManagedFieldsEntry) -> Option<&Map<String, Value>> {
    let fields = &entry.fields_v1.as_ref()?.0;
    fields.get("f:metadata")?.get("f:annotations")?.as_object()
}

/// The entry of the controller once it has written these annotations.
pub fn entry(annotations: &BTreeMap<String, String>) -> ManagedFieldsEntry {
    let fields = annotations
        .keys()
        .map(|name| (format!("f:{name}"), json!({})));
    let fields: Map<String, Value> = fields.collect();
    ManagedFieldsEntry {
        manager: Some(MANAGER.to_owned()),
        operation: Some(APPLY.to_owned()),
        fields_v1: Some(FieldsV1(json!({"f:metadata": {"f:annotations": fields}}))),
        ..ManagedFieldsEntry::default()
    }
}
