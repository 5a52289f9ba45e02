//! Children: what they have to be, and what becomes of them.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use sluice_crds::flux::{Artifact, FluxKind, FluxObject};
use sluice_crds::gated_source::{AdmittedPart, ConsumerKind, SourceKind, Strategy, marks};

use super::identity::{is_other_file, is_same_pin};
use super::observed::{condition, is_observed};
use super::users::uses;
use super::{Act, Child, Found, Given, Holding, Source, content, spec};
use crate::report::{REQUESTED_AT, requested_at, time};
use crate::revision::Revision;

/// The label by which Flux's controllers share their work.
const SHARD: &str = "sharding.fluxcd.io/key";
/// Where the revision of whoever made an artifact is told (OCI's image specification).
const ORIGIN_REVISION: &str = "org.opencontainers.image.revision";

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
            let message = format!(
                "there is a {called} already that this GatedSource has not made; delete it, or \
                 write another target"
            );
            return idle(Standing::Taken(message));
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
        Strategy::Artifact => stored(given, source, admitted, present, &called),
    }
}

fn idle(standing: Standing) -> Look {
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
    let asked = present.and_then(|child| asked(given, source, child));
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
    // What was said of another spec says nothing of this one.
    let fails = failure(child).filter(|_| is_pinned);
    let served = child.status.artifact.as_ref().filter(|artifact| {
        is_pinned
            && is_observed(child)
            && is_same_pin(admitted.kind, &artifact.revision, &admitted.revision)
    });
    let other = served.and_then(|artifact| other_file(artifact, admitted, called));
    let standing = match (served, &other) {
        (Some(_), Some(message)) => Standing::Fails(REPUBLISHED.to_owned(), message.clone()),
        (Some(_), None) => Standing::Serves,
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
/// its artifact, when that came out and when it was fetched, so that it is asked once of each.
fn asked(given: &Given<'_>, source: &Source<'_>, child: &FluxObject) -> Option<String> {
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
    if let (Some(since), Some(artifact)) = (missed.max(), &child.status.artifact) {
        let missing = format!("{MISSING}{since}-{}", artifact.last_update_time.0);
        return Some(match request {
            Some(request) => format!("{request}/{missing}"),
            None => missing,
        });
    }
    // One that was handed on together with such a loss is not handed on once more when that is over.
    let is_handed_on = |request: &String| {
        let annotations = child.metadata.annotations.as_ref();
        let asked = annotations.and_then(|all| all.get(REQUESTED_AT));
        asked.is_some_and(|asked| asked.starts_with(&format!("{request}/{MISSING}")))
    };
    request.filter(|request| !is_handed_on(request))
}

/// What makes the child what it has to be. None: it is.
fn write(
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

fn stored(
    given: &Given<'_>,
    source: &Source<'_>,
    admitted: &AdmittedPart,
    present: Option<&FluxObject>,
    called: &str,
) -> Look {
    let mut acts = Vec::new();
    let spec = of_external_artifact(given);
    acts.extend(write(
        given,
        source,
        FluxKind::ExternalArtifact,
        spec,
        present,
        None,
    ));
    let stored = match given.holding(&source.wanted.target, admitted.digest.as_deref()) {
        Holding::Stored(stored) => stored,
        Holding::Off => {
            let message = "this controller stores no artifacts: start it with --storage-path";
            return Look {
                standing: Standing::Fails("StorageDisabled".into(), message.into()),
                acts,
                lost: Some(message.into()),
            };
        }
        Holding::Verifying => {
            let revision = &admitted.revision;
            return idle(Standing::Fetching(format!(
                "the artifact of {revision} is stored here, and is verified before it is served, as \
                 all are when a controller begins to lead"
            )));
        }
        Holding::Absent | Holding::Fetching => {
            let message = format!("the artifact of {} is not stored here", admitted.revision);
            return Look {
                standing: Standing::Fetching(message.clone()),
                acts,
                lost: Some(message),
            };
        }
        Holding::Failed(why) => {
            let message = format!("the artifact of {} cannot be had: {why}", admitted.revision);
            return Look {
                standing: Standing::Fails("FetchFailed".into(), message.clone()),
                acts,
                lost: Some(message),
            };
        }
    };
    let artifact = Artifact {
        path: stored.path,
        url: stored.url,
        revision: admitted.revision.clone(),
        digest: admitted.digest.clone(),
        last_update_time: time(given.now.at),
        size: i64::try_from(stored.size).ok(),
        metadata: Some(BTreeMap::from([(
            ORIGIN_REVISION.to_owned(),
            admitted.revision.clone(),
        )])),
    };
    let Some(child) = present else {
        let standing = Standing::Fetching(format!("the {called} is being made"));
        return Look {
            standing,
            acts,
            lost: None,
        };
    };
    let serves = child.status.artifact.as_ref().is_some_and(|now| {
        let last_update_time = artifact.last_update_time.clone();
        Artifact {
            last_update_time,
            ..now.clone()
        } == artifact
    });
    let standing = if serves && is_ready(child) {
        Standing::Serves
    } else {
        acts.push(Act::Serve {
            artifact: Box::new(artifact),
            before: Box::new(child.clone()),
        });
        Standing::Fetching(format!("the {called} is being written"))
    };
    Look {
        standing,
        acts,
        lost: None,
    }
}

/// Whether an ExternalArtifact says that it is ready, of its present spec. Its status has no
/// generation of its own.
fn is_ready(child: &FluxObject) -> bool {
    condition(child, "Ready").is_some_and(|ready| {
        ready.status == "True" && ready.observed_generation == child.metadata.generation
    })
}

/// An ExternalArtifact says who makes it.
fn of_external_artifact(given: &Given<'_>) -> Map<String, Value> {
    let own = json!({
        "apiVersion": format!("{}/v1alpha1", sluice_crds::GROUP),
        "kind": super::KIND,
        "name": given.object.metadata.name,
        "namespace": given.object.metadata.namespace,
    });
    Map::from_iter([("sourceRef".to_owned(), own)])
}

/// The kinds that a consumer names sources by.
pub(super) fn consumer_called(kind: ConsumerKind, consumer: &FluxObject) -> String {
    let metadata = &consumer.metadata;
    format!(
        "{} {}/{}",
        kind.as_str(),
        metadata.namespace.as_deref().unwrap_or_default(),
        metadata.name.as_deref().unwrap_or_default()
    )
}
