//! Kustomizations and HelmReleases as targets and sources.

use sluice_crds::gated_source::ConsumerKind;

use super::given::Applier;
use super::*;

mod releases;

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

fn label(play: &mut Play, of: &Name, component: &str) {
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

/// A Kustomization with `wait` that brings the Rollout must not wait for it for ever.
#[test]
fn the_run_waits_for_flux_and_is_ready_meanwhile() {
    let ready = |status: &str| {
        json!([{
            "type": "Ready", "status": status, "reason": "Any", "message": "",
            "lastTransitionTime": "2026-11-23T09:00:00Z",
        }])
    };
    let changes = [
        json!({"lastAppliedRevision": null}),
        json!({"lastAppliedRevision": FIRST}),
        json!({"conditions": ready("Unknown")}),
        json!({"observedGeneration": 0}),
    ];
    for change in changes {
        let mut play = apps(&json!({}));
        play.gate("open");
        let mut app = kustomization(SECOND, &["shop_web-v2_apps_Deployment"]);
        json_patch::merge(&mut app["status"], &change);
        put(&mut play, "web-v2", app);
        play.run();
        assert_eq!(play.state(), "verifyingSpec, held: NotApplied", "{change}");
        assert_eq!(play.ready(), ("True".into(), "NotApplied".into()));
        let held = play.status().held.unwrap();
        assert_eq!(held.by.as_deref(), Some("Kustomization shop/web-v2"));
        assert_eq!(
            held.message,
            "Kustomization shop/web-v2 has not applied its newest revision yet: see its conditions"
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
