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
use kube::Resource;
use kube::core::object::HasStatus;

use crate::text::refusal::Refusals;
use crate::time::stamp::whole_second;
use crate::verdict::Reason;
use crate::verdict::condition::{self, READY, RECONCILING, STALLED, Wanted, cut};

/// The condition that something waits: for gates, for a person, or for its turn.
pub const BLOCKED: &str = "Blocked";

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

impl<S: PartialEq, A> Report<S, A> {
    /// Nothing has to be done but to write the status, if the object does not have it.
    pub(super) fn without_acts(status: S, before: &S) -> Self {
        Self {
            changed: status != *before,
            status,
            acts: Vec::new(),
            wake: None,
        }
    }
}

/// A status of a consumer.
pub trait Status: Clone + Default + PartialEq {
    /// The generation that it is about, and its conditions.
    fn head(&mut self) -> (&mut Option<i64>, &mut Vec<Condition>);
}

/// Something that a look leads to.
pub trait Act {
    /// What it writes to the API server, in words. None: nothing.
    fn writes(&self) -> Option<String>;
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

/// What a status says, and what it said of the last refusal until everything is written: that comes first, as
/// [`with_ready`] has written it.
pub(super) fn while_refused(
    mut wanted: Vec<Wanted>,
    before: &[Condition],
    is_left: bool,
) -> Vec<Wanted> {
    if let Some(refused) = still_refused(before, is_left) {
        wanted.retain(|it| ![READY, RECONCILING, STALLED].contains(&it.type_));
        wanted.splice(..0, refused);
    }
    wanted
}

fn said(message: &str, is_stalled: bool) -> Vec<Wanted> {
    let say = |type_, holds| Wanted::new(type_, holds, WRITE_REFUSED, message);
    let stalled = is_stalled.then(|| say(STALLED, true));
    [say(READY, false)].into_iter().chain(stalled).collect()
}

/// What a status says of a spec that is refused.
pub(super) fn spec_refused(refusals: &Refusals) -> Vec<Wanted> {
    let message = format!("the spec is refused: {refusals}");
    let say = |type_, holds| Wanted::new(type_, holds, Reason::InvalidSpec.as_str(), &message);
    vec![say(READY, false), say(STALLED, true)]
}

/// The status that says `wanted` about the state of its object, and keeps everything else as before. None:
/// the object's status says so already.
pub fn with_ready<K>(object: &K, wanted: Vec<Wanted>, now: Timestamp) -> Option<K::Status>
where
    K: Resource + HasStatus<Status: Status>,
{
    let before = object.status().cloned().unwrap_or_default();
    let mut status = before.clone();
    let (observed, conditions) = status.head();
    *observed = object.meta().generation;
    *conditions = replace_ready(wanted, conditions, *observed, now);
    (status != before).then_some(status)
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
