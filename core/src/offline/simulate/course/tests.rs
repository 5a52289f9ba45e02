use serde_json::json;

use super::*;

/// Monday, before the window opens.
const NIGHT: &str = "2026-11-23T06:00:00Z";
const NINE: &str = "2026-11-23T09:00:00Z";
const NOON: &str = "2026-11-23T12:00:00Z";

fn span(start: &str, end: &str) -> Span {
    Span {
        start: start.parse().unwrap(),
        end: end.parse().unwrap(),
    }
}

fn app(namespace: &str, revision: &str) -> ((String, String, Key), Arc<Value>) {
    let object = json!({
        "metadata": {"generation": 1},
        "status": {
            "observedGeneration": 1, "lastAttemptedRevision": revision,
            "history": [{"chartVersion": revision, "status": "deployed"}],
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    });
    let key = Key::from_reference(namespace, None, "podinfo");
    let kind = (
        "helm.toolkit.fluxcd.io".to_owned(),
        "HelmRelease".to_owned(),
        key,
    );
    (kind, Arc::new(object))
}

/// dev runs 6.1.6, staging and prod 6.1.0; prod has a gate that is open from 9 to 17.
fn world(promotion: &Value) -> World {
    let mut world = World::default();
    let environment = |name: &str| json!({"name": name, "targets": [{"namespace": name}]});
    let mut prod = environment("prod");
    prod["gates"] = json!({"refs": [{"name": "production"}]});
    let object: Pipeline = serde_json::from_value(json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Pipeline",
        "metadata": {"name": "podinfo", "namespace": "apps"},
        "spec": {
            "appRef": {"kind": "HelmRelease", "name": "podinfo"}, "promotion": promotion,
            "environments": [environment("dev"), environment("staging"), prod],
        },
    }))
    .unwrap();
    world
        .pipelines
        .insert(Key::of(&object.metadata), Some(Arc::new(object)));
    let keeper: sluice_crds::Gatekeeper = serde_json::from_value(json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Gatekeeper",
        "metadata": {"name": "office-hours", "namespace": "apps"},
        "spec": {"schedule": {"open": [{"cron": "0 9 * * MON-FRI", "duration": "8h"}]}},
    }))
    .unwrap();
    world
        .gatekeepers
        .insert(Key::of(&keeper.metadata), Arc::new(keeper));
    let gate: sluice_crds::Gate = serde_json::from_value(json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Gate",
        "metadata": {"name": "production", "namespace": "apps"},
        "spec": {"gatekeepers": [{"name": "office-hours"}]},
    }))
    .unwrap();
    world.gates.insert(Key::of(&gate.metadata), gate);
    let apps = [
        app("dev", "6.1.6"),
        app("staging", "6.1.0"),
        app("prod", "6.1.0"),
    ];
    world.apps.extend(apps);
    world
}

fn run(world: &World, span: Span) -> Course {
    let key = world.pipelines.keys().next().unwrap().clone();
    course(world, &key, Identity::Trusted, span)
        .unwrap()
        .unwrap()
}

fn told(course: &Course) -> Vec<(String, &str, &'static str)> {
    let steps = course.steps.iter();
    let told = steps.map(|it| (it.at.to_string(), it.environment.as_str(), it.what.as_str()));
    told.collect()
}

#[test]
fn a_revision_goes_on_as_soon_as_gates_let_it() {
    let world = world(&json!({"strategy": {"admission": {}}}));
    let course = run(&world, span(NIGHT, NOON));
    let expected = [
        (NIGHT.to_owned(), "staging", "promote"),
        (NINE.to_owned(), "prod", "promote"),
    ];
    assert_eq!(told(&course), expected);
    assert_eq!(course.steps[1].decision.decided_by, ["apps/production"]);
    assert_eq!(course.steps[1].revision, "6.1.6");
    assert!(course.end.run.unwrap().completed_at.is_some());
    assert_eq!(course.cut_off, None);
}

#[test]
fn what_waits_at_the_end_is_told() {
    let world = world(&json!({"strategy": {"notification": {}}}));
    let course = run(&world, span(NIGHT, NIGHT));
    assert_eq!(told(&course), [(NIGHT.to_owned(), "staging", "promote")]);
    let prod = &course.end.environments[2];
    assert_eq!(prod.state.unwrap().as_str(), "GatesClosed");
    assert_eq!(prod.decided_by, ["apps/production"]);
    assert_eq!(prod.until.as_ref().unwrap().0.to_string(), NINE);
}

#[test]
fn the_gates_of_a_merge_hold_a_pull_request_that_is_open() {
    let forge = json!({
        "type": "gitea", "url": "https://git.example.com/apps.git",
        "secretRef": {"name": "token"}, "paths": ["prod.yaml"],
    });
    let mut world = world(&json!({"strategy": {"pull-request": forge}}));
    let key = world.pipelines.keys().next().unwrap().clone();
    let mut object = Pipeline::clone(world.pipelines[&key].as_ref().unwrap());
    object.spec.environments[2].gate_at = sluice_crds::pipeline::GateAt::Merge;
    world.pipelines.insert(key, Some(Arc::new(object)));
    let course = run(&world, span(NIGHT, NOON));
    let at = |at: &str, environment, what| (at.to_owned(), environment, what);
    let expected = [
        at(NIGHT, "staging", "promote"),
        at(NIGHT, "staging", "merge"),
        at(NIGHT, "prod", "promote"),
        at(NINE, "prod", "merge"),
    ];
    assert_eq!(told(&course), expected);
}

#[test]
fn nothing_is_promoted_while_an_app_is_unknown_or_a_person_is_asked() {
    let mut unknown = world(&json!({"strategy": {"admission": {}}}));
    unknown
        .apps
        .retain(|(_, _, key), _| key.namespace != "staging");
    let course = run(&unknown, span(NIGHT, NOON));
    assert!(course.steps.is_empty());
    let staging = &course.end.environments[1];
    assert_eq!(staging.state.unwrap().as_str(), "Unknown");
    assert!(
        staging.message.contains("among the objects"),
        "{}",
        staging.message
    );

    let manual = world(&json!({"manual": true, "strategy": {"admission": {}}}));
    let course = run(&manual, span(NIGHT, NOON));
    assert!(course.steps.is_empty());
    assert_eq!(
        course.end.environments[1].state.unwrap().as_str(),
        "Unapproved"
    );
}

#[test]
fn what_a_status_told_of_other_clusters_counts() {
    let mut world = world(&json!({"strategy": {"admission": {}}}));
    let key = world.pipelines.keys().next().unwrap().clone();
    let mut object =
        serde_json::to_value(world.pipelines[&key].as_ref().unwrap().as_ref()).unwrap();
    let cluster = json!({"kind": "Secret", "name": "prod-kubeconfig"});
    object["spec"]["environments"][1]["targets"][0]["clusterRef"] = cluster.clone();
    object["status"] = json!({"environments": {"staging": {"state": "Waiting", "targets": [
        {"namespace": "staging", "clusterRef": cluster, "ready": true, "revision": "6.1.0"},
    ]}}});
    let object = serde_json::from_value(object).unwrap();
    world.pipelines.insert(key, Some(Arc::new(object)));
    let course = run(&world, span(NIGHT, NIGHT));
    assert_eq!(told(&course), [(NIGHT.to_owned(), "staging", "promote")]);
}
