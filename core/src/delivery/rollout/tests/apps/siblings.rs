//! What an application has beside the workload that is meant.

use super::given::Sight;
use super::unfit::label;
use super::*;

/// Half of web-v2 is out. The Kustomization that has applied it has applied a worker, too.
fn with_a_worker() -> Play {
    let mut play = apps(&json!({"component": "web", "rolloutPlan": {"lastBatchToRollout": 0}}));
    play.deployment("worker", 3, "worker:1");
    let both = ["shop_web-v2_apps_Deployment", "shop_worker_apps_Deployment"];
    put(&mut play, "web-v2", kustomization(SECOND, &both));
    for of in [v1(), v2()] {
        label(&mut play, &of, "web");
    }
    play.run();
    assert_eq!(play.state(), "batchReady 0, held: LastBatch");
    play
}

fn worker() -> Name {
    name(Kind::Deployment, "worker")
}

/// Its controller has not seen yet what somebody has written.
fn changed(play: &mut Play, of: &Name) {
    play.cluster
        .foreign(of, "/spec/minReadySeconds", json!(1), "kubectl");
}

/// What a Kustomization has applied of which nothing is known, as the labels say.
fn labelled(play: &mut Play, of: &Name, applied: &Value) {
    let metadata = &mut play.cluster.workloads.get_mut(of).unwrap()["metadata"];
    for (label, text) in [("name", "apps"), ("namespace", "flux-system")] {
        metadata["labels"][format!("kustomize.toolkit.fluxcd.io/{label}")] = text.into();
    }
    metadata["managedFields"] = json!([{
        "manager": "kustomize-controller", "operation": "Apply", "fieldsV1": {"f:spec": applied},
    }]);
}

fn applied(play: &mut Play, of: &Name) {
    labelled(play, of, &json!({"f:replicas": {}}));
}

/// What somebody else does.
type Change = fn(&mut Play);

fn is_unsure_after(change: Change) -> bool {
    let mut play = with_a_worker();
    change(&mut play);
    is_unsure(&play.given().unwrap())
}

/// It may be out of date for days, while its controller is down. No look waits for it, and what it has waited for is told
/// after as long as ever.
#[test]
fn what_no_run_needs_is_not_waited_for() {
    let changes: [Change; 5] = [
        |_| (),
        // Of a source its size alone is written.
        |play| labelled(play, &v1(), &json!({"f:paused": {}})),
        |play| changed(play, &worker()),
        |play| applied(play, &worker()),
        // What Flux has not applied it does not write again, whatever the labels say.
        |play| labelled(play, &v1(), &json!({})),
    ];
    for (place, change) in changes.into_iter().enumerate() {
        assert!(!is_unsure_after(change), "case {place}");
    }
}

#[test]
fn what_a_run_needs_is_waited_for() {
    let changes: [Change; 5] = [
        |play| changed(play, &v2()),
        |play| applied(play, &v1()),
        |play| labelled(play, &v2(), &json!({"f:paused": {}})),
        |play| {
            let app = applier(ConsumerKind::Kustomization, "web-v2");
            play.cluster.appliers.remove(&app);
        },
        // The run has it still.
        |play| {
            play.spec(&json!({"sourceRef": []}));
            changed(play, &v1());
        },
    ];
    for (place, change) in changes.into_iter().enumerate() {
        assert!(is_unsure_after(change), "case {place}");
    }
    let mut given = with_a_worker().given().unwrap();
    // It may be the one that is meant.
    let unknown = Sight::Unknown("it was not read yet".into());
    let known = given.workloads.insert(worker(), unknown).unwrap();
    assert!(is_unsure(&given));
    given.workloads.insert(worker(), known);
    given.autoscalers = Err("may not list them".to_owned());
    assert!(is_unsure(&given));
}
