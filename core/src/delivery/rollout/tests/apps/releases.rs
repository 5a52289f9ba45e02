//! HelmReleases as targets and sources.

use super::*;

const DIGEST: &str = "sha256:3333333333333333333333333333333333333333333333333333333333333333";

/// A HelmRelease of a chart from this kind of source, whose newest release has this status.
fn release(source: &str, status: &str, name: &str) -> Value {
    json!({
        "kind": "HelmRelease",
        "metadata": {"name": name, "namespace": "shop", "generation": 1},
        "spec": {"chartRef": {"kind": source, "name": "web"}},
        "status": {
            "observedGeneration": 1,
            "inventory": {"entries": [{"id": format!("shop_{name}_apps_Deployment"), "v": "v1"}]},
            "history": [{"chartVersion": "6.8.0", "ociDigest": DIGEST, "status": status}],
            "conditions": [{
                "type": "Ready", "status": if status == "deployed" {"True"} else {"False"},
                "reason": "Any", "message": "", "lastTransitionTime": "2026-11-23T09:00:00Z",
            }],
        },
    })
}

/// The HelmRelease web-v2 takes the place of web-v1.
fn releases(source: &str) -> Play {
    let mut play = apps(&json!({
        "targetRef": {"kind": "HelmRelease"},
        "sourceRef": [{"kind": "HelmRelease", "name": "web-v1"}],
    }));
    play.gate("open");
    for name in ["web-v1", "web-v2"] {
        put_release(&mut play, name, release(source, "deployed", name));
    }
    play
}

fn put_release(play: &mut Play, name: &str, object: Value) {
    let app = applier(ConsumerKind::HelmRelease, name);
    play.cluster.appliers.insert(app, object);
}

/// Helm has changed the target at this time.
fn upgraded(play: &mut Play, at: &str) {
    let object = play.cluster.workloads.get_mut(&v2()).unwrap();
    object["metadata"]["managedFields"] = json!([{
        "manager": "helm-controller", "operation": "Apply", "time": at,
        "fieldsV1": {"f:spec": {"f:template": {}}},
    }]);
}

#[test]
fn a_release_has_the_version_of_its_chart_or_the_digest_of_its_artifact() {
    for (source, revision) in [("HelmChart", "6.8.0"), ("OCIRepository", DIGEST)] {
        let mut play = releases(source);
        put_release(&mut play, "web-v2", release(source, "failed", "web-v2"));
        play.run();
        assert_eq!(play.state(), "verifyingSpec, held: NotApplied");
        // The watch of HelmReleases is behind: it shows the revision before.
        let mut deployed = release(source, "deployed", "web-v2");
        upgraded(&mut play, "2026-11-23T09:30:00Z");
        put_release(&mut play, "web-v2", deployed.clone());
        play.run();
        assert_eq!(play.state(), "verifyingSpec, held: NotApplied");
        deployed["status"]["conditions"][0]["lastTransitionTime"] = "2026-11-23T09:30:01Z".into();
        put_release(&mut play, "web-v2", deployed);
        play.run();
        assert_eq!(play.state(), "rolloutSucceed");
        assert_eq!(play.told[0].subject.revision.as_deref(), Some(revision));
    }
}

/// One that corrects drift changes its workload without becoming ready again.
#[test]
fn a_release_that_corrects_drift_is_asked_about_a_while_after_its_workload_has_changed() {
    let mut play = releases("HelmChart");
    let mut corrects = release("HelmChart", "deployed", "web-v2");
    corrects["spec"]["driftDetection"] =
        json!({"mode": "enabled", "ignore": [{"paths": ["/spec/replicas", "/spec/paused"]}]});
    put_release(&mut play, "web-v2", corrects);
    let changed = play.now;
    upgraded(&mut play, &changed.to_string());
    play.run();
    assert_eq!(play.state(), "verifyingSpec, held: NotApplied");
    assert!(play.told.is_empty());
    let until = play.look().unwrap().wake.unwrap();
    assert_eq!(until, changed + SignedDuration::from_secs(30));
    play.now = until;
    play.run();
    assert_eq!(play.state(), "rolloutSucceed");
}
