//! What goes out, as the status keeps it.

use sluice_crds::GatedSourceStatus;
use sluice_crds::gated_source::{Admitted, AdmittedPart, Candidate, Origin};

use super::candidates::summary;
use super::identity::is_admitted;
use super::{Given, Source};
use crate::flux::content;
use crate::revision::Revision;
use crate::time::stamp::time;

/// What goes out now.
pub(super) fn admit(given: &Given<'_>, origin: Origin, parts: Vec<AdmittedPart>) -> Admitted {
    let revisions: Vec<&str> = parts.iter().map(|part| part.revision.as_str()).collect();
    Admitted {
        revision: revisions.join(", "),
        short: None,
        at: time(given.now.at),
        origin,
        parts,
    }
}

/// What a candidate comes to when it goes out.
///
/// # Errors
/// Why it cannot: a source has just gone, or shows what its kind cannot be pinned to.
pub(super) fn of_candidate(given: &Given<'_>, candidate: &Candidate) -> Result<Admitted, String> {
    let parts = candidate.parts.iter().zip(&given.sources);
    let parts = parts.map(|(part, source)| {
        let revision = Revision::parse(&part.revision).ok()?;
        Some(AdmittedPart {
            kind: part.kind,
            name: part.name.clone(),
            revision: part.revision.clone(),
            digest: part.digest.clone(),
            spec: pinned(given, source, &revision)?,
        })
    });
    match parts.collect() {
        Some(parts) => Ok(admit(given, Origin::Gates, parts)),
        None => Err(format!(
            "{} cannot be pinned as its source is now",
            summary(&candidate.parts)
        )),
    }
}

/// The content of a source, pinned to a revision.
pub(super) fn pinned(
    given: &Given<'_>,
    source: &Source<'_>,
    revision: &Revision,
) -> Option<serde_json::Map<String, serde_json::Value>> {
    let object = source.upstream.object()?;
    let strategy = given.object.spec.strategy;
    content::pinned(strategy, source.wanted.kind, &object.spec, revision)
}

/// This goes out. Whatever was shown before it is no longer to go out.
pub(super) fn release(status: &mut GatedSourceStatus, admitted: &Admitted) {
    let out = |candidate: &Candidate| is_admitted(&candidate.parts, admitted);
    if let Some(place) = status.candidates.iter().position(out) {
        status.candidates.drain(..=place);
    }
    status.admitted = Some(admitted.clone());
}
