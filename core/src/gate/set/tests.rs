//! Sets of gates over a world of objects, with policies.

use std::sync::Arc;

use sluice_crds::{Decision, GateReference, GateSet, Require, Subject};

use super::*;
use crate::gate::Identity;
use crate::offline::lint::{self, Object};
use crate::offline::simulate::{self, Key, World};
use crate::revision::Revision;
use crate::time::clock::Now;

mod calendar;
mod instants;
mod policies;
mod truth;

const NOW: &str = "2026-11-20T10:00:00Z";

/// A gate of each kind in the namespace apps, kept by a gatekeeper of its own name.
const GATES: [(&str, &str); 5] = [
    ("open", "{manual: {state: open}}"),
    (
        "closed",
        "{manual: {state: closed, reason: incident, until: '2026-11-20T12:00:00Z'}}",
    ),
    ("listed", "{revisions: {allow: [v1.2.3]}}"),
    (
        "blind-open",
        "{onError: open, schedule: {closed: [{calendar: {configMapRef: {name: lost, key: a}}}]}}",
    ),
    (
        "blind-closed",
        "{onError: closed, schedule: {closed: [{calendar: {configMapRef: {name: lost, key: a}}}]}}",
    ),
];

/// A world with those gates, and these objects besides.
fn world(besides: &str) -> World {
    let mut world = World::default();
    let gates = GATES.iter().flat_map(|(name, spec)| {
        [
            object("Gatekeeper", "apps", name, spec),
            object(
                "Gate",
                "apps",
                name,
                &format!("{{gatekeepers: [{{name: {name}}}]}}"),
            ),
        ]
    });
    let besides: Vec<serde_json::Value> = serde_saphyr::from_multiple(besides).unwrap();
    for value in gates.chain(besides.into_iter().filter(|value| !value.is_null())) {
        match lint::read(&value).object.unwrap() {
            Object::Gate(gate) => {
                world.gates.insert(Key::of(&gate.metadata), *gate);
            }
            Object::Gatekeeper(object) => {
                let key = Key::of(&object.metadata);
                world.gatekeepers.insert(key, Arc::new(*object));
            }
            Object::GatePolicy(policy) => {
                let name = policy.metadata.name.clone().unwrap();
                world.policies.insert(name, Ok(Arc::new(*policy)));
            }
            Object::Namespace(namespace) => {
                let labels = namespace.metadata.labels.unwrap_or_default();
                world
                    .namespaces
                    .insert(namespace.metadata.name.unwrap(), labels);
            }
            other => unreachable!("{other:?}"),
        }
    }
    world
}

fn object(kind: &str, namespace: &str, name: &str, spec: &str) -> serde_json::Value {
    let text = format!(
        "{{apiVersion: sluice.dev/v1alpha1, kind: {kind}, \
         metadata: {{name: {name}, namespace: {namespace}}}, spec: {spec}}}"
    );
    serde_saphyr::from_str(&text).unwrap()
}

fn set(require: Require, names: &[&str]) -> GateSet {
    let reference = |name: &&str| match name.split_once('/') {
        None => GateReference {
            name: (*name).to_owned(),
            namespace: None,
        },
        Some((namespace, name)) => GateReference {
            name: name.to_owned(),
            namespace: Some(namespace.to_owned()),
        },
    };
    GateSet {
        require,
        refs: names.iter().map(reference).collect(),
    }
}

/// A Pipeline in the namespace apps asks for its gates, with a revision or without.
fn ask(world: &World, set: &GateSet, revision: Option<&str>) -> Decision {
    let revision = revision.map(|text| Revision::parse(text).unwrap());
    let subject = Subject {
        kind: "Pipeline".to_owned(),
        namespace: "apps".to_owned(),
        name: Some("app".to_owned()),
        environment: None,
        action: "promote".to_owned(),
        step: None,
        revision: revision.as_ref().map(ToString::to_string),
    };
    let now = Now::given(NOW.parse().unwrap());
    let question = Question::new(now, revision.as_ref());
    simulate::decide(world, Some(set), subject, Identity::Trusted, question)
}
