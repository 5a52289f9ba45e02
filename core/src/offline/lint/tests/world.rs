//! Objects beside each other.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;
use crate::offline::simulate::{Key, World};

fn world(objects: &str) -> World {
    let mut world = World::default();
    let values: Vec<Value> = serde_saphyr::from_multiple(objects).unwrap();
    for value in values {
        let Read { object, mistakes } = read(&value);
        assert_eq!(mistakes, []);
        match object.unwrap() {
            Object::Gate(gate) => {
                world.gates.insert(Key::of(&gate.metadata), *gate);
            }
            Object::Gatekeeper(keeper) => {
                world
                    .gatekeepers
                    .insert(Key::of(&keeper.metadata), Arc::new(*keeper));
            }
            Object::Approval(approval) => {
                let key = Key::of(&approval.metadata);
                world.approvals.insert(key, Arc::new(*approval));
            }
            Object::ConfigMap(map) => {
                world.config_maps.insert(Key::of(&map.metadata), Some(*map));
            }
            Object::GatePolicy(policy) => {
                let name = policy.metadata.name.clone().unwrap();
                world.policies.insert(name, Ok(Arc::new(*policy)));
            }
            Object::GatedSource(source) => {
                let key = Key::of(&source.metadata);
                world.sources.insert(key, Arc::new(*source));
            }
            Object::Pipeline(pipeline) => {
                let key = Key::of(&pipeline.metadata);
                world.pipelines.insert(key, Some(Arc::new(*pipeline)));
            }
            Object::PromotionStrategy(strategy) => {
                let key = Key::of(&strategy.metadata);
                world.strategies.insert(key, Arc::new(*strategy));
            }
            Object::GitRepositoryAccess(access) => {
                let key = Key::of(&access.metadata);
                world.accesses.insert(key, Arc::new(*access));
            }
            Object::Rollout(rollout) => {
                let key = Key::of(&rollout.metadata);
                world.rollouts.insert(key, Arc::new(*rollout));
            }
            Object::Namespace(_)
            | Object::CommitStatus(_)
            | Object::RevertCommit(_)
            | Object::Other => {}
        }
    }
    world
}

fn remarked(objects: &str) -> BTreeMap<String, bool> {
    let now = "2026-11-20T12:00:00Z".parse().unwrap();
    let remarks = remarks(&world(objects), now).into_iter();
    remarks
        .map(|remark| (remark.what.to_string(), remark.refused))
        .collect()
}

const GATE: &str = "
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata: {name: production}
spec: {gatekeepers: [{name: holidays}]}
---
apiVersion: sluice.dev/v1alpha1
kind: Gatekeeper
metadata: {name: holidays}
";

#[rstest]
#[case::missing_gatekeeper(
    "apiVersion: sluice.dev/v1alpha1\nkind: Gate\nmetadata: {name: a}\nspec: {gatekeepers: [{name: b}]}",
    "there is no Gatekeeper default/b in these files",
    false
)]
#[case::missing_calendar(
    &format!("{GATE}spec: {{schedule: {{closed: [{{calendar: {{configMapRef: {{name: a, key: b}}}}}}]}}}}"),
    "there is no ConfigMap default/a in these files", false
)]
#[case::broken_calendar(
    &format!("{GATE}spec: {{schedule: {{closed: [{{calendar: {{configMapRef: {{name: a, key: b}}}}}}]}}}}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata: {{b: nonsense}}"),
    "data[b]: the text does not begin with BEGIN:VCALENDAR; give the text", true
)]
#[case::broken_binary_calendar(
    &format!("{GATE}spec: {{schedule: {{closed: [{{calendar: {{configMapRef: {{name: a, key: b}}}}}}]}}}}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\nbinaryData: {{b: bm9uc2Vuc2U=}}"),
    "data[b]: the text does not begin with BEGIN:VCALENDAR; give the text", true
)]
#[case::never_open(
    &format!("{GATE}spec: {{schedule: {{open: [{{from: '2020-01-01T00:00:00', until: '2020-01-02T00:00:00'}}]}}}}"),
    "the gate does not open within 90 days", false
)]
#[case::force_has_ended(
    "{apiVersion: sluice.dev/v1alpha1, kind: Gate, metadata: {name: a, annotations: {sluice.dev/force: open, sluice.dev/force-by: a, sluice.dev/force-reason: b, sluice.dev/force-until: '1999-01-01T00:00:00Z'}}, spec: {}}",
    "has passed",
    false
)]
fn objects_are_seen_beside_each_other(
    #[case] objects: &str,
    #[case] expected: &str,
    #[case] refused: bool,
) {
    let told = remarked(objects);
    let found = told.iter().find(|(what, _)| what.contains(expected));
    assert_eq!(
        found.map(|(_, refused)| *refused),
        Some(refused),
        "{told:#?}"
    );
}

#[test]
fn a_gate_that_opens_is_not_remarked_on() {
    let open = format!("{GATE}spec: {{schedule: {{open: [{{cron: 0 0 1 1 *, duration: 1h}}]}}}}");
    assert_eq!(remarked(&open), BTreeMap::new());
}

const PIPELINE: &str = "
apiVersion: sluice.dev/v1alpha1
kind: Pipeline
metadata: {name: app, annotations: {sluice.dev/retry: again, sluice.dev/redo: again}}
spec:
  appRef: {kind: HelmRelease, name: app}
  environments:
    - {name: dev, targets: [{namespace: app}], promotion: {strategy: {admission: {}}}}
    - {name: eu, targets: [{namespace: eu}, {namespace: eu}], gates: {refs: [{name: freeze}]}}
    - {name: prod, targets: [{namespace: prod}], promotion: {strategy: {admission: {}}}}
";

/// What a pipeline and the gatekeepers that name it have in vain.
#[test]
fn a_pipeline_that_admits_nothing_is_told() {
    let keeper = |name: &str, pipeline: &str, environment: &str| {
        format!(
            "---\napiVersion: sluice.dev/v1alpha1\nkind: Gatekeeper\nmetadata: {{name: {name}}}\n\
             spec: {{pipeline: {{name: {pipeline}, environment: {environment}}}}}\n"
        )
    };
    let objects = [
        PIPELINE.to_owned(),
        keeper("right", "app", "prod"),
        keeper("first", "app", "dev"),
        keeper("otherwise", "app", "eu"),
        keeper("unknown", "app", "production"),
        keeper("missing", "shop", "prod"),
    ];
    let said = remarked(&objects.concat());
    let expected = [
        "metadata.annotations[sluice.dev/redo]: nothing reads it; remove it; the fields here are sluice.dev/retry",
        "spec.environments[0].promotion: nothing is promoted to the first environment; remove it",
        "spec.environments[1].gates.refs[0]: there is no Gate default/freeze in these files, so nothing is promoted to `eu`; add it, unless the cluster has it",
        "spec.environments[1].targets[1]: the same target is listed before; remove one",
        "spec.pipeline.environment: nothing is promoted to `dev`, the first environment of the Pipeline default/app, so it admits nothing; name a later environment",
        "spec.pipeline.environment: the Pipeline default/app does not promote to `eu` by an admission, so it admits nothing; write strategy: {admission: {}} for that environment of the Pipeline",
        "spec.pipeline.environment: the Pipeline default/app has no environment `production`, so it admits nothing; write one of dev, eu, prod",
        "spec.pipeline: there is no Pipeline default/shop in these files, so it admits nothing; add it, unless the cluster has it",
    ];
    assert_eq!(said.keys().collect::<Vec<_>>(), expected);
    assert!(said.values().all(|refused| !refused));
}

const STRATEGY: &str = "
apiVersion: sluice.dev/v1alpha1
kind: PromotionStrategy
metadata: {name: shop, namespace: shop, annotations: {sluice.dev/accept: env/dev=1, sluice.dev/acept: x}}
spec:
  repoRef: {name: shop, namespace: platform}
  environments:
    - {branch: env/dev, activeGates: {refs: [{name: errors}]}}
    - {branch: env/prod, gates: {refs: [{name: hours}]}, revertGates: {refs: [{name: brake, namespace: ops}]}}
---
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata: {name: hours, namespace: shop}
spec: {default: open}
";

const ACCESS: &str = "
apiVersion: sluice.dev/v1alpha1
kind: GitRepositoryAccess
metadata: {name: shop, namespace: platform}
spec:
  provider: gitea
  url: https://git.example.com/acme/shop.git
  secretRef: {name: shop-push}
  allow: [{namespaces: [shop], branches: [env/dev]}]
";

/// What a strategy names is looked for, and whether it may be used.
#[test]
fn what_a_strategy_names_is_looked_for() {
    let told = |objects: &str| remarked(objects).into_keys().collect::<Vec<_>>().join("\n");
    let alone = told(STRATEGY);
    for expected in [
        "spec.repoRef: there is no GitRepositoryAccess platform/shop in these files",
        "spec.environments[0].activeGates.refs[0]: there is no Gate shop/errors in these files",
        "spec.environments[1].revertGates.refs[0]: there is no Gate ops/brake in these files",
        "sluice.dev/acept",
    ] {
        assert!(alone.contains(expected), "{expected}: {alone}");
    }
    assert!(
        !alone.contains("hours") && !alone.contains("sluice.dev/accept:"),
        "{alone}"
    );
    let both = told(&format!("{STRATEGY}---{ACCESS}"));
    let expected = "the GitRepositoryAccess platform/shop does not let the namespace `shop` merge into \
                    `env/prod`";
    assert!(both.contains(expected), "{both}");
    let all = told(&format!(
        "{STRATEGY}---{}",
        ACCESS.replace("env/dev]", "env/*]")
    ));
    assert!(!all.contains("repoRef"), "{all}");
}

const ROLLOUT: &str = "
apiVersion: sluice.dev/v1alpha1
kind: Rollout
metadata: {name: web, namespace: shop, annotations: {sluice.dev/retry: again, sluice.dev/redo: again}}
spec:
  targetRef: {kind: Deployment, name: web}
  gates: {refs: [{name: hours}, {name: freeze, namespace: ops}]}
  progressDeadline: 30s
  rolloutPlan:
    canaryMetric: [{name: latency}]
    rolloutWebhooks:
      - {type: finalize-rollout, name: short, url: 'http://tests', timeout: 29s}
      - {type: finalize-rollout, name: long, url: 'http://tests', timeout: 30s}
    rolloutBatches:
      - replicas: 1
        gates: {refs: [{name: errors}]}
        canaryMetric: [{name: By hand, templateRef: {name: manual}}, {name: rate, templateRef: {name: error-rate}}]
      - {}
---
apiVersion: sluice.dev/v1alpha1
kind: Gate
metadata: {name: hours, namespace: shop}
spec: {default: open}
---
apiVersion: sluice.dev/v1alpha1
kind: Gatekeeper
metadata: {name: manual, namespace: shop}
spec: {manual: {state: open}}
---
apiVersion: sluice.dev/v1alpha1
kind: Gatekeeper
metadata: {name: error-rate, namespace: shop}
spec: {metric: {address: 'http://prometheus', query: up, range: {min: 1}}}
";

/// What a rollout names is looked for, and whether it measures anything.
#[test]
fn what_a_rollout_names_is_looked_for() {
    let said = remarked(ROLLOUT);
    let expected = [
        "metadata.annotations[sluice.dev/redo]: nothing reads it; remove it; the fields here are sluice.dev/retry",
        "spec.gates.refs[1]: there is no Gate ops/freeze in these files, so no batch goes out; add it, unless the cluster has it",
        "spec.rolloutPlan.canaryMetric[0]: there is no Gatekeeper shop/latency in these files, which holds the rollout; add it, unless the cluster has it",
        "spec.rolloutPlan.rolloutBatches[0].canaryMetric[0]: the Gatekeeper shop/manual measures nothing, which holds the rollout; name one of the kind metric",
        "spec.rolloutPlan.rolloutBatches[0].gates.refs[0]: there is no Gate shop/errors in these files, so no batch goes out; add it, unless the cluster has it",
        "spec.rolloutPlan.rolloutWebhooks[1].timeout: the rollout fails before an answer may come: its progressDeadline is 30s; write a shorter timeout, or a longer progressDeadline",
    ];
    assert_eq!(said.keys().collect::<Vec<_>>(), expected);
    assert!(said.values().all(|refused| !refused));
}
