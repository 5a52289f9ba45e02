//! The rules of the definitions, each with its counterpart here.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaPropsOrArray;

use super::*;

mod gates;
mod pipelines;
mod promotions;
mod rollouts;
mod sources;

/// How the message of a rule (CEL) begins, and a spec that breaks it.
type Broken = (&'static str, &'static str);

/// A rule about a change, which one object alone cannot break.
const OF_CHANGES: &str = "strategy: never changes";

/// A rule about many targets, which has a test of its own.
const OF_TARGETS: &str = "environments: at most 128 targets in all";

/// A rule about a change, of votes.
const OF_VOTES: &str = "an Approval never changes";

/// A rule about the object as a whole, with a case of its own above.
const OF_NAMES: &str = "metadata.name: at most";

/// Rules about changes.
const NEVER_CHANGE: [&str; 12] = [
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
    "rolloutBatches: at least one after lastBatchToRollout",
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
    let kinds: [(&str, &JSONSchemaProps, &[Broken]); 11] = [
        ("Gate", &SCHEMAS.gate.schema, gates::GATE),
        ("Gatekeeper", &SCHEMAS.gatekeeper.schema, gates::GATEKEEPER),
        (
            "GatePolicy",
            &SCHEMAS.gate_policy.schema,
            gates::GATE_POLICY,
        ),
        ("Approval", &SCHEMAS.approval.schema, gates::APPROVAL),
        (
            "GatedSource",
            &SCHEMAS.gated_source.schema,
            sources::GATED_SOURCE,
        ),
        ("Pipeline", &SCHEMAS.pipeline.schema, pipelines::PIPELINE),
        (
            "GitRepositoryAccess",
            &SCHEMAS.git_repository_access.schema,
            promotions::GIT_REPOSITORY_ACCESS,
        ),
        (
            "PromotionStrategy",
            &SCHEMAS.promotion_strategy.schema,
            promotions::PROMOTION_STRATEGY,
        ),
        (
            "CommitStatus",
            &SCHEMAS.commit_status.schema,
            promotions::COMMIT_STATUS,
        ),
        ("RevertCommit", &SCHEMAS.revert_commit.schema, &[]),
        ("Rollout", &SCHEMAS.rollout.schema, rollouts::ROLLOUT),
    ];
    let mut found = Vec::new();
    let mut broken = Vec::new();
    for (kind, schema, all) in kinds {
        rules(schema, &mut found);
        broken.extend(all.iter().map(|(message, spec)| (kind, *message, *spec)));
    }
    assert!(found.len() >= broken.len());
    let beyond = |rule: &&String| {
        let beyond = [OF_NAMES, OF_CHANGES, OF_VOTES, OF_TARGETS];
        let mut beyond = beyond.iter().chain(&NEVER_CHANGE);
        beyond.any(|known| rule.starts_with(known))
    };
    for rule in found.iter().filter(|rule| !beyond(rule)) {
        let of_rule = |(_, message, _): &&(&str, &str, &str)| rule.starts_with(message);
        // A rule that is at several fields may have a case for each.
        let mut cases = broken.iter().filter(of_rule).peekable();
        assert!(cases.peek().is_some(), "no case breaks the rule: {rule}");
        for (kind, _, spec) in cases {
            assert_ne!(told(&with_spec(kind, spec)), [""; 0], "{rule}: {spec}");
        }
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
