//! One look at one object: gather (I/O in), decide (pure, in `sluice-core`), apply (I/O out).
//!
//! A kind is a folder: `gather.rs` collects everything that the decision needs, `apply.rs` carries
//! it out. Events only wake; a look takes nothing but the object's name.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use kube::Client;

use crate::act::shard::Shard;
use crate::act::waker::Waker;
use crate::artifacts::Store;
use crate::cluster::key::Work;
use crate::observe::clock::Clock;
use crate::observe::world::World;
use crate::tell::audit::Audit;
use crate::tell::counters::{Counters, KindLabels};
use crate::tell::decisions::Decisions;
use crate::tell::definitions::{Definitions, Telling};
use crate::tell::events::Events;

pub mod gate;
pub mod gate_policy;
pub mod gated_source;
pub mod gatekeeper;
mod patch;
mod status;

/// When is looked again at what waits for the watches to be heard of.
const SOON: SignedDuration = SignedDuration::from_secs(5);

/// What every look needs.
pub struct Context {
    /// The API server.
    pub client: Client,
    /// The caches.
    pub world: Arc<World>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Where events are put.
    pub events: Events,
    /// Where it is recorded.
    pub audit: Audit,
    /// Where it is told what was decided about what goes out.
    pub decisions: Arc<Decisions>,
    /// What is not told yet of what objects are.
    pub definitions: Arc<Definitions>,
    /// Where artifacts are stored. None: not here, since there is no `--storage-path`.
    pub artifacts: Option<Arc<Store>>,
    /// What is counted.
    pub counters: Arc<Counters>,
    /// The objects that this controller writes to.
    pub shard: Shard,
    /// What was written and the caches may not have yet.
    pub written: Arc<Written>,
    /// Whom to wake by what was written.
    pub(crate) waker: Waker,
}

impl Context {
    /// The outcome of a look while too little is heard of a watch, and statuses do not tell of that yet.
    /// Those who ask are told at once. But what is decided now is written only if the silence lasts:
    /// otherwise it would all be taken back after it, and what has gone out be held for a moment.
    fn waits(&self, at: Timestamp) -> Option<Outcome> {
        let waits = self.world.silence().is_some() && !self.world.tells_silence();
        waits.then(|| Outcome::Wake(at.checked_add(SOON).ok()))
    }

    /// Where it is told what objects are.
    fn telling(&self) -> Telling<'_> {
        Telling {
            definitions: &self.definitions,
            events: &self.events,
            audit: &self.audit,
        }
    }

    /// Notes a write.
    fn wrote(&self, kind: &'static str) {
        self.counters
            .writes
            .get_or_create(&KindLabels { kind })
            .inc();
    }
}

/// What a look came to.
#[derive(Debug)]
pub enum Outcome {
    /// Look again at an instant, or when something changes.
    Wake(Option<Timestamp>),
    /// The same, but something was refused, and the status says so: it is to be tried again.
    Unfinished {
        /// What was refused.
        error: Box<kube::Error>,
        /// When to look again, too.
        wake: Option<Timestamp>,
    },
    /// The object is gone.
    Gone,
    /// It is another shard's.
    NotOurs,
}

/// Looks at one object.
///
/// # Errors
/// The API server refused a write, or did not answer.
pub async fn look(context: &Context, work: &Work) -> Result<Outcome, kube::Error> {
    match work {
        Work::Gate(key) => gate::look(context, key).await,
        Work::Gatekeeper(key) => gatekeeper::look(context, key).await,
        Work::GatePolicy(key) => gate_policy::look(context, key).await,
        Work::GatedSource(key) => gated_source::look(context, key).await,
    }
}

/// What was written and the caches do not have yet: until the watch has brought it back, the next
/// look takes it from here. Without it a second look would write the same again, or complete the
/// same force a second time.
///
/// Versions of one kind of object are numbers that grow, as Kubernetes has it (KEP 5504); where
/// they are not, nothing is remembered, and the price is a second write.
#[derive(Default)]
pub struct Written(Mutex<HashMap<Work, Ahead>>);

/// How an object is ahead of the caches.
#[derive(Clone, Debug)]
struct Ahead {
    /// The version as of which the caches have it all.
    version: u64,
    status: Option<serde_json::Value>,
    annotations: BTreeMap<String, String>,
}

impl Written {
    fn status<S: serde::Serialize>(&self, work: &Work, version: Option<&str>, status: &S) {
        let status = serde_json::to_value(status).ok();
        self.note(work, version, |ahead| ahead.status = status);
    }

    fn annotations(&self, work: &Work, version: Option<&str>, set: BTreeMap<String, String>) {
        self.note(work, version, |ahead| ahead.annotations = set);
    }

    fn note(&self, work: &Work, version: Option<&str>, change: impl FnOnce(&mut Ahead)) {
        let Some(version) = version.and_then(|version| version.parse().ok()) else {
            return;
        };
        let mut all = self.lock();
        let ahead = all.entry(work.clone()).or_insert(Ahead {
            version,
            status: None,
            annotations: BTreeMap::new(),
        });
        ahead.version = version;
        change(ahead);
    }

    /// The watch has brought `version` of the object. Returns whether it is of our own making, or
    /// older than that: what we write goes onto the version that it was decided from, so that
    /// there is no news in it, and nobody has to look again.
    pub(crate) fn came_back(&self, work: &Work, version: Option<&str>) -> bool {
        let Some(version) = version.and_then(|version| version.parse::<u64>().ok()) else {
            return false;
        };
        let mut all = self.lock();
        match all.get(work).map(|ahead| ahead.version.cmp(&version)) {
            None => false,
            Some(Ordering::Greater) => true,
            Some(order) => {
                all.remove(work);
                order == Ordering::Equal
            }
        }
    }

    /// What `version` of the object lacks.
    fn beyond(&self, work: &Work, version: Option<&str>) -> Option<Ahead> {
        let version: u64 = version?.parse().ok()?;
        let mut all = self.lock();
        if all.get(work)?.version > version {
            return all.get(work).cloned();
        }
        all.remove(work);
        None
    }

    /// The object is gone.
    pub(crate) fn forget(&self, work: &Work) {
        self.lock().remove(work);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Work, Ahead>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ahead {
    fn status<S: serde::de::DeserializeOwned>(&self) -> Option<S> {
        serde_json::from_value(self.status.clone()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use http::Method;
    use serde_json::{Value, json};

    use super::*;
    use crate::cluster::key::ObjectKey;
    use crate::observe::cache::Seen;
    use crate::observe::clock::{Jumps, SetClock};

    fn object<K: serde::de::DeserializeOwned>(kind: &str, spec: &Value) -> Option<Seen<K>> {
        let object = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": kind, "spec": spec,
            "metadata": { "namespace": "apps", "name": "app", "resourceVersion": "5" },
        });
        Some(Seen::Object(Arc::new(
            serde_json::from_value(object).unwrap(),
        )))
    }

    /// Otherwise what is open would be held, and what is suspended by a held source be suspended.
    #[tokio::test]
    async fn nothing_is_written_in_a_silence_before_it_has_lasted() {
        let at: Timestamp = "2026-11-20T12:00:00Z".parse().unwrap();
        let clock = Arc::new(SetClock::new(at));
        let jumps = Arc::new(Jumps::new(clock.clone()));
        let seen = Arc::<Mutex<Vec<Method>>>::default();
        let client = gated_source::tests::api("5", &seen);
        let world = gated_source::tests::world().with_jumps(jumps);
        let context = gated_source::tests::context(client, world, clock.clone());
        let key = ObjectKey {
            namespace: "apps".into(),
            name: "app".into(),
        };
        let world = &context.world;
        let gates = json!({ "refs": [{ "name": "production" }] });
        world.gates.hold(&key, object("Gate", &json!({})));
        let keeper = object("Gatekeeper", &json!({ "gates": gates }));
        world.gatekeepers.hold(&key, keeper);
        let source = json!({ "kind": "GitRepository", "name": "upstream" });
        let source = json!({ "sourceRef": source, "gates": gates });
        world
            .gated_sources
            .hold(&key, object("GatedSource", &source));

        let now = at + SignedDuration::from_secs(3600);
        clock.step(now);
        assert!(world.silence().is_some());
        for work in [Work::Gate, Work::Gatekeeper, Work::GatedSource] {
            let work = work(key.clone());
            let outcome = look(&context, &work).await.unwrap();
            let Outcome::Wake(Some(again)) = outcome else {
                panic!("{work}: {outcome:?}");
            };
            assert_eq!(again, now + SOON, "{work}");
        }
        assert_eq!(*seen.lock().unwrap(), Vec::<Method>::new());
        // It lasts: statuses tell of it.
        world.tell_silence(true);
        let _ = look(&context, &Work::Gatekeeper(key)).await;
        assert!(!seen.lock().unwrap().is_empty());
    }

    #[test]
    fn what_was_written_is_remembered_until_the_caches_have_it() {
        let work = Work::Gate(ObjectKey {
            namespace: "n".into(),
            name: "a".into(),
        });
        let written = Written::default();
        assert!(written.beyond(&work, Some("1")).is_none());
        written.status(&work, Some("3"), &"status");
        let set: BTreeMap<_, _> = [("a".to_owned(), "b".to_owned())].into();
        written.annotations(&work, Some("12"), set.clone());
        let ahead = written.beyond(&work, Some("3")).unwrap();
        assert_eq!(
            (ahead.status(), ahead.annotations),
            (Some("status".to_owned()), set)
        );
        assert!(written.beyond(&work, Some("12")).is_none());
        assert!(written.beyond(&work, Some("3")).is_none());
        written.status(&work, Some("opaque"), &"status");
        assert!(written.beyond(&work, Some("3")).is_none());
    }

    #[test]
    fn what_comes_back_is_no_news() {
        let work = Work::Gate(ObjectKey {
            namespace: "n".into(),
            name: "a".into(),
        });
        let written = Written::default();
        let come_back = |version| written.came_back(&work, Some(version));
        assert!(!come_back("1"));
        for version in ["3", "12"] {
            written.status(&work, Some(version), &"status");
        }
        // The first of the two is behind the second, which is still to come.
        assert!(come_back("3"));
        assert!(written.beyond(&work, Some("3")).is_some());
        assert!(come_back("12"));
        // It is forgotten, and whatever comes then is somebody else's.
        assert!(!come_back("12"));
        written.status(&work, Some("20"), &"status");
        assert!(!come_back("21"));
        assert!(written.beyond(&work, Some("3")).is_none());
        written.status(&work, Some("30"), &"status");
        assert!(!come_back("opaque"));
    }
}
