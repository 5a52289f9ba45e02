//! Whether gates are asked in a look, for which batch, and by which revision.
//!
//! Gates are asked at each look at which their answer counts: before anything begins, before a batch, and after
//! one, for the next. Of these answers the one counts that is given in the same look as the intent: a hook in
//! between may take an hour. Where the start itself makes pods of the new version, they are asked in the look that
//! writes its sizes.

use sluice_crds::{Decision, GateSet, Rollout, Subject};

use super::applied::AppliedAgain;
use super::chain::Chain;
use super::desk::Desk;
use super::given::Given;
use super::look::Gates;
use super::plan::Plan;
use super::state::State;
use super::step::Step;
use super::{KIND, app, check};
use crate::gate::set::Gathered;
use crate::text::refusal::Refusals;

/// The word for the first batch, as decisions have it.
const BEGINS: &str = "rollout";
/// The word for every other batch.
const ADVANCES: &str = "advance";

/// What a look has to know before it can be reported. [`report`](super::report()) continues from here.
#[derive(Clone, Debug)]
pub struct Considered {
    pub(super) checked: Result<Plan, Refusals>,
    /// What Flux writes again.
    pub(super) again: AppliedAgain,
    /// What the gates are asked. None: they are not.
    pub question: Option<Question>,
    /// Whether something goes out by the answer in this look, if it is a yes.
    pub takes_effect: bool,
}

/// What the gates are asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The batch. The first one is 0.
    pub batch: usize,
    /// Who asks, what for, and by which revision.
    pub subject: Subject,
    /// The gates that the spec names: those of the Rollout, and those of the batch. All of them have to pass,
    /// and so have those of policies.
    pub sets: Vec<GateSet>,
}

/// What was answered.
#[derive(Clone, Debug)]
pub enum Answer {
    /// They have not been asked: the batch waits.
    NotAsked,
    /// There are none, neither of the spec nor of policies: a plain rollout in batches.
    NoGates,
    /// They have been asked.
    Told(Box<Told>),
}

/// The answer of gates.
#[derive(Clone, Debug)]
pub struct Told {
    /// The gates.
    pub gates: Gathered,
    /// The decision. A yes that takes effect was recorded: one that could not be recorded has become a no.
    pub decision: Decision,
}

/// What has to be asked of the gates.
pub fn consider(given: &Given) -> Considered {
    let checked = check(&given.object);
    let Ok(plan) = &checked else {
        return Considered {
            checked,
            again: AppliedAgain::default(),
            question: None,
            takes_effect: false,
        };
    };
    let again = AppliedAgain::of(given, app::of_look(given));
    let desk = Desk {
        given,
        plan,
        again: &again,
    };
    let before = given.object.status.clone().unwrap_or_default();
    let chain = Chain::new(&desk, &before, Gates::Assumed);
    let question = chain.asks.and_then(|batch| question(&desk, batch));
    // What lets a run begin lets no pod out: its first batch is asked about again. At the start it is an intent that was
    // accepted long ago.
    let lets_out = chain.draft.intends && chain.state == State::BatchInRolling;
    let goes_out = lets_out || (chain.look.makes_pods && chain.step == Step::Wait);
    Considered {
        takes_effect: question.is_some() && goes_out,
        question,
        checked,
        again,
    }
}

fn question(desk: &Desk<'_>, batch: usize) -> Option<Question> {
    let object = desk.object();
    let run = object.status.as_ref().and_then(|it| it.run.as_ref());
    let target = desk.target();
    let revision = match run {
        Some(run) if !desk.is_modified(object.status.as_ref()?) => run.revision.clone(),
        Some(_) | None => app::revision(desk.given, target.as_ref().map(|(_, it)| it.object))?,
    };
    Some(about(object, desk.plan, batch, Some(revision)))
}

/// What the gates are asked about a batch of a Rollout. None: its spec is refused.
pub fn asks(object: &Rollout, batch: usize, revision: Option<String>) -> Option<Question> {
    let plan = check(object).ok()?;
    Some(about(object, &plan, batch, revision))
}

fn about(object: &Rollout, plan: &Plan, batch: usize, revision: Option<String>) -> Question {
    let own = plan.gates.iter();
    Question {
        batch,
        subject: subject(object, batch, plan.sizes.count(), revision),
        sets: own.chain(&plan.batch(batch).gates).cloned().collect(),
    }
}

/// Who asks about a batch, one of so many.
pub fn subject(
    object: &Rollout,
    batch: usize,
    batches: usize,
    revision: Option<String>,
) -> Subject {
    let action = if batch == 0 { BEGINS } else { ADVANCES };
    Subject {
        kind: KIND.to_owned(),
        namespace: object.metadata.namespace.clone().unwrap_or_default(),
        name: object.metadata.name.clone(),
        environment: None,
        action: action.to_owned(),
        step: Some(format!("{}/{batches}", batch + 1)),
        revision,
    }
}
