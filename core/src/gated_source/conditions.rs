//! What a status says in conditions.

use sluice_crds::gated_source::Strategy;
use sluice_crds::{Decision, GatedSourceStatus};

use super::baseline::BASELINE_MISMATCH;
use super::child::{Look, Standing};
use super::observed::{NOT_PINNABLE, Trouble};
use super::{Act, Given, Source, suspended};
use crate::condition::{READY, RECONCILING, STALLED, Wanted};
use crate::refusal::Refusals;
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
pub(super) struct Scene {
    pub(super) refused: Option<Refusals>,
    pub(super) paused: bool,
    /// Why nothing new is seen.
    trouble: Option<Trouble>,
    /// Why what is asked for cannot be had.
    pub(super) not_held: Option<String>,
    /// What would go out next.
    pub(super) wanted: Option<sluice_crds::gated_source::Candidate>,
    pub(super) admit_at: Option<jiff::Timestamp>,
    pub(super) next: Option<jiff::Timestamp>,
    /// Whether something has gone out in this look.
    pub(super) released: bool,
    /// Whether something waits.
    pub(super) waits: bool,
    /// Whether a fetch is to be tried again.
    pub(super) retry: bool,
    standings: Vec<Standing>,
    lost: Option<String>,
    /// What a GatedSource of the strategy `suspend` does.
    sources: Option<Held>,
    pub(super) bypassing: Vec<String>,
    pub(super) self_gated: Vec<String>,
}

struct Held {
    held: usize,
    others: usize,
    all: usize,
    troubles: Vec<String>,
    choosy: Vec<String>,
}

impl Scene {
    pub(super) fn new(trouble: Option<Trouble>) -> Self {
        Self {
            refused: None,
            paused: false,
            trouble,
            not_held: None,
            wanted: None,
            admit_at: None,
            next: None,
            released: false,
            waits: false,
            retry: false,
            standings: Vec::new(),
            lost: None,
            sources: None,
            bypassing: Vec::new(),
            self_gated: Vec::new(),
        }
    }

    /// Whether anything may be done to other objects.
    pub(super) fn is_at_work(&self) -> bool {
        self.refused.is_none() && !self.paused
    }

    pub(super) fn take_child(&mut self, look: Look, acts: &mut Vec<Act>) {
        self.standings.push(look.standing);
        self.lost = self.lost.take().or(look.lost);
        acts.extend(look.acts);
    }

    /// The name that a child is to have is somebody else's, although nothing has gone out yet.
    pub(super) fn taken(&mut self, given: &Given<'_>, source: &Source<'_>) {
        let kind = source.wanted.child(given.object.spec.strategy).as_str();
        self.standings.push(Standing::Taken(format!(
            "there is a {kind} {} already that this GatedSource has not made; delete it, or write \
             another target",
            source.wanted.target
        )));
    }

    /// Suspends or resumes, as the gates say.
    pub(super) fn hold(&mut self, given: &Given<'_>, told: Option<&Decision>, acts: &mut Vec<Act>) {
        let Some(told) = told else {
            return;
        };
        let choosy: Vec<String> = suspended::choosy(told)
            .into_iter()
            .map(str::to_owned)
            .collect();
        // Fail closed: what depends on the revision holds everything back.
        let course = suspended::course(given, told.allowed && choosy.is_empty());
        self.waits = !told.allowed;
        self.sources = Some(Held {
            held: course.held,
            others: course.others,
            all: given.sources.len(),
            troubles: course.troubles,
            choosy,
        });
        acts.extend(course.acts);
    }
}

fn want(type_: &'static str, holds: bool, reason: &str, message: impl Into<String>) -> Wanted {
    Wanted {
        type_,
        holds,
        reason: reason.to_owned(),
        message: message.into(),
    }
}

/// All the conditions.
pub(super) fn all(
    given: &Given<'_>,
    status: &GatedSourceStatus,
    scene: &Scene,
    told: Option<&Decision>,
) -> Vec<Wanted> {
    let mut wanted = ready(status, scene);
    wanted.push(blocked(status, scene, told));
    wanted.extend(recoverable(given, status, scene));
    if !scene.bypassing.is_empty() {
        let message = format!(
            "{} still use the source itself, past the gates; let them use the child",
            listed(&scene.bypassing)
        );
        wanted.push(want(BYPASSED, true, "UpstreamUsed", message));
    }
    if !scene.self_gated.is_empty() {
        let message = format!(
            "{} come by way of what they hold back: while the gates are closed a change of them \
             cannot arrive; force the gate to let it in, or deliver them by another source",
            listed(&scene.self_gated)
        );
        wanted.push(want(SELF_GATED, true, "DeliveredThroughItself", message));
    }
    wanted
}

/// `Ready`, with `Reconciling` or `Stalled` where one of them holds.
fn ready(status: &GatedSourceStatus, scene: &Scene) -> Vec<Wanted> {
    let stalled = |reason: &str, message: &str| {
        vec![
            want(READY, false, reason, message),
            want(STALLED, true, reason, message),
        ]
    };
    if let Some(refusals) = &scene.refused {
        let message = format!("the spec is refused: {refusals}");
        return stalled(Reason::InvalidSpec.as_str(), &message);
    }
    if scene.paused {
        let message = "suspended: nothing is admitted and nothing is changed";
        return vec![want(READY, true, Reason::Suspended.as_str(), message)];
    }
    if let Some(held) = &scene.sources {
        return of_sources(held);
    }
    let taken = scene.standings.iter().find_map(|standing| match standing {
        Standing::Taken(message) => Some(message),
        _ => None,
    });
    if let Some(message) = taken {
        return stalled("TargetTaken", message);
    }
    let fails = scene.standings.iter().find_map(|standing| match standing {
        Standing::Fails(reason, message) => Some((reason, message)),
        _ => None,
    });
    if let Some((reason, message)) = fails {
        return vec![want(READY, false, reason, message)];
    }
    let fetching = scene.standings.iter().find_map(|standing| match standing {
        Standing::Fetching(message) => Some(message),
        _ => None,
    });
    if let Some(message) = fetching {
        return vec![
            want(READY, false, "Progressing", message),
            want(RECONCILING, true, "Progressing", message),
        ];
    }
    serving(status, scene.trouble.as_ref(), stalled)
}

/// The children serve what was admitted, or nothing was.
fn serving(
    status: &GatedSourceStatus,
    trouble: Option<&Trouble>,
    stalled: impl Fn(&str, &str) -> Vec<Wanted>,
) -> Vec<Wanted> {
    let out = status.admitted.as_ref();
    match trouble.filter(|trouble| out.is_none() || !trouble.passes) {
        Some(trouble) if [BASELINE_MISMATCH, NOT_PINNABLE].contains(&trouble.reason) => {
            stalled(trouble.reason, &trouble.message)
        }
        Some(trouble) if out.is_none() || trouble.reason != "SourceNotReady" => {
            vec![want(READY, false, trouble.reason, trouble.message.as_str())]
        }
        trouble => {
            let (reason, said) = match out {
                Some(admitted) => ("Serving", format!("serves {}", admitted.revision)),
                None => ("NothingAdmitted", "nothing has gone out yet".to_owned()),
            };
            let message = match trouble {
                None => said,
                Some(trouble) => format!("{said}; nothing newer is seen: {}", trouble.message),
            };
            vec![want(READY, true, reason, message)]
        }
    }
}

fn of_sources(held: &Held) -> Vec<Wanted> {
    if !held.choosy.is_empty() {
        let message = format!(
            "the answer of {} depends on the revision, which a suspended source does not show: \
             write strategy: pin, or name other gates",
            listed(&held.choosy)
        );
        let reason = Reason::DependsOnRevision.as_str();
        return vec![
            want(READY, false, reason, &message),
            want(STALLED, true, reason, message),
        ];
    }
    if !held.troubles.is_empty() {
        return vec![want(READY, false, "CannotSuspend", listed(&held.troubles))];
    }
    let (reason, mut message) = match held.held {
        0 => (
            "Released",
            format!("of {} sources none is suspended", held.all),
        ),
        some => (
            "Holding",
            format!("{some} of {} sources are suspended", held.all),
        ),
    };
    if held.others > 0 {
        message.push_str(&format!("; {} are suspended by others", held.others));
    }
    vec![want(READY, true, reason, message)]
}

fn blocked(status: &GatedSourceStatus, scene: &Scene, told: Option<&Decision>) -> Wanted {
    // As it was told last: what was only measured anew is no reason to write.
    let last = status.last_decision.as_ref();
    let refused = told.filter(|told| !told.allowed).and(last);
    if let Some(held) = &scene.sources {
        return match refused {
            Some(told) => want(BLOCKED, true, "GatesClosed", told.message.as_str()),
            None => want(
                BLOCKED,
                !held.choosy.is_empty(),
                "GatesOpen",
                "the gates are open",
            ),
        };
    }
    let Some(pending) = &status.pending else {
        return want(BLOCKED, false, "NothingPending", "nothing waits to go out");
    };
    let revision = &pending.revision;
    if scene.paused || scene.refused.is_some() {
        let message = format!("{revision} waits; see Ready");
        return want(BLOCKED, true, Reason::Suspended.as_str(), message);
    }
    if let Some(why) = &scene.not_held {
        return want(BLOCKED, true, "RevisionNotHeld", why.as_str());
    }
    if let Some(at) = &pending.admit_at {
        let message = format!("{revision} goes out at {}: spread", at.0);
        return want(BLOCKED, true, "Spread", message);
    }
    match (refused, &scene.wanted) {
        (Some(told), _) => want(
            BLOCKED,
            true,
            "GatesClosed",
            format!("{revision} waits: {}", told.message),
        ),
        (None, Some(_)) => want(BLOCKED, true, "GatesClosed", format!("{revision} waits")),
        (None, None) => {
            let message = format!(
                "{revision} waits for what was asked for before it: spec.revision, or an artifact \
                 that is not stored yet"
            );
            want(BLOCKED, true, "NotAskedFor", message)
        }
    }
}

fn recoverable(given: &Given<'_>, status: &GatedSourceStatus, scene: &Scene) -> Option<Wanted> {
    if given.object.spec.strategy == Strategy::Suspend {
        let message = "a suspended source is not fetched again when its artifact is lost";
        return Some(want(RECOVERABLE, false, "NotPinned", message));
    }
    let admitted = status.admitted.as_ref().filter(|_| scene.is_at_work())?;
    Some(match &scene.lost {
        Some(why) => want(RECOVERABLE, false, "CannotBeFetched", why.as_str()),
        None => {
            let message = format!("{} can be had again", admitted.revision);
            want(RECOVERABLE, true, "Pinned", message)
        }
    })
}

fn listed(all: &[String]) -> String {
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
