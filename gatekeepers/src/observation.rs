//! What was observed for a gatekeeper, and how each kind observes it.
//!
//! What comes in: a gatekeeper, clients, what was observed before. What goes out: an
//! [`Observation`]. Each kind that has evidence implements [`Observe`] for its part of the spec, in a
//! file of its own.

use std::any::Any;
use std::sync::Arc;

use futures::future::BoxFuture;
use jiff::Timestamp;
use kube::ResourceExt;
use sluice_core::gatekeeper::Evidence;
use sluice_crds::Gatekeeper;
use sluice_crds::gatekeeper::EvidenceStatus;

use crate::{Clients, Source};

/// What was observed for one gatekeeper.
#[derive(Clone, Debug, Default)]
pub struct Observation {
    /// What to judge it from.
    pub evidence: Evidence,
    /// When to observe again, if nothing changes before. None: only on a change.
    pub again: Option<Timestamp>,
    /// What was seen in detail, so that it is not looked at again before it is due. Its kind alone
    /// knows the type.
    seen: Option<Arc<dyn Any + Send + Sync>>,
    /// Whether somebody asked for a look since.
    is_due: bool,
}

impl Observation {
    /// What `seen` means, and when to look again.
    pub(crate) fn new<S: Seen>(evidence: Evidence, again: Option<Timestamp>, seen: S) -> Self {
        Self {
            evidence,
            again,
            seen: Some(Arc::new(seen)),
            is_due: false,
        }
    }

    /// What was seen in detail. None: nothing yet, or for another kind of spec.
    pub(crate) fn seen<S: Seen>(&self) -> Option<&S> {
        self.seen.as_ref()?.downcast_ref()
    }

    /// The evidence for `object` as far as it was observed already, for this spec or for an
    /// earlier one. None if some of it was not.
    pub fn evidence_for(&self, object: &Gatekeeper) -> Option<Evidence> {
        match crate::kind(&object.spec) {
            Some(kind) => kind.known(self),
            None => Some(Evidence::default()),
        }
    }

    /// The same, but with everything due that is otherwise read at intervals: somebody asked for
    /// a look.
    #[must_use]
    pub fn made_due(self) -> Self {
        Self {
            is_due: true,
            ..self
        }
    }
}

/// What a kind has seen in detail.
pub(crate) trait Seen: Any + Clone + Send + Sync {
    /// What is otherwise read at intervals is read at the next look.
    fn make_due(&mut self);
}

/// A kind of gatekeeper that has evidence, by its part of the spec.
pub(crate) trait Observe: Send + Sync {
    /// Whether there is anything to observe.
    fn needs_evidence(&self) -> bool {
        true
    }

    /// What is read inside the cluster, for a gatekeeper in this namespace: a change of it is a
    /// reason to look again.
    fn sources(&self, _namespace: &str) -> Vec<Source> {
        Vec::new()
    }

    /// The evidence as far as it was observed already, for this spec or for an earlier one. None if
    /// some of it was not.
    fn known(&self, last: &Observation) -> Option<Evidence>;

    /// Takes a look. What is not due yet is taken from the last one.
    fn observe<'a>(&'a self, look: Look<'a>) -> BoxFuture<'a, Observation>;
}

/// A look at what a gatekeeper is judged from.
#[derive(Clone, Copy)]
pub(crate) struct Look<'a> {
    pub(crate) object: &'a Gatekeeper,
    pub(crate) clients: &'a Clients,
    /// What the last look saw.
    pub(crate) last: &'a Observation,
    pub(crate) now: Timestamp,
}

impl Look<'_> {
    /// What the last look saw in detail; everything in it is due if somebody asked for this one.
    pub(crate) fn seen<S: Seen>(&self) -> Option<S> {
        let mut seen = self.last.seen::<S>()?.clone();
        if self.last.is_due {
            seen.make_due();
        }
        Some(seen)
    }

    /// The evidence that a status has of this very spec: what a controller that has just started
    /// goes on from.
    pub(crate) fn status(&self) -> Option<&EvidenceStatus> {
        self.object.current_status()?.evidence.as_deref()
    }

    pub(crate) fn namespace(&self) -> String {
        namespace(self.object)
    }
}

pub(crate) fn namespace(object: &Gatekeeper) -> String {
    object.namespace().unwrap_or_default()
}
