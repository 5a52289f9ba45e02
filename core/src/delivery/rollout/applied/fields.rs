//! Who owns a field, as `managedFields` says.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::{Value, json};
use sluice_crds::gated_source::ConsumerKind;

use super::SSA_FIELDS;
use crate::delivery::rollout::workload::Kind;

/// As whom rollouts write.
pub const MANAGER: &str = "gate-controller-rollouts";

/// The entries of `managedFields` that have the field.
pub(super) fn entries<'a>(object: &'a Value, pointer: &str) -> Vec<&'a Value> {
    let path = path(pointer);
    let all = object.pointer("/metadata/managedFields");
    let all = all.and_then(Value::as_array).into_iter().flatten();
    all.filter(|entry| entry.pointer(&path).is_some()).collect()
}

/// Where an entry has a field.
fn path(pointer: &str) -> String {
    let fields = pointer.split('/').skip(1);
    fields.fold("/fieldsV1".to_owned(), |path, field| path + "/f:" + field)
}

/// The entries of `managedFields` that have a field which a rollout writes, the template, or what Flux leaves alone, with
/// nothing else.
pub(in crate::delivery::rollout) fn managed(object: &Value) -> Value {
    let written = Kind::ALL.iter().flat_map(|kind| kind.fields());
    let paths: BTreeSet<String> = written
        .chain(&["/spec/replicas", "/spec/template"])
        .chain(SSA_FIELDS.iter().map(|(_, field)| field))
        .map(|it| path(it))
        .collect();
    let entries = object.pointer("/metadata/managedFields");
    let entries = entries.and_then(Value::as_array).into_iter().flatten();
    let kept = entries.filter_map(|entry| {
        let mut kept = json!({
            "manager": entry["manager"], "operation": entry["operation"], "time": entry["time"],
        });
        for path in paths.iter().filter(|path| entry.pointer(path).is_some()) {
            put(&mut kept, path, json!({}));
        }
        kept.get("fieldsV1").is_some().then_some(kept)
    });
    kept.collect()
}

/// Whether this part of Flux has applied the field.
pub(super) fn applies(object: &Value, pointer: &str, applier: ConsumerKind) -> bool {
    entries(object, pointer)
        .iter()
        .any(|entry| is_applied(entry, applier))
}

/// When this part of Flux has applied something of the spec last that was another value before.
pub(super) fn applied_at(object: &Value, applier: ConsumerKind) -> Option<Timestamp> {
    let applied = entries(object, "/spec").into_iter();
    let applied = applied.filter(|it| is_applied(it, applier));
    applied
        .filter_map(|entry| entry["time"].as_str()?.parse().ok())
        .max()
}

/// Whether an entry is what this part of Flux has applied. helm-controller also applies by updates: where it corrects
/// drift, and a release that is not applied by the server.
fn is_applied(entry: &Value, applier: ConsumerKind) -> bool {
    match applier {
        ConsumerKind::Kustomization => {
            entry["manager"] == "kustomize-controller" && entry["operation"] == "Apply"
        }
        ConsumerKind::HelmRelease => entry["manager"] == "helm-controller",
    }
}

/// Who has written the field last, but for ourselves.
pub(in crate::delivery::rollout) fn owner(object: &Value, pointer: &str) -> Option<String> {
    let others = entries(object, pointer);
    let others = others
        .into_iter()
        .filter(|entry| entry["manager"] != MANAGER);
    let newest = others.max_by_key(|entry| entry["time"].as_str().unwrap_or_default());
    newest?["manager"].as_str().map(str::to_owned)
}

/// Puts a value where a pointer leads, through objects.
pub(in crate::delivery::rollout) fn put(into: &mut Value, pointer: &str, value: Value) {
    let fields = pointer.split('/').skip(1);
    let fields = fields.map(|field| field.replace("~1", "/").replace("~0", "~"));
    let place = fields.fold(into, |place, field| &mut place[field]);
    *place = value;
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const KUSTOMIZATION: ConsumerKind = ConsumerKind::Kustomization;
    const HELM_RELEASE: ConsumerKind = ConsumerKind::HelmRelease;

    #[rstest]
    #[case::by_the_server(KUSTOMIZATION, "kustomize-controller", "Apply", true)]
    #[case::an_update(KUSTOMIZATION, "kustomize-controller", "Update", false)]
    #[case::of_the_other(KUSTOMIZATION, "helm-controller", "Apply", false)]
    #[case::a_release_by_the_server(HELM_RELEASE, "helm-controller", "Apply", true)]
    #[case::a_release_by_updates(HELM_RELEASE, "helm-controller", "Update", true)]
    #[case::by_the_program(HELM_RELEASE, "helm", "Update", false)]
    #[case::by_a_person(HELM_RELEASE, "kubectl-edit", "Update", false)]
    fn what_flux_has_applied_is_known_by_its_manager(
        #[case] kind: ConsumerKind,
        #[case] manager: &str,
        #[case] operation: &str,
        #[case] applies: bool,
    ) {
        let at = "2026-11-23T09:30:00Z";
        let object = json!({"metadata": {"managedFields": [{
            "manager": manager, "operation": operation, "time": at,
            "fieldsV1": {"f:spec": {"f:replicas": {}}},
        }]}});
        assert_eq!(super::applies(&object, "/spec/replicas", kind), applies);
        assert!(!super::applies(&object, "/spec/paused", kind));
        let expected = applies.then(|| at.parse().unwrap());
        assert_eq!(applied_at(&object, kind), expected);
    }
}
