//! What admission or the controller would refuse, found without either.
//!
//! What comes in: an object as it was written, as a JSON value. What goes out: the object, and
//! every mistake in it with its field and the remedy. The schema is that of the
//! CustomResourceDefinitions; their rules (CEL) are not run but have a counterpart each in
//! [`crate::gate::check`], [`crate::gatekeeper::check`], [`crate::gate_policy::check`] and
//! [`crate::gated_source::check`], which a test makes sure of.

use std::sync::LazyLock;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sluice_crds::{Approval, GROUP, Gate, GatePolicy, GatedSource, Gatekeeper};

use crate::refusal::{Refusal, Refusals};
use crate::revision::Revision;
use crate::{gate, gate_policy, gated_source, gatekeeper};

mod force;
pub(crate) mod metadata;
mod schema;
mod world;

pub use world::{Remark, Subject, refusals, remarks};

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
    /// Anything else: passed over.
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
        _ => Read {
            object: Some(Object::Other),
            mistakes: Vec::new(),
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
    let mut mistakes = metadata::check(value, metadata::LABEL_LENGTH);
    let gate: Option<Gate> = typed(&SCHEMAS.gate, value, &mut mistakes);
    if let Some(gate) = &gate {
        match gate::check(gate) {
            Ok(_) => mistakes.extend(force::check(gate)),
            Err(refusals) => add(&mut mistakes, refusals),
        }
    }
    Read {
        object: gate.map(|gate| Object::Gate(Box::new(gate))),
        mistakes,
    }
}

fn gatekeeper(value: &Value) -> Read {
    let mut mistakes = metadata::check(value, metadata::LABEL_LENGTH);
    let object: Option<Gatekeeper> = typed(&SCHEMAS.gatekeeper, value, &mut mistakes);
    if let Some(Err(refusals)) = object
        .as_ref()
        .map(|object| gatekeeper::check(&object.spec))
    {
        add(&mut mistakes, refusals);
    }
    Read {
        object: object.map(|object| Object::Gatekeeper(Box::new(object))),
        mistakes,
    }
}

fn approval(value: &Value) -> Read {
    let mut mistakes = metadata::check(value, metadata::NAME_LENGTH);
    let object: Option<Approval> = typed(&SCHEMAS.approval, value, &mut mistakes);
    if let Some(Err(why)) = object
        .as_ref()
        .map(|object| Revision::parse(&object.spec.revision))
    {
        let remedy = "write the revision in full, as the source reports it";
        mistakes.push(Refusal::new("spec.revision", why.to_string(), remedy));
    }
    Read {
        object: object.map(|object| Object::Approval(Box::new(object))),
        mistakes,
    }
}

fn gate_policy(value: &Value) -> Read {
    let mut mistakes = metadata::check(value, metadata::LABEL_LENGTH);
    let object: Option<GatePolicy> = typed(&SCHEMAS.gate_policy, value, &mut mistakes);
    let checked = object
        .as_ref()
        .map(|object| gate_policy::check(&object.spec));
    if let Some(Err(refusals)) = checked {
        add(&mut mistakes, refusals);
    }
    Read {
        object: object.map(|object| Object::GatePolicy(Box::new(object))),
        mistakes,
    }
}

fn source(value: &Value) -> Read {
    let mut mistakes = metadata::check(value, metadata::LABEL_LENGTH);
    let object: Option<GatedSource> = typed(&SCHEMAS.gated_source, value, &mut mistakes);
    if let Some(Err(refusals)) = object.as_ref().map(gated_source::check) {
        add(&mut mistakes, refusals);
    }
    Read {
        object: object.map(|object| Object::GatedSource(Box::new(object))),
        mistakes,
    }
}

fn namespace(value: &Value) -> Read {
    let mut mistakes = metadata::check(value, metadata::LABEL_LENGTH);
    let object: Option<Namespace> = typed(&SCHEMAS.namespace, value, &mut mistakes);
    Read {
        object: object.map(|object| Object::Namespace(Box::new(object))),
        mistakes,
    }
}

fn config_map(value: &Value) -> Read {
    let mut mistakes = metadata::check(value, metadata::NAME_LENGTH);
    let object: Option<ConfigMap> = typed(&SCHEMAS.config_map, value, &mut mistakes);
    Read {
        object: object.map(|object| Object::ConfigMap(Box::new(object))),
        mistakes,
    }
}

/// What the decisions say is wrong, instead of what the schema says of the same field: they know
/// better what was meant.
fn add(mistakes: &mut Vec<Refusal>, refusals: Refusals) {
    let known = refusals.into_vec();
    mistakes.retain(|mistake| !known.iter().any(|known| known.field == mistake.field));
    mistakes.extend(known);
}

/// The object, if its fields are of the right types.
fn typed<T: DeserializeOwned>(
    schema: &JSONSchemaProps,
    value: &Value,
    mistakes: &mut Vec<Refusal>,
) -> Option<T> {
    let mut value = value.clone();
    let Value::Object(fields) = &mut value else {
        return None;
    };
    // Written by the controller alone, and never a cause of a decision.
    fields.remove("status");
    schema::check(schema, &mut value, mistakes);
    metadata::keep_what_matters(&mut value);
    match serde_json::from_value(value) {
        Ok(object) => Some(object),
        Err(_) if !mistakes.is_empty() => None,
        Err(error) => {
            mistakes.push(Refusal::new(
                "",
                error.to_string(),
                "see the reference of this kind",
            ));
            None
        }
    }
}

#[cfg(test)]
mod tests;
