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

use super::{Connection, explain, load, status};

/// Adds the policies to `world`, with the labels by which they choose the connection's namespace,
/// and the gates that they name. What somebody may not see of that counts as closed: returns what
/// that is.
///
/// # Errors
/// The policies cannot be listed.
pub(super) async fn add(
    connection: &Connection,
    world: &mut World,
    subject: &Subject,
) -> Result<Vec<String>> {
    for (name, policy) in policies(connection).await? {
        world.policies.insert(name, policy);
    }
    if world.policies.is_empty() {
        return Ok(Vec::new());
    }
    let mut notes = Vec::new();
    let namespaces: Api<Namespace> = Api::all(connection.client.clone());
    match namespaces.get(&connection.namespace).await {
        Ok(namespace) => {
            let labels = namespace.labels().clone();
            world
                .namespaces
                .insert(connection.namespace.clone(), labels);
        }
        // Only policies that choose by labels have to know them.
        Err(_) if !chooses(world) => {}
        Err(error) => {
            let what = format!("read the labels of the namespace {}", connection.namespace);
            let error = explain(error, &what);
            notes.push(format!("{error}; every gate policy counts"));
        }
    }
    let labels = || world.namespaces.get(&connection.namespace).cloned();
    let concerns = |policy: &&Arc<GatePolicy>| {
        gate::policy::concerns(&policy.spec, subject, labels) != Concern::No
    };
    let named = world.policies.values().flatten().filter(concerns);
    let named = named.flat_map(|policy| &policy.spec.gates.refs);
    let wanted: BTreeSet<Key> = named
        .filter_map(|gate| {
            Some(Key::from_reference(
                "",
                gate.namespace.as_deref()?.into(),
                &gate.name,
            ))
        })
        .filter(|key| !world.gates.contains_key(key))
        .collect();
    let (gates, unseen) = load::visible(connection, wanted).await;
    world.nested.extend(gates);
    notes.extend(unseen);
    Ok(notes)
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
    let page = ListParams::default();
    let listed = match api.list(&page).await {
        Err(error) if status(&error).is_some_and(|status| status.code == 404) => Vec::new(),
        Err(error) if status(&error).is_some_and(|status| status.code == 403) => {
            let kind = GatePolicy::plural(&());
            return Err(anyhow!(
                "{}; ask for the right to list {kind}, which the chart gives to everybody, or ask \
                 about gates alone with --without-policies",
                explain(error, "list gate policies")
            ));
        }
        Err(error) => return Err(explain(error, "list gate policies")),
        Ok(listed) => listed.items,
    };
    let read = |object: DynamicObject| {
        let name = object.name_any();
        let policy = serde_json::to_value(object).and_then(serde_json::from_value::<GatePolicy>);
        (
            name,
            policy
                .map(Arc::new)
                .map_err(|error| error.to_string().into()),
        )
    };
    Ok(listed.into_iter().map(read).collect())
}
