//! Step 2: what could go out: what the sources have shown since the last admission, the newest last.
//!
//! A commit or a digest identifies a change completely. A chart has a version, which its publisher may
//! use again for different content. Flux does not notice that: each time it fetches, it fetches the
//! current content. So where Flux hands on a chart as it was published, the digest of the file counts,
//! too. A chart that Flux packages itself has a different digest each time.

use jiff::Timestamp;
use sluice_crds::GatedSource;
use sluice_crds::gated_source::{Admitted, AdmittedPart, Candidate, Origin, Part};

use super::sources::{Observed, Seen};
use crate::flux::content::{fingerprint, selection};
use crate::flux::identity::{is_other_file, is_same_pin, version};
use crate::flux::shown::Trouble;
use crate::revision::Revision;
use crate::time::stamp::time;

/// The most candidates that are kept.
pub const MOST: usize = 20;

/// What is out and what could go out.
pub(super) struct Candidates {
    /// What is out, as far as it is known.
    pub(super) admitted: Option<Admitted>,
    /// What could go out, the newest last.
    pub(super) all: Vec<Candidate>,
    /// Why nothing new is seen.
    pub(super) trouble: Option<Trouble>,
}

impl Candidates {
    /// The candidates after a look, from what all sources show together. If some of the sources are not
    /// believed, nothing new is seen.
    pub(super) fn renew(seen: &Seen, before: &[Candidate], admitted: Option<Admitted>) -> Self {
        let (shown, trouble) = match seen.shown() {
            Ok(parts) => (Some(parts), None),
            Err(trouble) => (None, Some(trouble)),
        };
        Self {
            all: renew(seen, before, shown, admitted.as_ref()),
            admitted,
            trouble,
        }
    }
}

/// These candidates are dropped: those that were fetched under a spec that the sources no longer have,
/// also those that another `ref` or `version` selected; everything that was shown after the revision that
/// is now shown for a second time, and everything with a later version, because the sources have gone
/// back; and a chart whose version was published again, because the former one cannot be fetched any
/// more.
fn renew(
    seen: &Seen,
    before: &[Candidate],
    shown: Option<Vec<Part>>,
    admitted: Option<&Admitted>,
) -> Vec<Candidate> {
    let sources = &seen.sources;
    let is_kept = |candidate: &&Candidate| is_current(candidate, sources);
    let mut kept: Vec<Candidate> = before.iter().filter(is_kept).cloned().collect();
    let Some(mut parts) = shown else {
        return kept;
    };
    if admitted.is_some_and(|admitted| is_admitted(&parts, admitted)) {
        return Vec::new();
    }
    let is_shown = |candidate: &Candidate| are_same(&candidate.parts, &parts, sources);
    match kept.iter().position(is_shown) {
        Some(place) => kept.truncate(place + 1),
        None => {
            let former = name_republished(&mut parts, &kept, admitted, sources);
            kept.retain(|it| !former.contains(it) && !is_later(&it.parts, &parts));
            kept.push(Candidate {
                revision: names(parts.iter().map(|part| &part.revision)),
                since: time(seen.now.at),
                held: false,
                parts,
            });
        }
    }
    kept.drain(..kept.len().saturating_sub(MOST));
    kept
}

/// Adds their digest to the names of charts that were published again under a known version. Returns
/// the candidates that had the version before.
fn name_republished(
    parts: &mut [Part],
    kept: &[Candidate],
    admitted: Option<&Admitted>,
    sources: &[Observed],
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
        let replaces_what_is_out = out.any(|out| {
            (out.kind, &out.name) == (part.kind, &part.name)
                && is_same_pin(part.kind, &out.revision, &part.revision)
                && is_other_file_than(part, out)
        });
        if replaces_what_is_out || former.len() > before {
            name_with_digest(part);
        }
    }
    former
}

/// Names a chart by its version and its digest, so that it is not mistaken for the one that had the
/// version before: an approval of that one is no approval of this one.
fn name_with_digest(part: &mut Part) {
    let Some(digest) = &part.digest else {
        return;
    };
    let name = format!("{}@{digest}", version(&part.revision));
    if Revision::parse(&name).is_ok() {
        part.revision = name;
    }
}

/// Whether any part has a later version than what its source shows now. For commits, and for names that
/// are no versions, that cannot be known.
fn is_later(parts: &[Part], shown: &[Part]) -> bool {
    parts.iter().zip(shown).any(|(part, shown)| {
        let known = Revision::parse(&part.revision).ok();
        let shown = Revision::parse(&shown.revision).ok();
        let versions = known.as_ref().zip(shown.as_ref());
        let versions = versions.and_then(|(one, other)| one.version().zip(other.version()));
        versions.is_some_and(|(one, other)| one.cmp_precedence(other).is_gt())
    })
}

/// Whether a candidate was fetched under the present spec of the sources. For a source that is not there,
/// that is assumed.
fn is_current(candidate: &Candidate, sources: &[Observed]) -> bool {
    let parts = &candidate.parts;
    parts.len() == sources.len()
        && parts.iter().zip(sources).all(|(part, source)| {
            let is_of_spec = |spec| {
                part.content == fingerprint(part.kind, spec)
                    && part.selection == Some(selection(part.kind, spec))
            };
            let upstream = source.upstream.object();
            source.is(part.kind, &part.name)
                && upstream.is_none_or(|upstream| is_of_spec(&upstream.spec))
        })
}

/// Whether these are the same. `sources` bring both of them.
fn are_same(one: &[Part], other: &[Part], sources: &[Observed]) -> bool {
    let is_same = |((one, other), source): ((&Part, &Part), &Observed)| {
        (one.kind, &one.name, &one.content) == (other.kind, &other.name, &other.content)
            && is_same_pin(one.kind, &one.revision, &other.revision)
            && !is_republished(one, other, source)
    };
    one.len() == other.len() && one.iter().zip(other).zip(sources).all(is_same)
}

/// Whether a chart was published again under the same version.
fn is_republished(one: &Part, other: &Part, source: &Observed) -> bool {
    (one.kind, &one.name) == (other.kind, &other.name)
        && is_same_pin(one.kind, &one.revision, &other.revision)
        && source.upstream.object().is_some_and(|object| {
            let (one_file, other_file) = (one.digest.as_deref(), other.digest.as_deref());
            is_other_file(one.kind, &object.spec, one_file, other_file)
        })
}

/// Whether all of these have gone out, perhaps together with more, or in another order.
fn is_admitted(parts: &[Part], admitted: &Admitted) -> bool {
    let is_out = |part: &Part| admitted.parts.iter().any(|out| is_out(part, out));
    parts.iter().all(is_out)
}

/// Whether this is what has gone out of its source.
pub(super) fn is_out(part: &Part, admitted: &AdmittedPart) -> bool {
    (part.kind, &part.name) == (admitted.kind, &admitted.name)
        && is_same_pin(part.kind, &part.revision, &admitted.revision)
        && part.content == fingerprint(admitted.kind, &admitted.spec)
        && !is_other_file_than(part, admitted)
}

fn is_other_file_than(part: &Part, out: &AdmittedPart) -> bool {
    let (is, was) = (part.digest.as_deref(), out.digest.as_deref());
    is_other_file(part.kind, &out.spec, is, was)
}

/// The candidates that are left once this has gone out: all that were shown before it are dropped.
pub(super) fn release(candidates: &mut Vec<Candidate>, admitted: &Admitted) {
    let out = |candidate: &Candidate| is_admitted(&candidate.parts, admitted);
    if let Some(place) = candidates.iter().position(out) {
        candidates.drain(..=place);
    }
}

/// What the status keeps of a candidate when it goes out.
///
/// # Errors
/// Why it cannot go out: a source has just gone, or shows what its kind cannot be pinned to.
pub(super) fn to_admit(seen: &Seen, candidate: &Candidate) -> Result<Admitted, String> {
    let parts = candidate.parts.iter().zip(&seen.sources);
    let parts = parts.map(|(part, source)| {
        let revision = Revision::parse(&part.revision).ok()?;
        Some(AdmittedPart {
            kind: part.kind,
            name: part.name.clone(),
            revision: part.revision.clone(),
            digest: part.digest.clone(),
            spec: seen.pinned(source, &revision)?,
        })
    });
    match parts.collect() {
        Some(parts) => Ok(admitted(seen.now.at, Origin::Gates, parts)),
        None => Err(format!(
            "{} cannot be pinned as its source is now",
            names(candidate.parts.iter().map(|part| &part.revision))
        )),
    }
}

/// What the status keeps of something that goes out.
pub(super) fn admitted(at: Timestamp, origin: Origin, parts: Vec<AdmittedPart>) -> Admitted {
    Admitted {
        revision: names(parts.iter().map(|part| &part.revision)),
        short: None,
        at: time(at),
        origin,
        parts,
    }
}

/// The revisions of all parts, as people read them.
fn names<'a>(revisions: impl Iterator<Item = &'a String>) -> String {
    let revisions: Vec<&str> = revisions.map(String::as_str).collect();
    revisions.join(", ")
}

/// What the gates are asked about. If a commit or digest alone is no candidate, its name is not known.
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

/// The revision that a GatedSource asks its gates about, for tools that ask them in its place: the one in
/// its status or its `spec.revision`. None: it cannot be read.
pub fn asked_about(object: &GatedSource, text: &str) -> Option<Revision> {
    let revision = Revision::parse(text).ok()?;
    let status = object.status.as_ref();
    let candidates = status.map_or(&[][..], |status| &status.candidates);
    if is_shown(text, candidates) {
        return Some(revision);
    }
    // The controller has seen the source, and gives it no name that is not its own.
    let pending = status.and_then(|status| status.pending.as_ref());
    let pending = pending.and_then(|pending| asked(&pending.revision, candidates));
    let pending = pending.filter(|pending| pending.is(&revision));
    Some(pending.unwrap_or_else(|| revision.of_unknown_name()))
}
