//! Evidence: what gatekeepers are judged from, in addition to their spec and the clock.
//!
//! What comes in: a Gatekeeper, clients that only read, what was observed before, and an instant. What
//! goes out: an [`Observation`], whose evidence `sluice_core::gatekeeper` judges. There is one file for
//! each kind of gatekeeper, behind one trait; nothing is decided here, and nothing is written.
//!
//! Everything that leaves the cluster leaves it through [`sluice_egress`], and nowhere else.

use jiff::Timestamp;
use sluice_crds::gatekeeper::{Kind, NotOneKind};
use sluice_crds::{Gatekeeper, GatekeeperSpec};
use sluice_egress::Egress;

mod approval;
pub mod config_maps;
#[cfg(test)]
mod fake_api;
mod http;
mod lists;
mod metric;
pub mod objects;
mod observation;
mod polling;
mod revisions;
mod schedule;
mod source;
#[cfg(test)]
#[path = "../../egress/src/test_server.rs"]
mod test_server;

pub use config_maps::{ConfigMapKey, ConfigMaps};
pub use objects::ObjectWatches;
pub use observation::Observation;
use observation::{Look, Observe, namespace};
pub use source::{ObjectsKey, Source};

/// What is needed to gather evidence. Cheap to clone: clones share their watches and limits.
#[derive(Clone)]
pub struct Clients {
    /// The ConfigMaps of the cluster.
    pub config_maps: ConfigMaps,
    /// Objects of other kinds.
    pub objects: ObjectWatches,
    /// The way out of the cluster.
    pub egress: Egress,
    kubernetes: kube::Client,
    reader: schedule::Reader,
}

impl Clients {
    /// Clients that see what `kubernetes` may see, and leave the cluster through `egress`.
    pub fn new(kubernetes: kube::Client, egress: Egress) -> Self {
        Self {
            config_maps: ConfigMaps::new(kubernetes.clone()),
            objects: ObjectWatches::new(kubernetes.clone()),
            egress,
            kubernetes,
            reader: schedule::Reader::default(),
        }
    }
}

/// The kind of a spec, if it has evidence that is observed.
fn kind(spec: &GatekeeperSpec) -> Option<&dyn Observe> {
    match spec.kind() {
        Ok(Kind::Schedule(spec)) => Some(spec),
        Ok(Kind::Revisions(spec)) => Some(spec),
        Ok(Kind::Approval(spec)) => Some(spec),
        Ok(Kind::Metric(spec)) => Some(spec),
        Ok(Kind::Objects(spec)) => Some(spec),
        Ok(Kind::Http(spec)) => Some(spec),
        Ok(Kind::Manual(_) | Kind::Gates(_) | Kind::Pipeline(_) | Kind::External(_))
        | Err(NotOneKind) => None,
    }
}

/// Whether there is anything to observe for a gatekeeper with this spec.
pub fn needs_evidence(spec: &GatekeeperSpec) -> bool {
    !spec.suspend && kind(spec).is_some_and(Observe::needs_evidence)
}

/// What a gatekeeper is judged from inside the cluster: when it changes, observe again.
pub fn sources(object: &Gatekeeper) -> Vec<Source> {
    let namespace = namespace(object);
    kind(&object.spec).map_or_else(Vec::new, |kind| kind.sources(&namespace))
}

/// Gathers the evidence of `object` at `now`. What is not due yet is taken from `last`; what has not
/// changed is not parsed again.
pub async fn observe(
    object: &Gatekeeper,
    clients: &Clients,
    last: &Observation,
    now: Timestamp,
) -> Observation {
    let look = Look {
        object,
        clients,
        last,
        now,
    };
    match kind(&object.spec) {
        Some(kind) => kind.observe(look).await,
        None => Observation::default(),
    }
}
