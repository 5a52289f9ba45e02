//! What a revision is called that a user has written into the spec.
//!
//! A child is pinned to a commit or a digest. The name before it is only what the user says, unless the
//! source has shown it: those who may edit a GatedSource must not choose the name that lists and votes go
//! by. So it is left out, and the gates are asked about a revision whose name nobody knows.

use serde_json::{Map, Value};
use sluice_crds::GatedSource;
use sluice_crds::gated_source::{Candidate, SourceKind};

use crate::flux::content::branch;
use crate::revision::Revision;

/// A revision that somebody has written, without the name that only they give it. The version of a chart
/// is what it is fetched by; and where Flux clones one branch alone, a commit that it finds is of that
/// branch.
pub(super) fn believed(kind: SourceKind, spec: &Map<String, Value>, written: Revision) -> Revision {
    let is_of_branch = kind == SourceKind::GitRepository && branch(spec, &written).is_some();
    match is_of_branch {
        true => written,
        false => written.of_unknown_name(),
    }
}

/// What the gates are asked about. A commit or digest alone that is no candidate is called something that
/// nobody knows.
pub(super) fn asked(text: &str, candidates: &[Candidate]) -> Option<Revision> {
    let revision = Revision::parse(text).ok()?;
    Some(match revision.name() {
        None if !is_shown(text, candidates) => revision.of_unknown_name(),
        None | Some(_) => revision,
    })
}

/// Whether a source has shown it as it is written here.
fn is_shown(text: &str, candidates: &[Candidate]) -> bool {
    let mut parts = candidates.iter().flat_map(|candidate| &candidate.parts);
    parts.any(|part| part.revision == text)
}

/// The revision that a GatedSource asks its gates about, for those who ask them in its place: what its
/// status or its `spec.revision` has. None: it cannot be read.
pub fn asked_about(object: &GatedSource, text: &str) -> Option<Revision> {
    let revision = Revision::parse(text).ok()?;
    let status = object.status.as_ref();
    let candidates = status.map_or(&[][..], |status| &status.candidates);
    if is_shown(text, candidates) {
        return Some(revision);
    }
    // The controller has seen the source, and calls it by no name that is not its own.
    let pending = status.and_then(|status| status.pending.as_ref());
    let pending = pending.and_then(|pending| asked(&pending.revision, candidates));
    let pending = pending.filter(|pending| pending.is(&revision));
    Some(pending.unwrap_or_else(|| revision.of_unknown_name()))
}
