//! What admission or the controller would refuse, found without either.
//!
//! What comes in: an object as it was written, as a JSON value. What goes out: the object, and
//! every mistake in it with its field and the remedy. The schema is that of the
//! CustomResourceDefinitions; their rules (CEL) are not run but have a counterpart each in
//! [`crate::gate::check`], [`crate::gatekeeper::check`], [`crate::gate::policy::check`] and
//! [`crate::delivery::gated_source::check`], which a test makes sure of.

use std::sync::LazyLock;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sluice_crds::{Approval, GROUP, Gate, GatePolicy, GatedSource, Gatekeeper};

use crate::delivery::gated_source;
use crate::revision::{self, Revision};
use crate::text::names;
use crate::text::refusal::{Refusal, Refusals};
use crate::{gate, gatekeeper};

mod annotations;
mod force;
mod group;
pub(crate) mod metadata;
mod remark;
mod schema;
mod world;

pub use group::OURS;
pub use remark::{Remark, Subject};
pub use world::{calendar, refusals, remarks};

/// The version of the API that this is.
const VERSION: &str = "v1alpha1";

/// What stands under `kind`.
const KINDS: &str = "write Gate, Gatekeeper, Approval, GatePolicy or GatedSource";

/// An object that is of interest here.
#[derive(Clone, Debug)]
pub enum Object {
    /// A Gate.
    Gate(Box<Gate>),
    /// A Gatekeeper.
    Gatekeeper(Box<Gatekeeper>),
    /// An Approval.
    Approval(Box<Approval>),
    /// A GatePolicy.
    GatePolicy(Box<GatePolicy>),
    /// A GatedSource.
    GatedSource(Box<GatedSource>),
    /// A Namespace: perhaps selected by a policy.
    Namespace(Box<Namespace>),
    /// A ConfigMap: perhaps the calendar of a gatekeeper, or its list.
    ConfigMap(Box<ConfigMap>),
    /// Anything else: skipped.
    Other,
}

/// An object as it was read.
#[derive(Clone, Debug)]
pub struct Read {
    /// The object. None: it could not be made out.
    pub object: Option<Object>,
    /// What is wrong with it.
    pub mistakes: Vec<Refusal>,
}

impl Read {
    fn refused(mistake: Refusal) -> Self {
        Self {
            object: None,
            mistakes: vec![mistake],
        }
    }
}

/// The objects of a list, if it is one: a `List`, or one of a kind such as `GateList`.
pub fn items(value: &Value) -> Option<&Vec<Value>> {
    let is_list = value.get("kind")?.as_str()?.ends_with("List");
    value.get("items").filter(|_| is_list)?.as_array()
}

/// Reads one object.
pub fn read(value: &Value) -> Read {
    let (group_version, kind) = match (text(value, "apiVersion"), text(value, "kind")) {
        (Ok(group_version), Ok(kind)) => (group_version, kind),
        (version, kind) => {
            let mistakes = [version.err(), kind.err()].into_iter().flatten().collect();
            return Read {
                object: None,
                mistakes,
            };
        }
    };
    let (group, version) = group_version.split_once('/').unwrap_or(("", group_version));
    match (group, version, kind) {
        (GROUP, VERSION, "Gate") => gate(value),
        (GROUP, VERSION, "Gatekeeper") => gatekeeper(value),
        (GROUP, VERSION, "Approval") => approval(value),
        (GROUP, VERSION, "GatePolicy") => gate_policy(value),
        (GROUP, VERSION, "GatedSource") => source(value),
        (GROUP, VERSION, other) => Read::refused(Refusal::new(
            "kind",
            format!("{GROUP}/{VERSION} has no kind `{other}`"),
            KINDS,
        )),
        (GROUP, other, _) => Read::refused(Refusal::new(
            "apiVersion",
            format!("{GROUP} has no version `{other}`"),
            format!("write {GROUP}/{VERSION}"),
        )),
        ("", "v1", "ConfigMap") => config_map(value),
        ("", "v1", "Namespace") => namespace(value),
        _ => match group::check(group, kind, value) {
            mistakes if mistakes.is_empty() => Read {
                object: Some(Object::Other),
                mistakes,
            },
            mistakes => Read {
                object: None,
                mistakes,
            },
        },
    }
}

fn text<'a>(value: &'a Value, field: &str) -> Result<&'a str, Refusal> {
    let remedy = match field {
        "kind" => KINDS.to_owned(),
        _ => format!("write {GROUP}/{VERSION}"),
    };
    match value.get(field) {
        Some(Value::String(text)) if !text.is_empty() => Ok(text),
        None | Some(Value::Null) => Err(Refusal::new(field, "it is missing", remedy)),
        Some(_) => Err(Refusal::new(field, "it is no text", remedy)),
    }
}

/// The schemas of the kinds.
struct Schemas {
    gate: JSONSchemaProps,
    gatekeeper: JSONSchemaProps,
    approval: JSONSchemaProps,
    gate_policy: JSONSchemaProps,
    gated_source: JSONSchemaProps,
    namespace: JSONSchemaProps,
    config_map: JSONSchemaProps,
}

static SCHEMAS: LazyLock<Schemas> = LazyLock::new(|| Schemas {
    gate: schema::of_kind("Gate"),
    gatekeeper: schema::of_kind("Gatekeeper"),
    approval: schema::of_kind("Approval"),
    gate_policy: schema::of_kind("GatePolicy"),
    gated_source: schema::of_kind("GatedSource"),
    namespace: schema::of_namespaces(),
    config_map: schema::of_config_maps(),
});

fn gate(value: &Value) -> Read {
    let check = |gate: &Gate| match gate::check(gate) {
        Ok(_) => force::check(gate),
        Err(refusals) => refusals.into_vec(),
    };
    object(
        &SCHEMAS.gate,
        names::LABEL_LENGTH,
        value,
        check,
        Object::Gate,
    )
}

fn gatekeeper(value: &Value) -> Read {
    let check = |object: &Gatekeeper| mistakes_in(gatekeeper::check(&object.spec));
    let (schema, longest) = (&SCHEMAS.gatekeeper, names::LABEL_LENGTH);
    object(schema, longest, value, check, Object::Gatekeeper)
}

fn approval(value: &Value) -> Read {
    let check = |object: &Approval| {
        let why = Revision::parse(&object.spec.revision).err();
        let remedy = "write the revision in full, as the source reports it";
        let refuse =
            |why: revision::Mistake| Refusal::new("spec.revision", why.to_string(), remedy);
        why.map(refuse).into_iter().collect()
    };
    let (schema, longest) = (&SCHEMAS.approval, names::NAME_LENGTH);
    object(schema, longest, value, check, Object::Approval)
}

fn gate_policy(value: &Value) -> Read {
    let check = |object: &GatePolicy| mistakes_in(gate::policy::check(&object.spec));
    let (schema, longest) = (&SCHEMAS.gate_policy, names::LABEL_LENGTH);
    object(schema, longest, value, check, Object::GatePolicy)
}

fn source(value: &Value) -> Read {
    let check = |object: &GatedSource| mistakes_in(gated_source::check(object));
    let (schema, longest) = (&SCHEMAS.gated_source, names::LABEL_LENGTH);
    object(schema, longest, value, check, Object::GatedSource)
}

fn namespace(value: &Value) -> Read {
    let (schema, longest) = (&SCHEMAS.namespace, names::LABEL_LENGTH);
    object(
        schema,
        longest,
        value,
        |_: &Namespace| Vec::new(),
        Object::Namespace,
    )
}

fn config_map(value: &Value) -> Read {
    let (schema, longest) = (&SCHEMAS.config_map, names::NAME_LENGTH);
    object(
        schema,
        longest,
        value,
        |_: &ConfigMap| Vec::new(),
        Object::ConfigMap,
    )
}

fn mistakes_in<T>(checked: Result<T, Refusals>) -> Vec<Refusal> {
    checked.err().map(Refusals::into_vec).unwrap_or_default()
}

/// Reads an object of one kind: first by its schema, and then, as far as that can be read, by what
/// `check` knows of its meaning.
fn object<T: DeserializeOwned>(
    schema: &JSONSchemaProps,
    longest_name: usize,
    value: &Value,
    check: impl FnOnce(&T) -> Vec<Refusal>,
    kind: impl FnOnce(Box<T>) -> Object,
) -> Read {
    let mut mistakes = metadata::check(value, longest_name);
    let (read, unreadable) = typed(schema, value, &mut mistakes);
    if let Some(read) = &read {
        add(&mut mistakes, check(read), &unreadable);
    }
    // Without what cannot be read it is another object.
    let whole = read.filter(|_| unreadable.is_empty());
    Read {
        object: whole.map(|read| kind(Box::new(read))),
        mistakes,
    }
}

/// What the decisions say is wrong, instead of what the schema says of the same field: they know
/// better what was meant. Of a field that cannot be read, and of those around it, they know nothing.
fn add(mistakes: &mut Vec<Refusal>, mut known: Vec<Refusal>, unreadable: &[String]) {
    let is_around = |field: &str, path: &str| {
        let rest = path.strip_prefix(field);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    known.retain(|refusal| {
        let field = refusal.field.as_str();
        !unreadable.iter().any(|path| is_around(field, path))
    });
    mistakes.retain(|mistake| !known.iter().any(|known| known.field == mistake.field));
    mistakes.extend(known);
}

/// The object, if what its fields hold is of the right types, without those that hold something else:
/// their paths.
fn typed<T: DeserializeOwned>(
    schema: &JSONSchemaProps,
    value: &Value,
    mistakes: &mut Vec<Refusal>,
) -> (Option<T>, Vec<String>) {
    let mut value = value.clone();
    let Value::Object(fields) = &mut value else {
        return (None, Vec::new());
    };
    // Written by the controller alone, and never a cause of a decision.
    fields.remove("status");
    let unreadable = schema::check(schema, &mut value, mistakes);
    metadata::keep_what_matters(&mut value);
    let object = serde_json::from_value(value).map_err(|error| {
        if mistakes.is_empty() {
            let remedy = "see the reference of this kind";
            mistakes.push(Refusal::new("", error.to_string(), remedy));
        }
    });
    (object.ok(), unreadable)
}

#[cfg(test)]
mod tests;
