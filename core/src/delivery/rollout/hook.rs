//! Hooks: which one is called next, and what its answer means.
//!
//! What comes in: the hooks of a moment in their order, and what the status has recorded of their answers.
//! What goes out: the next call, or that all have let the run go on, or which one has not. An answer is
//! recorded before anything follows from it, and counts for exactly that hook: one that was changed is called
//! again. Nothing is called again that has answered, also after a restart.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use sluice_crds::rollout::{HookRecord, RollingState};

use super::plan::{Expected, Hook};
use crate::time::span::later;

#[cfg(test)]
mod tests;

/// How long to wait after the first call without an answer. Each further one doubles it.
const FIRST_PAUSE: SignedDuration = SignedDuration::from_secs(1);
/// The longest wait.
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_secs(30);

/// What came of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// An HTTP status.
    Status(u16),
    /// No connection, or no answer in time.
    Nothing,
}

/// What an answer means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// The run may go on.
    Pass,
    /// It may not.
    Veto,
    /// The hook is called again: it could not answer now.
    Again,
}

/// What an answer of this hook means.
pub fn meaning(hook: &Hook, answer: &Answer) -> Meaning {
    match answer {
        Answer::Status(status) if hook.expected.has(*status) => Meaning::Pass,
        Answer::Status(408 | 429 | 500..=599) | Answer::Nothing => Meaning::Again,
        Answer::Status(_) => Meaning::Veto,
    }
}

/// What to do about the hooks of a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next<'a> {
    /// Call this one.
    Call(&'a Hook),
    /// Call it again at this instant.
    Wait(&'a Hook, Timestamp),
    /// It has said no, with this status.
    Vetoed(&'a Hook, u16),
    /// All of them have let the run go on.
    Passed,
}

/// What to do about `hooks`, one after another. `batch`: that of the moment. None: it belongs to none.
pub fn next<'a>(
    hooks: impl IntoIterator<Item = &'a Hook>,
    batch: Option<usize>,
    records: &[HookRecord],
    now: Timestamp,
) -> Next<'a> {
    for hook in hooks {
        let Some(record) = records.iter().find(|it| is_of(it, hook, batch)) else {
            return Next::Call(hook);
        };
        let status = record.status.and_then(|status| u16::try_from(status).ok());
        let answer = status.map_or(Answer::Nothing, Answer::Status);
        match (meaning(hook, &answer), status) {
            (Meaning::Pass, _) => {}
            (Meaning::Veto, Some(status)) => return Next::Vetoed(hook, status),
            (Meaning::Again, _) | (Meaning::Veto, None) => {
                let at = later(record.at.0, pause(record.attempts));
                return match at <= now {
                    true => Next::Call(hook),
                    false => Next::Wait(hook, at),
                };
            }
        }
    }
    Next::Passed
}

/// Whether a record is of this hook in this batch, as it is written now.
pub(super) fn is_of(record: &HookRecord, hook: &Hook, batch: Option<usize>) -> bool {
    let of_batch = record.batch.and_then(|batch| usize::try_from(batch).ok());
    (record.type_, record.name.as_str()) == (hook.type_, hook.name.as_str())
        && of_batch == batch
        && record.checksum == checksum(hook)
}

/// How long to wait after so many calls.
fn pause(attempts: i32) -> SignedDuration {
    let doublings = u32::try_from(attempts.saturating_sub(1))
        .unwrap_or(0)
        .min(10);
    (FIRST_PAUSE * (1 << doublings)).min(LONGEST_PAUSE)
}

/// What a hook is, as a hash: an answer counts for this alone.
pub fn checksum(hook: &Hook) -> String {
    let Hook {
        type_,
        name,
        url,
        method,
        expected,
        metadata,
        timeout: _,
        secret,
    } = hook;
    let expected = match expected {
        Expected::Success => Vec::new(),
        Expected::OneOf(all) => all.iter().copied().collect(),
    };
    let all = json!([
        type_.as_str(),
        name,
        url,
        method,
        expected,
        metadata,
        secret
    ]);
    hash(&all)
}

/// A call in a run.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The namespace of the Rollout.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// The number of the run.
    pub run: i64,
    /// What the run rolls out, as a hash.
    pub identity: &'a str,
    /// What gates are asked about.
    pub revision: &'a str,
    /// How far the run is: of a hook at the end, which end it is.
    pub state: RollingState,
    /// The batch. None: it belongs to none.
    pub batch: Option<usize>,
    /// The hook.
    pub hook: &'a Hook,
}

impl Call<'_> {
    /// What the receiver knows a repeated call by: the same after a restart, and another one for each run.
    pub fn key(&self) -> String {
        let of_hook = checksum(self.hook);
        let all = json!([self.namespace, self.name, self.run, self.batch, of_hook]);
        hash(&all)
    }

    /// What is sent, in the form of Flagger's webhooks, and the batch and the revision.
    pub fn payload(&self) -> Value {
        let metadata = self.hook.metadata.iter();
        let metadata: Map<String, Value> = metadata
            .map(|(key, text)| (key.clone(), text.clone().into()))
            .collect();
        json!({
            "name": self.name,
            "namespace": self.namespace,
            "phase": self.state.as_str(),
            "checksum": self.identity,
            "metadata": metadata,
            "batch": self.batch,
            "revision": self.revision,
        })
    }
}

/// A hash of a value in its only form.
pub(super) fn hash(value: &Value) -> String {
    let digest = Sha256::digest(value.to_string().as_bytes());
    let hex = digest.iter().take(16).map(|byte| format!("{byte:02x}"));
    hex.collect()
}
