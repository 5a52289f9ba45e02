//! What is admitted without asking the gates that the GatedSource names: what children have already,
//! and what runs already.

use jiff::Timestamp;
use sluice_crds::Decision;
use sluice_crds::flux::FluxObject;
use sluice_crds::gated_source::{
    Admitted, AdmittedPart, Candidate, ConsumerKind, Origin, SourceKind, Strategy,
};

use super::admission::{admit, pinned};
use super::child::is_ours;
use super::observed::{NOT_PINNABLE, Trouble, here};
use super::{Given, Source, named, subject};
use crate::flux::content;
use crate::flux::identity::is_same_pin;
use crate::flux::observed::runs;
use crate::flux::users::{self, consumer_called};
use crate::gate::set::Gathered;
use crate::revision::Revision;
use crate::time::stamp::time;
use crate::verdict::question::Question;

/// What the children were admitted with, where no status says it: the GatedSource has come back.
pub(super) fn adopted(given: &Given<'_>) -> Option<Admitted> {
    let parts = given.sources.iter().map(|source| {
        let child = source
            .child
            .object()
            .filter(|child| is_ours(given, child))?;
        let wanted = &source.wanted;
        let (revision, digest, spec) = match given.object.spec.strategy {
            Strategy::Pin | Strategy::Suspend => {
                let (revision, spec) = content::of_pin(wanted.kind, &child.spec)?;
                let artifact = child.status.artifact.as_ref();
                let artifact =
                    artifact.filter(|it| is_same_pin(wanted.kind, &it.revision, revision.as_str()));
                let digest = artifact.and_then(|it| it.digest.clone());
                (revision.to_string(), digest, spec)
            }
            Strategy::Artifact => {
                let artifact = child.status.artifact.as_ref()?;
                let revision = Revision::parse(&artifact.revision).ok()?;
                let spec = pinned(given, source, &revision)?;
                (artifact.revision.clone(), artifact.digest.clone(), spec)
            }
        };
        Some(AdmittedPart {
            kind: wanted.kind,
            name: wanted.name.clone(),
            revision,
            digest,
            spec,
        })
    });
    let parts: Vec<AdmittedPart> = parts.collect::<Option<_>>()?;
    (!parts.is_empty()).then(|| admit(given, Origin::Adopted, parts))
}

/// What runs already, as the spec says.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Runs {
    /// What the status keeps of it when it goes out.
    pub(super) admitted: Admitted,
    /// Whether it does.
    pub(super) decision: Decision,
    /// Until when that holds while nothing is seen to change.
    pub(super) next: Option<Timestamp>,
}

/// What runs already, if that is to be admitted now: all of it, or none. `candidates` are what the
/// sources have shown.
pub(super) fn baseline(
    given: &Given<'_>,
    admitted: Option<&Admitted>,
    candidates: &[Candidate],
) -> Result<Option<Runs>, Trouble> {
    if admitted.is_some() || !given.sources.iter().any(|it| it.wanted.baseline.is_some()) {
        return Ok(None);
    }
    let mut parts = Vec::new();
    for source in &given.sources {
        match runs_already(given, source, candidates)? {
            Some(part) => parts.push(part),
            None => return Ok(None),
        }
    }
    let admitted = admit(given, Origin::Baseline, parts);
    // Flux says what the consumer of `from` has applied. Of a revision that is written out nobody
    // knows whether anything runs it: so a user who may write it still cannot go past a GatePolicy.
    let written = (admitted.parts.iter().zip(&given.sources))
        .filter(|(_, source)| is_written_out(source))
        .map(|(part, _)| part);
    let written: Vec<&AdmittedPart> = written.collect();
    let policies = given.gates.of_policies().filter(|_| !written.is_empty());
    let (decision, next) = match policies {
        Some(policies) => ask(given, &policies, &admitted, &written, candidates),
        None => (unasked(given, &admitted), None),
    };
    Ok(Some(Runs {
        admitted,
        decision,
        next,
    }))
}

/// Whether the spec has the revision itself, and names nobody who runs it.
fn is_written_out(source: &Source<'_>) -> bool {
    let baseline = source.wanted.baseline.as_ref();
    baseline.is_some_and(|baseline| baseline.revision.is_some())
}

/// What is said of a baseline that no gate is asked about.
fn unasked(given: &Given<'_>, admitted: &Admitted) -> Decision {
    Decision {
        allowed: true,
        at: time(given.now.at),
        subject: subject(given.object, Some(&admitted.revision)),
        require: given.object.spec.gates.require,
        checked: Vec::new(),
        decided_by: Vec::new(),
        message:
            "admitted without asking any gate: it is the baseline, of which the spec says that \
                  it runs already"
                .into(),
        next: None,
    }
}

/// What the gates of policies say of the revisions that are written out: of several, what they say of
/// the first that they hold back.
fn ask(
    given: &Given<'_>,
    policies: &Gathered,
    admitted: &Admitted,
    written: &[&AdmittedPart],
    candidates: &[Candidate],
) -> (Decision, Option<Timestamp>) {
    let mut decision = unasked(given, admitted);
    let mut next: Option<Timestamp> = None;
    for part in written {
        let revision = named::asked(&part.revision, candidates);
        let question = Question::new(given.now, revision.as_ref());
        next = next.into_iter().chain(policies.rule(question).until).min();
        let subject = subject(given.object, Some(&admitted.revision));
        decision = policies.decide(subject, question);
        if !decision.allowed {
            break;
        }
    }
    decision.message = format!(
        "spec.baseline.revision is asked of the gates of GatePolicies, and of no others: {}",
        decision.message
    );
    (decision, next)
}

/// What runs of a source. None: nothing does, and its gates decide.
fn runs_already(
    given: &Given<'_>,
    source: &Source<'_>,
    candidates: &[Candidate],
) -> Result<Option<AdmittedPart>, Trouble> {
    let trouble = |reason, message| Err(Trouble::new(reason, message));
    let wanted = &source.wanted;
    let called = format!("{} {}", wanted.kind.as_str(), wanted.name);
    let text = match wanted.baseline.as_ref() {
        None => return Ok(None),
        Some(baseline) => match (&baseline.revision, &baseline.from) {
            (Some(revision), _) => revision.clone(),
            (None, None) => return Ok(None),
            (None, Some(from)) => {
                let namespace = from.namespace.as_deref().unwrap_or(given.namespace());
                let consumer = given.consumers.iter().find(|(kind, consumer)| {
                    let metadata = &consumer.metadata;
                    *kind == from.kind
                        && metadata.name.as_ref() == Some(&from.name)
                        && metadata.namespace.as_deref() == Some(namespace)
                });
                let Some((kind, consumer)) = consumer else {
                    return Ok(None);
                };
                if !is_user(given, source, *kind, consumer) {
                    let consumer = consumer_called(*kind, consumer);
                    let message = format!(
                        "baseline: the {consumer} does not use the {called}; name whoever applies it"
                    );
                    return trouble(BASELINE_MISMATCH, message);
                }
                match runs(wanted.kind, *kind, consumer) {
                    Some(revision) => revision.to_owned(),
                    None => return Ok(None),
                }
            }
        },
    };
    let revision = match Revision::parse(&text) {
        Ok(revision) => revision,
        Err(mistake) => {
            let message = format!("baseline: `{text}` is no revision: {mistake}");
            return trouble("BaselineUnreadable", message);
        }
    };
    let object = here(&source.upstream, &called)?;
    let revision = match is_written_out(source) {
        true => called_by_its_source(wanted.kind, object, revision, candidates),
        false => revision,
    };
    if given.object.spec.strategy == Strategy::Pin
        && let Some(why) = content::unpinnable(wanted.kind, &object.spec)
    {
        return trouble(NOT_PINNABLE, format!("the {called} {why}"));
    }
    let Some(spec) = pinned(given, source, &revision) else {
        let message = format!("baseline: the {called} cannot be pinned to {revision}");
        return trouble("BaselineUnreadable", message);
    };
    let artifact = source
        .upstream
        .object()
        .and_then(|it| it.status.artifact.as_ref());
    let shown = artifact.filter(|it| is_same_pin(wanted.kind, &it.revision, revision.as_str()));
    if given.object.spec.strategy == Strategy::Artifact && shown.is_none() {
        let message = format!(
            "baseline: the {called} no longer shows {revision}, and only what it shows can be stored"
        );
        return trouble("BaselineNotShown", message);
    }
    Ok(Some(AdmittedPart {
        kind: wanted.kind,
        name: wanted.name.clone(),
        revision: revision.to_string(),
        digest: shown.and_then(|it| it.digest.clone()),
        spec,
    }))
}

/// A revision that is written out, by the name that its source has shown.
fn called_by_its_source(
    kind: SourceKind,
    source: &FluxObject,
    written: Revision,
    candidates: &[Candidate],
) -> Revision {
    let shown = candidates.iter().flat_map(|candidate| &candidate.parts);
    let mut shown = shown.filter_map(|part| Revision::parse(&part.revision).ok());
    match shown.find(|shown| written.digest().is_some() && shown.is(&written)) {
        Some(shown) => shown,
        None => named::believed(kind, &source.spec, written),
    }
}

/// The word for a baseline that says what somebody else runs.
pub(super) const BASELINE_MISMATCH: &str = "BaselineMismatch";

/// Whether somebody applies what a source brings, by itself or by its child. Of a HelmChart, by a
/// chart of the same repository, too: Flux makes a HelmChart of its own for such a HelmRelease.
fn is_user(
    given: &Given<'_>,
    source: &Source<'_>,
    kind: ConsumerKind,
    consumer: &FluxObject,
) -> bool {
    let own = given.namespace();
    let wanted = &source.wanted;
    let child = wanted.child(given.object.spec.strategy).as_str();
    let repository = source
        .upstream
        .object()
        .and_then(|it| it.spec.get("sourceRef"));
    let text = |field: &str| repository.and_then(|it| it.get(field)?.as_str());
    users::uses(kind, consumer).into_iter().any(|used| {
        used == (wanted.kind.as_str(), own, wanted.name.as_str())
            || used == (child, own, wanted.target.as_str())
            || (Some(used.0), used.1, Some(used.2)) == (text("kind"), own, text("name"))
    })
}
