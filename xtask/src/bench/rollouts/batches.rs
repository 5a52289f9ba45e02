//! Our share of a batch: from the moment at which both Deployments have what was written last, until something
//! else is written to one of them. All the rest of a batch is pods that come and go.
//!
//! Each batch has two such moments: the new pods are available, and the old ones are gone.

use std::collections::BTreeMap;
use std::fmt::{Display, Formatter};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, ensure};
use futures::StreamExt;
use kube::ResourceExt;
use kube::api::DynamicObject;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{Config, Event, watcher};
use parking_lot::Mutex;
use serde_json::{Value, json};
use sluice_tests::poll;
use tokio_util::task::AbortOnDropHandle;

use super::crowd::Crowd;
use super::{milliseconds, say};
use crate::bench::Bench;
use crate::bench::ordered::Ordered;
use crate::bench::seen::PATIENCE;

/// How many batches a Rollout has: as many as there may be.
const BATCHES: u32 = 30;

pub(super) struct Batches {
    rounds: usize,
    shares: Ordered,
}

pub(super) async fn measure(bench: &Bench, crowd: &Crowd, rounds: usize) -> Result<Batches> {
    let controller = bench.controller(&[]).await?;
    controller.settled(0).await?;
    let mut shares = Vec::new();
    for round in 0..rounds {
        let name = format!("batches-{round}");
        crowd.pair(&name, BATCHES).await?;
        let watched = Watched::start(crowd, &name);
        crowd
            .rollout(&name, &json!({"numBatches": BATCHES}))
            .await?;
        poll(PATIENCE, "the rollout to succeed", async || {
            let status = crowd.rollouts().get(&name).await?.status;
            let state = status.and_then(|it| it.rolling_state);
            let is_done = state == Some(sluice_crds::rollout::RollingState::RolloutSucceed);
            ensure!(is_done, "it is {state:?}");
            Ok(())
        })
        .await?;
        let found = watched.shares();
        say(&format!("{} shares of {BATCHES} batches", found.len()));
        shares.extend(found);
    }
    controller.usage()?;
    Ok(Batches {
        rounds,
        shares: Ordered::new(shares),
    })
}

/// The two Deployments of a Rollout, as a watch sees them.
struct Watched {
    notes: Arc<Mutex<Notes>>,
    _watch: AbortOnDropHandle<()>,
}

#[derive(Default)]
struct Notes {
    /// What each is to have, and whether it has that.
    seen: BTreeMap<String, (i64, bool)>,
    /// Since when both have it.
    ready: Option<Instant>,
    /// Seconds, but for the start.
    shares: Vec<f64>,
}

impl Watched {
    fn start(crowd: &Crowd, name: &str) -> Self {
        let notes = Arc::<Mutex<Notes>>::default();
        let (noted, prefix) = (Arc::clone(&notes), format!("{name}-"));
        let config = Config::default().streaming_lists();
        let events = watcher(crowd.deployments(), config).default_backoff();
        let task = tokio::spawn(async move {
            let mut events = std::pin::pin!(events);
            while let Some(event) = events.next().await {
                if let Ok(Event::Apply(object) | Event::InitApply(object)) = event
                    && object.name_any().starts_with(&prefix)
                {
                    noted.lock().note(&object);
                }
            }
        });
        Self {
            notes,
            _watch: AbortOnDropHandle::new(task),
        }
    }

    /// The first write is the start, before which nothing was ready.
    fn shares(&self) -> Vec<f64> {
        self.notes.lock().shares.iter().skip(1).copied().collect()
    }
}

impl Notes {
    fn note(&mut self, object: &DynamicObject) {
        let number = |pointer: &str| {
            let number = object.data.pointer(pointer).and_then(Value::as_i64);
            number.unwrap_or(0)
        };
        let wanted = number("/spec/replicas");
        let is_seen = Some(number("/status/observedGeneration")) >= object.metadata.generation;
        let has = [
            number("/status/replicas"),
            number("/status/availableReplicas"),
        ];
        let now = (wanted, is_seen && has == [wanted; 2]);
        let before = self.seen.insert(object.name_any(), now);
        if before.is_some_and(|(before, _)| before != wanted) {
            let ready = self.ready.take();
            self.shares
                .extend(ready.map(|it| it.elapsed().as_secs_f64()));
        }
        let is_ready = self.seen.len() == 2 && self.seen.values().all(|(_, has)| *has);
        match is_ready {
            true => drop(self.ready.get_or_insert_with(Instant::now)),
            false => self.ready = None,
        }
    }
}

impl Display for Batches {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let Self { rounds, shares } = self;
        writeln!(
            f,
            "\n| {rounds} rollouts of {BATCHES} batches, one after the other | |\n|---|---|\n\
             | writes that were waited for | {} |\n\
             | from pods that are there, or gone, to the next write: p50, p99, longest | {}, {}, {} |",
            shares.count(),
            milliseconds(shares, 0.5),
            milliseconds(shares, 0.99),
            milliseconds(shares, 1.0),
        )
    }
}
