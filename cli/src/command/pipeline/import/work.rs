//! What one import has found so far.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use sluice_core::text::words::clean;

/// The most characters of a note, or of a mistake.
const LONGEST: usize = 1_000;

/// The work of one import.
pub(super) struct Work<'w> {
    /// The namespace and the name.
    pub(super) key: (String, String),
    /// The files that pull requests write.
    pub(super) written: &'w [String],
    pub(super) notes: Vec<String>,
    pub(super) mistakes: Vec<String>,
    /// Secrets with tokens of forges.
    pub(super) tokens: BTreeSet<String>,
}

impl Work<'_> {
    /// A note becomes one line of a comment, whatever is in the object that it quotes.
    pub(super) fn note(&mut self, note: impl Into<String>) {
        let note = clean(&note.into(), LONGEST);
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    pub(super) fn refuse(&mut self, field: &str, problem: &str, remedy: &str) {
        let (namespace, name) = &self.key;
        let mistake = format!("Pipeline {namespace}/{name}: {field}: {problem}; {remedy}");
        self.mistakes.push(clean(&mistake, LONGEST));
    }

    /// Says of every field that is not known that it is left out.
    pub(super) fn rest(&mut self, path: &str, value: &Value, known: &[&str]) {
        let fields = value.as_object().into_iter().flat_map(Map::keys);
        let unknown: Vec<&String> = fields.filter(|it| !known.contains(&it.as_str())).collect();
        for field in unknown {
            self.note(format!("{path}.{field} is not known, and is left out"));
        }
    }
}
