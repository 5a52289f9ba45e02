//! Objects of the shapes that GitOps Promoter publishes, and what becomes of them.

use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::clock;
use crate::files::{Content, Input, Source};

const CLUSTER: &str = include_str!("examples/cluster.yaml");
const GITHUB: &str = include_str!("examples/github.yaml");
const REFUSED: &str = include_str!("examples/refused.yaml");
const SCHEDULED: &str = include_str!("examples/scheduled.yaml");
const TIMED: &str = include_str!("examples/timed.yaml");
const WEB_REQUEST: &str = include_str!("examples/web-request.yaml");

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
#[case::refused("refused", REFUSED, 8)]
#[case::scheduled("scheduled", SCHEDULED, 0)]
#[case::timed("timed", TIMED, 0)]
#[case::web_request("web_request", WEB_REQUEST, 0)]
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
