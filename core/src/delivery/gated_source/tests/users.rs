//! Consumers that bypass the gates, and gates that are delivered by the path that they close.

use super::*;

/// A HelmRelease that has Flux make a HelmChart of its own.
fn release(name: &str, namespace: &str, chart: &Value) -> (ConsumerKind, FluxObject) {
    let object = json!({
        "metadata": { "name": name, "namespace": namespace },
        "spec": { "chart": { "spec": chart } },
    });
    (ConsumerKind::HelmRelease, flux(object))
}

#[test]
fn a_release_that_takes_the_chart_out_of_its_repository_goes_past_the_gates() {
    let source = json!({ "kind": "HelmChart", "name": "upstream" });
    let mut play = Play::new(&json!({ "sourceRef": source }));
    play.kind = SourceKind::HelmChart;
    let charts = json!({ "kind": "HelmRepository", "name": "charts" });
    let spec = json!({ "chart": "app", "version": "1.x", "sourceRef": charts });
    play.upstream = Some(git("upstream", &spec, "1.0.0"));
    let there = json!({ "kind": "HelmRepository", "name": "charts", "namespace": "apps" });
    let bucket = json!({ "kind": "Bucket", "name": "charts" });
    play.consumers = vec![
        release(
            "past",
            "apps",
            &json!({ "chart": "app", "sourceRef": charts }),
        ),
        release(
            "far",
            "live",
            &json!({ "chart": "app", "sourceRef": there }),
        ),
        release(
            "another",
            "apps",
            &json!({ "chart": "db", "sourceRef": charts }),
        ),
        release(
            "elsewhere",
            "live",
            &json!({ "chart": "app", "sourceRef": charts }),
        ),
        release(
            "files",
            "apps",
            &json!({ "chart": "app", "sourceRef": bucket }),
        ),
    ];
    play.settle();
    assert_eq!(play.says("Bypassed").unwrap(), "True UpstreamUsed");
    let message = play.message("Bypassed");
    let named = message.split(" still use").next().unwrap();
    assert_eq!(named, "HelmRelease apps/past, HelmRelease live/far");
}

/// Labels by which Flux says that the Kustomization `apps/<name>` has brought something.
fn brought_by(name: &str) -> Value {
    json!({
        "kustomize.toolkit.fluxcd.io/name": name,
        "kustomize.toolkit.fluxcd.io/namespace": "apps",
    })
}

fn read(kind: &str, name: &str, by: Option<&str>, spec: &Value) -> Object {
    let mut metadata = json!({ "name": name, "namespace": "company" });
    if kind == "GatePolicy" {
        metadata.as_object_mut().unwrap().remove("namespace");
    }
    if let Some(by) = by {
        metadata["labels"] = brought_by(by);
    }
    let object = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec,
    });
    lint::read(&object).object.unwrap()
}

/// A policy, its gate, a gatekeeper of that, and the gate behind it.
#[test]
fn gates_of_policies_and_gates_behind_gates_are_looked_at_too() {
    let mut play = Play::new(&json!({}));
    play.object.metadata.labels = serde_json::from_value(brought_by("app")).unwrap();
    let policy = json!({ "gates": { "refs": [{ "name": "freeze", "namespace": "company" }] } });
    let inner = json!({ "gates": { "refs": [{ "name": "inner" }] } });
    for object in [
        read("GatePolicy", "everywhere", Some("platform"), &policy),
        read(
            "Gate",
            "freeze",
            Some("app"),
            &json!({ "gatekeepers": [{ "name": "behind" }] }),
        ),
        read("Gatekeeper", "behind", Some("app"), &inner),
        read("Gate", "inner", Some("app"), &json!({ "default": "open" })),
        read(
            "Gate",
            "unasked",
            Some("app"),
            &json!({ "default": "open" }),
        ),
    ] {
        match object {
            Object::Gate(gate) => {
                let key = Key::of(&gate.metadata);
                play.world.gates.insert(key, *gate);
            }
            Object::Gatekeeper(object) => {
                let key = Key::of(&object.metadata);
                play.world.gatekeepers.insert(key, Arc::new(*object));
            }
            Object::GatePolicy(policy) => {
                let name = policy.metadata.name.clone().unwrap();
                play.world.policies.insert(name, Ok(Arc::new(*policy)));
            }
            other => unreachable!("{other:?}"),
        }
    }
    let gates = gates(&play.world, &play.object, play.now);
    let carried = carried(&play.object, &gates);
    let said = carried
        .iter()
        .map(|it| format!("{} by {}", it.what, it.name));
    let expected = [
        "GatedSource apps/app by app",
        "GatePolicy everywhere by platform",
        "Gate company/freeze by app",
        "Gatekeeper company/behind by app",
        "Gate company/inner by app",
    ];
    assert_eq!(said.collect::<Vec<_>>(), expected);
}
