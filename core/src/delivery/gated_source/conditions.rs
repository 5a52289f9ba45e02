//! Step 6: what a status says in conditions.

use sluice_crds::gated_source::{Pending, Strategy};
use sluice_crds::{Decision, GatedSource};

use super::NAMED;
use super::admission::Admission;
use super::baseline::BASELINE_MISMATCH;
use super::child::State;
use super::children::{Children, Objects};
use super::considered::{Outcome, Step};
use super::deletion::Former;
use super::suspended::{Sources, depends_on_revision};
use super::users::Users;
pub use crate::delivery::act::BLOCKED;
use crate::delivery::act::spec_refused;
use crate::flux::shown::NOT_PINNABLE;
use crate::verdict::Reason;
use crate::verdict::condition::{READY, RECONCILING, STALLED, Wanted, find, listed};

/// What was admitted can be fetched again.
pub const RECOVERABLE: &str = "Recoverable";
/// A consumer applies a source past its gates.
pub const BYPASSED: &str = "Bypassed";
/// An object that decides about a source arrives by way of it.
pub const SELF_GATED: &str = "SelfGated";

/// Everything that a look has found out before the conditions.
pub(super) struct Findings<'a> {
    pub(super) object: &'a GatedSource,
    pub(super) users: &'a Users,
    pub(super) former: &'a Former,
    pub(super) step: &'a Step,
    pub(super) admission: &'a Admission<'a>,
    pub(super) objects: &'a Objects,
    pub(super) pending: Option<&'a Pending>,
    /// The decision that the status keeps, if the recorded one holds something back. That something was
    /// measured again is no reason to write.
    pub(super) refusal: Option<&'a Decision>,
    /// Why what `spec.revision` asks for, and the gates have admitted, cannot be fetched.
    pub(super) lost: Option<&'a str>,
    /// What is said of a write that was refused, as long as it has to be retried.
    pub(super) write_refused: Option<Vec<Wanted>>,
}

/// All the conditions.
pub(super) fn all(found: &Findings<'_>) -> Vec<Wanted> {
    let mut wanted = ready(found);
    wanted.push(blocked(found));
    wanted.extend(recoverable(found));
    wanted.extend(bypassed(found.users));
    wanted.extend(self_gated(found.users));
    wanted
}

/// `Ready`, with `Reconciling` or `Stalled` where one of them holds.
fn ready(found: &Findings<'_>) -> Vec<Wanted> {
    match found.step {
        Step::Refused(refusals) => return spec_refused(refusals),
        Step::Paused => {
            let message = "suspended: nothing is admitted and nothing is changed";
            let reason = Reason::Suspended.as_str();
            return vec![Wanted::new(READY, true, reason, message)];
        }
        _ => {}
    }
    if let Some(refused) = &found.write_refused {
        return refused.clone();
    }
    match (found.objects, found.step) {
        (Objects::Sources(sources), Step::Suspend(decision, _)) => {
            let refused = found.refusal.map(|_| decision.as_ref());
            of_sources(sources, refused, found.former)
        }
        (Objects::Children(children), _) => {
            of_children(children).unwrap_or_else(|| serving(found.admission, found.former))
        }
        _ => serving(found.admission, found.former),
    }
}

fn stalled(reason: &str, message: &str) -> Vec<Wanted> {
    vec![
        Wanted::new(READY, false, reason, message),
        Wanted::new(STALLED, true, reason, message),
    ]
}

fn progressing(message: &str) -> Vec<Wanted> {
    vec![
        Wanted::new(READY, false, "Progressing", message),
        Wanted::new(RECONCILING, true, "Progressing", message),
    ]
}

/// The worst state among the children. None: all of them serve.
fn of_children(children: &Children) -> Option<Vec<Wanted>> {
    let severity = |state: &&State| match state {
        State::Taken(_) => 3,
        State::Fails(..) => 2,
        State::Fetching(_) => 1,
        State::Serves => 0,
    };
    // Of several that are equally bad, the first.
    let worst = children.states.iter().rev().max_by_key(severity)?;
    match worst {
        State::Taken(message) => Some(stalled("TargetTaken", message)),
        State::Fails(reason, message) => Some(vec![Wanted::new(READY, false, reason, message)]),
        State::Fetching(message) => Some(progressing(message)),
        State::Serves => None,
    }
}

/// The children serve what was admitted, or nothing was.
fn serving(admission: &Admission<'_>, former: &Former) -> Vec<Wanted> {
    let (out, trouble) = (admission.admitted.as_ref(), admission.trouble.as_ref());
    match trouble.filter(|trouble| out.is_none() || !trouble.passes) {
        Some(trouble) if [BASELINE_MISMATCH, NOT_PINNABLE].contains(&trouble.reason) => {
            stalled(trouble.reason, &trouble.message)
        }
        // If nothing is out yet, it is the first fetch, as with each new app: nothing is wrong.
        Some(trouble) if trouble.passes => progressing(&trouble.message),
        Some(trouble) if out.is_none() || trouble.reason != "SourceNotReady" => {
            let message = trouble.message.as_str();
            vec![Wanted::new(READY, false, trouble.reason, message)]
        }
        trouble => {
            let (reason, said) = match out {
                Some(admitted) => ("Serving", format!("serves {}", admitted.revision)),
                None => ("NothingAdmitted", "nothing has gone out yet".to_owned()),
            };
            let mut message = match trouble {
                None => said,
                Some(trouble) => format!("{said}; nothing newer is seen: {}", trouble.message),
            };
            message.push_str(&former.still_suspended());
            vec![Wanted::new(READY, true, reason, message)]
        }
    }
}

fn of_sources(sources: &Sources, refused: Option<&Decision>, former: &Former) -> Vec<Wanted> {
    let conditional = refused.map(depends_on_revision).unwrap_or_default();
    if !conditional.is_empty() {
        let message = format!(
            "the answer of {} depends on the revision, which a suspended source does not show: \
             write strategy: pin, or name other gates",
            listed(&conditional, NAMED)
        );
        return stalled(Reason::DependsOnRevision.as_str(), &message);
    }
    if !sources.troubles.is_empty() {
        let message = listed(&sources.troubles, NAMED);
        return vec![Wanted::new(READY, false, "CannotSuspend", message)];
    }
    let (held_back, all) = (sources.held_back, sources.all);
    let (reason, mut message) = match held_back {
        0 => ("Released", format!("of {all} sources none is suspended")),
        some => ("Holding", format!("{some} of {all} sources are suspended")),
    };
    if sources.by_others > 0 {
        message.push_str(&format!("; {} are suspended by others", sources.by_others));
    }
    message.push_str(&former.still_suspended());
    vec![Wanted::new(READY, true, reason, message)]
}

/// Who deploys without passing a gate.
fn bypassed(users: &Users) -> Option<Wanted> {
    let past = (!users.bypassing.is_empty()).then(|| {
        let message = format!(
            "{} still use the source itself, past the gates; let them use the child",
            listed(&users.bypassing, NAMED)
        );
        ("UpstreamUsed", message)
    });
    let misled = (!users.misled.is_empty()).then(|| {
        let message = format!(
            "{} use an object under the name of the child that this GatedSource has not made, and \
             what it brings passes no gate; see Ready",
            listed(&users.misled, NAMED)
        );
        ("TargetTaken", message)
    });
    let all: Vec<_> = past.into_iter().chain(misled).collect();
    let (reason, _) = *all.first()?;
    let messages: Vec<&str> = all.iter().map(|(_, message)| message.as_str()).collect();
    Some(Wanted::new(BYPASSED, true, reason, messages.join("; ")))
}

fn self_gated(users: &Users) -> Option<Wanted> {
    (!users.self_gated.is_empty()).then(|| {
        let message = format!(
            "{} come by way of what they hold back: while the gates are closed a change of them \
             cannot arrive; force the gate to let it in, or deliver them by another source",
            listed(&users.self_gated, NAMED)
        );
        Wanted::new(SELF_GATED, true, "DeliveredThroughItself", message)
    })
}

fn blocked(found: &Findings<'_>) -> Wanted {
    if let Objects::Sources(_) = found.objects {
        return match found.refusal {
            Some(refusal) => Wanted::new(BLOCKED, true, "GatesClosed", refusal.message.as_str()),
            None => Wanted::new(BLOCKED, false, "GatesOpen", "the gates are open"),
        };
    }
    let Some(pending) = found.pending else {
        let is_suspend = found.object.spec.strategy == Strategy::Suspend;
        // The sources are as they were.
        let former = is_suspend.then(|| former(found.object, BLOCKED)).flatten();
        let nothing = || Wanted::new(BLOCKED, false, "NothingPending", "nothing waits to go out");
        return former.unwrap_or_else(nothing);
    };
    let (reason, message) = why_it_waits(found, &pending.revision);
    Wanted::new(BLOCKED, true, reason, message)
}

/// Why a revision waits: in one word, and in a sentence.
fn why_it_waits(found: &Findings<'_>, revision: &str) -> (&'static str, String) {
    let see_ready = |reason: Reason| (reason.as_str(), format!("{revision} waits; see Ready"));
    match (found.step, found.admission.outcome, found.refusal) {
        (Step::Paused, ..) => see_ready(Reason::Suspended),
        (Step::Refused(_), ..) => see_ready(Reason::InvalidSpec),
        (_, Outcome::Unobtainable(why), _) => ("RevisionNotHeld", why.to_owned()),
        (_, Outcome::Turn(_, at), _) => ("Spread", format!("{revision} goes out at {at}: spread")),
        (.., Some(refusal)) => (
            "GatesClosed",
            format!("{revision} waits: {}", refusal.message),
        ),
        (.., None) => match found.lost {
            Some(why) => (
                "RevisionNotHeld",
                format!(
                    "spec.revision asks for {revision}, which the gates have admitted and which \
                     is unavailable: {why}; write a revision that the source has"
                ),
            ),
            None => {
                let (reason, message) = not_asked(found);
                (reason, format!("{revision} {message}"))
            }
        },
    }
}

/// Why the gates were not asked about what waits.
fn not_asked(found: &Findings<'_>) -> (&'static str, String) {
    let spec = &found.object.spec;
    let newest = found.admission.candidates.last();
    let (reason, message) = match (found.admission.outcome, found.objects) {
        (_, objects) if objects.are_taken() => (
            "TargetTaken",
            "waits until the name of its child is free; see Ready",
        ),
        (Outcome::Out(_), _) if newest.is_some_and(|newest| newest.held) => {
            ("GatesClosed", "waits")
        }
        (Outcome::Out(_), _) => ("NotAskedFor", "is asked about next"),
        _ if spec.revision.is_some() => (
            "NotAskedFor",
            "waits for spec.revision to ask for it, or for nothing any more",
        ),
        (_, Objects::Children(children)) if spec.strategy == Strategy::Artifact => {
            let why = children.unstored.as_ref();
            let why = why.map(|why| format!(": {why}")).unwrap_or_default();
            let message = format!("waits for its artifact to be stored{why}");
            return ("NotStored", message);
        }
        _ => ("NotAskedFor", "waits for its source; see Ready"),
    };
    (reason, message.to_owned())
}

fn recoverable(found: &Findings<'_>) -> Option<Wanted> {
    if found.object.spec.strategy == Strategy::Suspend {
        let message = "a suspended source is not fetched again when its artifact is lost";
        return Some(Wanted::new(RECOVERABLE, false, "NotPinned", message));
    }
    let Objects::Children(children) = found.objects else {
        return former(found.object, RECOVERABLE);
    };
    let admitted = found.admission.admitted.as_ref()?;
    Some(match &children.lost {
        Some(why) => Wanted::new(RECOVERABLE, false, "CannotBeFetched", why.as_str()),
        None => {
            let message = format!("{} can be fetched again", admitted.revision);
            Wanted::new(RECOVERABLE, true, "Pinned", message)
        }
    })
}

/// What a condition said before.
fn former(object: &GatedSource, type_: &'static str) -> Option<Wanted> {
    let before = object.status.as_ref()?;
    let former = find(&before.conditions, type_)?;
    let (holds, message) = (former.status == "True", former.message.as_str());
    Some(Wanted::new(type_, holds, &former.reason, message))
}
