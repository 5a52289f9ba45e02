//! Whether an object of Flux serves what was admitted, if its status shows another file or another
//! address.
//!
//! A user who may write the status of a source can make its consumers download anything. The admission
//! policy `sluice-children` prevents that for the children of GatedSources. If the policy is missing,
//! this code notices the change: it requests a reconcile of the object, and source-controller then
//! looks at its own files and writes what it really serves. That answer is trusted: after an upgrade,
//! source-controller may pack the same content differently, or have another address.

use sha2::{Digest, Sha256};
use sluice_crds::flux::{Artifact, FluxObject};
use sluice_crds::gated_source::{AdmittedPart, SourceKind};

/// The beginning of a request that is made because an object shows something that was not admitted.
pub(crate) const OTHER: &str = "other-";

/// The reason for an object that shows something that was not admitted.
pub(crate) const ARTIFACT_REPLACED: &str = "ArtifactReplaced";

/// Why a reconcile of an object has to be requested.
pub(crate) struct Doubt {
    /// In a sentence.
    pub(crate) message: String,
    /// The value of the request. It differs for each artifact.
    pub(crate) request: String,
}

/// Why the artifact that `child` shows at the admitted revision may be wrong. None: it is right, or
/// source-controller has confirmed it. `upstream` is the source that was admitted.
pub(crate) fn doubt(
    upstream: Option<&FluxObject>,
    admitted: &AdmittedPart,
    child: &FluxObject,
    artifact: &Artifact,
    called: &str,
) -> Option<Doubt> {
    let problem = other_file(admitted, artifact).or_else(|| other_place(upstream?, artifact))?;
    (!is_answered(child, artifact)).then(|| Doubt {
        message: format!("the {called} {problem}; it is asked to fetch again"),
        request: request(artifact),
    })
}

/// Whether two fetches of the same revision bring the same file. Other sources that are included may
/// have changed, and a chart has rules of its own.
pub(crate) fn is_reproducible(part: &AdmittedPart) -> bool {
    match part.kind {
        SourceKind::GitRepository => !part.spec.contains_key("include"),
        SourceKind::OCIRepository => true,
        SourceKind::HelmChart | SourceKind::Bucket | SourceKind::HelmRepository => false,
    }
}

/// Whether source-controller has looked at its files since the object has this artifact.
pub(crate) fn is_answered(child: &FluxObject, artifact: &Artifact) -> bool {
    let request = request(artifact);
    let answered = child.status.last_handled_reconcile_at.as_deref();
    answered
        .is_some_and(|answered| answered == request || answered.ends_with(&format!("/{request}")))
}

/// The digest of the file is another one.
fn other_file(admitted: &AdmittedPart, artifact: &Artifact) -> Option<String> {
    let was = admitted.digest.as_deref();
    let was = was.filter(|_| is_reproducible(admitted))?;
    let is = artifact.digest.as_deref().unwrap_or("without a digest");
    (is != was).then(|| format!("serves the file {is}, and {was} was admitted"))
}

/// The file is not where that of its source is, although the same source-controller fetches both.
fn other_place(upstream: &FluxObject, artifact: &Artifact) -> Option<String> {
    let shown = upstream.status.artifact.as_ref()?;
    let (is, was) = (origin(&artifact.url), origin(&shown.url));
    (is != was).then(|| format!("serves its file at {is}, and its source at {was}"))
}

/// The scheme, host and port of an address.
fn origin(url: &str) -> &str {
    let path = url.find("://").map_or(0, |place| place + 3);
    let end = url[path..].find('/').map_or(url.len(), |end| path + end);
    &url[..end]
}

fn request(artifact: &Artifact) -> String {
    let digest = artifact.digest.as_deref().unwrap_or_default();
    let hash = Sha256::digest(format!("{} {digest}", artifact.url).as_bytes());
    let hash: String = hash[..6].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{OTHER}{hash}")
}
