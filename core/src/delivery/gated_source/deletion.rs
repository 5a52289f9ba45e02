//! What becomes of children when their GatedSource goes, or no longer names their source.

use sluice_crds::flux::FluxKind;
use sluice_crds::gated_source::{DeletionPolicy, Strategy, marks};

use super::child::is_ours;
use super::{Act, Given, suspended};
use crate::flux::observed::Found;

/// Whether the GatedSource is going.
pub(super) fn is_going(given: &Given<'_>) -> bool {
    given.object.metadata.deletion_timestamp.is_some()
}

fn is_held(given: &Given<'_>) -> bool {
    let finalizers = given.object.metadata.finalizers.iter().flatten();
    finalizers.into_iter().any(|it| it == marks::FINALIZER)
}

/// The finalizer holds a GatedSource for as long as its children have to go first.
pub(super) fn finalizer(given: &Given<'_>) -> Option<Act> {
    let wanted = given.object.spec.deletion_policy == DeletionPolicy::Delete;
    (wanted != is_held(given)).then_some(Act::Finalize(wanted))
}

/// Why it cannot go: what has to go first cannot be seen, or what it has suspended. In a word, and in
/// a sentence.
pub(super) fn obstacle(given: &Given<'_>) -> Option<(&'static str, String)> {
    if !is_held(given) || given.object.spec.deletion_policy == DeletionPolicy::Orphan {
        return None;
    }
    let strategy = given.object.spec.strategy;
    given.sources.iter().find_map(|source| {
        let (reason, kind, name, found) = match strategy {
            Strategy::Suspend => {
                let kind = FluxKind::Source(source.wanted.kind);
                (
                    "SourceUnreadable",
                    kind,
                    &source.wanted.name,
                    &source.upstream,
                )
            }
            Strategy::Pin | Strategy::Artifact => {
                let kind = source.wanted.child(strategy);
                (
                    "ChildUnreadable",
                    kind,
                    &source.wanted.target,
                    &source.child,
                )
            }
        };
        let Found::Unreadable(why) = found else {
            return None;
        };
        let message = format!(
            "it is deleted once the {} {name} is seen to, which cannot be read: {why}",
            kind.as_str()
        );
        Some((reason, message))
    })
}

/// What is left to do before it may go.
pub(super) fn going(given: &Given<'_>) -> Vec<Act> {
    if !is_held(given) {
        return Vec::new();
    }
    let left = match given.object.spec.deletion_policy {
        DeletionPolicy::Orphan => Vec::new(),
        DeletionPolicy::Delete => {
            let mut left = match given.object.spec.strategy {
                Strategy::Suspend => suspended::course(given, true).acts,
                Strategy::Pin | Strategy::Artifact => children(given),
            };
            left.extend(suspended::dropped(given));
            left
        }
    };
    match left.is_empty() && obstacle(given).is_none() {
        true => vec![Act::Finalize(false)],
        false => left,
    }
}

fn children(given: &Given<'_>) -> Vec<Act> {
    let strategy = given.object.spec.strategy;
    let children = given.sources.iter().filter_map(|source| {
        let child = source.child.object()?;
        is_ours(given, child).then(|| Act::Delete {
            kind: source.wanted.child(strategy),
            before: Box::new(child.clone()),
        })
    });
    children.chain(strays(given)).collect()
}

/// Children of sources that the spec no longer names: they go if children are to go at all.
pub(super) fn strays(given: &Given<'_>) -> Vec<Act> {
    match given.object.spec.deletion_policy {
        DeletionPolicy::Orphan => Vec::new(),
        // Whatever an index says: an object that has lost the mark, or bears another's, is not ours.
        DeletionPolicy::Delete => (given.strays.iter())
            .filter(|(_, child)| is_ours(given, child))
            .map(|(kind, child)| Act::Delete {
                kind: *kind,
                before: Box::new((*child).clone()),
            })
            .collect(),
    }
}
