//! Whom a change concerns.

use serde_json::Value;
use sluice_crds::flux::FluxObject;
use sluice_crds::gated_source::{ConsumerKind, SourceKind};

use super::*;
use crate::act::reconcile::Reconciled;

const GIT: FluxKind = FluxKind::Source(SourceKind::GitRepository);
const BUCKET: FluxKind = FluxKind::Source(SourceKind::Bucket);
const CHART: FluxKind = FluxKind::Source(SourceKind::HelmChart);
const KUSTOMIZATION: FluxKind = FluxKind::Consumer(ConsumerKind::Kustomization);
const RELEASE: FluxKind = FluxKind::Consumer(ConsumerKind::HelmRelease);

/// Notes what an object of ours is interested in.
fn note<K: Reconciled>(world: &World, key: &ObjectKey, object: &K) {
    world.note(&Work::own(K::KIND, key.clone()), object.interests(key));
}

/// Has a gated source be there.
fn gated(world: &World, name: &str, spec: &Value) -> ObjectKey {
    let object = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "GatedSource",
        "metadata": { "namespace": "apps", "name": name, "resourceVersion": "5" },
        "spec": spec,
    });
    let object: GatedSource = serde_json::from_value(object).unwrap();
    let key = ObjectKey::of(&object);
    note(world, &key, &object);
    world.gated_sources.put(Arc::new(object)).unwrap();
    key
}

fn pinned(world: &World, name: &str, upstream: &str) -> ObjectKey {
    let spec = json!({
        "sourceRef": { "kind": "GitRepository", "name": upstream },
        "gates": { "refs": [{ "name": "production", "namespace": "flux-system" }] },
    });
    gated(world, name, &spec)
}

fn flux(name: &str, rest: &Value) -> Seen<FluxObject> {
    let mut object = json!({ "metadata": { "namespace": "apps", "name": name }, "spec": {} });
    for (field, value) in rest.as_object().unwrap() {
        match field.as_str() {
            "labels" | "annotations" | "generation" => object["metadata"][field] = value.clone(),
            _ => object[field] = value.clone(),
        }
    }
    Seen::Object(Arc::new(serde_json::from_value(object).unwrap()))
}

/// Whom it concerns, by name.
fn concerned(
    world: &World,
    kind: FluxKind,
    before: Option<&Seen<FluxObject>>,
    now: Option<&Seen<FluxObject>>,
) -> Vec<String> {
    let either = now.or(before).and_then(Seen::object).unwrap();
    let key = ObjectKey::of(either.as_ref());
    world.flux.of(kind).hold(&key, now.cloned());
    let change = Change {
        key: &key,
        before,
        now,
    };
    let found = world.flux.note(kind, &change).into_iter();
    found.map(|work| work.key.name.to_string()).collect()
}

fn comes(world: &World, kind: FluxKind, object: &Seen<FluxObject>) -> Vec<String> {
    concerned(world, kind, None, Some(object))
}

#[test]
fn a_source_and_a_child_concern_those_who_name_them() {
    let world = world();
    pinned(&world, "app", "app-upstream");
    pinned(&world, "other", "app-upstream");
    let nothing: [&str; 0] = [];
    let source = flux("app-upstream", &json!({ "generation": 1 }));
    assert_eq!(comes(&world, GIT, &source), ["app", "other"]);
    assert_eq!(comes(&world, BUCKET, &source), nothing);
    assert_eq!(comes(&world, GIT, &flux("unknown", &json!({}))), nothing);
    // Nobody has marked it, but it has the child's name.
    assert_eq!(comes(&world, GIT, &flux("app", &json!({}))), ["app"]);
    let fetched = flux(
        "app-upstream",
        &json!({ "generation": 1, "status": { "observedGeneration": 1 } }),
    );
    let fetches = |before, now| concerned(&world, GIT, Some(before), Some(now));
    assert_eq!(fetches(&source, &fetched), ["app", "other"]);
    assert_eq!(fetches(&fetched, &fetched), nothing);
    assert_eq!(
        concerned(&world, GIT, Some(&fetched), None),
        ["app", "other"]
    );
}

#[test]
fn marks_are_found_whatever_the_object_is_called() {
    let world = world();
    let key = pinned(&world, "app", "app-upstream");
    let child = json!({ "annotations": { "sluice.dev/gated-source": "app" } });
    let former = flux("former", &child);
    assert_eq!(comes(&world, GIT, &former), ["app"]);
    assert_eq!(
        world.flux.children_of(&key),
        [(GIT, self::key("apps", "former"))]
    );
    let unmarked = flux("former", &json!({}));
    assert_eq!(
        concerned(&world, GIT, Some(&former), Some(&unmarked)),
        ["app"]
    );
    assert_eq!(world.flux.children_of(&key), []);
    let other = pinned(&world, "other", "app-upstream");
    let held = json!({ "annotations": { "sluice.dev/suspended-by": "app,other" } });
    assert_eq!(
        comes(&world, BUCKET, &flux("held", &held)),
        ["app", "other"]
    );
    let place = (BUCKET, self::key("apps", "held"));
    for holder in [&key, &other] {
        assert_eq!(
            world.flux.suspended_by(holder),
            std::slice::from_ref(&place)
        );
    }
    // A mark of one that is not there wakes nobody.
    let lost = json!({ "annotations": { "sluice.dev/gated-source": "gone" } });
    assert_eq!(comes(&world, GIT, &flux("lost", &lost)).len(), 0);
}

/// The watch tells of an earlier version after a worker has told of its own write.
#[test]
fn an_index_does_not_go_back_with_news_that_come_late() {
    let world = world();
    let app = pinned(&world, "app", "app-upstream");
    let child = json!({ "annotations": { "sluice.dev/gated-source": "app" } });
    let (written, late) = (flux("former", &child), flux("former", &json!({})));
    assert_eq!(comes(&world, GIT, &written), ["app"]);
    let place = (GIT, key("apps", "former"));
    let change = Change {
        key: &place.1,
        before: None,
        now: Some(&late),
    };
    world.flux.note(GIT, &change);
    assert_eq!(world.flux.children_of(&app), [place]);
}

#[test]
fn consumers_concern_those_whose_sources_they_use() {
    let world = world();
    pinned(&world, "app", "app-upstream");
    let uses = |name: &str, status: Value| {
        let source = json!({ "kind": "GitRepository", "name": name });
        flux(
            "deploy",
            &json!({ "spec": { "sourceRef": source }, "status": status }),
        )
    };
    let child = uses("app", json!({}));
    assert_eq!(comes(&world, KUSTOMIZATION, &child), ["app"]);
    let source = (GIT, key("apps", "app"));
    assert_eq!(
        world.flux.consumers_of(&source),
        [(KUSTOMIZATION, key("apps", "deploy"))]
    );
    let changes = |before, now| concerned(&world, KUSTOMIZATION, Some(before), Some(now)).len();
    // At work all the time; what it has applied, whether it is ready with that, and what it could not have, is
    // news.
    let ready = |status: &str, reason: &str| {
        json!({ "conditions": [{
            "type": "Ready", "status": status, "reason": reason, "message": "",
            "lastTransitionTime": "2026-11-20T12:00:00Z",
        }]})
    };
    let (busy, done) = (
        uses("app", ready("Unknown", "Progressing")),
        uses("app", ready("True", "ReconciliationSucceeded")),
    );
    assert_eq!((changes(&child, &busy), changes(&busy, &done)), (0, 1));
    let failed = uses("app", ready("False", "ArtifactFailed"));
    assert_eq!(changes(&done, &failed), 1);
    let applied = uses("app", json!({ "lastAppliedRevision": "main@sha1:a" }));
    assert_eq!(changes(&child, &applied), 1);
    let others = [
        json!({ "lastAppliedOriginRevision": "main@sha1:a" }),
        json!({ "lastAttemptedRevision": "main@sha1:b" }),
        json!({ "observedGeneration": 2 }),
    ];
    let others = others.map(|status| uses("app", status));
    for other in &others {
        assert_eq!(changes(&child, other), 1, "{other:?}");
    }
    let elsewhere = uses("unknown", json!({}));
    assert_eq!(
        (
            changes(&applied, &elsewhere),
            changes(&elsewhere, &elsewhere)
        ),
        (1, 0)
    );
    assert_eq!(world.flux.consumers_of(&source), []);

    let chart = json!({ "spec": { "chart": { "spec": { "sourceRef": {
        "kind": "GitRepository", "name": "app-upstream", "namespace": "apps",
    }}}}});
    assert_eq!(comes(&world, RELEASE, &flux("release", &chart)), ["app"]);
}

/// The HelmRelease names neither the GatedSource's source nor its child.
#[test]
fn anyone_who_takes_a_gated_chart_out_of_its_repository_matters() {
    let world = world();
    let source = json!({ "kind": "HelmChart", "name": "app-upstream" });
    let gates = json!({ "refs": [{ "name": "production" }] });
    gated(
        &world,
        "app",
        &json!({ "sourceRef": source, "gates": gates }),
    );
    let charts = json!({ "kind": "HelmRepository", "name": "charts" });
    let chart = flux(
        "app-upstream",
        &json!({ "spec": { "chart": "app", "sourceRef": charts } }),
    );
    assert_eq!(comes(&world, CHART, &chart), ["app"]);
    let release =
        json!({ "spec": { "chart": { "spec": { "chart": "app", "sourceRef": charts } } } });
    assert_eq!(comes(&world, RELEASE, &flux("past", &release)), ["app"]);
    // A repository that somebody suspends is no news for its charts' sake.
    let freeze = json!({
        "selector": { "kind": "HelmRepository", "matchLabels": { "tier": "front" } },
        "strategy": "suspend", "gates": gates,
    });
    gated(&world, "freeze", &freeze);
    let fetched = json!({ "spec": { "chart": "app", "sourceRef": charts }, "generation": 2 });
    assert_eq!(
        comes(&world, CHART, &flux("app-upstream", &fetched)),
        ["app"]
    );
}

/// An object of the same kind and name on another cluster is another one.
#[test]
fn other_clusters_have_caches_beside_our_own() {
    let world = world();
    let cluster = Cluster::Named(Arc::new("prod-eu".into()));
    let there = Flux::on(cluster.clone(), Arc::clone(&world.interests));
    let app = key("apps", "app");
    let here = Work::own(kind::Kind::Flux(KUSTOMIZATION), app.clone());
    let far = Work {
        cluster,
        ..here.clone()
    };
    let probe = |name: &str| Work::own(kind::Kind::Probe, key("fleet", name));
    world.note(&probe("local"), vec![here.clone()]);
    world.note(&probe("remote"), vec![far]);
    world.note(&probe("any"), vec![Work::all(here.kind, "apps")]);

    let object = flux("app", &json!({ "spec": { "suspend": true } }));
    let comes = |flux: &Flux| {
        flux.of(KUSTOMIZATION).hold(&app, Some(object.clone()));
        let change = Change {
            key: &app,
            before: None,
            now: Some(&object),
        };
        flux.note(KUSTOMIZATION, &change)
    };
    assert_eq!(comes(&world.flux), [probe("local"), probe("any")].into());
    assert_eq!(comes(&there), [probe("remote")].into());
}

#[test]
fn what_runs_already_and_what_is_selected_matters() {
    let world = world();
    let gates = json!({ "refs": [{ "name": "production" }] });
    let baseline = json!({
        "sourceRef": { "kind": "GitRepository", "name": "app-upstream" }, "gates": gates,
        "baseline": { "from": { "kind": "HelmRelease", "name": "app", "namespace": "live" } },
    });
    gated(&world, "moving", &baseline);
    let live = json!({ "metadata": { "namespace": "live", "name": "app" } });
    assert_eq!(comes(&world, RELEASE, &flux("app", &live)), ["moving"]);
    let labels = json!({ "kind": "Bucket", "matchLabels": { "tier": "front" } });
    let freeze = json!({ "selector": labels, "strategy": "suspend", "gates": gates });
    gated(&world, "freeze", &freeze);
    assert_eq!(comes(&world, BUCKET, &flux("any", &json!({}))), ["freeze"]);
    let concerned = |namespace: &str| {
        let namespace = Work::own(kind::Kind::Namespace, self::key("", namespace));
        world.concerned(&namespace).len()
    };
    assert_eq!((concerned("apps"), concerned("live")), (2, 0));
}

#[test]
fn a_gate_concerns_those_behind_it_near_and_far_and_by_policies_all() {
    let world = world();
    let app = pinned(&world, "app", "app-upstream");
    let gates = json!({ "refs": [{ "name": "own" }] });
    let source = json!({ "kind": "GitRepository", "name": "other-upstream" });
    let other = gated(
        &world,
        "other",
        &json!({ "sourceRef": source, "gates": gates }),
    );
    let held = |gate: &ObjectKey| -> BTreeSet<ObjectKey> {
        let gate = Work::own(kind::Kind::Gate, gate.clone());
        let works = world.concerned(&gate).into_iter();
        let held = works.filter(|work| work.kind == kind::Kind::GatedSource);
        held.map(|work| work.key).collect()
    };
    let production = key("flux-system", "production");
    assert_eq!(held(&production), [app.clone()].into());
    assert_eq!(held(&key("apps", "own")), [other.clone()].into());
    // production lists a gatekeeper that asks another gate.
    let gate = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Gate",
        "metadata": { "namespace": "flux-system", "name": "production" },
        "spec": { "gatekeepers": [{ "name": "both" }] },
    });
    let gate: Gate = serde_json::from_value(gate).unwrap();
    note(&world, &production, &gate);
    let nested = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Gatekeeper",
        "metadata": { "namespace": "flux-system", "name": "both" },
        "spec": { "gates": { "refs": [{ "name": "inner" }] } },
    });
    let nested: Gatekeeper = serde_json::from_value(nested).unwrap();
    note(&world, &key("flux-system", "both"), &nested);
    let inner = key("flux-system", "inner");
    assert_eq!(held(&inner), [app.clone()].into());
    let policy = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "GatePolicy",
        "metadata": { "name": "freeze" },
        "spec": { "gates": { "refs": [{ "name": "inner", "namespace": "flux-system" }] } },
    });
    let policy: GatePolicy = serde_json::from_value(policy).unwrap();
    note(&world, &key("", "freeze"), &policy);
    assert_eq!(held(&inner), [app, other].into());
}

#[tokio::test]
async fn flux_is_of_no_interest_before_there_is_a_gated_source() {
    use futures::FutureExt;
    let world = world();
    assert!(world.flux.is_wanted().now_or_never().is_none());
    world.note(
        &Work::own(kind::Kind::GatedSource, key("apps", "app")),
        Vec::new(),
    );
    assert!(world.flux.is_wanted().now_or_never().is_none());
    pinned(&world, "app", "app-upstream");
    world.flux.is_wanted().await;
}

#[test]
fn of_consumers_only_what_is_read_is_kept() {
    let release = json!({
        "metadata": {
            "namespace": "apps", "name": "app", "resourceVersion": "7", "labels": { "a": "b" },
            "managedFields": [{ "manager": "flux" }],
        },
        "spec": {
            "values": { "large": "text" }, "suspend": true,
            "chart": { "spec": {
                "chart": "app", "version": "1.x", "sourceRef": { "kind": "Bucket", "name": "b" },
            }},
        },
        "status": { "conditions": [
            { "type": "Released", "status": "True", "reason": "r", "message": "m", "lastTransitionTime": "2026-11-20T12:00:00Z" },
        ]},
    });
    let world = world();
    let put = world
        .flux
        .put(RELEASE, serde_json::from_value(release).unwrap());
    let kept = serde_json::to_value(put.unwrap().now.object().unwrap().as_ref()).unwrap();
    let expected = json!({
        "metadata": { "namespace": "apps", "name": "app", "resourceVersion": "7" },
        "spec": {
            "suspend": true,
            "chart": { "spec": { "chart": "app", "sourceRef": { "kind": "Bucket", "name": "b" } } },
        },
        "status": {},
    });
    assert_eq!(kept, expected);
}

/// A Pipeline concerns what waits at the gates whose gatekeepers name it, and nothing else.
#[test]
fn a_pipeline_concerns_the_gatekeepers_that_name_it_and_what_waits_for_them() {
    let world = world();
    let keeper = |name: &str, spec: &Value| {
        let object = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Gatekeeper",
            "metadata": { "namespace": "flux-system", "name": name }, "spec": spec,
        });
        let object: Gatekeeper = serde_json::from_value(object).unwrap();
        note(&world, &ObjectKey::of(&object), &object);
    };
    let named = json!({"name": "shop", "namespace": "apps", "environment": "prod"});
    keeper("promoted", &json!({"pipeline": named}));
    keeper(
        "other",
        &json!({"pipeline": {"name": "shop", "environment": "prod"}}),
    );
    let production = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Gate",
        "metadata": { "namespace": "flux-system", "name": "production" },
        "spec": {"gatekeepers": [{"name": "promoted"}]},
    });
    let production: Gate = serde_json::from_value(production).unwrap();
    note(&world, &ObjectKey::of(&production), &production);
    pinned(&world, "app", "app-upstream");
    let shop = KeyRef {
        namespace: "apps",
        name: "shop",
    };
    let concerned = world.concerned(&Work::own(kind::Kind::Pipeline, shop.into()));
    let names: Vec<&str> = concerned.iter().map(|it| it.key.name.as_ref()).collect();
    assert_eq!(names, ["production", "promoted", "app"]);
}

/// What a Pipeline has admitted counts at the instant at which the cache has it.
#[test]
fn what_a_pipeline_admits_is_decided_from_the_cache() {
    let keeper = |namespace: &str| {
        let object = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Gatekeeper",
            "metadata": { "namespace": namespace, "name": "promoted" },
            "spec": {"pipeline": {"name": "shop", "namespace": "apps", "environment": "prod"}},
        });
        Arc::new(serde_json::from_value::<Gatekeeper>(object).unwrap())
    };
    let pipeline = |version: &str, admitted: Value| {
        let environment = |name: &str| {
            json!({"name": name, "targets": [{"namespace": name}],
                "promotion": {"strategy": {"admission": {}}}})
        };
        let object = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Pipeline",
            "metadata": { "namespace": "apps", "name": "shop", "resourceVersion": version },
            "spec": {
                "appRef": {"kind": "HelmRelease", "name": "shop"},
                "environments": [environment("dev"), environment("prod")],
            },
            "status": {"environments": {"prod": {"state": "Promoted", "admitted": admitted}}},
        });
        Arc::new(serde_json::from_value::<sluice_crds::Pipeline>(object).unwrap())
    };
    let at = Timestamp::UNIX_EPOCH;
    let reason = |world: &World, namespace: &str| {
        let revision = sluice_core::revision::Revision::parse("6.1.6").unwrap();
        let question = sluice_core::Question::new(world.now(at), Some(&revision));
        world
            .keeper(&keeper(namespace), at)
            .verdict(question)
            .reason
    };
    let world = world();
    assert_eq!(reason(&world, "apps"), "PipelineMissing");
    world.pipelines.put(pipeline("5", json!([]))).unwrap();
    assert_eq!(reason(&world, "apps"), "NothingAdmitted");
    let admitted = json!([{"revision": "6.1.6", "run": 7, "at": "2026-11-20T12:00:00Z"}]);
    world.pipelines.put(pipeline("6", admitted)).unwrap();
    assert_eq!(reason(&world, "apps"), "Admitted");
    assert_eq!(reason(&world, "fleet"), "Admitted");
    let alone = World::new(world.standing(), false);
    assert_eq!(reason(&alone, "apps"), "PipelineMissing");
    assert_eq!(reason(&alone, "fleet"), "CrossNamespaceRef");
}
