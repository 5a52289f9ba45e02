//! Signed approvals, on an API server that is played.

use std::sync::atomic::Ordering::SeqCst;

use aws_lc_rs::hmac;
use axum::body::Body;
use axum::http::Request;
use rstest::rstest;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::super::keys;
use super::verified::{AWAY, LATER, SIGN, UNSIGNED};
use super::*;
use crate::cluster::key::ObjectKey;
use crate::observe::cache::Seen;
use scene::{Call, Scene, shop};

mod scene;

const NOON: &str = "2026-11-20T12:00:00Z";
/// A key of exactly 32 bytes, as the Secret has it.
const KEY: &str = "0123456789abcdef0123456789abcdef";
/// What waits in prod: a revision with a `/`.
const REVISION: &str = "feature/x@sha1:4f2a9c1e0b7d8a6f5e4d3c2b1a09f8e7d6c5b4a3";
const PATH: &str =
    "/approval/apps/shop/prod/feature%2Fx@sha1:4f2a9c1e0b7d8a6f5e4d3c2b1a09f8e7d6c5b4a3";
const NAME: &str = "shop-0123456789ab-webhook";

#[tokio::test]
async fn what_is_signed_and_waited_for_is_approved_once() {
    let scene = Scene::new();
    let (status, approved) = scene.send(Call::default()).await;
    assert_eq!(status, StatusCode::CREATED, "{approved}");
    let expected = json!({"approval": NAME, "environment": "prod", "revision": REVISION, "run": 7});
    assert_eq!(approved, expected);
    let made = scene.made();
    assert_eq!(made.len(), 1);
    let of = json!({"name": "shop", "environment": "prod", "run": 7, "key": "0123456789ab"});
    assert_eq!(made[0]["spec"]["pipelineRef"], of);
    assert_eq!(made[0]["spec"]["by"], "controller");
    assert_eq!(made[0]["metadata"]["ownerReferences"][0]["uid"], "u");

    // Another replica does not know it yet: the API server does.
    let (status, replayed) = scene.send(Call::default()).await;
    assert_eq!(status, StatusCode::CONFLICT);
    let told = "this promotion was approved by webhook before: the Approval shop-0123456789ab-webhook is there";
    assert_eq!(replayed["error"], told);
    // It went on meanwhile.
    let approval: Approval = serde_json::from_value(made[0].clone()).unwrap();
    let key = ObjectKey::of(&approval);
    scene
        .world
        .approvals
        .hold(&key, Some(Seen::Object(Arc::new(approval))));
    let mut object = shop();
    let prod = &mut object["status"]["environments"]["prod"];
    prod["waitingApproval"] = Value::Null;
    prod["promotion"]["phase"] = json!("Succeeded");
    scene.hold(&object);
    let (status, replayed) = scene.send(Call::default()).await;
    assert_eq!(
        (status, &replayed["error"]),
        (StatusCode::CONFLICT, &json!(told))
    );
    assert_eq!(scene.made().len(), 1);
}

/// Who may create Approvals of something else could take the name: nobody is told then that it is approved.
#[tokio::test]
async fn an_approval_of_something_else_is_no_replay() {
    let scene = Scene::new();
    assert_eq!(scene.send(Call::default()).await.0, StatusCode::CREATED);
    let mut other = scene.made().remove(0);
    other["spec"]["decision"] = json!("reject");
    scene.api.made.lock().unwrap()[0] = other.clone();
    let told =
        "the Approval shop-0123456789ab-webhook is there, and does not approve this promotion";
    let (status, answer) = scene.send(Call::default()).await;
    assert_eq!(
        (status, &answer["error"]),
        (StatusCode::UNPROCESSABLE_ENTITY, &json!(told))
    );
    // Also where the watch has brought it.
    let other: Approval = serde_json::from_value(other).unwrap();
    let key = ObjectKey::of(&other);
    scene
        .world
        .approvals
        .hold(&key, Some(Seen::Object(Arc::new(other))));
    assert_eq!(scene.send(Call::default()).await.1["error"], told);
}

/// Everything about a request is signed.
#[rstest]
#[case::another_key(Call { key: "another-key-another-key-another-key", ..Call::default() })]
#[case::no_key(Call { key: "", ..Call::default() })]
#[case::another_path(Call { signed_path: Some("/approval/apps/shop/staging/6.1.6"), ..Call::default() })]
#[case::the_decoded_path(Call { signed_path: Some("/approval/apps/shop/prod/feature/x@sha1:4f2a9c1e0b7d8a6f5e4d3c2b1a09f8e7d6c5b4a3"), ..Call::default() })]
#[case::another_method(Call { signed_method: "GET", ..Call::default() })]
#[case::another_body(Call { body: r#"{"reason": "x"}"#, signed_body: Some(""), ..Call::default() })]
#[case::no_such_pipeline(Call { path: "/approval/apps/other/prod/1".into(), ..Call::default() })]
#[case::no_such_namespace(Call { path: "/approval/other/shop/prod/1".into(), ..Call::default() })]
#[case::no_such_environment(Call { path: "/approval/apps/shop/other/1".into(), ..Call::default() })]
#[case::no_secret_named(Call { path: "/approval/apps/shop/staging/1".into(), key: "", ..Call::default() })]
#[case::no_such_secret(Call { path: "/approval/apps/shop/lost/1".into(), key: "", ..Call::default() })]
#[case::a_short_key(Call { path: "/approval/apps/shop/qa/1".into(), key: "123456789abcdef0123456789abcdef", ..Call::default() })]
#[tokio::test]
async fn everything_that_cannot_be_verified_gets_the_same_answer(#[case] call: Call) {
    let scene = Scene::new();
    let (status, refused) = scene.send(call).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED, "{refused}");
    assert_eq!(refused, json!({"error": UNSIGNED, "remedy": SIGN}));
    assert!(scene.made().is_empty());
}

/// A signature over the body alone, as another controller takes it, was the same for every promotion.
#[tokio::test]
async fn a_signature_over_an_empty_body_alone_is_refused() {
    let scene = Scene::new();
    let key = hmac::Key::new(hmac::HMAC_SHA256, KEY.as_bytes());
    let code = hmac::sign(&key, b"");
    let digits: String = code
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let request = |timestamp: bool| {
        let request = Request::post(PATH).header("X-Signature", format!("sha256={digits}"));
        let at = scene.clock.now().as_second().to_string();
        let request = match timestamp {
            true => request.header("X-Signature-Timestamp", at),
            false => request,
        };
        request.body(Body::empty()).unwrap()
    };
    for timestamp in [true, false] {
        let answer = scene
            .router
            .clone()
            .oneshot(request(timestamp))
            .await
            .unwrap();
        assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
    }
    assert!(scene.made().is_empty());
}

#[rstest]
#[case::now(0, None)]
#[case::a_little_late(300, Some("before prod began to wait"))]
#[case::too_late(301, Some("at most 5 minutes"))]
#[case::ahead(-300, None)]
#[case::too_far_ahead(-301, Some("at most 5 minutes"))]
#[tokio::test]
async fn a_signature_is_good_for_five_minutes(#[case] age: i64, #[case] refused: Option<&str>) {
    let scene = Scene::new();
    let call = Call {
        age,
        ..Call::default()
    };
    let (status, answer) = scene.send(call).await;
    match refused {
        None => assert_eq!(status, StatusCode::CREATED, "{answer}"),
        Some(words) => {
            assert!(
                status.is_client_error() && scene.made().is_empty(),
                "{answer}"
            );
            assert!(
                answer["error"].as_str().unwrap().contains(words),
                "{answer}"
            );
        }
    }
}

#[rstest]
#[case::none("/approval/apps/shop/prod", StatusCode::NOT_FOUND)]
#[case::too_many("/approval/apps/shop/prod/feature/x", StatusCode::NOT_FOUND)]
#[case::empty("/approval/apps//prod/1", StatusCode::NOT_FOUND)]
#[case::a_query("/approval/apps/shop/prod/1?x", StatusCode::NOT_FOUND)]
#[case::no_text("/approval/apps/shop/prod/%ff", StatusCode::NOT_FOUND)]
#[case::another_revision("/approval/apps/shop/prod/1", StatusCode::UNPROCESSABLE_ENTITY)]
#[tokio::test]
async fn a_path_names_a_promotion_that_waits(#[case] path: &str, #[case] expected: StatusCode) {
    let scene = Scene::new();
    let call = Call {
        path: path.to_owned(),
        ..Call::default()
    };
    let (status, answer) = scene.send(call).await;
    assert_eq!(status, expected, "{answer}");
    assert!(!answer["remedy"].as_str().unwrap().is_empty());
    if status == StatusCode::UNPROCESSABLE_ENTITY {
        let expected = format!("prod waits for the approval of {REVISION}, and not of 1");
        assert_eq!(answer["error"], expected);
    }
    assert!(scene.made().is_empty());
}

#[tokio::test]
async fn a_reason_is_kept_and_nothing_else_is_read() {
    let scene = Scene::new();
    let unknown = Call {
        body: r#"{"decision": "reject"}"#,
        ..Call::default()
    };
    let (status, refused) = scene.send(unknown).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{refused}");
    assert_eq!(refused["remedy"], FORM);
    let reasoned = Call {
        body: r#"{"reason": "build 412\nis green"}"#,
        ..Call::default()
    };
    let (status, answer) = scene.send(reasoned).await;
    assert_eq!(status, StatusCode::CREATED, "{answer}");
    assert_eq!(scene.made()[0]["spec"]["reason"], "build 412 is green");
}

#[tokio::test]
async fn a_missing_right_of_the_controller_is_told_to_those_who_have_the_key() {
    let scene = Scene::new();
    *scene.api.refuses.lock().unwrap() = Some(403);
    let (status, refused) = scene.send(Call::default()).await;
    assert_eq!(status, StatusCode::FORBIDDEN, "{refused}");
    assert!(
        refused["remedy"]
            .as_str()
            .unwrap()
            .contains("check.approvals")
    );
    *scene.api.refuses.lock().unwrap() = Some(500);
    let (status, _) = scene.send(Call::default()).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
}

/// What a header says of an address counts for nothing. Behind the same proxy are those who have the key.
#[tokio::test]
async fn who_tries_keys_is_stopped_by_the_address_of_the_connection_and_nobody_else_is() {
    const FORGED: [&str; 4] = [
        "198.51.100.1",
        "198.51.100.2",
        "198.51.100.3",
        "198.51.100.4",
    ];
    let scene = Scene::new();
    let mut limited = false;
    for n in 0..1_000 {
        let call = Call {
            headers: vec![
                ("X-Real-IP", FORGED[n % 4]),
                ("X-Forwarded-For", FORGED[n % 4]),
            ],
            ..wrong()
        };
        let (status, answer) = scene.send(call).await;
        if status == StatusCode::TOO_MANY_REQUESTS {
            limited = true;
            break;
        }
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{answer}");
    }
    assert!(limited);
    let elsewhere = Call {
        from: [198, 51, 100, 1].into(),
        ..wrong()
    };
    assert_eq!(scene.send(elsewhere).await.0, StatusCode::UNAUTHORIZED);
    let (status, answer) = scene.send(Call::default()).await;
    assert_eq!(status, StatusCode::CREATED, "{answer}");
}

/// However many come, and from wherever, the API server is asked once. A key that is replaced counts soon.
#[tokio::test]
async fn a_flood_reads_the_secret_once_in_a_while() {
    const RENEWED: &str = "renewed-renewed-renewed-renewed-";
    let scene = Scene::new();
    for n in 0..200 {
        let call = Call {
            from: [198, 51, 100, n].into(),
            ..wrong()
        };
        assert_eq!(scene.send(call).await.0, StatusCode::UNAUTHORIZED);
    }
    assert_eq!(scene.reads(), 1);
    scene.api.put("approvals", RENEWED);
    scene.clock.set(scene.clock.now() + keys::KEPT);
    assert_eq!(
        scene.send(Call::default()).await.0,
        StatusCode::UNAUTHORIZED
    );
    let renewed = Call {
        key: RENEWED,
        ..Call::default()
    };
    assert_eq!(scene.send(renewed).await.0, StatusCode::CREATED);
    assert_eq!(scene.reads(), 2);
}

/// Nor does an outage leave anything behind: all come from one address here, as through a proxy.
#[tokio::test]
async fn an_api_server_that_does_not_answer_makes_nobody_a_stranger() {
    let scene = Scene::new();
    scene.api.is_away.store(true, SeqCst);
    for _ in 0..100 {
        let of_no_secret = Call {
            path: "/approval/apps/shop/lost/1".into(),
            ..Call::default()
        };
        for call in [Call::default(), wrong(), of_no_secret] {
            let (status, refused) = scene.send(call).await;
            assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{refused}");
            assert_eq!(refused, json!({"error": AWAY, "remedy": LATER}));
        }
    }
    // Each of the two Secrets, once.
    assert_eq!(scene.reads(), 2);
    scene.api.is_away.store(false, SeqCst);
    scene.clock.set(scene.clock.now() + keys::AGAIN);
    assert_eq!(scene.send(wrong()).await.0, StatusCode::UNAUTHORIZED);
    let (status, answer) = scene.send(Call::default()).await;
    assert_eq!(status, StatusCode::CREATED, "{answer}");
}

/// Although the Secret that is asked for is known, and nothing has to be added.
#[tokio::test]
async fn the_next_who_asks_for_any_key_makes_old_ones_forgotten() {
    let scene = Scene::new();
    scene.api.put("other", KEY);
    let keys = Keys::new(scene.api.client(), SIGNING_KEY);
    let clock = &*scene.clock;
    let old = Arc::downgrade(&keys.get("apps", "other", clock).await.unwrap());
    keys.get("apps", "approvals", clock).await.unwrap();
    assert!(old.upgrade().is_some());
    scene.clock.set(scene.clock.now() + keys::KEPT);
    keys.get("apps", "approvals", clock).await.unwrap();
    assert!(old.upgrade().is_none());
}

/// Who has the key cannot keep the API server busy, from however many addresses.
#[tokio::test]
async fn who_has_the_key_is_stopped_by_the_environment() {
    let scene = Scene::new();
    let mut limited = false;
    for n in 0..=u8::MAX {
        let call = Call {
            from: [198, 51, 100, n].into(),
            ..Call::default()
        };
        let (status, answer) = scene.send(call).await;
        if status == StatusCode::TOO_MANY_REQUESTS {
            limited = true;
            break;
        }
        let expected = match n {
            0 => StatusCode::CREATED,
            _ => StatusCode::CONFLICT,
        };
        assert_eq!(status, expected, "{answer}");
    }
    assert!(limited);
}

/// A request that somebody signs who has no key.
fn wrong() -> Call {
    Call {
        key: "another-key-another-key-another-key",
        ..Call::default()
    }
}
