//! What `get` lists: the objects of a kind, a row for each.

use std::fmt::Debug;

use anyhow::Result;
use jiff::Timestamp;
use kube::Resource;
use kube::api::{Api, ListParams};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sluice_core::delivery::pipeline;
use sluice_core::offline::simulate::Scene;
use sluice_crds::{
    Approval, Gate, GatePolicy, GatedSource, Gatekeeper, Pipeline, PromotionStrategy, RevertCommit,
    Rollout, Subject,
};

use super::rows::{self, Row};
use crate::arguments::Kind;
use crate::cluster::{self, Connection, Scope, Seen, Watched};
use crate::instant::Zone;

/// Somebody whom a gate policy holds back, where nobody in particular asks.
const ANYBODY: &str = "Check";

/// What is asked for.
pub(crate) struct Wanted {
    pub(crate) kind: Kind,
    pub(crate) names: Vec<String>,
    pub(crate) everywhere: bool,
    pub(crate) selector: Option<String>,
    pub(crate) trust_unverified: bool,
}

/// What there is.
pub(crate) struct Listing {
    /// The titles between the name and the message.
    pub(crate) titles: &'static [&'static str],
    /// The zone of all instants.
    pub(crate) zone: Zone,
    pub(crate) rows: Vec<Row>,
    /// When to look again, if nothing changes before.
    pub(crate) wake: Option<Timestamp>,
}

impl Listing {
    /// The head and a row for each object, without its message.
    pub(crate) fn brief(&self, with_namespace: bool) -> Vec<Vec<String>> {
        let titles = self.titles.iter().map(|title| match *title {
            "UNTIL" => format!("UNTIL ({})", self.zone.name),
            other => other.to_owned(),
        });
        let head = ["NAMESPACE", "NAME"].map(str::to_owned);
        let mut rows: Vec<Vec<String>> = vec![head.into_iter().chain(titles).collect()];
        rows.extend(self.rows.iter().map(|row| {
            let names = [row.key.namespace.clone(), row.key.name.clone()];
            let cells = row.cells.iter().take(self.titles.len());
            names.into_iter().chain(cells.cloned()).collect()
        }));
        if !with_namespace {
            rows.iter_mut().for_each(|row| drop(row.remove(0)));
        }
        rows
    }
}

impl Wanted {
    /// All of a kind in the connection's namespace, or everywhere.
    pub(crate) fn all(kind: Kind, everywhere: bool) -> Self {
        Self {
            kind,
            names: Vec::new(),
            everywhere,
            selector: None,
            trust_unverified: false,
        }
    }

    /// What to say where nothing was found. `none` is a word for that, such as `no gates`.
    pub(crate) fn nothing(&self, none: &str, connection: &Connection) -> String {
        match self.everywhere || self.kind == Kind::Policy {
            true => format!("There are {none} in the cluster."),
            false => format!(
                "There are {none} in the namespace {}.",
                connection.namespace
            ),
        }
    }

    /// Lists; watches what is listed, and what it is decided from.
    pub(crate) async fn list(
        &self,
        connection: &Connection,
        watched: Option<&mut Watched>,
    ) -> Result<Listing> {
        match self.kind {
            Kind::Gate => self.gates(connection, watched).await,
            Kind::Gatekeeper => self.gatekeepers(connection).await,
            Kind::Source => self.sources(connection).await,
            Kind::Approval => self.approvals(connection).await,
            Kind::Policy => self.policies(connection, watched).await,
            Kind::Pipeline => self.pipelines(connection).await,
            Kind::Strategy => self.strategies(connection).await,
            Kind::Revert => self.reverts(connection).await,
            Kind::Rollout => self.rollouts(connection).await,
        }
    }

    /// Watches what is listed: before anything is read, so that no change falls in between.
    pub(crate) fn watch(&self, connection: &Connection, watched: &mut Watched) {
        let area = connection.area(self.everywhere);
        match self.kind {
            Kind::Gate => {
                watched.all::<Gate>(connection, area);
                watched.all::<Gatekeeper>(connection, area);
                watched.all::<Approval>(connection, area);
            }
            Kind::Gatekeeper => watched.all::<Gatekeeper>(connection, area),
            Kind::Source => watched.all::<GatedSource>(connection, area),
            Kind::Approval => watched.all::<Approval>(connection, area),
            Kind::Policy => watched.policies(connection),
            Kind::Pipeline => watched.all::<Pipeline>(connection, area),
            Kind::Strategy => watched.all::<PromotionStrategy>(connection, area),
            Kind::Revert => watched.all::<RevertCommit>(connection, area),
            Kind::Rollout => watched.all::<Rollout>(connection, area),
        }
    }

    /// The objects themselves, as kubectl prints them.
    pub(crate) fn objects(&self, listing: &Listing) -> Value {
        let items: Vec<&Value> = listing.rows.iter().map(|row| &row.object).collect();
        match (self.names.len(), items.as_slice()) {
            (1, [only]) => (*only).clone(),
            _ => json!({"apiVersion": "v1", "kind": "List", "items": items}),
        }
    }

    fn page(&self) -> ListParams {
        let page = ListParams::default();
        match &self.selector {
            Some(labels) => page.labels(labels),
            None => page,
        }
    }

    /// The objects of one kind that are asked for.
    async fn found<K>(&self, api: &Api<K>) -> Result<Vec<K>>
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        if self.names.is_empty() {
            return cluster::list(api, self.page()).await;
        }
        let mut found = Vec::new();
        for name in &self.names {
            found.push(cluster::read(api, name).await?);
        }
        Ok(found)
    }

    async fn seen(
        &self,
        connection: &Connection,
        scope: &Scope<'_>,
        watched: Option<&mut Watched>,
    ) -> Result<Seen> {
        let seen = cluster::load(connection, scope, self.trust_unverified).await?;
        if let Some(watched) = watched {
            watched.everything(connection, &seen);
        }
        Ok(seen)
    }

    async fn gates(
        &self,
        connection: &Connection,
        watched: Option<&mut Watched>,
    ) -> Result<Listing> {
        let scope = match self.names.is_empty() {
            false => Scope::Named(&self.names, None),
            true => Scope::All {
                everywhere: self.everywhere,
                page: self.page(),
            },
        };
        let seen = self.seen(connection, &scope, watched).await?;
        let now = connection.present().await.now;
        let gates = seen.world.gates.iter();
        let scenes = gates.filter_map(|(key, gate)| Some((gate, seen.scene(key, now.at)?)));
        let mut scenes: Vec<(&Gate, Scene)> = scenes.collect();
        let zone = Zone::shared(scenes.iter().flat_map(|(_, scene)| scene.time_zones()));
        let (mut rows, mut wake) = (Vec::new(), None);
        for (gate, scene) in &mut scenes {
            let decision = seen.decide(scene, now.into());
            wake = wake.into_iter().chain(decision.wake).min();
            rows.push(rows::gate(gate, &decision, now.at, &zone)?);
        }
        Ok(Listing {
            titles: &["STATE", "REASON", "UNTIL", "FORCED-BY", "SINCE", "AGE"],
            zone,
            rows,
            wake,
        })
    }

    async fn gatekeepers(&self, connection: &Connection) -> Result<Listing> {
        let api = connection.api(connection.area(self.everywhere));
        let found = self.found(&api).await?;
        let now = connection.present().await.now.at;
        let zone = Zone::of_gatekeepers(&found);
        let rows = found.iter().map(|it| rows::gatekeeper(it, now, &zone));
        Ok(Listing {
            titles: &["STATE", "KIND", "REASON", "UNTIL", "AGE"],
            rows: rows.collect::<Result<_>>()?,
            zone,
            wake: None,
        })
    }

    async fn sources(&self, connection: &Connection) -> Result<Listing> {
        let mut found: Vec<GatedSource> = Vec::new();
        if self.names.is_empty() {
            found = cluster::served(connection, self.everywhere, self.page()).await?;
        }
        for name in &self.names {
            found.push(cluster::existing(connection, name).await?);
        }
        let now = connection.present().await.now.at;
        let zone = cluster::zone(connection, self.everywhere).await;
        let rows = found.iter().map(|it| rows::source(it, now, &zone));
        Ok(Listing {
            titles: &["STATE", "ADMITTED", "PENDING", "DECIDED-BY", "UNTIL", "AGE"],
            rows: rows.collect::<Result<_>>()?,
            zone,
            wake: None,
        })
    }

    async fn approvals(&self, connection: &Connection) -> Result<Listing> {
        let api: Api<Approval> = connection.api(connection.area(self.everywhere));
        let found = self.found(&api).await?;
        let around = connection.api(connection.area(self.everywhere));
        let gatekeepers: Vec<Gatekeeper> = cluster::list(&around, ListParams::default()).await?;
        let now = connection.present().await.now.at;
        let zone = Zone::of_gatekeepers(&gatekeepers);
        let (mut rows, mut wake) = (Vec::new(), None);
        for approval in &found {
            let until = rows::counts_until(approval, &gatekeepers);
            let ends = until.filter(|until| *until > now);
            wake = wake.into_iter().chain(ends).min();
            rows.push(rows::approval(approval, until, now, &zone)?);
        }
        Ok(Listing {
            titles: &["STATE", "ABOUT", "REVISION", "BY", "UNTIL", "AGE"],
            zone,
            rows,
            wake,
        })
    }

    /// What needs people most is the first.
    async fn pipelines(&self, connection: &Connection) -> Result<Listing> {
        let api: Api<Pipeline> = connection.api(connection.area(self.everywhere));
        let found = self.found(&api).await?;
        let now = connection.present().await.now.at;
        let zone = cluster::zone(connection, self.everywhere).await;
        let shown = found.iter().map(|it| (pipeline::view(it, &[]), it));
        let mut shown: Vec<_> = shown.collect();
        shown.sort_by(|(a, _), (b, _)| {
            (a.needs, &a.namespace, &a.name).cmp(&(b.needs, &b.namespace, &b.name))
        });
        let rows = shown
            .iter()
            .map(|(view, it)| rows::pipeline(view, it, now, &zone));
        Ok(Listing {
            titles: &["STATE", "REVISION", "AT", "DECIDED-BY", "UNTIL", "AGE"],
            rows: rows.collect::<Result<_>>()?,
            zone,
            wake: None,
        })
    }

    async fn strategies(&self, connection: &Connection) -> Result<Listing> {
        let api: Api<PromotionStrategy> = connection.api(connection.area(self.everywhere));
        let found = self.found(&api).await?;
        let now = connection.present().await.now.at;
        let zone = cluster::zone(connection, self.everywhere).await;
        let rows = found.iter().map(|it| rows::strategy(it, now, &zone));
        Ok(Listing {
            titles: &["STATE", "NEWEST", "REACHED", "WAITS-AT", "UNTIL", "AGE"],
            rows: rows.collect::<Result<_>>()?,
            zone,
            wake: None,
        })
    }

    async fn reverts(&self, connection: &Connection) -> Result<Listing> {
        let api: Api<RevertCommit> = connection.api(connection.area(self.everywhere));
        let found = self.found(&api).await?;
        let now = connection.present().await.now.at;
        let rows = found.iter().map(|it| rows::revert(it, now));
        Ok(Listing {
            titles: &["STATE", "BRANCH", "BACK-TO", "FIXED-BY", "BY", "AGE"],
            rows: rows.collect::<Result<_>>()?,
            zone: Zone::utc(),
            wake: None,
        })
    }

    async fn rollouts(&self, connection: &Connection) -> Result<Listing> {
        let api: Api<Rollout> = connection.api(connection.area(self.everywhere));
        let found = self.found(&api).await?;
        let now = connection.present().await.now.at;
        let zone = cluster::zone(connection, self.everywhere).await;
        let rows = found.iter().map(|it| rows::rollout(it, now, &zone));
        Ok(Listing {
            titles: &[
                "STATE",
                "REVISION",
                "PROGRESS",
                "READY",
                "WAITS-FOR",
                "UNTIL",
                "AGE",
            ],
            rows: rows.collect::<Result<_>>()?,
            zone,
            wake: None,
        })
    }

    async fn policies(
        &self,
        connection: &Connection,
        watched: Option<&mut Watched>,
    ) -> Result<Listing> {
        let found: Vec<GatePolicy> = self.found(&connection.all()).await?;
        let scope = Scope::These(found.iter().flat_map(cluster::gates_of).collect());
        let seen = self.seen(connection, &scope, watched).await?;
        let now = connection.present().await.now;
        let zone = seen.zone(now.at);
        let (mut rows, mut wake) = (Vec::new(), None);
        for policy in &found {
            let gates = &policy.spec.gates;
            let decision = seen.ask(Some(gates), anybody(), now.into());
            let next = seen.next_change(gates, now);
            wake = wake.into_iter().chain(next).min();
            rows.push(rows::policy(policy, &decision, next, now.at, &zone)?);
        }
        Ok(Listing {
            titles: &["STATE", "GATES", "KINDS", "NAMESPACES", "UNTIL", "AGE"],
            zone,
            rows,
            wake,
        })
    }
}

fn anybody() -> Subject {
    Subject {
        kind: ANYBODY.to_owned(),
        namespace: String::new(),
        name: None,
        environment: None,
        action: "list".to_owned(),
        step: None,
        revision: None,
    }
}
