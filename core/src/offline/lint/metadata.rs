//! Metadata, which the API server checks by itself: names, labels, annotations.

use serde_json::{Map, Value};

use super::schema;
use crate::text::names::{LABEL_LENGTH, is_label_value, is_qualified, subdomain};
use crate::text::refusal::Refusal;

/// The most bytes of all annotations together.
const ANNOTATIONS_LENGTH: usize = 256 << 10;

/// The fields that people write.
const WRITTEN: [&str; 5] = ["annotations", "generateName", "labels", "name", "namespace"];
/// The fields that the API server writes, which are in what `kubectl get -o yaml` prints.
const SERVED: [&str; 10] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// What is wrong with an object's metadata, whose name may have `longest` characters.
pub(super) fn check(object: &Value, longest: usize) -> Vec<Refusal> {
    let mut mistakes = Vec::new();
    match object.get("metadata") {
        Some(Value::Object(fields)) => {
            name(fields, longest, &mut mistakes);
            for name in fields.keys() {
                let known = WRITTEN.iter().chain(&SERVED).copied();
                if !known.clone().any(|known| known == name) {
                    let remedy = schema::in_place_of(name, known);
                    let field = format!("metadata.{name}");
                    mistakes.push(Refusal::new(field, "there is no such field", remedy));
                }
            }
            texts(fields, "labels", &mut mistakes);
            texts(fields, "annotations", &mut mistakes);
        }
        None | Some(Value::Null) => {
            mistakes.push(Refusal::new(
                "metadata",
                "it is missing",
                "write metadata: {name: …}",
            ));
        }
        Some(_) => mistakes.push(Refusal::new(
            "metadata",
            "it is no object",
            "write an object of fields, with name",
        )),
    }
    mistakes
}

/// Takes out what no decision is made from, and which another version of the API server may
/// write in a way that is not known here.
pub(super) fn keep_what_matters(object: &mut Value) {
    if let Some(Value::Object(fields)) = object.get_mut("metadata") {
        fields.retain(|name, value| {
            let matters = WRITTEN.contains(&name.as_str()) || name == "generation";
            matters && !value.is_null()
        });
    }
}

fn name(fields: &Map<String, Value>, longest: usize, mistakes: &mut Vec<Refusal>) {
    let given = |field| fields.get(field).filter(|value| !value.is_null());
    match (given("name"), given("generateName")) {
        (None, None) => {
            mistakes.push(Refusal::new(
                "metadata.name",
                "it is missing",
                "write a name",
            ));
        }
        (Some(Value::String(name)), _) => subdomain("metadata.name", name, longest, mistakes),
        (None, Some(Value::String(name))) => {
            // The API server completes and, where it must, cuts it.
            subdomain(
                "metadata.generateName",
                &format!("{name}x"),
                longest + 1,
                mistakes,
            );
        }
        (Some(other), _) => not_text("metadata.name", other, mistakes),
        (None, Some(other)) => not_text("metadata.generateName", other, mistakes),
    }
    match given("namespace") {
        None => {}
        Some(Value::String(name)) => {
            let before = mistakes.len();
            subdomain("metadata.namespace", name, LABEL_LENGTH, mistakes);
            if mistakes.len() == before && name.contains('.') {
                let problem = format!("`{name}` has a dot");
                mistakes.push(Refusal::new(
                    "metadata.namespace",
                    problem,
                    "write - instead",
                ));
            }
        }
        Some(other) => not_text("metadata.namespace", other, mistakes),
    }
}

fn not_text(field: &str, value: &Value, mistakes: &mut Vec<Refusal>) {
    let problem = format!("`{value}` is no text");
    let remedy = if value.is_object() || value.is_array() {
        "write text"
    } else {
        "put it in quotes"
    };
    mistakes.push(Refusal::new(field, problem, remedy));
}

/// Labels and annotations: names with text.
fn texts(fields: &Map<String, Value>, list: &str, mistakes: &mut Vec<Refusal>) {
    let entries = match fields.get(list) {
        None | Some(Value::Null) => return,
        Some(Value::Object(entries)) => entries,
        Some(_) => {
            let field = format!("metadata.{list}");
            mistakes.push(Refusal::new(
                field,
                "it is no object",
                "write names with values",
            ));
            return;
        }
    };
    for (key, value) in entries {
        let field = format!("metadata.{list}[{key}]");
        // The API server reads the names of annotations as if in small letters, those of labels
        // as they are.
        let as_read = match list {
            "annotations" => key.to_ascii_lowercase(),
            _ => key.clone(),
        };
        if !is_qualified(&as_read) {
            let remedy = "write letters, digits, -, _ and ., perhaps after a domain in small letters and a /";
            mistakes.push(Refusal::new(&field, "its name is not allowed", remedy));
        }
        match value {
            Value::String(text) if list == "labels" && !is_label_value(text) => {
                let remedy = "write at most 63 letters, digits, -, _ and .";
                mistakes.push(Refusal::new(
                    &field,
                    format!("`{text}` is no label"),
                    remedy,
                ));
            }
            Value::String(_) => {}
            other => not_text(&field, other, mistakes),
        }
    }
    let text = |(key, value): (&String, &Value)| key.len() + value.as_str().map_or(0, str::len);
    if list == "annotations" && entries.iter().map(text).sum::<usize>() > ANNOTATIONS_LENGTH {
        let problem = "they are longer than 256 KiB";
        mistakes.push(Refusal::new("metadata.annotations", problem, "write less"));
    }
}
