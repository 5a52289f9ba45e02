//! A look at a CommitStatus: its status, what its forge is to be told, and when to look again.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use sluice_crds::commit_status::{Phase, Posted};
use sluice_crds::{CommitStatus, CommitStatusStatus};

use super::post::ends;
use super::spec::{check, is_own};
use super::{Post, Shown};
use crate::delivery::act;
use crate::delivery::pipeline::retry_after;
use crate::delivery::pull_request::{Failure, Word};
use crate::time::clock::{Now, Trust};
use crate::time::stamp::whole_second;
use crate::verdict::condition::{self, READY, RECONCILING, STALLED, Wanted, find};

/// The reason of a name that is somebody else's.
const RESERVED_NAME: &str = "ReservedName";

/// The digest of what a forge was told, where that is not known: it is told again, whatever that is.
const UNKNOWN: &str = "000000000000";

/// Everything that a look at a CommitStatus is decided from.
pub struct Given {
    /// The CommitStatus.
    pub object: Arc<CommitStatus>,
    /// Why its forge may not be told.
    pub refusal: Option<Refusal>,
    /// What came of the last errand.
    pub errand: Errand,
    /// The instant.
    pub now: Now,
}

/// Why a forge may not be told: a word and a sentence.
pub type Refusal = (&'static str, String);

/// What came of the last errand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Errand {
    /// There was none, or its end is written.
    None,
    /// It is under way, and its end leads to another look.
    UnderWay {
        /// What it tells.
        post: Box<Post>,
        /// Whether the forge may have been told.
        is_sent: bool,
    },
    /// It has told this, or has failed to.
    Over(Box<(Post, Result<(), Failure>)>),
}

/// What is to be told now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// That.
    pub post: Post,
    /// Whether it waits for nobody else: a success is taken back, by which something may be merged.
    pub is_urgent: bool,
}

/// What the last try was about, and what came of it.
struct Tries {
    attempts: u32,
    next_at: Option<Timestamp>,
    /// How it has failed just now.
    failure: Option<Failure>,
}

/// Why the forge may not be told. `reserved_by`: the strategy of the same repository that says by this name
/// whether something may be merged. `access`: why its access may not be used.
pub fn refusal(
    object: &CommitStatus,
    reserved_by: Option<String>,
    access: Result<(), String>,
) -> Option<Refusal> {
    let name = &object.spec.name;
    if is_own(name) {
        let message = format!(
            "spec.name: `{name}` is a name of the controller, as all that begin with `sluice/`; write another one"
        );
        return Some((RESERVED_NAME, message));
    }
    if let Some(strategy) = reserved_by {
        let message = format!(
            "spec.name: `{name}` is the statusName of {strategy}, which says by it whether something may be \
             merged; write another one"
        );
        return Some((RESERVED_NAME, message));
    }
    if let Err(mistakes) = check(object) {
        return Some((Word::InvalidSpec.as_str(), mistakes.to_string()));
    }
    let why = access.err()?;
    Some((Word::AccessNotUsable.as_str(), why))
}

/// Whether a forge may be told this. A success that was told before the name was somebody else's is taken back all
/// the same, where it was told: nobody else would.
pub fn may_tell(
    status: Option<&CommitStatusStatus>,
    post: &Post,
    refusal: Option<&Refusal>,
) -> bool {
    let Some((reason, _)) = refusal else {
        return true;
    };
    let posted = status.and_then(|it| it.posted.as_ref());
    let is_there = posted.is_some_and(|it| match &it.place {
        Some(place) => *place == post.place(),
        // Of an earlier version: it was told there if it was told in the same words.
        None => it.digest == post.as_success().digest(),
    });
    *reason == RESERVED_NAME && is_there && status.is_some_and(|it| takes_back(it, post))
}

/// The status, at most one thing to tell, and when to look again.
pub fn report(given: Given) -> act::Report<CommitStatusStatus, Task> {
    let Given {
        object,
        refusal,
        errand,
        now,
    } = given;
    let before = object.status.clone().unwrap_or_default();
    let mut status = before.clone();
    let post = wanted(&object, now);
    let is_under_way = matches!(errand, Errand::UnderWay { .. });
    let makes_room = match &errand {
        Errand::None | Errand::Over(_) => true,
        Errand::UnderWay { is_sent: true, .. } => false,
        // What waits for its turn makes room for what takes a success back.
        Errand::UnderWay { post: other, .. } => **other != post && takes_back(&status, &post),
    };
    let mut tries = tries(&object, &post, &before, now.at);
    take_in(&mut status, &mut tries, errand, &post, now.at);
    let is_told = is_told(&status, &post);
    let is_due = tries.next_at.is_none_or(|at| at <= now.at);
    let mut acts = Vec::new();
    let is_open = !is_told && may_tell(Some(&status), &post, refusal.as_ref());
    if is_open && makes_room && is_due {
        acts.push(Task {
            is_urgent: takes_back(&status, &post),
            post,
        });
    }
    let generation = object.metadata.generation;
    if let Some(said) = said(&before, refusal, is_told, &tries) {
        let at = whole_second(now.at);
        status.conditions = condition::settle(said, &before.conditions, generation, at);
        status.observed_generation = generation;
        let counts = is_open && tries.attempts > 0;
        status.attempts = counts.then_some(tries.attempts);
        status.next_attempt_at = tries.next_at.filter(|_| counts).map(Time);
    }
    let again = tries.next_at.filter(|_| is_open && !is_under_way);
    let wakes = [again, ends(&object)].into_iter().flatten();
    act::Report {
        changed: status != before,
        status,
        acts,
        wake: wakes.filter(|at| *at > now.at).min(),
    }
}

/// What is to be told. While the clock cannot be relied on, what was told last stays, if it was told before the
/// end or after it.
fn wanted(object: &CommitStatus, now: Now) -> Post {
    let posted = object.status.as_ref().and_then(|it| it.posted.as_ref());
    if let (Trust::Lost(_), Some(posted)) = (now.trust, posted) {
        let both = [false, true].map(|has_expired| Post::of(object, has_expired));
        let mut both = both.into_iter();
        if ends(object).is_some()
            && let Some(same) = both.find(|post| post.digest() == posted.digest)
        {
            return same;
        }
    }
    Post::at(object, now.at)
}

/// The tries that this is another one of. What failed before the spec was changed is no reason to wait, unless the
/// forge wants to be left alone. Nor is it, if a success is to be taken back that has expired since.
fn tries(object: &CommitStatus, post: &Post, before: &CommitStatusStatus, now: Timestamp) -> Tries {
    let attempts = before.attempts.unwrap_or_default();
    let next_at = before.next_attempt_at.as_ref().map(|at| at.0);
    let is_respecified = before.observed_generation != object.metadata.generation;
    let word = find(&before.conditions, READY).map(|ready| ready.reason.as_str());
    let limited = [Word::RateLimited, Word::ForgeThrottled].map(Word::as_str);
    let is_limited = word.is_some_and(|word| limited.contains(&word));
    let tried_at = next_at.and_then(|next| next.checked_sub(retry_after(attempts)).ok());
    // Instants of tries are whole seconds.
    let end = ends(object).filter(|end| *end <= now).map(whole_second);
    let has_expired_since = end.zip(tried_at).is_some_and(|(end, tried)| tried < end);
    let takes_back = takes_back(before, post);
    let waits = is_limited && !takes_back;
    let is_another = is_respecified || (takes_back && has_expired_since);
    let is_another = is_another && !waits;
    Tries {
        attempts: if is_another { 0 } else { attempts },
        next_at: next_at.filter(|_| !is_another),
        failure: None,
    }
}

/// Takes in what came of the last errand. A failure to tell what nobody wants to be told any more counts for
/// nothing.
fn take_in(
    status: &mut CommitStatusStatus,
    tries: &mut Tries,
    errand: Errand,
    wanted: &Post,
    now: Timestamp,
) {
    let Errand::Over(over) = errand else {
        return;
    };
    if let ((_, Err(failure)), Some(posted)) = (over.as_ref(), &mut status.posted)
        && failure.word == Word::Unanswered
    {
        // The forge may have heard it all the same.
        UNKNOWN.clone_into(&mut posted.digest);
    }
    match *over {
        (post, Ok(())) => {
            status.posted = Some(Posted {
                digest: post.digest(),
                place: Some(post.place()),
                phase: post.shown.phase(),
                sha: post.sha,
                at: Time(whole_second(now)),
            });
            tries.attempts = 0;
            tries.next_at = None;
        }
        (post, Err(failure)) if post == *wanted => {
            tries.attempts = tries.attempts.saturating_add(1);
            let usual = now.saturating_add(retry_after(tries.attempts));
            let usual = whole_second(usual.unwrap_or(now));
            tries.next_at = Some(failure.not_before.map_or(usual, |at| at.max(usual)));
            tries.failure = Some(failure);
        }
        (_, Err(_)) => {}
    }
}

fn is_told(status: &CommitStatusStatus, post: &Post) -> bool {
    let posted = status.posted.as_ref();
    posted.is_some_and(|posted| posted.digest == post.digest())
}

/// Whether what the forge shows as a success is none any more.
fn takes_back(status: &CommitStatusStatus, post: &Post) -> bool {
    let posted = status.posted.as_ref();
    let was = posted.is_some_and(|it| it.phase == Phase::Success && it.sha == post.sha);
    was && post.shown != Shown::Success
}

/// All the conditions. None: they stay as they are.
fn said(
    before: &CommitStatusStatus,
    refusal: Option<Refusal>,
    is_told: bool,
    tries: &Tries,
) -> Option<Vec<Wanted>> {
    match (refusal, &tries.failure) {
        (Some((reason, why)), _) => Some(not_ready(STALLED, reason, &why)),
        (None, _) if is_told => {
            let message = "the forge shows it";
            Some(vec![Wanted::new(READY, true, "Posted", message)])
        }
        (None, Some(failure)) => Some(failed(failure)),
        (None, None) => waiting(before, tries.attempts),
    }
}

/// What is said until the forge has been told. None: what was said before is still right, since it is about an
/// older spec, and the next status follows at once.
fn waiting(before: &CommitStatusStatus, attempts: u32) -> Option<Vec<Wanted>> {
    match find(&before.conditions, READY) {
        // It waits for its next try: the reason of the last failure stays.
        Some(ready) if attempts > 0 => {
            let more = match find(&before.conditions, STALLED) {
                Some(_) => STALLED,
                None => RECONCILING,
            };
            Some(not_ready(more, &ready.reason, &ready.message))
        }
        Some(ready) if ready.status == "True" => None,
        Some(_) | None => {
            let message = "the forge is being told";
            Some(not_ready(RECONCILING, "Posting", message))
        }
    }
}

fn failed(failure: &Failure) -> Vec<Wanted> {
    let more = match failure.word.lasts() {
        true => STALLED,
        false => RECONCILING,
    };
    not_ready(more, failure.word.as_str(), &failure.message)
}

fn not_ready(more: &'static str, reason: &str, message: &str) -> Vec<Wanted> {
    vec![
        Wanted::new(READY, false, reason, message),
        Wanted::new(more, true, reason, message),
    ]
}
