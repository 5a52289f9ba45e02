//! What happens to children and suspended sources when their GatedSource is deleted, or no longer names
//! their source.

use std::sync::Arc;

use jiff::Timestamp;
use sluice_crds::GatedSource;
use sluice_crds::flux::{FluxKind, FluxObject};
use sluice_crds::gated_source::{DeletionPolicy, SourceKind, Strategy, marks};

use super::sources::{Child, Seen, is_child_of};
use super::suspended::{Sources, suspenders};
use super::{Act, NAMED};
use crate::delivery::choice::Gates;
use crate::flux::observed::Found;
use crate::gate::set::Ruling;
use crate::verdict::condition::listed;

/// Children and suspended sources that the spec no longer names.
pub(super) struct Former {
    /// The children to delete, if the spec says that children are deleted at all.
    pub(super) children: Vec<Act>,
    /// Sources are resumed.
    pub(super) sources: Vec<Act>,
    /// What the gates of policies say of resuming them. Naming other sources must not bypass these gates:
    /// the sources stay suspended until the gates admit it. None: there are no such sources, or no such
    /// gates.
    policies: Option<Ruling>,
    /// The sources, as messages name them.
    names: Vec<String>,
}

impl Former {
    /// `children` and `sources` are those that an index reports. An object that has lost the mark, or
    /// that has the mark of somebody else, is not ours.
    pub(super) fn new(
        owner: &GatedSource,
        children: &[(FluxKind, Arc<FluxObject>)],
        sources: &[(SourceKind, Arc<FluxObject>)],
        gates: &Gates,
    ) -> Self {
        let children = children.iter().filter(|(_, child)| {
            owner.spec.deletion_policy == DeletionPolicy::Delete && is_child_of(owner, child)
        });
        let policies = gates.gathered.of_policies();
        let policies = policies.filter(|_| !sources.is_empty());
        let sources = sources.iter().filter_map(|(kind, object)| {
            let (is_ours, holders) = suspenders(owner, object);
            let name = object.metadata.name.as_deref().unwrap_or_default();
            let resume = Act::Suspend {
                kind: *kind,
                holders,
                before: Arc::clone(object),
            };
            is_ours.then(|| (resume, format!("{} {name}", kind.as_str())))
        });
        let (sources, names) = sources.unzip();
        Self {
            children: children.map(|(kind, child)| delete(*kind, child)).collect(),
            sources,
            policies: policies.map(|policies| policies.rule(gates.now)),
            names,
        }
    }

    /// Whether the sources may be resumed.
    pub(super) fn may_resume(&self) -> bool {
        self.policies.as_ref().is_none_or(|ruling| ruling.allowed)
    }

    /// Until when the gates of policies say so.
    pub(super) fn until(&self) -> Option<Timestamp> {
        self.policies.as_ref()?.until
    }

    /// What to say of sources that stay suspended, after everything else that is said.
    pub(super) fn still_suspended(&self) -> String {
        if self.may_resume() {
            return String::new();
        }
        format!(
            "; {} stay suspended, although they are not named any more, until the gates of \
             GatePolicies admit",
            listed(&self.names, NAMED)
        )
    }
}

fn delete(kind: FluxKind, child: &Arc<FluxObject>) -> Act {
    Act::Delete {
        kind,
        before: Arc::clone(child),
    }
}

/// Whether the GatedSource is being deleted.
pub(super) fn is_deleting(object: &GatedSource) -> bool {
    object.metadata.deletion_timestamp.is_some()
}

fn has_finalizer(object: &GatedSource) -> bool {
    let finalizers = object.metadata.finalizers.iter().flatten();
    finalizers.into_iter().any(|it| it == marks::FINALIZER)
}

/// The GatedSource has the finalizer as long as its children have to be deleted first.
pub(super) fn finalizer(object: &GatedSource) -> Option<Act> {
    let wanted = object.spec.deletion_policy == DeletionPolicy::Delete;
    (wanted != has_finalizer(object)).then_some(Act::Finalize(wanted))
}

/// What blocks the deletion, in a word and in a sentence: a child that has to be deleted first, or a
/// suspended source, cannot be read.
pub(super) fn obstacle(seen: &Seen) -> Option<(&'static str, String)> {
    let object = &seen.object;
    if !has_finalizer(object) || object.spec.deletion_policy == DeletionPolicy::Orphan {
        return None;
    }
    seen.sources.iter().find_map(|source| {
        let (kind, name) = source.wanted.used(seen.strategy());
        let (reason, why) = match (seen.strategy(), &source.upstream, &source.child) {
            (Strategy::Suspend, Found::Unreadable(why), _) => ("SourceUnreadable", why.as_ref()),
            (Strategy::Pin | Strategy::Artifact, _, Child::Unreadable(why)) => {
                ("ChildUnreadable", why.as_str())
            }
            _ => return None,
        };
        let message = format!(
            "it is deleted once the {} {name} is seen to, which cannot be read: {why}",
            kind.as_str()
        );
        Some((reason, message))
    })
}

/// What is left to do before the GatedSource may be deleted.
pub(super) fn acts(seen: &Seen, former: Former) -> Vec<Act> {
    if !has_finalizer(&seen.object) {
        return Vec::new();
    }
    let mut left = Vec::new();
    if seen.object.spec.deletion_policy == DeletionPolicy::Delete {
        match seen.strategy() {
            Strategy::Suspend => left.extend(Sources::new(seen, true).acts),
            Strategy::Pin | Strategy::Artifact => {
                let children = seen.sources.iter();
                let children = children.filter_map(|it| Some((it.child_kind, it.child.ours()?)));
                left.extend(children.map(|(kind, child)| delete(kind, child)));
                left.extend(former.children);
            }
        }
        left.extend(former.sources);
    }
    match left.is_empty() && obstacle(seen).is_none() {
        true => vec![Act::Finalize(false)],
        false => left,
    }
}
