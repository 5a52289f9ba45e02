//! Children: what they have to be, and what becomes of them.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use sluice_crds::flux::{Artifact, FluxKind, FluxObject};
use sluice_crds::gated_source::{AdmittedPart, SourceKind, Strategy, marks};

use super::{Act, Child, Given, Source, doubt, served, spec};
use crate::flux::content;
use crate::flux::identity::{is_other_file, is_same_pin};
use crate::flux::observed::{Found, condition, is_observed};
use crate::flux::users::uses;
use crate::revision::Revision;
use crate::verdict::status::{REQUESTED_AT, requested_at};

/// The label by which Flux's controllers share their work.
const SHARD: &str = "sharding.fluxcd.io/key";

/// What a request begins with that is made because an artifact was lost.
const MISSING: &str = "missing-";

/// How a child stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It serves what was admitted.
    Serves,
    /// It is about to.
    Fetching(String),
    /// It cannot: why, in a word and a sentence.
    Fails(String, String),
    /// An object of its name is somebody else's.
    Taken(String),
}

/// What a child comes to: how it stands, what is to be done about it, whether what was admitted can be
/// had again.
pub(super) struct Look {
    pub(super) standing: Standing,
    pub(super) acts: Vec<Act>,
    /// Why it cannot be had again.
    pub(super) lost: Option<String>,
}

/// Looks at the child of a source of which something has gone out.
pub(super) fn look(given: &Given<'_>, source: &Source<'_>, admitted: &AdmittedPart) -> Look {
    let kind = source.wanted.child(given.object.spec.strategy);
    let called = format!("{} {}", kind.as_str(), source.wanted.target);
    let present = match &source.child {
        Found::Here(child) if !is_ours(given, child) => {
            let lost = format!("the {called} is none of this GatedSource's");
            return Look {
                lost: Some(lost),
                ..idle(taken(given, source))
            };
        }
        Found::Here(child) => Some(*child),
        Found::Missing => None,
        Found::NotInstalled => {
            let message = format!("Flux's CRD of {} is not installed", kind.as_str());
            return idle(Standing::Fails("FluxNotInstalled".into(), message));
        }
        Found::Unreadable(why) => {
            let message = format!("the {called} cannot be read: {why}");
            return idle(Standing::Fails("ChildUnreadable".into(), message));
        }
    };
    match given.object.spec.strategy {
        Strategy::Pin | Strategy::Suspend => pinned(given, source, admitted, present, &called),
        Strategy::Artifact => served::look(given, source, admitted, present, &called),
    }
}

/// The name that a child has, or is to have, is somebody else's.
pub(super) fn taken(given: &Given<'_>, source: &Source<'_>) -> Standing {
    let kind = source.wanted.child(given.object.spec.strategy).as_str();
    Standing::Taken(format!(
        "there is a {kind} {} already that this GatedSource has not made; delete it, or write \
         another target",
        source.wanted.target
    ))
}

/// Whether the name that a child has, or is to have, is somebody else's.
pub(super) fn is_taken(given: &Given<'_>, source: &Source<'_>) -> bool {
    let child = source.child.object();
    child.is_some_and(|child| !is_ours(given, child))
}

pub(super) fn idle(standing: Standing) -> Look {
    Look {
        standing,
        acts: Vec::new(),
        lost: None,
    }
}

/// Whether this GatedSource made it.
pub(super) fn is_ours(given: &Given<'_>, child: &FluxObject) -> bool {
    let annotations = child.metadata.annotations.as_ref();
    let mark = annotations.and_then(|all| all.get(marks::CHILD_OF));
    mark.is_some() && mark == given.object.metadata.name.as_ref()
}

fn pinned(
    given: &Given<'_>,
    source: &Source<'_>,
    admitted: &AdmittedPart,
    present: Option<&FluxObject>,
    called: &str,
) -> Look {
    // Without the source nobody knows how it is reached: the child stays as it is.
    let wanted = source.upstream.object().map(|upstream| {
        let interval = anew(spec::interval(&given.object.spec), admitted);
        content::of_child(&admitted.spec, &upstream.spec, interval)
    });
    let is_pinned = (wanted.as_ref()).is_none_or(|spec| present.is_some_and(|it| it.spec == *spec));
    let kind = FluxKind::Source(source.wanted.kind);
    // What was said of another spec says nothing of this one.
    let served = present.filter(|_| is_pinned).and_then(|child| {
        let artifact = child.status.artifact.as_ref()?;
        let is_it = is_same_pin(admitted.kind, &artifact.revision, &admitted.revision);
        (is_observed(child) && is_it).then_some((child, artifact))
    });
    let doubt = served
        .and_then(|(child, artifact)| doubt::doubt(source, admitted, child, artifact, called));
    let asked = present.and_then(|child| asked(given, source, child, doubt.as_ref()));
    let write = wanted.and_then(|spec| write(given, source, kind, spec, present, asked));
    let acts = Vec::from_iter(write);
    let Some(child) = present else {
        let standing = Standing::Fetching(format!("the {called} is being made"));
        return Look {
            standing,
            acts,
            lost: None,
        };
    };
    let fails = failure(child).filter(|_| is_pinned);
    let other = served.and_then(|(_, artifact)| other_file(artifact, admitted, called));
    let standing = match (served, &other) {
        (Some(_), Some(message)) => Standing::Fails(REPUBLISHED.to_owned(), message.clone()),
        (Some(_), None) => match &doubt {
            Some(doubt) => {
                Standing::Fails(doubt::ARTIFACT_REPLACED.to_owned(), doubt.message.clone())
            }
            None => Standing::Serves,
        },
        (None, _) => match fails {
            Some(ready) => {
                let message = format!("the {called} is not ready: {}", ready.message);
                Standing::Fails(ready.reason.clone(), message)
            }
            None => Standing::Fetching(format!("the {called} fetches {}", admitted.revision)),
        },
    };
    let lost = fails.map(|ready| format!("the {called} could not be fetched: {}", ready.message));
    let lost = lost.or(other);
    Look {
        standing,
        acts,
        lost,
    }
}

/// The word for a child that serves what was never admitted.
const REPUBLISHED: &str = "Republished";

/// What is wrong with what a child serves at the version that was admitted. None: it is that file, or
/// nobody knows.
fn other_file(artifact: &Artifact, admitted: &AdmittedPart, called: &str) -> Option<String> {
    let (is, was) = (artifact.digest.as_deref(), admitted.digest.as_deref());
    is_other_file(admitted.kind, &admitted.spec, is, was).then(|| {
        format!(
            "the {called} serves another content than was admitted: {} was published anew, as {}, \
             and {} was admitted; publish it under a version of its own, or let the gates admit \
             what it is now",
            artifact.revision,
            is.unwrap_or_default(),
            was.unwrap_or_default()
        )
    })
}

/// The interval of a child. A chart that was published anew and admitted has a part of a minute more,
/// by its digest: Flux fetches a version that it has only where the spec is another one.
fn anew(interval: String, admitted: &AdmittedPart) -> String {
    let digest = Revision::parse(&admitted.revision).ok();
    let digest = digest.filter(|_| admitted.kind == SourceKind::HelmChart);
    let Some(digest) = digest.as_ref().and_then(Revision::digest) else {
        return interval;
    };
    let hash = Sha256::digest(digest.as_bytes());
    let more = u16::from_be_bytes([hash[0], hash[1]]);
    format!("{interval}{}ms", u32::from(more) + 1)
}

/// Why a child could not be fetched, if that is so of its present spec.
fn failure(child: &FluxObject) -> Option<&Condition> {
    let ready = condition(child, "Ready")?;
    let current = ready.observed_generation == child.metadata.generation;
    (current && ready.status == "False").then_some(ready)
}

/// What the child is to be asked with: people's request, handed on; and, where somebody could not have
/// its artifact, when that came out and when it was fetched, so that it is asked once of each; or,
/// where it shows what was not admitted, which artifact that is.
fn asked(
    given: &Given<'_>,
    source: &Source<'_>,
    child: &FluxObject,
    doubt: Option<&doubt::Doubt>,
) -> Option<String> {
    let kind = source.wanted.child(given.object.spec.strategy);
    let own = given
        .object
        .metadata
        .namespace
        .as_deref()
        .unwrap_or_default();
    let missed = given
        .consumers
        .iter()
        .filter_map(|(consumer_kind, consumer)| {
            let target = (kind.as_str(), own, source.wanted.target.as_str());
            if !uses(*consumer_kind, consumer).contains(&target) {
                return None;
            }
            let ready = condition(consumer, "Ready")?;
            let is_missing = ready.status == "False" && ready.reason == "ArtifactFailed";
            is_missing.then_some(ready.last_transition_time.0)
        });
    let request = requested_at(&given.object.metadata);
    // What was fetched since may be lost again before anybody has had it: hence both instants.
    let missing = (missed.max().zip(child.status.artifact.as_ref()))
        .map(|(since, artifact)| format!("{MISSING}{since}-{}", artifact.last_update_time.0));
    if let Some(own) = missing.or_else(|| doubt.map(|doubt| doubt.request.clone())) {
        return Some(match request {
            Some(request) => format!("{request}/{own}"),
            None => own,
        });
    }
    // One that was handed on together with such a request is not handed on once more when that is over.
    let is_handed_on = |request: &String| {
        let annotations = child.metadata.annotations.as_ref();
        let asked = annotations.and_then(|all| all.get(REQUESTED_AT));
        let own = asked.and_then(|asked| asked.strip_prefix(request.as_str())?.strip_prefix('/'));
        own.is_some_and(|own| own.starts_with(MISSING) || own.starts_with(doubt::OTHER))
    };
    request.filter(|request| !is_handed_on(request))
}

/// What makes the child what it has to be. None: it is.
pub(super) fn write(
    given: &Given<'_>,
    source: &Source<'_>,
    kind: FluxKind,
    spec: Map<String, Value>,
    present: Option<&FluxObject>,
    asked: Option<String>,
) -> Option<Act> {
    let name = given.object.metadata.name.clone().unwrap_or_default();
    let mut annotations = BTreeMap::from([(marks::CHILD_OF.to_owned(), name)]);
    annotations.extend(asked.map(|asked| (REQUESTED_AT.to_owned(), asked)));
    // Whoever fetches the source fetches its child. Without the source nobody knows who that is.
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
            kind,
            name: source.wanted.target.clone(),
            spec,
            annotations,
            labels,
            before: present.cloned(),
        }))
    })
}
