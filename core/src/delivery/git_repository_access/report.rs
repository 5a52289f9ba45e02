//! A look at a GitRepositoryAccess: its status, what its forge has to be asked, and when to look again.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use sluice_crds::{GitRepositoryAccess, GitRepositoryAccessStatus};

use crate::delivery::act;
use crate::delivery::pull_request::{Failure, Word};
use crate::text::refusal::Refusals;
use crate::time::stamp::whole_second;
use crate::verdict::condition::{self, READY, RECONCILING, STALLED, Wanted, find};
use crate::verdict::status::requested_at;

/// The least time between the beginnings of two lists.
const APART: SignedDuration = SignedDuration::from_secs(1);
/// How long the first list waits for others who need the repository: when a process begins to lead, all of
/// them say so within moments, and one list does for all.
const GATHER: SignedDuration = SignedDuration::from_secs(1);
/// The wait after a failure, which doubles up to the longest.
const FIRST_RETRY: SignedDuration = SignedDuration::from_secs(10);
const LONGEST_RETRY: SignedDuration = SignedDuration::from_mins(5);
/// For how long nobody must have needed it before the status says so: who needs it is not known yet when a
/// process has just begun to lead.
const IDLE: SignedDuration = SignedDuration::from_mins(1);

/// The reason of one whose branches are known.
pub const LISTED: &str = "Listed";

/// Everything that a look at a GitRepositoryAccess is decided from.
pub struct Given {
    /// The GitRepositoryAccess.
    pub object: Arc<GitRepositoryAccess>,
    /// How often its branches are listed, or what is wrong with its spec.
    pub interval: Result<SignedDuration, Refusals>,
    /// What is known of its repository.
    pub known: Known,
    /// The instant.
    pub now: Timestamp,
}

/// What this process knows of a repository, and what somebody wants to know of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// Since when nobody needs it. None: somebody does.
    pub idle_since: Option<Timestamp>,
    /// Its branches.
    pub list: Listing,
    /// What is asked about its commits.
    pub questions: Asking,
}

/// What is known of the branches of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Whether somebody needs any branch.
    pub is_needed: bool,
    /// Whether a list is under way, whose end leads to another look.
    pub is_under_way: bool,
    /// When the last one was begun.
    pub begun_at: Option<Timestamp>,
    /// Since when somebody wants a fresh one.
    pub wanted_at: Option<Timestamp>,
    /// Since when somebody needs a branch that was not listed.
    pub unlisted_at: Option<Timestamp>,
    /// As of when the branches are known.
    pub listed_at: Option<Timestamp>,
    /// From when on they are too old to decide from.
    pub stale_at: Option<Timestamp>,
    /// How the last list failed, if it did.
    pub failing: Option<Failing>,
    /// The last request of a person for which a list was begun.
    pub requested: Option<String>,
    /// The last request that was answered by a list.
    pub handled: Option<String>,
}

/// What is known of the questions about a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asking {
    /// Whether some are being asked, whose end leads to another look.
    pub is_under_way: bool,
    /// When the next one is to be asked. None: there is none.
    pub next_at: Option<Timestamp>,
    /// When the next answer is too old to decide from.
    pub stale_at: Option<Timestamp>,
    /// Why one of them has no answer.
    pub failing: Option<Failure>,
}

/// Something that has failed, so many times in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failing {
    /// How often.
    pub times: u32,
    /// When it last failed.
    pub at: Timestamp,
    /// How it last failed.
    pub failure: Failure,
}

/// What has to be asked of the forge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// The branches that somebody needs.
    List {
        /// The request of a person that is answered by it.
        request: Option<String>,
    },
    /// Some of the questions that are to be asked.
    Answer,
}

impl Failing {
    /// Once more.
    pub fn again(before: Option<&Self>, failure: Failure, at: Timestamp) -> Self {
        let times = before.map_or(0, |before| before.times).saturating_add(1);
        Self { times, at, failure }
    }

    /// When it is to be tried again: later after each failure, and not before the forge wants to be asked.
    pub fn next_at(&self, now: Timestamp) -> Timestamp {
        let doublings = self.times.saturating_sub(1).min(10);
        let wait = FIRST_RETRY
            .saturating_mul(1 << doublings)
            .min(LONGEST_RETRY);
        let usual = after(self.at, wait, now);
        self.failure.not_before.map_or(usual, |at| at.max(usual))
    }
}

/// The status, what has to be asked, and when to look again.
pub fn report(given: Given) -> act::Report<GitRepositoryAccessStatus, Act> {
    let Given {
        object,
        interval,
        known,
        now,
    } = given;
    let before = object.status.clone().unwrap_or_default();
    let mut status = before.clone();
    if let Some(handled) = &known.list.handled {
        status.last_handled_reconcile_at = Some(handled.clone());
    }
    let request = requested_at(&object.metadata);
    let request = request.filter(|it| status.last_handled_reconcile_at.as_ref() != Some(it));
    let (mut acts, mut wakes) = (Vec::new(), Vec::new());
    if let Ok(interval) = &interval {
        let list = list_at(&known.list, request.as_deref(), *interval, now);
        let ask = known.questions.next_at;
        let ask = ask.filter(|_| !known.questions.is_under_way);
        acts.extend(is_due(list, now).then(|| Act::List {
            request: request.clone(),
        }));
        acts.extend(is_due(ask, now).then_some(Act::Answer));
        wakes.extend([list, ask, known.list.stale_at, known.questions.stale_at]);
    }
    let generation = object.metadata.generation;
    let is_idle = request.is_none() && is_idle(&known, &before, generation, now);
    if known.idle_since.is_some() && !is_idle {
        wakes.push(known.idle_since.and_then(|at| at.checked_add(IDLE).ok()));
    }
    let said = match interval {
        Err(refusals) => Some(not_ready(STALLED, "InvalidSpec", &refusals.to_string())),
        Ok(_) if is_idle => {
            let message = "no promotion needs it now, so that its forge is not asked";
            Some(vec![Wanted::new(READY, true, "NotNeeded", message)])
        }
        Ok(_) => conditions(&known, &before.conditions),
    };
    let is_told = before.observed_generation == generation && !before.conditions.is_empty();
    let said = match said {
        Some(said) => Some(said),
        // What was found out before counts until something else is.
        None if is_told => None,
        None => Some(not_ready(
            RECONCILING,
            "Listing",
            "its branches are being listed",
        )),
    };
    if let Some(said) = said {
        let at = whole_second(now);
        status.conditions = condition::settle(said, &before.conditions, generation, at);
    }
    status.observed_generation = generation;
    let wakes = wakes.into_iter().flatten().filter(|at| *at > now);
    act::Report {
        changed: status != before,
        status,
        acts,
        wake: wakes.min(),
    }
}

/// When the branches are to be listed. None: not before something changes.
fn list_at(
    list: &Listing,
    request: Option<&str>,
    interval: SignedDuration,
    now: Timestamp,
) -> Option<Timestamp> {
    if list.is_under_way || !list.is_needed && request.is_none() {
        return None;
    }
    // A person is heard at once, and then like everybody else.
    let is_new = request.is_some() && list.requested.as_deref() != request;
    // While it fails, anyone who wants a list waits like everybody else: anybody could ask for one again and again.
    let wanted = list.wanted_at;
    let wanted = wanted.filter(|_| list.is_needed && list.failing.is_none());
    let wanted = [is_new.then_some(now), wanted].into_iter().flatten().min();
    let unlisted = list.unlisted_at.map(|at| after(at, GATHER, now));
    let usual = match (&list.failing, list.listed_at) {
        (Some(failing), _) => failing.next_at(now),
        (None, Some(at)) => {
            let usual = after(at, interval, now);
            unlisted.map_or(usual, |unlisted| unlisted.min(usual))
        }
        (None, None) => unlisted.unwrap_or(now),
    };
    let at = wanted.map_or(usual, |wanted| wanted.min(usual));
    let apart = list.begun_at.map(|begun| after(begun, APART, now));
    let failing = list.failing.as_ref();
    let not_before = failing.and_then(|failing| failing.failure.not_before);
    [Some(at), apart, not_before].into_iter().flatten().max()
}

/// So much later than an instant in the past. One that is to come says nothing: the clock was set back.
fn after(at: Timestamp, wait: SignedDuration, now: Timestamp) -> Timestamp {
    match at > now {
        true => now,
        false => at.saturating_add(wait).unwrap_or(now),
    }
}

fn is_due(at: Option<Timestamp>, now: Timestamp) -> bool {
    at.is_some_and(|at| at <= now)
}

/// Whether the status says that nobody needs it: at once where it says nothing of this spec yet.
fn is_idle(
    known: &Known,
    before: &GitRepositoryAccessStatus,
    generation: Option<i64>,
    now: Timestamp,
) -> bool {
    let is_told = before.observed_generation == generation && !before.conditions.is_empty();
    // It may have begun a moment after the look did.
    let lasts = |since: Timestamp| now.duration_since(since) >= IDLE;
    let since = known.idle_since;
    since.is_some_and(|since| !is_told || lasts(since))
}

/// What was found out. None: nothing yet.
fn conditions(known: &Known, before: &[Condition]) -> Option<Vec<Wanted>> {
    let listing = known.list.failing.as_ref().map(|failing| &failing.failure);
    let failure = listing.or(known.questions.failing.as_ref());
    if let Some(failure) = failure {
        let more = match failure.word.lasts() {
            true => STALLED,
            false => RECONCILING,
        };
        let word = failure.word.as_str();
        let said = find(before, READY).filter(|ready| ready.reason == word);
        // How long to wait is another at each try.
        let changes = [Word::RateLimited, Word::ForgeThrottled, Word::Unanswered];
        let same = said.filter(|_| changes.contains(&failure.word));
        let message = same.map_or(&failure.message, |said| &said.message);
        return Some(not_ready(more, word, message));
    }
    known.list.listed_at?;
    let message = "its branches can be read";
    Some(vec![Wanted::new(READY, true, LISTED, message)])
}

fn not_ready(more: &'static str, reason: &str, message: &str) -> Vec<Wanted> {
    vec![
        Wanted::new(READY, false, reason, message),
        Wanted::new(more, true, reason, message),
    ]
}
