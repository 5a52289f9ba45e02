use serde_json::json;

use super::*;

/// Monday, before the window opens.
const NIGHT: &str = "2026-11-23T06:00:00Z";
const NINE: &str = "2026-11-23T09:00:00Z";
const TUESDAY: &str = "2026-11-24T12:00:00Z";

fn key(name: &str) -> Key {
    Key::from_reference("shop", None, name)
}

/// The Rollout web behind a gate that is open from 9 to 17.
fn world(spec: &Value) -> World {
    let mut world = World::default();
    let mut whole = json!({"revision": "2", "gates": {"refs": [{"name": "office"}]}});
    json_patch::merge(&mut whole, spec);
    let object = |kind: &str, name: &str, spec: &Value| {
        json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": kind,
            "metadata": {"name": name, "namespace": "shop"}, "spec": spec,
        })
    };
    let read = serde_json::from_value(object("Rollout", "web", &whole)).unwrap();
    world.rollouts.insert(key("web"), Arc::new(read));
    let open = json!([{"cron": "0 9 * * MON-FRI", "duration": "8h", "lastStart": "30m"}]);
    let keeper = object("Gatekeeper", "office", &json!({"schedule": {"open": open}}));
    let keeper = serde_json::from_value(keeper).unwrap();
    world.gatekeepers.insert(key("office"), Arc::new(keeper));
    let gate = object(
        "Gate",
        "office",
        &json!({"gatekeepers": [{"name": "office"}]}),
    );
    world
        .gates
        .insert(key("office"), serde_json::from_value(gate).unwrap());
    world
}

fn pair(plan: &Value) -> World {
    world(&json!({
        "targetRef": {"kind": "Deployment", "name": "web-v2"},
        "sourceRef": [{"kind": "Deployment", "name": "web-v1"}], "rolloutPlan": plan,
    }))
}

fn play(world: &World, sizes: &[(&str, u32)], start: &str, end: &str) -> Result<Rolling, Refusals> {
    let sizes = sizes.iter().map(|(name, size)| {
        let size = NonZeroU32::new(*size).unwrap();
        ((*name).to_owned(), size)
    });
    let span = Span {
        start: start.parse().unwrap(),
        end: end.parse().unwrap(),
    };
    let sizes = sizes.collect();
    rolling(world, &key("web"), &sizes, Identity::Trusted, span).unwrap()
}

/// When each batch goes out, with its pods.
fn course(rolling: &Rolling) -> Vec<(String, u32)> {
    assert_eq!(rolling.cut_off, None);
    let steps = rolling.steps.iter();
    steps
        .map(|step| {
            let batch = &rolling.end.batches[step.batch];
            (step.at.to_string(), batch.pods.unwrap())
        })
        .collect()
}

fn at(instant: &str, pods: u32) -> (String, u32) {
    (instant.to_owned(), pods)
}

#[test]
fn batches_go_out_when_their_gates_open_and_metrics_take_their_time() {
    let world = pair(&json!({
        "rolloutBatches": [
            {"replicas": 1}, {"replicas": "25%", "canaryMetric": [{"name": "errors", "interval": "5m"}]},
            {"replicas": "50%"}, {},
        ],
        "rolloutWebhooks": [{
            "type": "pre-batch-rollout", "name": "h", "url": "http://h/", "expectedStatus": [202],
        }],
        "lastBatchToRollout": 2,
    }));
    let found = play(&world, &[("web-v1", 20)], NIGHT, TUESDAY).unwrap();
    let later = "2026-11-23T09:05:00Z";
    assert_eq!(course(&found), [at(NINE, 1), at(NINE, 5), at(later, 10)]);
    assert_eq!(found.end.held.as_ref().unwrap().reason, "LastBatch");
    assert_eq!(found.end.updated, Some(16));
    let decision = found.steps[0].decision.as_ref().unwrap();
    assert_eq!(decision.subject.step.as_deref(), Some("1/4"));
    assert!(decision.allowed);
}

#[test]
fn a_window_that_ends_holds_the_rest_until_the_next_day() {
    // Ten batches of at least an hour, in a window in which seven and a half hours are for beginnings.
    let mut world = pair(&json!({
        "numBatches": 10, "canaryMetric": [{"name": "errors", "interval": "1h"}],
    }));
    let rollout = world.rollouts.get_mut(&key("web")).unwrap();
    Arc::make_mut(rollout).spec.progress_deadline = "2h".into();
    let found = play(&world, &[("web-v1", 10)], NIGHT, TUESDAY).unwrap();
    let starts = course(&found);
    assert_eq!(starts.len(), 10, "{starts:?}");
    assert_eq!(starts[7], at("2026-11-23T16:00:00Z", 1));
    assert_eq!(starts[8], at("2026-11-24T09:00:00Z", 1));
    assert_eq!(starts[9], at("2026-11-24T10:00:00Z", 1));
    assert_eq!(found.end.ended(), Some(true));
}

#[test]
fn what_is_in_the_files_says_how_many_pods_there_are() {
    let mut world = pair(&json!({"numBatches": 2}));
    let refused = play(&world, &[], NIGHT, TUESDAY).unwrap_err().to_string();
    assert!(refused.contains("--replicas web-v1=NUMBER"), "{refused}");
    let object = json!({"metadata": {"name": "web-v1"}, "spec": {
        "replicas": 6, "selector": {"matchLabels": {"app": "v1"}},
        "template": {"metadata": {"labels": {"app": "v1"}}},
    }});
    let place = ("apps".to_owned(), "Deployment".to_owned(), key("web-v1"));
    world.apps.insert(place, Arc::new(object));
    let found = play(&world, &[], NIGHT, TUESDAY).unwrap();
    assert_eq!(course(&found), [at(NINE, 3), at(NINE, 3)]);
    assert_eq!(found.end.ended(), Some(true));
    let more = play(&world, &[("web-v1", 9)], NIGHT, TUESDAY).unwrap();
    assert_eq!(course(&more), [at(NINE, 4), at(NINE, 5)]);
}

#[test]
fn objects_in_place_and_objects_that_are_scaled_go_out_too() {
    for kind in ["StatefulSet", "CloneSet"] {
        let world = world(&json!({
            "targetRef": {"kind": kind, "name": "db"}, "rolloutPlan": {"numBatches": 3},
        }));
        let found = play(&world, &[("db", 7)], NIGHT, TUESDAY).unwrap();
        assert_eq!(
            course(&found),
            [at(NINE, 2), at(NINE, 2), at(NINE, 3)],
            "{kind}"
        );
        assert_eq!(found.end.ended(), Some(true), "{kind}");
    }
    let world = world(&json!({
        "targetRef": {"kind": "Deployment", "name": "web"},
        "rolloutPlan": {"targetSize": 4, "rolloutBatches": [{"replicas": 1}, {"replicas": "25%"}, {}]},
    }));
    let found = play(&world, &[("web", 12)], NIGHT, TUESDAY).unwrap();
    assert_eq!(course(&found), [at(NINE, 1), at(NINE, 2), at(NINE, 5)]);
    assert_eq!(found.end.updated, Some(4));
}

#[test]
fn what_an_application_has_is_not_known_without_a_cluster() {
    let world = world(&json!({
        "targetRef": {"kind": "Kustomization", "name": "web-v2"}, "rolloutPlan": {},
    }));
    let refused = play(&world, &[], NIGHT, TUESDAY).unwrap_err().to_string();
    assert_eq!(
        refused,
        "spec.targetRef: which workload Kustomization shop/web-v2 has is known only in the cluster; name the workload itself in a copy, and simulate that"
    );
}

#[test]
fn what_is_not_armed_is_told_and_what_is_refused_too() {
    let mut world = world(&json!({
        "targetRef": {"kind": "StatefulSet", "name": "db"}, "rolloutPlan": {"numBatches": 3},
    }));
    let object = json!({"metadata": {"name": "db"}, "spec": {
        "replicas": 3, "template": {}, "updateStrategy": {"rollingUpdate": {"partition": 2}},
    }});
    let place = ("apps".to_owned(), "StatefulSet".to_owned(), key("db"));
    world.apps.insert(place, Arc::new(object));
    let found = play(&world, &[], NIGHT, TUESDAY).unwrap();
    assert!(found.steps.is_empty(), "{:?}", found.steps);
    let held = found.end.held.as_ref();
    let reason = held.map(|held| held.reason.as_str());
    assert_eq!(reason, Some("NotArmed"), "{:#?}", found.end);
    let small = pair(&json!({"targetSize": 3}));
    let found = play(&small, &[("web-v1", 5)], NIGHT, TUESDAY).unwrap();
    assert_eq!(found.end.outcome.unwrap().reason, "InvalidSpec");
    let wrong = pair(&json!({"numBatches": 0}));
    assert!(play(&wrong, &[("web-v1", 5)], NIGHT, TUESDAY).is_err());
}
