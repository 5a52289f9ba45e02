//! What a status says in conditions.

use sluice_crds::gated_source::Strategy;
use sluice_crds::{Decision, GatedSourceStatus};

use super::considered::{Considered, Fate, Step};
use super::objects::Objects;
use super::report::lost_wish;
use super::{Given, ready, users};
use crate::verdict::Reason;
use crate::verdict::condition::{Wanted, listed};

/// Something waits for the gates, or for its turn.
pub const BLOCKED: &str = "Blocked";
/// What was admitted can be had again.
pub const RECOVERABLE: &str = "Recoverable";
/// Somebody applies a source past its gates.
pub const BYPASSED: &str = "Bypassed";
/// What decides about a source comes by way of it.
pub const SELF_GATED: &str = "SelfGated";

/// How many names a message has.
pub(super) const NAMED: usize = 5;

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

/// All the conditions.
pub(super) fn all(scene: &Scene<'_>, status: &GatedSourceStatus) -> Vec<Wanted> {
    let mut wanted = ready::ready(scene, status);
    wanted.push(blocked(scene, status));
    wanted.extend(recoverable(scene, status));
    wanted.extend(bypassed(scene.given));
    let self_gated = users::self_gated(scene.given);
    if !self_gated.is_empty() {
        let message = format!(
            "{} come by way of what they hold back: while the gates are closed a change of them \
             cannot arrive; force the gate to let it in, or deliver them by another source",
            listed(&self_gated, NAMED)
        );
        wanted.push(Wanted::new(
            SELF_GATED,
            true,
            "DeliveredThroughItself",
            message,
        ));
    }
    wanted
}

/// Who deploys what passes no gate.
fn bypassed(given: &Given<'_>) -> Option<Wanted> {
    let (bypassing, misled) = (users::bypassing(given), users::misled(given));
    let past = (!bypassing.is_empty()).then(|| {
        let message = format!(
            "{} still use the source itself, past the gates; let them use the child",
            listed(&bypassing, NAMED)
        );
        ("UpstreamUsed", message)
    });
    let misled = (!misled.is_empty()).then(|| {
        let message = format!(
            "{} use an object under the name of the child that this GatedSource has not made, and \
             what it brings passes no gate; see Ready",
            listed(&misled, NAMED)
        );
        ("TargetTaken", message)
    });
    let all: Vec<_> = past.into_iter().chain(misled).collect();
    let (reason, _) = *all.first()?;
    let messages: Vec<&str> = all.iter().map(|(_, message)| message.as_str()).collect();
    Some(Wanted::new(BYPASSED, true, reason, messages.join("; ")))
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
        let nothing = || Wanted::new(BLOCKED, false, "NothingPending", "nothing waits to go out");
        return former.unwrap_or_else(nothing);
    };
    let revision = &pending.revision;
    let stands_still = |reason: Reason| {
        let message = format!("{revision} waits; see Ready");
        Wanted::new(BLOCKED, true, reason.as_str(), message)
    };
    match (&scene.considered.step, scene.fate, refused) {
        (Step::Paused, ..) => stands_still(Reason::Suspended),
        (Step::Refused(_), ..) => stands_still(Reason::InvalidSpec),
        (_, Fate::NotHeld(why), _) => Wanted::new(BLOCKED, true, "RevisionNotHeld", why),
        (_, Fate::Turn(_, at), _) => {
            let message = format!("{revision} goes out at {at}: spread");
            Wanted::new(BLOCKED, true, "Spread", message)
        }
        (.., Some(told)) => {
            let message = format!("{revision} waits: {}", told.message);
            Wanted::new(BLOCKED, true, "GatesClosed", message)
        }
        (.., None) => {
            if let Some((_, why)) = lost_wish(scene.given, status, scene.objects) {
                let message = format!(
                    "spec.revision asks for {revision}, which the gates have admitted and which \
                     cannot be had: {why}; write a revision that the source has"
                );
                return Wanted::new(BLOCKED, true, "RevisionNotHeld", message);
            }
            let (reason, message) = not_asked(scene, status);
            Wanted::new(BLOCKED, true, reason, format!("{revision} {message}"))
        }
    }
}

/// Why the gates were not asked about what waits.
fn not_asked(scene: &Scene<'_>, status: &GatedSourceStatus) -> (&'static str, String) {
    let spec = &scene.given.object.spec;
    let newest = status.candidates.last();
    match (scene.fate, scene.objects) {
        (_, objects) if objects.are_taken() => {
            let message = "waits until the name of its child is free; see Ready";
            ("TargetTaken", message.to_owned())
        }
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
    Some(Wanted::new(
        type_,
        holds,
        &former.reason,
        former.message.as_str(),
    ))
}

fn sources_blocked(refused: Option<&Decision>) -> Wanted {
    match refused {
        Some(told) => Wanted::new(BLOCKED, true, "GatesClosed", told.message.as_str()),
        None => Wanted::new(BLOCKED, false, "GatesOpen", "the gates are open"),
    }
}

fn recoverable(scene: &Scene<'_>, status: &GatedSourceStatus) -> Option<Wanted> {
    if scene.given.object.spec.strategy == Strategy::Suspend {
        let message = "a suspended source is not fetched again when its artifact is lost";
        return Some(Wanted::new(RECOVERABLE, false, "NotPinned", message));
    }
    let Objects::Children(children) = scene.objects else {
        return former(scene, RECOVERABLE);
    };
    let admitted = status.admitted.as_ref()?;
    Some(match &children.lost {
        Some(why) => Wanted::new(RECOVERABLE, false, "CannotBeFetched", why.as_str()),
        None => {
            let message = format!("{} can be had again", admitted.revision);
            Wanted::new(RECOVERABLE, true, "Pinned", message)
        }
    })
}
