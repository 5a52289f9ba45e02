//! Step 3: which of the candidates are asked for: everything that can be fetched, or what `spec.revision`
//! asks for.

use sluice_crds::gated_source::{Admitted, Candidate, Part, Strategy};

use super::Holding;
use super::candidates::{asked, is_out};
use super::sources::Seen;
use crate::delivery::choice::{Asked, Change};
use crate::flux::content::{fingerprint, selection};
use crate::flux::identity::{is_same_pin, without_claimed_name};
use crate::revision::Revision;
use crate::time::stamp::time;

/// What is asked for.
pub(super) enum Demand {
    /// Nothing is newer than what is out.
    Nothing,
    /// One of these, the newest last. All of them can be fetched.
    Any(Vec<Change<Candidate>>),
    /// What `spec.revision` asks for cannot be fetched: why.
    Unobtainable(String),
}

/// What is asked for among what could go out.
pub(super) fn demand(seen: &Seen, admitted: Option<&Admitted>, candidates: &[Candidate]) -> Demand {
    let change = |it: &Candidate| change(it, admitted, candidates);
    let Some(revision) = seen.object.spec.revision.as_deref() else {
        let obtainable = candidates.iter().filter(|it| is_obtainable(seen, it));
        let changes: Vec<_> = obtainable.map(change).collect();
        return match changes.is_empty() {
            true => Demand::Nothing,
            false => Demand::Any(changes),
        };
    };
    if is_out_as_asked(seen, admitted, revision) {
        return Demand::Nothing;
    }
    let is_asked_for = |it: &&Candidate| {
        let mut kinds = seen.sources.iter().map(|source| source.wanted.kind);
        kinds.any(|kind| is_same_pin(kind, &it.revision, revision))
    };
    match (
        candidates.iter().find(is_asked_for),
        seen.object.spec.strategy,
    ) {
        (Some(known), _) if is_obtainable(seen, known) => Demand::Any(vec![change(known)]),
        (_, Strategy::Artifact) => Demand::Unobtainable(format!(
            "spec.revision asks for {revision}, which is not stored here; write one of the candidates, \
             or bring the source back to it"
        )),
        (_, Strategy::Pin | Strategy::Suspend) => match not_shown(seen, revision) {
            Some(candidate) => Demand::Any(vec![change(&candidate)]),
            None => Demand::Unobtainable(format!(
                "spec.revision asks for {revision}, and it is not known yet how to fetch it"
            )),
        },
    }
}

/// Whether what `spec.revision` asks for is out, and with the content that its source has now.
pub(super) fn is_out_as_asked(seen: &Seen, admitted: Option<&Admitted>, asked: &str) -> bool {
    let Some((source, admitted)) = seen.sources.first().zip(admitted) else {
        return false;
    };
    let content = source.upstream.object();
    let content = content.map(|object| fingerprint(source.wanted.kind, &object.spec));
    admitted.parts.iter().any(|part| {
        let is_content = |content| content == fingerprint(part.kind, &part.spec);
        source.is(part.kind, &part.name)
            && is_same_pin(part.kind, &part.revision, asked)
            && content.clone().is_none_or(is_content)
    })
}

/// A candidate that no source shows now, but `spec.revision` asks for: as the source is written now, and
/// without a name that only the spec gives it.
fn not_shown(seen: &Seen, asked: &str) -> Option<Candidate> {
    let [source] = seen.sources.as_slice() else {
        return None;
    };
    let (kind, object) = (source.wanted.kind, source.upstream.object()?);
    let revision = without_claimed_name(kind, &object.spec, Revision::parse(asked).ok()?);
    seen.pinned(source, &revision)?;
    let revision = revision.to_string();
    // It is no candidate of the status, which would say since when it waits, and whether it was held
    // back.
    let status = seen.object.status.as_ref();
    let pending = status.and_then(|status| status.pending.as_ref());
    let pending = pending.filter(|pending| pending.revision == revision);
    let last = status.and_then(|status| status.last_decision.as_ref());
    let last = last.filter(|last| last.subject.revision.as_ref() == Some(&revision));
    Some(Candidate {
        since: pending.map_or_else(|| time(seen.now.at), |pending| pending.since.clone()),
        held: pending.and(last).is_some_and(|last| !last.allowed),
        parts: vec![Part {
            kind,
            name: source.wanted.name.clone(),
            revision: revision.clone(),
            digest: None,
            content: fingerprint(kind, &object.spec),
            selection: Some(selection(kind, &object.spec)),
        }],
        revision,
    })
}

/// Whether all of a candidate can be fetched: its sources exist and say how they are reached, and what
/// this controller serves is stored.
fn is_obtainable(seen: &Seen, candidate: &Candidate) -> bool {
    let serves = seen.object.spec.strategy == Strategy::Artifact;
    (candidate.parts.iter().zip(&seen.sources)).all(|(part, source)| {
        let holding = || seen.holding(&source.wanted.target, part.digest.as_deref());
        source.upstream.object().is_some() && (!serves || matches!(holding(), Holding::Stored(_)))
    })
}

/// A candidate as the gates are asked about it: by those of its parts that are not out already.
fn change(
    candidate: &Candidate,
    admitted: Option<&Admitted>,
    candidates: &[Candidate],
) -> Change<Candidate> {
    let is_out = |part: &&Part| {
        let mut out = admitted.iter().flat_map(|admitted| &admitted.parts);
        out.any(|admitted| is_out(part, admitted))
    };
    let parts = candidate.parts.iter().filter(|part| !is_out(part));
    let parts = parts.map(|part| Asked {
        name: part.revision.clone(),
        revision: asked(&part.revision, candidates),
    });
    Change {
        parts: parts.collect(),
        name: candidate.revision.clone(),
        what: candidate.clone(),
    }
}
