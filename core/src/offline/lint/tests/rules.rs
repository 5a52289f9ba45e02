//! The rules of the definitions, each with its counterpart here.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaPropsOrArray;

use super::*;

/// Every rule (CEL) of the definitions with an object that breaks it.
const BROKEN: &[(&str, &str, &str)] = &[
    ("a Gatekeeper has exactly one kind", "Gatekeeper", "{}"),
    (
        "environments[0].gates: nothing is promoted",
        "Pipeline",
        "{appRef: {kind: HelmRelease, name: a}, environments: [{name: dev, targets: [{namespace: a}], gates: {refs: [{name: a}]}}]}",
    ),
    (
        "versions: a name is listed twice",
        "Pipeline",
        "{appRef: {kind: HelmRelease, name: a}, versions: [{name: a, expression: object.a}, {name: a, expression: object.b}], environments: [{name: dev, targets: [{namespace: a}]}]}",
    ),
    (
        "environments: a name is listed twice",
        "Pipeline",
        "{appRef: {kind: HelmRelease, name: a}, environments: [{name: dev, targets: [{namespace: a}]}, {name: dev, targets: [{namespace: a}]}]}",
    ),
    (
        "kind: a Secret is no app",
        "Pipeline",
        "{appRef: {kind: Secret, name: a}, environments: [{name: dev, targets: [{namespace: a}]}]}",
    ),
    (
        "apiVersion: only Kustomization",
        "Pipeline",
        "{appRef: {kind: Deployment, name: a}, environments: [{name: dev, targets: [{namespace: a}]}]}",
    ),
    (
        "name: no `..` in it",
        "Pipeline",
        "{appRef: {kind: HelmRelease, name: a}, environments: [{name: dev, targets: [{namespace: a}]}, {name: a..b, targets: [{namespace: a}]}]}",
    ),
    (
        "strategy: write exactly one of",
        "Pipeline",
        "{appRef: {kind: HelmRelease, name: a}, promotion: {strategy: {}}, environments: [{name: dev, targets: [{namespace: a}]}]}",
    ),
    (
        "url: forges are asked over https",
        "Pipeline",
        "{appRef: {kind: HelmRelease, name: a}, promotion: {strategy: {pull-request: {type: gitea, url: 'http://a/b', secretRef: {name: a}, paths: [a.yaml]}}}, environments: [{name: dev, targets: [{namespace: a}]}]}",
    ),
    (
        "paths: each is a file",
        "Pipeline",
        "{appRef: {kind: HelmRelease, name: a}, promotion: {strategy: {pull-request: {type: gitea, url: 'https://a/b', secretRef: {name: a}, paths: [/a.yaml]}}}, environments: [{name: dev, targets: [{namespace: a}]}]}",
    ),
    (
        "gatekeeperRef: write exactly one",
        "Approval",
        "{revision: 6.1.6, decision: approve, by: alice}",
    ),
    (
        "a schedule without windows",
        "Gatekeeper",
        "{schedule: {timeZone: UTC}}",
    ),
    (
        "closed: lastStart belongs",
        "Gatekeeper",
        "{schedule: {closed: [{cron: '* * * * *', duration: 1h, lastStart: 1m}]}}",
    ),
    (
        "open: a window has the name of",
        "Gatekeeper",
        "{schedule: {open: [{name: a, cron: '* * * * *'}], closed: [{name: a, cron: '* * * * *'}]}}",
    ),
    (
        "open: two windows have",
        "Gatekeeper",
        "{schedule: {open: [{name: a, cron: '* * * * *'}, {name: a, cron: '0 * * * *'}]}}",
    ),
    (
        "closed: two windows have",
        "Gatekeeper",
        "{schedule: {closed: [{name: a, cron: '* * * * *'}, {name: a, cron: '0 * * * *'}]}}",
    ),
    (
        "a window is given in exactly one way",
        "Gatekeeper",
        "{schedule: {open: [{name: a}]}}",
    ),
    (
        "from and until belong",
        "Gatekeeper",
        "{schedule: {open: [{from: '2026-12-19T00:00:00'}]}}",
    ),
    (
        "until: must be later",
        "Gatekeeper",
        "{schedule: {open: [{from: '2026-12-19T00:00:00', until: '2026-12-19T00:00:00'}]}}",
    ),
    (
        "until: must be before",
        "Gatekeeper",
        "{manual: {state: open, until: '9999-12-30T00:00:00Z'}}",
    ),
    (
        "until: beside from",
        "Gatekeeper",
        "{schedule: {open: [{from: '2026-12-19T00:00:00', until: '04:00'}]}}",
    ),
    (
        "until: beside cron",
        "Gatekeeper",
        "{schedule: {open: [{cron: '0 2 * * *', until: '2026-12-19T00:00:00'}]}}",
    ),
    (
        "until: no clock",
        "Gatekeeper",
        "{schedule: {open: [{cron: '0 2 * * *', until: '24:00'}]}}",
    ),
    (
        "until: a window has one end",
        "Gatekeeper",
        "{schedule: {open: [{cron: '0 2 * * *', duration: 2h, until: '04:00'}]}}",
    ),
    (
        "duration: belongs to cron",
        "Gatekeeper",
        "{schedule: {open: [{from: '2026-12-19T00:00:00', until: '2026-12-20T00:00:00', duration: 1h}]}}",
    ),
    (
        "duration: must be longer",
        "Gatekeeper",
        "{schedule: {open: [{cron: '* * * * *', duration: 0s}]}}",
    ),
    (
        "lastStart: a cron without",
        "Gatekeeper",
        "{schedule: {open: [{cron: '* * * * *', lastStart: 1m}]}}",
    ),
    (
        "lastStart: must be longer",
        "Gatekeeper",
        "{schedule: {open: [{cron: '* * * * *', duration: 1h, lastStart: 1h}]}}",
    ),
    (
        "a calendar is read from",
        "Gatekeeper",
        "{schedule: {open: [{calendar: {interval: 1h}}]}}",
    ),
    (
        "certSecretRef: belongs",
        "Gatekeeper",
        "{schedule: {open: [{calendar: {configMapRef: {name: a, key: b}, certSecretRef: {name: a}}}]}}",
    ),
    (
        "interval: must be",
        "Gatekeeper",
        "{schedule: {open: [{calendar: {url: 'https://a', interval: 1s}}]}}",
    ),
    (
        "gatekeepers: a gatekeeper is listed twice",
        "Gate",
        "{gatekeepers: [{name: a}, {name: a}]}",
    ),
    ("revisions without a list", "Gatekeeper", "{revisions: {}}"),
    (
        "secretRef: secrets",
        "Gatekeeper",
        "{metric: {address: 'http://a', query: up, range: {min: 1}, secretRef: {name: a}}}",
    ),
    (
        "timeout: must be",
        "Gatekeeper",
        "{metric: {address: 'https://a', query: up, range: {min: 1}, timeout: 11s}}",
    ),
    (
        "for: must be",
        "Gatekeeper",
        "{metric: {address: 'https://a', query: up, range: {min: 1}, for: 0s}}",
    ),
    (
        "a range without limits",
        "Gatekeeper",
        "{metric: {address: 'https://a', query: up, range: {}}}",
    ),
    (
        "min: must not be above",
        "Gatekeeper",
        "{metric: {address: 'https://a', query: up, range: {min: 2, max: 1}}}",
    ),
    (
        "soak: must be",
        "Gatekeeper",
        "{objects: {serviceAccountName: a, of: [{apiVersion: v1, kind: Pod, name: a}], soak: 0s}}",
    ),
    (
        "objects are named or selected",
        "Gatekeeper",
        "{objects: {serviceAccountName: a, of: [{apiVersion: v1, kind: Pod}]}}",
    ),
    (
        "expression: takes the place",
        "Gatekeeper",
        "{objects: {serviceAccountName: a, of: [{apiVersion: v1, kind: Pod, name: a, condition: {type: Ready}, expression: 'true'}]}}",
    ),
    (
        "kind: Secrets are never",
        "Gatekeeper",
        "{objects: {serviceAccountName: a, of: [{apiVersion: v1, kind: Secret, name: a}]}}",
    ),
    (
        "validFor: must be longer",
        "Gatekeeper",
        "{approval: {validFor: 0s}}",
    ),
    (
        "refs: a gate is listed twice",
        "Gatekeeper",
        "{gates: {refs: [{name: a}, {name: a}]}}",
    ),
    (
        "gates.refs: a GatePolicy has no namespace",
        "GatePolicy",
        "{gates: {refs: [{name: a}]}}",
    ),
    (
        "values: belong to In",
        "GatePolicy",
        "{namespaceSelector: {matchExpressions: [{key: a, operator: In}]}, gates: {refs: [{name: a, namespace: b}]}}",
    ),
    (
        "url: forges are asked over https alone",
        "GitRepositoryAccess",
        "{provider: gitea, url: 'http://a/b', secretRef: {name: a}}",
    ),
    (
        "url: no user and no query",
        "GitRepositoryAccess",
        "{provider: gitea, url: 'https://me@a/b', secretRef: {name: a}}",
    ),
    (
        "interval: must be between 10s",
        "GitRepositoryAccess",
        "{provider: gitea, url: 'https://a/b', secretRef: {name: a}, interval: 9s}",
    ),
    (
        "webhook.secretRef: who sets up the webhook",
        "GitRepositoryAccess",
        "{provider: gitea, url: 'https://a/b', secretRef: {name: a}, webhook: {secretRef: {name: a}}}",
    ),
    (
        "environments: a branch is the proposed branch",
        "PromotionStrategy",
        "{repoRef: {name: a}, activeCommitStatuses: [{key: a}], environments: [{branch: a}, {branch: a-next}]}",
    ),
    (
        "environments: a branch is listed twice",
        "PromotionStrategy",
        "{repoRef: {name: a}, activeCommitStatuses: [{key: a}], environments: [{branch: a}, {branch: a}]}",
    ),
    (
        "environments: one that others wait for",
        "PromotionStrategy",
        "{repoRef: {name: a}, environments: [{branch: a}, {branch: b}]}",
    ),
    (
        "dryBranch: it is the branch",
        "PromotionStrategy",
        "{repoRef: {name: a}, environments: [{branch: main}]}",
    ),
    (
        "branch: write the name of a branch",
        "PromotionStrategy",
        "{repoRef: {name: a}, environments: [{branch: a..b}]}",
    ),
    (
        "statusName: others write statuses by other names",
        "PromotionStrategy",
        "{repoRef: {name: a}, statusName: a, environments: [{branch: a}]}",
    ),
    (
        "statusName: with a branch added it could be",
        "PromotionStrategy",
        "{repoRef: {name: a}, statusName: sluice/a/b, environments: [{branch: a}]}",
    ),
    (
        "activeCommitStatuses: a key is listed twice",
        "PromotionStrategy",
        "{repoRef: {name: a}, activeCommitStatuses: [{key: a}, {key: a}], environments: [{branch: a}]}",
    ),
    (
        "proposedCommitStatuses: a key is listed twice",
        "PromotionStrategy",
        "{repoRef: {name: a}, environments: [{branch: a, proposedCommitStatuses: [{key: a}, {key: a}]}]}",
    ),
    (
        "proposedCommitStatuses: Flux has not applied",
        "PromotionStrategy",
        "{repoRef: {name: a}, proposedCommitStatuses: [{key: a, flux: {kustomizations: [{name: a}]}}], environments: [{branch: a}]}",
    ),
    (
        "forge: write one of flux and forge",
        "PromotionStrategy",
        "{repoRef: {name: a}, activeCommitStatuses: [{key: a, forge: b, flux: {kustomizations: [{name: a}]}}], environments: [{branch: a}]}",
    ),
    (
        "name: names that begin with",
        "CommitStatus",
        "{repoRef: {name: a}, sha: 7f3a7f3a7f3a7f3a7f3a7f3a7f3a7f3a7f3a7f3a, name: sluice/x, phase: success}",
    ),
    (
        "url: write an address that begins with",
        "CommitStatus",
        "{repoRef: {name: a}, sha: 7f3a7f3a7f3a7f3a7f3a7f3a7f3a7f3a7f3a7f3a, name: x, phase: success, url: a}",
    ),
    ("window: must be at least", "Gate", "{window: 59s}"),
    (
        "maxOverride: must be at least",
        "Gate",
        "{maxOverride: 59m, window: 1m}",
    ),
    ("window: must not be longer", "Gate", "{window: 25h}"),
    (
        "default: only a gate",
        "Gate",
        "{default: open, gatekeepers: [{name: a}]}",
    ),
    (
        "spec.target.name: the pinned child",
        "GatedSource",
        "{sourceRef: {kind: GitRepository, name: b}, target: {name: b}, gates: {refs: [{name: a}]}}",
    ),
    (
        "sourceRef: write exactly one",
        "GatedSource",
        "{gates: {refs: [{name: a}]}}",
    ),
    (
        "selector: only the strategy suspend",
        "GatedSource",
        "{selector: {kind: GitRepository, matchLabels: {a: b}}, gates: {refs: [{name: a}]}}",
    ),
    (
        "target: belongs to sourceRef",
        "GatedSource",
        "{sourceRefs: [{kind: GitRepository, name: b}], target: {name: c}, gates: {refs: [{name: a}]}}",
    ),
    (
        "revision: can be asked for",
        "GatedSource",
        "{sourceRef: {kind: HelmChart, name: b}, strategy: suspend, revision: 1.2.3, gates: {refs: [{name: a}]}}",
    ),
    (
        "baseline: belongs to sourceRef",
        "GatedSource",
        "{sourceRefs: [{kind: HelmChart, name: b}], baseline: {revision: 1.2.3}, gates: {refs: [{name: a}]}}",
    ),
    (
        "sourceRef.kind: only GitRepository",
        "GatedSource",
        "{sourceRef: {kind: Bucket, name: b}, gates: {refs: [{name: a}]}}",
    ),
    (
        "sourceRefs: only GitRepository",
        "GatedSource",
        "{sourceRefs: [{kind: Bucket, name: b}], gates: {refs: [{name: a}]}}",
    ),
    (
        "sourceRef.kind: a HelmRepository",
        "GatedSource",
        "{sourceRef: {kind: HelmRepository, name: b}, strategy: artifact, gates: {refs: [{name: a}]}}",
    ),
    (
        "sourceRefs: a HelmRepository",
        "GatedSource",
        "{sourceRefs: [{kind: HelmRepository, name: b}], strategy: artifact, gates: {refs: [{name: a}]}}",
    ),
    (
        "sourceRefs: the strategy suspend",
        "GatedSource",
        "{sourceRefs: [{kind: HelmChart, name: b, target: {name: c}}], strategy: suspend, gates: {refs: [{name: a}]}}",
    ),
    (
        "sourceRefs: a source is listed twice",
        "GatedSource",
        "{sourceRefs: [{kind: HelmChart, name: b}, {kind: HelmChart, name: b}], gates: {refs: [{name: a}]}}",
    ),
    (
        "baseline: write from, or revision",
        "GatedSource",
        "{sourceRef: {kind: HelmChart, name: b}, baseline: {}, gates: {refs: [{name: a}]}}",
    ),
    (
        "interval: is that of pinned",
        "GatedSource",
        "{sourceRef: {kind: Bucket, name: b}, strategy: artifact, interval: 1h, gates: {refs: [{name: a}]}}",
    ),
    (
        "interval: at least 1m",
        "GatedSource",
        "{sourceRef: {kind: HelmChart, name: b}, interval: 59s, gates: {refs: [{name: a}]}}",
    ),
    (
        "spread: at most 24h",
        "GatedSource",
        "{sourceRef: {kind: HelmChart, name: b}, spread: 25h, gates: {refs: [{name: a}]}}",
    ),
    (
        "sourceRef: source and target are of one kind",
        "Rollout",
        "{targetRef: {kind: Deployment, name: a}, sourceRef: [{kind: Kustomization, name: b}], rolloutPlan: {}}",
    ),
    (
        "sourceRef: the target is also a source",
        "Rollout",
        "{targetRef: {kind: Deployment, name: a}, sourceRef: [{kind: Deployment, name: a}], rolloutPlan: {}}",
    ),
    (
        "sourceRef: a StatefulSet or CloneSet is rolled",
        "Rollout",
        "{targetRef: {kind: CloneSet, name: a}, sourceRef: [{kind: CloneSet, name: b}], rolloutPlan: {}}",
    ),
    (
        "sourceRef: a source is listed twice",
        "Rollout",
        "{targetRef: {kind: Deployment, name: a}, sourceRef: [{kind: Deployment, name: b}, {kind: Deployment, name: b}], rolloutPlan: {}}",
    ),
    (
        "rolloutStrategy: a StatefulSet",
        "Rollout",
        "{targetRef: {kind: StatefulSet, name: a}, rolloutPlan: {rolloutStrategy: DecreaseFirst}}",
    ),
    (
        "component: belongs to a Kustomization",
        "Rollout",
        "{targetRef: {kind: Deployment, name: a}, sourceRef: [{kind: Deployment, name: b}], component: web, rolloutPlan: {}}",
    ),
    (
        "rearm: belongs to a StatefulSet",
        "Rollout",
        "{targetRef: {kind: Deployment, name: a}, sourceRef: [{kind: Deployment, name: b}], rearm: true, rolloutPlan: {}}",
    ),
    (
        "progressDeadline: must be",
        "Rollout",
        "{targetRef: {kind: Deployment, name: a}, sourceRef: [{kind: Deployment, name: b}], progressDeadline: 29s, rolloutPlan: {}}",
    ),
    (
        "apiVersion: belongs to another kind",
        "Rollout",
        "{targetRef: {apiVersion: apps/v1beta1, kind: Deployment, name: a}, rolloutPlan: {}}",
    ),
    (
        "kind: only Deployment",
        "Rollout",
        "{targetRef: {kind: DaemonSet, name: a}, rolloutPlan: {}}",
    ),
    (
        "numBatches: write one of",
        "Rollout",
        "{targetRef: {kind: Deployment, name: a}, sourceRef: [{kind: Deployment, name: b}], rolloutPlan: {numBatches: 2, rolloutBatches: [{}]}}",
    ),
    (
        "batchPartition: is another name",
        "Rollout",
        "{targetRef: {kind: Deployment, name: a}, sourceRef: [{kind: Deployment, name: b}], rolloutPlan: {batchPartition: 0, lastBatchToRollout: 0}}",
    ),
    (
        "rolloutBatches: a batch before the last",
        "Rollout",
        "{targetRef: {kind: Deployment, name: a}, sourceRef: [{kind: Deployment, name: b}], rolloutPlan: {rolloutBatches: [{}, {}]}}",
    ),
    (
        "rolloutWebhooks: a name is listed twice",
        "Rollout",
        "{targetRef: {kind: Deployment, name: a}, sourceRef: [{kind: Deployment, name: b}], rolloutPlan: {rolloutWebhooks: [{type: pre-batch-rollout, name: a, url: 'http://a'}, {type: pre-batch-rollout, name: a, url: 'http://a'}]}}",
    ),
    (
        "canaryMetric: a name is listed twice",
        "Rollout",
        "{targetRef: {kind: Deployment, name: a}, sourceRef: [{kind: Deployment, name: b}], rolloutPlan: {canaryMetric: [{name: a}, {name: a}]}}",
    ),
    (
        "podList: pods cannot be picked yet",
        "Rollout",
        "{targetRef: {kind: Deployment, name: a}, sourceRef: [{kind: Deployment, name: b}], rolloutPlan: {rolloutBatches: [{podList: [a]}]}}",
    ),
    (
        "instanceInterval: the pods of a batch",
        "Rollout",
        "{targetRef: {kind: Deployment, name: a}, sourceRef: [{kind: Deployment, name: b}], rolloutPlan: {rolloutBatches: [{instanceInterval: 5}]}}",
    ),
    (
        "batchRolloutWebhooks: a name is listed twice",
        "Rollout",
        "{targetRef: {kind: Deployment, name: a}, sourceRef: [{kind: Deployment, name: b}], rolloutPlan: {rolloutBatches: [{batchRolloutWebhooks: [{type: pre-batch-rollout, name: a, url: 'http://a'}, {type: pre-batch-rollout, name: a, url: 'http://a'}]}]}}",
    ),
    (
        "batchRolloutWebhooks: a batch has hooks",
        "Rollout",
        "{targetRef: {kind: Deployment, name: a}, sourceRef: [{kind: Deployment, name: b}], rolloutPlan: {rolloutBatches: [{batchRolloutWebhooks: [{type: finalize-rollout, name: a, url: 'http://a'}]}]}}",
    ),
];

/// A rule about a change, which one object alone cannot break.
const OF_CHANGES: &str = "strategy: never changes";

/// A rule about many targets, which has a test of its own.
const OF_TARGETS: &str = "environments: at most 128 targets in all";

/// A rule about a change, of votes.
const OF_VOTES: &str = "an Approval never changes";

/// A rule about the object as a whole, with a case of its own above.
const OF_NAMES: &str = "metadata.name: at most";

/// Rules about changes.
const NEVER_CHANGE: [&str; 11] = [
    "provider: it never changes",
    "url: it never changes",
    "repoRef: it never changes",
    "a RevertCommit never changes",
    "rearm: never changes",
    "rolloutStrategy: never changes",
    "targetSize: never changes",
    "numBatches: never changes",
    "rolloutWebhooks: never change",
    "lastBatchToRollout: only grows",
    "rolloutBatches: those up to lastBatchToRollout",
];

fn rules(schema: &JSONSchemaProps, found: &mut Vec<String>) {
    for rule in schema.x_kubernetes_validations.iter().flatten() {
        found.extend(rule.message.clone());
    }
    for property in schema.properties.iter().flatten() {
        rules(property.1, found);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(each)) = &schema.items {
        rules(each, found);
    }
}

#[test]
fn every_rule_of_the_definitions_has_a_counterpart() {
    let mut found = Vec::new();
    rules(&SCHEMAS.gate.schema, &mut found);
    rules(&SCHEMAS.gatekeeper.schema, &mut found);
    rules(&SCHEMAS.gate_policy.schema, &mut found);
    rules(&SCHEMAS.approval.schema, &mut found);
    rules(&SCHEMAS.gated_source.schema, &mut found);
    rules(&SCHEMAS.pipeline.schema, &mut found);
    rules(&SCHEMAS.git_repository_access.schema, &mut found);
    rules(&SCHEMAS.promotion_strategy.schema, &mut found);
    rules(&SCHEMAS.commit_status.schema, &mut found);
    rules(&SCHEMAS.revert_commit.schema, &mut found);
    rules(&SCHEMAS.rollout.schema, &mut found);
    assert!(found.len() >= BROKEN.len());
    let beyond = |rule: &&String| {
        let beyond = [OF_NAMES, OF_CHANGES, OF_VOTES, OF_TARGETS];
        let mut beyond = beyond.iter().chain(&NEVER_CHANGE);
        beyond.any(|known| rule.starts_with(known))
    };
    for rule in found.iter().filter(|rule| !beyond(rule)) {
        let broken = BROKEN
            .iter()
            .find(|(message, ..)| rule.starts_with(message));
        let (_, kind, spec) = broken.unwrap_or_else(|| panic!("no case breaks the rule: {rule}"));
        assert_ne!(told(&with_spec(kind, spec)), [""; 0], "{rule}: {spec}");
    }
}

#[test]
fn more_targets_than_a_status_has_room_for_are_refused() {
    let of = |environments: usize, each: usize| {
        let targets: Vec<String> = (0..each).map(|n| format!("{{namespace: n{n}}}")).collect();
        let targets = targets.join(", ");
        let environment = |n: usize| format!("{{name: e{n}, targets: [{targets}]}}");
        let all: Vec<String> = (0..environments).map(environment).collect();
        let app = "appRef: {kind: HelmRelease, name: a}";
        let spec = format!("{{{app}, environments: [{}]}}", all.join(", "));
        told(&with_spec("Pipeline", &spec)).join("\n")
    };
    assert_eq!(of(4, 32), "");
    let said = of(5, 26);
    assert!(said.contains("more than 128 targets in all"), "{said}");
}
