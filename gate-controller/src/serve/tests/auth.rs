//! Tokens and rights.

use futures::future::join_all;
use rstest::rstest;

use super::*;

#[rstest]
#[case::none(None, "no bearer token was sent")]
#[case::empty(Some("Bearer "), "no bearer token was sent")]
#[case::basic(Some("Basic dG9rZW46dG9rZW4tb2YtYWxpY2U="), "no bearer token was sent")]
#[case::no_scheme(Some("token-of-alice"), "no bearer token was sent")]
#[case::unknown(Some("Bearer nonsense"), "does not know the bearer token")]
#[case::nobody(Some("Bearer token-of-"), "does not know the bearer token")]
#[tokio::test]
async fn strangers_are_told_what_is_missing(
    #[case] credentials: Option<&str>,
    #[case] error: &str,
) {
    let stage = Scene::default().start();
    let body = production().to_string();
    let answer = stage.post("/v1/check", credentials, body).await;
    assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    assert_eq!(answer.headers[header::WWW_AUTHENTICATE], "Bearer");
    assert!(answer.text("error").contains(error), "{answer:?}");
    assert!(answer.text("remedy").contains("kubectl create token"));
    assert!(stage.decider.asked().is_empty());
}

#[tokio::test]
async fn anyone_who_lacks_a_right_is_told_which() {
    let stage = Scene::default().start();
    let asked = json!({
        "gates": {"refs": [{"name": "production"}, {"name": "freeze", "namespace": "shared"}]},
        "namespace": "apps",
    });
    let answer = stage.check("alice", &asked).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    assert_eq!(answer.text("field"), "gates.refs[1]");
    assert_eq!(
        answer.text("error"),
        "\"alice\" may not check the gate \"freeze\" in the namespace \"shared\": that needs the \
         verb check on gates.sluice.dev"
    );
    assert!(answer.text("remedy").contains("verbs: [check]"));
    assert!(stage.decider.asked().is_empty());
}

#[tokio::test]
async fn the_api_server_is_asked_once_for_what_stays_the_same() {
    let stage = Scene::default().start();
    for _ in 0..5 {
        let answer = stage.check("alice", &production()).await;
        assert_eq!(answer.status, StatusCode::OK);
    }
    assert_eq!(stage.api.counts(), (1, 1));
    // So are refusals.
    for _ in 0..5 {
        stage.check("bob", &production()).await;
        stage.post("/v1/check", Some("Bearer nonsense"), "").await;
    }
    assert_eq!(stage.api.counts(), (3, 2));
}

#[tokio::test]
async fn a_burst_asks_once() {
    let stage = Scene {
        api: Api {
            answers: Some(Semaphore::new(0)),
            ..Scene::default().api
        },
        ..Scene::default()
    }
    .start();
    let body = production();
    let burst = join_all((0..200).map(|_| stage.check("alice", &body)));
    let answers = async {
        for asked in [(1, 0), (1, 1)] {
            until(async || stage.api.counts() == asked).await;
            stage.api.answers.as_ref().unwrap().add_permits(1);
        }
    };
    let (burst, ()) = tokio::join!(burst, answers);
    assert!(burst.iter().all(|answer| answer.status == StatusCode::OK));
    assert_eq!(stage.api.counts(), (1, 1));
}

#[tokio::test]
async fn anyone_who_gives_up_leaves_the_others_their_answer() {
    let stage = Scene {
        api: Api {
            answers: Some(Semaphore::new(0)),
            ..Scene::default().api
        },
        ..Scene::default()
    }
    .start();
    let first = tokio::spawn({
        let stage = stage.clone();
        async move { stage.check("alice", &production()).await }
    });
    until(async || stage.api.counts() == (1, 0)).await;
    let second = tokio::spawn({
        let stage = stage.clone();
        async move { stage.check("alice", &production()).await }
    });
    tokio::task::yield_now().await;
    first.abort();
    stage.api.answers.as_ref().unwrap().add_permits(10);
    assert_eq!(second.await.unwrap().status, StatusCode::OK);
}

#[tokio::test]
async fn answers_are_kept_for_a_moment() {
    let moment = Duration::from_millis(1);
    let stage = Scene {
        kept: Kept {
            granted: moment,
            refused: Duration::from_secs(60),
        },
        ..Scene::default()
    }
    .start();
    until(async || {
        stage.check("alice", &production()).await;
        let (tokens, rights) = stage.api.counts();
        tokens > 1 && rights > 1
    })
    .await;
    let stage = Scene {
        kept: Kept {
            granted: Duration::from_secs(60),
            refused: moment,
        },
        ..Scene::default()
    }
    .start();
    assert_eq!(
        stage.check("bob", &production()).await.status,
        StatusCode::FORBIDDEN
    );
    let right = "bob apps/production".to_owned();
    stage.api.rights.lock().unwrap().insert(right);
    until(async || stage.check("bob", &production()).await.status == StatusCode::OK).await;
    assert_eq!(stage.api.counts().0, 1);
    assert_eq!(Kept::default().granted, Duration::from_secs(60));
    assert_eq!(Kept::default().refused, Duration::from_secs(10));
}

#[tokio::test]
async fn what_the_api_server_cannot_say_is_asked_again() {
    let stage = Scene::default().start();
    stage.api.fails.store(true, Ordering::SeqCst);
    let failed = stage.check("alice", &production()).await;
    assert_eq!(failed.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(failed.again().is_some());
    assert!(stage.decider.asked().is_empty());
    stage.api.fails.store(false, Ordering::SeqCst);
    let next = stage.check("alice", &production()).await;
    assert_eq!(next.status, StatusCode::OK);
}

#[rstest]
#[case::ours(Some(vec!["sluice"]), StatusCode::OK)]
#[case::another(Some(vec!["https://kubernetes.default.svc"]), StatusCode::UNAUTHORIZED)]
#[case::not_said(None, StatusCode::UNAUTHORIZED)]
#[tokio::test]
async fn a_token_has_to_be_for_the_audience(
    #[case] audiences: Option<Vec<&'static str>>,
    #[case] status: StatusCode,
) {
    let stage = Scene {
        api: Api {
            audiences,
            ..Scene::default().api
        },
        audiences: vec!["sluice".to_owned()],
        ..Scene::default()
    }
    .start();
    let answer = stage.check("alice", &production()).await;
    assert_eq!(answer.status, status, "{answer:?}");
    if status == StatusCode::UNAUTHORIZED {
        assert_eq!(
            stage.api.asked.lock().unwrap()["audiences"],
            json!(["sluice"])
        );
        assert!(answer.text("remedy").contains("--audience sluice"));
    }
}

#[tokio::test]
async fn strangers_are_limited_by_address_before_the_api_server_is_asked() {
    let stage = Scene::default().start();
    let body = production().to_string();
    let friend = stage.check("alice", &production()).await;
    assert_eq!(friend.status, StatusCode::OK);
    let ask = async |from: [u8; 4], n: usize| {
        let credentials = format!("Bearer guess-{n}");
        let path = "/v1/check";
        let asked = stage.post_from(from.into(), path, Some(&credentials), body.clone());
        asked.await
    };
    let mut limited = None;
    for n in 0..1_000 {
        let answer = ask([198, 51, 100, 7], n).await;
        if answer.status == StatusCode::TOO_MANY_REQUESTS {
            limited = Some(answer);
            break;
        }
    }
    let limited = limited.expect("nobody was limited");
    assert!(limited.again().is_some());
    // One for alice, and as many as may come at once; a few more, as time goes by.
    let (asked, _) = stage.api.counts();
    assert!((101..200).contains(&asked), "{asked}");
    let other = ask([198, 51, 100, 8], 1_002).await;
    assert_eq!(other.status, StatusCode::UNAUTHORIZED);
    // What is known of a token is answered at once.
    assert_eq!(
        ask([198, 51, 100, 7], 0).await.status,
        StatusCode::UNAUTHORIZED
    );
    // A known caller is not delayed by others at the same address.
    let known = stage
        .post_from(
            [198, 51, 100, 7].into(),
            "/v1/check",
            Some("Bearer token-of-alice"),
            body.clone(),
        )
        .await;
    assert_eq!(known.status, StatusCode::OK);
}
