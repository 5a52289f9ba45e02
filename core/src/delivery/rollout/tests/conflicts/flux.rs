//! What Flux applies again, and who has to write what.

use rstest::rstest;

use super::*;

fn flux(play: &mut Play, of: &Name, kind: ConsumerKind, applied: &Value, spec: &Value) {
    let (label, manager) = match kind {
        ConsumerKind::Kustomization => ("kustomize", "kustomize-controller"),
        ConsumerKind::HelmRelease => ("helm", "helm-controller"),
    };
    let object = play.cluster.workloads.get_mut(of).unwrap();
    object["metadata"]["labels"] = json!({
        format!("{label}.toolkit.fluxcd.io/name"): "apps",
        format!("{label}.toolkit.fluxcd.io/namespace"): "flux-system",
    });
    object["metadata"]["managedFields"] = json!([
        {"manager": manager, "operation": "Apply", "fieldsV1": {"f:spec": applied}},
    ]);
    let applier = Applier {
        kind,
        namespace: "flux-system".into(),
        name: "apps".into(),
    };
    play.cluster.appliers.insert(
        applier,
        json!({"metadata": {"generation": 1}, "spec": spec}),
    );
}

#[test]
fn what_flux_applies_again_is_told_with_what_to_write() {
    let mut play = pair(&json!({}));
    let applied = json!({"f:replicas": {}, "f:paused": {}});
    flux(
        &mut play,
        &v2(),
        ConsumerKind::Kustomization,
        &applied,
        &json!({}),
    );
    play.run();
    let (reason, by, message) = held(&play);
    assert_eq!(
        (reason.as_str(), by.as_deref()),
        ("AppliedAgain", Some("Kustomization flux-system/apps"))
    );
    assert!(
        message.ends_with(
            "\n  ignore:\n    - paths: [/spec/replicas, /spec/paused]\n      target: {kind: Deployment, name: web-v2}"
        ),
        "{message}"
    );
    let ignore = json!({"ignore": [{
        "paths": ["/spec/replicas", "/spec/paused"],
        "target": {"kind": "Deployment", "name": "web-v.*"},
    }]});
    flux(
        &mut play,
        &v2(),
        ConsumerKind::Kustomization,
        &applied,
        &ignore,
    );
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
}

/// One after another is fixed, and each time the message says what is left.
#[test]
fn what_has_to_be_written_is_told_again() {
    let mut play = pair(&json!({}));
    let (kind, applied) = (ConsumerKind::Kustomization, json!({"f:replicas": {}}));
    let ignore = |name: &str| json!({"ignore": [{"paths": ["/spec"], "target": {"name": name}}]});
    for of in [v2(), v1()] {
        flux(&mut play, &of, kind, &applied, &json!({}));
    }
    for (rule, name) in [("none", "web-v2"), ("web-v2", "web-v1")] {
        flux(&mut play, &v2(), kind, &applied, &ignore(rule));
        play.run();
        let (reason, _, message) = held(&play);
        assert_eq!(reason, "AppliedAgain");
        let about = format!("/spec/replicas of Deployment {name} again");
        assert!(message.contains(&about), "{message}");
        rests(&mut play);
    }
    flux(&mut play, &v2(), kind, &applied, &ignore("web-v.*"));
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
}

/// Of this generation of its spec its controller has observed another one, or so.
fn newer(status: &Value) -> Value {
    let mut object = json!({"metadata": {"generation": 3}, "status": {"observedGeneration": 2}});
    json_patch::merge(&mut object["status"], status);
    object
}

/// A pair, of which the old one has its size from Flux, which leaves that alone by now.
fn ignored(plan: &Value, kind: ConsumerKind, applier: &Value) -> Play {
    let rules = json!([{"paths": ["/spec"]}]);
    let spec = match kind {
        ConsumerKind::Kustomization => json!({"ignore": rules}),
        ConsumerKind::HelmRelease => {
            json!({"driftDetection": {"mode": "enabled", "ignore": rules}})
        }
    };
    let mut play = pair(plan);
    flux(&mut play, &v1(), kind, &json!({"f:replicas": {}}), &spec);
    changes(&mut play, applier);
    play
}

fn changes(play: &mut Play, applier: &Value) {
    let object = play.cluster.appliers.values_mut().next().unwrap();
    json_patch::merge(object, applier);
    play.run();
}

/// Flux reads a spec when it begins, and may be long at work by it.
#[test]
fn what_flux_is_told_to_leave_alone_it_may_undo_once_more() {
    let kind = ConsumerKind::Kustomization;
    let mut waits = ignored(&json!({}), kind, &newer(&json!({})));
    assert_eq!(waits.state(), "verifyingSpec, held: NotApplied");
    assert_eq!(waits.ready(), ("True".into(), "NotApplied".into()));
    assert_eq!(waits.present(), (0, 10));
    rests(&mut waits);
    changes(&mut waits, &newer(&json!({"observedGeneration": 3})));
    assert_eq!(waits.state(), "rolloutSucceed");
    // A run that has begun goes on: a Kustomization that waits for the Rollout succeeds after it.
    let plan = json!({"numBatches": 2, "lastBatchToRollout": 0});
    let mut midway = ignored(&plan, kind, &json!({}));
    changes(&mut midway, &newer(&json!({})));
    midway.spec(&json!({"rolloutPlan": {"lastBatchToRollout": null}}));
    midway.run();
    assert_eq!(midway.state(), "rolloutSucceed");
}

#[test]
fn flux_is_not_waited_for_where_nothing_of_it_is_at_work_by_an_older_spec() {
    let ready = |status: &str| {
        newer(&json!({"conditions": [{
            "type": "Ready", "status": status, "reason": "R", "message": "", "lastTransitionTime": "2026-11-23T09:00:00Z",
        }]}))
    };
    let attempted = |generation: i64| newer(&json!({"lastAttemptedGeneration": generation}));
    let suspended = json!({"metadata": {"generation": 3}, "spec": {"suspend": true}});
    let suspended_as = |status: &str| {
        let mut object = ready(status);
        object["spec"] = suspended["spec"].clone();
        object
    };
    let first = json!({"metadata": {"generation": 1}, "status": {"observedGeneration": -1}});
    let (kustomization, helm) = (ConsumerKind::Kustomization, ConsumerKind::HelmRelease);
    let cases = [
        // There was no other spec before the first. What is suspended applies nothing.
        (kustomization, first, true),
        (kustomization, suspended.clone(), true),
        (kustomization, suspended_as("True"), true),
        (helm, suspended_as("True"), true),
        // What it was at work at then it carries to its end.
        (kustomization, suspended_as("Unknown"), false),
        (helm, suspended_as("Unknown"), false),
        (kustomization, ready("Unknown"), false),
        (kustomization, ready("True"), false),
        // It has ended without success: everything has to be healthy for that, and the run may be what is missing.
        (kustomization, ready("False"), true),
        (helm, ready("False"), false),
        (helm, attempted(2), false),
        (helm, attempted(3), true),
    ];
    for (kind, applier, begins) in cases {
        let play = ignored(&json!({}), kind, &applier);
        let expected = if begins {
            "rolloutSucceed"
        } else {
            "verifyingSpec, held: NotApplied"
        };
        assert_eq!(play.state(), expected, "{kind:?} {applier}");
        // Where Flux was stopped meanwhile, nobody else ends what it was at work on.
        let remedy = match (applier["spec"]["suspend"] == true, kind) {
            (false, _) => "newest spec yet: see its conditions",
            (true, ConsumerKind::Kustomization) => {
                "`flux resume kustomization apps -n flux-system`"
            }
            (true, ConsumerKind::HelmRelease) => "`flux resume helmrelease apps -n flux-system`",
        };
        let is_told = begins || held(&play).2.ends_with(remedy);
        assert!(is_told, "{kind:?} {applier}");
    }
}

/// Only fields that the run writes matter, and what a person has to do is told first.
#[test]
fn what_a_person_has_to_do_is_told_before_flux_is_waited_for() {
    let kind = ConsumerKind::Kustomization;
    let rules = |path: &str| json!({"ignore": [{"paths": [path]}]});
    let mut play = pair(&json!({}));
    let applied = json!({"f:replicas": {}, "f:paused": {}});
    flux(&mut play, &v2(), kind, &applied, &rules("/spec/paused"));
    changes(&mut play, &newer(&json!({})));
    assert_eq!(held(&play).0, "AppliedAgain");
    // The source is not paused by the run.
    let mut play = pair(&json!({}));
    flux(
        &mut play,
        &v1(),
        kind,
        &json!({"f:paused": {}}),
        &rules("/spec/paused"),
    );
    changes(&mut play, &newer(&json!({})));
    assert_eq!(play.state(), "rolloutSucceed");
}

/// Nothing goes out before it is known, and what an annotation says need not be known.
#[test]
fn flux_that_is_not_known_yet_is_waited_for() {
    let kind = ConsumerKind::Kustomization;
    let with = |ssa: Option<&str>| {
        let mut play = pair(&json!({}));
        flux(
            &mut play,
            &v1(),
            kind,
            &json!({"f:replicas": {}}),
            &json!({}),
        );
        play.cluster.appliers.clear();
        if let Some(ssa) = ssa {
            let object = play.cluster.workloads.get_mut(&v1()).unwrap();
            object["metadata"]["annotations"]["kustomize.toolkit.fluxcd.io/ssa"] = ssa.into();
        }
        play.run();
        play
    };
    assert_eq!(with(Some("Ignore")).state(), "rolloutSucceed");
    // Flux asks Git for this one, and Git does not have it.
    for ssa in [None, Some("Merge"), Some("IfNotPresent")] {
        let mut play = with(ssa);
        assert_eq!(
            (play.state().as_str(), play.present()),
            ("verifyingSpec", (0, 10))
        );
        let mut given = play.given().unwrap();
        given.unsure_since = Some(play.now - SignedDuration::from_secs(30));
        let considered = consider(&given);
        let told = report(&given, &considered, &Answer::NotAsked)
            .status
            .held
            .clone();
        assert_eq!(
            told.unwrap().message,
            "Kustomization flux-system/apps cannot be read: it was not read yet"
        );
        // There is none of that name.
        let apps = Applier {
            kind,
            namespace: "flux-system".into(),
            name: "apps".into(),
        };
        play.cluster.appliers.insert(apps, Value::Null);
        play.run();
        assert_eq!(play.state(), "rolloutSucceed");
    }
}

/// It is created by Flux, and not touched any more.
#[test]
fn an_object_that_git_has_left_alone_is_rolled_out() {
    let mut play = pair(&json!({}));
    let kind = ConsumerKind::Kustomization;
    let applied = json!({"f:replicas": {}});
    flux(&mut play, &v2(), kind, &applied, &json!({}));
    let metadata = &mut play.cluster.workloads.get_mut(&v2()).unwrap()["metadata"];
    metadata["annotations"]["kustomize.toolkit.fluxcd.io/ssa"] = "IfNotPresent".into();
    let applied = &mut metadata["managedFields"][0]["fieldsV1"];
    applied["f:metadata"]["f:annotations"]["f:kustomize.toolkit.fluxcd.io/ssa"] = json!({});
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
}

/// As kustomize-controller reads it: labels count, too, and upper case is lower case.
#[rstest]
#[case("annotations", "ssa", "ignore", true)]
#[case("labels", "ssa", "Ignore", true)]
#[case("labels", "reconcile", "disabled", true)]
#[case("annotations", "reconcile", "Disabled", true)]
#[case("annotations", "reconcile", "enabled", false)]
#[case("labels", "ssa", "IfNotPresent", false)]
fn an_object_may_say_to_flux_that_it_is_left_alone(
    #[case] of: &str,
    #[case] key: &str,
    #[case] word: &str,
    #[case] is_left_alone: bool,
) {
    let mut play = pair(&json!({}));
    let applied = json!({"f:replicas": {}});
    let kind = ConsumerKind::Kustomization;
    flux(&mut play, &v2(), kind, &applied, &json!({}));
    let metadata = &mut play.cluster.workloads.get_mut(&v2()).unwrap()["metadata"];
    metadata[of][format!("kustomize.toolkit.fluxcd.io/{key}")] = word.into();
    play.run();
    let held = play.status().held.map(|it| it.reason);
    assert_eq!(held, (!is_left_alone).then(|| "AppliedAgain".to_owned()));
}

#[test]
fn flux_that_leaves_the_object_alone_holds_nothing() {
    let applied = json!({"f:replicas": {}});
    let kustomization = ConsumerKind::Kustomization;
    let helm = ConsumerKind::HelmRelease;
    let enabled = |ignore: Value| json!({"driftDetection": {"mode": "enabled", "ignore": ignore}});
    let all = json!([{"paths": ["/spec"]}]);
    let cases = [
        (kustomization, json!({}), None, "AppliedAgain"),
        (kustomization, json!({}), Some("Ignore"), ""),
        (
            kustomization,
            json!({}),
            Some("IfNotPresent"),
            "AppliedAgain",
        ),
        (
            kustomization,
            json!({"ignore": [{"paths": ["/spec/replicas"], "target": {"name": "other"}}]}),
            None,
            "AppliedAgain",
        ),
        (
            kustomization,
            json!({"ignore": [{"paths": ["/spec/replicas"], "target": {"labelSelector": "a=b"}}]}),
            None,
            "AppliedAgain",
        ),
        (
            kustomization,
            json!({"ignore": [{"paths": ["/spec/replicasets"]}]}),
            None,
            "AppliedAgain",
        ),
        (
            kustomization,
            json!({"ignore": [{"paths": ["/spec"]}]}),
            None,
            "",
        ),
        (helm, json!({}), None, ""),
        (helm, json!({"driftDetection": {"mode": "warn"}}), None, ""),
        (helm, enabled(json!([])), None, "AppliedAgain"),
        (helm, enabled(all), None, ""),
    ];
    for (kind, spec, ssa, expected) in cases {
        let mut play = pair(&json!({}));
        flux(&mut play, &v2(), kind, &applied, &spec);
        if let Some(ssa) = ssa {
            let object = play.cluster.workloads.get_mut(&v2()).unwrap();
            object["metadata"]["annotations"]["kustomize.toolkit.fluxcd.io/ssa"] = ssa.into();
        }
        play.run();
        let reason = play.status().held.map(|it| it.reason).unwrap_or_default();
        assert_eq!(reason, expected, "{kind:?} {spec}");
    }
}

#[test]
fn an_owner_that_has_only_updated_holds_nothing() {
    let mut play = pair(&json!({}));
    for of in [v1(), v2()] {
        play.cluster.workloads.get_mut(&of).unwrap()["metadata"]["managedFields"] = json!([
            {"manager": "kubectl-client-side-apply", "operation": "Update",
             "fieldsV1": {"f:spec": {"f:replicas": {}}}},
        ]);
    }
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
}

#[test]
fn a_template_from_git_is_reverted_in_git() {
    let mut play = in_place(
        Kind::StatefulSet,
        &json!({"rolloutPlan": {"revertOnDelete": true, "lastBatchToRollout": 0}}),
    );
    let of = name(Kind::StatefulSet, "db");
    let image = json!([{"name": "c", "image": "db:2"}]);
    play.cluster
        .foreign(&of, "/spec/template/spec/containers", image, "kubectl");
    play.cluster.settle();
    flux(
        &mut play,
        &of,
        ConsumerKind::Kustomization,
        &json!({"f:template": {}}),
        &json!({}),
    );
    play.run();
    let (reason, _, message) = held(&play);
    assert_eq!(reason, "RevertInGit");
    assert!(message.contains("revert in Git instead"), "{message}");
    play.spec(&json!({"rolloutPlan": {"revertOnDelete": false}}));
    play.run();
    assert_eq!(held(&play).0, "LastBatch");
    // Midway, too.
    play.spec(&json!({"rolloutPlan": {"revertOnDelete": true}}));
    play.run();
    assert_eq!(held(&play).0, "RevertInGit");
    play.spec(&json!({"rolloutPlan": {"revertOnDelete": false, "lastBatchToRollout": null}}));
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
}
