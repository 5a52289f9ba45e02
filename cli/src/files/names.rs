//! What the objects in files are called.

use std::path::Path;

use serde_json::Value;
use sluice_core::offline::lint::{OURS, Subject};
use sluice_crds::GROUP;

use super::yaml::Node;

/// What an object is called.
pub(super) fn called(subject: &Subject) -> String {
    match subject {
        Subject::Gate(key) => format!("Gate {key}"),
        Subject::Gatekeeper(key) => format!("Gatekeeper {key}"),
        Subject::Approval(key) => format!("Approval {key}"),
        Subject::GatePolicy(name) => format!("GatePolicy {name}"),
        Subject::GatedSource(key) => format!("GatedSource {key}"),
        Subject::Pipeline(key) => format!("Pipeline {key}"),
        Subject::GitRepositoryAccess(key) => format!("GitRepositoryAccess {key}"),
        Subject::PromotionStrategy(key) => format!("PromotionStrategy {key}"),
        Subject::CommitStatus(key) => format!("CommitStatus {key}"),
        Subject::RevertCommit(key) => format!("RevertCommit {key}"),
        Subject::Rollout(key) => format!("Rollout {key}"),
        Subject::Namespace(name) => format!("Namespace {name}"),
        Subject::ConfigMap(key) => format!("ConfigMap {key}"),
    }
}

/// Whether a file is a calendar and no YAML.
pub(super) fn is_calendar(origin: &str, text: &[u8]) -> bool {
    let ending = Path::new(origin).extension();
    let behind_mark = text.strip_prefix("\u{feff}".as_bytes());
    ending.is_some_and(|ending| ending.eq_ignore_ascii_case("ics"))
        || behind_mark.unwrap_or(text).starts_with(b"BEGIN:VCALENDAR")
}

/// Whether it is an object, or was meant to be one of ours. Values of charts, package.json, Chart.yaml
/// and others are not.
pub(super) fn is_object(node: &Node) -> bool {
    match (node.text("apiVersion"), node.text("kind")) {
        (Some(_), Some(_)) => true,
        (Some(version), None) => version.starts_with(GROUP),
        (None, Some(kind)) => OURS.contains(&kind),
        (None, None) => false,
    }
}

/// Whether it is of a kind that others write as well, and some of them not for the API server as it is:
/// Kustomize, Flux and SOPS change it first.
pub(super) fn is_of_everybody(value: &Value) -> bool {
    let text = |field| value.get(field).and_then(Value::as_str);
    text("apiVersion") == Some("v1") && matches!(text("kind"), Some("ConfigMap" | "Namespace"))
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
