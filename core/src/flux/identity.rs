//! When two revisions or two files that sources show are the same.
//!
//! A commit or a digest identifies the content. A chart has a version, which its publisher may use
//! again for other content.

use serde_json::{Map, Value};
use sluice_crds::gated_source::SourceKind;

use super::content::{branch, is_literal};
use crate::revision::Revision;

/// Whether two texts name the same change. Texts that cannot be read do not.
fn is_same_revision(one: &str, other: &str) -> bool {
    match (Revision::parse(one), Revision::parse(other)) {
        (Ok(one), Ok(other)) => one.is(&other),
        _ => false,
    }
}

/// Whether a source of that kind shows the other when one is requested: a chart can be requested by its
/// version alone.
pub(crate) fn is_same_pin(kind: SourceKind, one: &str, other: &str) -> bool {
    match kind {
        SourceKind::HelmChart => is_same_revision(version(one), version(other)),
        SourceKind::GitRepository
        | SourceKind::OCIRepository
        | SourceKind::Bucket
        | SourceKind::HelmRepository => is_same_revision(one, other),
    }
}

pub(crate) fn version(revision: &str) -> &str {
    revision.split_once('@').map_or(revision, |(name, _)| name)
}

/// Whether two files of a source with this spec have different content. If the digest of one is
/// unknown: no.
pub(crate) fn is_other_file(
    kind: SourceKind,
    spec: &Map<String, Value>,
    one: Option<&str>,
    other: Option<&str>,
) -> bool {
    is_literal(kind, spec) && one.zip(other).is_some_and(|(one, other)| one != other)
}

/// A revision that a user has written into a spec, without a name that only that user has given it.
///
/// A child is pinned to a commit or a digest. A user who may edit a spec must not choose the name that
/// lists and votes use, unless the source has shown it. But a chart is fetched by its version; and if
/// Flux clones only one branch, every commit that it finds is of that branch.
pub(crate) fn without_claimed_name(
    kind: SourceKind,
    spec: &Map<String, Value>,
    written: Revision,
) -> Revision {
    let is_of_branch = kind == SourceKind::GitRepository && branch(spec, &written).is_some();
    match is_of_branch {
        true => written,
        false => written.of_unknown_name(),
    }
}
