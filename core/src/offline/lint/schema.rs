//! Values against the schema of their kind, as the API server checks them with strict validation
//! of fields.

use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSON, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt;
use regex::bytes::RegexBuilder;
use serde_json::Value;
use sluice_crds::gatekeeper::Window;
use sluice_crds::{Duration, IntOrPercent};
use strsim::levenshtein;

use super::metadata;
use crate::text::refusal::Refusal;
use crate::time::duration;

/// The schema of a kind of ours, without its status.
pub(super) fn of<K: CustomResourceExt>() -> JSONSchemaProps {
    let version = K::crd().spec.versions.into_iter().next();
    let schema = version.and_then(|version| version.schema?.open_api_v3_schema);
    let mut schema = schema.unwrap_or_default();
    schema.properties.get_or_insert_default().remove("status");
    with_type(schema)
}

/// As much of the schema of ConfigMaps as they can be wrong in.
pub(super) fn of_config_maps() -> JSONSchemaProps {
    with_type(object([
        ("data", texts()),
        ("binaryData", texts()),
        ("immutable", of_type("boolean")),
    ]))
}

/// The same of Namespaces: nothing but their labels matters.
pub(super) fn of_namespaces() -> JSONSchemaProps {
    with_type(object([("spec", JSONSchemaProps::default())]))
}

/// Every object has these.
fn with_type(mut schema: JSONSchemaProps) -> JSONSchemaProps {
    let properties = schema.properties.get_or_insert_default();
    for field in ["apiVersion", "kind"] {
        properties.insert(field.to_owned(), JSONSchemaProps::default());
    }
    properties.insert("metadata".to_owned(), metadata());
    let required = schema.required.get_or_insert_default();
    required.push("metadata".to_owned());
    schema
}

/// The types of the fields of metadata.
fn metadata() -> JSONSchemaProps {
    let mut schema = object([
        ("annotations", texts()),
        ("generateName", of_type("string")),
        ("labels", texts()),
        ("name", of_type("string")),
        ("namespace", of_type("string")),
    ]);
    let served = metadata::SERVED.map(|name| (name.to_owned(), JSONSchemaProps::default()));
    schema.properties.get_or_insert_default().extend(served);
    schema
}

/// An object of these fields and no others, all of them optional.
fn object<const N: usize>(fields: [(&str, JSONSchemaProps); N]) -> JSONSchemaProps {
    let properties = fields.map(|(name, schema)| (name.to_owned(), schema));
    JSONSchemaProps {
        properties: Some(properties.into()),
        ..of_type("object")
    }
}

/// Names with text.
fn texts() -> JSONSchemaProps {
    JSONSchemaProps {
        additional_properties: Some(JSONSchemaPropsOrBool::Schema(Box::new(of_type("string")))),
        ..of_type("object")
    }
}

/// A value of this type, or null in its place.
fn of_type(name: &str) -> JSONSchemaProps {
    JSONSchemaProps {
        type_: Some(name.to_owned()),
        nullable: Some(true),
        ..JSONSchemaProps::default()
    }
}

/// Adds what is wrong with `value`, and takes out the nulls that count as absent, and what no type
/// could hold. Returns the paths of what it took out because of that: about these fields, and what is
/// around them, nothing more can be said.
pub(super) fn check(
    schema: &JSONSchemaProps,
    value: &mut Value,
    mistakes: &mut Vec<Refusal>,
) -> Vec<String> {
    let mut walk = Walk {
        mistakes,
        unreadable: Vec::new(),
    };
    walk.value(schema, value, "");
    walk.unreadable
}

struct Walk<'a> {
    mistakes: &'a mut Vec<Refusal>,
    /// The fields whose values are of another type, or none of those that are allowed.
    unreadable: Vec<String>,
}

impl Walk<'_> {
    fn refuse(&mut self, field: &str, problem: impl Into<String>, remedy: impl Into<String>) {
        self.mistakes.push(Refusal::new(field, problem, remedy));
    }

    fn value(&mut self, schema: &JSONSchemaProps, value: &mut Value, path: &str) {
        if schema.x_kubernetes_int_or_string == Some(true) {
            return self.int_or_text(schema, value, path);
        }
        let Some(wanted) = schema.type_.as_deref() else {
            return;
        };
        match (wanted, value) {
            ("object", Value::Object(fields)) => self.object(schema, fields, path),
            ("array", Value::Array(items)) => self.array(schema, items, path),
            ("string", Value::String(text)) => self.string(schema, text, path),
            ("boolean", Value::Bool(_)) | ("number", Value::Number(_)) => {}
            ("integer", Value::Number(number)) if number.is_i64() || number.is_u64() => {}
            (_, value) => {
                let remedy = match (wanted, &*value) {
                    ("string", Value::Bool(_) | Value::Number(_)) => "put it in quotes".to_owned(),
                    ("array", Value::Object(_)) => {
                        "write a list: put `- ` before the first field".to_owned()
                    }
                    _ => format!("write {}", called(wanted)),
                };
                let problem = format!(
                    "it is {}, where {} belongs",
                    describe(value),
                    called(wanted)
                );
                self.refuse(path, problem, remedy);
                self.unreadable.push(path.to_owned());
            }
        }
    }

    /// A whole number or a text: limits are of numbers, a pattern is of texts.
    fn int_or_text(&mut self, schema: &JSONSchemaProps, value: &Value, path: &str) {
        match value {
            Value::String(text) => self.string(schema, text, path),
            Value::Number(number) if number.is_i64() => {}
            value => {
                let problem = format!(
                    "it is {}, where a whole number or a percentage belongs",
                    describe(value)
                );
                self.refuse(
                    path,
                    problem,
                    "write a whole number, or a percentage such as 25%",
                );
                self.unreadable.push(path.to_owned());
            }
        }
    }

    fn object(
        &mut self,
        schema: &JSONSchemaProps,
        fields: &mut serde_json::Map<String, Value>,
        path: &str,
    ) {
        let none = Default::default();
        let properties = schema.properties.as_ref().unwrap_or(&none);
        fields.retain(|name, value| {
            !(value.is_null() && properties.get(name).is_some_and(may_be_null))
        });
        for name in schema.required.iter().flatten() {
            if !fields.contains_key(name) {
                let remedy = match properties
                    .get(name)
                    .and_then(|known| known.type_.as_deref())
                {
                    Some(wanted) => format!("write {name}: {}", called(wanted)),
                    None => format!("write {name}"),
                };
                self.refuse(&join(path, name), "it is missing", remedy);
            }
        }
        let limits = (schema.min_properties, schema.max_properties);
        self.count(fields.len(), "fields", limits, path);
        fields.retain(|name, value| {
            let path = join(path, name);
            match (properties.get(name), &schema.additional_properties) {
                (Some(known), _) => self.value(known, value, &path),
                (None, Some(JSONSchemaPropsOrBool::Schema(any))) => self.value(any, value, &path),
                (None, Some(JSONSchemaPropsOrBool::Bool(true))) => {}
                (None, Some(JSONSchemaPropsOrBool::Bool(false)) | None) => {
                    let remedy = in_place_of(name, properties.keys().map(String::as_str));
                    self.refuse(&path, "there is no such field", remedy);
                }
            }
            !self.unreadable.contains(&path)
        });
    }

    /// There have to be so many at least, and at most.
    fn count(&mut self, count: usize, of: &str, limits: (Option<i64>, Option<i64>), path: &str) {
        let (least, most) = limits;
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        if let Some(most) = most.filter(|most| count > *most) {
            let problem = format!("{count} {of} are more than {most}");
            self.refuse(path, problem, "write fewer");
        }
        if let Some(least) = least.filter(|least| count < *least) {
            let problem = format!("{count} {of} are fewer than {least}");
            self.refuse(path, problem, "write more");
        }
    }

    fn array(&mut self, schema: &JSONSchemaProps, items: &mut [Value], path: &str) {
        let limits = (schema.min_items, schema.max_items);
        self.count(items.len(), "items", limits, path);
        if let Some(JSONSchemaPropsOrArray::Schema(each)) = &schema.items {
            let before = self.unreadable.len();
            let place = |n: usize| format!("{path}[{n}]");
            for (n, item) in items.iter_mut().enumerate() {
                self.value(each, item, &place(n));
            }
            // If an item was removed, the others would be at other places.
            if (0..items.len()).any(|n| self.unreadable[before..].contains(&place(n))) {
                self.unreadable.push(path.to_owned());
            }
        }
    }

    fn string(&mut self, schema: &JSONSchemaProps, text: &str, path: &str) {
        let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
        let allowed = || {
            schema
                .enum_
                .iter()
                .flatten()
                .filter_map(|JSON(value)| value.as_str())
        };
        if schema.enum_.is_some() && !allowed().any(|allowed| allowed == text) {
            let known = allowed().collect::<Vec<_>>().join(" or ");
            self.refuse(
                path,
                format!("`{text}` is not one of its values"),
                format!("write {known}"),
            );
            self.unreadable.push(path.to_owned());
        } else if schema.min_length.is_some_and(|least| length < least) {
            let problem = if length == 0 {
                "it is empty".to_owned()
            } else {
                format!("`{text}` is too short")
            };
            self.refuse(path, problem, "write something, or remove the field");
        } else if let Some(most) = schema.max_length.filter(|most| length > *most) {
            let problem = format!("it has {length} characters, more than {most}");
            self.refuse(path, problem, "write less");
        } else if let Some(pattern) = schema.pattern.as_ref().filter(|it| !matches(it, text)) {
            self.refuse(
                path,
                format!("`{text}` is not of the form it should have"),
                form(pattern),
            );
        } else if schema.format.as_deref() == Some("date-time") && !is_instant(text) {
            let remedy = "write RFC 3339, such as 2026-11-20T18:00:00Z";
            self.refuse(path, format!("`{text}` is not an instant"), remedy);
        }
    }
}

/// Absent, or replaced by its default, where it is null.
fn may_be_null(schema: &JSONSchemaProps) -> bool {
    schema.nullable == Some(true) || schema.default.is_some()
}

fn join(path: &str, name: &str) -> String {
    match (path, name.contains(['.', '/'])) {
        ("", _) => name.to_owned(),
        (_, true) => format!("{path}[{name}]"),
        (_, false) => format!("{path}.{name}"),
    }
}

fn called(wanted: &str) -> &'static str {
    match wanted {
        "object" => "an object of fields",
        "array" => "a list",
        "string" => "text",
        "boolean" => "true or false",
        "integer" => "a whole number",
        _ => "a number",
    }
}

fn describe(value: &Value) -> String {
    match value {
        Value::Null => "nothing (null)".to_owned(),
        Value::Bool(given) => format!("the boolean {given}"),
        Value::Number(given) => format!("the number {given}"),
        Value::String(_) => "text".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

/// Which of the known fields was meant.
pub(super) fn in_place_of<'a>(
    written: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> String {
    let folded = |name: &str| name.to_ascii_lowercase().replace(['-', '_'], "");
    let distance = |name: &str| levenshtein(&folded(name), &folded(written));
    let nearest = known.clone().min_by_key(|name| distance(name));
    match nearest.filter(|name| distance(name) <= 2) {
        Some(meant) => format!("write {meant}, or remove it"),
        None => {
            let known: Vec<&str> = known.collect();
            format!("remove it; the fields here are {}", known.join(", "))
        }
    }
}

/// As Go's `regexp` finds it: bytes, not Unicode classes. A pattern that cannot be read, which
/// the API server would not have stored, refuses nothing.
fn matches(pattern: &str, text: &str) -> bool {
    RegexBuilder::new(pattern)
        .unicode(false)
        .build()
        .is_ok_and(|pattern| pattern.is_match(text.as_bytes()))
}

/// What a pattern asks for, in words where it is one of ours.
fn form(pattern: &str) -> String {
    match pattern {
        Duration::PATTERN => duration::REMEDY.to_owned(),
        IntOrPercent::PATTERN => "write a percentage from 0% to 100%, or a number without quotes".to_owned(),
        r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" => {
            "write lower-case letters, digits and -, with a letter or digit at both ends".to_owned()
        }
        r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$" => {
            "write lower-case letters, digits, - and ., with a letter or digit at both ends"
                .to_owned()
        }
        r"^https://[^\s@]+$" => {
            "write an address that starts with https:// and holds no user name".to_owned()
        }
        r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}$" => {
            "write a local date and time such as 2026-12-19T00:00:00".to_owned()
        }
        Window::UNTIL => {
            "write a local date and time such as 2026-12-19T00:00:00, or beside cron a time of day such as 04:00"
                .to_owned()
        }
        other => format!("write text that matches {other}"),
    }
}

/// An instant that both the API server (`strfmt.IsDateTime`) and the controller can read.
fn is_instant(text: &str) -> bool {
    const FORM: &str = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?([Zz]|[-+][0-9]{2}:[0-9]{2})$";
    matches(FORM, text) && text.parse::<Timestamp>().is_ok()
}
