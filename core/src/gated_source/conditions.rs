//! What a status says in conditions.

use sluice_crds::gated_source::Strategy;
use sluice_crds::{Decision, GatedSourceStatus};

use super::considered::{Considered, Fate, Step};
use super::objects::Objects;
use super::{Given, ready, users};
use crate::condition::Wanted;
use crate::verdict::Reason;

/// Something waits for the gates, or for its turn.
pub const BLOCKED: &str = "Blocked";
/// What was admitted can be had again.
pub const RECOVERABLE: &str = "Recoverable";
/// Somebody applies a source past its gates.
pub const BYPASSED: &str = "Bypassed";
/// What decides about a source comes by way of it.
pub const SELF_GATED: &str = "SelfGated";

/// How many names a message has.
const NAMED: usize = 5;

/// Everything that a look has come to but the status itself.
pub(super) struct Scene<'a> {
    pub(super) given: &'a Given<'a>,
    pub(super) considered: &'a Considered,
    pub(super) fate: Fate<'a>,
    /// The decision as it was recorded.
    pub(super) told: Option<&'a Decision>,
    pub(super) objects: &'a Objects,
    /// What is said of a write that was refused, while there is one to try again.
    pub(super) refused: Option<Vec<Wanted>>,
}

pub(super) fn want(
    type_: &'static str,
    holds: bool,
    reason: &str,
    message: impl Into<String>,
) -> Wanted {
    Wanted {
        type_,
        holds,
        reason: reason.to_owned(),
        message: message.into(),
    }
}

/// All the conditions.
pub(super) fn all(scene: &Scene<'_>, status: &GatedSourceStatus) -> Vec<Wanted> {
    let mut wanted = ready::ready(scene, status);
    wanted.push(blocked(scene, status));
    wanted.extend(recoverable(scene, status));
    let bypassing = users::bypassing(scene.given);
    if !bypassing.is_empty() {
        let message = format!(
            "{} still use the source itself, past the gates; let them use the child",
            listed(&bypassing)
        );
        wanted.push(want(BYPASSED, true, "UpstreamUsed", message));
    }
    let self_gated = users::self_gated(scene.given);
    if !self_gated.is_empty() {
        let message = format!(
            "{} come by way of what they hold back: while the gates are closed a change of them \
             cannot arrive; force the gate to let it in, or deliver them by another source",
            listed(&self_gated)
        );
        wanted.push(want(SELF_GATED, true, "DeliveredThroughItself", message));
    }
    wanted
}

fn blocked(scene: &Scene<'_>, status: &GatedSourceStatus) -> Wanted {
    // As it was told last: what was only measured anew is no reason to write.
    let last = status.last_decision.as_ref();
    let refused = scene.told.filter(|told| !told.allowed).and(last);
    if let Objects::Sources(_) = scene.objects {
        return sources_blocked(refused);
    }
    let Some(pending) = &status.pending else {
        let is_suspend = scene.given.object.spec.strategy == Strategy::Suspend;
        // The sources stand as they did.
        let former = is_suspend.then(|| former(scene, BLOCKED)).flatten();
        let nothing = || want(BLOCKED, false, "NothingPending", "nothing waits to go out");
        return former.unwrap_or_else(nothing);
    };
    let revision = &pending.revision;
    let stands_still = |reason: Reason| {
        let message = format!("{revision} waits; see Ready");
        want(BLOCKED, true, reason.as_str(), message)
    };
    match (&scene.considered.step, scene.fate, refused) {
        (Step::Paused, ..) => stands_still(Reason::Suspended),
        (Step::Refused(_), ..) => stands_still(Reason::InvalidSpec),
        (_, Fate::NotHeld(why), _) => want(BLOCKED, true, "RevisionNotHeld", why),
        (_, Fate::Turn(_, at), _) => {
            let message = format!("{revision} goes out at {at}: spread");
            want(BLOCKED, true, "Spread", message)
        }
        (.., Some(told)) => {
            let message = format!("{revision} waits: {}", told.message);
            want(BLOCKED, true, "GatesClosed", message)
        }
        (.., None) => {
            let (reason, message) = not_asked(scene, status);
            want(BLOCKED, true, reason, format!("{revision} {message}"))
        }
    }
}

/// Why the gates were not asked about what waits.
fn not_asked(scene: &Scene<'_>, status: &GatedSourceStatus) -> (&'static str, String) {
    let spec = &scene.given.object.spec;
    let newest = status.candidates.last();
    match (scene.fate, scene.objects) {
        (Fate::Out(_), _) if newest.is_some_and(|newest| newest.held) => {
            ("GatesClosed", "waits".to_owned())
        }
        (Fate::Out(_), _) => ("NotAskedFor", "is asked about next".to_owned()),
        _ if spec.revision.is_some() => {
            let message = "waits for spec.revision to ask for it, or for nothing any more";
            ("NotAskedFor", message.to_owned())
        }
        (_, Objects::Children(children)) if spec.strategy == Strategy::Artifact => {
            let why = children.unstored.as_ref();
            let why = why.map(|why| format!(": {why}")).unwrap_or_default();
            (
                "NotStored",
                format!("waits for its artifact to be stored{why}"),
            )
        }
        _ => ("NotAskedFor", "waits for its source; see Ready".to_owned()),
    }
}

/// What a condition said before.
fn former(scene: &Scene<'_>, type_: &'static str) -> Option<Wanted> {
    let before = scene.given.object.status.as_ref()?;
    let former = before.conditions.iter().find(|it| it.type_ == type_)?;
    let holds = former.status == "True";
    Some(want(type_, holds, &former.reason, former.message.as_str()))
}

fn sources_blocked(refused: Option<&Decision>) -> Wanted {
    match refused {
        Some(told) => want(BLOCKED, true, "GatesClosed", told.message.as_str()),
        None => want(BLOCKED, false, "GatesOpen", "the gates are open"),
    }
}

fn recoverable(scene: &Scene<'_>, status: &GatedSourceStatus) -> Option<Wanted> {
    if scene.given.object.spec.strategy == Strategy::Suspend {
        let message = "a suspended source is not fetched again when its artifact is lost";
        return Some(want(RECOVERABLE, false, "NotPinned", message));
    }
    let Objects::Children(children) = scene.objects else {
        return former(scene, RECOVERABLE);
    };
    let admitted = status.admitted.as_ref()?;
    Some(match &children.lost {
        Some(why) => want(RECOVERABLE, false, "CannotBeFetched", why.as_str()),
        None => {
            let message = format!("{} can be had again", admitted.revision);
            want(RECOVERABLE, true, "Pinned", message)
        }
    })
}

/// Some of the names, and how many more there are.
pub(super) fn listed(all: &[String]) -> String {
    let mut text = all
        .iter()
        .take(NAMED)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    if all.len() > NAMED {
        text.push_str(&format!(" and {} more", all.len() - NAMED));
    }
    text
}
