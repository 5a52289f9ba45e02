//! Watches that start on first use, are shared by all their users, and end a while after the last user
//! has gone.
//!
//! What comes in: keys that somebody looks at, and for each key how it is watched and what its [`Sink`]
//! makes of it. What goes out: a [`Sight`] of each, and the keys of those that changed. If nothing was
//! heard for five minutes, what was read does not count any more.

use std::collections::{HashMap, HashSet};
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use kube::runtime::watcher::{Config, Error};
use kube::{Api, Resource};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio::sync::{broadcast, watch};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::task::AbortOnDropHandle;

use super::failure::refusal;
pub use super::used::{KEPT, Kept, Used};
use super::{Guard, Jumps, Pulse, Step, Unreadable, Watching};

/// How long nothing may be heard before what was read does not count any more: the same as for what gates
/// are decided from, plus the two minutes that the last sign of life may be older. So if the API server
/// is away for everything, that is known first.
pub const SILENCE: Duration = Duration::from_secs(300);
/// For how long what was read counts while it is listed again, although it is not relied on any more:
/// evidence that disappears and comes back within that time is not worth reporting.
const GRACE: Duration = Duration::from_secs(15);
/// How soon to try again where there is too much to hold.
const TOO_MUCH: Duration = Duration::from_secs(300);
/// How many changes may wait for those who listen; a listener that falls behind is informed, and looks at
/// everything.
const BACKLOG: usize = 1024;

/// What is known of what is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sight<T> {
    /// The API server has not answered yet, and why. Trouble that passes is told once, in its first words.
    Nothing(Option<Trouble>),
    /// Nothing was heard for too long; what went wrong last.
    Silent(Option<String>),
    /// The API server refuses: the verb that is not allowed.
    Refused(&'static str),
    /// It does not know the kind any more.
    Vanished,
    /// It sends more than may be held.
    TooMuch(String),
    /// This is what it sent.
    Told(T),
}

/// What is wrong with a list or a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// In words.
    pub why: String,
    /// It may end by itself: the API server is away or busy, or the object is going to be replaced.
    pub passes: bool,
}

impl<T: PartialEq> Sight<T> {
    fn is_answer(&self) -> bool {
        !matches!(self, Sight::Nothing(_))
    }

    /// Takes in the news; returns whether those who listen have to look.
    fn take_in(&mut self, news: Self) -> bool {
        // What was read stays true until the API server says otherwise, or too little is heard of it.
        let adds_nothing = match (&*self, &news) {
            (Sight::Nothing(None), Sight::Nothing(_)) => false,
            (Sight::Nothing(Some(before)), Sight::Nothing(Some(now))) => {
                before.passes && now.passes
            }
            (_, Sight::Nothing(_)) => true,
            _ => false,
        };
        if adds_nothing || *self == news {
            return false;
        }
        *self = news;
        true
    }
}

/// Why a list or a watch cannot go on from where it was.
pub enum Setback {
    /// What came cannot be read.
    Lost(String),
    /// There is more than may be held.
    TooMuch(String),
}

impl From<Unreadable> for Setback {
    fn from(unreadable: Unreadable) -> Self {
        Self::Lost(format!("it cannot be read: {}", unreadable.why))
    }
}

/// Takes in what the API server sends.
pub trait Sink: Send + 'static {
    /// What is watched.
    type Object: Clone + Debug + DeserializeOwned + Resource + Send + 'static;
    /// What is known of it. It changes if, and only if, somebody has to look again.
    type Told: Clone + PartialEq + Send + Sync;
    /// Whether there is another way to find the kind once it is gone.
    const VANISHES: bool;
    /// Whether it reads nothing but the metadata of the objects.
    const IS_OF_METADATA: bool = false;

    /// How many objects are listed next. None: as many as usual.
    fn page_size(&self) -> Option<u32> {
        None
    }

    /// When everything is listed again, whatever happens until then. None: only where that is needed to
    /// go on.
    fn lists_again_at(&self) -> Option<Instant> {
        None
    }

    /// Takes in a step, without the fields that are not read. Some: what is known now.
    fn take(&mut self, step: Step<Guard<Self::Object>>) -> Result<Option<Self::Told>, Setback>;

    /// Forgets what it holds, after it was reported that this is too much.
    fn clear(&mut self) {}
}

/// What is announced to all watches at once.
#[derive(Debug, Default)]
pub struct Signals {
    jumps: watch::Sender<u64>,
    /// When the API server was known to be away last.
    away: watch::Sender<Option<Instant>>,
}

impl Signals {
    /// Everything is listed again: the clock has jumped.
    pub fn list_again(&self) {
        self.jumps.send_modify(|jumps| *jumps += 1);
    }

    /// The API server is away at this moment, for everything that is asked of it.
    pub fn away(&self) {
        self.away.send_replace(Some(Instant::now()));
    }
}

impl Jumps for Signals {
    fn count(&self) -> u64 {
        *self.jumps.borrow()
    }

    fn beyond(&self, known: u64) -> BoxFuture<'_, ()> {
        let mut jumps = self.jumps.subscribe();
        Box::pin(async move {
            // The sender lives as long as `self`.
            let _ = jumps.wait_for(|jumps| *jumps > known).await;
        })
    }
}

/// The watches of some kind, by key. They end with it.
pub struct Shared<Key, T> {
    /// How long to wait for the API server's first answer.
    deadline: Duration,
    /// How long nothing may be heard.
    silence: Duration,
    watches: Mutex<HashMap<Key, Watch<T>>>,
    changes: broadcast::Sender<Key>,
    signals: Arc<Signals>,
}

struct Watch<T> {
    sight: watch::Receiver<Sight<T>>,
    task: AbortOnDropHandle<()>,
    used: Used,
}

impl<Key, T> Shared<Key, T>
where
    Key: Clone + Eq + Hash + Send + 'static,
    T: Clone + PartialEq + Send + Sync + 'static,
{
    /// Nothing is watched yet.
    pub fn new(deadline: Duration) -> Self {
        Self {
            deadline,
            silence: SILENCE,
            watches: Mutex::default(),
            changes: broadcast::Sender::new(BACKLOG),
            signals: Arc::default(),
        }
    }

    /// The same, where what was read counts for another time than [`SILENCE`] after the last sign of life.
    #[must_use]
    pub fn silent_after(self, silence: Duration) -> Self {
        Self { silence, ..self }
    }

    /// How long a look waits for the API server's first answer.
    pub fn deadline(&self) -> Duration {
        self.deadline
    }

    /// What is announced to all these watches.
    pub fn signals(&self) -> &Signals {
        &self.signals
    }

    /// The keys of what changes from now on. A first sight is a change too.
    pub fn changes(&self) -> broadcast::Receiver<Key> {
        self.changes.subscribe()
    }

    /// How many watches there are.
    pub fn watched(&self) -> usize {
        self.watches.lock().len()
    }

    /// Ends the watches that have not been used for [`KEPT`]. `in_use` is what is used at `now`. Returns
    /// when the next watch ends if it stays unused: the time to call again.
    pub fn keep(&self, in_use: &HashSet<Key>, now: Timestamp) -> Option<Timestamp> {
        let mut next: Option<Timestamp> = None;
        self.watches.lock().retain(|key, watch| {
            match watch.used.judge(in_use.contains(key), now) {
                Kept::Used => true,
                Kept::Until(end) => {
                    next = Some(next.map_or(end, |next| next.min(end)));
                    true
                }
                Kept::Over => false,
            }
        });
        next
    }

    /// What is known of `key`. From the first call on it is watched as `how` says; the answer waits for
    /// the API server's first one, for a while.
    pub async fn look<S: Sink<Told = T>>(
        &self,
        key: &Key,
        how: impl FnOnce() -> (Api<Guard<S::Object>>, Config, S),
    ) -> Sight<T>
    where
        <S::Object as Resource>::DynamicType: Clone,
    {
        let mut sight = self.watch(key, how);
        let told = sight.wait_for(Sight::is_answer);
        // The time is over, or the watch has ended: the last sight says what is known.
        let _ = timeout(self.deadline, told).await.is_ok();
        sight.borrow().clone()
    }

    /// What is known of `key` at this moment. None: it is not watched.
    pub fn sight(&self, key: &Key) -> Option<Sight<T>> {
        let watches = self.watches.lock();
        watches.get(key).map(|watch| watch.sight.borrow().clone())
    }

    /// Ends the watches of which this says so, at once: what was read from them does not count any more.
    pub fn end(&self, ends: impl Fn(&Key, &Sight<T>) -> bool) {
        let mut watches = self.watches.lock();
        watches.retain(|key, watch| !ends(key, &watch.sight.borrow()));
    }

    /// Watches `key` as `how` says, if it is not watched yet. Returns what is known of it, at each time.
    pub fn watch<S: Sink<Told = T>>(
        &self,
        key: &Key,
        how: impl FnOnce() -> (Api<Guard<S::Object>>, Config, S),
    ) -> watch::Receiver<Sight<T>>
    where
        <S::Object as Resource>::DynamicType: Clone,
    {
        let mut watches = self.watches.lock();
        if let Some(watch) = watches.get_mut(key)
            && !watch.task.is_finished()
        {
            watch.used = Used::default();
            return watch.sight.clone();
        }
        let (api, config, sink) = how();
        let (tell, sight) = watch::channel(Sight::Nothing(None));
        let pulse = Arc::new(Pulse::new(self.silence, GRACE));
        pulse.heed(self.signals.clone());
        let mut watching = Watching::new(api, config, Arc::clone(&pulse));
        if S::IS_OF_METADATA {
            watching.of_metadata();
        }
        let follower = Follower {
            watching,
            pulse,
            sink,
            key: key.clone(),
            tell,
            changes: self.changes.clone(),
            away: self.signals.away.subscribe(),
        };
        let watch = Watch {
            sight: sight.clone(),
            task: AbortOnDropHandle::new(tokio::spawn(follower.run())),
            used: Used::default(),
        };
        watches.insert(key.clone(), watch);
        sight
    }
}

/// Keeps a sight up to date with what the API server sends.
struct Follower<Key, S: Sink> {
    watching: Watching<Guard<S::Object>>,
    pulse: Arc<Pulse>,
    sink: S,
    key: Key,
    tell: watch::Sender<Sight<S::Told>>,
    changes: broadcast::Sender<Key>,
    away: watch::Receiver<Option<Instant>>,
}

impl<Key: Clone, S: Sink> Follower<Key, S> {
    /// Until the kind vanishes.
    async fn run(mut self) {
        loop {
            if let Some(objects) = self.sink.page_size() {
                self.watching.page_size(objects);
            }
            let news = match self.next().await {
                Step::Failed(error) => Some(self.failed(&error)),
                Step::Silent => self.silent(),
                step => match self.sink.take(step) {
                    Ok(told) => told.map(Sight::Told),
                    Err(setback) => Some(self.set_back(setback)),
                },
            };
            let Some(news) = news else { continue };
            let (vanished, too_much) = (
                matches!(news, Sight::Vanished),
                matches!(news, Sight::TooMuch(_)),
            );
            if self.tell.send_if_modified(|sight| sight.take_in(news)) {
                // Nobody listens: nobody waits.
                let _ = self.changes.send(self.key.clone());
            }
            if too_much {
                // Only after that was reported: otherwise it would look as if there were no objects.
                self.sink.clear();
            }
            if vanished {
                return;
            }
        }
    }

    /// The next step.
    async fn next(&mut self) -> Step<Guard<S::Object>> {
        if let Some(again) = self.sink.lists_again_at() {
            match timeout_at(again, self.watching.next()).await {
                Ok(step) => return step,
                Err(_) => self.watching.list_again(),
            }
        }
        self.watching.next().await
    }

    fn is_told(&self) -> bool {
        matches!(*self.tell.borrow(), Sight::Told(_))
    }

    fn failed(&mut self, error: &Error) -> Sight<S::Told> {
        if self.is_told() {
            self.watching.hurry();
        }
        let verb = match error {
            Error::InitialListFailed(_) => "list",
            _ => "watch",
        };
        let why = match refusal(error) {
            Some(status) if status.is_forbidden() => {
                // Once it is allowed again, that has to be reported.
                self.watching.list_again();
                return Sight::Refused(verb);
            }
            Some(status) if status.code == 404 && S::VANISHES => return Sight::Vanished,
            Some(status) => format!("it answers with status {} {}", status.code, status.reason),
            None => "it cannot be reached".to_owned(),
        };
        self.pulse.fails(&why);
        let passes = refusal(error).is_none_or(|status| matches!(status.code, 429 | 500..));
        Sight::Nothing(Some(Trouble { why, passes }))
    }

    fn set_back(&mut self, setback: Setback) -> Sight<S::Told> {
        match setback {
            Setback::Lost(why) => {
                self.watching.list_later(None);
                let passes = false;
                Sight::Nothing(Some(Trouble { why, passes }))
            }
            Setback::TooMuch(why) => {
                self.watching.list_later(Some(TOO_MUCH));
                Sight::TooMuch(why)
            }
        }
    }

    /// Too little was heard: what was read does not count any more, unless the API server is away for
    /// everything.
    fn silent(&mut self) -> Option<Sight<S::Told>> {
        let away = self.away.borrow().map(|away| away + GRACE);
        if let Some(until) = away.filter(|until| *until > Instant::now()) {
            self.watching.excuse(until);
            return None;
        }
        let why = self.pulse.trouble().map(|why| why.to_string());
        let why = why.unwrap_or_else(|| "it says nothing".to_owned());
        self.is_told().then_some(Sight::Silent(Some(why)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_first_list_is_news_once() {
        let trouble = |why: &str, passes| {
            let why = why.to_owned();
            Sight::Nothing(Some(Trouble { why, passes }))
        };
        let mut sight: Sight<u8> = Sight::Nothing(None);
        assert!(sight.take_in(trouble("it cannot be reached", true)));
        // It goes on in other words.
        assert!(!sight.take_in(trouble("it answers with status 503", true)));
        assert_eq!(sight, trouble("it cannot be reached", true));
        assert!(sight.take_in(trouble("it answers with status 401", false)));
        assert!(!sight.take_in(trouble("it answers with status 401", false)));
        assert!(sight.take_in(trouble("it cannot be reached", true)));
        assert!(sight.take_in(Sight::Told(1)));
        // What was read counts until nothing was heard for too long.
        assert!(!sight.take_in(trouble("it cannot be reached", true)));
        assert_eq!(sight, Sight::Told(1));
    }
}
