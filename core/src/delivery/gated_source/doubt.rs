//! Whether a pinned child serves what was admitted, where its status says another file or another
//! place for it.
//!
//! A user who may write the status of a source can have consumers download anything. The admission policy
//! `sluice-children` keeps that from children. Here it is noticed where the policy was missing: the
//! child is asked to fetch, and source-controller, which looks at its own files then, writes what it
//! really serves. What it answers is believed: it may have packed the same content differently, or be
//! reached by another address, since it was upgraded.

use sha2::{Digest, Sha256};
use sluice_crds::flux::{Artifact, FluxObject};
use sluice_crds::gated_source::{AdmittedPart, SourceKind};

use super::Source;

/// What a request begins with that is made because a child shows what was not admitted.
pub(super) const OTHER: &str = "other-";

/// The word for a child that shows what was not admitted.
pub(super) const ARTIFACT_REPLACED: &str = "ArtifactReplaced";

/// Why a child is to be asked what it serves.
pub(super) struct Doubt {
    /// In a sentence.
    pub(super) message: String,
    /// What it is asked with: another request for each other artifact.
    pub(super) request: String,
}

/// What speaks against an artifact that a child shows at the revision that was admitted. None: nothing
/// does, or source-controller has answered for it.
pub(super) fn doubt(
    source: &Source<'_>,
    admitted: &AdmittedPart,
    child: &FluxObject,
    artifact: &Artifact,
    called: &str,
) -> Option<Doubt> {
    let problem = other_file(admitted, artifact).or_else(|| other_place(source, artifact))?;
    let request = request(artifact);
    (!is_answered(child, artifact)).then(|| Doubt {
        message: format!("the {called} {problem}; it is asked to fetch again"),
        request,
    })
}

/// Whether two fetches of the same revision bring the same file: what else is put into it may have
/// changed, and a chart has rules of its own.
pub(super) fn is_reproducible(part: &AdmittedPart) -> bool {
    match part.kind {
        SourceKind::GitRepository => !part.spec.contains_key("include"),
        SourceKind::OCIRepository => true,
        SourceKind::HelmChart | SourceKind::Bucket | SourceKind::HelmRepository => false,
    }
}

/// Whether source-controller has looked at its files since the child has this artifact.
pub(super) fn is_answered(child: &FluxObject, artifact: &Artifact) -> bool {
    let answered = child.status.last_handled_reconcile_at.as_deref();
    let request = request(artifact);
    answered
        .is_some_and(|answered| answered == request || answered.ends_with(&format!("/{request}")))
}

/// The digest of the file is another one.
fn other_file(admitted: &AdmittedPart, artifact: &Artifact) -> Option<String> {
    let was = admitted
        .digest
        .as_deref()
        .filter(|_| is_reproducible(admitted))?;
    let is = artifact.digest.as_deref().unwrap_or("without a digest");
    (is != was).then(|| format!("serves the file {is}, and {was} was admitted"))
}

/// The file is not where that of its source is, although the same source-controller fetches both.
fn other_place(source: &Source<'_>, artifact: &Artifact) -> Option<String> {
    let upstream = source.upstream.object()?.status.artifact.as_ref()?;
    let (is, was) = (origin(&artifact.url), origin(&upstream.url));
    (is != was).then(|| format!("serves its file at {is}, and its source at {was}"))
}

/// The scheme, host and port of an address.
fn origin(url: &str) -> &str {
    let path = url.find("://").map_or(0, |place| place + 3);
    let end = url[path..].find('/').map_or(url.len(), |end| path + end);
    &url[..end]
}

fn request(artifact: &Artifact) -> String {
    let text = format!(
        "{} {}",
        artifact.url,
        artifact.digest.as_deref().unwrap_or_default()
    );
    let hash = Sha256::digest(text.as_bytes());
    let hash: String = hash[..6].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{OTHER}{hash}")
}
