//! The watch of one map.
//!
//! What comes in: what the API server says of it. What goes out: a [`Sight`], and a word to those who
//! listen whenever it changes.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::runtime::utils::Backoff as _;
use kube::runtime::watcher::{self, Config, DefaultBackoff};
use tokio::sync::{broadcast, watch};
use tokio::time::{Instant, timeout, timeout_at};

use super::{ConfigMapKey, Sight};
use crate::watching::{LONGEST_PAUSE, Step, Watching};

/// How long nothing may be heard of a map before what was told counts no more: as long as of what
/// gates are decided from, and the two minutes that the last sign of life may be older. So where the
/// API server is away for everybody, that is known first.
const SILENCE: Duration = Duration::from_secs(300);
/// For how long what was told counts while it is listed again, although it is not relied on any more:
/// evidence that goes and comes within that time is not worth telling.
const GRACE: Duration = Duration::from_secs(15);

/// Keeps `tell` at what the API server says about one map.
pub(super) struct Follower {
    pub(super) api: Api<ConfigMap>,
    pub(super) key: ConfigMapKey,
    pub(super) tell: watch::Sender<Sight>,
    pub(super) changes: broadcast::Sender<ConfigMapKey>,
    /// Everything is to be listed again.
    pub(super) again: watch::Receiver<()>,
    /// When the API server was known to be away last.
    pub(super) away: watch::Receiver<Option<Instant>>,
}

impl Follower {
    /// Until nobody asks for maps any more.
    pub(super) async fn run(mut self) {
        let name = format!("metadata.name={}", self.key.name);
        let mut watching = Watching::new(self.api.clone(), Config::default().fields(&name));
        let mut delays = DefaultBackoff::default();
        let (mut wait, mut why) = (Duration::ZERO, None);
        // What was listed so far, and until when what was told counts.
        let (mut listed, mut until) = (None, Instant::now());
        loop {
            let next = async {
                pause(wait).await;
                watching.next().await
            };
            let step = tokio::select! {
                biased;
                again = self.again.changed() => {
                    if again.is_err() {
                        return;
                    }
                    until = until.min(Instant::now() + GRACE);
                    wait = Duration::ZERO;
                    watching.list_again();
                    continue;
                }
                () = reach(until), if self.is_told() => {
                    until = self.doubt(why.take());
                    watching.list_again();
                    continue;
                }
                step = next => step,
            };
            wait = Duration::ZERO;
            match step {
                Ok(Step::Opened | Step::Ended) => continue,
                Ok(Step::Begun) => {
                    listed = None;
                    continue;
                }
                Ok(Step::Page(maps)) => listed = maps.into_iter().next().or(listed),
                Ok(Step::Listed) => self.told(listed.take()),
                Ok(Step::Apply(map)) => self.told(Some(map)),
                Ok(Step::Delete(_)) => self.told(None),
                Ok(Step::Alive) => delays.reset(),
                Err(error) => {
                    let longest = match self.is_told() {
                        true => LONGEST_PAUSE,
                        false => Duration::MAX,
                    };
                    wait = delays.next().unwrap_or(LONGEST_PAUSE).min(longest);
                    why = Some(trouble(&error));
                    self.news(match is_forbidden(&error) {
                        true => Sight::Forbidden,
                        false => Sight::Nothing(why.clone()),
                    });
                    continue;
                }
            }
            until = Instant::now() + SILENCE;
        }
    }

    fn is_told(&self) -> bool {
        matches!(*self.tell.borrow(), Sight::Told(_))
    }

    fn told(&self, map: Option<ConfigMap>) {
        self.news(Sight::Told(map.map(|map| Arc::new(stripped(map)))));
    }

    fn news(&self, news: Sight) {
        if self.tell.send_if_modified(|sight| sight.take_in(news)) {
            self.changed();
        }
    }

    /// Too little was heard: what was told counts no more, unless the API server is away for everybody.
    /// Returns until when it counts.
    fn doubt(&self, why: Option<String>) -> Instant {
        let now = Instant::now();
        let away = self.away.borrow().map(|away| away + GRACE);
        if let Some(until) = away.filter(|until| *until > now) {
            return until;
        }
        let why = why.unwrap_or_else(|| "it says nothing".to_owned());
        self.tell.send_replace(Sight::Nothing(Some(why)));
        self.changed();
        now
    }

    fn changed(&self) {
        // Nobody listens: nobody waits.
        let _ = self.changes.send(self.key.clone());
    }
}

async fn pause(wait: Duration) {
    if !wait.is_zero() {
        let _ = timeout(wait, pending::<()>()).await;
    }
}

async fn reach(at: Instant) {
    let _ = timeout_at(at, pending::<()>()).await;
}

/// Without what nobody reads.
fn stripped(mut map: ConfigMap) -> ConfigMap {
    map.metadata.managed_fields = None;
    map.metadata.annotations = None;
    map
}

fn is_forbidden(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => {
            matches!(error, kube::Error::Api(status) if status.is_forbidden())
        }
        watcher::Error::WatchError(status) => status.is_forbidden(),
        watcher::Error::NoResourceVersion => false,
    }
}

/// What went wrong, in words that fit a status.
fn trouble(error: &watcher::Error) -> String {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => {
            format!("it answers with status {} {}", status.code, status.reason)
        }
        _ => "it cannot be reached".to_owned(),
    }
}
