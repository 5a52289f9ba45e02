//! One look at one object: gather (I/O in), decide (pure, in `sluice-core`), apply (I/O out).
//!
//! A kind is a folder: `gather.rs` collects everything that the decision needs, `apply.rs` carries
//! it out. Events only wake; a look takes nothing but the object's name.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use kube::Client;

use crate::clock::Clock;
use crate::events::Events;
use crate::key::Work;
use crate::metrics::{Counters, KindLabels};
use crate::shard::Shard;
use crate::world::World;

pub mod gate;
pub mod gatekeeper;
mod status;

/// What every look needs.
pub struct Context {
    /// The API server.
    pub client: Client,
    /// The caches.
    pub world: Arc<World>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Where events are put.
    pub events: Events,
    /// What is counted.
    pub counters: Arc<Counters>,
    /// The objects that this controller writes to.
    pub shard: Shard,
    /// Statuses that were written and that the caches may not have yet.
    pub written: Written,
}

impl Context {
    /// Notes a write.
    fn wrote(&self, kind: &'static str) {
        self.counters
            .writes
            .get_or_create(&KindLabels { kind })
            .inc();
    }
}

/// What a look came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Look again at an instant, or when something changes.
    Wake(Option<Timestamp>),
    /// The object is gone.
    Gone,
    /// It is another shard's.
    NotOurs,
}

/// Looks at one object.
///
/// # Errors
/// The API server refused a write, or did not answer.
pub async fn look(context: &Context, work: &Work) -> Result<Outcome, kube::Error> {
    match work {
        Work::Gate(key) => gate::look(context, key).await,
        Work::Gatekeeper(key) => gatekeeper::look(context, key).await,
    }
}

/// Statuses that were written, by the version of the object they were decided from: until the
/// watch has brought the write back, the next look takes them from here. Without it a second look
/// would write the same again.
#[derive(Default)]
pub struct Written(Mutex<HashMap<Work, (Option<String>, serde_json::Value)>>);

impl Written {
    fn note<S: serde::Serialize>(&self, work: Work, version: Option<String>, status: &S) {
        if let Ok(status) = serde_json::to_value(status) {
            self.lock().insert(work, (version, status));
        }
    }

    /// The status that was written onto `version` of the object, if that is still the version at
    /// hand.
    fn onto<S: serde::de::DeserializeOwned>(
        &self,
        work: &Work,
        version: Option<&String>,
    ) -> Option<S> {
        let mut written = self.lock();
        let (onto, status) = written.get(work)?;
        if onto.as_ref() == version {
            return serde_json::from_value(status.clone()).ok();
        }
        written.remove(work);
        None
    }

    fn forget(&self, work: &Work) {
        self.lock().remove(work);
    }

    fn lock(
        &self,
    ) -> std::sync::MutexGuard<'_, HashMap<Work, (Option<String>, serde_json::Value)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
