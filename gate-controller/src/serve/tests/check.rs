//! `POST /v1/check`.

use rstest::rstest;
use sluice_crds::Require;

use super::*;

const COMMIT: &str = "4f2a9c1e0b7d8a6f5e4d3c2b1a09f8e7d6c5b4a3";

#[tokio::test]
async fn anyone_who_has_the_right_gets_a_decision() {
    let stage = Scene::default().start();
    let open = stage.check("alice", &production()).await;
    assert_eq!(open.status, StatusCode::OK);
    assert_eq!(open.headers[header::CACHE_CONTROL], "no-store");
    let decision: Decision = serde_json::from_value(open.body).unwrap();
    assert!(decision.allowed);
    assert_eq!(decision.decided_by, ["apps/production"]);
    assert_eq!(
        (
            decision.subject.kind.as_str(),
            decision.subject.action.as_str()
        ),
        ("Check", "check")
    );

    stage.decider.closed.store(true, Ordering::SeqCst);
    let closed = stage.check("alice", &production()).await;
    assert_eq!(closed.status, StatusCode::OK);
    assert_eq!(closed.body["allowed"], false);
    assert_eq!(closed.body["checked"][0]["reason"], "OutsideWindow");
}

#[tokio::test]
async fn what_is_asked_is_what_is_decided() {
    let stage = Scene {
        api: Api::default()
            .grant("alice apps/production")
            .grant("alice shared/freeze"),
        ..Scene::default()
    }
    .start();
    let asked = json!({
        "gates": {
            "require": "oneOf",
            "refs": [{"name": "production"}, {"name": "freeze", "namespace": "shared"}],
        },
        "namespace": "apps",
        "revision": COMMIT.to_uppercase(),
        "action": "promote",
    });
    assert_eq!(stage.check("alice", &asked).await.status, StatusCode::OK);
    let (set, subject, revision) = stage.decider.asked().remove(0);
    assert_eq!(set.require, Require::OneOf);
    let namespaces = set.refs.iter().map(|gate| gate.namespace.as_deref());
    assert_eq!(
        namespaces.collect::<Vec<_>>(),
        [Some("apps"), Some("shared")]
    );
    let full = format!("sha1:{COMMIT}");
    assert_eq!(revision, Some(full.clone()));
    assert_eq!(subject.revision, Some(full));
    assert_eq!(
        (
            subject.namespace.as_str(),
            subject.action.as_str(),
            subject.name
        ),
        ("apps", "promote", None)
    );
}

#[tokio::test]
async fn a_consumer_is_the_subject_and_may_name_no_gates() {
    let stage = Scene {
        api: Api::default()
            .grant("alice apps/production")
            .grant("bob apps/*"),
        ..Scene::default()
    }
    .start();
    let mut asked = production();
    asked["consumer"] = json!({"kind": "Kustomization", "name": "shop"});
    let named = stage.check("alice", &asked).await;
    assert_eq!(named.status, StatusCode::OK);
    assert_eq!(named.body["subject"]["kind"], "Kustomization");
    assert_eq!(named.body["subject"]["name"], "shop");

    asked.as_object_mut().unwrap().remove("gates");
    assert_eq!(stage.check("bob", &asked).await.status, StatusCode::OK);
    let (set, subject, _) = stage.decider.asked().remove(1);
    assert_eq!((set.refs.len(), subject.name.as_deref()), (0, Some("shop")));
    // A right to one gate is none to ask which others there are.
    let refused = stage.check("alice", &asked).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    assert_eq!(
        (refused.text("field"), refused.text("error")),
        (
            "namespace",
            "\"alice\" may not check every gate in the namespace \"apps\": that needs the verb \
             check on gates.sluice.dev"
        )
    );
}

/// What holds back a namespace is shown to those who have a right in it.
#[rstest]
#[case("/v1/check")]
#[case("/gate/check")]
#[tokio::test]
async fn who_asks_about_a_namespace_needs_a_right_there(#[case] path: &str) {
    let stage = Scene::default().start();
    let body = match path {
        "/v1/check" => json!({
            "gates": {"refs": [{"name": "production", "namespace": "apps"}]},
            "namespace": "shop",
        }),
        _ => json!({
            "name": "podinfo", "namespace": "shop", "metadata": {"gate": "apps/production"},
        }),
    };
    let ask = async || {
        let token = Some("Bearer token-of-alice");
        stage.post(path, token, body.to_string()).await
    };
    let refused = ask().await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{refused:?}");
    assert_eq!(refused.text("field"), "namespace");
    let error = "\"alice\" may not check every gate in the namespace \"shop\"";
    assert!(refused.text("error").starts_with(error), "{refused:?}");
    assert!(stage.decider.asked().is_empty());

    let stage = Scene {
        api: Api::default()
            .grant("alice apps/production")
            .grant("alice shop/*"),
        ..Scene::default()
    }
    .start();
    let token = Some("Bearer token-of-alice");
    let answer = stage.post(path, token, body.to_string()).await;
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
}

#[tokio::test]
async fn what_a_gate_of_a_policy_says_is_told_to_those_who_may_check_it() {
    for (right, told) in [("alice shared/freeze", true), ("alice shared/other", false)] {
        let stage = Scene {
            api: Api::default().grant("alice apps/production").grant(right),
            ..Scene::default()
        }
        .start();
        *stage.decider.added.lock().unwrap() = Some("shared/freeze");
        stage.decider.closed.store(true, Ordering::SeqCst);
        let answer = stage.check("alice", &production()).await;
        assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
        let [own, added] = [0, 1].map(|n| answer.body["checked"][n].clone());
        assert_eq!(own["message"], "by the clock");
        assert_eq!(
            (&added["gate"], &added["reason"], &added["policy"]),
            (
                &json!("shared/freeze"),
                &json!("OutsideWindow"),
                &json!("frozen")
            )
        );
        let text = answer.body.to_string();
        assert_eq!(text.contains("secret of the platform"), told, "{text}");

        let webhook = json!({
            "name": "podinfo", "namespace": "apps", "metadata": {"gate": "production"},
        });
        let token = Some("Bearer token-of-alice");
        let answer = stage.post("/gate/check", token, webhook.to_string()).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN);
        let message = answer.text("message");
        assert_eq!(message.contains("you may not see why"), !told, "{message}");
    }
}

#[tokio::test]
async fn what_cannot_be_recorded_is_not_allowed_where_it_has_to_be() {
    let full = |required| Scene {
        audit: full(required),
        ..Scene::default()
    };
    let stage = full(true).start();
    let closed = stage.check("alice", &production()).await;
    assert_eq!(closed.body["allowed"], false);
    let message = closed.text("message");
    assert!(message.contains("No space left"), "{message}");
    // Any other goes on as before.
    let stage = full(false).start();
    let open = stage.check("alice", &production()).await;
    assert_eq!(open.body["allowed"], true);
}

/// An audit log on a disk that is full.
fn full(required: bool) -> Audit {
    let clock = Arc::new(SetClock::new(NOW.parse().unwrap()));
    let destination = "/dev/full".parse().unwrap();
    Audit::start(destination, required, "c-0", clock, Arc::default()).unwrap()
}

/// A body that is refused.
async fn refused(body: impl Into<Body>) -> Answer {
    let stage = Scene::default().start();
    let answer = stage
        .post("/v1/check", Some("Bearer token-of-alice"), body)
        .await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{answer:?}");
    assert!(!answer.text("remedy").is_empty(), "{answer:?}");
    assert_eq!(stage.api.counts().1, 0, "no right was asked for");
    assert!(stage.decider.asked().is_empty());
    answer
}

#[rstest]
#[case::no_json("{", None, "EOF while parsing")]
#[case::more_than_one(r#"{} {}"#, None, "missing field `namespace`")]
#[case::trailing(
    r#"{"gates": {"refs": [{"name": "a"}]}, "namespace": "apps"} x"#,
    None,
    "trailing"
)]
#[case::no_gates(
    r#"{"namespace": "apps"}"#,
    Some("gates"),
    "neither gates nor a consumer"
)]
#[case::no_kind(
    r#"{"consumer": {"kind": "kustomization", "name": "shop"}, "namespace": "apps"}"#,
    Some("consumer.kind"),
    "`kustomization` is not a kind"
)]
#[case::no_consumer(
    r#"{"consumer": {"kind": "Kustomization", "name": ""}, "namespace": "apps"}"#,
    Some("consumer.name"),
    "is not the name"
)]
#[case::unknown_field(r#"{"gate": "production"}"#, Some("gate"), "unknown field `gate`")]
#[case::twice(
    r#"{"namespace": "a", "namespace": "b"}"#,
    None,
    "duplicate field `namespace`"
)]
#[case::unknown_deep(
    r#"{"gates": {"refs": [{"name": "a"}, {"name": "b", "kind": "Gate"}]}, "namespace": "apps"}"#,
    Some("gates.refs[1].kind"),
    "unknown field `kind`"
)]
#[case::wrong_type(
    r#"{"gates": {"refs": [{"name": 1}]}, "namespace": "apps"}"#,
    Some("gates.refs[0].name"),
    "expected a string"
)]
#[case::unknown_require(
    r#"{"gates": {"require": "any", "refs": [{"name": "a"}]}, "namespace": "apps"}"#,
    Some("gates.require"),
    "unknown variant `any`"
)]
#[case::empty(
    r#"{"gates": {"refs": []}, "namespace": "apps"}"#,
    Some("gates.refs"),
    "names no gate"
)]
#[case::listed_twice(
    r#"{"gates": {"refs": [{"name": "a"}, {"name": "a", "namespace": "apps"}]}, "namespace": "apps"}"#,
    Some("gates.refs[1]"),
    "the same gate as gates.refs[0]"
)]
#[case::no_name(
    r#"{"gates": {"refs": [{"name": "a/b"}]}, "namespace": "apps"}"#,
    Some("gates.refs[0].name"),
    "`a/b` is not the name"
)]
#[case::no_namespace(
    r#"{"gates": {"refs": [{"name": "a", "namespace": ""}]}, "namespace": "apps"}"#,
    Some("gates.refs[0].namespace"),
    "is not a namespace"
)]
#[case::no_namespace_of_its_own(
    r#"{"gates": {"refs": [{"name": "a"}]}, "namespace": "Apps"}"#,
    Some("namespace"),
    "`Apps` is not a namespace"
)]
#[case::short_commit(
    r#"{"gates": {"refs": [{"name": "a"}]}, "namespace": "apps", "revision": "main@sha1:4f2a9c1"}"#,
    Some("revision"),
    "is not a digest of a known length"
)]
#[case::sentence(
    r#"{"gates": {"refs": [{"name": "a"}]}, "namespace": "apps", "action": "go out"}"#,
    Some("action"),
    "`go out` is not an action"
)]
#[case::half_a_consumer(
    r#"{"gates": {"refs": [{"name": "a"}]}, "namespace": "apps", "consumer": {"kind": "Pipeline"}}"#,
    Some("consumer"),
    "missing field `name`"
)]
#[tokio::test]
async fn a_mistake_is_named_with_its_field(
    #[case] body: &'static str,
    #[case] field: Option<&str>,
    #[case] error: &str,
) {
    let answer = refused(body).await;
    assert_eq!(answer.body["field"].as_str(), field, "{answer:?}");
    assert!(answer.text("error").contains(error), "{answer:?}");
}

#[tokio::test]
async fn more_than_the_bounds_is_refused() {
    let gates = |n: usize| {
        let refs = (0..n).map(|n| json!({"name": format!("gate-{n}")}));
        let refs: Vec<_> = refs.collect();
        json!({"gates": {"refs": refs}, "namespace": "apps"}).to_string()
    };
    let answer = refused(gates(33)).await;
    assert_eq!(answer.text("field"), "gates.refs");
    assert_eq!(answer.text("error"), "it names 33 gates");

    // As long as it may be, and a byte longer.
    let padded = |length: usize| {
        let body = gates(1);
        let blanks = " ".repeat(length - body.len());
        body + &blanks
    };
    let stage = Scene {
        api: Api::default().grant("alice apps/gate-0"),
        ..Scene::default()
    }
    .start();
    let longest = stage
        .post("/v1/check", Some("Bearer token-of-alice"), padded(65_536))
        .await;
    assert_eq!(longest.status, StatusCode::OK);
    let answer = refused(padded(65_537)).await;
    assert!(answer.text("error").contains("longer than 64 KiB"));
}

#[tokio::test]
async fn what_was_not_known_is_not_decided() {
    let stage = Scene::default().start();
    stage.decider.unsynced.store(true, Ordering::SeqCst);
    for path in ["/v1/check", "/gate/check"] {
        let early = stage.post(path, Some("Bearer token-of-alice"), "{}").await;
        assert_eq!(early.status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(early.again(), Some(5));
    }
    assert_eq!(stage.api.counts(), (0, 0));
}

#[tokio::test]
async fn a_panic_is_an_answer_and_nothing_else() {
    let stage = Scene::default().start();
    stage.decider.fails.store(true, Ordering::SeqCst);
    let failed = stage.check("alice", &production()).await;
    assert_eq!(failed.status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(
        !failed.body.to_string().contains("a defect\""),
        "{failed:?}"
    );
    stage.decider.fails.store(false, Ordering::SeqCst);
    let next = stage.check("alice", &production()).await;
    assert_eq!(next.status, StatusCode::OK);
}

#[tokio::test]
async fn the_rate_is_each_caller_s_own() {
    let stage = Scene {
        api: Api::default()
            .grant("alice apps/production")
            .grant("bob apps/production"),
        rate: 1,
        burst: 2,
        ..Scene::default()
    }
    .start();
    for _ in 0..2 {
        let granted = stage.check("alice", &production()).await;
        assert_eq!(granted.status, StatusCode::OK);
    }
    let limited = stage.check("alice", &production()).await;
    assert_eq!(limited.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(limited.again(), Some(1));
    // What is wrong costs as well.
    let limited = stage.check("alice", &json!({})).await;
    assert_eq!(limited.status, StatusCode::TOO_MANY_REQUESTS);
    let other = stage.check("bob", &production()).await;
    assert_eq!(other.status, StatusCode::OK);
    assert_eq!(stage.decider.asked().len(), 3);
}

#[tokio::test]
async fn each_gate_is_counted_before_its_rights_are_asked_for() {
    let stage = Scene {
        rate: 1,
        burst: 4,
        ..Scene::default()
    }
    .start();
    let both = json!({
        "gates": {"refs": [{"name": "production"}, {"name": "canary"}]},
        "namespace": "apps",
    });
    for _ in 0..2 {
        let granted = stage.check("alice", &both).await;
        assert_eq!(granted.status, StatusCode::OK);
    }
    let limited = stage.check("alice", &both).await;
    assert_eq!(limited.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(stage.api.counts(), (1, 2));
}

#[tokio::test]
async fn other_paths_and_methods_say_what_there_is() {
    let stage = Scene::default().start();
    let nothing = stage.post("/v1/open", None, "").await;
    assert_eq!(nothing.status, StatusCode::NOT_FOUND);
    assert!(nothing.text("remedy").contains("/v1/check"));
    let request = Request::get("/v1/check").body(Body::empty()).unwrap();
    let get = stage.send(request).await;
    assert_eq!(get.status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(get.headers[header::ALLOW], "POST");
}
