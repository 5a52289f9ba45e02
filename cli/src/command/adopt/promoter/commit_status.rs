//! A CommitStatus as ours.

use serde_json::{Value, json};

use super::theirs::Theirs;
use crate::converted::{Converted, ours};

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
