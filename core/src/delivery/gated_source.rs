//! Gated sources: which revision of a Flux source goes out, and what makes it so.
//!
//! What comes in ([`Given`]): the GatedSource, its sources and children as they are, its gates with
//! all they depend on, whoever applies what the sources bring, and the instant. What goes out, in two
//! steps: [`consider`] says what is to be asked of the gates and what they say, so that it can be told;
//! [`report`] says what the status has to be, what is to be done to other objects, and when to look
//! again.
//!
//! `status.admitted` is itself the act. Children are made from it, whenever they differ: whoever is
//! stopped between the two makes them later, and asks nobody a second time.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::{Map, Value};
use sluice_crds::flux::{Artifact, FluxKind, FluxObject};
use sluice_crds::gated_source::{ConsumerKind, SourceKind};
use sluice_crds::{GatedSource, GatedSourceStatus};

use crate::flux::observed::Found;
use crate::flux::users::Carried;
use crate::gate::set::Gathered;
use crate::time::clock::Now;

mod admission;
mod baseline;
mod candidates;
mod child;
mod choice;
mod conditions;
mod considered;
mod deletion;
mod doubt;
mod identity;
mod named;
mod objects;
mod observed;
mod obstacle;
mod ready;
mod report;
mod served;
mod spec;
mod suspended;
#[cfg(test)]
mod tests;
mod users;

pub use candidates::MOST;
pub use choice::subject;
pub use conditions::{BLOCKED, BYPASSED, RECOVERABLE, SELF_GATED};
pub use considered::{Considered, consider};
pub use named::asked_about;
pub use obstacle::{Refused, refused};
pub use report::report;
pub use spec::{Times, Wanted, check, wanted};
pub use suspended::holders;
pub use users::carried;

/// The kind, as subjects and marks have it.
pub const KIND: &str = "GatedSource";

/// A source, and the child that is made of it.
#[derive(Clone, Debug)]
pub struct Source<'a> {
    /// What the spec says of it.
    pub wanted: Wanted,
    /// The source as it is.
    pub upstream: Found<'a>,
    /// The child as it is; of the strategy `suspend` nobody looks at it.
    pub child: Found<'a>,
}

/// What the store of artifacts has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holding {
    /// There is no store.
    Off,
    /// Nothing, and nobody fetches it.
    Absent,
    /// A file of its name, which has still to be verified after a start.
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
    /// Where it can be had.
    pub url: String,
    /// Its size in bytes.
    pub size: u64,
}

/// Where artifacts are stored.
pub trait Store {
    /// What it has of a child of that name in that namespace, by the digest of the file.
    fn holding(&self, namespace: &str, child: &str, digest: &str) -> Holding;
}

/// Everything that a look at a GatedSource is decided from.
#[derive(Clone)]
pub struct Given<'a> {
    /// The GatedSource.
    pub object: &'a GatedSource,
    /// Its sources in the order of [`wanted`]; with a selector those that it selects, by name.
    pub sources: Vec<Source<'a>>,
    /// Objects that bear this GatedSource's mark and are the child of no source of it.
    pub strays: Vec<(FluxKind, &'a FluxObject)>,
    /// Sources that bear this GatedSource's mark of a suspension and that it does not hold: it no
    /// longer names or selects them.
    pub dropped: Vec<(SourceKind, &'a FluxObject)>,
    /// Whoever uses a source or a child, or is named by a baseline, or has brought what is [`Carried`].
    pub consumers: Vec<(ConsumerKind, &'a FluxObject)>,
    /// The gates, gatekeepers and the GatedSource itself, as far as Flux brought them.
    pub carried: Vec<Carried>,
    /// The gates that it has to pass.
    pub gates: &'a Gathered,
    /// What is stored of artifacts.
    pub store: &'a dyn Store,
    /// The instant.
    pub now: Now,
}

impl Given<'_> {
    pub(crate) fn namespace(&self) -> &str {
        self.object
            .metadata
            .namespace
            .as_deref()
            .unwrap_or_default()
    }

    fn holding(&self, child: &str, digest: Option<&str>) -> Holding {
        match digest {
            Some(digest) => self.store.holding(self.namespace(), child, digest),
            None => Holding::Failed("the source says no digest of its artifact".to_owned()),
        }
    }
}

/// What a look comes to.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The status.
    pub status: GatedSourceStatus,
    /// Whether it differs from what the object says. It is written before anything is done.
    pub changed: bool,
    /// What is to be done to other objects, in this order. All of it can be done twice.
    pub acts: Vec<Act>,
    /// When to look again, if nothing wakes before.
    pub wake: Option<Timestamp>,
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
        before: Box<FluxObject>,
    },
    /// Fetch an artifact into the store.
    Fetch {
        /// The child that it is for.
        child: String,
        /// Where it can be had.
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
    /// Have these GatedSources suspend a source, and nobody else of them; without any, resume it.
    Suspend {
        /// Its kind.
        kind: SourceKind,
        /// Their names.
        holders: BTreeSet<String>,
        /// The object as it is.
        before: Box<FluxObject>,
    },
    /// Delete a child.
    Delete {
        /// Its kind.
        kind: FluxKind,
        /// The object as it is: this one, and no other of its name.
        before: Box<FluxObject>,
    },
    /// Put the finalizer onto the GatedSource, or take it away.
    Finalize(bool),
}

/// A child as it has to be.
#[derive(Clone, Debug, PartialEq)]
pub struct Child {
    /// Its kind.
    pub kind: FluxKind,
    /// Its name.
    pub name: String,
    /// Its spec, whole: whatever else is there is taken away.
    pub spec: Map<String, Value>,
    /// Annotations that it has to have besides others.
    pub annotations: BTreeMap<String, String>,
    /// Labels that it has to have besides others, or must not have.
    pub labels: BTreeMap<String, Option<String>>,
    /// The object as it is. None: it has to be created.
    pub before: Option<FluxObject>,
}
