//! The objects that decisions are made from, as the API server has them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::{Result, bail};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams};
use sluice_core::offline::simulate::{Key, Origin, World};
use sluice_crds::{Approval, Gate, GatedSource, Gatekeeper, Subject};

use super::{Connection, Seen, explain, policies, reach, status};

/// How many requests are under way at once.
pub(super) const AT_ONCE: usize = 16;
/// Up to how many gatekeepers of a namespace are read one by one.
const FEW: usize = 20;
/// How many objects one answer of the API server holds.
const PAGE: u32 = 500;

/// Which gates.
#[derive(Clone, Debug)]
pub(crate) enum Scope {
    /// Those of these names, in the connection's namespace.
    Named(Vec<String>),
    /// The same, with those that gate policies add to what somebody wants to do there.
    Asked(Vec<String>, Box<Subject>),
    /// Those that a gated source names, of any namespace, with those that gate policies add.
    Of(Box<GatedSource>, Box<Subject>),
    /// Those, of any namespace, as far as they are there.
    These(BTreeSet<Key>),
    /// All in the connection's namespace that the page asks for.
    Namespace(ListParams),
    /// All that the page asks for.
    Everywhere(ListParams),
}

impl Scope {
    /// All in the connection's namespace.
    pub(crate) fn namespace() -> Self {
        Self::Namespace(ListParams::default())
    }

    /// All.
    pub(crate) fn everywhere() -> Self {
        Self::Everywhere(ListParams::default())
    }
}

/// Reads the gates of `scope` and everything that they name.
///
/// # Errors
/// A gate that is named and not there; whatever keeps us from reading gates or gatekeepers.
pub(crate) async fn load(
    connection: &Connection,
    scope: &Scope,
    trust_unverified: bool,
) -> Result<Seen> {
    let mut world = World {
        origin: Origin::Cluster,
        ..World::default()
    };
    let mut notes = Vec::new();
    world.gates = match scope {
        Scope::Of(source, _) => {
            let (gates, unseen) = visible(connection, named_by(source)).await;
            notes.extend(unseen);
            gates
        }
        Scope::Named(names) | Scope::Asked(names, _) => named(connection, names).await?,
        Scope::These(keys) => {
            let (gates, unseen) = visible(connection, keys.clone()).await;
            notes.extend(unseen);
            gates
        }
        Scope::Namespace(page) => {
            let api = Api::namespaced(connection.client.clone(), &connection.namespace);
            gates(&api, page).await?
        }
        Scope::Everywhere(page) => gates(&Api::all(connection.client.clone()), page).await?,
    };
    if let Scope::Asked(_, subject) | Scope::Of(_, subject) = scope {
        notes.extend(policies::add(connection, &mut world, subject).await?);
    }
    nested(connection, &mut world).await?;
    world.forbidden = reach::forbidden(&world);
    if let Scope::Of(source, _) = scope {
        world.forbidden.extend(reach::forbidden_to(source));
    }
    world.approvals = approvals(connection, &world.gatekeepers).await?;
    world.config_maps = config_maps(connection, &world.gatekeepers).await;
    Ok(Seen {
        world,
        notes,
        trust_unverified,
    })
}

async fn named(connection: &Connection, names: &[String]) -> Result<BTreeMap<Key, Gate>> {
    let api: Api<Gate> = Api::namespaced(connection.client.clone(), &connection.namespace);
    let one = async |name: &String| {
        let found = api.get_opt(name).await;
        match found.map_err(|error| explain(error, &format!("read the gate {name}")))? {
            Some(gate) => Ok((Key::of(&gate.metadata), gate)),
            None => bail!(
                "there is no gate `{name}` in the namespace {}; name another, or another namespace with -n",
                connection.namespace
            ),
        }
    };
    stream::iter(names)
        .map(one)
        .buffered(AT_ONCE)
        .try_collect()
        .await
}

/// The gates that a gated source names.
fn named_by(source: &GatedSource) -> BTreeSet<Key> {
    let own = Key::of(&source.metadata).namespace;
    let refs = source.spec.gates.refs.iter();
    refs.map(|it| Key::from_reference(&own, it.namespace.as_deref(), &it.name))
        .collect()
}

/// Gates of any namespace, as far as they are there and may be seen; and what may not, which counts
/// as closed.
pub(super) async fn visible(
    connection: &Connection,
    wanted: BTreeSet<Key>,
) -> (BTreeMap<Key, Gate>, Vec<String>) {
    let one = async |key: Key| {
        let api: Api<Gate> = Api::namespaced(connection.client.clone(), &key.namespace);
        let found = api.get_opt(&key.name).await;
        let found = found.map_err(|error| explain(error, &format!("read the gate {key}")));
        (key, found)
    };
    let found: Vec<_> = stream::iter(wanted)
        .map(one)
        .buffered(AT_ONCE)
        .collect()
        .await;
    let (mut gates, mut notes) = (BTreeMap::new(), Vec::new());
    for (key, found) in found {
        match found {
            Ok(Some(gate)) => drop(gates.insert(key, gate)),
            Ok(None) => {}
            Err(error) => notes.push(format!("{error}; it counts as closed")),
        }
    }
    (gates, notes)
}

async fn gates(api: &Api<Gate>, page: &ListParams) -> Result<BTreeMap<Key, Gate>> {
    let all = list(api, page.clone(), "list gates").await?;
    Ok(all
        .into_iter()
        .map(|gate| (Key::of(&gate.metadata), gate))
        .collect())
}

/// All the objects that `page` asks for, page by page.
pub(crate) async fn list<K>(api: &Api<K>, page: ListParams, what: &str) -> Result<Vec<K>>
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let all = pages(api, page).await;
    all.map_err(|error| explain(error, what))
}

/// The same, with the API server's own words for what went wrong.
pub(super) async fn pages<K>(api: &Api<K>, page: ListParams) -> Result<Vec<K>, kube::Error>
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let mut all = Vec::new();
    let mut page = page.limit(PAGE);
    loop {
        let listed = api.list(&page).await?;
        all.extend(listed.items);
        match listed.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(all),
        }
    }
}

/// The gatekeepers of the gates, the gates that those name, and so on.
async fn nested(connection: &Connection, world: &mut World) -> Result<()> {
    let known = world.gates.values().chain(world.nested.values());
    let mut fresh: Vec<Gate> = known.cloned().collect();
    while !fresh.is_empty() {
        let known: BTreeSet<Key> = world.gatekeepers.keys().cloned().collect();
        let keepers = gatekeepers(connection, &fresh, &known).await?;
        let wanted: BTreeSet<Key> = keepers
            .values()
            .flat_map(|keeper| reach::named_by(keeper))
            .filter(|key| !world.gates.contains_key(key) && !world.nested.contains_key(key))
            .collect();
        world.gatekeepers.extend(keepers);
        fresh = elsewhere(connection, wanted).await?;
        let keyed = fresh
            .iter()
            .map(|gate| (Key::of(&gate.metadata), gate.clone()));
        world.nested.extend(keyed);
    }
    Ok(())
}

/// Gates of any namespace, as far as they are there.
async fn elsewhere(connection: &Connection, wanted: BTreeSet<Key>) -> Result<Vec<Gate>> {
    let one = async |key: Key| {
        let api: Api<Gate> = Api::namespaced(connection.client.clone(), &key.namespace);
        let found = api.get_opt(&key.name).await;
        found.map_err(|error| explain(error, &format!("read the gate {key}")))
    };
    let found = stream::iter(wanted).map(one).buffered(AT_ONCE);
    found
        .try_filter_map(async |found| Ok(found))
        .try_collect()
        .await
}

/// The approvals for gatekeepers that ask for some.
async fn approvals(
    connection: &Connection,
    gatekeepers: &BTreeMap<Key, Arc<Gatekeeper>>,
) -> Result<BTreeMap<Key, Arc<Approval>>> {
    let asking = gatekeepers
        .iter()
        .filter(|(_, keeper)| keeper.spec.approval.is_some());
    let namespaces: BTreeSet<&String> = asking.map(|(key, _)| &key.namespace).collect();
    let mut all = BTreeMap::new();
    for namespace in namespaces {
        let api: Api<Approval> = Api::namespaced(connection.client.clone(), namespace);
        let what = format!("list the approvals of {namespace}");
        let listed = list(&api, ListParams::default(), &what).await?;
        let keyed = |approval: Approval| (Key::of(&approval.metadata), Arc::new(approval));
        all.extend(listed.into_iter().map(keyed));
    }
    Ok(all)
}

async fn gatekeepers(
    connection: &Connection,
    gates: &[Gate],
    known: &BTreeSet<Key>,
) -> Result<BTreeMap<Key, Arc<Gatekeeper>>> {
    let mut wanted: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for gate in gates {
        let uncounted = reach::uncounted(gate);
        let named = gate.spec.gatekeepers.iter();
        for key in named.map(|reference| Key::named_by(gate, reference)) {
            if !known.contains(&key) && !uncounted.iter().any(|(other, _)| *other == key) {
                wanted.entry(key.namespace).or_default().insert(key.name);
            }
        }
    }
    let each = async |(namespace, names): (String, BTreeSet<String>)| {
        let api: Api<Gatekeeper> = Api::namespaced(connection.client.clone(), &namespace);
        if names.len() > FEW {
            let what = format!("list the gatekeepers of {namespace}");
            return list(&api, ListParams::default(), &what).await;
        }
        let one = async |name: &String| {
            let found = api.get_opt(name).await;
            found
                .map_err(|error| explain(error, &format!("read the gatekeeper {namespace}/{name}")))
        };
        let found = stream::iter(&names).map(one).buffered(AT_ONCE);
        found
            .try_filter_map(async |found| Ok(found))
            .try_collect()
            .await
    };
    let found: Vec<Vec<Gatekeeper>> = stream::iter(wanted)
        .map(each)
        .buffered(AT_ONCE)
        .try_collect()
        .await?;
    let keyed = |keeper: Gatekeeper| (Key::of(&keeper.metadata), Arc::new(keeper));
    Ok(found.into_iter().flatten().map(keyed).collect())
}

/// The ConfigMaps that gatekeepers are judged from. Not everybody who may see gates may read those:
/// then the controller's report counts.
async fn config_maps(
    connection: &Connection,
    gatekeepers: &BTreeMap<Key, Arc<Gatekeeper>>,
) -> BTreeMap<Key, Option<ConfigMap>> {
    let maps = gatekeepers
        .values()
        .flat_map(|keeper| World::maps_of(keeper));
    let wanted: BTreeSet<Key> = maps.collect();
    let one = async |key: Key| {
        let api: Api<ConfigMap> = Api::namespaced(connection.client.clone(), &key.namespace);
        match api.get(&key.name).await {
            Ok(map) => Some((key, Some(map))),
            Err(error) if status(&error).is_some_and(|status| status.code == 404) => None,
            Err(_) => Some((key, None)),
        }
    };
    stream::iter(wanted)
        .map(one)
        .buffered(AT_ONCE)
        .filter_map(async |found| found)
        .collect()
        .await
}
