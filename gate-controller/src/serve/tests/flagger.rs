//! `POST /gate/check`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rstest::rstest;
use sluice_crds::Require;

use super::*;

/// What Flagger sends, with this metadata.
fn webhook(metadata: &Value) -> Value {
    json!({
        "name": "podinfo",
        "namespace": "apps",
        "phase": "Progressing",
        "checksum": "85d557f47b",
        "metadata": metadata,
    })
}

/// The password of a URL, as Go sends it.
fn in_the_url(user: &str) -> String {
    let credentials = STANDARD.encode(format!("token:token-of-{user}"));
    format!("Basic {credentials}")
}

async fn ask(stage: &Stage, credentials: Option<&str>, body: &Value) -> Answer {
    stage
        .post("/gate/check", credentials, body.to_string())
        .await
}

/// A controller that answers without tokens.
fn trusting() -> Stage {
    Scene {
        flagger_without_token: true,
        ..Scene::default()
    }
    .start()
}

#[tokio::test]
async fn an_open_gate_lets_the_canary_go_on_and_a_closed_one_holds_it() {
    let stage = Scene::default().start();
    let body = webhook(&json!({"gate": "production"}));
    for credentials in [in_the_url("alice"), "Bearer token-of-alice".to_owned()] {
        let open = ask(&stage, Some(&credentials), &body).await;
        assert_eq!(open.status, StatusCode::OK);
        let expected = json!({
            "open": true,
            "reason": "InsideWindow",
            "message": "a secret of office-hours",
        });
        assert_eq!(open.body, expected);
    }
    stage.decider.closed.store(true, Ordering::SeqCst);
    let closed = ask(&stage, Some(&in_the_url("alice")), &body).await;
    assert_eq!(closed.status, StatusCode::FORBIDDEN);
    assert_eq!(closed.body["open"], false);

    let (_, subject, _) = stage.decider.asked().remove(0);
    let expected = Subject {
        kind: "Canary".to_owned(),
        namespace: "apps".to_owned(),
        name: Some("podinfo".to_owned()),
        action: "advance".to_owned(),
        revision: None,
    };
    assert_eq!(subject, expected);
}

#[tokio::test]
async fn without_a_token_it_waits_unless_the_operator_says_otherwise() {
    let body = webhook(&json!({"gate": "production"}));
    let stage = Scene::default().start();
    let refused = ask(&stage, None, &body).await;
    assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
    assert!(refused.text("remedy").contains("--flagger-without-token"));
    let other = ask(&stage, Some(&in_the_url("bob")), &body).await;
    assert_eq!(other.status, StatusCode::FORBIDDEN);
    assert!(other.text("error").contains("\"bob\" may not check"));

    let stage = trusting();
    stage.decider.closed.store(true, Ordering::SeqCst);
    let answer = ask(&stage, None, &body).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    let expected = json!({"open": false, "reason": "OutsideWindow"});
    assert_eq!(answer.body, expected, "and no more");
    assert_eq!(stage.api.counts(), (0, 0));
    // A token that is sent is looked at all the same.
    let wrong = ask(&stage, Some("Bearer nonsense"), &body).await;
    assert_eq!(wrong.status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn without_a_token_the_rate_is_that_of_the_address() {
    let stage = Scene {
        flagger_without_token: true,
        rate: 1,
        burst: 1,
        ..Scene::default()
    }
    .start();
    let body = webhook(&json!({"gate": "production"}));
    assert_eq!(ask(&stage, None, &body).await.status, StatusCode::OK);
    let limited = ask(&stage, None, &body).await;
    assert_eq!(limited.status, StatusCode::TOO_MANY_REQUESTS);
    let elsewhere = [192, 0, 2, 9].into();
    let body = body.to_string();
    let other = stage.post_from(elsewhere, "/gate/check", None, body).await;
    assert_eq!(other.status, StatusCode::OK);
}

#[tokio::test]
async fn the_metadata_is_the_question() {
    let stage = trusting();
    let metadata = json!({
        "gates": "production, shared/freeze",
        "require": "oneOf",
        "revision": "6.7.1",
        "hook": "confirm-promotion",
    });
    let answer = ask(&stage, None, &webhook(&metadata)).await;
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    let (set, subject, revision) = stage.decider.asked().remove(0);
    assert_eq!(set.require, Require::OneOf);
    let gates = set.refs.iter().map(|gate| {
        let namespace = gate.namespace.as_deref().unwrap();
        format!("{namespace}/{}", gate.name)
    });
    let gates: Vec<_> = gates.collect();
    assert_eq!(gates, ["apps/production", "shared/freeze"]);
    assert_eq!(revision.as_deref(), Some("6.7.1"));
    assert_eq!(subject.action, "confirm-promotion");
}

#[rstest]
#[case::none(json!({}), "metadata", "names no gate")]
#[case::empty(json!({"gate": ""}), "metadata.gate[].name", "is not the name")]
#[case::dangling(json!({"gates": "a,"}), "metadata.gates[].name", "is not the name")]
#[case::both(json!({"gate": "a", "gates": "b"}), "metadata.gates", "beside `gate`")]
#[case::twice(json!({"gates": "a,apps/a"}), "metadata.gates[apps/a]", "the same gate")]
#[case::too_many_parts(json!({"gate": "a/b/c"}), "metadata.gate[a/b/c].name", "is not the name")]
#[case::require(json!({"gate": "a", "require": "one"}), "metadata.require", "`one` is not known")]
#[case::revision(json!({"gate": "a", "revision": "sha1:4f2a"}), "metadata.revision", "not a digest")]
#[case::misspelt(json!({"gate": "a", "revison": "1"}), "metadata.revison", "not known")]
#[case::event(
    json!({"gate": "a", "eventMessage": "m", "eventType": "Normal"}),
    "metadata",
    "tell and do not ask"
)]
#[case::rollback(json!({"gate": "a", "hook": "rollback"}), "metadata.hook", "an open gate would roll")]
#[case::rollout(json!({"gate": "a", "hook": "rollout"}), "metadata.hook", "a failed check")]
#[case::pre_rollout(json!({"gate": "a", "hook": "pre-rollout"}), "metadata.hook", "a failed check")]
#[case::post_rollout(json!({"gate": "a", "hook": "post-rollout"}), "metadata.hook", "do not ask")]
#[case::unknown(json!({"gate": "a", "hook": "confirm"}), "metadata.hook", "not a webhook type of Flagger")]
#[tokio::test]
async fn what_would_mean_something_else_is_refused(
    #[case] metadata: Value,
    #[case] field: &str,
    #[case] error: &str,
) {
    let stage = trusting();
    let answer = ask(&stage, None, &webhook(&metadata)).await;
    // Neither 200, 201 nor 202: the canary waits, and a rollback hook rolls nothing back.
    assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{answer:?}");
    assert_eq!(answer.text("field"), field, "{answer:?}");
    assert!(answer.text("error").contains(error), "{answer:?}");
    assert!(stage.decider.asked().is_empty());
}

#[tokio::test]
async fn a_phase_that_only_rollback_hooks_have_is_refused() {
    let stage = trusting();
    let mut body = webhook(&json!({"gate": "production"}));
    body["phase"] = json!("WaitingPromotion");
    let answer = ask(&stage, None, &body).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    assert_eq!(answer.text("field"), "phase");
    body["phase"] = json!("Waiting");
    assert_eq!(ask(&stage, None, &body).await.status, StatusCode::OK);
}
