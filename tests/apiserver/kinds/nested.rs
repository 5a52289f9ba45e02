//! Gates that keep gates.

use anyhow::Result;
use serde_json::json;
use sluice_crds::State;
use sluice_tests::Writes;

use crate::stage::{Stage, message};

const NOON: &str = "2026-11-20T12:00:00Z";

/// `either` is open when `a` or `b` is.
const EITHER: &str = "
apiVersion: sluice.dev/v1alpha1
kind: Gatekeeper
metadata: {name: switch-a}
spec: {manual: {state: closed, reason: incident 12}}
---
apiVersion: sluice.dev/v1alpha1
kind: Gatekeeper
metadata: {name: switch-b}
spec: {manual: {state: closed}}
---
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata: {name: a}
spec: {gatekeepers: [{name: switch-a}]}
---
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata: {name: b}
spec: {gatekeepers: [{name: switch-b}]}
---
apiVersion: sluice.dev/v1alpha1
kind: Gatekeeper
metadata: {name: either}
spec: {gates: {require: oneOf, refs: [{name: a}, {name: b}]}}
---
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata: {name: either}
spec: {gatekeepers: [{name: either}]}
";

fn switch(name: &str, state: &str) -> String {
    format!(
        "
apiVersion: sluice.dev/v1alpha1
kind: Gatekeeper
metadata: {{name: {name}}}
spec: {{manual: {{state: {state}}}}}
"
    )
}

#[tokio::test]
async fn a_gate_follows_the_gates_that_it_is_kept_by() -> Result<()> {
    let stage = Stage::new("nested", NOON).await?;
    stage.apply(EITHER).await?;
    let mut settings = stage.settings();
    settings.trust_unverified_identity = true;
    let _controller = stage.start_with(settings).await?;
    let status = stage.says("either", State::Closed, "NestedGates").await?;
    assert!(message(&status).contains("incident 12"), "{status:?}");

    stage.apply(&switch("switch-b", "open")).await?;
    stage.says("either", State::Open, "NestedGates").await?;
    stage.apply(&switch("switch-b", "closed")).await?;
    stage.says("either", State::Closed, "NestedGates").await?;

    // A force counts once it is accepted, and the gates around it hear of that.
    let force = json!({
        "sluice.dev/force": "open",
        "sluice.dev/force-by": "alice",
        "sluice.dev/force-reason": "hotfix",
    });
    stage.annotate("a", force).await?;
    let status = stage.says("either", State::Open, "NestedGates").await?;
    assert!(message(&status).contains("alice"), "{status:?}");

    // One that is gone is closed, and says so.
    stage.gates().remove("a").await?;
    let status = stage.says("either", State::Closed, "NestedGates").await?;
    assert!(
        message(&status).contains("gate a: there is no such gate"),
        "{status:?}"
    );
    Ok(())
}

/// `one` is kept by `two`, that by `three`, and that by `one`; `outside` by `one`.
const CYCLE: [(&str, &str); 4] = [
    ("one", "two"),
    ("two", "three"),
    ("three", "one"),
    ("outside", "one"),
];

#[tokio::test]
async fn gates_that_depend_on_themselves_are_closed_and_say_by_which_way() -> Result<()> {
    let stage = Stage::new("cycle", NOON).await?;
    for (gate, by) in CYCLE {
        let objects = format!(
            "
apiVersion: sluice.dev/v1alpha1
kind: Gatekeeper
metadata: {{name: {gate}}}
spec: {{gates: {{refs: [{{name: {by}}}]}}}}
---
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata: {{name: {gate}}}
spec: {{gatekeepers: [{{name: {gate}}}]}}
"
        );
        stage.apply(&objects).await?;
    }
    let _controller = stage.start().await?;
    let namespace = stage.namespace();
    for (gate, way) in [
        ("one", ["one", "two", "three", "one"]),
        ("two", ["two", "three", "one", "two"]),
        ("three", ["three", "one", "two", "three"]),
    ] {
        let status = stage.says(gate, State::Closed, "CyclicGates").await?;
        let way = way.map(|gate| format!("{namespace}/{gate}")).join(" → ");
        assert!(message(&status).contains(&way), "{way}: {status:?}");
    }
    stage
        .until("outside", "closed", |status| {
            status.state == Some(State::Closed)
        })
        .await?;

    // Without one of its parts the ring is none.
    stage.gatekeepers().remove("three").await?;
    stage.apply(&switch("three", "open")).await?;
    for gate in ["three", "two", "one", "outside"] {
        stage
            .until(gate, "open", |status| status.state == Some(State::Open))
            .await?;
    }
    Ok(())
}
