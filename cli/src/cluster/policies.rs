//! Gate policies: the gates that they add to every question in a namespace.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::{Resource, ResourceExt};
use sluice_core::gate;
use sluice_core::gate::policy::{Concern, Readable};
use sluice_core::offline::simulate::{Key, World};
use sluice_crds::{GatePolicy, Subject};

use super::connection::Connection;
use super::fault::{Cannot, code, explain};
use super::request::visible;

/// Adds the policies to `world`, with the labels by which they choose these namespaces, and the gates
/// that they name. What somebody may not see of that counts as closed: returns what
/// that is.
///
/// # Errors
/// The policies cannot be listed.
pub(super) async fn add(
    connection: &Connection,
    world: &mut World,
    subject: &Subject,
    namespaces: &BTreeSet<&str>,
) -> Result<Vec<String>> {
    for (name, policy) in policies(connection).await? {
        world.policies.insert(name, policy);
    }
    if world.policies.is_empty() {
        return Ok(Vec::new());
    }
    let mut notes = Vec::new();
    for name in namespaces {
        match connection.all::<Namespace>().get(name).await {
            Ok(namespace) => {
                let labels = namespace.labels().clone();
                world.namespaces.insert((*name).to_owned(), labels);
            }
            // Only policies that choose by labels have to know them.
            Err(_) if !chooses(world) => {}
            Err(error) => {
                let what = format!("read the labels of the namespace {name}");
                notes.push(format!(
                    "{}; every gate policy counts",
                    explain(error, what)
                ));
            }
        }
    }
    let concerns = |policy: &&Arc<GatePolicy>| {
        namespaces.iter().any(|name| {
            let there = Subject {
                namespace: (*name).to_owned(),
                ..subject.clone()
            };
            let labels = || world.namespaces.get(*name).cloned();
            gate::policy::concerns(&policy.spec, &there, labels) != Concern::No
        })
    };
    let named = world.policies.values().flatten().filter(concerns);
    let wanted: BTreeSet<Key> = named
        .flat_map(|policy| gates_of(policy))
        .filter(|key| !world.gates.contains_key(key))
        .collect();
    let (gates, unseen) = visible(connection, wanted).await;
    world.nested.extend(gates);
    notes.extend(unseen);
    Ok(notes)
}

/// The gates that a policy names.
pub(crate) fn gates_of(policy: &GatePolicy) -> Vec<Key> {
    let refs = policy.spec.gates.refs.iter();
    let key = |namespace: &str, name| Key::from_reference(namespace, None, name);
    refs.filter_map(|it| Some(key(it.namespace.as_deref()?, &it.name)))
        .collect()
}

/// Whether any policy chooses namespaces by their labels.
fn chooses(world: &World) -> bool {
    let mut policies = world.policies.values().flatten();
    policies.any(|policy| !policy.spec.namespace_selector.is_empty())
}

/// Every policy by its name. There are none where the API server does not know the kind.
async fn policies(connection: &Connection) -> Result<Vec<(String, Readable)>> {
    let resource = ApiResource::erase::<GatePolicy>(&());
    let api: Api<DynamicObject> = Api::all_with(connection.client.clone(), &resource);
    let listed = match api.list(&ListParams::default()).await {
        Err(error) if code(&error) == Some(404) => Vec::new(),
        Err(error) if code(&error) == Some(403) => {
            let kind = GatePolicy::plural(&());
            return Err(anyhow!(
                "{}; ask for the right to list {kind}, which the chart gives to everybody, or ask \
                 about gates alone with --without-policies",
                explain(error, "list gate policies")
            ));
        }
        listed => listed.cannot("list gate policies")?.items,
    };
    let read = |object: DynamicObject| {
        let name = object.name_any();
        let policy = serde_json::to_value(object).and_then(serde_json::from_value::<GatePolicy>);
        let policy = policy.map(Arc::new);
        (name, policy.map_err(|error| error.to_string().into()))
    };
    Ok(listed.into_iter().map(read).collect())
}
