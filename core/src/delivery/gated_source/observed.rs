//! What a source shows, and whether it is to be believed.

use sluice_crds::flux::FluxObject;
use sluice_crds::gated_source::{Part, Strategy};

use super::Source;
use crate::flux::content::{fingerprint, selection, unpinnable};
use crate::flux::observed::{Found, condition, doubt, is_at_work, is_observed, is_suspended};
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
