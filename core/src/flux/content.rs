//! A source's spec, taken apart: what is fetched (content), and how it is reached (access).
//!
//! Content is frozen with the admission; access follows the source at once, so that credentials that
//! are rotated while a gate is closed do not cut off what runs. A field that this version does not know
//! counts as content, because it may change what is deployed.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use sluice_crds::gated_source::{SourceKind, Strategy};

use crate::revision::Revision;

/// The fields of all kinds that say how a source is reached: credentials, trust, network. None of them
/// changes what is fetched; `verify` says whose signature is required.
const ACCESS: [&str; 10] = [
    "accessFrom",
    "certSecretRef",
    "insecure",
    "provider",
    "proxySecretRef",
    "secretRef",
    "serviceAccountName",
    "sts",
    "timeout",
    "verify",
];

/// The fields that a child does not take from its source.
const OWN: [&str; 2] = ["interval", "suspend"];

/// The field that selects a revision, which is pinned.
fn selects(kind: SourceKind) -> Option<&'static str> {
    match kind {
        SourceKind::GitRepository | SourceKind::OCIRepository => Some("ref"),
        SourceKind::HelmChart => Some("version"),
        SourceKind::Bucket | SourceKind::HelmRepository => None,
    }
}

/// What is fetched.
fn content(spec: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    let is_content = |name: &str| !ACCESS.contains(&name) && !OWN.contains(&name);
    spec.iter().filter(move |(name, _)| is_content(name))
}

/// Whether the file of a chart is unchanged since it was published: it is from a chart repository, and
/// no values are added to it.
pub(crate) fn is_literal(kind: SourceKind, spec: &Map<String, Value>) -> bool {
    let values = spec.get("valuesFiles").and_then(Value::as_array);
    kind == SourceKind::HelmChart
        && unpinnable(kind, spec).is_none()
        && values.is_none_or(Vec::is_empty)
}

/// A fingerprint of what is fetched, the same for every revision of it: sixteen hexadecimal digits of a
/// sha256 over the fields in alphabetical order.
pub(crate) fn fingerprint(kind: SourceKind, spec: &Map<String, Value>) -> String {
    let fields = content(spec).filter(|(name, _)| Some(name.as_str()) != selects(kind));
    let mut fields: Vec<_> = fields.map(|(name, value)| (name, sorted(value))).collect();
    fields.sort_by_key(|(name, _)| *name);
    short_hash(&json!(fields))
}

/// A fingerprint of the field that selects the revision. If this field changes, the source has other
/// candidates: its owner may have gone back to an earlier version, or to another branch.
pub(crate) fn selection(kind: SourceKind, spec: &Map<String, Value>) -> String {
    let field = selects(kind).and_then(|field| spec.get(field));
    short_hash(&json!(field.map(sorted)))
}

/// The first sixteen hexadecimal digits of a sha256.
fn short_hash(value: &Value) -> String {
    let digest = Sha256::digest(value.to_string().as_bytes());
    digest[..8]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// The same value with the fields of every object in alphabetical order.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            let pairs = fields
                .into_iter()
                .map(|(name, value)| json!([name, sorted(value)]));
            pairs.collect()
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// Why a source cannot be pinned at all, and what to do instead. The words follow "the HelmChart app"
/// in a message.
pub fn unpinnable(kind: SourceKind, spec: &Map<String, Value>) -> Option<String> {
    built_from_files(kind, spec).or_else(|| includes_others(kind, spec))
}

/// Flux adds what included sources show at that moment to the artifact of the source that includes
/// them, even if that source is pinned to a commit.
fn includes_others(kind: SourceKind, spec: &Map<String, Value>) -> Option<String> {
    let included = spec.get("include").filter(|it| !it.is_null())?;
    let included = included.as_array();
    if kind != SourceKind::GitRepository || included.is_some_and(Vec::is_empty) {
        return None;
    }
    let name = |it: &Value| Some(it.get("repository")?.get("name")?.as_str()?.to_owned());
    let names = included.into_iter().flatten().filter_map(name);
    let names: Vec<String> = names.collect();
    Some(format!(
        "includes what other GitRepositories show ({}), at whatever commit they are: write strategy: \
         artifact, or gate each of them and apply them one by one",
        match names.as_slice() {
            [] => "spec.include".to_owned(),
            names => names.join(", "),
        }
    ))
}

/// Flux ignores the version of a chart that is built from files: each new artifact is built at once.
fn built_from_files(kind: SourceKind, spec: &Map<String, Value>) -> Option<String> {
    let text = |field: &str| spec.get("sourceRef")?.get(field)?.as_str();
    let repository = text("kind").filter(|_| kind == SourceKind::HelmChart)?;
    (repository != SourceKind::HelmRepository.as_str()).then(|| {
        format!(
            "is built from the {repository} {}, whatever its version says: gate that {repository} \
             instead, and let the chart name its child",
            text("name").unwrap_or_default()
        )
    })
}

/// The content, pinned to a revision: this is kept of an admission. None: it cannot be pinned to that
/// revision.
pub(crate) fn pinned(
    strategy: Strategy,
    kind: SourceKind,
    spec: &Map<String, Value>,
    revision: &Revision,
) -> Option<Map<String, Value>> {
    if strategy == Strategy::Pin && unpinnable(kind, spec).is_some() {
        return None;
    }
    let mut content: Map<String, Value> = (content(spec))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    match kind {
        SourceKind::GitRepository => {
            let (_, commit) = revision.digest()?.split_once(':')?;
            let pin = match branch(spec, revision) {
                Some(branch) => json!({ "branch": branch, "commit": commit }),
                None => json!({ "commit": commit }),
            };
            content.insert("ref".to_owned(), pin);
        }
        SourceKind::OCIRepository => {
            content.insert("ref".to_owned(), json!({ "digest": revision.digest()? }));
        }
        SourceKind::HelmChart => {
            // Flux adds its own build metadata to charts to which it adds values.
            let version = revision.name()?.split('+').next()?;
            content.insert("version".to_owned(), json!(version));
        }
        SourceKind::Bucket | SourceKind::HelmRepository => {}
    }
    Some(content)
}

/// The branch on which a commit was found. With it, Flux clones only that branch, and finds no commit
/// of another one.
pub(crate) fn branch<'a>(spec: &'a Map<String, Value>, revision: &Revision) -> Option<&'a str> {
    let reference = spec.get("ref")?;
    let is_other = ["name", "semver", "tag"];
    let by_branch = is_other.iter().all(|field| reference.get(field).is_none());
    let branch = reference.get("branch")?.as_str()?;
    (by_branch && revision.name() == Some(branch)).then_some(branch)
}

/// The spec of a pinned child: the content that was admitted, with the access that the source has now.
pub(crate) fn of_child(
    admitted: &Map<String, Value>,
    source: &Map<String, Value>,
    interval: String,
) -> Map<String, Value> {
    let access = source
        .iter()
        .filter(|(name, _)| ACCESS.contains(&name.as_str()));
    let mut spec = admitted.clone();
    spec.extend(access.map(|(name, value)| (name.clone(), value.clone())));
    spec.insert("interval".to_owned(), Value::String(interval));
    spec
}

/// The content that a pinned child was admitted with, and its revision. It is read from the child if no
/// status has it.
pub(crate) fn of_pin(
    kind: SourceKind,
    child: &Map<String, Value>,
) -> Option<(Revision, Map<String, Value>)> {
    let text = |field: &str| child.get("ref")?.get(field)?.as_str();
    let revision = match kind {
        SourceKind::GitRepository => {
            let commit = text("commit")?;
            match text("branch") {
                Some(branch) => format!("{branch}@{commit}"),
                None => commit.to_owned(),
            }
        }
        SourceKind::OCIRepository => text("digest")?.to_owned(),
        SourceKind::HelmChart => child.get("version")?.as_str()?.to_owned(),
        SourceKind::Bucket | SourceKind::HelmRepository => return None,
    };
    let kept = content(child).map(|(name, value)| (name.clone(), value.clone()));
    Some((Revision::parse(&revision).ok()?, kept.collect()))
}
