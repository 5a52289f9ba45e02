//! Step 4: one admission: what is out and what could go out, once the decision is recorded.

use sluice_crds::flux::Artifact;
use sluice_crds::gated_source::{Admitted, AdmittedPart, Candidate};

use super::candidates::{Candidates, release};
use super::considered::Outcome;
use super::sources::{Observed, Seen};
use crate::flux::content::{fingerprint, is_literal};
use crate::flux::identity::is_same_pin;
use crate::flux::observed::is_observed;
use crate::flux::replaced::{is_answered, is_reproducible};
use crate::flux::shown::Trouble;
use crate::revision::short;

/// What is out and what could go out.
pub(super) struct Admission<'a> {
    /// What happened to what would go out in this look.
    pub(super) outcome: Outcome<'a>,
    pub(super) admitted: Option<Admitted>,
    pub(super) candidates: Vec<Candidate>,
    /// Why nothing new is seen.
    pub(super) trouble: Option<Trouble>,
}

impl<'a> Admission<'a> {
    /// `may_act`: whether anything may be done to other objects.
    pub(super) fn new(
        seen: &Seen,
        mut before: Candidates,
        outcome: Outcome<'a>,
        may_act: bool,
    ) -> Self {
        if let Outcome::Out(out) = outcome {
            release(&mut before.all, out);
            before.admitted = Some(out.clone());
        }
        if let Some(admitted) = &mut before.admitted {
            if may_act {
                record_child_digests(&seen.sources, admitted);
            }
            admitted.short = Some(short(&admitted.revision));
        }
        Self {
            outcome,
            admitted: before.admitted,
            candidates: before.all,
            trouble: before.trouble,
        }
    }

    /// What is out of a source.
    pub(super) fn of(&self, source: &Observed) -> Option<&AdmittedPart> {
        let mut out = self.admitted.iter().flat_map(|admitted| &admitted.parts);
        out.find(|part| source.is(part.kind, &part.name))
    }
}

/// Records the digest of what was admitted without a known digest, such as a version that `spec.revision`
/// asked for, as soon as its child has it. Also records the digest of the same content that
/// source-controller has packed differently since then, and has confirmed.
/// packed differently since, and has answered for.
fn record_child_digests(sources: &[Observed], admitted: &mut Admitted) {
    for part in &mut admitted.parts {
        let source = sources.iter().find(|it| it.is(part.kind, &part.name));
        if let Some(artifact) = source.and_then(|source| artifact_of(source, part)) {
            part.digest.clone_from(&artifact.digest);
        }
    }
}

/// The artifact that a child has of what was admitted, if its digest is to be recorded.
fn artifact_of<'a>(source: &'a Observed, part: &AdmittedPart) -> Option<&'a Artifact> {
    let is_reproducible = is_reproducible(part);
    let is_unknown =
        part.digest.is_none() && (is_literal(part.kind, &part.spec) || is_reproducible);
    if !is_unknown && !is_reproducible {
        return None;
    }
    let child = source.child.ours().filter(|child| is_observed(child))?;
    let is_pinned = ["ref", "version"]
        .iter()
        .all(|pin| child.spec.get(*pin) == part.spec.get(*pin))
        && fingerprint(part.kind, &child.spec) == fingerprint(part.kind, &part.spec);
    let artifact = child.status.artifact.as_ref().filter(|_| is_pinned)?;
    let is_it = is_same_pin(part.kind, &artifact.revision, &part.revision);
    (is_it && (is_unknown || is_answered(child, artifact))).then_some(artifact)
}
