//! Applications that are not what the spec needs.

use super::*;

pub(super) fn label(play: &mut Play, of: &Name, component: &str) {
    let object = play.cluster.workloads.get_mut(of).unwrap();
    object["metadata"]["labels"] = json!({"app.kubernetes.io/component": component});
}

#[test]
fn of_several_workloads_the_component_says_which() {
    let mut play = apps(&json!({}));
    play.deployment("worker", 3, "worker:1");
    let both = ["shop_web-v2_apps_Deployment", "shop_worker_apps_Deployment"];
    put(&mut play, "web-v2", kustomization(SECOND, &both));
    label(&mut play, &name(Kind::Deployment, "worker"), "worker");
    play.run();
    assert_eq!(play.state(), "verifyingSpec, held: ApplicationUnfit");
    assert_eq!(
        ready_message(&play),
        "spec.component: Kustomization web-v2 has several workloads: Deployment web-v2, Deployment worker (worker); write which one, such as `component: worker`: the value of its label app.kubernetes.io/component"
    );
    // Neither has a workload of this component yet: that may come.
    play.spec(&json!({"component": "web"}));
    play.run();
    assert_eq!(play.state(), "verifyingSpec");
    assert_eq!(
        ready_message(&play),
        "no workload of Kustomization web-v2 has the label app.kubernetes.io/component: web; there are Deployment web-v2, Deployment worker (worker)"
    );
    label(&mut play, &v1(), "web");
    label(&mut play, &v2(), "web");
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
    assert_eq!(play.present(), (10, 0));
    assert_eq!(play.cluster.replicas(&name(Kind::Deployment, "worker")), 3);
}

#[test]
fn two_workloads_of_one_component_hold_until_one_has_another() {
    let mut play = apps(&json!({"component": "web"}));
    play.deployment("api", 3, "api:1");
    put(
        &mut play,
        "web-v2",
        kustomization(
            SECOND,
            &["shop_web-v2_apps_Deployment", "shop_api_apps_Deployment"],
        ),
    );
    for of in [v1(), v2(), name(Kind::Deployment, "api")] {
        label(&mut play, &of, "web");
    }
    play.run();
    assert_eq!(play.state(), "verifyingSpec, held: ApplicationUnfit");
    assert_eq!(play.ready(), ("False".into(), "ApplicationUnfit".into()));
    let message = ready_message(&play);
    assert!(
        message.contains("Deployment web-v2 (web), Deployment api (web); give each another value"),
        "{message}"
    );
    rests(&mut play);
    label(&mut play, &name(Kind::Deployment, "api"), "api");
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
}

#[test]
fn workloads_of_other_namespaces_hold_and_do_not_count_beside_own_ones() {
    let mut play = apps(&json!({}));
    put(
        &mut play,
        "web-v2",
        kustomization(SECOND, &["prod_web-v2_apps_Deployment"]),
    );
    play.run();
    assert_eq!(play.state(), "verifyingSpec, held: ApplicationUnfit");
    assert_eq!(
        ready_message(&play),
        "spec.targetRef: the workloads of Kustomization web-v2 are in another namespace: Deployment prod/web-v2; name the workload itself, in a Rollout of its namespace"
    );
    let both = ["prod_web-v2_apps_Deployment", "shop_web-v2_apps_Deployment"];
    put(&mut play, "web-v2", kustomization(SECOND, &both));
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
}

#[test]
fn what_references_lead_to_has_to_belong_together() {
    let mut play = apps(&json!({}));
    put(
        &mut play,
        "web-v1",
        kustomization(FIRST, &["shop_web-v2_apps_Deployment"]),
    );
    play.run();
    assert_eq!(play.state(), "verifyingSpec, held: ApplicationUnfit");
    assert_eq!(
        ready_message(&play),
        "spec.sourceRef[0]: the workloads are Deployment web-v2, Deployment web-v2: it is the target; name the object with the old version"
    );
    let mut play = apps(&json!({}));
    play.cluster
        .add(Kind::StatefulSet, "db", 2, "db:1", &json!({}));
    put(
        &mut play,
        "web-v2",
        kustomization(FIRST, &["shop_db_apps_StatefulSet"]),
    );
    play.run();
    let message = ready_message(&play);
    assert!(
        message.contains("it is a Deployment, and the target is a StatefulSet"),
        "{message}"
    );
}

/// Somebody gives web-v1 another number of pods.
fn scale(play: &mut Play, replicas: u64) {
    let replicas = json!(replicas);
    play.cluster
        .foreign(&v1(), "/spec/replicas", replicas, "kubectl");
    play.cluster.settle();
}

/// Which workloads there are is not in the spec. So what does not fit them holds the run, and fails it neither then nor
/// by its deadline.
#[test]
fn a_spec_that_does_not_fit_the_workloads_holds_from_the_beginning() {
    let cases = [
        (
            json!({"rolloutPlan": {"numBatches": null, "rolloutBatches": [{"replicas": 4}, {"replicas": 8}]}}),
            "spec.rolloutPlan.rolloutBatches[1].replicas: all batches together move 12 pods, and there are 10 to move",
        ),
        (
            json!({"sourceRef": null}),
            "spec.rolloutPlan.targetSize: without a source nothing says how many pods there are to be",
        ),
        (
            json!({"rolloutPlan": {"targetSize": 8}}),
            "spec.rolloutPlan.targetSize: 8 pods are fewer than the 10 of the sources",
        ),
    ];
    let fits = json!({
        "sourceRef": [{"kind": "Kustomization", "name": "web-v1"}],
        "rolloutPlan": {"targetSize": null, "rolloutBatches": null},
    });
    for (spec, expected) in cases {
        let mut play = apps(&spec);
        play.gate("open");
        play.look();
        assert_eq!(play.state(), "verifyingSpec, held: ApplicationUnfit");
        assert_eq!(play.ready(), ("False".into(), "ApplicationUnfit".into()));
        let message = ready_message(&play);
        assert!(message.starts_with(expected), "{message}");
        rests(&mut play);
        assert!(play.told.is_empty() && play.news.is_empty());
        play.spec(&fits);
        play.run();
        assert_eq!(play.state(), "rolloutSucceed", "{spec}");
    }
}

/// It fits, and waits for a gate. Then somebody scales what it is to take over, and fixes that without touching the
/// Rollout.
#[test]
fn workloads_that_fit_no_longer_hold_while_the_spec_is_verified() {
    let batches = json!([{"replicas": 4}, {"replicas": 6}]);
    let plan = json!({"numBatches": null, "rolloutBatches": batches});
    let mut play = apps(&json!({"rolloutPlan": plan}));
    play.gate("closed");
    play.run();
    assert_eq!(play.state(), "verifyingSpec, held: GatesClosed");
    scale(&mut play, 12);
    play.run();
    assert_eq!(play.state(), "verifyingSpec, held: ApplicationUnfit");
    rests(&mut play);
    scale(&mut play, 10);
    play.run();
    assert_eq!(play.state(), "verifyingSpec, held: GatesClosed");
    play.gate("open");
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
}

/// People who may write the status of a Kustomization write its inventory.
#[test]
fn a_forged_inventory_makes_no_long_message() {
    let mut play = apps(&json!({}));
    let of = |name: String| format!("shop_{name}_apps_Deployment");
    let mut ids: Vec<_> = (10..60).map(|it| of(it.to_string().repeat(100))).collect();
    ids.push(of("x".repeat(100_000)));
    ids.push(format!("{}_web_apps_Deployment", "x".repeat(100_000)));
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    put(&mut play, "web-v2", kustomization(SECOND, &ids));
    play.run();
    let held = play.status().held.unwrap();
    assert_eq!(held.reason, "ApplicationUnfit");
    assert!(held.message.len() <= 1024, "{}", held.message.len());
    assert!(held.message.contains("write which one"), "{}", held.message);
    // What cannot be the name of an object is none.
    put(&mut play, "web-v2", kustomization(SECOND, &ids[50..]));
    play.run();
    assert_eq!(play.status().held, None);
    let message = ready_message(&play);
    assert!(
        message.contains("has not applied a Deployment"),
        "{message}"
    );
}
