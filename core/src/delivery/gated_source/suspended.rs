//! The strategy `suspend`: the sources themselves are suspended while the gates are closed.

use std::collections::BTreeSet;
use std::sync::Arc;

use sluice_crds::flux::FluxObject;
use sluice_crds::gated_source::{SourceKind, marks};
use sluice_crds::{Decision, GatedSource, State};

use super::Act;
use super::sources::{Observed, Seen};
use crate::flux::observed::is_suspended;
use crate::flux::shown::here;

/// The sources as they are once everything is done, and what has to be done for that.
#[derive(Default)]
pub(super) struct Sources {
    pub(super) acts: Vec<Act>,
    /// How many are suspended by this GatedSource.
    pub(super) held_back: usize,
    /// How many are suspended by somebody else.
    pub(super) by_others: usize,
    /// How many there are.
    pub(super) all: usize,
    /// What cannot be held back, and why.
    pub(super) troubles: Vec<String>,
}

impl Sources {
    /// Resumes the sources, or suspends them.
    pub(super) fn new(seen: &Seen, resume: bool) -> Self {
        let mut sources = Self {
            all: seen.sources.len(),
            ..Self::default()
        };
        for source in &seen.sources {
            match here(&source.upstream, &source.called) {
                Err(trouble) => sources.troubles.push(trouble.message),
                Ok(object) => sources.take(&seen.object, source, object, resume),
            }
        }
        sources
    }

    fn take(
        &mut self,
        owner: &GatedSource,
        source: &Observed,
        object: &Arc<FluxObject>,
        resume: bool,
    ) {
        let obstacle = cannot_hold_back(owner, source.wanted.kind, object);
        let resume = resume || obstacle.is_some();
        let obstacle = obstacle.map(|why| format!("the {} {why}", source.called));
        self.troubles.extend(obstacle);
        let is_suspended = is_suspended(object);
        let (is_ours, others) = suspenders(owner, object);
        let is_marked = is_ours || !others.is_empty();
        let holders = match resume {
            true => is_ours.then(|| others.clone()),
            // If something other than a GatedSource has suspended it, it stays as it is.
            false => (!is_suspended || (is_marked && !is_ours)).then(|| {
                let own = owner.metadata.name.clone();
                others.iter().cloned().chain(own).collect()
            }),
        };
        if !resume && (is_ours || holders.is_some()) {
            self.held_back += 1;
        } else if is_suspended && (!is_ours || !others.is_empty()) {
            self.by_others += 1;
        }
        self.acts.extend(holders.map(|holders| Act::Suspend {
            kind: source.wanted.kind,
            holders,
            before: Arc::clone(object),
        }));
    }
}

/// The gates whose answer depends on the revision, which a suspended source does not show.
pub(super) fn depends_on_revision(decision: &Decision) -> Vec<String> {
    let checked = decision.checked.iter();
    let conditional = checked.filter(|checked| checked.state == State::Conditional);
    conditional.map(|checked| checked.gate.clone()).collect()
}

/// The GatedSources that suspend a source, as its mark says. If there are several, the last one to let it
/// go resumes it: so nothing gets past the gates of another.
pub fn holders(object: &FluxObject) -> BTreeSet<String> {
    let mark = object.metadata.annotations.as_ref();
    let mark = mark.and_then(|all| all.get(marks::SUSPENDED_BY));
    let names = mark.into_iter().flat_map(|names| names.split(','));
    let names = names.map(str::trim).filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}

/// Whether this GatedSource suspends a source, and which others do.
pub(super) fn suspenders(owner: &GatedSource, object: &FluxObject) -> (bool, BTreeSet<String>) {
    let mut holders = holders(object);
    let own = owner.metadata.name.as_deref().unwrap_or_default();
    (holders.remove(own), holders)
}

/// Why suspending a source does not hold it back, and what to do instead.
fn cannot_hold_back(owner: &GatedSource, kind: SourceKind, object: &FluxObject) -> Option<String> {
    // It has no artifact, and nothing to suspend.
    if kind == SourceKind::HelmRepository && object.spec.get("type") == Some(&"oci".into()) {
        let why = "is of type oci, which suspending does not hold back; suspend the HelmCharts of \
                   it instead";
        return Some(why.to_owned());
    }
    // Its GatedSource writes its whole spec, and would resume it.
    let marks = object.metadata.annotations.as_ref();
    let parent = marks.and_then(|all| all.get(marks::CHILD_OF));
    let parent = parent.filter(|it| owner.metadata.name.as_ref() != Some(*it))?;
    Some(format!(
        "is the child of the GatedSource {parent}, which writes it; name these gates in that one"
    ))
}
