use std::sync::Arc;

use serde_json::json;
use sluice_crds::GatePolicy;

use super::*;
use crate::cluster::key::ObjectKey;
use crate::cluster::kind::Kind;
use crate::observe::clock::{Clock, SetClock};
use crate::tell::counters::Counters;

/// The company-wide freeze, over these gates, as its status has seen it at a generation.
fn policy(generation: i64, observed: i64, gates: &[&str], by: &str) -> Seen<GatePolicy> {
    let refs: Vec<_> = gates
        .iter()
        .map(|name| json!({"name": name, "namespace": "shared"}))
        .collect();
    let at = format!("2026-11-20T12:00:0{generation}Z");
    let policy = json!({
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": "GatePolicy",
        "metadata": {
            "name": "freeze",
            "generation": generation,
            "managedFields": [{"manager": by, "time": at}, {"manager": "flux", "time": "2026-11-01T00:00:00Z"}],
        },
        "spec": {"gates": {"refs": refs}},
        "status": {"observedGeneration": observed},
    });
    Seen::Object(Arc::new(serde_json::from_value(policy).unwrap()))
}

#[tokio::test]
async fn a_change_is_told_once_with_what_was_there_before() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.log");
    let clock: Arc<dyn Clock> = Arc::new(SetClock::new("2026-11-20T12:00:00Z".parse().unwrap()));
    let counters = Arc::<Counters>::default();
    let (events, sending) = Events::new(Arc::clone(&counters), Arc::clone(&clock));
    let destination = path.to_str().unwrap().parse().unwrap();
    let audit = Audit::start(destination, false, "c-0", clock, counters).unwrap();
    let definitions = Definitions::default();
    let telling = Telling {
        definitions: &definitions,
        events: &events,
        audit: &audit,
    };
    let key = ObjectKey {
        namespace: "".into(),
        name: "freeze".into(),
    };
    let work = Work::own(Kind::GatePolicy, key.clone());
    let (first, second, third) = (
        policy(1, 1, &["freeze"], "flux"),
        policy(2, 1, &["freeze", "audit"], "alice"),
        policy(3, 1, &["audit"], "bob"),
    );
    for (before, now) in [(&first, &second), (&second, &third)] {
        let change = Change {
            key: &key,
            before: Some(before),
            now: Some(now),
        };
        definitions.note(&work, &change);
    }
    // Nobody looked in between: it is one change.
    telling.tell(&work, third.object().unwrap().as_ref());
    // Its status has observed it by now, for every reader.
    telling.tell(
        &work,
        policy(3, 3, &["audit"], "bob").object().unwrap().as_ref(),
    );
    let event = sending.try_next().unwrap();
    assert_eq!(
        (&*event.told.reason, &*event.told.note),
        (
            "DefinitionChanged",
            "changed by bob: spec.gates.refs[shared/freeze]: removed; spec.gates.refs[shared/audit]: added"
        )
    );
    assert!(sending.try_next().is_none());
    audit.finish().await;
    let text = std::fs::read_to_string(path).unwrap();
    let record: Value = serde_json::from_str(text.trim_end()).unwrap();
    let told = &record["event"];
    assert_eq!(
        told["object"],
        json!({"kind": "GatePolicy", "name": "freeze"})
    );
    assert_eq!(
        (&told["generation"], &told["lastTold"]),
        (&json!(3), &json!(1))
    );
    assert_eq!(told["changedBy"][0]["manager"], "bob");
}
