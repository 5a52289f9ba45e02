//! Being written: the shape that controller.rs and world.rs use. Keep these signatures.

use std::sync::Arc;

use ipnet::IpNet;
use kube::Client;
use sluice_core::gatekeeper::Evidence;
use sluice_crds::Gatekeeper;

use crate::clock::Clock;
use crate::key::ObjectKey;

/// What was observed.
#[derive(Default)]
pub struct EvidenceStore {}

impl EvidenceStore {
    /// What was observed for a gatekeeper.
    pub fn get(&self, _key: &ObjectKey) -> Evidence {
        Evidence::default()
    }
}

/// One task per gatekeeper that needs evidence.
#[derive(Clone)]
pub struct Tracker {}

impl Tracker {
    /// `changed` is called with the key of each gatekeeper whose evidence has changed.
    pub fn new(
        _client: Client,
        _egress_allow: &[IpNet],
        _clock: Arc<dyn Clock>,
        _store: Arc<EvidenceStore>,
        _changed: impl Fn(&ObjectKey) + Send + Sync + 'static,
    ) -> anyhow::Result<Self> {
        Ok(Self {})
    }
    /// Observe for this object, if it needs evidence. Idempotent.
    pub fn track(&self, _object: &Arc<Gatekeeper>) {}
    /// It is gone.
    pub fn forget(&self, _key: &ObjectKey) {}
}
