//! Evidence over time: an API server in memory, a clock that is set.

use std::io;
use std::net::IpAddr;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use serde_json::{Value, json};
use sluice_core::gatekeeper::Evidence;
use sluice_core::gatekeeper::schedule::Reading;
use sluice_egress::{Egress, Limits, Names, Rules};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::*;
use crate::observe::clock::SetClock;
use fake_api::FakeApi;

#[path = "../../../../gatekeepers/src/fake_api.rs"]
mod fake_api;

/// A tracker on an API server in memory, with a clock that stands still.
struct Stage {
    api: FakeApi,
    clients: Clients,
    clock: Arc<SetClock>,
    store: Arc<EvidenceStore>,
    tracker: Tracker,
    changed: UnboundedReceiver<ObjectKey>,
    lookups: Arc<AtomicUsize>,
}

/// Every name is at an address that is refused; each look-up is counted.
struct Counting(Arc<AtomicUsize>);

impl Names for Counting {
    fn lookup<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        async { Ok(vec![IpAddr::from([127, 0, 0, 1])]) }.boxed()
    }
}

impl Stage {
    fn new() -> Self {
        let api = FakeApi::new();
        let lookups = Arc::new(AtomicUsize::new(0));
        let names = Arc::new(Counting(Arc::clone(&lookups)));
        let egress = Egress::with(Rules::default(), Limits::default(), names).unwrap();
        let clients = Clients::new(api.client(), egress);
        let clock = Arc::new(SetClock::new(at(0)));
        let store = Arc::new(EvidenceStore::default());
        let (tell, changed) = unbounded_channel();
        let tracker = Tracker::new(
            clients.clone(),
            Arc::clone(&clock) as Arc<dyn Clock>,
            Arc::clone(&store),
            move |key| tell.send(key.clone()).unwrap(),
        );
        Self {
            api,
            clients,
            clock,
            store,
            tracker,
            changed,
            lookups,
        }
    }

    /// The next gatekeeper whose evidence has changed.
    async fn changed(&mut self) -> String {
        soon(self.changed.recv()).await.unwrap().name.to_string()
    }

    /// Whether nobody's evidence has changed, once everything that is under way is done.
    async fn is_quiet(&mut self) -> bool {
        for _ in 0..1000 {
            tokio::task::yield_now().await;
        }
        self.changed.try_recv().is_err()
    }

    /// Waits until names were looked up so many times.
    async fn looked_up(&self, times: usize) {
        let lookups = || self.lookups.load(Ordering::SeqCst);
        soon(async {
            while lookups() < times {
                tokio::task::yield_now().await;
            }
        })
        .await;
        assert_eq!(lookups(), times);
    }

    async fn watched(&self, maps: usize) {
        soon(async {
            while self.clients.config_maps.watched() != maps {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}

async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), future)
        .await
        .unwrap()
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn calendar(events: usize) -> String {
    let event = "BEGIN:VEVENT\nUID:1\nDTSTART:20260101T090000\nDTEND:20260101T170000\nEND:VEVENT\n";
    format!("BEGIN:VCALENDAR\n{}END:VCALENDAR\n", event.repeat(events))
}

/// A gatekeeper that is closed during the events of these calendars.
fn gatekeeper(namespace: &str, name: &str, calendars: &[Value]) -> Arc<Gatekeeper> {
    let windows: Vec<_> = calendars
        .iter()
        .map(|calendar| json!({ "calendar": calendar }))
        .collect();
    let object = json!({
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": "Gatekeeper",
        "metadata": { "namespace": namespace, "name": name, "uid": name, "generation": 1 },
        "spec": { "schedule": { "closed": windows } },
    });
    Arc::new(serde_json::from_value(object).unwrap())
}

/// A gatekeeper with this spec.
fn keeper(name: &str, spec: &Value) -> Arc<Gatekeeper> {
    let object = json!({
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": "Gatekeeper",
        "metadata": { "namespace": "apps", "name": name, "uid": name, "generation": 1 },
        "spec": spec,
    });
    Arc::new(serde_json::from_value(object).unwrap())
}

/// The same with another spec.
fn respecified(object: &Gatekeeper, calendars: &[Value]) -> Arc<Gatekeeper> {
    let name = object.metadata.name.as_deref().unwrap();
    let mut changed = (*gatekeeper(
        object.metadata.namespace.as_deref().unwrap(),
        name,
        calendars,
    ))
    .clone();
    changed.metadata.generation = object.metadata.generation.map(|generation| generation + 1);
    Arc::new(changed)
}

/// The same with a request for a look.
fn asked(object: &Gatekeeper, when: &str) -> Arc<Gatekeeper> {
    let mut asked = object.clone();
    let annotations = asked.metadata.annotations.get_or_insert_default();
    annotations.insert(REQUESTED_AT.to_owned(), when.to_owned());
    Arc::new(asked)
}

fn in_map(name: &str) -> Value {
    json!({ "configMapRef": { "name": name, "key": "ics" } })
}

fn at_url() -> Value {
    json!({ "url": "https://calendar.test/holidays.ics", "interval": "4m" })
}

/// The numbers of events that were read.
fn events(evidence: &Evidence) -> Vec<usize> {
    let count = |reading: &Reading| match reading {
        Reading::Read { calendar, .. } => calendar.events(),
        Reading::Unavailable(_) | Reading::Broken(_) => panic!("it was not read: {reading:?}"),
    };
    calendars(evidence).iter().map(count).collect()
}

fn calendars(evidence: &Evidence) -> &[Reading] {
    evidence.get::<Vec<Reading>>().map_or(&[], Vec::as_slice)
}

fn is_unavailable(evidence: &Evidence) -> bool {
    matches!(calendars(evidence), [Reading::Unavailable(_)])
}

#[tokio::test]
async fn evidence_is_there_once_it_was_observed_and_follows_its_source() {
    let mut stage = Stage::new();
    stage.api.put("apps", "uk", &[("ics", &calendar(1))]);
    stage.api.put("apps", "de", &[("ics", &calendar(5))]);
    let uk = gatekeeper("apps", "uk", &[in_map("uk")]);
    assert_eq!(stage.store.of(&uk), Evidence::default());
    stage.tracker.track(&uk);
    assert_eq!(stage.changed().await, "uk");
    assert_eq!(events(&stage.store.of(&uk)), [1]);
    let de = gatekeeper("apps", "de", &[in_map("de")]);
    stage.tracker.track(&de);
    assert_eq!(stage.changed().await, "de");

    stage.api.put("apps", "uk", &[("ics", &calendar(2))]);
    assert_eq!(stage.changed().await, "uk");
    assert_eq!(
        (events(&stage.store.of(&uk)), events(&stage.store.of(&de))),
        (vec![2], vec![5])
    );
    stage.api.delete("apps", "uk");
    assert_eq!(stage.changed().await, "uk");
    assert!(is_unavailable(&stage.store.of(&uk)));
    assert!(stage.is_quiet().await);
}

#[tokio::test]
async fn what_is_not_new_is_not_observed_again() {
    let mut stage = Stage::new();
    let object = gatekeeper("apps", "remote", &[at_url()]);
    for _ in 0..3 {
        stage.tracker.track(&object);
    }
    assert_eq!(stage.changed().await, "remote");
    stage.tracker.track(&object);
    // A status that was written: another object, nothing to look at.
    stage.tracker.track(&Arc::new((*object).clone()));
    assert!(stage.is_quiet().await);
    stage.looked_up(1).await;
}

#[tokio::test]
async fn a_request_for_a_look_is_answered_at_once() {
    let mut stage = Stage::new();
    let object = gatekeeper("apps", "remote", &[at_url()]);
    stage.tracker.track(&object);
    stage.changed().await;
    stage.looked_up(1).await;
    let object = asked(&object, "now");
    stage.tracker.track(&object);
    stage.looked_up(2).await;
    stage.tracker.track(&object);
    stage.tracker.track(&asked(&object, "now again"));
    stage.looked_up(3).await;
    // The same outcome three times: nobody need know.
    assert!(stage.is_quiet().await);
}

#[tokio::test]
async fn an_address_is_read_again_when_the_clock_says_so() {
    let mut stage = Stage::new();
    stage
        .tracker
        .track(&gatekeeper("apps", "remote", &[at_url()]));
    stage.changed().await;
    stage.looked_up(1).await;
    stage.clock.set(at(59));
    assert!(stage.is_quiet().await);
    stage.looked_up(1).await;
    // After failures: 1m, 2m, then the interval of 4m.
    for (second, times) in [(60, 2), (180, 3), (420, 4), (660, 5)] {
        stage.clock.set(at(second - 1));
        assert!(stage.is_quiet().await);
        stage.looked_up(times - 1).await;
        stage.clock.set(at(second));
        stage.looked_up(times).await;
        assert!(stage.is_quiet().await);
    }
}

#[tokio::test]
async fn who_is_slow_delays_nobody_else() {
    let mut stage = Stage::new();
    stage.api.silence("slow");
    stage.api.put("slow", "map", &[("ics", &calendar(1))]);
    stage.api.put("quick", "map", &[("ics", &calendar(2))]);
    let slow: Vec<_> = (0..100)
        .map(|n| gatekeeper("slow", &format!("slow-{n}"), &[in_map("map")]))
        .collect();
    let quick = gatekeeper("quick", "quick", &[in_map("map")]);
    for object in &slow {
        stage.tracker.track(object);
    }
    stage.tracker.track(&quick);
    assert_eq!(stage.changed().await, "quick");
    assert_eq!(events(&stage.store.of(&quick)), [2]);
    assert!(stage.is_quiet().await);
    stage.api.speak("slow");
    for _ in &slow {
        stage.changed().await;
    }
    assert!(
        slow.iter()
            .all(|object| events(&stage.store.of(object)) == [1])
    );
    // One watch serves them all.
    assert_eq!(stage.clients.config_maps.watched(), 2);
}

#[tokio::test]
async fn evidence_is_for_the_spec_that_asks_whatever_the_order_of_its_windows() {
    let mut stage = Stage::new();
    stage.api.put("apps", "uk", &[("ics", &calendar(1))]);
    stage.api.put("apps", "de", &[("ics", &calendar(2))]);
    let first = gatekeeper("apps", "both", &[in_map("uk"), in_map("de")]);
    stage.tracker.track(&first);
    stage.changed().await;
    assert_eq!(events(&stage.store.of(&first)), [1, 2]);

    // Before it was looked at again.
    let turned = respecified(&first, &[in_map("de"), in_map("uk")]);
    assert_eq!(events(&stage.store.of(&turned)), [2, 1]);
    let more = respecified(&turned, &[in_map("de"), in_map("fr"), in_map("uk")]);
    assert_eq!(stage.store.of(&more), Evidence::default());
    let mut other = (*first).clone();
    other.metadata.uid = Some("another".to_owned());
    assert_eq!(stage.store.of(&other), Evidence::default());

    stage.tracker.track(&turned);
    assert!(stage.is_quiet().await);
    assert_eq!(events(&stage.store.of(&turned)), [2, 1]);
}

#[tokio::test]
async fn a_new_spec_does_not_wait_for_what_the_old_one_waited_for() {
    let mut stage = Stage::new();
    stage.api.silence("apps");
    let first = gatekeeper("apps", "moved", &[in_map("uk")]);
    stage.tracker.track(&first);
    assert!(stage.is_quiet().await);
    let moved = respecified(&first, &[at_url()]);
    stage.tracker.track(&moved);
    assert_eq!(stage.changed().await, "moved");
    assert!(is_unavailable(&stage.store.of(&moved)));
}

#[tokio::test]
async fn what_is_gone_or_of_another_kind_is_observed_no_more() {
    let mut stage = Stage::new();
    for name in ["a", "b", "c"] {
        stage.api.put("apps", name, &[("ics", &calendar(1))]);
    }
    let [a, b, c] = ["a", "b", "c"].map(|name| gatekeeper("apps", name, &[in_map(name)]));
    for object in [&a, &b, &c] {
        stage.tracker.track(object);
        stage.changed().await;
    }
    stage.tracker.forget(&ObjectKey::of(a.as_ref()));
    let mut manual = (*b).clone();
    manual.spec = serde_json::from_value(json!({ "manual": { "state": "open" } })).unwrap();
    stage.tracker.track(&Arc::new(manual));
    let mut suspended = (*c).clone();
    suspended.spec.suspend = true;
    stage.tracker.track(&Arc::new(suspended));
    for object in [&a, &b, &c] {
        assert_eq!(stage.store.of(object), Evidence::default());
    }
    for name in ["a", "b", "c"] {
        stage.api.put("apps", name, &[("ics", &calendar(2))]);
    }
    assert!(stage.is_quiet().await);
    // Their watches follow them after a minute.
    assert_eq!(stage.clients.config_maps.watched(), 3);
    stage.clock.set(at(59));
    assert!(stage.is_quiet().await);
    assert_eq!(stage.clients.config_maps.watched(), 3);
    stage.clock.set(at(60));
    stage.watched(0).await;
}

#[tokio::test]
async fn another_object_of_the_same_name_begins_anew() {
    let mut stage = Stage::new();
    stage.api.put("apps", "uk", &[("ics", &calendar(1))]);
    let first = gatekeeper("apps", "uk", &[in_map("uk")]);
    stage.tracker.track(&first);
    stage.changed().await;
    let mut second = (*first).clone();
    second.metadata.uid = Some("another".to_owned());
    let second = Arc::new(second);
    stage.tracker.track(&second);
    assert_eq!(stage.store.of(&first), Evidence::default());
    stage.changed().await;
    assert_eq!(events(&stage.store.of(&second)), [1]);
}

#[tokio::test]
async fn everything_ends_with_the_tracker() {
    let mut stage = Stage::new();
    stage
        .tracker
        .track(&gatekeeper("apps", "remote", &[at_url()]));
    stage.changed().await;
    let replaced = Stage::new();
    stage.tracker = replaced.tracker;
    stage.clock.set(at(10_000));
    assert!(soon(stage.changed.recv()).await.is_none());
    assert_eq!(stage.lookups.load(Ordering::SeqCst), 1);
}

/// What a status reports was true before this controller started: everything that can be observed is
/// observed.
#[tokio::test]
async fn every_kind_of_evidence_is_waited_for() {
    let stage = Stage::new();
    let waits = || stage.store.first_looks().now_or_never().is_none();
    let map = json!({ "configMapRef": { "name": "days", "key": "uk.ics" } });
    let url = "https://prometheus.test";
    let objects = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "uk" });
    let looked_at = [
        json!({ "schedule": { "closed": [{ "calendar": map }] } }),
        json!({ "revisions": { "allowFrom": [map] } }),
        json!({ "approval": { "required": 1, "forbidSelf": map } }),
        json!({ "metric": { "address": url, "query": "up", "range": { "max": 1 } } }),
        json!({ "http": { "url": url } }),
        json!({ "objects": { "serviceAccountName": "reader", "of": [objects] } }),
    ];
    let key = |name: &str| ObjectKey {
        namespace: "apps".into(),
        name: name.into(),
    };
    for (n, spec) in looked_at.iter().enumerate() {
        let name = n.to_string();
        assert!(!waits(), "{spec}");
        stage.tracker.track(&keeper(&name, spec));
        assert!(waits(), "{spec}");
        stage.tracker.forget(&key(&name));
    }
    let manual = json!({ "manual": { "state": "open" } });
    stage.tracker.track(&keeper("manual", &manual));
    assert!(!waits());
    for spec in [&looked_at[0], &looked_at[1]] {
        stage.tracker.track(&keeper("map", spec));
        assert!(waits());
        soon(stage.store.first_looks()).await;
        stage.tracker.forget(&key("map"));
    }
}
