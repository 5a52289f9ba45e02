//! Looks at every version of every object in a namespace, from when it is started until it is ended.
//!
//! What comes in: a cluster and a namespace. What goes out: what breaks a rule. It looks from a thread
//! of its own, so that the one who ends it can wait for it wherever they are.

use std::collections::{BTreeSet, HashMap};
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result, anyhow};
use futures::StreamExt;
use futures::future::try_join_all;
use futures::stream::{BoxStream, select_all};
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use super::{of_a_change, of_a_version};
use crate::cluster::Cluster;
use crate::poll::DEADLINE;

/// The kinds whose status the controller writes: group, version, kind, and whether it is in a
/// namespace.
pub(super) const KINDS: [(&str, &str, &str, bool); 12] = [
    ("sluice.dev", "v1alpha1", "Gate", true),
    ("sluice.dev", "v1alpha1", "Gatekeeper", true),
    ("sluice.dev", "v1alpha1", "GatePolicy", false),
    ("sluice.dev", "v1alpha1", "GatedSource", true),
    ("sluice.dev", "v1alpha1", "Pipeline", true),
    ("sluice.dev", "v1alpha1", "PullRequest", true),
    ("sluice.dev", "v1alpha1", "GitRepositoryAccess", true),
    ("sluice.dev", "v1alpha1", "PromotionStrategy", true),
    ("sluice.dev", "v1alpha1", "CommitStatus", true),
    ("sluice.dev", "v1alpha1", "RevertCommit", true),
    ("sluice.dev", "v1alpha1", "Rollout", true),
    ("source.toolkit.fluxcd.io", "v1", "ExternalArtifact", true),
];

/// A watch over a namespace, and over what is in none. Dropped, it ends, and tells nobody anything.
pub struct Watch {
    end: oneshot::Sender<()>,
    thread: JoinHandle<Result<BTreeSet<String>>>,
}

impl Watch {
    /// Starts one, which sees all that is written from now on.
    ///
    /// # Errors
    ///
    /// If it cannot look.
    pub async fn start(cluster: &Cluster, namespace: &str) -> Result<Self> {
        let (end, ended) = oneshot::channel();
        let (looks, looking) = oneshot::channel();
        let (cluster, namespace) = (cluster.clone(), namespace.to_owned());
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = { runtime }.enable_all().build()?;
            runtime.block_on(watch(&cluster, &namespace, looks, ended))
        });
        let watch = Self { end, thread };
        match looking.await {
            Ok(()) => Ok(watch),
            Err(_) => Err(watch.end().err().context("it ended at once")?),
        }
    }

    /// Ends it once it has seen what is there now, and tells what breaks a rule, each once.
    ///
    /// # Errors
    ///
    /// If it could not look.
    pub fn end(self) -> Result<BTreeSet<String>> {
        // It may have ended by an error, which it tells below.
        let _ = self.end.send(());
        let joined = self.thread.join();
        joined.map_err(|_| anyhow!("the watch over statuses panicked"))?
    }
}

/// The objects of a kind.
struct Objects {
    kind: &'static str,
    api: Api<DynamicObject>,
}

/// What a watch brings.
enum Seen {
    /// A version of an object.
    Version(Value),
    /// All that was there when it began.
    All,
}

type Versions = futures::stream::SelectAll<BoxStream<'static, Seen>>;

async fn watch(
    cluster: &Cluster,
    namespace: &str,
    looks: oneshot::Sender<()>,
    mut ended: oneshot::Receiver<()>,
) -> Result<BTreeSet<String>> {
    let served = served(&cluster.client().await?, namespace).await?;
    let mut versions: Versions = select_all(served.iter().map(Objects::versions));
    let mut book = Book::default();
    let mut listed = 0;
    while listed < served.len()
        && let Some(seen) = versions.next().await
    {
        listed += usize::from(matches!(seen, Seen::All));
        book.see(seen);
    }
    // The one who started it may be gone.
    let _ = looks.send(());
    loop {
        tokio::select! {
            Some(seen) = versions.next() => book.see(seen),
            _ = &mut ended => break,
        }
    }
    let end = Instant::now() + DEADLINE;
    let there = timeout_at(end, list(&served)).await;
    if let Ok(Ok(there)) = there {
        while !there.iter().all(|object| book.has(object))
            && let Ok(Some(seen)) = timeout_at(end, versions.next()).await
        {
            book.see(seen);
        }
        // Whatever the watch has missed: as it is now.
        there.into_iter().for_each(|object| book.take(object));
    }
    Ok(book.broken)
}

/// The kinds that the server knows.
async fn served(client: &Client, namespace: &str) -> Result<Vec<Objects>> {
    let kinds = KINDS.map(async |(group, version, kind, is_namespaced)| {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let client = client.clone();
        let api = match is_namespaced {
            true => Api::namespaced_with(client, namespace, &resource),
            false => Api::all_with(client, &resource),
        };
        match api.list(&ListParams::default().limit(1)).await {
            Ok(_) => Ok(Some(Objects { kind, api })),
            Err(kube::Error::Api(refused)) if refused.code == 404 => Ok(None),
            Err(error) => Err(error).context("statuses cannot be watched"),
        }
    });
    let served = try_join_all(kinds).await?;
    Ok(served.into_iter().flatten().collect())
}

impl Objects {
    fn versions(&self) -> BoxStream<'static, Seen> {
        let kind = self.kind;
        let events = watcher(self.api.clone(), watcher::Config::default()).default_backoff();
        let versions = events.filter_map(async move |event| match event {
            Ok(Event::Apply(object) | Event::InitApply(object) | Event::Delete(object)) => {
                json(kind, object).map(Seen::Version)
            }
            Ok(Event::InitDone) => Some(Seen::All),
            // It goes on by itself.
            Ok(Event::Init) | Err(_) => None,
        });
        versions.boxed()
    }
}

/// Objects of a list do not say of which kind they are.
fn json(kind: &str, object: DynamicObject) -> Option<Value> {
    let mut object = serde_json::to_value(object).ok()?;
    object["kind"] = kind.into();
    Some(object)
}

async fn list(served: &[Objects]) -> Result<Vec<Value>> {
    let lists = served.iter().map(async |Objects { kind, api }| {
        let objects = api.list(&ListParams::default()).await?;
        let objects = objects.into_iter().filter_map(|object| json(kind, object));
        Ok::<_, anyhow::Error>(objects.collect::<Vec<_>>())
    });
    Ok(try_join_all(lists).await?.concat())
}

/// What was seen, and what was wrong with it.
#[derive(Default)]
struct Book {
    /// The last version of each object, by uid.
    last: HashMap<String, Value>,
    broken: BTreeSet<String>,
}

impl Book {
    fn see(&mut self, seen: Seen) {
        match seen {
            Seen::Version(version) => self.take(version),
            Seen::All => {}
        }
    }

    fn take(&mut self, object: Value) {
        let metadata = &object["metadata"];
        let uid = metadata["uid"].as_str().unwrap_or_default().to_owned();
        let before = self.last.get(&uid);
        if before.is_some_and(|before| version(before) >= version(&object)) {
            return;
        }
        let mut broken = of_a_version(&object);
        broken.extend(before.into_iter().flat_map(|it| of_a_change(it, &object)));
        let name = metadata["name"].as_str().unwrap_or_default();
        let what = format!("{} {name}", object["kind"].as_str().unwrap_or_default());
        let broken = broken.into_iter().map(|broken| format!("{what}: {broken}"));
        self.broken.extend(broken);
        self.last.insert(uid, object);
    }

    /// Whether it has seen this version of an object, or a later one.
    fn has(&self, object: &Value) -> bool {
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
        let last = self.last.get(uid);
        last.is_some_and(|last| version(last) >= version(object))
    }
}

/// Versions are numbers that grow.
fn version(object: &Value) -> Option<u64> {
    object["metadata"]["resourceVersion"].as_str()?.parse().ok()
}
