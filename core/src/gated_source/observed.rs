//! What a source shows, and whether it is to be believed.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use sluice_crds::flux::{FluxObject, Release};
use sluice_crds::gated_source::{ConsumerKind, Part, Strategy};

use super::content::{fingerprint, unpinnable};
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
}

impl Trouble {
    fn new(reason: &'static str, message: String) -> Self {
        Self { reason, message }
    }
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
        let message = match condition(object, "Ready") {
            Some(ready) if ready.status == "False" => {
                format!("the {called} is not ready: {}", ready.message)
            }
            _ => format!("the {called} has fetched nothing yet"),
        };
        return Err(Trouble::new("SourceNotReady", message));
    };
    if let Some(problem) = doubt(object) {
        let message = format!("the {called} {problem}");
        return Err(Trouble::new("SourceNotReady", message));
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

/// The revision that somebody runs: of a HelmRelease the newest that was deployed.
pub(super) fn runs(kind: ConsumerKind, consumer: &FluxObject) -> Option<&str> {
    match kind {
        ConsumerKind::Kustomization => consumer.status.last_applied_revision.as_deref(),
        ConsumerKind::HelmRelease => {
            let deployed = |release: &&Release| release.status.as_deref() == Some("deployed");
            let mut history = consumer.status.history.iter();
            Some(history.find(deployed)?.chart_version.as_str())
        }
    }
}
