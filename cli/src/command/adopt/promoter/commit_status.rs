//! A CommitStatus as ours.

use serde_json::{Value, json};

use super::order;
use super::theirs::Theirs;
use crate::converted::{Converted, ours};

/// The labels that name the check.
const LABELS: [&str; 2] = [
    "promoter.argoproj.io/commit-status",
    "commit-status.argoproj.io/key",
];

/// Why there is none in its place. None: there is one.
pub(super) fn is_left_out(theirs: &Theirs) -> Option<&'static str> {
    let labels = &theirs.value["metadata"]["labels"];
    if LABELS.iter().any(|label| labels[label] == order::KEY) {
        return Some("it tells of the order of the environments, which our strategy tells itself");
    }
    theirs.is_made().then_some(
        "GitOps Promoter writes it, and writes no more once it is gone. What stands in the place of its owner \
         finds it out",
    )
}

/// # Errors
/// What is wrong, a line for each mistake.
pub(super) fn commit_status(theirs: &Theirs) -> Result<Converted, Vec<String>> {
    let (mut notes, spec) = (theirs.notes(), theirs.spec());
    let known = [
        "gitRepositoryRef",
        "sha",
        "name",
        "phase",
        "description",
        "url",
    ];
    notes.rest("spec", spec, &known);
    let phase = spec["phase"].as_str().unwrap_or("pending");
    let mut own = json!({
        "repoRef": {"name": theirs.names("gitRepositoryRef")}, "sha": spec["sha"],
        "name": spec["name"], "phase": phase,
    });
    for field in ["description", "url"] {
        let text = spec[field].as_str().filter(|text| !text.is_empty());
        if let Some(text) = text {
            own[field] = Value::from(text);
        }
    }
    let key = (theirs.namespace.as_str(), theirs.name.as_str());
    notes.finish(ours("CommitStatus", key, &theirs.value["metadata"], &own))
}
