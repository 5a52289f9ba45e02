//! What a source shows, and whether that can be trusted.

use std::sync::Arc;

use sluice_crds::flux::FluxObject;
use sluice_crds::gated_source::{Part, SourceKind, Strategy};

use super::content::{fingerprint, selection, unpinnable};
use super::observed::{Found, condition, doubt, is_at_work, is_observed, is_suspended};
use crate::revision::Revision;

/// The reason of a source that the strategy `pin` cannot hold back.
pub(crate) const NOT_PINNABLE: &str = "NotPinnable";

/// Why nothing is known of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    /// In one word.
    pub(crate) reason: &'static str,
    /// In a sentence.
    pub(crate) message: String,
    /// Whether the controller of the source is working on it, as it does after each change. Where
    /// something is out already, this is not reported.
    pub(crate) passes: bool,
}

impl Trouble {
    pub(crate) fn new(reason: &'static str, message: String) -> Self {
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

/// What a source shows: an artifact that its controller has fetched as the spec says, and verified if
/// the spec requires it.
pub(crate) fn shown(
    strategy: Strategy,
    kind: SourceKind,
    name: &str,
    found: &Found,
) -> Result<Part, Trouble> {
    let called = format!("{} {name}", kind.as_str());
    let object = here(found, &called)?;
    can_be_pinned(strategy, kind, object, &called)?;
    let artifact = object.status.artifact.as_ref();
    let Some(artifact) = artifact.filter(|_| is_observed(object)) else {
        return Err(Trouble::not_ready(&called, object, &not_fetched(object)));
    };
    if let Some(problem) = doubt(object) {
        return Err(Trouble::not_ready(&called, object, &problem));
    }
    let revision = artifact.revision.clone();
    if let Err(mistake) = Revision::parse(&revision) {
        let message = format!("the {called} shows the revision `{revision}`: {mistake}");
        return Err(Trouble::new("RevisionUnreadable", message));
    }
    Ok(Part {
        kind,
        name: name.to_owned(),
        revision,
        digest: artifact.digest.clone(),
        content: fingerprint(kind, &object.spec),
        selection: Some(selection(kind, &object.spec)),
    })
}

/// Why a source shows nothing for its present spec.
fn not_fetched(object: &FluxObject) -> String {
    match condition(object, "Ready") {
        Some(ready) if ready.status == "False" => format!("is not ready: {}", ready.message),
        _ if is_suspended(object) => {
            "is suspended, and has not been fetched with its present spec".to_owned()
        }
        _ if object.status.artifact.is_some() => "is being fetched again".to_owned(),
        _ => "has fetched nothing yet".to_owned(),
    }
}

/// Refuses a source that the strategy cannot hold back.
pub(crate) fn can_be_pinned(
    strategy: Strategy,
    kind: SourceKind,
    object: &FluxObject,
    called: &str,
) -> Result<(), Trouble> {
    match unpinnable(kind, &object.spec).filter(|_| strategy == Strategy::Pin) {
        Some(why) => Err(Trouble::new(NOT_PINNABLE, format!("the {called} {why}"))),
        None => Ok(()),
    }
}

/// The object, or why there is none.
pub(crate) fn here<'a>(found: &'a Found, called: &str) -> Result<&'a Arc<FluxObject>, Trouble> {
    let (reason, message) = match found {
        Found::Here(object) => return Ok(object),
        Found::Missing => ("SourceNotFound", format!("there is no {called}")),
        Found::NotInstalled => (
            "FluxNotInstalled",
            format!("there is no {called}: Flux's CRD of its kind is not installed"),
        ),
        Found::Unreadable(why) => (
            "SourceUnreadable",
            format!("the {called} cannot be read: {why}"),
        ),
    };
    Err(Trouble::new(reason, message))
}
