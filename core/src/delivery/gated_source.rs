//! Gated sources: which revision of a Flux source goes out, and what makes it so.
//!
//! What comes in ([`Given`]): the GatedSource, its sources and children as they are, its gates with
//! everything that they depend on, everybody who applies what the sources bring, and the instant. What
//! goes out, in two steps: [`consider`] says what the gates are asked and what they answer, so that it
//! can be recorded; [`report`] says what the status has to be, what has to be done to other objects, and
//! when to look again.
//!
//! Each step takes what the step before has made:
//!
//! | step | | makes |
//! |---|---|---|
//! | 1 | `sources`, `users` | the sources as they are seen, and who uses them |
//! | 2 | `candidates` | what could go out |
//! | 3 | `demand`, `baseline`, `considered` | what is asked for, and what the gates say of it |
//! | 4 | `admission` | what is out, once the decision is recorded |
//! | 5 | `children`, `child`, `served`, `suspended`, `deletion` | what other objects have to be |
//! | 6 | `conditions`, `report` | the status |

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value};
use sluice_crds::flux::{Artifact, FluxKind, FluxObject};
use sluice_crds::gated_source::{ConsumerKind, SourceKind, Strategy};
use sluice_crds::{GatedSource, GatedSourceStatus, Subject};

use super::act;
use crate::flux::observed::Found;
use crate::flux::users::Carried;
use crate::gate::set::Gathered;
use crate::time::clock::Now;

mod admission;
mod baseline;
mod candidates;
mod child;
mod children;
mod conditions;
mod considered;
mod deletion;
mod demand;
mod report;
mod served;
mod sources;
mod spec;
mod suspended;
#[cfg(test)]
mod tests;
mod users;

pub use candidates::{MOST, asked_about};
pub use conditions::{BLOCKED, BYPASSED, RECOVERABLE, SELF_GATED};
pub use considered::{Considered, consider};
pub use report::report;
pub use spec::{Times, Wanted, check, wanted};
pub use suspended::holders;
pub use users::carried;

/// The kind, as it is written in subjects and marks.
pub const KIND: &str = "GatedSource";

/// What a GatedSource wants to do, as decisions call it.
const ACTION: &str = "admit";

/// How many names a message lists at most.
const NAMED: usize = 5;

/// The result of a look.
pub type Report = act::Report<GatedSourceStatus, Act>;

/// Who asks, and for which revision. Its gates are gathered for this, and decisions are about this.
pub fn subject(object: &GatedSource, revision: Option<&str>) -> Subject {
    let metadata = &object.metadata;
    Subject {
        kind: KIND.to_owned(),
        namespace: metadata.namespace.clone().unwrap_or_default(),
        name: metadata.name.clone(),
        environment: None,
        action: ACTION.to_owned(),
        step: None,
        revision: revision.map(str::to_owned),
    }
}

/// Whether the last question to its gates is still current: the status says that something waits for
/// them. A GatedSource asks as long as something is new. Once its source has gone back to what is out, it
/// stops asking. Suspended sources always wait for the gates.
pub fn may_wait(object: &GatedSource) -> bool {
    let status = object.status.as_ref();
    object.spec.strategy == Strategy::Suspend || status.is_some_and(|it| it.pending.is_some())
}

/// A source, and the child that is made from it.
#[derive(Clone, Debug)]
pub struct Source {
    /// What the spec says of it.
    pub wanted: Wanted,
    /// The source as it is.
    pub upstream: Found,
    /// The child as it is. With the strategy `suspend` there is none.
    pub child: Found,
}

/// What the store of artifacts has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holding {
    /// There is no store.
    Off,
    /// It is not there, and is not being fetched.
    Absent,
    /// There is a file with its name, which still has to be verified after a start.
    Verifying,
    /// It is being fetched.
    Fetching,
    /// It could not be fetched: why.
    Failed(String),
    /// The file, verified.
    Stored(Stored),
}

/// A file of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Where it lies below the server's address.
    pub path: String,
    /// Where it can be fetched.
    pub url: String,
    /// Its size in bytes.
    pub size: u64,
}

/// Where artifacts are stored.
pub trait Store: Send + Sync {
    /// What it has for the child with that name in that namespace, by the digest of the file.
    fn holding(&self, namespace: &str, child: &str, digest: &str) -> Holding;
}

/// Somebody who applies what a source brings.
pub type Consumer = (ConsumerKind, Arc<FluxObject>);

/// Everything that a look at a GatedSource is decided from.
pub struct Given {
    /// The GatedSource.
    pub object: Arc<GatedSource>,
    /// Its sources in the order of [`wanted`]; with a selector, those that it selects, by name.
    pub sources: Vec<Source>,
    /// Objects that have this GatedSource's mark and are not the child of any of its sources.
    pub strays: Vec<(FluxKind, Arc<FluxObject>)>,
    /// Sources that have this GatedSource's mark of a suspension, and that it does not hold, because it
    /// no longer names or selects them.
    pub dropped: Vec<(SourceKind, Arc<FluxObject>)>,
    /// Everybody who uses a source or a child, who is named by a baseline, or who has brought what is
    /// [`Carried`].
    pub consumers: Vec<Consumer>,
    /// The gates, gatekeepers and the GatedSource itself, where Flux brought them.
    pub carried: Vec<Carried>,
    /// The gates that it has to pass.
    pub gates: Gathered,
    /// What is stored of artifacts.
    pub store: Box<dyn Store>,
    /// The instant.
    pub now: Now,
}

/// Something to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// Make a child, or make it what it has to be.
    Write(Box<Child>),
    /// Write the status of an ExternalArtifact: it serves this.
    Serve {
        /// What it serves.
        artifact: Box<Artifact>,
        /// The object as it is.
        before: Arc<FluxObject>,
    },
    /// Fetch an artifact into the store.
    Fetch {
        /// The child that it is for.
        child: String,
        /// Where it can be downloaded.
        url: String,
        /// The digest that it has to have.
        digest: String,
    },
    /// Keep these artifacts of a child in the store, and no others.
    Retain {
        /// The child.
        child: String,
        /// Their digests.
        digests: Vec<String>,
    },
    /// Let these GatedSources suspend a source, and no others. If there are none, resume it.
    Suspend {
        /// Its kind.
        kind: SourceKind,
        /// Their names.
        holders: BTreeSet<String>,
        /// The object as it is.
        before: Arc<FluxObject>,
    },
    /// Delete a child.
    Delete {
        /// Its kind.
        kind: FluxKind,
        /// The object as it is: this one, and no other of its name.
        before: Arc<FluxObject>,
    },
    /// Add the finalizer to the GatedSource, or remove it.
    Finalize(bool),
}

/// A child as it has to be.
#[derive(Clone, Debug, PartialEq)]
pub struct Child {
    /// Its kind.
    pub kind: FluxKind,
    /// Its name.
    pub name: String,
    /// Its whole spec: every other field is removed.
    pub spec: Map<String, Value>,
    /// Annotations that it has to have in addition to its others.
    pub annotations: BTreeMap<String, String>,
    /// Labels that it has to have, or must not have, in addition to its others.
    pub labels: BTreeMap<String, Option<String>>,
    /// The object as it is. None: it has to be created.
    pub before: Option<Arc<FluxObject>>,
}
