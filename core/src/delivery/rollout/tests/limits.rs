//! How much somebody can make a look do.

use sluice_crds::gated_source::ConsumerKind;

use super::applied::COMPILED;
use super::*;

/// Somebody else's finalizer keeps the Rollout. There is nothing of ours to take away, and no reason to look again.
#[test]
fn a_refused_spec_that_is_deleted_loses_our_finalizer_alone() {
    for ours in [true, false] {
        let mut play = pair(&json!({}));
        play.cluster.respecify(|it| {
            let all = it.metadata.finalizers.get_or_insert_default();
            all.push("example.com/other".to_owned());
            it.spec.rollout_plan.num_batches = Some(31);
        });
        if ours {
            play.cluster.finalize(true);
        }
        play.cluster.delete(play.now);
        play.run();
        let expected: &[&str] = if ours { &["Finalize false"] } else { &[] };
        assert_eq!(play.log, expected);
        rests(&mut play);
        let object = play.cluster.rollout.unwrap();
        assert_eq!(object.metadata.finalizers.unwrap(), ["example.com/other"]);
    }
}

/// A Kustomization that leaves alone what the run writes, by rules with many patterns.
fn with_rules(play: &mut Play) -> usize {
    let rule = |place: usize| {
        json!({
            "paths": ["/spec/replicas"],
            "target": {"kind": "Deploy.*", "name": format!("web-v[12]|{place}")},
        })
    };
    let rules: Vec<_> = (0..20).map(rule).collect();
    let patterns = 2 * rules.len();
    let applier = given::Applier {
        kind: ConsumerKind::Kustomization,
        namespace: "flux-system".into(),
        name: "apps".into(),
    };
    let object = json!({"metadata": {"generation": 1}, "spec": {"ignore": rules}});
    play.cluster.appliers.insert(applier, object);
    for workload in play.cluster.workloads.values_mut() {
        let metadata = &mut workload["metadata"];
        metadata["labels"] = json!({
            "kustomize.toolkit.fluxcd.io/name": "apps",
            "kustomize.toolkit.fluxcd.io/namespace": "flux-system",
        });
        metadata["managedFields"] = json!([{
            "manager": "kustomize-controller", "operation": "Apply",
            "fieldsV1": {"f:spec": {"f:replicas": {}}},
        }]);
    }
    patterns
}

/// Somebody who writes the rules of a Kustomization must not keep others waiting.
#[test]
fn a_pattern_is_compiled_once_a_look_however_far_that_goes() {
    let plan = json!({"numBatches": 30, "lastBatchToRollout": 28});
    let mut play = pair(&plan);
    play.cluster.workloads.clear();
    play.deployment("web-v1", 30, "web:1");
    play.deployment("web-v2", 0, "web:2");
    play.run();
    assert_eq!(play.present(), (29, 1));
    // The status is lost: a look goes through all batches that are out.
    play.cluster.respecify(|it| it.status = None);
    play.spec(&json!({"rolloutPlan": {"lastBatchToRollout": null}}));
    let patterns = with_rules(&mut play);
    let mut furthest = 0;
    for _ in 0..20 {
        let before = play.status().current_batch.unwrap_or(0);
        COMPILED.with(|all| all.set(0));
        play.look();
        assert_eq!(COMPILED.with(std::cell::Cell::get), patterns);
        furthest = furthest.max(play.status().current_batch.unwrap_or(0) - before);
        play.cluster.tick();
        play.now += SignedDuration::from_secs(1);
    }
    assert_eq!(play.state(), "rolloutSucceed");
    assert_eq!(furthest, 29);
}
