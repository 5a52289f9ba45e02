//! Step 3: what the gates are asked, and what they say.

use jiff::Timestamp;
use sluice_crds::Decision;
use sluice_crds::gated_source::{Admitted, Candidate, Strategy};

use super::baseline::{self, Baseline, adopted};
use super::candidates::{Candidates, to_admit};
use super::deletion::{Former, is_deleting};
use super::demand::{Demand, demand};
use super::sources::Seen;
use super::suspended::Sources;
use super::users::Users;
use super::{Consumer, Given, Times, check, subject};
use crate::delivery::choice::{Change, Choice, Gates};
use crate::delivery::spread::Spread;
use crate::text::refusal::Refusals;

/// What the gates are asked in a look, and what they say. [`report`](super::report) continues from here.
pub struct Considered {
    pub(super) seen: Seen,
    pub(super) gates: Gates,
    pub(super) users: Users,
    pub(super) former: Former,
    /// What is out and what could go out, before anything is admitted in this look.
    pub(super) candidates: Candidates,
    pub(super) step: Step,
}

/// What there is to do in a look.
pub(super) enum Step {
    /// The GatedSource is being deleted.
    Deleting,
    /// The spec is refused.
    Refused(Refusals),
    /// `spec.suspend`.
    Paused,
    /// There is nothing to ask for.
    Nothing,
    /// What `spec.revision` asks for cannot be fetched: why.
    Unobtainable(String),
    /// The spec says that this runs already.
    Baseline(Box<Baseline>),
    /// This would go out.
    Ask(Box<Proposal>),
    /// The strategy `suspend`: whether anything may go out, and until when that holds.
    Suspend(Box<Decision>, Option<Timestamp>),
}

/// A change that would go out.
pub(super) struct Proposal {
    /// What the gates say of it.
    pub(super) choice: Choice<Candidate>,
    /// What the status keeps of it when it goes out, or why it cannot go out.
    pub(super) admitted: Result<Admitted, String>,
    /// When it goes out if the gates still admit it then. None: now.
    pub(super) turn: Option<Timestamp>,
}

/// What happens to what would go out.
#[derive(Clone, Copy)]
pub(super) enum Outcome<'c> {
    /// Nothing would go out, or none of it is asked for now.
    Nothing,
    /// It goes out.
    Out(&'c Admitted),
    /// It waits for its turn.
    Turn(&'c Candidate, Timestamp),
    /// The gates hold it back.
    HeldBack(&'c Candidate),
    /// The gates of policies hold back what the spec says that it runs already.
    BaselineHeldBack(&'c Admitted),
    /// It cannot be fetched: why.
    Unobtainable(&'c str),
}

/// What has to be asked of the gates, and what they say.
pub fn consider(given: Given) -> Considered {
    let Given {
        object,
        sources,
        strays,
        dropped,
        consumers,
        carried,
        gates,
        store,
        now,
    } = given;
    let subject = subject(&object, None);
    let seen = Seen::new(object, sources, &consumers, store, now);
    let gates = Gates {
        gathered: gates,
        subject,
        now,
    };
    let (candidates, step) = match times(&seen, &gates) {
        Ok(times) => ask_for_what_is_new(&seen, &gates, &consumers, times),
        Err(step) => (stand_still(&seen, &step), step),
    };
    Considered {
        users: Users::new(&seen, &consumers, &carried),
        former: Former::new(&seen.object, &strays, &dropped, &gates),
        seen,
        gates,
        candidates,
        step,
    }
}

impl Considered {
    /// What has to be recorded before anything is done. [`report`](super::report) takes it as it was
    /// recorded.
    pub fn decision(&self) -> Option<&Decision> {
        match &self.step {
            Step::Baseline(baseline) => Some(&baseline.decision),
            Step::Ask(proposal) => Some(&proposal.choice.decision),
            Step::Suspend(decision, _) => Some(decision),
            Step::Refused(_)
            | Step::Deleting
            | Step::Paused
            | Step::Nothing
            | Step::Unobtainable(_) => None,
        }
    }

    /// Whether something is done by that decision now, if it is recorded. Otherwise it was acted on
    /// before, or holds something back, or takes effect later.
    pub fn takes_effect(&self) -> bool {
        match &self.step {
            Step::Suspend(decision, _) => {
                decision.allowed && !Sources::new(&self.seen, true).acts.is_empty()
            }
            step => matches!(step.outcome(self.decision()), Outcome::Out(_)),
        }
    }
}

impl Step {
    /// What happens to what would go out, by the decision as it was recorded.
    pub(super) fn outcome(&self, recorded: Option<&Decision>) -> Outcome<'_> {
        let allowed = recorded.is_some_and(|recorded| recorded.allowed);
        match self {
            Self::Baseline(it) if allowed => Outcome::Out(&it.admitted),
            Self::Baseline(it) => Outcome::BaselineHeldBack(&it.admitted),
            Self::Ask(it) if !allowed => Outcome::HeldBack(&it.choice.change.what),
            Self::Ask(it) => match (it.turn, &it.admitted) {
                (Some(at), _) => Outcome::Turn(&it.choice.change.what, at),
                (None, Ok(admitted)) => Outcome::Out(admitted),
                (None, Err(why)) => Outcome::Unobtainable(why),
            },
            Self::Unobtainable(why) => Outcome::Unobtainable(why),
            Self::Deleting
            | Self::Refused(_)
            | Self::Paused
            | Self::Nothing
            | Self::Suspend(..) => Outcome::Nothing,
        }
    }

    /// Until when nothing else may be admitted if no change is seen.
    pub(super) fn next(&self) -> Option<Timestamp> {
        match self {
            Self::Ask(proposal) => proposal.choice.next,
            Self::Baseline(baseline) => baseline.next,
            Self::Suspend(_, until) => *until,
            Self::Deleting
            | Self::Refused(_)
            | Self::Paused
            | Self::Nothing
            | Self::Unobtainable(_) => None,
        }
    }

    /// Whether anything may be done to other objects.
    pub(super) fn may_act(&self) -> bool {
        !matches!(self, Self::Deleting | Self::Refused(_) | Self::Paused)
    }
}

/// How new revisions are asked for. As an error: what to do if nothing new is looked for.
fn times(seen: &Seen, gates: &Gates) -> Result<Times, Step> {
    if is_deleting(&seen.object) {
        return Err(Step::Deleting);
    }
    let times = check(&seen.object).map_err(Step::Refused)?;
    if seen.object.spec.suspend {
        return Err(Step::Paused);
    }
    match seen.strategy() {
        // No revision is known: the gates are asked about the next one, which may be any.
        Strategy::Suspend => {
            let decision = Box::new(gates.decide(None, None));
            Err(Step::Suspend(decision, gates.until()))
        }
        Strategy::Pin | Strategy::Artifact => Ok(times),
    }
}

/// Nothing is asked. While `spec.suspend` holds, the candidates are still kept up to date, so that people
/// see what waits.
fn stand_still(seen: &Seen, step: &Step) -> Candidates {
    let before = seen.object.status.clone().unwrap_or_default();
    let all = match (step, seen.strategy()) {
        (Step::Paused, Strategy::Pin | Strategy::Artifact) => {
            let out = before.admitted.clone().or_else(|| adopted(seen));
            Candidates::renew(seen, &before.candidates, out).all
        }
        _ => before.candidates,
    };
    Candidates {
        admitted: before.admitted,
        all,
        trouble: None,
    }
}

fn ask_for_what_is_new(
    seen: &Seen,
    gates: &Gates,
    consumers: &[Consumer],
    times: Times,
) -> (Candidates, Step) {
    let before = seen.object.status.clone().unwrap_or_default();
    let admitted = before.admitted.or_else(|| adopted(seen));
    let mut candidates = Candidates::renew(seen, &before.candidates, admitted);
    // Nothing goes out if no child could serve it.
    if seen.are_taken() {
        return (candidates, Step::Nothing);
    }
    let runs = match candidates.admitted {
        Some(_) => Ok(None),
        None => baseline::runs_already(seen, consumers, &candidates.all),
    };
    let step = match runs {
        Ok(None) => ask(seen, gates, &mut candidates, times),
        Ok(Some(runs)) => {
            let baseline = baseline::decide(seen, gates, runs, &candidates.all);
            Step::Baseline(Box::new(baseline))
        }
        Err(trouble) => {
            candidates.trouble = Some(trouble);
            Step::Nothing
        }
    };
    (candidates, step)
}

/// Asks the gates for what is in demand, and notes what they hold back.
fn ask(seen: &Seen, gates: &Gates, candidates: &mut Candidates, times: Times) -> Step {
    let changes = match demand(seen, candidates.admitted.as_ref(), &candidates.all) {
        Demand::Nothing => return Step::Nothing,
        Demand::Unobtainable(why) => return Step::Unobtainable(why),
        Demand::Any(changes) => changes,
    };
    let Some(choice) = gates.choose(changes) else {
        return Step::Nothing;
    };
    for candidate in &mut candidates.all {
        let is_it = |it: &Change<Candidate>| it.what.parts == candidate.parts;
        candidate.held |= choice.held_back.iter().any(is_it);
    }
    let pending = seen.object.status.as_ref();
    let pending = pending.and_then(|status| status.pending.as_ref());
    let spread = Spread {
        over: times.spread,
        uid: seen.object.metadata.uid.as_deref().unwrap_or_default(),
        turn: pending.and_then(|it| Some(it.admit_at.as_ref()?.0)),
    };
    let candidate = &choice.change.what;
    let turn = || spread.turn(gates, &choice.change, candidate.held);
    Step::Ask(Box::new(Proposal {
        admitted: to_admit(seen, candidate),
        turn: choice.decision.allowed.then(turn).flatten(),
        choice,
    }))
}
