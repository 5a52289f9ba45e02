//! Step 3: what is admitted without asking the gates that the GatedSource names: what its children have
//! already, and what runs already.

use jiff::Timestamp;
use sluice_crds::Decision;
use sluice_crds::flux::FluxObject;
use sluice_crds::gated_source::{
    self, Admitted, AdmittedPart, Candidate, ConsumerKind, Origin, Strategy,
};

use super::Consumer;
use super::candidates::{admitted, asked};
use super::sources::{Observed, Seen};
use crate::delivery::choice::{Asked, Change, Gates};
use crate::flux::content;
use crate::flux::identity::{is_same_pin, without_claimed_name};
use crate::flux::observed::runs;
use crate::flux::shown::{Trouble, can_be_pinned, here};
use crate::flux::users::{consumer_called, uses};
use crate::revision::Revision;
use crate::time::stamp::time;

/// The reason of a baseline that says what somebody else runs.
pub(super) const BASELINE_MISMATCH: &str = "BaselineMismatch";

/// What the children were admitted with, if no status says it because the GatedSource has been created
/// again.
pub(super) fn adopted(seen: &Seen) -> Option<Admitted> {
    let parts = seen.sources.iter().map(|source| adopt(seen, source));
    let parts: Vec<AdmittedPart> = parts.collect::<Option<_>>()?;
    (!parts.is_empty()).then(|| admitted(seen.now.at, Origin::Adopted, parts))
}

fn adopt(seen: &Seen, source: &Observed) -> Option<AdmittedPart> {
    let (kind, child) = (source.wanted.kind, source.child.ours()?);
    let artifact = child.status.artifact.as_ref();
    let (revision, digest, spec) = match seen.strategy() {
        Strategy::Pin | Strategy::Suspend => {
            let (revision, spec) = content::of_pin(kind, &child.spec)?;
            let artifact = artifact.filter(|it| is_same_pin(kind, &it.revision, revision.as_str()));
            let digest = artifact.and_then(|it| it.digest.clone());
            (revision.to_string(), digest, spec)
        }
        Strategy::Artifact => {
            let artifact = artifact?;
            let revision = Revision::parse(&artifact.revision).ok()?;
            let spec = seen.pinned(source, &revision)?;
            (artifact.revision.clone(), artifact.digest.clone(), spec)
        }
    };
    Some(AdmittedPart {
        kind,
        name: source.wanted.name.clone(),
        revision,
        digest,
        spec,
    })
}

/// What runs already, as the spec says.
pub(super) struct Baseline {
    /// What the status keeps of it when it goes out.
    pub(super) admitted: Admitted,
    /// Whether it goes out.
    pub(super) decision: Decision,
    /// Until when that holds if no change is seen.
    pub(super) next: Option<Timestamp>,
}

/// What runs already: for every source, or for none. None: nothing runs, and the gates decide.
pub(super) fn runs_already(
    seen: &Seen,
    consumers: &[Consumer],
    candidates: &[Candidate],
) -> Result<Option<Admitted>, Trouble> {
    let names_any = |source: &Observed| source.wanted.baseline.is_some();
    if !seen.sources.iter().any(names_any) {
        return Ok(None);
    }
    let mut parts = Vec::new();
    for source in &seen.sources {
        let Some(revision) = revision(seen, source, consumers)? else {
            return Ok(None);
        };
        parts.push(part(seen, source, revision, candidates)?);
    }
    Ok(Some(admitted(seen.now.at, Origin::Baseline, parts)))
}

/// What is decided about what runs already.
///
/// For a consumer that `from` names, Flux says what it has applied. For a revision that is written in the
/// spec, it is not known whether anything runs it: so a user who may write it still cannot get past a
/// GatePolicy.
pub(super) fn decide(
    seen: &Seen,
    gates: &Gates,
    runs: Admitted,
    candidates: &[Candidate],
) -> Baseline {
    let written = runs.parts.iter().zip(&seen.sources);
    let written = written.filter(|(_, source)| is_written_out(source));
    let parts = written.map(|(part, _)| Asked {
        name: part.revision.clone(),
        revision: asked(&part.revision, candidates),
    });
    let parts: Vec<Asked> = parts.collect();
    let policies = gates.gathered.of_policies();
    let (decision, next) = match policies.filter(|_| !parts.is_empty()) {
        Some(policies) => ask_policies(&gates.with(policies), &runs.revision, parts),
        None => (unasked(seen, gates, &runs.revision), None),
    };
    Baseline {
        admitted: runs,
        decision,
        next,
    }
}

fn ask_policies(policies: &Gates, name: &str, parts: Vec<Asked>) -> (Decision, Option<Timestamp>) {
    let (_, next) = policies.admit(&parts);
    let mut decision = policies.decide_change(&Change {
        what: (),
        name: name.to_owned(),
        parts,
    });
    // It is about the baseline as a whole, whichever part the answer is about.
    decision.subject = policies.subject_of(Some(name));
    decision.message = format!(
        "spec.baseline.revision is asked of the gates of GatePolicies, and of no others: {}",
        decision.message
    );
    (decision, next)
}

/// The decision for a baseline that no gate is asked about.
fn unasked(seen: &Seen, gates: &Gates, revision: &str) -> Decision {
    Decision {
        allowed: true,
        at: time(seen.now.at),
        subject: gates.subject_of(Some(revision)),
        require: seen.object.spec.gates.require,
        checked: Vec::new(),
        decided_by: Vec::new(),
        message:
            "admitted without asking any gate: it is the baseline, of which the spec says that \
                  it runs already"
                .into(),
        next: None,
    }
}

/// Whether the spec has the revision itself, and names no consumer that runs it.
fn is_written_out(source: &Observed) -> bool {
    let baseline = source.wanted.baseline.as_ref();
    baseline.is_some_and(|baseline| baseline.revision.is_some())
}

/// The revision of a source that runs, as the spec or the consumer that it names says. None: nothing
/// runs.
fn revision(
    seen: &Seen,
    source: &Observed,
    consumers: &[Consumer],
) -> Result<Option<Revision>, Trouble> {
    let Some(baseline) = &source.wanted.baseline else {
        return Ok(None);
    };
    let text = match (&baseline.revision, &baseline.from) {
        (Some(revision), _) => Some(revision.as_str()),
        (None, None) => None,
        (None, Some(from)) => applied(seen, source, from, consumers)?,
    };
    let read = |text: &str| {
        Revision::parse(text).map_err(|mistake| {
            let message = format!("baseline: `{text}` is not a revision: {mistake}");
            Trouble::new("BaselineUnreadable", message)
        })
    };
    text.map(read).transpose()
}

/// What a consumer has applied of a source.
fn applied<'c>(
    seen: &Seen,
    source: &Observed,
    from: &gated_source::Consumer,
    consumers: &'c [Consumer],
) -> Result<Option<&'c str>, Trouble> {
    let namespace = from.namespace.as_deref().unwrap_or(seen.namespace());
    let consumer = consumers.iter().find(|(kind, consumer)| {
        let metadata = &consumer.metadata;
        *kind == from.kind
            && metadata.name.as_ref() == Some(&from.name)
            && metadata.namespace.as_deref() == Some(namespace)
    });
    let Some((kind, consumer)) = consumer else {
        return Ok(None);
    };
    if !is_user(seen, source, *kind, consumer) {
        let message = format!(
            "baseline: the {} does not use the {}; name the object that applies it",
            consumer_called(*kind, consumer),
            source.called
        );
        return Err(Trouble::new(BASELINE_MISMATCH, message));
    }
    Ok(runs(source.wanted.kind, *kind, consumer))
}

/// Whether a consumer applies what a source brings, directly or by its child. For a HelmChart, also by a
/// chart of the same repository: Flux makes a separate HelmChart for such a HelmRelease.
fn is_user(seen: &Seen, source: &Observed, kind: ConsumerKind, consumer: &FluxObject) -> bool {
    let (own, wanted) = (seen.namespace(), &source.wanted);
    let repository = source.upstream.object();
    let repository = repository.and_then(|it| it.spec.get("sourceRef"));
    let text = |field: &str| repository.and_then(|it| it.get(field)?.as_str());
    uses(kind, consumer).into_iter().any(|used| {
        used == (wanted.kind.as_str(), own, wanted.name.as_str())
            || used == (source.child_kind.as_str(), own, wanted.target.as_str())
            || (Some(used.0), used.1, Some(used.2)) == (text("kind"), own, text("name"))
    })
}

/// What the status keeps of a revision that runs already.
fn part(
    seen: &Seen,
    source: &Observed,
    revision: Revision,
    candidates: &[Candidate],
) -> Result<AdmittedPart, Trouble> {
    let (kind, called) = (source.wanted.kind, &source.called);
    let object = here(&source.upstream, called)?;
    let revision = match is_written_out(source) {
        true => as_its_source_names_it(source, object, revision, candidates),
        false => revision,
    };
    can_be_pinned(seen.strategy(), kind, object, called)?;
    let Some(spec) = seen.pinned(source, &revision) else {
        let message = format!("baseline: the {called} cannot be pinned to {revision}");
        return Err(Trouble::new("BaselineUnreadable", message));
    };
    let artifact = object.status.artifact.as_ref();
    let shown = artifact.filter(|it| is_same_pin(kind, &it.revision, revision.as_str()));
    if seen.strategy() == Strategy::Artifact && shown.is_none() {
        let message = format!(
            "baseline: the {called} no longer shows {revision}, and only what it shows can be stored"
        );
        return Err(Trouble::new("BaselineNotShown", message));
    }
    Ok(AdmittedPart {
        kind,
        name: source.wanted.name.clone(),
        revision: revision.to_string(),
        digest: shown.and_then(|it| it.digest.clone()),
        spec,
    })
}

/// A revision that is written in the spec, with the name by which its source has shown it.
fn as_its_source_names_it(
    source: &Observed,
    object: &FluxObject,
    written: Revision,
    candidates: &[Candidate],
) -> Revision {
    let shown = candidates.iter().flat_map(|candidate| &candidate.parts);
    let mut shown = shown.filter_map(|part| Revision::parse(&part.revision).ok());
    match shown.find(|shown| written.digest().is_some() && shown.is(&written)) {
        Some(shown) => shown,
        None => without_claimed_name(source.wanted.kind, &object.spec, written),
    }
}
