//! Step 1: the sources and their children, as they are seen.
//!
//! What comes in: what is known of each source and of the object under its child's name. What goes out:
//! the same, with whether the child is the one that this GatedSource has made. Every later step takes
//! the sources from here.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value};
use sluice_crds::GatedSource;
use sluice_crds::flux::{FluxKind, FluxObject};
use sluice_crds::gated_source::{Part, SourceKind, Strategy, marks};

use super::{Consumer, Holding, Source, Store, Wanted};
use crate::flux::content;
use crate::flux::observed::{Found, condition};
use crate::flux::shown::{self, Trouble};
use crate::flux::users::uses;
use crate::revision::Revision;
use crate::time::clock::Now;

/// A GatedSource and its sources, as they are seen at one instant.
pub(super) struct Seen {
    pub(super) object: Arc<GatedSource>,
    /// In the order of the spec.
    pub(super) sources: Vec<Observed>,
    store: Box<dyn Store>,
    pub(super) now: Now,
}

/// A source, and the child that is made of it.
pub(super) struct Observed {
    pub(super) wanted: Wanted,
    /// Its kind and name.
    pub(super) called: String,
    pub(super) upstream: Found,
    pub(super) child: Child,
    pub(super) child_kind: FluxKind,
    /// The last instant at which a consumer could not get the child's artifact.
    pub(super) missed_at: Option<Timestamp>,
}

/// What there is under the name of a child.
pub(super) enum Child {
    /// The child, which this GatedSource has made.
    Ours(Arc<FluxObject>),
    /// An object that this GatedSource has not made.
    Taken,
    /// There is no such object.
    Missing,
    /// The API server does not know its kind.
    NotInstalled,
    /// It cannot be read: why.
    Unreadable(String),
}

impl Seen {
    pub(super) fn new(
        object: Arc<GatedSource>,
        sources: Vec<Source>,
        consumers: &[Consumer],
        store: Box<dyn Store>,
        now: Now,
    ) -> Self {
        let observe = |source: Source| {
            let Source {
                wanted,
                upstream,
                child,
            } = source;
            let child_kind = wanted.child(object.spec.strategy);
            Observed {
                called: format!("{} {}", wanted.kind.as_str(), wanted.name),
                child: Child::of(&object, child),
                missed_at: missed_at(&object, child_kind, &wanted.target, consumers),
                child_kind,
                wanted,
                upstream,
            }
        };
        Self {
            sources: sources.into_iter().map(observe).collect(),
            object,
            store,
            now,
        }
    }

    pub(super) fn strategy(&self) -> Strategy {
        self.object.spec.strategy
    }

    pub(super) fn namespace(&self) -> &str {
        let namespace = self.object.metadata.namespace.as_deref();
        namespace.unwrap_or_default()
    }

    /// Whether an object of somebody else has the name of a child.
    pub(super) fn are_taken(&self) -> bool {
        let is_taken = |source: &Observed| matches!(source.child, Child::Taken);
        self.sources.iter().any(is_taken)
    }

    /// What all sources show together. Each of them has to be believed.
    pub(super) fn shown(&self) -> Result<Vec<Part>, Trouble> {
        let shown = |it: &Observed| {
            shown::shown(
                self.strategy(),
                it.wanted.kind,
                &it.wanted.name,
                &it.upstream,
            )
        };
        self.sources.iter().map(shown).collect()
    }

    /// What a source fetches, pinned to a revision. None: it is not there, or it cannot be pinned to
    /// that.
    pub(super) fn pinned(
        &self,
        source: &Observed,
        revision: &Revision,
    ) -> Option<Map<String, Value>> {
        let object = source.upstream.object()?;
        content::pinned(self.strategy(), source.wanted.kind, &object.spec, revision)
    }

    /// How an artifact of a child is stored.
    pub(super) fn holding(&self, child: &str, digest: Option<&str>) -> Holding {
        match digest {
            Some(digest) => self.store.holding(self.namespace(), child, digest),
            None => Holding::Failed("the source says no digest of its artifact".to_owned()),
        }
    }
}

impl Observed {
    /// Whether this is the source of that kind and name.
    pub(super) fn is(&self, kind: SourceKind, name: &str) -> bool {
        (self.wanted.kind, self.wanted.name.as_str()) == (kind, name)
    }
}

impl Child {
    fn of(object: &GatedSource, found: Found) -> Self {
        match found {
            Found::Here(child) if is_child_of(object, &child) => Self::Ours(child),
            Found::Here(_) => Self::Taken,
            Found::Missing => Self::Missing,
            Found::NotInstalled => Self::NotInstalled,
            Found::Unreadable(why) => Self::Unreadable(why.to_string()),
        }
    }

    /// The child, if this GatedSource has made it.
    pub(super) fn ours(&self) -> Option<&Arc<FluxObject>> {
        match self {
            Self::Ours(child) => Some(child),
            Self::Taken | Self::Missing | Self::NotInstalled | Self::Unreadable(_) => None,
        }
    }
}

/// Whether this GatedSource has made an object, as its mark says.
pub(super) fn is_child_of(object: &GatedSource, child: &FluxObject) -> bool {
    let annotations = child.metadata.annotations.as_ref();
    let mark = annotations.and_then(|all| all.get(marks::CHILD_OF));
    mark.is_some() && mark == object.metadata.name.as_ref()
}

/// The last instant at which a consumer could not get the artifact of a child. The strategy `suspend` has
/// no children: never.
fn missed_at(
    object: &GatedSource,
    kind: FluxKind,
    child: &str,
    consumers: &[Consumer],
) -> Option<Timestamp> {
    if object.spec.strategy == Strategy::Suspend {
        return None;
    }
    let own = object.metadata.namespace.as_deref().unwrap_or_default();
    let missed = consumers.iter().filter_map(|(consumer_kind, consumer)| {
        if !uses(*consumer_kind, consumer).contains(&(kind.as_str(), own, child)) {
            return None;
        }
        let ready = condition(consumer, "Ready")?;
        let is_missing = ready.status == "False" && ready.reason == "ArtifactFailed";
        is_missing.then_some(ready.last_transition_time.0)
    });
    missed.max()
}
