//! What a status says in conditions.

use sluice_crds::gated_source::Strategy;
use sluice_crds::{Decision, GatedSourceStatus};

use super::considered::{Considered, Fate, Step};
use super::objects::Objects;
use super::suspended::Sources;
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
    if let Objects::Sources(sources) = scene.objects {
        return sources_blocked(sources, refused);
    }
    let Some(pending) = &status.pending else {
        return want(BLOCKED, false, "NothingPending", "nothing waits to go out");
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
            let message = format!(
                "{revision} waits for what was asked for before it: spec.revision, or an artifact \
                 that is not stored yet"
            );
            want(BLOCKED, true, "NotAskedFor", message)
        }
    }
}

fn sources_blocked(sources: &Sources, refused: Option<&Decision>) -> Wanted {
    match refused {
        Some(told) => want(BLOCKED, true, "GatesClosed", told.message.as_str()),
        None => {
            let holds = !sources.choosy.is_empty();
            want(BLOCKED, holds, "GatesOpen", "the gates are open")
        }
    }
}

fn recoverable(scene: &Scene<'_>, status: &GatedSourceStatus) -> Option<Wanted> {
    if scene.given.object.spec.strategy == Strategy::Suspend {
        let message = "a suspended source is not fetched again when its artifact is lost";
        return Some(want(RECOVERABLE, false, "NotPinned", message));
    }
    let Objects::Children(children) = scene.objects else {
        return None;
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
