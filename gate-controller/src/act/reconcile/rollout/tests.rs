//! Which answers of gates are reported.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sluice_core::time::clock::Now;

use super::*;
use crate::act::reconcile::gated_source::tests::{api, context, noon, world};
use crate::tell::counters::DecisionLabels;

/// A Rollout, and the controller that asks its gate.
struct Scene {
    context: Context,
    given: Given,
}

fn object<K: serde::de::DeserializeOwned>(kind: &str, name: &str, spec: &Value) -> Arc<K> {
    let object = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": kind, "spec": spec,
        "metadata": {"namespace": "shop", "name": name, "resourceVersion": "5"},
    });
    Arc::new(serde_json::from_value(object).unwrap())
}

impl Scene {
    /// The gate has this state.
    fn new(state: &str) -> Self {
        let context = context(api("5", &Arc::default()), world(), noon());
        let gate = object("Gate", "office-hours", &json!({ "default": state }));
        context.world.gates.put(gate);
        let spec = json!({
            "targetRef": {"kind": "Deployment", "name": "web"},
            "gates": {"refs": [{"name": "office-hours"}]}, "rolloutPlan": {},
        });
        let given = Given {
            object: object("Rollout", "web", &spec),
            workloads: BTreeMap::new(),
            pods: None,
            templates: None,
            arrived: Vec::new(),
            measures: BTreeMap::new(),
            others: BTreeMap::new(),
            autoscalers: Ok(Vec::new()),
            appliers: BTreeMap::new(),
            unsure_since: None,
            now: Now::given(context.clock.now()),
        };
        Self { context, given }
    }

    /// Asks about the first batch, and returns whether it may go out.
    async fn asks(&self, takes_effect: bool) -> bool {
        let question = rollout::asks(&self.given.object, 0, Some("2".to_owned())).unwrap();
        match ask(&self.context, &self.given, &question, takes_effect).await {
            Answer::Told(told) => told.decision.allowed,
            other => panic!("{other:?}"),
        }
    }

    /// How many answers were reported: yes and no.
    fn reported(&self) -> [u64; 2] {
        ["allowed", "held"].map(|outcome| {
            let labels = DecisionLabels {
                kind: rollout::KIND,
                action: "rollout",
                outcome,
            };
            self.context.counters.decisions.get_or_create(&labels).get()
        })
    }
}

/// A batch is asked about at each look, also while its hooks are called.
#[tokio::test]
async fn a_yes_is_reported_when_the_batch_goes_out_by_it() {
    let scene = Scene::new("open");
    for _ in 0..3 {
        assert!(scene.asks(false).await);
    }
    assert_eq!(scene.reported(), [0, 0]);
    assert!(scene.asks(true).await);
    assert_eq!(scene.reported(), [1, 0]);
    // One look later it is asked about again.
    assert!(scene.asks(false).await);
    assert_eq!(scene.reported(), [1, 0]);
}

/// Whatever would go out by a yes.
#[tokio::test]
async fn a_no_is_reported_once() {
    let scene = Scene::new("closed");
    for takes_effect in [false, true, true] {
        assert!(!scene.asks(takes_effect).await);
        assert_eq!(scene.reported(), [0, 1]);
    }
}
