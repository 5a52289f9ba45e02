//! How many pods there were, and how many of them served, at every instant of a test.
//!
//! What comes in: a namespace. What goes out: the fewest pods that were ready at once, and the most that there
//! were, of all versions of all pods that the API server has had. A pod that is being deleted counts no more.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Result, bail, ensure};
use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, ResourceExt};
use parking_lot::Mutex;
use tokio::task::JoinSet;

use super::pods::is_ready;
use crate::poll::{DEADLINE, poll};

/// The extremes of some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extremes {
    /// The fewest pods that were ready at once.
    pub fewest_ready: usize,
    /// The most pods that there were at once.
    pub most: usize,
}

/// A watch over the pods of a namespace. Dropped, it ends.
pub struct Serving {
    pods: Api<Pod>,
    book: Arc<Mutex<Book>>,
    _watch: JoinSet<()>,
}

#[derive(Default)]
struct Book {
    /// Whether each is ready, with the version that says so, by its uid.
    pods: BTreeMap<String, (String, bool)>,
    /// None: not all have been seen yet.
    extremes: Option<Extremes>,
    /// Each change, in a line.
    story: Vec<String>,
    /// The list was read again: what was in between is not known.
    is_torn: bool,
}

impl Serving {
    /// Starts one, from what there is now.
    ///
    /// # Errors
    ///
    /// If the pods cannot be listed in time.
    pub(super) async fn start(pods: Api<Pod>) -> Result<Self> {
        let book = Arc::<Mutex<Book>>::default();
        let mut watch = JoinSet::new();
        let (seen, noted) = (pods.clone(), Arc::clone(&book));
        watch.spawn(async move {
            let events = watcher(seen, watcher::Config::default()).default_backoff();
            let mut events = events.boxed();
            while let Some(event) = events.next().await {
                // What fails is listed again.
                if let Ok(event) = event {
                    noted.lock().see(event);
                }
            }
        });
        let serving = Self {
            pods,
            book,
            _watch: watch,
        };
        serving.extremes().await?;
        Ok(serving)
    }

    /// The extremes up to now.
    ///
    /// # Errors
    ///
    /// If not every version was seen.
    pub async fn extremes(&self) -> Result<Extremes> {
        let (extremes, is_torn) = poll(DEADLINE, "the pods to be seen", async || {
            let all = self.pods.list(&ListParams::default()).await?;
            let all = all.items.iter().filter(|pod| counts(pod)).map(entry);
            let all: BTreeMap<_, _> = all.collect();
            let book = self.book.lock();
            let Some(extremes) = book.extremes.filter(|_| all == book.pods) else {
                bail!("{:?} are seen, of {all:?}", book.pods);
            };
            Ok((extremes, book.is_torn))
        })
        .await?;
        ensure!(!is_torn, "the watch broke off: {extremes:?}, at least");
        Ok(extremes)
    }

    /// The extremes were these.
    ///
    /// # Errors
    ///
    /// If they were others: then every change of a pod is told.
    pub async fn were(&self, expected: Extremes) -> Result<()> {
        let found = self.extremes().await?;
        let story = || self.book.lock().story.join("\n");
        ensure!(
            found == expected,
            "{found:?} instead of {expected:?}:\n{}",
            story()
        );
        Ok(())
    }
}

fn counts(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_none()
}

fn entry(pod: &Pod) -> (String, (String, bool)) {
    let version = pod.resource_version().unwrap_or_default();
    let ready = pod.status.as_ref().is_some_and(is_ready);
    (pod.uid().unwrap_or_default(), (version, ready))
}

impl Book {
    fn see(&mut self, event: Event<Pod>) {
        match event {
            Event::Init => {
                self.is_torn |= self.extremes.is_some();
                self.pods.clear();
            }
            Event::InitApply(pod) => self.take(&pod),
            Event::InitDone => self.note(),
            Event::Apply(pod) => {
                self.take(&pod);
                self.note();
            }
            Event::Delete(pod) => {
                self.tell(&pod, "gone");
                self.pods.remove(&pod.uid().unwrap_or_default());
                self.note();
            }
        }
    }

    fn take(&mut self, pod: &Pod) {
        let is_there = counts(pod);
        let (uid, seen) = entry(pod);
        self.tell(
            pod,
            match (is_there, seen.1) {
                (false, _) => "going",
                (true, true) => "ready",
                (true, false) => "not ready",
            },
        );
        match is_there {
            true => self.pods.insert(uid, seen),
            false => self.pods.remove(&uid),
        };
    }

    fn tell(&mut self, pod: &Pod, how: &str) {
        let uid = pod.uid().unwrap_or_default();
        let version = pod.resource_version().unwrap_or_default();
        let line = format!("{version} {} {uid} {how}", pod.name_any());
        self.story.push(line);
    }

    fn note(&mut self) {
        let ready = self.pods.values().filter(|(_, ready)| *ready).count();
        let most = self.pods.len();
        let extremes = self.extremes.get_or_insert(Extremes {
            fewest_ready: ready,
            most,
        });
        extremes.fewest_ready = extremes.fewest_ready.min(ready);
        extremes.most = extremes.most.max(most);
    }
}
