//! What a look comes to: the status, what is to be done, and when to look again.

use jiff::{SignedDuration, Timestamp};
use sluice_crds::gated_source::{Admitted, Pending};
use sluice_crds::{Decision, GatedSourceStatus};

use super::conditions::{self, Scene};
use super::considered::{Considered, Fate, Step};
use super::objects::Objects;
use super::{Given, Report, admission, choice, deletion, identity, named, obstacle, suspended};
use crate::revision::short;
use crate::time::stamp::{time, whole_second};
use crate::verdict::condition::{self, READY, Wanted};
use crate::verdict::question::Question;
use crate::verdict::status::requested_at;

/// How soon something that waits is looked at again at the latest, so that it is told that it waits.
const AGAIN: SignedDuration = SignedDuration::from_mins(30);
/// How soon a fetch that failed is tried again.
const RETRY: SignedDuration = SignedDuration::from_secs(10);

/// What the status has to be, and what is to be done. `told` is the decision of
/// [`Considered::decision`] as it was recorded: a yes that could not be has become a no.
pub fn report(given: &Given<'_>, considered: &Considered, told: Option<&Decision>) -> Report {
    let before = given.object.status.clone().unwrap_or_default();
    if considered.step == Step::Going {
        return going(given, before);
    }
    let mut status = begin(given, &before, considered, told);
    let fate = considered.fate(told);
    if let Fate::Out(admitted) = fate {
        admission::release(&mut status, admitted);
    }
    if considered.is_at_work() {
        identity::learn(given, &mut status);
    }
    let (objects, acts) = Objects::look(given, considered, &status, told);
    status.pending = match &considered.step {
        Step::Refused(_) | Step::Going => before.pending.clone(),
        // What was asked for goes on waiting, although nobody asks the gates about it.
        Step::Paused if given.object.spec.revision.is_some() && before.pending.is_some() => {
            before.pending.clone()
        }
        _ => pending(given, &before, &status, fate, &objects),
    };
    name_in_short(&mut status);
    let scene = Scene {
        given,
        considered,
        fate,
        told,
        objects: &objects,
        refused: obstacle::still(&before, &acts),
    };
    let wanted = conditions::all(&scene, &status);
    let generation = given.object.metadata.generation;
    let now = whole_second(given.now.at);
    status.conditions = condition::settle(wanted, &before.conditions, generation, now);
    Report {
        changed: status != before,
        wake: wake(&scene, &status),
        status,
        acts,
    }
}

/// Of one that is going only what keeps it is told.
fn going(given: &Given<'_>, before: GatedSourceStatus) -> Report {
    let told = deletion::obstacle(given).and_then(|(reason, message)| {
        let ready = Wanted::new(READY, false, reason, message);
        obstacle::told(given.object, vec![ready], given.now.at)
    });
    Report {
        changed: told.is_some(),
        status: told.unwrap_or(before),
        acts: deletion::going(given),
        wake: None,
    }
}

/// The status as far as it is known before anything else: without pending and conditions.
fn begin(
    given: &Given<'_>,
    before: &GatedSourceStatus,
    considered: &Considered,
    told: Option<&Decision>,
) -> GatedSourceStatus {
    let last = before.last_decision.as_ref();
    let request = requested_at(&given.object.metadata);
    // Anybody who asks for a look is told how it stands, also what was only measured again.
    let is_asked = request.is_some() && request != before.last_handled_reconcile_at;
    let is_known = |told: &Decision| {
        let revision = told.subject.revision.as_deref();
        let revision = revision.and_then(|text| named::asked(text, &considered.candidates));
        let question = Question::new(given.now, revision.as_ref());
        let same = |last| given.gates.tells_the_same(last, told, question);
        !is_asked && last.is_some_and(same)
    };
    let news = told.filter(|told| !is_known(told));
    GatedSourceStatus {
        observed_generation: given.object.metadata.generation,
        last_handled_reconcile_at: request.or_else(|| before.last_handled_reconcile_at.clone()),
        pending: None,
        candidates: considered.candidates.clone(),
        admitted: considered.admitted.clone(),
        last_decision: news.or(last).cloned(),
        conditions: Vec::new(),
    }
}

/// What waits, as the status shows it: what is asked for, or the newest.
fn pending(
    given: &Given<'_>,
    before: &GatedSourceStatus,
    status: &GatedSourceStatus,
    fate: Fate<'_>,
    objects: &Objects,
) -> Option<Pending> {
    let asked = given.object.spec.revision.as_ref();
    // None of these is a candidate, which would know since when it waits.
    let lost = lost_wish(given, status, objects).map(|(admitted, _)| &admitted.revision);
    let named = match fate {
        Fate::NotHeld(_) => asked.or(lost),
        Fate::BaselineHeld(admitted) => Some(&admitted.revision),
        Fate::None | Fate::Out(_) | Fate::Turn(..) | Fate::Held(_) => lost,
    };
    if let Some(named) = named {
        let known = before.pending.as_ref().filter(|it| it.revision == *named);
        return Some(Pending {
            revision: named.clone(),
            short: None,
            since: known.map_or_else(|| time(given.now.at), |it| it.since.clone()),
            admit_at: None,
        });
    }
    let (wanted, admit_at) = match fate {
        Fate::Turn(choice, at) => (Some(&choice.candidate), Some(time(at))),
        Fate::Held(choice) => (Some(&choice.candidate), None),
        Fate::None | Fate::Out(_) | Fate::NotHeld(_) | Fate::BaselineHeld(_) => (None, None),
    };
    let newest = status.candidates.last();
    let waits = wanted.filter(|_| asked.is_some()).or(newest)?;
    Some(Pending {
        revision: waits.revision.clone(),
        short: None,
        since: waits.since.clone(),
        admit_at,
    })
}

/// What is out is what `spec.revision` asks for, and cannot be fetched: why.
pub(super) fn lost_wish<'s>(
    given: &Given<'_>,
    status: &'s GatedSourceStatus,
    objects: &'s Objects,
) -> Option<(&'s Admitted, &'s str)> {
    let asked = given.object.spec.revision.as_deref()?;
    let admitted = status.admitted.as_ref()?;
    let why = objects.unfetched()?;
    choice::is_out_as_asked(given, Some(admitted), asked).then_some((admitted, why))
}

/// Notes how tables call what is out and what waits.
fn name_in_short(status: &mut GatedSourceStatus) {
    if let Some(admitted) = &mut status.admitted {
        admitted.short = Some(short(&admitted.revision));
    }
    if let Some(pending) = &mut status.pending {
        pending.short = Some(short(&pending.revision));
    }
}

/// When to look again.
fn wake(scene: &Scene<'_>, status: &GatedSourceStatus) -> Option<Timestamp> {
    let now = scene.given.now.at;
    let waits = scene.objects.waits(status.pending.as_ref());
    let admit_at = match scene.fate {
        // What is newer than what has just gone out has not been asked for yet.
        Fate::Out(_) if waits => return Some(now),
        Fate::Turn(_, at) => Some(at),
        _ => None,
    };
    let later = |after: SignedDuration| now.saturating_add(after).ok();
    let told = scene.told.and_then(|told| told.next.as_ref());
    let again = waits.then(|| later(AGAIN)).flatten();
    let retry = scene.objects.retry().then(|| later(RETRY)).flatten();
    let told = told.map(|at| at.0);
    let instants = [
        scene.considered.next(scene.given),
        suspended::until_letting_go(scene.given),
        told,
        admit_at,
        again,
        retry,
    ];
    let instants = instants.into_iter().flatten();
    instants.filter(|at| *at > now).min()
}
