//! Children of the strategy `artifact`: what is stored of them, and what they serve.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use sluice_crds::flux::{Artifact, FluxKind, FluxObject};
use sluice_crds::gated_source::{AdmittedPart, Candidate};

use super::child::{Look, Standing, idle, is_ours, write};
use super::{Act, Given, Holding, Source, Stored};
use crate::flux::observed::{Found, condition};
use crate::time::stamp::time;

/// Where the revision of whoever made an artifact is told (OCI's image specification).
const ORIGIN_REVISION: &str = "org.opencontainers.image.revision";

/// What is wrong where there is no store.
pub(super) const OFF: &str = "this controller stores no artifacts: start it with --storage-path";

/// Looks at the child of a source of which something has gone out.
pub(super) fn look(
    given: &Given<'_>,
    source: &Source<'_>,
    admitted: &AdmittedPart,
    present: Option<&FluxObject>,
    called: &str,
) -> Look {
    let held = given.holding(&source.wanted.target, admitted.digest.as_deref());
    if held == Holding::Verifying {
        let revision = &admitted.revision;
        return idle(Standing::Fetching(format!(
            "the artifact of {revision} is stored here, and is verified before it is served, as \
             all are when a controller begins to lead"
        )));
    }
    let (kind, spec) = (FluxKind::ExternalArtifact, of_external_artifact(given));
    let mut acts = Vec::from_iter(write(given, source, kind, spec, present, None));
    let stored = match stored(held, &admitted.revision) {
        Ok(stored) => stored,
        Err((standing, lost)) => {
            return Look {
                standing,
                acts,
                lost: Some(lost),
            };
        }
    };
    let standing = match present {
        None => Standing::Fetching(format!("the {called} is being made")),
        Some(child) => {
            let artifact = artifact(given, admitted, stored);
            if serves(child, &artifact) {
                Standing::Serves
            } else {
                acts.push(Act::Serve {
                    artifact: Box::new(artifact),
                    before: Box::new(child.clone()),
                });
                Standing::Fetching(format!("the {called} is being written"))
            }
        }
    };
    Look {
        standing,
        acts,
        lost: None,
    }
}

/// The file, or how the child stands without it, and why.
fn stored(held: Holding, revision: &str) -> Result<Stored, (Standing, String)> {
    match held {
        Holding::Stored(stored) => Ok(stored),
        Holding::Off => {
            let standing = Standing::Fails("StorageDisabled".into(), OFF.into());
            Err((standing, OFF.into()))
        }
        Holding::Absent | Holding::Verifying | Holding::Fetching => {
            let message = format!("the artifact of {revision} is not stored here");
            Err((Standing::Fetching(message.clone()), message))
        }
        Holding::Failed(why) => {
            let message = format!("the artifact of {revision} cannot be had: {why}");
            let standing = Standing::Fails("FetchFailed".into(), message.clone());
            Err((standing, message))
        }
    }
}

/// What the child has to say that it serves.
fn artifact(given: &Given<'_>, admitted: &AdmittedPart, stored: Stored) -> Artifact {
    Artifact {
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
    }
}

/// Whether the child says that it serves this, and that it is ready, of its present spec: its status
/// has no generation of its own.
fn serves(child: &FluxObject, artifact: &Artifact) -> bool {
    let says = child.status.artifact.as_ref().is_some_and(|now| {
        let last_update_time = artifact.last_update_time.clone();
        Artifact {
            last_update_time,
            ..now.clone()
        } == *artifact
    });
    let is_ready = condition(child, "Ready").is_some_and(|ready| {
        ready.status == "True" && ready.observed_generation == child.metadata.generation
    });
    says && is_ready
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

/// Whether the copies under a child's name are this GatedSource's: not where the child is somebody
/// else's, and not where nobody can say.
pub(super) fn may_keep(given: &Given<'_>, source: &Source<'_>) -> bool {
    match &source.child {
        Found::Here(child) => is_ours(given, child),
        Found::Missing | Found::NotInstalled => true,
        Found::Unreadable(_) => false,
    }
}

/// Has the store fetch what a source shows now, if that is out or could go out, and keep nothing
/// else. Returns how that is stored.
pub(super) fn keep(
    given: &Given<'_>,
    source: &Source<'_>,
    admitted: Option<&AdmittedPart>,
    candidates: &[Candidate],
    acts: &mut Vec<Act>,
) -> Option<Holding> {
    let wanted = &source.wanted;
    let parts = candidates.iter().flat_map(|candidate| &candidate.parts);
    let parts = parts.filter(|part| (part.kind, &part.name) == (wanted.kind, &wanted.name));
    let digests = parts.filter_map(|part| part.digest.clone());
    let out = admitted.and_then(|admitted| admitted.digest.clone());
    // Whatever else is lost: what the child still points at is being used.
    let served = source.child.object();
    let served = served.and_then(|child| child.status.artifact.as_ref()?.digest.clone());
    let digests = out.into_iter().chain(served).chain(digests);
    let digests: Vec<String> = digests.collect::<BTreeSet<_>>().into_iter().collect();
    let shown = source
        .upstream
        .object()
        .and_then(|it| it.status.artifact.as_ref());
    let shown = shown.and_then(|artifact| Some((artifact.digest.clone()?, artifact.url.clone())));
    let shown = shown.filter(|(digest, _)| digests.contains(digest));
    let shown = shown.map(|(digest, url)| {
        let holding = given.holding(&wanted.target, Some(&digest));
        if matches!(holding, Holding::Failed(_) | Holding::Absent) {
            let child = wanted.target.clone();
            acts.push(Act::Fetch { child, url, digest });
        }
        holding
    });
    let child = wanted.target.clone();
    acts.push(Act::Retain { child, digests });
    shown
}
