use std::sync::Mutex;

use http::Method;
use serde_json::{Value, json};

use super::*;
use crate::observe::clock::{Jumps, SetClock};

mod probe;

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
    for kind in [Kind::Gate, Kind::Gatekeeper, Kind::GatedSource] {
        let work = Work::own(kind, key.clone());
        let outcome = look(&context, &work).await.unwrap();
        let Outcome::Wake(Some(again)) = outcome else {
            panic!("{work}: {outcome:?}");
        };
        assert_eq!(again, now + SOON, "{work}");
    }
    assert_eq!(*seen.lock().unwrap(), Vec::<Method>::new());
    // It lasts: statuses tell of it.
    world.tell_silence(true);
    let _ = look(&context, &Work::own(Kind::Gatekeeper, key)).await;
    assert!(!seen.lock().unwrap().is_empty());
}
