//! Objects of other tools, written as ours.
//!
//! What comes in: an object as it was written, and what its command makes of it. What goes out: ours, as
//! admission would take it, with a comment above it for everything that is left to do and everything that is
//! lost; or what is wrong, with what to write instead. Uses the room `output`.

use anyhow::Result;
use serde_json::{Map, Value, json};
use sluice_core::offline::lint;
use sluice_core::text::words::clean;

use crate::output::Data;

/// The most characters of a comment, or of a mistake.
const LONGEST: usize = 1_000;

/// What somebody else wrote, which says nothing of what an object is to do.
const LEFT_OUT: [&str; 1] = ["kubectl.kubernetes.io/last-applied-configuration"];

/// An object of ours, with what has to be said of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Converted {
    pub(crate) object: Value,
    pub(crate) comments: Vec<Comment>,
}

/// A line above an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Comment {
    pub(crate) text: String,
    /// Whether something is lost. Otherwise something is left to do, or to know.
    pub(crate) is_lost: bool,
}

/// What one conversion has found so far.
#[derive(Clone, Debug)]
pub(crate) struct Notes {
    /// The kind, the namespace and the name.
    about: String,
    comments: Vec<Comment>,
    mistakes: Vec<String>,
}

impl Notes {
    pub(crate) fn new(kind: &str, namespace: &str, name: &str) -> Self {
        Self {
            about: format!("{kind} {namespace}/{name}"),
            comments: Vec::new(),
            mistakes: Vec::new(),
        }
    }

    /// A note becomes one line of a comment, whatever is in the object that it quotes.
    pub(crate) fn note(&mut self, note: impl Into<String>) {
        self.comment(&note.into(), false);
    }

    /// The same for something that ours does not do.
    pub(crate) fn lose(&mut self, what: impl Into<String>) {
        self.comment(&what.into(), true);
    }

    fn comment(&mut self, text: &str, is_lost: bool) {
        let text = clean(text, LONGEST);
        if self.comments.iter().all(|known| known.text != text) {
            self.comments.push(Comment { text, is_lost });
        }
    }

    pub(crate) fn refuse(&mut self, field: &str, problem: &str, remedy: &str) {
        let mistake = format!("{}: {field}: {problem}; {remedy}", self.about);
        self.mistakes.push(clean(&mistake, LONGEST));
    }

    /// Says of every field that is not known that it is left out.
    pub(crate) fn rest(&mut self, path: &str, value: &Value, known: &[&str]) {
        let fields = value.as_object().into_iter().flat_map(Map::keys);
        let unknown: Vec<&String> = fields.filter(|it| !known.contains(&it.as_str())).collect();
        for field in unknown {
            self.lose(format!("{path}.{field} is not known, and is left out"));
        }
    }

    /// Reads the result as admission would.
    ///
    /// # Errors
    /// What is wrong, a line for each mistake.
    pub(crate) fn finish(self, object: Value) -> Result<Converted, Vec<String>> {
        let mut mistakes = self.mistakes;
        if mistakes.is_empty() {
            let read = lint::read(&object).mistakes.into_iter();
            mistakes.extend(read.map(|mistake| format!("{}: {mistake}", self.about)));
        }
        match mistakes.is_empty() {
            true => Ok(Converted {
                object,
                comments: self.comments,
            }),
            false => Err(mistakes),
        }
    }
}

impl Converted {
    /// A document, with its comments above it.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn text(&self) -> Result<String> {
        let comments = self.comments.iter().map(|it| format!("# - {}\n", it.text));
        let object = Data::Yaml.text(&self.object)?;
        Ok(format!("---\n{}{object}", comments.collect::<String>()))
    }
}

/// Whether it is of that group of the API, in any version.
pub(crate) fn is_of(value: &Value, group: &str) -> bool {
    let version = value["apiVersion"].as_str().unwrap_or_default();
    version.split_once('/').is_some_and(|(of, _)| of == group)
}

/// One of ours, with the labels and annotations of the other.
pub(crate) fn ours(kind: &str, (namespace, name): (&str, &str), of: &Value, spec: &Value) -> Value {
    let mut metadata = json!({"name": name, "namespace": namespace});
    for field in ["labels", "annotations"] {
        let mut kept = of[field].as_object().cloned().unwrap_or_default();
        kept.retain(|key, _| !LEFT_OUT.contains(&key.as_str()));
        if !kept.is_empty() {
            metadata[field] = Value::Object(kept);
        }
    }
    json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec,
    })
}
