//! Errands: what has to be done at a server other than the API server, such as a forge, another cluster
//! or notification-controller.
//!
//! What comes in: for which object, under which key, in which line, and what is to be done. What goes
//! out: the outcome, and a wake of the object as soon as it is there.
//!
//! A look never waits for such a server: it begins an errand and ends. Two errands of one object never
//! have the same key. An outcome is kept until a look says that its status has been accepted
//! ([`Errands::keep`]): a look whose status is refused finds the outcome again, and does nothing twice.
//! A replica that stops leading stops its errands. What it has sent by then is not known, so the status
//! that was written first says what to look for.

use std::collections::{BTreeMap, HashMap};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::join_all;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::cluster::key::Work;
use crate::lease::Leadership;
pub(crate) use rooms::{AT_ONCE, OF_A_NAMESPACE, OF_BOTH, Turn};
use rooms::{OF_AN_ERRAND, Rooms};

mod rooms;

/// The longest that an errand may take, once it has its place, unless its desk says something else.
const LONGEST: Duration = Duration::from_secs(60);

/// All errands of the objects that this replica looks at. `K` tells those of one object apart, and `T` is
/// what an errand brings back.
pub(crate) struct Errands<K, T> {
    known: Mutex<Known<K, T>>,
    rooms: Rooms,
    longest: Duration,
    leadership: Leadership,
    wake: Box<dyn Fn(&Work) + Send + Sync>,
}

type Known<K, T> = HashMap<Work, BTreeMap<K, Errand<T>>>;

enum Errand<T> {
    /// It ends when this is dropped.
    UnderWay(DropGuard),
    Over(Result<T, Unfinished>),
}

/// How an errand stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Standing<T> {
    /// It has been begun, and its end will wake the object.
    UnderWay,
    /// It is over.
    Over(Result<T, Unfinished>),
}

/// Why an errand brings nothing back. What it has done is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unfinished {
    /// It took longer than this.
    #[error("there was no end of it within {}s", .0.as_secs())]
    Late(Duration),
    /// It panicked.
    #[error("it was stopped by a defect of the controller; please report it")]
    Defect,
}

/// Until when an errand may act.
#[derive(Clone)]
pub(crate) struct Term {
    leadership: Leadership,
    until: Instant,
}

impl Term {
    /// Until when a request that changes something may be sent, if it may be sent now. It is asked before
    /// each of them.
    pub(crate) fn may_act(&self) -> Option<Instant> {
        let left = self.leadership.left()?;
        let until = self.until.min(Instant::now() + left);
        (until > Instant::now()).then_some(until)
    }
}

impl<K, T> Errands<K, T>
where
    K: Ord + Clone + Send + 'static,
    T: Clone + Send + 'static,
{
    /// No errands yet. `wake` is called with the object of each errand that is over.
    pub(crate) fn new(
        leadership: Leadership,
        wake: impl Fn(&Work) + Send + Sync + 'static,
    ) -> Arc<Self> {
        Self::lasting(LONGEST, leadership, wake)
    }

    /// The same, where an errand may take so long.
    pub(crate) fn lasting(
        longest: Duration,
        leadership: Leadership,
        wake: impl Fn(&Work) + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            known: Mutex::default(),
            rooms: Rooms::default(),
            longest,
            leadership,
            wake: Box::new(wake),
        })
    }

    /// How the errands of an object stand. Those that are not here have not been begun, or were forgotten.
    pub(crate) fn of(&self, of: &Work) -> BTreeMap<K, Standing<T>> {
        let known = self.lock();
        let errands = known.get(of).into_iter().flatten();
        let standing = errands.map(|(key, errand)| {
            let standing = match errand {
                Errand::UnderWay(_) => Standing::UnderWay,
                Errand::Over(outcome) => Standing::Over(outcome.clone()),
            };
            (key.clone(), standing)
        });
        standing.collect()
    }

    /// Begins an errand, unless it has been begun. It waits for its place in that line: of all who ask a host, or
    /// a forge with one credential.
    pub(crate) fn begin<F>(
        self: &Arc<Self>,
        of: &Work,
        key: &K,
        line: &str,
        errand: impl FnOnce(Term) -> F + Send + 'static,
    ) where
        F: Future<Output = T> + Send,
    {
        self.start(of, key, Turn::Usual, vec![(line.to_owned(), errand)], only);
    }

    /// The same for one that waits behind fewer others. There are few of them, and they are short.
    pub(crate) fn begin_by<F>(
        self: &Arc<Self>,
        turn: Turn,
        of: &Work,
        key: &K,
        line: &str,
        errand: impl FnOnce(Term) -> F + Send + 'static,
    ) where
        F: Future<Output = T> + Send,
    {
        self.start(of, key, turn, vec![(line.to_owned(), errand)], only);
    }

    /// The same for one with something to do at several hosts. Each part has a place of its own, and the
    /// errand is over when all of them are. A dead host delays other parts only if there are many such hosts.
    pub(crate) fn begin_parts<E, F>(
        self: &Arc<Self>,
        of: &Work,
        key: &K,
        parts: Vec<(String, E)>,
        together: impl FnOnce(Vec<Result<T, Unfinished>>) -> Result<T, Unfinished> + Send + 'static,
    ) where
        E: FnOnce(Term) -> F + Send + 'static,
        F: Future<Output = T> + Send,
    {
        self.start(of, key, Turn::InParts, parts, together);
    }

    fn start<E, F>(
        self: &Arc<Self>,
        of: &Work,
        key: &K,
        turn: Turn,
        parts: Vec<(String, E)>,
        together: impl FnOnce(Vec<Result<T, Unfinished>>) -> Result<T, Unfinished> + Send + 'static,
    ) where
        E: FnOnce(Term) -> F + Send + 'static,
        F: Future<Output = T> + Send,
    {
        let token = CancellationToken::new();
        {
            let mut known = self.lock();
            let errands = known.entry(of.clone()).or_default();
            if errands.contains_key(key) {
                return;
            }
            let guard = token.clone().drop_guard();
            errands.insert(key.clone(), Errand::UnderWay(guard));
        }
        let (errands, of, key) = (Arc::clone(self), of.clone(), key.clone());
        tokio::spawn(async move {
            let namespace = of.key.namespace.to_string();
            let at_once = Semaphore::new(OF_AN_ERRAND);
            let parts = parts.into_iter().map(|(line, part)| {
                let (errands, namespace, at_once) = (&errands, &namespace, &at_once);
                async move {
                    let _part = at_once.acquire().await;
                    let _place = errands.rooms.take(namespace, &line, turn).await;
                    errands.run(part).await
                }
            });
            let ran = token.run_until_cancelled(join_all(parts)).await;
            if let Some(outcomes) = ran {
                let outcomes: Option<Vec<_>> = outcomes.into_iter().collect();
                errands.settle(&token, &of, &key, outcomes.map(together));
            }
        });
    }

    /// Forgets all errands of an object but these: the status that says how the others ended has been
    /// accepted, or nobody wants them any more. What is under way of them is stopped.
    pub(crate) fn keep(&self, of: &Work, wanted: impl Fn(&K) -> bool) {
        let mut known = self.lock();
        if let Some(errands) = known.get_mut(of) {
            errands.retain(|key, _| wanted(key));
            if errands.is_empty() {
                known.remove(of);
            }
        }
    }

    /// Forgets an errand that is over, so that it can be begun again.
    pub(crate) fn forget_over(&self, of: &Work, key: &K) {
        let mut known = self.lock();
        if let Some(errands) = known.get_mut(of)
            && matches!(errands.get(key), Some(Errand::Over(_)))
        {
            errands.remove(key);
        }
    }

    /// Forgets all errands of an object that is gone. Those that are `left` go on to their end, which
    /// nobody hears of.
    pub(crate) fn leave(&self, of: &Work, left: impl Fn(&K) -> bool) {
        let errands = self.lock().remove(of);
        for (key, errand) in errands.into_iter().flatten() {
            if let (Errand::UnderWay(guard), true) = (errand, left(&key)) {
                guard.disarm();
            }
        }
    }

    /// Forgets all of them: another replica leads, and decides from what it sees.
    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    /// None: this replica does not lead any more.
    async fn run<F>(&self, errand: impl FnOnce(Term) -> F) -> Option<Result<T, Unfinished>>
    where
        F: Future<Output = T>,
    {
        let mut leadership = self.leadership.clone();
        let until = Instant::now() + self.longest;
        let term = Term {
            leadership: leadership.clone(),
            until,
        };
        let running = AssertUnwindSafe(async { errand(term).await }).catch_unwind();
        tokio::select! {
            biased;
            () = leadership.lost() => None,
            ended = timeout_at(until, running) => Some(match ended {
                Ok(Ok(outcome)) => Ok(outcome),
                Ok(Err(_)) => Err(Unfinished::Defect),
                Err(_) => Err(Unfinished::Late(self.longest)),
            }),
        }
    }

    fn settle(
        &self,
        token: &CancellationToken,
        of: &Work,
        key: &K,
        outcome: Option<Result<T, Unfinished>>,
    ) {
        {
            let mut known = self.lock();
            // Under this lock it is either still wanted, or was cancelled.
            let Some(errands) = known.get_mut(of).filter(|_| !token.is_cancelled()) else {
                return;
            };
            match outcome {
                Some(outcome) => errands.insert(key.clone(), Errand::Over(outcome)),
                None => errands.remove(key),
            };
        }
        (self.wake)(of);
    }

    fn lock(&self) -> MutexGuard<'_, Known<K, T>> {
        self.known.lock()
    }
}

/// The outcome of an errand that has one part.
fn only<T>(outcomes: Vec<Result<T, Unfinished>>) -> Result<T, Unfinished> {
    let only = outcomes.into_iter().next();
    only.unwrap_or(Err(Unfinished::Defect))
}

#[cfg(test)]
mod tests;
