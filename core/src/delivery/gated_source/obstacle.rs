//! What the API server refuses of what has to be done, as the status says it.
//!
//! What was decided stands, and is tried again. Until it is done the status says what came of the last
//! try, and not what is about to be: so a try that is refused as the one before writes nothing.

use jiff::Timestamp;
use sluice_crds::flux::{FluxKind, FluxObject};
use sluice_crds::{GatedSource, GatedSourceStatus};

use super::Act;
use crate::time::stamp::whole_second;
use crate::verdict::condition::{self, READY, RECONCILING, STALLED, Wanted, cut};

/// The reason of `Ready` while something is refused.
pub(super) const WRITE_REFUSED: &str = "WriteRefused";

/// The most bytes of what the API server says.
const LONGEST: usize = 500;

/// A write that the API server has refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// What was to be written: see [`Act::writes`].
    pub what: String,
    /// The status of the answer, as HTTP has them.
    pub code: u16,
    /// What the API server says.
    pub message: String,
}

impl Refused {
    /// Without a right (403), or with what a definition or a policy refuses (422), nothing goes on
    /// before a person changes something.
    fn is_for_people(&self) -> bool {
        matches!(self.code, 403 | 422)
    }
}

impl Act {
    /// What it writes to the API server. None: it is about the store.
    pub fn writes(&self) -> Option<String> {
        match self {
            Act::Write(child) => Some(format!("the {} {}", child.kind.as_str(), child.name)),
            Act::Serve { before, .. } => Some(format!(
                "the status of {}",
                called(FluxKind::ExternalArtifact.as_str(), before)
            )),
            Act::Suspend { kind, before, .. } => Some(called(kind.as_str(), before)),
            Act::Delete { kind, before } => Some(called(kind.as_str(), before)),
            Act::Finalize(_) => Some("the finalizer of this GatedSource".to_owned()),
            Act::Fetch { .. } | Act::Retain { .. } => None,
        }
    }
}

fn called(kind: &str, object: &FluxObject) -> String {
    let name = object.metadata.name.as_deref().unwrap_or_default();
    format!("the {kind} {name}")
}

/// The status once a write was refused. None: it says so already.
pub fn refused(
    object: &GatedSource,
    refused: &Refused,
    now: Timestamp,
) -> Option<GatedSourceStatus> {
    let message = format!(
        "the API server refuses a write of {}, which is tried again: {}",
        refused.what,
        cut(refused.message.clone(), LONGEST)
    );
    told(object, conditions(&message, refused.is_for_people()), now)
}

/// The status that says this of how it stands, and all else as it did. None: it says so already.
pub(super) fn told(
    object: &GatedSource,
    wanted: Vec<Wanted>,
    now: Timestamp,
) -> Option<GatedSourceStatus> {
    let before = object.status.clone().unwrap_or_default();
    let generation = object.metadata.generation;
    let mut conditions =
        condition::settle(wanted, &before.conditions, generation, whole_second(now));
    let others = before.conditions.iter();
    let others = others.filter(|it| ![READY, RECONCILING, STALLED].contains(&it.type_.as_str()));
    conditions.extend(others.cloned());
    let status = GatedSourceStatus {
        observed_generation: generation,
        conditions,
        ..before.clone()
    };
    (status != before).then_some(status)
}

/// What the last try came to, while it has something left to do.
pub(super) fn still(before: &GatedSourceStatus, acts: &[Act]) -> Option<Vec<Wanted>> {
    let said = |type_: &str| {
        let mut conditions = before.conditions.iter();
        conditions.find(|it| it.type_ == type_ && it.reason == WRITE_REFUSED)
    };
    let ready = said(READY)?;
    let is_left = acts.iter().any(|act| act.writes().is_some());
    is_left.then(|| conditions(&ready.message, said(STALLED).is_some()))
}

fn conditions(message: &str, is_stalled: bool) -> Vec<Wanted> {
    let say = |type_, holds| Wanted::new(type_, holds, WRITE_REFUSED, message);
    let stalled = is_stalled.then(|| say(STALLED, true));
    [say(READY, false)].into_iter().chain(stalled).collect()
}
