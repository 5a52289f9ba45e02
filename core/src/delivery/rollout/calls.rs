//! The hooks of the moment: which one is called, and what was answered.

use jiff::Timestamp;
use serde_json::Value;
use sluice_crds::RolloutStatus;
use sluice_crds::rollout::{HookRecord, HookType, Run};

use super::desk::Desk;
use super::given::Arrived;
use super::hook::{self, Answer, Meaning, Next};
use super::plan::Hook;
use super::state::State;
use crate::time::stamp::time;
use crate::verdict::condition::cut;

/// The most bytes that are kept of why a hook has not answered.
const LONGEST: usize = 256;

/// A call to be made. It is begun in the background, unless it is under way; its answer is an observation.
#[derive(Clone, Debug, PartialEq)]
pub struct Calling {
    /// What the receiver knows a repeated call by.
    pub key: String,
    /// Which call of this key it is. The first is 1.
    pub attempt: i32,
    /// Whom to call, and how.
    pub hook: Hook,
    /// What is sent.
    pub payload: Value,
}

/// How far the hooks of the moment are.
pub(super) enum Hooks {
    /// There are none, or all have let the run go on.
    Passed,
    /// One is called.
    Calling(Box<Calling>),
    /// One is called again at this instant: why.
    Waiting(Timestamp, String),
    /// One has said no: why.
    Vetoed(String),
}

/// The hooks of a state, and their batch.
fn moment(state: State, batch: usize) -> Option<(HookType, Option<usize>)> {
    match state {
        State::Initializing => Some((HookType::InitializeRollout, None)),
        State::BatchInitializing => Some((HookType::PreBatchRollout, Some(batch))),
        State::BatchFinalizing => Some((HookType::PostBatchRollout, Some(batch))),
        State::Finalising | State::Failing | State::Abandoned | State::Deleting => {
            Some((HookType::FinalizeRollout, None))
        }
        State::VerifyingSpec
        | State::BatchInRolling
        | State::BatchVerifying
        | State::BatchReady
        | State::Succeeded
        | State::Failed => None,
    }
}

/// Which of a batch the status speaks of.
pub(super) fn batch(status: &RolloutStatus) -> usize {
    let index = status.current_batch.and_then(|it| usize::try_from(it).ok());
    index.unwrap_or(0)
}

/// How far the hooks of the moment are. At the end, one that says no stops none of the others.
pub(super) fn hooks(desk: &Desk<'_>, status: &RolloutStatus, run: &Run, state: State) -> Hooks {
    let Some((type_, batch)) = moment(state, batch(status)) else {
        return Hooks::Passed;
    };
    let mut all: Vec<&Hook> = desk.plan.hooks_of(type_, batch.unwrap_or(0)).collect();
    let mut veto = None;
    loop {
        let next = hook::next(all.iter().copied(), batch, &status.hooks, desk.at());
        match next {
            Next::Passed => return veto.map_or(Hooks::Passed, Hooks::Vetoed),
            Next::Vetoed(hook, code) => {
                let why = format!("the hook {} has said no, with status {code}", hook.name);
                if type_ != HookType::FinalizeRollout {
                    return Hooks::Vetoed(why);
                }
                veto = veto.or(Some(why));
                all.retain(|it| *it != hook);
            }
            Next::Wait(hook, at) => {
                let why = format!(
                    "the hook {} has not answered, and is called again",
                    hook.name
                );
                return Hooks::Waiting(at, why);
            }
            Next::Call(hook) => {
                let attempts = record(status, hook, batch).map_or(0, |it| it.attempts);
                let call = call(desk, run, state, batch, hook);
                return Hooks::Calling(Box::new(Calling {
                    key: call.key(),
                    attempt: attempts.saturating_add(1),
                    hook: hook.clone(),
                    payload: call.payload(),
                }));
            }
        }
    }
}

fn call<'a>(
    desk: &Desk<'a>,
    run: &'a Run,
    state: State,
    batch: Option<usize>,
    hook: &'a Hook,
) -> hook::Call<'a> {
    let metadata = &desk.object().metadata;
    hook::Call {
        namespace: metadata.namespace.as_deref().unwrap_or_default(),
        name: metadata.name.as_deref().unwrap_or_default(),
        run: run.id,
        identity: &run.identity,
        revision: &run.revision,
        state: state.rolling(),
        batch,
        hook,
    }
}

fn record<'s>(
    status: &'s RolloutStatus,
    hook: &Hook,
    batch: Option<usize>,
) -> Option<&'s HookRecord> {
    status
        .hooks
        .iter()
        .find(|record| hook::is_of(record, hook, batch))
}

/// Which answers have come: they are accepted before anything follows from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// None.
    Nothing,
    /// Only that somebody could not answer now: that is no progress.
    Again,
    /// One that counts.
    Answer,
}

/// Records the answers that have come.
pub(super) fn hear(desk: &Desk<'_>, status: &mut RolloutStatus, run: &Run, state: State) -> Heard {
    let mut heard = Heard::Nothing;
    let Some((type_, batch)) = moment(state, batch(status)) else {
        return heard;
    };
    let hooks: Vec<&Hook> = desk.plan.hooks_of(type_, batch.unwrap_or(0)).collect();
    for hook in hooks {
        let key = call(desk, run, state, batch, hook).key();
        let known = record(status, hook, batch).map_or(0, |it| it.attempts);
        let of_key = desk.given.arrived.iter().filter(|it| it.key == key);
        let Some(arrived) = of_key.max_by_key(|it| it.attempt) else {
            continue;
        };
        if arrived.attempt > known {
            status
                .hooks
                .retain(|record| !hook::is_of(record, hook, batch));
            let record = recorded(hook, batch, arrived);
            heard = match (record.done, heard) {
                (true, _) | (false, Heard::Answer) => Heard::Answer,
                (false, Heard::Nothing | Heard::Again) => Heard::Again,
            };
            status.hooks.push(record);
        }
    }
    heard
}

fn recorded(hook: &Hook, batch: Option<usize>, arrived: &Arrived) -> HookRecord {
    HookRecord {
        type_: hook.type_,
        name: hook.name.clone(),
        batch: batch.and_then(|it| i32::try_from(it).ok()),
        checksum: hook::checksum(hook),
        at: time(arrived.at),
        attempts: arrived.attempt,
        status: match arrived.answer {
            Answer::Status(code) => Some(code.into()),
            Answer::Nothing => None,
        },
        done: hook::meaning(hook, &arrived.answer) != Meaning::Again,
        error: arrived.error.clone().map(|why| cut(why, LONGEST)),
    }
}
