//! What a status says in conditions.

use super::chain::Chain;
use super::desk::Desk;
use super::signals::Signal;
use super::state::State;
use super::step::Step;
use crate::verdict::condition::{READY, RECONCILING, STALLED, Wanted};

/// A batch waits for gates or people.
pub const BLOCKED: &str = "Blocked";

/// All the conditions.
pub(super) fn all(desk: &Desk<'_>, chain: &Chain) -> Vec<Wanted> {
    let status = &chain.draft.status;
    let held = status.held.as_ref();
    match (chain.state, chain.step, held) {
        (State::Succeeded, ..) => {
            let message = status.history.first().map(|run| run.message.clone());
            let message = message.unwrap_or_else(|| "it is out".to_owned());
            with_blocked(vec![Wanted::new(READY, true, "RolloutSucceeded", message)])
        }
        (State::Failed, ..) => {
            let outcome = status.outcome.as_ref();
            let (reason, message) = outcome.map_or(("RolloutFailed", "it has failed"), |it| {
                (it.reason.as_str(), it.message.as_str())
            });
            with_blocked(stalled(reason, &help(reason, message)))
        }
        (_, Step::Hold, Some(held)) => of_hold(chain, &held.reason, &held.message),
        _ => {
            let why = chain.decides.and_then(|signal| chain.look.why_of(signal));
            let message = match why {
                Some(why) if !chain.draft.moved => why.message.clone(),
                Some(_) | None => working(desk, chain),
            };
            with_blocked(progressing("Progressing", &message))
        }
    }
}

fn help(reason: &str, message: &str) -> String {
    match reason {
        "InvalidSpec" | "NotSupported" | "Deleted" => message.to_owned(),
        _ => format!("{message}; to try again, annotate this Rollout with sluice.dev/retry"),
    }
}

fn working(desk: &Desk<'_>, chain: &Chain) -> String {
    let state = chain.state.rolling().as_str();
    let batch = chain.state.batch();
    match (batch, chain.draft.status.current_batch) {
        (Some(batch), Some(index)) => format!(
            "{state}: batch {} of {}, {}",
            index + 1,
            desk.batches(),
            batch.as_str()
        ),
        _ => state.to_owned(),
    }
}

fn of_hold(chain: &Chain, reason: &str, message: &str) -> Vec<Wanted> {
    match chain.decides {
        Some(Signal::Paused | Signal::Closed) => vec![
            Wanted::new(READY, true, reason, message),
            Wanted::new(BLOCKED, true, reason, message),
        ],
        Some(Signal::Contested) => with_blocked(stalled(reason, message)),
        _ => with_blocked(progressing(reason, message)),
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
