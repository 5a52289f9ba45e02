//! Step 5: children of the strategy `artifact`: what is stored of them, and what they serve.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value, json};
use sluice_crds::GatedSource;
use sluice_crds::flux::{Artifact, FluxObject};
use sluice_crds::gated_source::AdmittedPart;

use super::admission::Admission;
use super::child::{Look, State, write};
use super::sources::{Child, Observed, Seen};
use super::{Act, Holding, Stored};
use crate::flux::observed::condition;
use crate::time::clock::Now;
use crate::time::stamp::time;

/// The annotation that says the revision of the source of an artifact (OCI's image specification).
const ORIGIN_REVISION: &str = "org.opencontainers.image.revision";

/// What is wrong if there is no store.
pub(super) const OFF: &str = "this controller stores no artifacts: start it with --storage-path";

/// Looks at a child. `present`: None if it still has to be made.
pub(super) fn look(
    seen: &Seen,
    source: &Observed,
    admitted: &AdmittedPart,
    present: Option<&Arc<FluxObject>>,
    called: &str,
) -> Look {
    let revision = &admitted.revision;
    let holding = seen.holding(&source.wanted.target, admitted.digest.as_deref());
    if holding == Holding::Verifying {
        return Look::from(State::Fetching(format!(
            "the artifact of {revision} is stored here, and is verified before it is served, as \
             all are when a controller begins to lead"
        )));
    }
    let spec = made_by(&seen.object);
    let mut acts = Vec::from_iter(write(&seen.object, source, spec, present, None));
    let (state, lost) = match (stored(holding, revision), present) {
        (Err((state, lost)), _) => (state, Some(lost)),
        (Ok(_), None) => {
            let state = State::Fetching(format!("the {called} is being made"));
            (state, None)
        }
        (Ok(stored), Some(child)) => {
            let artifact = artifact(seen.now, admitted, stored);
            if serves(child, &artifact) {
                (State::Serves, None)
            } else {
                acts.push(Act::Serve {
                    artifact: Box::new(artifact),
                    before: Arc::clone(child),
                });
                let state = State::Fetching(format!("the {called} is being written"));
                (state, None)
            }
        }
    };
    Look { state, acts, lost }
}

/// The file. As an error: the state of the child without it, and why what was admitted is lost.
fn stored(holding: Holding, revision: &str) -> Result<Stored, (State, String)> {
    match holding {
        Holding::Stored(stored) => Ok(stored),
        Holding::Off => {
            let state = State::Fails("StorageDisabled".into(), OFF.into());
            Err((state, OFF.into()))
        }
        Holding::Absent | Holding::Verifying | Holding::Fetching => {
            let message = format!("the artifact of {revision} is not stored here");
            Err((State::Fetching(message.clone()), message))
        }
        Holding::Failed(why) => {
            let message = format!("the artifact of {revision} is unavailable: {why}");
            let state = State::Fails("FetchFailed".into(), message.clone());
            Err((state, message))
        }
    }
}

/// What the status of the child has to say about what it serves.
fn artifact(now: Now, admitted: &AdmittedPart, stored: Stored) -> Artifact {
    Artifact {
        path: stored.path,
        url: stored.url,
        revision: admitted.revision.clone(),
        digest: admitted.digest.clone(),
        last_update_time: time(now.at),
        size: i64::try_from(stored.size).ok(),
        metadata: Some(BTreeMap::from([(
            ORIGIN_REVISION.to_owned(),
            admitted.revision.clone(),
        )])),
    }
}

/// Whether the child says that it serves this, and that it is ready, under its present spec: its status
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

/// The spec of an ExternalArtifact: it says who makes it.
fn made_by(owner: &GatedSource) -> Map<String, Value> {
    let own = json!({
        "apiVersion": format!("{}/v1alpha1", sluice_crds::GROUP),
        "kind": super::KIND,
        "name": owner.metadata.name,
        "namespace": owner.metadata.namespace,
    });
    Map::from_iter([("sourceRef".to_owned(), own)])
}

/// Lets the store fetch what a source shows now, if that is out or could go out, and keep nothing else.
/// Returns how that is stored. Copies under the name of a child are left alone if the object of that name
/// belongs to somebody else or cannot be read.
pub(super) fn keep(
    seen: &Seen,
    source: &Observed,
    admission: &Admission<'_>,
    acts: &mut Vec<Act>,
) -> Option<Holding> {
    if let Child::Taken | Child::Unreadable(_) = source.child {
        return None;
    }
    let child = &source.wanted.target;
    let digests = digests(source, admission);
    let shown = source.upstream.object();
    let shown = shown.and_then(|it| it.status.artifact.as_ref());
    let shown = shown.and_then(|artifact| Some((artifact.digest.clone()?, artifact.url.clone())));
    let shown = shown.filter(|(digest, _)| digests.contains(digest));
    let shown = shown.map(|(digest, url)| {
        let holding = seen.holding(child, Some(&digest));
        if matches!(holding, Holding::Failed(_) | Holding::Absent) {
            let child = child.clone();
            acts.push(Act::Fetch { child, url, digest });
        }
        holding
    });
    acts.push(Act::Retain {
        child: child.clone(),
        digests: digests.into_iter().collect(),
    });
    shown
}

/// The digests of what is out of a source and of what could go out. Even if everything else is lost, what
/// its child still points at is in use.
fn digests(source: &Observed, admission: &Admission<'_>) -> BTreeSet<String> {
    let candidates = admission.candidates.iter();
    let parts = candidates.flat_map(|candidate| &candidate.parts);
    let parts = parts.filter(|part| source.is(part.kind, &part.name));
    let out = admission.of(source).and_then(|out| out.digest.clone());
    let served = source.child.ours();
    let served = served.and_then(|child| child.status.artifact.as_ref()?.digest.clone());
    let shown = parts.filter_map(|part| part.digest.clone());
    shown.chain(out).chain(served).collect()
}
