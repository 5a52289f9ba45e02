//! What could go out: what the sources have shown since the last admission, the newest last.

use jiff::Timestamp;
use sluice_crds::gated_source::{Admitted, AdmittedPart, Candidate, Part};

use super::Source;
use super::content::fingerprint;
use crate::report::time;
use crate::revision::Revision;

/// The most candidates that are kept.
pub const MOST: usize = 20;

/// The candidates after a look. `shown`: what the sources bring now, where all of them are believed.
///
/// What was fetched as the sources are no longer written falls away. So does whatever was shown after
/// what is shown now once more: the sources have gone back.
pub(super) fn renew(
    before: &[Candidate],
    shown: Option<Vec<Part>>,
    admitted: Option<&Admitted>,
    sources: &[Source<'_>],
    now: Timestamp,
) -> Vec<Candidate> {
    let mut kept: Vec<Candidate> = (before.iter())
        .filter(|candidate| is_current(candidate, sources))
        .cloned()
        .collect();
    let Some(parts) = shown else {
        return kept;
    };
    if admitted.is_some_and(|admitted| is_admitted(&parts, admitted)) {
        return Vec::new();
    }
    match kept
        .iter()
        .position(|candidate| are_same(&candidate.parts, &parts))
    {
        Some(place) => kept.truncate(place + 1),
        None => kept.push(Candidate {
            revision: summary(&parts),
            since: time(now),
            parts,
        }),
    }
    kept.drain(..kept.len().saturating_sub(MOST));
    kept
}

/// Whether a candidate is of the sources as they are written now. Of one that is not there nothing
/// else is known.
fn is_current(candidate: &Candidate, sources: &[Source<'_>]) -> bool {
    let parts = &candidate.parts;
    parts.len() == sources.len()
        && parts.iter().zip(sources).all(|(part, source)| {
            let wanted = &source.wanted;
            let content = || Some(fingerprint(wanted.kind, &source.upstream.object()?.spec));
            (part.kind, &part.name) == (wanted.kind, &wanted.name)
                && content().is_none_or(|content| content == part.content)
        })
}

/// The revisions of all, as people read them.
pub(super) fn summary(parts: &[Part]) -> String {
    let revisions: Vec<&str> = parts.iter().map(|part| part.revision.as_str()).collect();
    revisions.join(", ")
}

fn are_same(one: &[Part], other: &[Part]) -> bool {
    one.len() == other.len()
        && one.iter().zip(other).all(|(one, other)| {
            (one.kind, &one.name, &one.content) == (other.kind, &other.name, &other.content)
                && is_same_revision(&one.revision, &other.revision)
        })
}

/// Whether these are what has gone out.
pub(super) fn is_admitted(parts: &[Part], admitted: &Admitted) -> bool {
    parts.len() == admitted.parts.len()
        && parts
            .iter()
            .zip(&admitted.parts)
            .all(|(part, out)| is_out(part, out))
}

/// Whether this is what has gone out of its source.
pub(super) fn is_out(part: &Part, admitted: &AdmittedPart) -> bool {
    (part.kind, &part.name) == (admitted.kind, &admitted.name)
        && is_same_revision(&part.revision, &admitted.revision)
        && part.content == fingerprint(admitted.kind, &admitted.spec)
}

/// Whether two texts name the same change. Those that nobody can read do not.
pub(super) fn is_same_revision(one: &str, other: &str) -> bool {
    match (Revision::parse(one), Revision::parse(other)) {
        (Ok(one), Ok(other)) => one.is(&other),
        _ => false,
    }
}
