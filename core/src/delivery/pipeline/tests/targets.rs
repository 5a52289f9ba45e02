//! What a target runs, and whether it runs it healthily: cell by cell.

use rstest::rstest;
use sluice_crds::pipeline::{Target, TargetStatus};

use super::super::target::{Seen, Verdict};
use super::*;

fn reader(kind: &str, more: &Value) -> Reader {
    let mut spec = json!({
        "appRef": {"kind": kind, "name": "podinfo"},
        "environments": [{"name": "dev", "targets": [{"namespace": "dev"}]}],
    });
    let map = spec.as_object_mut().unwrap();
    map.extend(more.as_object().unwrap().clone());
    Reader::new(&serde_json::from_value(spec).unwrap()).unwrap()
}

fn target() -> Target {
    Target {
        namespace: "dev".to_owned(),
        cluster_ref: None,
    }
}

fn seen(reader: &Reader, object: &Value, before: Option<&TargetStatus>) -> Seen {
    let sight = Sight::Here(Arc::new(reader.read(object)));
    Seen::new(&target(), &sight, before)
}

fn kustomization(change: &Value) -> Value {
    let mut object = json!({
        "metadata": {"generation": 2},
        "spec": {"suspend": false},
        "status": {
            "observedGeneration": 2, "lastAppliedRevision": "6.1.0",
            "lastAttemptedRevision": "6.1.0",
            "conditions": [{"type": "Ready", "status": "True", "message": "applied"}],
        },
    });
    for (pointer, value) in change.as_object().unwrap() {
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        let parent = object.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        match value {
            Value::Null => drop(parent.remove(field)),
            value => drop(parent.insert(field.to_owned(), value.clone())),
        }
    }
    object
}

fn before(ready: bool, revision: &str, attempted: Option<&str>) -> TargetStatus {
    TargetStatus {
        namespace: "dev".to_owned(),
        cluster_ref: None,
        ready,
        revision: Some(revision.to_owned()),
        attempted: attempted.map(str::to_owned),
        versions: BTreeMap::new(),
        error: (!ready).then(|| "it said so".to_owned()),
    }
}

const SUSPENDED: &str = "failed: it is suspended";
const BEHIND: &str = "at work: its controller has not looked at its newest spec yet";
const AT_WORK: &str = "at work: its controller is at work";
const NO_REVISION: &str = "failed: it is ready, and says of no revision that it runs it";

#[rstest]
#[case::ready(json!({}), "healthy")]
#[case::suspended(json!({"/spec/suspend": true}), SUSPENDED)]
#[case::suspended_and_behind(
    json!({"/spec/suspend": true, "/metadata/generation": 3}), SUSPENDED)]
#[case::behind(json!({"/metadata/generation": 3}), BEHIND)]
#[case::never_observed(json!({"/status/observedGeneration": null}), BEHIND)]
#[case::behind_and_failed(json!({"/metadata/generation": 3,
    "/status/conditions": [{"type": "Ready", "status": "False", "message": "m"}]}), BEHIND)]
#[case::no_status(json!({"/status": null}), BEHIND)]
#[case::failed(json!({"/status/conditions": [{"type": "Ready", "status": "False",
    "message": "no such chart"}]}), "failed: no such chart")]
#[case::failed_without_words(json!({"/status/conditions": [{"type": "Ready", "status": "False"}]}),
    "failed: it is not ready")]
#[case::unknown(json!({"/status/conditions": [{"type": "Ready", "status": "Unknown"}]}), AT_WORK)]
#[case::no_ready(json!({"/status/conditions": [{"type": "Healthy", "status": "True"}]}), AT_WORK)]
#[case::no_conditions(json!({"/status/conditions": null}), AT_WORK)]
#[case::without_a_revision(json!({"/status/lastAppliedRevision": null}), NO_REVISION)]
#[case::with_an_empty_one(json!({"/status/lastAppliedRevision": ""}), NO_REVISION)]
#[case::no_revision(json!({"/status/lastAppliedRevision": "a b"}),
    "failed: `a b` is no revision: it holds a space or a control character")]
fn a_verdict_without_memory(#[case] change: Value, #[case] expected: &str) {
    let seen = seen(
        &reader("Kustomization", &json!({})),
        &kustomization(&change),
        None,
    );
    assert_eq!(verdict(&seen), expected);
    assert_eq!(seen.status.ready, expected == "healthy");
}

fn verdict(seen: &Seen) -> String {
    match &seen.runs.as_ref().unwrap().verdict {
        Verdict::Healthy => "healthy".to_owned(),
        Verdict::AtWork(why) => format!("at work: {why}"),
        Verdict::Failed(why) => format!("failed: {why}"),
    }
}

#[rstest]
#[case::it_was_ready(before(true, "6.1.0", None), json!({}), "healthy")]
#[case::it_was_not(before(false, "6.1.0", None), json!({}), "failed: it said so")]
#[case::it_runs_another(before(true, "6.0.0", None), json!({}), AT_WORK)]
#[case::it_was_told_another(before(true, "6.1.0", Some("6.2.0")), json!({}), AT_WORK)]
#[case::it_is_told_another(
    before(true, "6.1.0", None), json!({"/status/lastAttemptedRevision": "6.2.0"}), AT_WORK)]
#[case::it_runs_nothing(
    before(true, "6.1.0", None), json!({"/status/lastAppliedRevision": null}), AT_WORK)]
#[case::of_another_target(
    TargetStatus { namespace: "other".to_owned(), ..before(true, "6.1.0", None) },
    json!({}), AT_WORK)]
fn while_it_is_not_known_it_is_as_before(
    #[case] before: TargetStatus,
    #[case] change: Value,
    #[case] expected: &str,
    #[values("Unknown", "none")] ready: &str,
) {
    let mut object = kustomization(&change);
    object["status"]["conditions"] = match ready {
        "none" => json!([]),
        ready => json!([{"type": "Ready", "status": ready}]),
    };
    let seen = seen(&reader("Kustomization", &json!({})), &object, Some(&before));
    assert_eq!(verdict(&seen), expected);
}

/// helm-controller appends twelve digits of the digest to versions of charts from registries.
#[rstest]
#[case::plain(json!({"chartVersion": "6.1.0"}), "6.1.0")]
#[case::from_a_registry(
    json!({"chartVersion": "6.1.0+4f2a9c1e0b7d", "ociDigest": "sha256:4f2a9c1e0b7d8a6f"}), "6.1.0")]
#[case::build_metadata_of_its_own(
    json!({"chartVersion": "6.1.0+build.3", "ociDigest": "sha256:4f2a9c1e0b7d8a6f"}),
    "6.1.0+build.3")]
#[case::another_digest(
    json!({"chartVersion": "6.1.0+4f2a9c1e0b7d", "ociDigest": "sha256:000000000000aaaa"}),
    "6.1.0+4f2a9c1e0b7d")]
#[case::no_digest(json!({"chartVersion": "6.1.0+4f2a9c1e0b7d"}), "6.1.0+4f2a9c1e0b7d")]
fn a_helm_release_runs_the_newest_that_was_deployed(#[case] release: Value, #[case] runs: &str) {
    let mut deployed = release;
    deployed["status"] = json!("deployed");
    let object = json!({
        "metadata": {"generation": 1},
        "status": {
            "observedGeneration": 1, "lastAttemptedRevision": "6.2.0+aaaaaaaaaaaa",
            "lastAttemptedRevisionDigest": "sha256:aaaaaaaaaaaabbbb",
            "history": [
                {"chartVersion": "6.2.0", "status": "failed"}, deployed,
                {"chartVersion": "5.0.0", "status": "deployed"},
            ],
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    });
    let seen = seen(&reader("HelmRelease", &json!({})), &object, None);
    assert_eq!(seen.status.revision.as_deref(), Some(runs));
    assert_eq!(seen.status.attempted.as_deref(), Some("6.2.0"));
}

#[rstest]
#[case::kustomization("Kustomization")]
#[case::terraform("Terraform")]
#[case::any_other("Widget")]
fn other_kinds_say_what_they_applied_last(#[case] kind: &str) {
    let object = kustomization(&json!({"/status/lastAttemptedRevision": "6.2.0"}));
    let seen = seen(&reader(kind, &json!({})), &object, None);
    assert_eq!(seen.status.revision.as_deref(), Some("6.1.0"));
    assert_eq!(seen.status.attempted.as_deref(), Some("6.2.0"));
}

#[test]
fn expressions_say_what_it_runs_and_what_is_shown() {
    let long = "x".repeat(100);
    let more = json!({
        "appRef": {"kind": "Widget", "name": "w", "revisionExpression": "object.spec.tag"},
        "versions": [
            {"name": "image", "expression": "object.spec.long"},
            {"name": "absent", "expression": "object.spec.absent"},
            {"name": "number", "expression": "object.metadata.generation"},
        ],
    });
    let mut object = kustomization(&json!({}));
    object["spec"] = json!({"tag": "1.2.3", "long": long});
    let seen = seen(&reader("Widget", &more), &object, None);
    assert_eq!(seen.status.revision.as_deref(), Some("1.2.3"));
    assert!(seen.status.ready);
    let versions = &seen.status.versions;
    assert_eq!(versions.keys().collect::<Vec<_>>(), ["image"]);
    assert!(versions["image"].starts_with("xxx") && versions["image"].len() <= 64);
    let error = seen.status.error.unwrap();
    assert!(
        error.contains("version absent: there is no key `absent`"),
        "{error}"
    );
    assert!(
        error.contains("version number: its value has the type int"),
        "{error}"
    );
}

#[rstest]
#[case::absent("object.spec.absent", "there is no key `absent`")]
#[case::no_text("object.metadata.generation", "not to a text")]
#[case::too_costly(
    "object.many.map(a, object.many.map(b, object.many.map(c, string(a)))).map(x, 'x')[0]",
    "too much work"
)]
fn an_expression_that_gives_no_revision_is_told(#[case] expression: &str, #[case] problem: &str) {
    let more = json!({"appRef": {"kind": "Widget", "name": "w", "revisionExpression": expression}});
    let mut object = kustomization(&json!({}));
    object["many"] = (0..2000).collect();
    let seen = seen(&reader("Widget", &more), &object, None);
    assert!(!seen.status.ready);
    let error = seen.status.error.unwrap();
    assert!(error.contains(problem), "{error}");
}

#[test]
fn an_app_that_says_nothing_new_reads_the_same() {
    let reader = reader("Kustomization", &json!({}));
    let mut object = kustomization(&json!({}));
    let one = reader.read(&object);
    object["metadata"]["resourceVersion"] = json!("2");
    object["status"]["conditions"][0]["message"] = json!("another");
    assert_eq!(reader.read(&object), one);
    object["status"]["lastAppliedRevision"] = json!("6.1.1");
    assert_ne!(reader.read(&object), one);
}

/// What names no revision is no reason to promote anything, neither in the first environment nor later.
#[rstest]
#[case::too_long(&"6".repeat(300), "it is longer than 256 characters")]
#[case::with_blanks("6.1.6 rm -rf", "it holds a space or a control character")]
fn what_is_no_revision_is_told_and_never_promoted(#[case] text: &str, #[case] problem: &str) {
    let mut play = Play::new(&json!({"strategy": {"admission": {}}}));
    play.settle();
    play.runs("dev", text);
    play.settle();
    assert_eq!(
        play.says("PromotionPending").unwrap(),
        "True EnvironmentNotReady"
    );
    let error = play.environment("dev").targets[0].error.clone().unwrap();
    assert!(error.contains(problem), "{error}");
    assert!(play.told.is_empty());

    play.runs("dev", "6.1.6");
    play.runs("staging", text);
    play.settle();
    assert_eq!(play.environment("staging").admitted[0].revision, "6.1.6");
    let error = play.environment("staging").targets[0]
        .error
        .clone()
        .unwrap();
    assert!(error.contains(problem), "{error}");
    assert!(play.environment("prod").admitted.is_empty());
    assert!(
        play.told
            .iter()
            .all(|it| it.subject.environment.as_deref() == Some("staging"))
    );
}
