//! What a status says in conditions.

use sluice_crds::RolloutStatus;
use sluice_crds::rollout::Outcome;

use super::chain::Chain;
use super::desk::Desk;
use super::signals::Signal;
use super::state::State;
use super::step::Step;
use super::why::INVALID_SPEC;
use crate::verdict::condition::{READY, RECONCILING, STALLED, Wanted};

/// A batch waits for gates or people.
pub const BLOCKED: &str = "Blocked";

/// What a person does who wants to try again.
const AGAIN: &str = "to try again, annotate this Rollout with sluice.dev/retry";

/// All the conditions.
pub(super) fn all(desk: &Desk<'_>, chain: &Chain) -> Vec<Wanted> {
    if chain.look.gives_back {
        let message = "another run begins once the workloads of the last one are given back";
        return with_blocked(progressing("Progressing", message));
    }
    match chain.state {
        State::Succeeded => with_blocked(vec![succeeded(&chain.draft.status)]),
        State::Failed => with_blocked(failed(&chain.draft.status)),
        State::VerifyingSpec
        | State::Initializing
        | State::BatchInitializing
        | State::BatchInRolling
        | State::BatchVerifying
        | State::BatchFinalizing
        | State::BatchReady
        | State::Finalising
        | State::Failing
        | State::Abandoned
        | State::Deleting => under_way(desk, chain),
    }
}

fn succeeded(status: &RolloutStatus) -> Wanted {
    let message = status.history.first().map(|run| run.message.clone());
    let message = message.unwrap_or_else(|| "it is out".to_owned());
    Wanted::new(READY, true, "RolloutSucceeded", message)
}

fn failed(status: &RolloutStatus) -> Vec<Wanted> {
    let Some(Outcome { reason, message }) = &status.outcome else {
        return stalled("RolloutFailed", &format!("it has failed; {AGAIN}"));
    };
    // Trying the same again changes nothing of these.
    let is_final = [INVALID_SPEC, "Deleted"].contains(&reason.as_str());
    match is_final {
        true => stalled(reason, message),
        false => stalled(reason, &format!("{message}; {AGAIN}")),
    }
}

fn under_way(desk: &Desk<'_>, chain: &Chain) -> Vec<Wanted> {
    let held = chain.draft.status.held.as_ref();
    if let Some(held) = held.filter(|_| chain.step == Step::Hold) {
        return of_hold(chain, &held.reason, &held.message);
    }
    let why = chain.decides.and_then(|signal| chain.look.why_of(signal));
    let message = match why.filter(|_| !chain.draft.moved) {
        Some(why) => why.message.clone(),
        None => working(desk, chain),
    };
    with_blocked(progressing("Progressing", &message))
}

fn working(desk: &Desk<'_>, chain: &Chain) -> String {
    let state = chain.state.rolling().as_str();
    let batch = chain.state.batch();
    let Some((batch, index)) = batch.zip(chain.draft.status.current_batch) else {
        return state.to_owned();
    };
    let called = desk.called(usize::try_from(index).unwrap_or(0));
    format!("{state}: {called}, {}", batch.as_str())
}

fn of_hold(chain: &Chain, reason: &str, message: &str) -> Vec<Wanted> {
    match chain.decides {
        Some(Signal::Paused | Signal::Closed) => vec![
            Wanted::new(READY, true, reason, message),
            Wanted::new(BLOCKED, true, reason, message),
        ],
        Some(Signal::Contested) => with_blocked(stalled(reason, message)),
        Some(
            Signal::Stale
            | Signal::Deleted
            | Signal::Modified
            | Signal::Gone
            | Signal::Refused
            | Signal::Blind
            | Signal::Waiting
            | Signal::Overdue
            | Signal::Done,
        )
        | None => with_blocked(progressing(reason, message)),
    }
}

fn with_blocked(mut wanted: Vec<Wanted>) -> Vec<Wanted> {
    let message = "nothing waits for gates or people";
    wanted.push(Wanted::new(BLOCKED, false, "NothingBlocked", message));
    wanted
}

pub(super) fn stalled(reason: &str, message: &str) -> Vec<Wanted> {
    vec![
        Wanted::new(READY, false, reason, message),
        Wanted::new(STALLED, true, reason, message),
    ]
}

fn progressing(reason: &str, message: &str) -> Vec<Wanted> {
    vec![
        Wanted::new(READY, false, reason, message),
        Wanted::new(RECONCILING, true, reason, message),
    ]
}
