//! When statuses were written, as a watcher sees it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Result, ensure};
use futures::TryStreamExt;
use jiff::Timestamp;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{Config, watcher};
use kube::{Api, Client, ResourceExt};
use sluice_crds::{Gate, Gatekeeper, State};
use sluice_tests::poll;
use tokio::task::JoinSet;

use super::{FORCED, NAMESPACE};
use crate::bench::ordered::Ordered;

/// How long the last of them may take.
const PATIENCE: Duration = Duration::from_secs(180);

type Arrivals = Arc<Mutex<HashMap<String, Timestamp>>>;

/// Watches, and notes when each object was first seen open.
pub(super) struct Seen {
    gates: Arrivals,
    gatekeepers: Arrivals,
    _watches: JoinSet<()>,
}

/// From the instant to each status.
pub(super) struct Delays {
    pub(super) gates: Ordered,
    pub(super) gatekeepers: Ordered,
}

impl Seen {
    pub(super) fn start(client: &Client) -> Self {
        let (gates, gatekeepers) = (Arrivals::default(), Arrivals::default());
        let mut watches = JoinSet::new();
        let (api, note) = (
            Api::<Gate>::namespaced(client.clone(), NAMESPACE),
            Arc::clone(&gates),
        );
        watches.spawn(async move {
            let events = watcher(api, Config::default())
                .default_backoff()
                .applied_objects();
            let noted = events.try_for_each(async |gate| {
                let state = gate.status.as_ref().and_then(|status| status.state);
                arrived(&note, gate.name_any(), state);
                Ok(())
            });
            let _ = noted.await;
        });
        let (api, note) = (
            Api::<Gatekeeper>::namespaced(client.clone(), NAMESPACE),
            Arc::clone(&gatekeepers),
        );
        watches.spawn(async move {
            let events = watcher(api, Config::default())
                .default_backoff()
                .applied_objects();
            let noted = events.try_for_each(async |keeper| {
                let verdict = keeper
                    .status
                    .as_ref()
                    .and_then(|status| status.verdict.as_ref());
                arrived(
                    &note,
                    keeper.name_any(),
                    verdict.map(|verdict| verdict.state),
                );
                Ok(())
            });
            let _ = noted.await;
        });
        Self {
            gates,
            gatekeepers,
            _watches: watches,
        }
    }

    /// Waits for all of them.
    pub(super) async fn delays(self, n: usize, instant: Timestamp) -> Result<Delays> {
        poll(PATIENCE, "every status to be written", async || {
            let (gates, keepers) = (count(&self.gates), count(&self.gatekeepers));
            // Those that are forced closed in the midst of it were perhaps never seen open.
            ensure!(
                gates + FORCED >= n && keepers >= n,
                "{gates} gates, {keepers} gatekeepers"
            );
            Ok::<_, anyhow::Error>(())
        })
        .await?;
        let delays = |arrivals: &Arrivals| ordered(arrivals, instant);
        Ok(Delays {
            gates: delays(&self.gates),
            gatekeepers: delays(&self.gatekeepers),
        })
    }
}

#[allow(clippy::disallowed_methods, reason = "a benchmark on the real clock")]
fn arrived(note: &Arrivals, name: String, state: Option<State>) {
    if state == Some(State::Open) {
        let mut arrivals = note.lock().unwrap_or_else(PoisonError::into_inner);
        arrivals.entry(name).or_insert_with(Timestamp::now);
    }
}

fn count(arrivals: &Arrivals) -> usize {
    arrivals
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .len()
}

fn ordered(arrivals: &Arrivals, instant: Timestamp) -> Ordered {
    let arrivals = arrivals.lock().unwrap_or_else(PoisonError::into_inner);
    let delay = |at: &Timestamp| at.duration_since(instant).as_secs_f64();
    Ordered::new(arrivals.values().map(delay).collect())
}

impl Delays {
    /// Statuses a second, from the instant to the last.
    #[allow(clippy::cast_precision_loss, reason = "a count of thousands")]
    pub(super) fn rate(&self) -> f64 {
        let written = self.gates.count() + self.gatekeepers.count();
        written as f64 / self.gates.at(1.0).max(self.gatekeepers.at(1.0))
    }
}
