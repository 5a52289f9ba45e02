//! Which branches a pattern stands for, and whom an access lets promote.

use rstest::rstest;
use serde_json::json;

use super::*;

#[rstest]
#[case::itself("env/prod", "env/prod", true)]
#[case::another("env/prod", "env/prods", false)]
#[case::a_beginning("env/prod", "env/pro", false)]
#[case::any_part("env/*", "env/prod", true)]
#[case::no_deeper_part("env/*", "env/eu/prod", false)]
#[case::nothing("env/*", "env/", true)]
#[case::deeper("env/**", "env/eu/prod", true)]
#[case::all("**", "env/eu/prod", true)]
#[case::one_part("*", "main", true)]
#[case::one_part_of_two("*", "env/prod", false)]
#[case::in_between("env/*/prod", "env/eu/prod", true)]
#[case::deep_in_between("env/**/prod", "env/eu/west/prod", true)]
#[case::a_part_of_a_part("env/prod-*", "env/prod-eu", true)]
#[case::twice("*-*", "a-b-c", true)]
#[case::three_stars("***", "a/b", true)]
#[case::no_pattern_of_other_kinds("env/pro?", "env/prod", false)]
#[case::letters_of_other_languages("gr*e", "größe", true)]
#[case::empty("", "", true)]
fn a_branch_is_one_of_a_pattern(
    #[case] pattern: &str,
    #[case] branch: &str,
    #[case] expected: bool,
) {
    assert_eq!(glob::matches(pattern, branch), expected);
}

#[test]
fn a_pattern_of_many_stars_takes_no_time() {
    let pattern = "*a".repeat(122);
    assert!(!glob::matches(&pattern, &"a".repeat(121)));
    assert!(glob::matches(&pattern, &"a".repeat(244)));
}

#[test]
fn others_promote_only_where_they_are_let() {
    let object = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "GitRepositoryAccess",
        "metadata": {"name": "shop", "namespace": "shop"},
        "spec": {
            "provider": "gitea", "url": "https://git.example.com/acme/shop.git",
            "secretRef": {"name": "shop-push"},
            "allow": [
                {"namespaces": ["team-a", "team-b"], "branches": ["env/dev", "env/test-*"]},
                {"namespaces": ["team-b"], "branches": ["env/prod"]},
            ],
        },
    });
    let access: GitRepositoryAccess = serde_json::from_value(object).unwrap();
    for (from, branch, expected) in [
        ("shop", "main", true),
        ("shop", "env/prod", true),
        ("team-a", "env/dev", true),
        ("team-a", "env/test-eu", true),
        ("team-a", "env/prod", false),
        ("team-b", "env/prod", true),
        ("team-b", "main", false),
        ("team-c", "env/dev", false),
        ("", "env/dev", false),
    ] {
        assert_eq!(
            allows(&access, "shop", from, branch),
            expected,
            "{from} {branch}"
        );
    }
}
