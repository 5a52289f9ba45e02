//! What could go out: what the sources have shown since the last admission, the newest last.

use jiff::Timestamp;
use sluice_crds::gated_source::{Admitted, Candidate, Part};

use super::Source;
use super::identity::{are_same, call, is_admitted, is_republished};
use crate::flux::content::{fingerprint, selection};
use crate::flux::identity::{is_other_file, is_same_pin};
use crate::revision::Revision;
use crate::time::stamp::time;

/// The most candidates that are kept.
pub const MOST: usize = 20;

/// The candidates after a look. `shown`: what the sources bring now, where all of them are believed.
///
/// What was fetched as the sources are no longer written falls away, also what another `ref` or
/// `version` selected. So does whatever was shown after what is shown now once more, and whatever has a
/// later version than that: the sources have gone back. So does a chart that was published anew under
/// its version: nobody can fetch the former one any more.
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
    let Some(mut parts) = shown else {
        return kept;
    };
    if admitted.is_some_and(|admitted| is_admitted(&parts, admitted)) {
        return Vec::new();
    }
    match kept
        .iter()
        .position(|candidate| are_same(&candidate.parts, &parts, sources))
    {
        Some(place) => kept.truncate(place + 1),
        None => {
            let former = republish(&mut parts, &kept, admitted, sources);
            kept.retain(|it| !former.contains(it) && !is_later(&it.parts, &parts));
            kept.push(Candidate {
                revision: summary(&parts),
                since: time(now),
                held: false,
                parts,
            });
        }
    }
    kept.drain(..kept.len().saturating_sub(MOST));
    kept
}

/// Calls those parts by their digest that were published anew under a version that is known. Returns
/// the candidates that had it before.
fn republish(
    parts: &mut [Part],
    kept: &[Candidate],
    admitted: Option<&Admitted>,
    sources: &[Source<'_>],
) -> Vec<Candidate> {
    let mut former = Vec::new();
    for (part, source) in parts.iter_mut().zip(sources) {
        let had = |candidate: &&Candidate| {
            let mut parts = candidate.parts.iter();
            parts.any(|known| is_republished(known, part, source))
        };
        let before = former.len();
        former.extend(kept.iter().filter(had).cloned());
        let mut out = admitted.iter().flat_map(|admitted| &admitted.parts);
        let is_anew = out.any(|out| {
            (out.kind, &out.name) == (part.kind, &part.name)
                && is_same_pin(part.kind, &out.revision, &part.revision)
                && is_other_file(
                    part.kind,
                    &out.spec,
                    out.digest.as_deref(),
                    part.digest.as_deref(),
                )
        });
        call(part, is_anew || former.len() > before);
    }
    former
}

/// Whether any part has a later version than what its source shows now. Of commits, and of names that
/// are no versions, nobody can tell.
fn is_later(parts: &[Part], shown: &[Part]) -> bool {
    parts.iter().zip(shown).any(|(part, shown)| {
        let known = Revision::parse(&part.revision).ok();
        let shown = Revision::parse(&shown.revision).ok();
        let versions = known.as_ref().zip(shown.as_ref());
        let versions = versions.and_then(|(one, other)| one.version().zip(other.version()));
        versions.is_some_and(|(one, other)| one.cmp_precedence(other).is_gt())
    })
}

/// Notes which of them the gates hold back now.
pub(super) fn hold(candidates: &mut [Candidate], held: &[Candidate]) {
    for candidate in candidates {
        candidate.held |= held.iter().any(|it| it.parts == candidate.parts);
    }
}

/// Whether a candidate is of the sources as they are written now. Of one that is not there nothing
/// else is known.
fn is_current(candidate: &Candidate, sources: &[Source<'_>]) -> bool {
    let parts = &candidate.parts;
    parts.len() == sources.len()
        && parts.iter().zip(sources).all(|(part, source)| {
            let wanted = &source.wanted;
            let is_of_spec = |spec| {
                part.content == fingerprint(wanted.kind, spec)
                    && part.selection == Some(selection(wanted.kind, spec))
            };
            let upstream = source.upstream.object();
            (part.kind, &part.name) == (wanted.kind, &wanted.name)
                && upstream.is_none_or(|upstream| is_of_spec(&upstream.spec))
        })
}

/// The revisions of all, as people read them.
pub(super) fn summary(parts: &[Part]) -> String {
    let revisions: Vec<&str> = parts.iter().map(|part| part.revision.as_str()).collect();
    revisions.join(", ")
}
