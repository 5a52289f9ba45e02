//! What a look leads to: the status first, then everything that follows from it.
//!
//! The status is itself the act. It is written onto the version of the object that it was decided from.
//! Only if the API server accepts it is anything else done, and all of that can be done twice. A
//! controller that is stopped between the two finds the accepted status, does what is missing, and does
//! not ask the gates again.
//!
//! What the API server refuses is retried. Until it is done, the status says how the last try ended, and
//! not what will be tried next: so a try that is refused like the one before writes nothing.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::time::stamp::whole_second;
use crate::verdict::condition::{self, READY, RECONCILING, STALLED, Wanted, cut};

/// The reason of `Ready` while a write is refused.
const WRITE_REFUSED: &str = "WriteRefused";

/// The most bytes of what the API server says.
const LONGEST: usize = 500;

/// The result of a look at a consumer with the status `S`, which acts by `A`.
#[derive(Clone, Debug, PartialEq)]
pub struct Report<S, A> {
    /// The status.
    pub status: S,
    /// Whether it differs from what the object has. It is written before anything is done.
    pub changed: bool,
    /// What has to be done, in this order. All of it can be done twice.
    pub acts: Vec<A>,
    /// When to look again, if nothing changes before.
    pub wake: Option<Timestamp>,
}

/// A write that the API server has refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// What was to be written, such as `the GitRepository app`.
    pub what: String,
    /// The HTTP status of the answer.
    pub code: u16,
    /// What the API server says.
    pub message: String,
}

impl Refused {
    /// What a status has to say about it.
    pub fn conditions(&self) -> Vec<Wanted> {
        let message = format!(
            "the API server refuses a write of {}, which is tried again: {}",
            self.what,
            cut(self.message.clone(), LONGEST)
        );
        // Without a right (403), or with something that a definition or a policy refuses (422),
        // nothing goes on before a person changes something.
        said(&message, matches!(self.code, 403 | 422))
    }
}

/// What a status said of the last refusal, as long as there is something left to write. None: it said
/// nothing of a refusal, or everything is written.
pub fn still_refused(before: &[Condition], is_left: bool) -> Option<Vec<Wanted>> {
    let find = |type_: &str| {
        let mut before = before.iter();
        before.find(|it| it.type_ == type_ && it.reason == WRITE_REFUSED)
    };
    let ready = find(READY).filter(|_| is_left)?;
    Some(said(&ready.message, find(STALLED).is_some()))
}

fn said(message: &str, is_stalled: bool) -> Vec<Wanted> {
    let say = |type_, holds| Wanted::new(type_, holds, WRITE_REFUSED, message);
    let stalled = is_stalled.then(|| say(STALLED, true));
    [say(READY, false)].into_iter().chain(stalled).collect()
}

/// The conditions of a status that says `wanted` about the state of its object, and keeps everything else
/// as before.
pub fn replace_ready(
    wanted: Vec<Wanted>,
    before: &[Condition],
    generation: Option<i64>,
    now: Timestamp,
) -> Vec<Condition> {
    let mut conditions = condition::settle(wanted, before, generation, whole_second(now));
    let is_other = |it: &&Condition| ![READY, RECONCILING, STALLED].contains(&it.type_.as_str());
    conditions.extend(before.iter().filter(is_other).cloned());
    conditions
}
