//! What the objects in files are called.

use std::path::Path;

use serde_json::Value;
use sluice_core::lint::Subject;

/// What an object is called.
pub(super) fn called(subject: &Subject) -> String {
    match subject {
        Subject::Gate(key) => format!("Gate {key}"),
        Subject::Gatekeeper(key) => format!("Gatekeeper {key}"),
        Subject::Approval(key) => format!("Approval {key}"),
        Subject::GatePolicy(name) => format!("GatePolicy {name}"),
        Subject::GatedSource(key) => format!("GatedSource {key}"),
        Subject::Namespace(name) => format!("Namespace {name}"),
        Subject::ConfigMap(key) => format!("ConfigMap {key}"),
    }
}

/// Kustomize lets its own files go without apiVersion and kind.
pub(super) fn is_kustomization(value: &Value, origin: &str) -> bool {
    let stem = Path::new(origin).file_stem().and_then(|stem| stem.to_str());
    stem.is_some_and(|stem| stem.eq_ignore_ascii_case("kustomization"))
        && value.get("apiVersion").is_none()
        && value.get("kind").is_none()
}

/// What an object is called, however wrong it is.
pub(super) fn name_of(value: &Value, namespace: &str) -> Option<String> {
    let kind = value.get("kind")?.as_str()?;
    let metadata = value.get("metadata");
    let text = |field| metadata?.get(field)?.as_str();
    let name = text("name")
        .or_else(|| text("generateName"))
        .unwrap_or("without a name");
    if matches!(kind, "GatePolicy" | "Namespace") {
        return Some(format!("{kind} {name}"));
    }
    Some(format!(
        "{kind} {}/{name}",
        text("namespace").unwrap_or(namespace)
    ))
}
