//! What a source shows, and whether it is to be believed.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use sluice_crds::flux::{FluxObject, Release};
use sluice_crds::gated_source::{ConsumerKind, Part, SourceKind, Strategy};

use super::content::{fingerprint, selection, unpinnable};
use super::{Found, Source};
use crate::revision::Revision;

/// The word for a source that the strategy `pin` cannot hold.
pub(super) const NOT_PINNABLE: &str = "NotPinnable";

/// Why nothing is known of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Trouble {
    /// In one word.
    pub(super) reason: &'static str,
    /// In a sentence.
    pub(super) message: String,
    /// Whether the source is at work on it, as it is with each change: then it is no news for whoever
    /// has something that is out.
    pub(super) passes: bool,
}

impl Trouble {
    pub(super) fn new(reason: &'static str, message: String) -> Self {
        Self {
            reason,
            message,
            passes: false,
        }
    }

    fn not_ready(called: &str, object: &FluxObject, problem: &str) -> Self {
        let message = format!("the {called} {problem}");
        Self {
            passes: is_at_work(object),
            ..Self::new("SourceNotReady", message)
        }
    }
}

fn is_suspended(object: &FluxObject) -> bool {
    object.spec.get("suspend") == Some(&true.into())
}

/// Whether its controller has not come to an end with what the source is now.
fn is_at_work(object: &FluxObject) -> bool {
    let ready = condition(object, "Ready");
    let is_behind = !is_observed(object) || ready.is_none_or(|ready| ready.status == "Unknown");
    is_behind && !is_suspended(object)
}

/// What a source brings: an artifact that its controller has fetched as the spec asks, and verified
/// where it asks for that.
pub(super) fn observe(strategy: Strategy, source: &Source<'_>) -> Result<Part, Trouble> {
    let called = format!("{} {}", source.wanted.kind.as_str(), source.wanted.name);
    let object = here(&source.upstream, &called)?;
    if strategy == Strategy::Pin
        && let Some(why) = unpinnable(source.wanted.kind, &object.spec)
    {
        let message = format!("the {called} {why}");
        return Err(Trouble::new(NOT_PINNABLE, message));
    }
    let Some(artifact) = object
        .status
        .artifact
        .as_ref()
        .filter(|_| is_observed(object))
    else {
        let problem = match condition(object, "Ready") {
            Some(ready) if ready.status == "False" => format!("is not ready: {}", ready.message),
            _ if is_suspended(object) => {
                "is suspended, and has not been fetched as it is written now".to_owned()
            }
            _ if object.status.artifact.is_some() => "is being fetched anew".to_owned(),
            _ => "has fetched nothing yet".to_owned(),
        };
        return Err(Trouble::not_ready(&called, object, &problem));
    };
    if let Some(problem) = doubt(object) {
        return Err(Trouble::not_ready(&called, object, &problem));
    }
    if let Err(mistake) = Revision::parse(&artifact.revision) {
        let message = format!(
            "the {called} shows the revision `{}`: {mistake}",
            artifact.revision
        );
        return Err(Trouble::new("RevisionUnreadable", message));
    }
    Ok(Part {
        kind: source.wanted.kind,
        name: source.wanted.name.clone(),
        revision: artifact.revision.clone(),
        digest: artifact.digest.clone(),
        content: fingerprint(source.wanted.kind, &object.spec),
        selection: Some(selection(source.wanted.kind, &object.spec)),
    })
}

/// The object, or why there is none.
pub(super) fn here<'a>(found: &Found<'a>, called: &str) -> Result<&'a FluxObject, Trouble> {
    match found {
        Found::Here(object) => Ok(object),
        Found::Missing => {
            let message = format!("there is no {called}");
            Err(Trouble::new("SourceNotFound", message))
        }
        Found::NotInstalled => {
            let message = format!("there is no {called}: Flux's CRD of its kind is not installed");
            Err(Trouble::new("FluxNotInstalled", message))
        }
        Found::Unreadable(why) => {
            let message = format!("the {called} cannot be read: {why}");
            Err(Trouble::new("SourceUnreadable", message))
        }
    }
}

/// Whether its controller has dealt with the present generation.
pub(super) fn is_observed(object: &FluxObject) -> bool {
    object.status.observed_generation == object.metadata.generation
}

/// Why the artifact may not be what the spec asks for.
fn doubt(object: &FluxObject) -> Option<String> {
    let current = |name: &str| {
        let condition = condition(object, name)?;
        (condition.observed_generation == object.metadata.generation).then_some(condition)
    };
    match current("Ready") {
        Some(ready) if ready.status == "True" => {}
        Some(ready) => return Some(format!("is not ready: {}", ready.message)),
        None => return Some("is not ready: it has not been looked at yet".to_owned()),
    }
    if object.spec.contains_key("verify")
        && current("SourceVerified").is_none_or(|verified| verified.status != "True")
    {
        return Some("asks for verification, and is not verified".to_owned());
    }
    None
}

/// The condition of that name.
pub(super) fn condition<'a>(object: &'a FluxObject, name: &str) -> Option<&'a Condition> {
    let mut conditions = object.status.conditions.iter();
    conditions.find(|condition| condition.type_ == name)
}

/// The revision of a source that somebody runs: of a HelmRelease the newest that was deployed, by the
/// digest of the artifact where the chart is one of a registry.
pub(super) fn runs(of: SourceKind, kind: ConsumerKind, consumer: &FluxObject) -> Option<&str> {
    match kind {
        ConsumerKind::Kustomization => consumer.status.last_applied_revision.as_deref(),
        ConsumerKind::HelmRelease => {
            let deployed = |release: &&Release| release.status.as_deref() == Some("deployed");
            let mut history = consumer.status.history.iter();
            let release = history.find(deployed)?;
            match of {
                SourceKind::OCIRepository => release.oci_digest.as_deref(),
                SourceKind::GitRepository
                | SourceKind::HelmChart
                | SourceKind::Bucket
                | SourceKind::HelmRepository => Some(&release.chart_version),
            }
        }
    }
}
