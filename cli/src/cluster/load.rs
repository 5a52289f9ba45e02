//! The objects that decisions are made from, as the API server has them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Resource;
use kube::api::{Api, ListParams};
use sluice_core::delivery::gated_source;
use sluice_core::delivery::pipeline::{self, What};
use sluice_core::delivery::rollout;
use sluice_core::offline::simulate::{Key, Origin, World};
use sluice_crds::{Approval, Gate, GatedSource, Gatekeeper, Pipeline, Rollout, Subject};

use super::connection::Connection;
use super::request::{each, list, missing, visible};
use super::seen::Seen;
use super::{policies, reach};

/// Up to how many gatekeepers of a namespace are read one by one.
const FEW: usize = 20;

/// Which gates.
#[derive(Clone, Debug)]
pub(crate) enum Scope<'a> {
    /// Those of these names, in the connection's namespace; with those that gate policies add to
    /// what somebody wants to do there.
    Named(&'a [String], Option<&'a Subject>),
    /// Those that a gated source names, of any namespace, with those that gate policies add.
    Of(&'a GatedSource),
    /// Those that the environments of a pipeline name, with those that gate policies add.
    Promoting(&'a Pipeline),
    /// Those that a rollout and its batches name, with those that gate policies add.
    Rolling(&'a Rollout),
    /// Those, of any namespace, as far as they are there.
    These(BTreeSet<Key>),
    /// All that the page asks for, in the connection's namespace or everywhere.
    All { everywhere: bool, page: ListParams },
}

impl Scope<'_> {
    /// All in the connection's namespace, or everywhere.
    pub(crate) fn all(everywhere: bool) -> Self {
        let page = ListParams::default();
        Self::All { everywhere, page }
    }
}

/// Reads the gates of `scope` and everything that they name.
///
/// # Errors
/// A gate that is named and not there; anything that keeps us from reading gates or gatekeepers.
pub(crate) async fn load(
    connection: &Connection,
    scope: &Scope<'_>,
    trust_unverified: bool,
) -> Result<Seen> {
    let (gates, mut notes) = match scope {
        Scope::Named(names, _) => (named(connection, names).await?, Vec::new()),
        Scope::Of(source) => visible(connection, named_by(source)).await,
        Scope::Promoting(object) => visible(connection, named_by_pipeline(object)).await,
        Scope::Rolling(object) => visible(connection, named_by_rollout(object)).await,
        Scope::These(keys) => visible(connection, keys.clone()).await,
        Scope::All { everywhere, page } => {
            let api = connection.api(connection.area(*everywhere));
            (keyed(list(&api, page.clone()).await?).collect(), Vec::new())
        }
    };
    let mut world = World {
        origin: Origin::Cluster,
        gates,
        ..World::default()
    };
    let subject = match scope {
        Scope::Named(_, subject) => subject.cloned(),
        Scope::Of(source) => Some(gated_source::subject(source, None)),
        Scope::Promoting(object) => Some(pipeline::subject(object, "", What::Promote, None)),
        Scope::Rolling(object) => Some(rollout::subject(object, 0, 1, None)),
        Scope::These(_) | Scope::All { .. } => None,
    };
    if let Some(subject) = subject {
        let mut namespaces = BTreeSet::from([connection.namespace.as_str()]);
        if let Scope::Promoting(object) = scope {
            let environments = object.spec.environments.iter();
            namespaces.extend(environments.flat_map(|it| pipeline::namespaces(object, it)));
        }
        notes.extend(policies::add(connection, &mut world, &subject, &namespaces).await?);
    }
    nested(connection, &mut world).await?;
    world.forbidden = reach::forbidden(&world);
    if let Scope::Of(source) = scope {
        world.forbidden.extend(reach::forbidden_to(source));
    }
    world.approvals = approvals(connection, &world.gatekeepers).await?;
    world.pipelines = pipelines(connection, &world.gatekeepers).await;
    world.config_maps = config_maps(connection, &world.gatekeepers).await;
    Ok(Seen {
        world,
        notes,
        trust_unverified,
    })
}

/// Objects with their names.
fn keyed<K: Resource>(objects: Vec<K>) -> impl Iterator<Item = (Key, K)> {
    let objects = objects.into_iter();
    objects.map(|object| (Key::of(object.meta()), object))
}

async fn named(connection: &Connection, names: &[String]) -> Result<BTreeMap<Key, Gate>> {
    let key = |name: &String| connection.key(name);
    let mut gates = BTreeMap::new();
    for (key, found) in each(connection, names.iter().map(key)).await {
        let Some(gate) = found? else {
            return Err(missing("gate", &key));
        };
        gates.insert(key, gate);
    }
    Ok(gates)
}

/// The gates that a gated source names.
fn named_by(source: &GatedSource) -> BTreeSet<Key> {
    let own = Key::of(&source.metadata).namespace;
    let refs = source.spec.gates.refs.iter();
    refs.map(|it| Key::from_reference(&own, it.namespace.as_deref(), &it.name))
        .collect()
}

/// The gates that the environments of a pipeline name.
fn named_by_pipeline(object: &Pipeline) -> BTreeSet<Key> {
    let own = Key::of(&object.metadata).namespace;
    let environments = object.spec.environments.iter();
    let sets = environments.filter_map(|it| it.gates.as_ref());
    let refs = sets.flat_map(|set| &set.refs);
    refs.map(|it| Key::from_reference(&own, it.namespace.as_deref(), &it.name))
        .collect()
}

/// The gates that a rollout and its batches name.
fn named_by_rollout(object: &Rollout) -> BTreeSet<Key> {
    let own = Key::of(&object.metadata).namespace;
    let batches = object.spec.rollout_plan.rollout_batches.iter();
    let sets = object.spec.gates.iter();
    let sets = sets.chain(batches.filter_map(|it| it.gates.as_ref()));
    let refs = sets.flat_map(|set| &set.refs);
    refs.map(|it| Key::from_reference(&own, it.namespace.as_deref(), &it.name))
        .collect()
}

/// The gatekeepers of the gates, the gates that those name, and so on.
async fn nested(connection: &Connection, world: &mut World) -> Result<()> {
    let known = world.gates.values().chain(world.nested.values());
    let mut fresh: Vec<Gate> = known.cloned().collect();
    while !fresh.is_empty() {
        let keepers = gatekeepers(connection, &fresh, &world.gatekeepers).await?;
        let wanted: BTreeSet<Key> = keepers
            .values()
            .flat_map(|keeper| reach::named_by(keeper))
            .filter(|key| !world.gates.contains_key(key) && !world.nested.contains_key(key))
            .collect();
        world.gatekeepers.extend(keepers);
        fresh.clear();
        for (key, found) in each(connection, wanted).await {
            if let Some(gate) = found? {
                world.nested.insert(key, Gate::clone(&gate));
                fresh.push(gate);
            }
        }
    }
    Ok(())
}

/// The approvals for gatekeepers that ask for some.
async fn approvals(
    connection: &Connection,
    gatekeepers: &BTreeMap<Key, Arc<Gatekeeper>>,
) -> Result<BTreeMap<Key, Arc<Approval>>> {
    let asking = gatekeepers.iter();
    let asking = asking.filter(|(_, keeper)| keeper.spec.approval.is_some());
    let namespaces: BTreeSet<&String> = asking.map(|(key, _)| &key.namespace).collect();
    let mut all = BTreeMap::new();
    for namespace in namespaces {
        let api: Api<Approval> = connection.api(Some(namespace));
        let listed = list(&api, ListParams::default()).await?;
        all.extend(keyed(listed).map(|(key, approval)| (key, Arc::new(approval))));
    }
    Ok(all)
}

/// The Pipelines that gatekeepers name. Not everybody who may see gates may see those: then the
/// controller's report counts.
async fn pipelines(
    connection: &Connection,
    gatekeepers: &BTreeMap<Key, Arc<Gatekeeper>>,
) -> BTreeMap<Key, Option<Arc<Pipeline>>> {
    let named = gatekeepers.values();
    let wanted: BTreeSet<Key> = named.filter_map(|it| reach::pipeline(it)).collect();
    let found = each(connection, wanted).await.into_iter();
    let known = found.filter_map(|(key, found)| match found {
        Ok(None) => None,
        Ok(Some(pipeline)) => Some((key, Some(Arc::new(pipeline)))),
        Err(_) => Some((key, None)),
    });
    known.collect()
}

/// The gatekeepers of `gates` that are not known yet.
async fn gatekeepers(
    connection: &Connection,
    gates: &[Gate],
    known: &BTreeMap<Key, Arc<Gatekeeper>>,
) -> Result<BTreeMap<Key, Arc<Gatekeeper>>> {
    let mut wanted: BTreeMap<String, BTreeSet<Key>> = BTreeMap::new();
    for gate in gates {
        let uncounted = reach::uncounted(gate);
        let named = gate.spec.gatekeepers.iter();
        for key in named.map(|reference| Key::named_by(gate, reference)) {
            if !known.contains_key(&key) && !uncounted.iter().any(|(other, _)| *other == key) {
                let namespace = key.namespace.clone();
                wanted.entry(namespace).or_default().insert(key);
            }
        }
    }
    let mut all = BTreeMap::new();
    let mut few = Vec::new();
    for (namespace, keys) in wanted {
        if keys.len() > FEW {
            let api: Api<Gatekeeper> = connection.api(Some(&namespace));
            let listed = list(&api, ListParams::default()).await?;
            all.extend(keyed(listed).map(|(key, keeper)| (key, Arc::new(keeper))));
        } else {
            few.extend(keys);
        }
    }
    for (key, found) in each(connection, few).await {
        all.extend(found?.map(|keeper| (key, Arc::new(keeper))));
    }
    Ok(all)
}

/// The ConfigMaps that gatekeepers are judged from. Not everybody who may see gates may read those:
/// then the controller's report counts.
async fn config_maps(
    connection: &Connection,
    gatekeepers: &BTreeMap<Key, Arc<Gatekeeper>>,
) -> BTreeMap<Key, Option<ConfigMap>> {
    let maps = gatekeepers.values();
    let maps = maps.flat_map(|keeper| World::maps_of(keeper));
    let wanted: BTreeSet<Key> = maps.collect();
    let found = each(connection, wanted).await.into_iter();
    let known = found.filter_map(|(key, found)| match found {
        Ok(None) => None,
        Ok(Some(map)) => Some((key, Some(map))),
        Err(_) => Some((key, None)),
    });
    known.collect()
}
