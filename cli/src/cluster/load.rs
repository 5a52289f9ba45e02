//! The objects that decisions are made from, as the API server has them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::{Result, bail};
use futures::{StreamExt, TryStreamExt, stream};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams};
use sluice_core::gate::nested::FORBIDDEN;
use sluice_core::gate::{Identity, force};
use sluice_core::question::Question;
use sluice_core::simulate::{Decision, Key, Origin, Scene, World};
use sluice_crds::gate::Override;
use sluice_crds::{Approval, Gate, Gatekeeper, Setting};

use super::{Connection, explain, reach, status};

/// How many requests are under way at once.
const AT_ONCE: usize = 16;
/// Up to how many gatekeepers of a namespace are read one by one.
const FEW: usize = 20;
/// How many objects one answer of the API server holds.
const PAGE: u32 = 500;

/// Which gates.
#[derive(Clone, Debug)]
pub(crate) enum Scope {
    /// Those of these names, in the connection's namespace.
    Named(Vec<String>),
    /// All in the connection's namespace.
    Namespace,
    /// All.
    Everywhere,
}

/// Gates with everything that they are decided from.
pub(crate) struct Seen {
    pub(crate) world: World,
    /// Forces count although nobody verified who forces.
    trust_unverified: bool,
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
    world.gates = match scope {
        Scope::Named(names) => named(connection, names).await?,
        Scope::Namespace => {
            gates(&Api::namespaced(
                connection.client.clone(),
                &connection.namespace,
            ))
            .await?
        }
        Scope::Everywhere => gates(&Api::all(connection.client.clone())).await?,
    };
    nested(connection, &mut world).await?;
    world.approvals = approvals(connection, &world.gatekeepers).await?;
    world.config_maps = config_maps(connection, &world.gatekeepers).await;
    Ok(Seen {
        world,
        trust_unverified,
    })
}

impl Seen {
    /// A gate, ready to be decided, as of `now`. None: there is no such gate.
    pub(crate) fn scene(&self, key: &Key, now: Timestamp) -> Option<Scene> {
        let gate = self.world.gates.get(key)?;
        let identity = self.identity(gate, now);
        let uncounted = reach::uncounted(gate);
        let nests = |keeper: &Arc<Gatekeeper>| keeper.spec.gates.is_some();
        if uncounted.is_empty() && !self.world.gatekeepers.values().any(nests) {
            return Scene::new(&self.world, key, identity, now);
        }
        let mut world = self.world.clone();
        let counts = |keeper: &Key| uncounted.iter().all(|(key, _)| key != keeper);
        world.gatekeepers.retain(|keeper, _| counts(keeper));
        // Each gate around which there are others has forces of its own.
        let gates = self.world.gates.iter().chain(&self.world.nested);
        world.identities = gates
            .map(|(key, gate)| (key.clone(), self.identity(gate, now)))
            .collect();
        Scene::new(&world, key, identity, now)
    }

    /// What is decided about the gate of a scene.
    pub(crate) fn decide(&self, scene: &mut Scene, question: Question<'_>) -> Decision {
        let mut decision = scene.decide(question);
        reach::explain(&mut decision, &reach::uncounted(scene.gate()));
        decision
    }

    /// Whether the forces of `gate` count: if the controller has accepted the one in effect, it
    /// knows who is behind it. One that closes counts at once: whoever asks too early must not be
    /// told that the gate is open. And where none is in effect, there is nobody to doubt.
    fn identity(&self, gate: &Gate, now: Timestamp) -> Identity {
        if self.trust_unverified {
            return Identity::Trusted;
        }
        let accepted = gate
            .status
            .as_ref()
            .and_then(|status| status.r#override.as_ref());
        let forces = force::read(gate, Identity::Trusted, now);
        match (forces.asked_for(now), accepted) {
            (Some(force), Some(accepted)) if is_same(force, accepted) => Identity::Verified,
            (Some(force), _) if force.state == Setting::Open => Identity::Unverified,
            (Some(_) | None, _) => Identity::Trusted,
        }
    }
}

/// Statuses have whole seconds.
fn is_same(force: &force::Force, accepted: &Override) -> bool {
    let second = |at: Timestamp| at.as_second();
    force.state == accepted.state
        && force.by == accepted.by
        && force.reason == accepted.reason
        && second(force.until) == second(accepted.until.0)
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

async fn gates(api: &Api<Gate>) -> Result<BTreeMap<Key, Gate>> {
    let all = list(api, ListParams::default(), "list gates").await?;
    Ok(all
        .into_iter()
        .map(|gate| (Key::of(&gate.metadata), gate))
        .collect())
}

/// All the objects that `page` asks for, page by page.
pub(super) async fn list<K>(api: &Api<K>, page: ListParams, what: &str) -> Result<Vec<K>>
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let mut all = Vec::new();
    let mut page = page.limit(PAGE);
    loop {
        let listed = api
            .list(&page)
            .await
            .map_err(|error| explain(error, what))?;
        all.extend(listed.items);
        match listed.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(all),
        }
    }
}

/// The gatekeepers of the gates, the gates that those name, and so on.
async fn nested(connection: &Connection, world: &mut World) -> Result<()> {
    let mut fresh: Vec<Gate> = world.gates.values().cloned().collect();
    while !fresh.is_empty() {
        let known: BTreeSet<Key> = world.gatekeepers.keys().cloned().collect();
        let keepers = gatekeepers(connection, &fresh, &known).await?;
        let wanted: BTreeSet<Key> = keepers
            .values()
            .flat_map(|keeper| named_by(keeper))
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

/// The gates that a gatekeeper names; those in other namespaces if its controller has said what
/// comes of them, and not that they do not count.
fn named_by(keeper: &Gatekeeper) -> Vec<Key> {
    let own = Key::of(&keeper.metadata).namespace;
    let status = keeper.status.as_ref();
    let status = status.filter(|it| it.observed_generation == keeper.metadata.generation);
    let verdict = status.and_then(|status| status.verdict.as_ref());
    let reach = verdict.is_some_and(|said| !said.message.contains(FORBIDDEN));
    let references = keeper.spec.gates.iter().flat_map(|gates| &gates.refs);
    references
        .map(|it| Key::from_reference(&own, it.namespace.as_deref(), &it.name))
        .filter(|key| reach || key.namespace == own)
        .collect()
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
    let texts = gatekeepers
        .values()
        .flat_map(|keeper| World::texts_of(keeper));
    let wanted: BTreeSet<Key> = texts.map(|text| text.map).collect();
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

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use sluice_crds::{GateSpec, GateStatus, State};

    use super::*;

    const NOW: &str = "2026-11-20T18:00:00Z";

    fn forced(accepted_by: Option<&str>) -> (Seen, Gate) {
        let now: Timestamp = NOW.parse().unwrap();
        let mut gate = Gate::new("a", GateSpec::default());
        let annotations = [
            ("sluice.dev/force", "open"),
            ("sluice.dev/force-by", "alice"),
            ("sluice.dev/force-reason", "hotfix"),
            ("sluice.dev/force-until", "2026-11-20T19:00:00.5Z"),
        ];
        let owned = annotations.map(|(name, value)| (name.to_owned(), value.to_owned()));
        gate.metadata.annotations = Some(owned.into());
        let accepted = accepted_by.map(|by| Override {
            state: Setting::Open,
            by: by.to_owned(),
            reason: "hotfix".to_owned(),
            since: Time(now),
            until: Time("2026-11-20T19:00:00Z".parse().unwrap()),
        });
        gate.status = Some(GateStatus {
            r#override: accepted,
            ..GateStatus::default()
        });
        (
            Seen {
                world: World::default(),
                trust_unverified: false,
            },
            gate,
        )
    }

    #[test]
    fn a_gate_is_not_open_by_a_force_that_nobody_has_accepted() {
        let now: Timestamp = NOW.parse().unwrap();
        for (accepted_by, expected) in [(None, State::Closed), (Some("alice"), State::Open)] {
            let (mut seen, gate) = forced(accepted_by);
            let key = Key::of(&gate.metadata);
            seen.world.gates.insert(key.clone(), gate);
            let mut scene = seen.scene(&key, now).unwrap();
            let decision = seen.decide(&mut scene, sluice_core::Now::given(now).into());
            assert_eq!(decision.state, expected, "{accepted_by:?}: {decision:?}");
        }
    }

    #[test]
    fn a_force_that_closes_counts_at_once() {
        let (seen, mut gate) = forced(None);
        if let Some(annotations) = &mut gate.metadata.annotations {
            annotations.insert("sluice.dev/force".to_owned(), "closed".to_owned());
        }
        let now = NOW.parse().unwrap();
        assert_eq!(seen.identity(&gate, now), Identity::Trusted);
    }

    #[test]
    fn a_force_counts_once_the_controller_has_accepted_that_very_one() {
        let now = NOW.parse().unwrap();
        for (accepted_by, expected) in [
            (None, Identity::Unverified),
            (Some("mallory"), Identity::Unverified),
            (Some("alice"), Identity::Verified),
        ] {
            let (seen, gate) = forced(accepted_by);
            assert_eq!(seen.identity(&gate, now), expected, "{accepted_by:?}");
        }
        let (mut seen, gate) = forced(None);
        seen.trust_unverified = true;
        assert_eq!(seen.identity(&gate, now), Identity::Trusted);
    }
}
