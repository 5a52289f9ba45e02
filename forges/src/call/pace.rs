//! How fast a forge is asked with one credential.
//!
//! What comes in: each request before it is sent, with who wants it and how urgent it is, and the reply. What goes
//! out: a turn, which is held while the request is under way, or for how long the forge wants to be left alone.
//!
//! | what | when |
//! |---|---|
//! | a change | one after another, with a pause where the forge asks for that. Of the namespaces that wait the one is next whose last change was the longest ago, with what is most urgent to it |
//! | a question | [`QUESTIONS`] at once |
//! | anything | not before the instant that a reply has named |
//! | what is not urgent | not while less than a tenth of what the forge allows is left. What goes by Git's own protocol is not counted by forges |
//! | what something waits for | not while less than a twentieth is left |
//!
//! Time is that of tokio. What a forge says in instants is counted from the time of its reply.

use std::collections::{BTreeMap, HashMap};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822;
use parking_lot::{Mutex, MutexGuard};
use sluice_egress::Reply;
use tokio::sync::{Notify, Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};

use super::said::{number, wait};
use crate::outcome::{Trouble, Wait};

/// How many questions are asked at once.
const QUESTIONS: usize = 4;
/// How long it is left alone where it does not say: what GitHub asks for.
const UNSAID: Duration = Duration::from_secs(60);
/// The longest that it is left alone, whatever it says.
const LONGEST: Duration = Duration::from_secs(3600);

/// How urgent a request is, the most urgent first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// To say that something may not be merged.
    Withdrawal,
    /// To merge, and to say that it may be merged.
    Merge,
    /// To know what something waits for.
    Needed,
    /// To say something else of a commit.
    Status,
    /// To open a pull request.
    Opening,
    /// Everything else.
    #[default]
    Other,
}

impl Urgency {
    /// Whether it is done although so little of what the forge allows is left. Anyone who makes others ask much must
    /// not use up by that what merges need.
    fn is_spared(self, left: Left) -> bool {
        match self {
            Self::Withdrawal | Self::Merge => true,
            Self::Needed => left == Left::Tenth,
            Self::Status | Self::Opening | Self::Other => false,
        }
    }
}

/// How little of what a forge allows is left: less than this part of it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    Tenth,
    Twentieth,
}

/// The pace of one credential, and whose one's own requests are.
#[derive(Clone, Default)]
pub struct Pacing {
    /// Shared by all who use the credential.
    pub pace: Arc<Pace>,
    /// The namespace of the object that wants them: that of the credential may be another one.
    pub by: Arc<str>,
    /// Of all requests that are made with it.
    pub urgency: Urgency,
}

/// The pace of one credential.
pub struct Pace {
    /// The time between the end of a change and the next one.
    apart: Duration,
    questions: Semaphore,
    state: Mutex<State>,
    news: Notify,
}

#[derive(Default)]
struct State {
    changing: Option<u64>,
    /// When the next change may begin.
    next_at: Option<Instant>,
    /// Who waits to change something, by the number of the ticket.
    waiting: BTreeMap<u64, (Arc<str>, Urgency)>,
    /// The number of the last change of each namespace, for as long as anybody waits.
    last: HashMap<Arc<str>, u64>,
    /// The numbers that tickets and changes were given.
    numbers: u64,
    closed_until: Option<Instant>,
    scarce_until: Option<(Instant, Left)>,
}

/// A question that is under way.
pub(super) type Question<'p> = SemaphorePermit<'p>;

/// A change that is under way, or waits for that.
pub(crate) struct Change<'p> {
    pace: &'p Pace,
    ticket: u64,
}

impl Default for Pace {
    fn default() -> Self {
        Self::new(Duration::ZERO)
    }
}

impl Pace {
    /// With at least so much time between two changes.
    pub fn new(apart: Duration) -> Self {
        Self {
            apart,
            questions: Semaphore::new(QUESTIONS),
            state: Mutex::default(),
            news: Notify::new(),
        }
    }

    /// Whether nothing is kept in it: another one would be the same.
    pub fn is_idle(&self) -> bool {
        let (state, now) = (self.state(), Instant::now());
        let scarce_until = state.scarce_until.map(|(until, _)| until);
        let kept = [state.next_at, state.closed_until, scarce_until];
        state.changing.is_none() && kept.into_iter().flatten().all(|until| until <= now)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Takes in what a reply says. `counts`: the forge counts requests of this kind.
    pub(super) fn note(&self, reply: &Reply, counts: bool) {
        let now = Instant::now();
        let mut state = self.state();
        let wait = match (reply.status, wait(reply)) {
            (403 | 429, Some(wait)) => Some(wait),
            (429, None) => Some(Wait::Unsaid),
            _ => None,
        };
        if let Some(wait) = wait {
            state.closed_until = Some(now + length(wait, reply)).max(state.closed_until);
        }
        if let Some(quota) = Quota::read(reply).filter(|_| counts) {
            let until = quota.reset.map(|at| now + length(Wait::Until(at), reply));
            state.scarce_until = until.zip(quota.left());
        }
    }
}

impl State {
    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// The ticket of the one who is next.
    fn next(&self) -> Option<u64> {
        let rank = |(ticket, (by, urgency)): &(&u64, &(Arc<str>, Urgency))| {
            (self.last.get(by).copied(), *urgency, **ticket)
        };
        let next = self.waiting.iter().min_by_key(rank);
        next.map(|(ticket, _)| *ticket)
    }
}

impl Pacing {
    /// # Errors
    /// Nothing of this kind may be sent now.
    fn check(&self, counts: bool) -> Result<(), Trouble> {
        let now = Instant::now();
        let left = |until: Option<Instant>| {
            let left = until?.saturating_duration_since(now);
            (!left.is_zero()).then_some(left)
        };
        let state = self.pace.state();
        if let Some(left) = left(state.closed_until) {
            return Err(Trouble::RateLimited(Wait::For(left)));
        }
        let scarce = state.scarce_until.filter(|_| counts);
        let scarce = scarce.filter(|(_, much)| !self.urgency.is_spared(*much));
        match left(scarce.map(|(until, _)| until)) {
            Some(left) => Err(Trouble::Throttled(Wait::For(left))),
            None => Ok(()),
        }
    }

    /// Waits until a question may be asked.
    ///
    /// # Errors
    /// It may not.
    pub(super) async fn question(&self, counts: bool) -> Result<Question<'_>, Trouble> {
        self.check(counts)?;
        // It is never closed.
        let turn = self.pace.questions.acquire().await;
        self.check(counts)?;
        turn.map_err(|_| Trouble::Overtaken)
    }

    /// Waits until a change may be sent.
    ///
    /// # Errors
    /// It may not.
    pub(super) async fn change(&self, counts: bool) -> Result<Change<'_>, Trouble> {
        let change = self.queue();
        loop {
            // Before it begins: one that may not uses up no turn of its namespace, and no pause.
            self.check(counts)?;
            let mut news = pin!(self.pace.news.notified());
            news.as_mut().enable();
            match change.begin() {
                Begins::Now => break,
                // It may end earlier, by one that is more urgent.
                Begins::At(at) => {
                    let _ = timeout_at(at, news).await;
                }
                Begins::Later => news.await,
            }
        }
        Ok(change)
    }

    fn queue(&self) -> Change<'_> {
        let pace = &*self.pace;
        let mut state = pace.state();
        let ticket = state.number();
        let who = (Arc::clone(&self.by), self.urgency);
        state.waiting.insert(ticket, who);
        Change { pace, ticket }
    }
}

/// When a change begins.
enum Begins {
    Now,
    At(Instant),
    /// After another one.
    Later,
}

impl Change<'_> {
    /// Begins, if it is its turn.
    fn begin(&self) -> Begins {
        let mut state = self.pace.state();
        if state.changing.is_some() || state.next() != Some(self.ticket) {
            return Begins::Later;
        }
        if let Some(at) = state.next_at.filter(|at| *at > Instant::now()) {
            return Begins::At(at);
        }
        if let Some((by, _)) = state.waiting.remove(&self.ticket) {
            let number = state.number();
            state.last.insert(by, number);
        }
        state.changing = Some(self.ticket);
        Begins::Now
    }
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        {
            let mut state = self.pace.state();
            if state.waiting.remove(&self.ticket).is_none() {
                state.changing = None;
                state.next_at = Some(Instant::now() + self.pace.apart);
            }
            if state.waiting.is_empty() && state.changing.is_none() {
                state.last.clear();
            }
        }
        self.pace.news.notify_waiters();
    }
}

/// How long it is to be left alone, from this reply on.
fn length(wait: Wait, reply: &Reply) -> Duration {
    let said = match wait {
        Wait::For(time) => Some(time),
        Wait::Until(at) => {
            let date = reply
                .header("date")
                .and_then(|text| rfc2822::parse(text).ok());
            let left = date.map(|date| at.duration_since(date.timestamp()));
            left.map(|left| Duration::try_from(left).unwrap_or_default())
        }
        Wait::Unsaid => None,
    };
    said.unwrap_or(UNSAID).min(LONGEST)
}

/// What a forge allows, as a reply says it.
struct Quota {
    limit: i64,
    remaining: i64,
    reset: Option<Timestamp>,
}

impl Quota {
    /// GitHub and Bitbucket write `X-` before these names, GitLab does not.
    fn read(reply: &Reply) -> Option<Self> {
        ["x-ratelimit", "ratelimit"].into_iter().find_map(|name| {
            let number = |what| number(reply, &format!("{name}-{what}"));
            let reset = number("reset").and_then(|at| Timestamp::from_second(at).ok());
            Some(Self {
                limit: number("limit")?,
                remaining: number("remaining")?,
                reset,
            })
        })
    }

    /// None: there is enough.
    fn left(&self) -> Option<Left> {
        let is_less_than = |part| self.remaining.saturating_mul(part) < self.limit;
        match (is_less_than(20), is_less_than(10)) {
            (true, _) => Some(Left::Twentieth),
            (false, true) => Some(Left::Tenth),
            (false, false) => None,
        }
    }
}

/// How many requests the forge still allows, if a reply says that.
pub(super) fn remaining(reply: &Reply) -> Option<u64> {
    u64::try_from(Quota::read(reply)?.remaining).ok()
}

#[cfg(test)]
mod tests;
