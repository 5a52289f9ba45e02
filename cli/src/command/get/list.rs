//! The objects that `get` lists, read and put into rows.

use std::fmt::Debug;

use anyhow::Result;
use jiff::Timestamp;
use kube::api::{Api, ListParams};
use serde::de::DeserializeOwned;
use sluice_core::Now;
use sluice_core::offline::simulate::{Key, Scene};
use sluice_crds::{Approval, Gate, GatePolicy, GatedSource, Gatekeeper, Subject};

use super::kinds::Listed;
use super::rows::{self, titles};
use super::{Listing, Wanted};
use crate::cluster::{self, Connection, Scope, Seen, explain};
use crate::command::watched::Watched;
use crate::instant::Zone;

/// Whoever a gate policy holds back, where nobody in particular asks.
const ANYBODY: &str = "Check";

impl Wanted {
    /// Watches what is listed.
    pub(super) fn watch(&self, connection: &Connection, watched: &mut Watched) {
        let namespace = (!self.all_namespaces).then_some(connection.namespace.as_str());
        match self.listed {
            Listed::Gates => watched.gates(connection, namespace),
            Listed::Gatekeepers => watched.gatekeepers(connection, namespace),
            Listed::Sources => watched.sources(connection, namespace),
            Listed::Approvals => watched.approvals(connection, namespace),
            Listed::Policies => watched.policies(connection),
        }
    }

    /// Lists, and watches what it was decided from.
    pub(super) async fn look(
        &self,
        connection: &Connection,
        watched: &mut Watched,
    ) -> Result<Listing> {
        self.list_seeing(connection, |seen| watched.everything(connection, seen))
            .await
    }

    /// Lists.
    pub(super) async fn list(&self, connection: &Connection) -> Result<Listing> {
        self.list_seeing(connection, |_| ()).await
    }

    async fn list_seeing(
        &self,
        connection: &Connection,
        see: impl FnOnce(&Seen),
    ) -> Result<Listing> {
        match self.listed {
            Listed::Gates => self.gates(connection, see).await,
            Listed::Gatekeepers => self.gatekeepers(connection).await,
            Listed::Sources => self.sources(connection).await,
            Listed::Approvals => self.approvals(connection).await,
            Listed::Policies => self.policies(connection, see).await,
        }
    }

    fn page(&self) -> ListParams {
        match &self.selector {
            Some(labels) => ListParams::default().labels(labels),
            None => ListParams::default(),
        }
    }

    /// The objects of one kind that are asked for.
    async fn objects<K>(&self, api: &Api<K>) -> Result<Vec<K>>
    where
        K: Clone + Debug + DeserializeOwned,
    {
        let called = self.listed.called();
        if self.names.is_empty() {
            let what = format!("list {}", plural(called));
            return cluster::list(api, self.page(), &what).await;
        }
        let mut found = Vec::new();
        for name in &self.names {
            let one = api.get(name).await;
            found.push(one.map_err(|error| explain(error, &format!("read the {called} {name}")))?);
        }
        Ok(found)
    }

    fn api<K>(&self, connection: &Connection) -> Api<K>
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>,
    {
        match self.all_namespaces {
            true => Api::all(connection.client.clone()),
            false => Api::namespaced(connection.client.clone(), &connection.namespace),
        }
    }

    async fn gates(&self, connection: &Connection, see: impl FnOnce(&Seen)) -> Result<Listing> {
        let scope = match (self.names.is_empty(), self.all_namespaces) {
            (false, _) => Scope::Named(self.names.clone()),
            (true, true) => Scope::Everywhere(self.page()),
            (true, false) => Scope::Namespace(self.page()),
        };
        let seen = cluster::load(connection, &scope, self.trust_unverified).await?;
        see(&seen);
        let now = connection.present().await.now;
        let mut scenes: Vec<(&Key, &Gate, Scene)> = (seen.world.gates.iter())
            .filter_map(|(key, gate)| Some((key, gate, seen.scene(key, now.at)?)))
            .collect();
        let zone = Zone::shared(scenes.iter().flat_map(|(_, _, scene)| scene.time_zones()));
        let mut wakes = Vec::new();
        let mut found = Vec::new();
        for (key, gate, scene) in &mut scenes {
            let decision = seen.decide(scene, now.into());
            wakes.extend(decision.wake);
            found.push(rows::gate(key, gate, &decision, now, &zone)?);
        }
        Ok(Listing {
            titles: titles(
                &["STATE", "REASON", "UNTIL", "FORCED-BY", "SINCE", "AGE"],
                &zone,
            ),
            rows: found,
            wake: wakes.into_iter().min(),
        })
    }

    async fn gatekeepers(&self, connection: &Connection) -> Result<Listing> {
        let found: Vec<Gatekeeper> = self.objects(&self.api(connection)).await?;
        let now = connection.present().await.now.at;
        let zone = zone_of(&found);
        let rows = found.iter().map(|it| rows::gatekeeper(it, now, &zone));
        Ok(Listing {
            titles: titles(&["STATE", "KIND", "REASON", "UNTIL", "AGE"], &zone),
            rows: rows.collect::<Result<_>>()?,
            wake: None,
        })
    }

    async fn sources(&self, connection: &Connection) -> Result<Listing> {
        let scope = match self.all_namespaces {
            true => Scope::Everywhere(self.page()),
            false => Scope::Namespace(self.page()),
        };
        let mut found: Vec<GatedSource> = Vec::new();
        if self.names.is_empty() {
            found = cluster::sources(connection, &scope).await?;
        }
        for name in &self.names {
            found.push(cluster::source(connection, name).await?);
        }
        let now = connection.present().await.now.at;
        // Their own statuses do not say in which zone windows are written; nobody has to be able to
        // know.
        let gatekeepers: Api<Gatekeeper> = self.api(connection);
        let listed = cluster::list(&gatekeepers, ListParams::default(), "list gatekeepers").await;
        let zone = zone_of(&listed.unwrap_or_default());
        let rows = found.iter().map(|it| rows::source(it, now, &zone));
        let columns = ["STATE", "ADMITTED", "PENDING", "DECIDED-BY", "UNTIL", "AGE"];
        Ok(Listing {
            titles: titles(&columns, &zone),
            rows: rows.collect::<Result<_>>()?,
            wake: None,
        })
    }

    async fn approvals(&self, connection: &Connection) -> Result<Listing> {
        let found: Vec<Approval> = self.objects(&self.api(connection)).await?;
        let gatekeepers: Api<Gatekeeper> = self.api(connection);
        let page = ListParams::default();
        let gatekeepers = cluster::list(&gatekeepers, page, "list gatekeepers").await?;
        let now = connection.present().await.now.at;
        let zone = zone_of(&gatekeepers);
        let mut listing = Listing {
            titles: titles(
                &["STATE", "GATEKEEPER", "REVISION", "BY", "UNTIL", "AGE"],
                &zone,
            ),
            rows: Vec::new(),
            wake: None,
        };
        for approval in &found {
            let until = rows::counts_until(approval, &gatekeepers);
            let ends = until.filter(|until| *until > now);
            listing.wake = listing.wake.into_iter().chain(ends).min();
            listing
                .rows
                .push(rows::approval(approval, until, now, &zone)?);
        }
        Ok(listing)
    }

    async fn policies(&self, connection: &Connection, see: impl FnOnce(&Seen)) -> Result<Listing> {
        let api: Api<GatePolicy> = Api::all(connection.client.clone());
        let found = self.objects(&api).await?;
        let scope = Scope::These(found.iter().flat_map(rows::gates_of).collect());
        let seen = cluster::load(connection, &scope, self.trust_unverified).await?;
        see(&seen);
        let now = connection.present().await.now;
        let scenes = seen.world.gates.keys();
        let scenes: Vec<Scene> = scenes.filter_map(|key| seen.scene(key, now.at)).collect();
        let zone = Zone::shared(scenes.iter().flat_map(Scene::time_zones));
        let mut rows = Vec::new();
        let mut wake: Option<Timestamp> = None;
        for policy in &found {
            let decision = asked(&seen, policy, now);
            let next = seen.next_change(&policy.spec.gates, now);
            wake = wake.into_iter().chain(next).min();
            rows.push(rows::policy(policy, &decision, next, now.at, &zone)?);
        }
        Ok(Listing {
            titles: titles(
                &["STATE", "GATES", "KINDS", "NAMESPACES", "UNTIL", "AGE"],
                &zone,
            ),
            rows,
            wake,
        })
    }
}

/// What the gates of a policy say to anybody.
fn asked(seen: &Seen, policy: &GatePolicy, now: Now) -> sluice_crds::Decision {
    let subject = Subject {
        kind: ANYBODY.to_owned(),
        namespace: String::new(),
        name: None,
        action: "list".to_owned(),
        revision: None,
    };
    seen.ask(Some(&policy.spec.gates), subject, now.into())
}

/// The zone in which their windows are written; see [`Zone::shared`].
fn zone_of(gatekeepers: &[Gatekeeper]) -> Zone {
    let schedules = gatekeepers
        .iter()
        .filter_map(|it| it.spec.schedule.as_ref());
    Zone::shared(schedules.map(|schedule| schedule.time_zone.as_str()))
}

fn plural(called: &str) -> String {
    match called.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{called}s"),
    }
}
