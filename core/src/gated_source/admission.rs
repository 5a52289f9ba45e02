//! A look, from what is asked of the gates to what is to be written.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use sluice_crds::gated_source::{
    Admitted, AdmittedPart, Candidate, Origin, Part, Pending, Strategy,
};
use sluice_crds::{Decision, GatedSourceStatus};

use super::baseline::{adopted, baseline};
use super::candidates::{renew, summary};
use super::child::{self, is_ours};
use super::choice::{self, Choice, Wish};
use super::conditions::{self, Scene};
use super::observed::{Trouble, observe};
use super::{
    Act, Found, Given, Holding, Report, Source, Times, check, content, deletion, identity,
    suspended,
};
use super::{reads_the_same, users};
use crate::condition;
use crate::refusal::Refusals;
use crate::report::{requested_at, time, whole_second};
use crate::revision::Revision;

/// How soon something that waits is looked at again at the latest, so that it is told that it waits.
const AGAIN: SignedDuration = SignedDuration::from_mins(30);
/// How soon a fetch that failed is tried again.
const RETRY: SignedDuration = SignedDuration::from_secs(10);

/// What is asked of the gates in a look, and what they say.
#[derive(Clone, Debug, PartialEq)]
pub struct Considered {
    step: Step,
    admitted: Option<Admitted>,
    candidates: Vec<Candidate>,
    /// Why nothing new is seen.
    pub(super) trouble: Option<Trouble>,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    /// The spec is refused.
    Refused(Refusals),
    /// It is going.
    Going,
    /// `spec.suspend`.
    Paused,
    /// There is nothing to ask for.
    Rest,
    /// `spec.revision` asks for what cannot be had.
    NotHeld(String),
    /// It runs already.
    Baseline(Box<(Admitted, Decision)>),
    /// This would go out.
    Ask(Box<Choice>),
    /// The strategy `suspend`: whether anything may go out.
    Hold(Box<Decision>),
}

impl Considered {
    /// What is to be told before anything is done, and given back to [`report`] as it was recorded.
    pub fn decision(&self) -> Option<&Decision> {
        match &self.step {
            Step::Baseline(it) => Some(&it.1),
            Step::Ask(choice) => Some(&choice.decision),
            Step::Hold(decision) => Some(decision),
            Step::Refused(_) | Step::Going | Step::Paused | Step::Rest | Step::NotHeld(_) => None,
        }
    }

    /// Whether something is done by that decision now, if it is recorded. Else it was acted on
    /// before, or holds something back, or comes into effect later.
    pub fn takes_effect(&self, given: &Given<'_>) -> bool {
        match &self.step {
            Step::Baseline(_) => true,
            Step::Ask(choice) => choice.decision.allowed && choice.admit_at.is_none(),
            Step::Hold(decision) => decision.allowed && suspended::resumes(given),
            Step::Refused(_) | Step::Going | Step::Paused | Step::Rest | Step::NotHeld(_) => false,
        }
    }
}

/// What is to be asked of the gates, and what they say.
pub fn consider(given: &Given<'_>) -> Considered {
    let before = given.object.status.clone().unwrap_or_default();
    let still = |step| Considered {
        step,
        admitted: before.admitted.clone(),
        candidates: before.candidates.clone(),
        trouble: None,
    };
    if deletion::is_going(given) {
        return still(Step::Going);
    }
    let times = match check(given.object) {
        Ok(times) => times,
        Err(refusals) => return still(Step::Refused(refusals)),
    };
    if given.object.spec.suspend {
        return still(Step::Paused);
    }
    if given.object.spec.strategy == Strategy::Suspend {
        return still(Step::Hold(Box::new(suspended::decide(given))));
    }
    let admitted = before.admitted.clone().or_else(|| adopted(given));
    let (shown, mut trouble) = shown(given);
    let now = given.now.at;
    let candidates = renew(
        &before.candidates,
        shown,
        admitted.as_ref(),
        &given.sources,
        now,
    );
    let step = match baseline(given, admitted.as_ref()) {
        Err(problem) => {
            trouble = Some(problem);
            Step::Rest
        }
        Ok(Some(admitted)) => Step::Baseline(Box::new(admitted)),
        Ok(None) => ask(given, &candidates, times),
    };
    Considered {
        step,
        admitted,
        candidates,
        trouble,
    }
}

fn ask(given: &Given<'_>, candidates: &[Candidate], times: Times) -> Step {
    match choice::wish(given, candidates) {
        Wish::Nothing => Step::Rest,
        Wish::NotHeld(why) => Step::NotHeld(why),
        Wish::Any(held) => match choice::choose(given, &held, times) {
            Some(choice) => Step::Ask(Box::new(choice)),
            None => Step::Rest,
        },
    }
}

/// What the sources bring together. Of several all have to be believed.
fn shown(given: &Given<'_>) -> (Option<Vec<Part>>, Option<Trouble>) {
    match (given.sources.iter())
        .map(|source| observe(given.object.spec.strategy, source))
        .collect()
    {
        Ok(parts) => (Some(parts), None),
        Err(trouble) => (None, Some(trouble)),
    }
}

/// What the status has to be, and what is to be done. `told` is the decision of
/// [`Considered::decision`] as it was recorded: a yes that could not be has become a no.
pub fn report(given: &Given<'_>, considered: Considered, told: Option<&Decision>) -> Report {
    let before = given.object.status.clone().unwrap_or_default();
    let mut status = GatedSourceStatus {
        observed_generation: given.object.metadata.generation,
        last_handled_reconcile_at: requested_at(&given.object.metadata)
            .or_else(|| before.last_handled_reconcile_at.clone()),
        pending: None,
        candidates: considered.candidates.clone(),
        admitted: considered.admitted.clone(),
        last_decision: before.last_decision.clone(),
        conditions: Vec::new(),
    };
    if let Some(told) = told
        && !(before.last_decision.as_ref()).is_some_and(|last| reads_the_same(last, told))
    {
        status.last_decision = Some(told.clone());
    }
    let mut scene = Scene::new(considered.trouble);
    let mut acts = Vec::new();
    match considered.step {
        Step::Going => {
            acts = deletion::going(given);
            return finish(&before, before.clone(), acts, None);
        }
        Step::Refused(refusals) => scene.refused = Some(refusals),
        Step::Paused => {
            scene.paused = true;
            status.pending = before.pending.clone();
        }
        Step::Rest => {}
        Step::NotHeld(why) => scene.not_held = Some(why),
        Step::Baseline(it) => {
            if told.is_some_and(|told| told.allowed) {
                status.admitted = Some(it.0);
                settle_candidates(&mut status);
                scene.released = true;
            }
        }
        Step::Ask(choice) => take(given, &mut status, &mut scene, *choice, told),
        Step::Hold(_) => {
            scene.next = suspended::until(given);
            scene.hold(given, told, &mut acts);
        }
    }
    if scene.is_at_work() && given.object.spec.strategy != Strategy::Suspend {
        acts.extend(deletion::finalizer(given));
        identity::learn(given, &mut status);
        look_at_children(given, &status, &mut scene, &mut acts);
        acts.extend(deletion::strays(given));
        scene.pending(given, &mut status, &before);
    } else if scene.is_at_work() {
        acts.extend(deletion::finalizer(given));
    }
    scene.bypassing = users::bypassing(given);
    scene.self_gated = users::self_gated(given);
    let wake = scene.wake(given, told);
    let wanted = conditions::all(given, &status, &scene, told);
    let generation = given.object.metadata.generation;
    let now = whole_second(given.now.at);
    status.conditions = condition::settle(wanted, &before.conditions, generation, now);
    finish(&before, status, acts, wake)
}

fn finish(
    before: &GatedSourceStatus,
    status: GatedSourceStatus,
    acts: Vec<Act>,
    wake: Option<Timestamp>,
) -> Report {
    Report {
        changed: status != *before,
        status,
        acts,
        wake,
    }
}

/// Admits what was chosen, if it may go out now.
fn take(
    given: &Given<'_>,
    status: &mut GatedSourceStatus,
    scene: &mut Scene,
    choice: Choice,
    told: Option<&Decision>,
) {
    scene.next = choice.next;
    let allowed = told.is_some_and(|told| told.allowed);
    if !allowed {
        scene.wanted = Some(choice.candidate);
        return;
    }
    if choice.admit_at.is_some() {
        scene.admit_at = choice.admit_at;
        scene.wanted = Some(choice.candidate);
        return;
    }
    let parts = choice.candidate.parts.iter().zip(&given.sources);
    let parts = parts.map(|(part, source)| {
        let revision = Revision::parse(&part.revision).ok()?;
        Some(AdmittedPart {
            kind: part.kind,
            name: part.name.clone(),
            revision: part.revision.clone(),
            digest: part.digest.clone(),
            spec: pinned(given, source, &revision)?,
        })
    });
    match parts.collect::<Option<Vec<_>>>() {
        Some(parts) => {
            status.admitted = Some(admit(given, Origin::Gates, parts));
            settle_candidates(status);
            scene.released = true;
        }
        // A source that has just gone, or shows what its kind cannot be pinned to.
        None => {
            scene.not_held = Some(format!(
                "{} cannot be pinned as its source is now",
                summary(&choice.candidate.parts)
            ));
            scene.wanted = Some(choice.candidate);
        }
    }
}

/// What goes out now.
pub(super) fn admit(given: &Given<'_>, origin: Origin, parts: Vec<AdmittedPart>) -> Admitted {
    let revisions: Vec<&str> = parts.iter().map(|part| part.revision.as_str()).collect();
    Admitted {
        revision: revisions.join(", "),
        at: time(given.now.at),
        origin,
        parts,
    }
}

pub(super) fn pinned(
    given: &Given<'_>,
    source: &Source<'_>,
    revision: &Revision,
) -> Option<serde_json::Map<String, serde_json::Value>> {
    let object = source.upstream.object()?;
    content::pinned(
        given.object.spec.strategy,
        source.wanted.kind,
        &object.spec,
        revision,
    )
}

/// What is out, and whatever was shown before it, is no longer to go out.
fn settle_candidates(status: &mut GatedSourceStatus) {
    let Some(admitted) = &status.admitted else {
        return;
    };
    let out = |candidate: &Candidate| super::identity::is_admitted(&candidate.parts, admitted);
    if let Some(place) = status.candidates.iter().position(out) {
        status.candidates.drain(..=place);
    }
}

/// Looks at the child of each source of which something has gone out.
fn look_at_children(
    given: &Given<'_>,
    status: &GatedSourceStatus,
    scene: &mut Scene,
    acts: &mut Vec<Act>,
) {
    for source in &given.sources {
        let admitted = status.admitted.iter().flat_map(|admitted| &admitted.parts);
        let mut admitted = admitted
            .filter(|part| (part.kind, &part.name) == (source.wanted.kind, &source.wanted.name));
        let admitted = admitted.next();
        if given.object.spec.strategy == Strategy::Artifact && may_store(given, source) {
            scene.retry |= store(given, source, admitted, &status.candidates, acts);
        }
        match admitted {
            Some(admitted) => scene.take_child(child::look(given, source, admitted), acts),
            None => {
                if let Found::Here(child) = &source.child
                    && !is_ours(given, child)
                {
                    scene.taken(given, source);
                }
            }
        }
    }
}

/// Whether the copies under a child's name are this GatedSource's: not where the child is somebody
/// else's, and not where nobody can say.
fn may_store(given: &Given<'_>, source: &Source<'_>) -> bool {
    match &source.child {
        Found::Here(child) => is_ours(given, child),
        Found::Missing | Found::NotInstalled => true,
        Found::Unreadable(_) => false,
    }
}

/// Has the store fetch what its source shows now, if that is out or could go out, and keep nothing
/// else. Says whether a fetch has failed.
fn store(
    given: &Given<'_>,
    source: &Source<'_>,
    admitted: Option<&AdmittedPart>,
    candidates: &[Candidate],
    acts: &mut Vec<Act>,
) -> bool {
    let wanted = &source.wanted;
    let parts = candidates.iter().flat_map(|candidate| &candidate.parts);
    let parts = parts.filter(|part| (part.kind, &part.name) == (wanted.kind, &wanted.name));
    let digests = parts.filter_map(|part| part.digest.clone());
    let out = admitted.and_then(|admitted| admitted.digest.clone());
    // Whatever else is lost: what the child still points at is being used.
    let served = source.child.object();
    let served = served.and_then(|child| child.status.artifact.as_ref()?.digest.clone());
    let digests = out.into_iter().chain(served).chain(digests);
    let digests: Vec<String> = digests.collect::<BTreeSet<_>>().into_iter().collect();
    let shown = source
        .upstream
        .object()
        .and_then(|it| it.status.artifact.as_ref());
    let shown = shown.and_then(|artifact| Some((artifact.digest.clone()?, artifact.url.clone())));
    let mut failed = false;
    if let Some((digest, url)) = shown.filter(|(digest, _)| digests.contains(digest)) {
        let holding = given.holding(&wanted.target, Some(&digest));
        failed = matches!(holding, Holding::Failed(_));
        if failed || holding == Holding::Absent {
            let child = wanted.target.clone();
            acts.push(Act::Fetch { child, url, digest });
        }
    }
    let child = wanted.target.clone();
    acts.push(Act::Retain { child, digests });
    failed
}

impl Scene {
    /// What waits, as the status shows it.
    fn pending(
        &mut self,
        given: &Given<'_>,
        status: &mut GatedSourceStatus,
        before: &GatedSourceStatus,
    ) {
        let asked = given.object.spec.revision.as_ref();
        let newest = status.candidates.last();
        let waits = self.wanted.as_ref().filter(|_| asked.is_some()).or(newest);
        let (revision, since) = match (waits, asked.filter(|_| self.not_held.is_some())) {
            (_, Some(asked)) => {
                let known = before.pending.as_ref().filter(|it| it.revision == *asked);
                let since = known.map_or_else(|| time(given.now.at), |it| it.since.clone());
                (asked.clone(), since)
            }
            (Some(candidate), None) => (candidate.revision.clone(), candidate.since.clone()),
            (None, None) => return,
        };
        status.pending = Some(Pending {
            revision,
            since,
            admit_at: self.admit_at.map(time),
        });
        self.waits = true;
    }

    /// When to look again.
    fn wake(&self, given: &Given<'_>, told: Option<&Decision>) -> Option<Timestamp> {
        let now = given.now.at;
        let later = |after: SignedDuration| now.saturating_add(after).ok();
        let told = told.and_then(|told| told.next.as_ref()).map(|at| at.0);
        let again = self.waits.then(|| later(AGAIN)).flatten();
        let retry = self.retry.then(|| later(RETRY)).flatten();
        let instants = [self.next, told, self.admit_at, again, retry];
        let later = instants.into_iter().flatten().filter(|at| *at > now).min();
        // What is newer than what has just gone out has not been asked for yet.
        if self.released && self.waits {
            Some(now)
        } else {
            later
        }
    }
}
