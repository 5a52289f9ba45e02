//! What is asked of the gates in a look, and what they say: all that a report knows of it.

use sluice_crds::Decision;
use sluice_crds::gated_source::{Admitted, Candidate, Part, Strategy};

use super::baseline::{Runs, adopted, baseline};
use super::candidates::{hold, renew};
use super::choice::{self, Choice, Wish};
use super::observed::{Trouble, observe};
use super::{Given, Times, check, child, deletion, suspended};
use crate::text::refusal::Refusals;

/// What is asked of the gates in a look, and what they say.
#[derive(Clone, Debug, PartialEq)]
pub struct Considered {
    pub(super) step: Step,
    /// What is out, as far as it is known.
    pub(super) admitted: Option<Admitted>,
    /// What could go out.
    pub(super) candidates: Vec<Candidate>,
    /// Why nothing new is seen.
    pub(super) trouble: Option<Trouble>,
}

/// What there is to do in a look.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// It is going.
    Going,
    /// The spec is refused.
    Refused(Refusals),
    /// `spec.suspend`.
    Paused,
    /// There is nothing to ask for.
    Rest,
    /// `spec.revision` asks for what cannot be had: why.
    NotHeld(String),
    /// The spec says that it runs already.
    Baseline(Box<Runs>),
    /// This would go out.
    Ask(Box<Choice>),
    /// The strategy `suspend`: whether anything may go out.
    Hold(Box<Decision>),
}

/// What becomes of what would go out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Fate<'c> {
    /// There is nothing that would, or none of it is asked for now.
    None,
    /// It goes out.
    Out(&'c Admitted),
    /// It waits for its turn.
    Turn(&'c Choice, jiff::Timestamp),
    /// The gates hold it back.
    Held(&'c Choice),
    /// The gates of policies hold back what the spec says that it runs already.
    BaselineHeld(&'c Admitted),
    /// It cannot be had: why.
    NotHeld(&'c str),
}

impl Considered {
    /// What is to be told before anything is done, and given back to [`report`](super::report) as it
    /// was recorded.
    pub fn decision(&self) -> Option<&Decision> {
        match &self.step {
            Step::Baseline(runs) => Some(&runs.decision),
            Step::Ask(choice) => Some(&choice.decision),
            Step::Hold(decision) => Some(decision),
            Step::Refused(_) | Step::Going | Step::Paused | Step::Rest | Step::NotHeld(_) => None,
        }
    }

    /// Whether something is done by that decision now, if it is recorded. Else it was acted on
    /// before, or holds something back, or comes into effect later.
    pub fn takes_effect(&self, given: &Given<'_>) -> bool {
        match &self.step {
            Step::Hold(decision) => decision.allowed && suspended::resumes(given),
            _ => matches!(self.fate(self.decision()), Fate::Out(_)),
        }
    }

    /// What becomes of what would go out, by the decision as it was recorded.
    pub(super) fn fate(&self, told: Option<&Decision>) -> Fate<'_> {
        let allowed = told.is_some_and(|told| told.allowed);
        match &self.step {
            Step::Baseline(runs) if allowed => Fate::Out(&runs.admitted),
            Step::Baseline(runs) => Fate::BaselineHeld(&runs.admitted),
            Step::Ask(choice) if !allowed => Fate::Held(choice),
            Step::Ask(choice) => match (choice.admit_at, &choice.out) {
                (Some(at), _) => Fate::Turn(choice, at),
                (None, Ok(admitted)) => Fate::Out(admitted),
                (None, Err(why)) => Fate::NotHeld(why),
            },
            Step::NotHeld(why) => Fate::NotHeld(why),
            Step::Going | Step::Refused(_) | Step::Paused | Step::Rest | Step::Hold(_) => {
                Fate::None
            }
        }
    }

    /// Until when nothing else may be admitted while nothing is seen to change.
    pub(super) fn next(&self, given: &Given<'_>) -> Option<jiff::Timestamp> {
        match &self.step {
            Step::Ask(choice) => choice.next,
            Step::Baseline(runs) => runs.next,
            Step::Hold(_) => suspended::until(given),
            _ => None,
        }
    }

    /// Whether anything may be done to other objects.
    pub(super) fn is_at_work(&self) -> bool {
        !matches!(self.step, Step::Going | Step::Refused(_) | Step::Paused)
    }
}

/// What is to be asked of the gates, and what they say.
pub fn consider(given: &Given<'_>) -> Considered {
    match still(given) {
        Ok(times) => ask_for_what_is_new(given, times),
        Err(step) => stand_still(given, step),
    }
}

/// Nothing is asked. While `spec.suspend` holds, what the sources show is noted all the same, so that it
/// can be seen what waits.
fn stand_still(given: &Given<'_>, step: Step) -> Considered {
    let before = given.object.status.clone().unwrap_or_default();
    let makes_children = given.object.spec.strategy != Strategy::Suspend;
    let candidates = match step == Step::Paused && makes_children {
        true => {
            let (admitted, now) = (before.admitted.clone(), given.now.at);
            let out = admitted.or_else(|| adopted(given));
            let (shown, _) = shown(given);
            renew(&before.candidates, shown, out.as_ref(), &given.sources, now)
        }
        false => before.candidates,
    };
    Considered {
        step,
        admitted: before.admitted,
        candidates,
        trouble: None,
    }
}

/// Where nothing new is looked for: the step that it is instead.
fn still(given: &Given<'_>) -> Result<Times, Step> {
    if deletion::is_going(given) {
        return Err(Step::Going);
    }
    let times = check(given.object).map_err(Step::Refused)?;
    if given.object.spec.suspend {
        return Err(Step::Paused);
    }
    match given.object.spec.strategy {
        Strategy::Suspend => Err(Step::Hold(Box::new(suspended::decide(given)))),
        Strategy::Pin | Strategy::Artifact => Ok(times),
    }
}

fn ask_for_what_is_new(given: &Given<'_>, times: Times) -> Considered {
    let before = given.object.status.clone().unwrap_or_default();
    let admitted = before.admitted.or_else(|| adopted(given));
    let (shown, mut trouble) = shown(given);
    let mut candidates = renew(
        &before.candidates,
        shown,
        admitted.as_ref(),
        &given.sources,
        given.now.at,
    );
    // Nothing goes out where nobody would serve it.
    let is_taken = |source| child::is_taken(given, source);
    let step = match baseline(given, admitted.as_ref(), &candidates) {
        _ if given.sources.iter().any(is_taken) => Step::Rest,
        Err(problem) => {
            trouble = Some(problem);
            Step::Rest
        }
        Ok(Some(runs)) => Step::Baseline(Box::new(runs)),
        Ok(None) => ask(given, admitted.as_ref(), &candidates, times),
    };
    if let Step::Ask(choice) = &step {
        hold(&mut candidates, &choice.held);
    }
    Considered {
        step,
        admitted,
        candidates,
        trouble,
    }
}

fn ask(
    given: &Given<'_>,
    admitted: Option<&Admitted>,
    candidates: &[Candidate],
    times: Times,
) -> Step {
    match choice::wish(given, admitted, candidates) {
        Wish::Nothing => Step::Rest,
        Wish::NotHeld(why) => Step::NotHeld(why),
        Wish::Any(held) => match choice::choose(given, admitted, &held, candidates, times) {
            Some(choice) => Step::Ask(Box::new(choice)),
            None => Step::Rest,
        },
    }
}

/// What the sources bring together. Of several all have to be believed.
fn shown(given: &Given<'_>) -> (Option<Vec<Part>>, Option<Trouble>) {
    let strategy = given.object.spec.strategy;
    let shown = given.sources.iter().map(|source| observe(strategy, source));
    match shown.collect() {
        Ok(parts) => (Some(parts), None),
        Err(trouble) => (None, Some(trouble)),
    }
}
