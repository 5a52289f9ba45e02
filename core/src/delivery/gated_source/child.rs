//! Step 5: what a child has to be. What is common to all children, and children of the strategy `pin`.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use sluice_crds::GatedSource;
use sluice_crds::flux::{Artifact, FluxObject};
use sluice_crds::gated_source::{AdmittedPart, SourceKind, marks};

use super::sources::{Observed, Seen};
use super::{Act, Child, spec};
use crate::flux::content;
use crate::flux::identity::{is_other_file, is_same_pin};
use crate::flux::observed::{condition, is_observed};
use crate::flux::replaced::{self, ARTIFACT_REPLACED, Doubt};
use crate::revision::Revision;
use crate::verdict::status::{REQUESTED_AT, requested_at};

/// The label by which Flux's controllers share their work.
const SHARD: &str = "sharding.fluxcd.io/key";

/// The beginning of a request that is made because an artifact was lost.
const MISSING: &str = "missing-";

/// The reason of a child that serves what was never admitted.
const REPUBLISHED: &str = "Republished";

/// The state of a child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It serves what was admitted.
    Serves,
    /// It will serve that soon: what it still does.
    Fetching(String),
    /// It cannot serve that: why, in a word and a sentence.
    Fails(String, String),
    /// The object of its name belongs to somebody else.
    Taken(String),
}

/// The state of a child, and what has to be done about it.
pub(super) struct Look {
    pub(super) state: State,
    pub(super) acts: Vec<Act>,
    /// Why what was admitted cannot be fetched again.
    pub(super) lost: Option<String>,
}

impl From<State> for Look {
    fn from(state: State) -> Self {
        Self {
            state,
            acts: Vec::new(),
            lost: None,
        }
    }
}

/// Looks at a child of the strategy `pin`. `present`: None if it still has to be made.
pub(super) fn pinned(
    seen: &Seen,
    source: &Observed,
    admitted: &AdmittedPart,
    present: Option<&Arc<FluxObject>>,
    called: &str,
) -> Look {
    let upstream = source.upstream.object();
    // Without the source it is not known how it is reached: the child stays as it is.
    let wanted = upstream.map(|upstream| {
        let interval = interval(&seen.object, admitted);
        content::of_child(&admitted.spec, &upstream.spec, interval)
    });
    let is_right = |spec: &_| present.is_some_and(|child| child.spec == *spec);
    let is_pinned = wanted.as_ref().is_none_or(is_right);
    // What was said about another spec says nothing about this one.
    let current = present.filter(|_| is_pinned);
    let served = current.and_then(|child| {
        let artifact = child.status.artifact.as_ref()?;
        let is_it = is_same_pin(admitted.kind, &artifact.revision, &admitted.revision);
        (is_observed(child) && is_it).then_some((child, artifact))
    });
    let doubt = served.and_then(|(child, artifact)| {
        replaced::doubt(upstream.map(Arc::as_ref), admitted, child, artifact, called)
    });
    let request = present.and_then(|child| request(&seen.object, source, child, doubt.as_ref()));
    let write = wanted.and_then(|spec| write(&seen.object, source, spec, present, request));
    let failed = current.and_then(|child| failure(child));
    let other = served.and_then(|(_, artifact)| other_file(artifact, admitted, called));
    let lost = failed.map(|ready| format!("the {called} could not be fetched: {}", ready.message));
    let state = match (present, served, failed) {
        (None, ..) => State::Fetching(format!("the {called} is being made")),
        (_, Some(_), _) => match (&other, doubt) {
            (Some(message), _) => State::Fails(REPUBLISHED.to_owned(), message.clone()),
            (None, Some(doubt)) => State::Fails(ARTIFACT_REPLACED.to_owned(), doubt.message),
            (None, None) => State::Serves,
        },
        (_, None, Some(ready)) => {
            let message = format!("the {called} is not ready: {}", ready.message);
            State::Fails(ready.reason.clone(), message)
        }
        (_, None, None) => State::Fetching(format!("the {called} fetches {}", admitted.revision)),
    };
    Look {
        state,
        acts: Vec::from_iter(write),
        lost: lost.or(other),
    }
}

/// What is wrong with what a child serves at the version that was admitted. None: it is the admitted
/// file, or that is not known.
fn other_file(artifact: &Artifact, admitted: &AdmittedPart, called: &str) -> Option<String> {
    let (is, was) = (artifact.digest.as_deref(), admitted.digest.as_deref());
    is_other_file(admitted.kind, &admitted.spec, is, was).then(|| {
        format!(
            "the {called} serves another content than was admitted: {} was published again, as {}, \
             and {} was admitted; publish it under a version of its own, or let the gates admit \
             what it is now",
            artifact.revision,
            is.unwrap_or_default(),
            was.unwrap_or_default()
        )
    })
}

/// The interval of a child. If its chart was published again and admitted, a part of a minute is added,
/// which depends on the digest: Flux fetches a version that it has already only if the spec has changed.
fn interval(owner: &GatedSource, admitted: &AdmittedPart) -> String {
    let interval = spec::interval(&owner.spec);
    let revision = Revision::parse(&admitted.revision).ok();
    let revision = revision.filter(|_| admitted.kind == SourceKind::HelmChart);
    let Some(digest) = revision.as_ref().and_then(Revision::digest) else {
        return interval;
    };
    let hash = Sha256::digest(digest.as_bytes());
    let more = u16::from_be_bytes([hash[0], hash[1]]);
    format!("{interval}{}ms", u32::from(more) + 1)
}

/// Why a child could not be fetched, if that is true of its present spec.
fn failure(child: &FluxObject) -> Option<&Condition> {
    let ready = condition(child, "Ready")?;
    let current = ready.observed_generation == child.metadata.generation;
    (current && ready.status == "False").then_some(ready)
}

/// The request that a child has to have: the one that people have made, passed on. Where a consumer could
/// not get its artifact, the request says since when, and when the artifact was fetched, so that the
/// child is asked once for each of them. Where the child shows what was not admitted, the request says
/// which artifact that is.
fn request(
    owner: &GatedSource,
    source: &Observed,
    child: &FluxObject,
    doubt: Option<&Doubt>,
) -> Option<String> {
    let request = requested_at(&owner.metadata);
    // What was fetched since then may be lost again before any consumer had it: hence both instants.
    let missing = (source.missed_at.zip(child.status.artifact.as_ref()))
        .map(|(since, artifact)| format!("{MISSING}{since}-{}", artifact.last_update_time.0));
    if let Some(own) = missing.or_else(|| doubt.map(|doubt| doubt.request.clone())) {
        return Some(match request {
            Some(request) => format!("{request}/{own}"),
            None => own,
        });
    }
    // A request that was combined with such a request is not passed on again when that is over.
    let is_handed_on = |request: &String| {
        let annotations = child.metadata.annotations.as_ref();
        let asked = annotations.and_then(|all| all.get(REQUESTED_AT));
        let own = asked.and_then(|asked| asked.strip_prefix(request.as_str())?.strip_prefix('/'));
        own.is_some_and(|own| own.starts_with(MISSING) || own.starts_with(replaced::OTHER))
    };
    request.filter(|request| !is_handed_on(request))
}

/// The write that makes the child what it has to be. None: nothing has to be written.
pub(super) fn write(
    owner: &GatedSource,
    source: &Observed,
    spec: Map<String, Value>,
    present: Option<&Arc<FluxObject>>,
    request: Option<String>,
) -> Option<Act> {
    let name = owner.metadata.name.clone().unwrap_or_default();
    let mut annotations = BTreeMap::from([(marks::CHILD_OF.to_owned(), name)]);
    annotations.extend(request.map(|request| (REQUESTED_AT.to_owned(), request)));
    // The controller that fetches the source fetches its child. Without the source it is not known which.
    let shard = |upstream: &FluxObject| upstream.metadata.labels.as_ref()?.get(SHARD).cloned();
    let upstream = source.upstream.object();
    let labels = upstream.map(|upstream| (SHARD.to_owned(), shard(upstream)));
    let labels = BTreeMap::from_iter(labels);
    let is_right = present.is_some_and(|child| {
        let metadata = &child.metadata;
        let label = |name| metadata.labels.as_ref().and_then(|all| all.get(name));
        let annotation = |name| metadata.annotations.as_ref().and_then(|all| all.get(name));
        child.spec == spec
            && (annotations.iter()).all(|(name, value)| annotation(name) == Some(value))
            && (labels.iter()).all(|(name, value)| label(name) == value.as_ref())
    });
    (!is_right).then(|| {
        Act::Write(Box::new(Child {
            kind: source.child_kind,
            name: source.wanted.target.clone(),
            spec,
            annotations,
            labels,
            before: present.cloned(),
        }))
    })
}
