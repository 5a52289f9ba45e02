//! Objects of the shapes that GitOps Promoter publishes, and what becomes of them.

use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::clock;
use crate::files::{Content, Input, Source};

const CLUSTER: &str = include_str!("examples/cluster.yaml");
const GITHUB: &str = include_str!("examples/github.yaml");
const ORDER: &str = include_str!("examples/order.yaml");
const REFUSED: &str = include_str!("examples/refused.yaml");
const SCHEDULED: &str = include_str!("examples/scheduled.yaml");
const TIMED: &str = include_str!("examples/timed.yaml");
const WEB_REQUEST: &str = include_str!("examples/web-request.yaml");
const ZONES: &str = include_str!("examples/zones.yaml");

fn source(text: &str) -> Source {
    Source {
        origin: "stdin".to_owned(),
        text: Ok(Content::Text(text.to_owned())),
        asked_for: true,
    }
}

fn adopt(text: &str) -> Adopted {
    let objects = files::objects_in(&[source(text)]).unwrap();
    Adopted::of(&Found::of(objects, "default"))
}

fn printed(adopted: &Adopted) -> String {
    let documents = adopted.documents.iter();
    documents.map(|it| it.text().unwrap()).collect()
}

/// What `kubectl gate lint` refuses, and what it warns of.
fn found_by_lint(text: &str) -> Vec<String> {
    let mut input = Input::new(&[source(text)], "default");
    input.look_at_all(clock::now());
    input.findings().iter().map(ToString::to_string).collect()
}

#[rstest]
#[case::cluster("cluster", CLUSTER, 0)]
#[case::github("github", GITHUB, 1)]
#[case::order("order", ORDER, 0)]
#[case::refused("refused", REFUSED, 12)]
#[case::scheduled("scheduled", SCHEDULED, 0)]
#[case::timed("timed", TIMED, 0)]
#[case::web_request("web_request", WEB_REQUEST, 0)]
#[case::zones("zones", ZONES, 0)]
fn what_is_printed_passes_lint(#[case] name: &str, #[case] text: &str, #[case] refused: usize) {
    let adopted = adopt(text);
    assert_eq!(adopted.refused, refused);
    let printed = printed(&adopted);
    let findings = found_by_lint(&printed);
    // What is not printed is missed by what names it.
    let is_expected = |it: &String| name == "refused" && it.contains("no GitRepositoryAccess");
    let findings: Vec<_> = findings.iter().filter(|it| !is_expected(it)).collect();
    assert!(findings.is_empty(), "{findings:?}\n{printed}");
    let lost = adopted.table(None).unwrap_or_default();
    insta::assert_snapshot!(name, format!("{printed}\n{lost}"));
}

/// Whatever is lost stands above the object that is printed, too.
#[test]
fn what_is_lost_stands_in_both_places() {
    let adopted = adopt(GITHUB);
    let (printed, table) = (printed(&adopted), adopted.table(None).unwrap());
    let what = "spec.pullRequest.labels: there are no labels by an expression";
    assert!(printed.contains(&format!("# - {what}")) && table.contains(what));
    assert!(
        table.contains("ArgoCDCommitStatus payments/payments"),
        "{table}"
    );
}

#[rstest]
#[case::status("Response.StatusCode == 204", json!({"expectedStatuses": [204]}))]
#[case::kept(
    "Response == nil ? Phase == 'success' : Response.Body.ok",
    json!({"expectedStatuses": [200], "expression": "body.ok"})
)]
#[case::guarded(
    "Response != nil && (Response.Body.a) && (Response.Body.b)",
    json!({"expectedStatuses": [200], "expression": "(body.a) && (body.b)"})
)]
#[case::a_range(
    "Response.StatusCode >= 200 && Response.StatusCode < 300",
    json!({"expectedStatuses": [200], "expression": "status >= 200 && status < 300"})
)]
#[case::phases("Response.StatusCode >= 500 ? {phase: 'failure'} : true", Value::Null)]
#[case::outputs("SuccessOutput.ok", Value::Null)]
fn an_answer_is_judged_as_far_as_it_goes(#[case] expression: &str, #[case] expected: Value) {
    let before = "Response != nil ? (Response.StatusCode == 200 && Response.Body.left > 0.1) : Phase == 'success'";
    assert!(WEB_REQUEST.contains(before));
    let quoted = expression.replace('\'', "\"");
    let adopted = adopt(&WEB_REQUEST.replace(before, &quoted));
    let keepers = adopted.documents.iter().map(|it| &it.object);
    let mut keepers = keepers.filter(|it| it["kind"] == "Gatekeeper");
    let found = keepers.find(|it| it["metadata"]["name"] == "ops-error-budget-env-blue");
    let mut found = found.map_or(Value::Null, |it| it["spec"]["http"].clone());
    if let Some(fields) = found.as_object_mut() {
        fields.retain(|field, _| ["expectedStatuses", "expression"].contains(&field.as_str()));
    }
    assert_eq!(found, expected);
}

/// A check that nobody writes any more keeps closed what it kept closed.
#[test]
fn what_has_no_counterpart_waits() {
    let adopted = adopt(REFUSED);
    let mut objects = adopted.documents.iter().map(|it| &it.object);
    let strategy = objects
        .find(|it| it["kind"] == "PromotionStrategy")
        .unwrap();
    let keys = json!([{"key": "signed-off"}, {"key": "posted"}, {"key": "zones"}]);
    assert_eq!(strategy["spec"]["activeCommitStatuses"], keys);
}

/// All kinds that have been in the group, and one that nobody knows yet.
#[rstest]
fn nothing_of_the_group_is_passed_over_in_silence(
    #[values(
        "ArgoCDCommitStatus",
        "ChangeTransferPolicy",
        "ChangeTransferPolicyHistory",
        "ClusterScmProvider",
        "CommitStatus",
        "ControllerConfiguration",
        "DAGCommitStatus",
        "DependentsSuccessfulCommitStatus",
        "DryShaSuccessfulCommitStatus",
        "DryShaValidationCommitStatus",
        "GitCommitStatus",
        "GitRepository",
        "PreviousEnvironmentCommitStatus",
        "PromoterNotification",
        "PromotionConfiguration",
        "PromotionStrategy",
        "PromotionStrategyHistory",
        "ProposedCommit",
        "PullRequest",
        "RequiredCheckCommitStatus",
        "RequiredStatusCheckCommitStatus",
        "RestoreActiveCommit",
        "RevertActiveCommit",
        "RevertCommit",
        "ScheduledCommitStatus",
        "ScmProvider",
        "Surprise",
        "SurpriseCommitStatus",
        "TimedCommitStatus",
        "WebRequestCommitStatus"
    )]
    kind: &str,
) {
    let object = format!(
        "{{apiVersion: promoter.argoproj.io/v2, kind: {kind}, metadata: {{name: alone, namespace: a}}, \
         spec: {{}}}}"
    );
    let adopted = adopt(&object);
    let told = adopted.table(None).unwrap_or_default();
    let rows = told.lines().skip(1).filter(|row| row.starts_with(kind));
    assert!(rows.count() > 0, "{told}");
}

/// What its own controllers write is written no more once they are gone.
#[test]
fn a_commit_status_that_another_object_owns_is_left_out() {
    let owner = "\n  ownerReferences: [{apiVersion: promoter.argoproj.io/v1alpha1, kind: TimedCommitStatus, \
                 name: payments, uid: a}]\n  labels:\n    promoter.argoproj.io/commit-status: smoke-test";
    let before = "\n  labels:\n    promoter.argoproj.io/commit-status: smoke-test";
    assert!(GITHUB.contains(before));
    let adopted = adopt(&GITHUB.replace(before, owner));
    assert_eq!(adopted.refused, 1);
    assert!(!printed(&adopted).contains("kind: CommitStatus"));
    let told = adopted.table(None).unwrap();
    assert!(
        told.contains("CommitStatus payments/smoke-test-pre"),
        "{told}"
    );
}

/// The environments of a strategy, each with the branches that it says it waits for.
fn order_of(adopted: &Adopted, name: &str) -> Vec<(String, Value)> {
    let mut all = adopted.documents.iter().map(|it| &it.object);
    let strategy =
        all.find(|it| it["kind"] == "PromotionStrategy" && it["metadata"]["name"] == name);
    let environments = strategy.unwrap()["spec"]["environments"]
        .as_array()
        .unwrap();
    let named = |it: &Value| {
        (
            it["branch"].as_str().unwrap().to_owned(),
            it["after"].clone(),
        )
    };
    environments.iter().map(named).collect()
}

#[test]
fn environments_stand_below_those_that_they_wait_for() {
    let adopted = adopt(ORDER);
    let trial = json!(["regions/trial"]);
    let expected = [
        ("regions/trial", Value::Null),
        ("regions/east", trial.clone()),
        ("regions/west", trial),
        ("regions/world", json!(["regions/east", "regions/west"])),
    ];
    let expected = expected.map(|(branch, after)| (branch.to_owned(), after));
    assert_eq!(order_of(&adopted, "regions"), expected);
    for (_, after) in order_of(&adopted, "pair") {
        assert_eq!(after, Value::Null);
    }
}

/// Two that wait for nothing are two beginnings.
#[test]
fn what_waits_for_nothing_says_so() {
    let other = "    - branch: regions/west\n      dependsOn: [regions/trial]";
    assert!(ORDER.contains(other));
    let adopted = adopt(&ORDER.replace(other, "    - branch: regions/west"));
    let order = order_of(&adopted, "regions");
    assert!(
        order.contains(&("regions/west".to_owned(), json!([]))),
        "{order:?}"
    );
}

#[test]
fn an_order_that_is_not_known_is_lost() {
    let known = "{kind: DependentsSuccessfulCommitStatus, name: regions}";
    assert!(ORDER.contains(known));
    let own = "{group: example.com, kind: TideCommitStatus, name: regions}";
    let told = adopt(&ORDER.replace(known, own)).table(None).unwrap();
    assert!(
        told.contains("which order a TideCommitStatus makes is not known"),
        "{told}"
    );
}

#[test]
fn environments_that_wait_for_each_other_are_refused() {
    let trial = "    - branch: regions/trial\n";
    assert!(ORDER.contains(trial));
    let circle = format!("{trial}      dependsOn: [regions/world]\n");
    let adopted = adopt(&ORDER.replace(trial, &circle));
    assert_eq!(adopted.refused, 2);
    let told = adopted.table(None).unwrap();
    assert!(
        told.contains("its PromotionStrategy is not printed"),
        "{told}"
    );
}

#[test]
fn two_branches_that_look_alike_have_gates_of_their_own() {
    let alike = TIMED.replace("env/half", "env-canary");
    let adopted = adopt(&alike);
    let gates = adopted.documents.iter().map(|it| &it.object);
    let gates = gates.filter(|it| it["kind"] == "Gate");
    let names: std::collections::BTreeSet<_> =
        gates.map(|it| it["metadata"]["name"].to_string()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
}

/// The page shows what goes in, and then what comes out.
#[test]
fn the_guide_shows_what_is_printed() {
    let guide = include_str!("../../../../../docs/guides/moving-from-gitops-promoter.md");
    let mut blocks = guide.split("```yaml\n").skip(1);
    let mut block = || blocks.next().unwrap().split("```").next().unwrap();
    let (theirs, ours) = (block(), block());
    let adopted = adopt(theirs);
    let objects: Vec<_> = adopted.documents.into_iter().map(|it| it.object).collect();
    let shown = files::objects_in(&[source(ours)]).unwrap();
    let shown: Vec<_> = shown.into_iter().map(|(_, value)| value).collect();
    assert_eq!(objects, shown);
}
