//! What is wrong with a strategy, and what is not.

use rstest::rstest;
use serde_json::{Value, json};

use super::*;

/// A strategy of three environments with a check, but for what is written here.
fn strategy(other: &Value) -> PromotionStrategy {
    let mut spec = json!({
        "repoRef": {"name": "shop"},
        "activeCommitStatuses": [{"key": "health"}],
        "environments": [{"branch": "env/dev"}, {"branch": "env/test"}, {"branch": "env/prod"}],
    });
    for (field, value) in other.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    let object = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "PromotionStrategy",
        "metadata": {"name": "shop", "namespace": "shop"}, "spec": spec,
    });
    serde_json::from_value(object).unwrap()
}

fn refused(object: &PromotionStrategy) -> Vec<String> {
    let refused = check(object).err().map(Refusals::into_vec);
    let refused = refused.into_iter().flatten();
    refused.map(|it| it.field).collect()
}

fn flux() -> Value {
    json!({"kustomizations": [{"name": "shop"}]})
}

#[rstest]
#[case::no_environment(json!({"environments": []}), "spec.environments")]
#[case::one_twice(
    json!({"environments": [{"branch": "a"}, {"branch": "b"}, {"branch": "a"}]}),
    "spec.environments[2].branch"
)]
#[case::no_branch(json!({"environments": [{"branch": "refs heads"}]}), "spec.environments[0].branch")]
#[case::a_lock(json!({"environments": [{"branch": "env/a.lock"}]}), "spec.environments[0].branch")]
#[case::the_proposed_branch_of_another(
    json!({"environments": [{"branch": "env"}, {"branch": "env-next"}]}),
    "spec.environments[1].branch"
)]
#[case::the_dry_branch(json!({"dryBranch": "env/test"}), "spec.dryBranch")]
#[case::a_proposed_branch(json!({"dryBranch": "env/test-next"}), "spec.dryBranch")]
#[case::no_dry_branch(json!({"dryBranch": "a..b"}), "spec.dryBranch")]
#[case::no_suffix(json!({"proposedBranchSuffix": "/next"}), "spec.proposedBranchSuffix")]
#[case::after_an_unknown_one(
    json!({"environments": [{"branch": "a"}, {"branch": "b", "after": ["a", "c"]}]}),
    "spec.environments[1].after[1]"
)]
#[case::after_itself(
    json!({"environments": [{"branch": "a"}, {"branch": "b", "after": ["b"]}]}),
    "spec.environments[1].after[0]"
)]
#[case::after_one_below(
    json!({"environments": [{"branch": "a", "after": ["b"]}, {"branch": "b", "after": []}]}),
    "spec.environments[0].after[0]"
)]
#[case::after_one_twice(
    json!({"environments": [{"branch": "a"}, {"branch": "b", "after": ["a", "a"]}]}),
    "spec.environments[1].after[1]"
)]
#[case::a_check_twice(
    json!({"activeCommitStatuses": [{"key": "a"}, {"key": "a"}]}),
    "spec.activeCommitStatuses[1].key"
)]
#[case::a_check_of_what_is_proposed_twice(
    json!({"proposedCommitStatuses": [{"key": "a"}, {"key": "b"}, {"key": "a"}]}),
    "spec.proposedCommitStatuses[2].key"
)]
#[case::a_check_of_an_environment_twice(
    json!({"environments": [{"branch": "a", "activeCommitStatuses": [{"key": "a"}, {"key": "a"}]}]}),
    "spec.environments[0].activeCommitStatuses[1].key"
)]
#[case::a_key_that_fits_no_label(
    json!({"activeCommitStatuses": [{"key": "-a"}]}),
    "spec.activeCommitStatuses[0].key"
)]
#[case::flux_of_what_is_proposed(
    json!({"proposedCommitStatuses": [{"key": "a", "flux": flux()}]}),
    "spec.proposedCommitStatuses[0].flux"
)]
#[case::two_ways(
    json!({"activeCommitStatuses": [{"key": "a", "flux": flux(), "forge": "ci"}]}),
    "spec.activeCommitStatuses[0].forge"
)]
#[case::what_we_write_ourselves(
    json!({"proposedCommitStatuses": [{"key": "a", "forge": "sluice/promotion"}]}),
    "spec.proposedCommitStatuses[0].forge"
)]
#[case::no_kustomization(
    json!({"activeCommitStatuses": [{"key": "a", "flux": {"kustomizations": []}}]}),
    "spec.activeCommitStatuses[0].flux.kustomizations"
)]
#[case::a_gate_twice(
    json!({"environments": [{"branch": "a", "revertGates": {"refs": [{"name": "a"}, {"name": "a"}]}}]}),
    "spec.environments[0].revertGates.refs[1]"
)]
#[case::no_namespace(
    json!({"commitStatusNamespaces": ["ci", "team-*"]}),
    "spec.commitStatusNamespaces[1]"
)]
#[case::a_label_of_two_lines(json!({"holdLabel": "a\nb"}), "spec.holdLabel")]
#[case::a_status_without_a_name(json!({"statusName": " "}), "spec.statusName")]
fn a_mistake_is_refused_at_its_field(#[case] other: Value, #[case] field: &str) {
    assert_eq!(refused(&strategy(&other)), [field]);
}

#[test]
fn nobody_waits_for_a_status_that_we_write() {
    let named = json!({
        "statusName": "promoter-previous-environment",
        "proposedCommitStatuses": [{"key": "a", "forge": "sluice/promotion"}],
    });
    let field = "spec.proposedCommitStatuses[0].forge";
    assert_eq!(refused(&strategy(&named)), [field]);
    let foreign = json!({"statusName": "ci/build"});
    assert_eq!(refused(&strategy(&foreign)), ["spec.statusName"]);
}

/// The name of one strategy with a branch is that of no other one.
#[rstest]
#[case::one_word("sluice/env", true)]
#[case::of_the_promoter("promoter-previous-environment", true)]
#[case::more_words("sluice/promotion/env", false)]
#[case::a_slash_at_the_end("sluice/promotion/", false)]
#[case::no_word("sluice/", false)]
#[case::of_dry_commits("sluice/dry", false)]
#[case::of_dry_commits_on_github("sluice/Dry", false)]
#[case::of_pipelines("sluice/gate", false)]
#[case::longer("sluice/gates", true)]
fn a_status_name_and_a_branch_cannot_be_taken_for_others(
    #[case] name: &str,
    #[case] is_right: bool,
) {
    let refused = refused(&strategy(&json!({"statusName": name})));
    assert_eq!(refused.is_empty(), is_right, "{refused:?}");
}

/// Which environments others wait for depends on `after`.
#[rstest]
#[case::in_a_row(json!([{}, {}, {}]), &[0, 1])]
#[case::a_check(json!([{"activeCommitStatuses": [{"key": "a"}]}, {}, {}]), &[1])]
#[case::gates(json!([{}, {"activeGates": {"refs": [{"name": "a"}]}}, {}]), &[0])]
#[case::unchecked(json!([{"unchecked": true}, {"unchecked": true}, {}]), &[])]
#[case::each_for_itself(json!([{}, {"after": []}, {"after": []}]), &[])]
#[case::both_after_the_first(json!([{}, {"after": ["e0"]}, {"after": ["e0"]}]), &[0])]
#[case::the_last_waits_for_both(json!([{}, {"after": []}, {"after": ["e0", "e1"]}]), &[0, 1])]
#[case::one_that_cannot_be_told_from_one_that_is_waited_for(
    json!([{"unchecked": true}, {"unchecked": true}, {}, {"after": ["e1"]}]), &[2]
)]
#[case::one_alone(json!([{}]), &[])]
fn what_others_wait_for_is_checked(#[case] environments: Value, #[case] expected: &[usize]) {
    let mut environments = environments;
    for (n, environment) in environments.as_array_mut().unwrap().iter_mut().enumerate() {
        environment["branch"] = format!("e{n}").into();
    }
    let other = json!({"environments": environments, "activeCommitStatuses": []});
    let expected: Vec<_> = expected
        .iter()
        .map(|n| format!("spec.environments[{n}]"))
        .collect();
    assert_eq!(refused(&strategy(&other)), expected);
}

#[test]
fn names_leave_room_for_those_of_pull_requests() {
    let mut object = strategy(&json!({}));
    object.metadata.name = Some("a".repeat(50));
    assert_eq!(refused(&object), [""; 0]);
    object.metadata.name = Some("a".repeat(51));
    assert_eq!(refused(&object), ["metadata.name"]);
}

#[test]
fn the_refusal_says_what_stands_above() {
    let other = json!({"environments": [
        {"branch": "env/dev"}, {"branch": "env/test"}, {"branch": "env/prod", "after": ["env/tst"]},
    ]});
    let refused = check(&strategy(&other)).unwrap_err().to_string();
    let expected = "spec.environments[2].after[0]: no environment `env/tst` stands above; write some of \
                    env/dev, env/test";
    assert_eq!(refused, expected);
}
