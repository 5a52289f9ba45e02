//! When two things that sources show are the same change.
//!
//! A commit or a digest says all of it. A chart has a version, which its publisher may use again for
//! another content. Flux takes no notice of that by itself, and fetches whatever is there when it
//! fetches anew. So where Flux hands on a chart as it was published, the digest of the file counts,
//! too; one that it puts together itself has another digest each time.

use sluice_crds::GatedSourceStatus;
use sluice_crds::gated_source::{Admitted, AdmittedPart, Part};

use super::{Given, Source, child, doubt};
use crate::flux::content::{fingerprint, is_literal};
use crate::flux::identity::{is_other_file, is_same_pin, version};
use crate::flux::observed::is_observed;
use crate::revision::Revision;

/// Whether these are the same. `sources` bring both of them.
pub(super) fn are_same(one: &[Part], other: &[Part], sources: &[Source<'_>]) -> bool {
    one.len() == other.len()
        && one
            .iter()
            .zip(other)
            .zip(sources)
            .all(|((one, other), source)| {
                (one.kind, &one.name, &one.content) == (other.kind, &other.name, &other.content)
                    && is_same_pin(one.kind, &one.revision, &other.revision)
                    && !is_republished(one, other, source)
            })
}

/// Whether a chart has been published anew under the same version.
pub(super) fn is_republished(one: &Part, other: &Part, source: &Source<'_>) -> bool {
    (one.kind, &one.name) == (other.kind, &other.name)
        && is_same_pin(one.kind, &one.revision, &other.revision)
        && source.upstream.object().is_some_and(|object| {
            let (one_file, other_file) = (one.digest.as_deref(), other.digest.as_deref());
            is_other_file(one.kind, &object.spec, one_file, other_file)
        })
}

/// Whether all of these have gone out, perhaps together with more, or in another order.
pub(super) fn is_admitted(parts: &[Part], admitted: &Admitted) -> bool {
    let is_out = |part: &Part| admitted.parts.iter().any(|out| is_out(part, out));
    parts.iter().all(is_out)
}

/// Whether this is what has gone out of its source.
pub(super) fn is_out(part: &Part, admitted: &AdmittedPart) -> bool {
    (part.kind, &part.name) == (admitted.kind, &admitted.name)
        && is_same_pin(part.kind, &part.revision, &admitted.revision)
        && part.content == fingerprint(admitted.kind, &admitted.spec)
        && !is_other_file(
            part.kind,
            &admitted.spec,
            part.digest.as_deref(),
            admitted.digest.as_deref(),
        )
}

/// Calls a chart that was published anew by its version and its digest, so that nobody takes it for
/// the one that had the version before: whoever has approved that one has not approved this one.
pub(super) fn call(part: &mut Part, is_republished: bool) {
    let Some(digest) = part.digest.as_ref().filter(|_| is_republished) else {
        return;
    };
    let called = format!("{}@{digest}", version(&part.revision));
    if Revision::parse(&called).is_ok() {
        part.revision = called;
    }
}

/// Notes the digest of what was admitted without knowing it, such as a version that somebody asked
/// for, as soon as its child has it; and that of the same content which source-controller has packed
/// differently since, and has answered for.
pub(super) fn learn(given: &Given<'_>, status: &mut GatedSourceStatus) {
    let Some(admitted) = &mut status.admitted else {
        return;
    };
    for part in &mut admitted.parts {
        let is_its = |source: &&Source<'_>| {
            (source.wanted.kind, &source.wanted.name) == (part.kind, &part.name)
        };
        let Some(source) = given.sources.iter().find(is_its) else {
            continue;
        };
        let is_reproducible = doubt::is_reproducible(part);
        let unknown =
            part.digest.is_none() && (is_literal(part.kind, &part.spec) || is_reproducible);
        let Some(child) = source.child.object().filter(|child| {
            (unknown || is_reproducible)
                && child::is_ours(given, child)
                && is_observed(child)
                && ["ref", "version"]
                    .iter()
                    .all(|pin| child.spec.get(*pin) == part.spec.get(*pin))
                && fingerprint(part.kind, &child.spec) == fingerprint(part.kind, &part.spec)
        }) else {
            continue;
        };
        let artifact = child.status.artifact.as_ref();
        let artifact = artifact.filter(|it| is_same_pin(part.kind, &it.revision, &part.revision));
        if let Some(artifact) = artifact
            && (unknown || doubt::is_answered(child, artifact))
        {
            part.digest.clone_from(&artifact.digest);
        }
    }
}
