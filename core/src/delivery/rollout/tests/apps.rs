//! Kustomizations and HelmReleases as targets and sources.

use sluice_crds::gated_source::ConsumerKind;

use super::given::Applier;
use super::*;

mod releases;
mod siblings;
mod unfit;

const FIRST: &str = "main@sha1:1111111111111111111111111111111111111111";
const SECOND: &str = "main@sha1:2222222222222222222222222222222222222222";

fn applier(kind: ConsumerKind, name: &str) -> Applier {
    Applier {
        kind,
        namespace: "shop".into(),
        name: name.into(),
    }
}

/// A Kustomization that has applied these at this revision, and is ready since then.
fn kustomization(revision: &str, inventory: &[&str]) -> Value {
    let entries: Vec<_> = inventory
        .iter()
        .map(|id| json!({"id": id, "v": "v1"}))
        .collect();
    json!({
        "kind": "Kustomization",
        "metadata": {"name": "app", "namespace": "shop", "generation": 1},
        "spec": {"sourceRef": {"kind": "GitRepository", "name": "shop"}},
        "status": {
            "observedGeneration": 1, "lastAppliedRevision": revision,
            "lastAttemptedRevision": revision, "inventory": {"entries": entries},
            "conditions": [{
                "type": "Ready", "status": "True", "reason": "ReconciliationSucceeded",
                "message": "", "lastTransitionTime": "2026-11-23T09:00:00Z",
            }],
        },
    })
}

fn put(play: &mut Play, name: &str, object: Value) {
    let app = applier(ConsumerKind::Kustomization, name);
    play.cluster.appliers.insert(app, object);
}

/// The Kustomization web-v2 takes the place of web-v1.
fn apps(spec: &Value) -> Play {
    let mut whole = json!({
        "targetRef": {"kind": "Kustomization", "name": "web-v2"},
        "sourceRef": [{"kind": "Kustomization", "name": "web-v1"}],
        "rolloutPlan": {"numBatches": 2},
    });
    json_patch::merge(&mut whole, spec);
    let mut play = Play::new(&whole);
    play.deployment("web-v1", 10, "web:1");
    play.deployment("web-v2", 0, "web:2");
    put(
        &mut play,
        "web-v1",
        kustomization(FIRST, &["shop_web-v1_apps_Deployment"]),
    );
    put(
        &mut play,
        "web-v2",
        kustomization(
            SECOND,
            &["shop_web__Service", "shop_web-v2_apps_Deployment"],
        ),
    );
    play
}

/// The revisions by which something went out.
fn asked(play: &Play) -> Vec<&str> {
    let all = play.told.iter();
    let mut all: Vec<_> = all
        .filter_map(|it| it.subject.revision.as_deref())
        .collect();
    all.dedup();
    all
}

fn ready_message(play: &Play) -> String {
    let status = play.status();
    find(&status.conditions, "Ready").unwrap().message.clone()
}

#[test]
fn an_application_leads_to_its_workload_and_has_the_revision_that_was_applied() {
    let mut play = apps(&json!({}));
    play.gate("open");
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
    assert_eq!(play.present(), (10, 0));
    assert_eq!(asked(&play), [SECOND]);
    rests(&mut play);
}

/// In a repository of many applications every commit is another revision of each.
#[test]
fn another_revision_of_the_same_workload_is_no_other_run() {
    let mut play = apps(&json!({"rolloutPlan": {"lastBatchToRollout": 0}}));
    play.gate("open");
    play.run();
    assert_eq!(play.present(), (5, 5));
    let run = play.status().run.unwrap();
    put(
        &mut play,
        "web-v2",
        kustomization(FIRST, &["shop_web-v2_apps_Deployment"]),
    );
    play.spec(&json!({"rolloutPlan": {"lastBatchToRollout": null}}));
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
    assert_eq!(play.status().run.unwrap().id, run.id);
    assert!(
        play.told
            .iter()
            .all(|it| it.subject.revision.as_deref() == Some(SECOND))
    );
    put(
        &mut play,
        "web-v2",
        kustomization(SECOND, &["shop_web-v2_apps_Deployment"]),
    );
    rests(&mut play);
}

#[test]
fn a_revision_of_the_spec_comes_before_the_one_of_flux() {
    let mut play = apps(&json!({"revision": "2.0.0"}));
    play.gate("open");
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
    assert_eq!(play.told[0].subject.revision.as_deref(), Some("2.0.0"));
}

/// A kind of OpenKruise has the name of one of Kubernetes.
#[test]
fn what_is_no_workload_is_not_looked_at() {
    let inventory = [
        "shop_db_apps.kruise.io_StatefulSet",
        "shop_web__Service",
        "_shop__Namespace",
        "shop",
        "shop_web_apps.kruise.io_CloneSet",
    ];
    let found = super::super::app::workloads(&kustomization(FIRST, &inventory), "shop");
    assert_eq!(found.own, [name(Kind::CloneSet, "web")]);
    assert!(found.elsewhere.is_empty());
}

/// A Kustomization with `wait` that brings the Rollout must not wait for it for ever.
#[test]
fn the_run_waits_for_flux_and_is_ready_meanwhile() {
    let ready = |status: &str| {
        json!([{
            "type": "Ready", "status": status, "reason": "Any", "message": "",
            "lastTransitionTime": "2026-11-23T09:00:00Z",
        }])
    };
    let suspended = |status: &str| {
        json!({
            "spec": {"suspend": true},
            "status": {"lastAppliedRevision": FIRST, "conditions": ready(status)},
        })
    };
    let see = "see its conditions";
    let resume = "it was suspended while Flux was at work on it; if that does not end, resume it by `flux resume kustomization web-v2 -n shop`";
    let changes = [
        (json!({"status": {"lastAppliedRevision": null}}), see),
        (json!({"status": {"lastAppliedRevision": FIRST}}), see),
        (json!({"status": {"conditions": ready("Unknown")}}), see),
        (json!({"status": {"observedGeneration": 0}}), see),
        (suspended("False"), see),
        (suspended("Unknown"), resume),
    ];
    for (change, remedy) in changes {
        let mut play = apps(&json!({}));
        play.gate("open");
        let mut app = kustomization(SECOND, &["shop_web-v2_apps_Deployment"]);
        json_patch::merge(&mut app, &change);
        put(&mut play, "web-v2", app);
        play.run();
        assert_eq!(play.state(), "verifyingSpec, held: NotApplied", "{change}");
        assert_eq!(play.ready(), ("True".into(), "NotApplied".into()));
        let held = play.status().held.unwrap();
        assert_eq!(held.by.as_deref(), Some("Kustomization shop/web-v2"));
        assert_eq!(
            held.message,
            format!("Kustomization shop/web-v2 has not applied its newest revision yet: {remedy}")
        );
        assert!(play.told.is_empty());
        rests(&mut play);
        put(
            &mut play,
            "web-v2",
            kustomization(SECOND, &["shop_web-v2_apps_Deployment"]),
        );
        play.run();
        assert_eq!(play.state(), "rolloutSucceed");
        assert_eq!(play.told[0].subject.revision.as_deref(), Some(SECOND));
    }
}

/// Its last revision is applied, only its source cannot be fetched at the moment.
#[test]
fn a_kustomization_that_is_not_ready_for_another_reason_has_its_revision() {
    let mut play = apps(&json!({}));
    let mut app = kustomization(SECOND, &["shop_web-v2_apps_Deployment"]);
    app["status"]["conditions"][0]["status"] = "False".into();
    put(&mut play, "web-v2", app);
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
}

/// What it has applied is not healthy: it may be the version that this run replaces.
#[test]
fn a_kustomization_that_waits_for_what_is_unhealthy_has_the_revision_that_it_has_tried() {
    let mut play = apps(&json!({}));
    play.gate("open");
    let mut app = kustomization(SECOND, &["shop_web-v2_apps_Deployment"]);
    app["status"]["lastAppliedRevision"] = FIRST.into();
    app["metadata"]["generation"] = 2.into();
    let ready = |play: &mut Play, app: &mut Value, status: &str, reason: &str| {
        app["status"]["conditions"][0]["status"] = status.into();
        app["status"]["conditions"][0]["reason"] = reason.into();
        put(play, "web-v2", app.clone());
        play.run();
    };
    for (status, reason) in [("Unknown", "Progressing"), ("False", "BuildFailed")] {
        ready(&mut play, &mut app, status, reason);
        assert_eq!(play.state(), "verifyingSpec, held: NotApplied", "{reason}");
    }
    ready(&mut play, &mut app, "False", "HealthCheckFailed");
    assert_eq!(play.state(), "rolloutSucceed");
    assert_eq!(asked(&play), [SECOND]);
}

/// The watch of Kustomizations is behind: it shows the revision before.
#[test]
fn a_workload_that_has_changed_since_the_kustomization_was_ready_is_of_another_revision() {
    let mut play = apps(&json!({}));
    let object = play.cluster.workloads.get_mut(&v2()).unwrap();
    object["metadata"]["managedFields"] = json!([{
        "manager": "kustomize-controller", "operation": "Apply",
        "time": "2026-11-23T09:30:00Z", "fieldsV1": {"f:spec": {"f:template": {}}},
    }]);
    play.run();
    assert_eq!(play.state(), "verifyingSpec, held: NotApplied");
    let mut app = kustomization(SECOND, &["shop_web-v2_apps_Deployment"]);
    // Their clocks differ.
    app["status"]["conditions"][0]["lastTransitionTime"] = "2026-11-23T09:29:57Z".into();
    put(&mut play, "web-v2", app);
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
}

#[test]
fn an_application_that_is_missing_or_empty_is_waited_for() {
    let mut play = apps(&json!({}));
    let app = applier(ConsumerKind::Kustomization, "web-v2");
    let here = play.cluster.appliers.remove(&app).unwrap();
    play.cluster.appliers.insert(app, Value::Null);
    play.run();
    assert_eq!(play.state(), "verifyingSpec");
    assert_eq!(ready_message(&play), "there is no Kustomization web-v2");
    put(&mut play, "web-v2", kustomization(SECOND, &[]));
    play.run();
    assert_eq!(
        ready_message(&play),
        "Kustomization web-v2 has not applied a Deployment, StatefulSet or CloneSet yet"
    );
    put(&mut play, "web-v2", here);
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
}

#[test]
fn an_application_that_is_not_known_yet_is_waited_for() {
    let mut play = apps(&json!({}));
    let app = applier(ConsumerKind::Kustomization, "web-v1");
    let here = play.cluster.appliers.remove(&app).unwrap();
    play.look();
    play.look();
    assert_eq!(play.state(), "verifyingSpec");
    assert!(play.log.is_empty());
    play.cluster.appliers.insert(app, here);
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
}

/// Which claims stay is decided by what the spec names. Without them the next run would take the pods that the source
/// has left for all that there are.
#[test]
fn a_run_that_gives_way_keeps_its_claims_until_the_application_is_known() {
    let mut play = apps(&json!({"rolloutPlan": {"lastBatchToRollout": 0}}));
    play.gate("open");
    play.run();
    assert_eq!(play.present(), (5, 5));
    let app = applier(ConsumerKind::Kustomization, "web-v2");
    let here = play.cluster.appliers.remove(&app).unwrap();
    play.retry("1");
    (0..10).for_each(|_| drop(play.look()));
    assert_eq!(play.state(), "rolloutAbandoned");
    play.cluster.appliers.insert(app, here);
    play.spec(&json!({"rolloutPlan": {"lastBatchToRollout": null}}));
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
    assert_eq!(play.present(), (10, 0));
}

/// Each commit with another template is a run of its own, and is asked about by its revision.
#[test]
fn a_stateful_set_of_an_application_is_rolled_out_commit_by_commit() {
    let mut play = in_place(
        Kind::StatefulSet,
        &json!({"targetRef": {"kind": "Kustomization", "name": "db"}, "revision": null}),
    );
    let db = name(Kind::StatefulSet, "db");
    play.gate("open");
    put(
        &mut play,
        "db",
        kustomization(FIRST, &["shop_db_apps_StatefulSet"]),
    );
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
    assert!(play.told.is_empty());
    for (image, revision) in [("db:2", SECOND), ("db:3", FIRST)] {
        let template = json!({"spec": {"containers": [{"name": "c", "image": image}]}});
        play.cluster
            .foreign(&db, "/spec/template", template, "kustomize-controller");
        put(
            &mut play,
            "db",
            kustomization(revision, &["shop_db_apps_StatefulSet"]),
        );
        play.cluster.settle();
        play.run();
        assert_eq!(play.state(), "rolloutSucceed");
        assert_eq!(play.status().run.unwrap().revision, revision);
        let partition = "/spec/updateStrategy/rollingUpdate/partition";
        assert_eq!(
            play.cluster.workloads[&db].pointer(partition),
            Some(&json!(2_147_483_647))
        );
        assert!(play.cluster.pods[&db].iter().all(|pod| pod.image == image));
    }
    assert_eq!(asked(&play), [SECOND, FIRST]);
    rests(&mut play);
}
