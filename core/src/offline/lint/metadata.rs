//! Metadata, which the API server checks by itself: names, labels, annotations.

use serde_json::{Map, Value};

use crate::text::names::{LABEL_LENGTH, is_label_value, is_qualified, subdomain};
use crate::text::refusal::Refusal;

/// The most bytes of all annotations together.
const ANNOTATIONS_LENGTH: usize = 256 << 10;

/// The fields that the API server writes, which are in what `kubectl get -o yaml` prints.
pub(super) const SERVED: [&str; 10] = [
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

/// What is wrong with an object's metadata, other than the types of its fields. Its name may have
/// `longest` characters.
pub(super) fn check(object: &Value, longest: usize) -> Vec<Refusal> {
    let mut mistakes = Vec::new();
    if let Some(Value::Object(fields)) = object.get("metadata") {
        name(fields, longest, &mut mistakes);
        texts(fields, "labels", &mut mistakes);
        texts(fields, "annotations", &mut mistakes);
    }
    mistakes
}

/// Takes out what no decision is made from, and which another version of the API server may
/// write in a way that is not known here.
pub(super) fn keep_what_matters(object: &mut Value) {
    if let Some(Value::Object(fields)) = object.get_mut("metadata") {
        fields.retain(|name, value| {
            let matters = !SERVED.contains(&name.as_str()) || name == "generation";
            matters && !value.is_null()
        });
    }
}

fn name(fields: &Map<String, Value>, longest: usize, mistakes: &mut Vec<Refusal>) {
    let given = |field| fields.get(field).filter(|value| !value.is_null());
    match (given("name"), given("generateName")) {
        (None, None) => {
            let field = "metadata.name";
            mistakes.push(Refusal::new(field, "it is missing", "write a name"));
        }
        (Some(Value::String(name)), _) => subdomain("metadata.name", name, longest, mistakes),
        (None, Some(Value::String(name))) => {
            // The API server completes and, where it must, cuts it.
            let (field, name) = ("metadata.generateName", format!("{name}x"));
            subdomain(field, &name, longest + 1, mistakes);
        }
        (Some(_), _) | (None, Some(_)) => {}
    }
    if let Some(Value::String(name)) = given("namespace") {
        let (field, before) = ("metadata.namespace", mistakes.len());
        subdomain(field, name, LABEL_LENGTH, mistakes);
        if mistakes.len() == before && name.contains('.') {
            let problem = format!("`{name}` has a dot");
            mistakes.push(Refusal::new(field, problem, "write - instead"));
        }
    }
}

/// Labels and annotations: names with text.
fn texts(fields: &Map<String, Value>, list: &str, mistakes: &mut Vec<Refusal>) {
    let Some(Value::Object(entries)) = fields.get(list) else {
        return;
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
        if let Value::String(text) = value
            && list == "labels"
            && !is_label_value(text)
        {
            let remedy = "write at most 63 letters, digits, -, _ and .";
            mistakes.push(Refusal::new(
                field,
                format!("`{text}` is not a label"),
                remedy,
            ));
        }
    }
    let text = |(key, value): (&String, &Value)| key.len() + value.as_str().map_or(0, str::len);
    if list == "annotations" && entries.iter().map(text).sum::<usize>() > ANNOTATIONS_LENGTH {
        let problem = "they are longer than 256 KiB";
        mistakes.push(Refusal::new("metadata.annotations", problem, "write less"));
    }
}
