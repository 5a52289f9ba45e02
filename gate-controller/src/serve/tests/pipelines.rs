//! Pipelines, for those who may see them.

use super::super::pipelines::PAGE;
use super::*;

const ALICE: Option<&str> = Some("Bearer token-of-alice");

fn stage(rights: &[&str]) -> Stage {
    let rights = rights.iter();
    let scene = Scene {
        api: rights.fold(Api::default(), |api, right| api.grant(right)),
        ..Scene::default()
    };
    let stage = scene.start();
    for (namespace, name) in [("apps", "shop"), ("apps", "web"), ("infra", "dns")] {
        stage.pipeline(namespace, name);
    }
    stage
}

fn names(answer: &Answer) -> Vec<String> {
    let items = answer.body["items"].as_array().unwrap().iter();
    let name = |it: &Value| format!("{}/{}", it["namespace"], it["name"]).replace('"', "");
    items.map(name).collect()
}

#[tokio::test]
async fn pipelines_are_listed_as_far_as_the_caller_may_list_them() {
    let stage = stage(&["list alice apps/*"]);
    let own = stage.get("/v1/pipelines/apps", ALICE).await;
    assert_eq!(own.status, StatusCode::OK);
    assert_eq!(names(&own), ["apps/shop", "apps/web"]);
    assert_eq!(own.headers[header::CACHE_CONTROL], "no-store");
    for (path, place) in [
        ("/v1/pipelines", "of all namespaces"),
        ("/v1/pipelines/infra", "in the namespace \"infra\""),
    ] {
        let refused = stage.get(path, ALICE).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{path}");
        assert!(refused.text("error").contains(place), "{refused:?}");
        assert!(
            refused.text("remedy").contains("verbs: [list]"),
            "{refused:?}"
        );
    }
}

#[tokio::test]
async fn a_pipeline_is_shown_to_those_who_may_get_it_and_its_absence_to_nobody_else() {
    let stage = stage(&["get alice apps/web", "get alice apps/gone"]);
    let found = stage.get("/v1/pipelines/apps/web", ALICE).await;
    assert_eq!(found.status, StatusCode::OK);
    assert_eq!(found.body["app"]["kind"], "HelmRelease");
    assert_eq!(found.body["environments"][0]["name"], "dev");
    let gone = stage.get("/v1/pipelines/apps/gone", ALICE).await;
    assert_eq!(gone.status, StatusCode::NOT_FOUND);
    for path in ["/v1/pipelines/apps/shop", "/v1/pipelines/apps/unheard-of"] {
        let refused = stage.get(path, ALICE).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{path}");
    }
    assert_eq!(
        stage.get("/v1/pipelines/apps/web", None).await.status,
        StatusCode::UNAUTHORIZED
    );
}

#[tokio::test]
async fn a_long_list_comes_in_parts() {
    let stage = stage(&["list alice many/*"]);
    for n in 0..=PAGE {
        stage.pipeline("many", &format!("p{n:04}"));
    }
    let first = stage.get("/v1/pipelines/many", ALICE).await;
    assert_eq!(names(&first).len(), PAGE);
    let path = format!("/v1/pipelines/many?continue={}", first.text("continue"));
    let rest = stage.get(&path, ALICE).await;
    assert_eq!(names(&rest), [format!("many/p{PAGE:04}")]);
    assert_eq!(rest.body.get("continue"), None);
}

#[tokio::test]
async fn what_is_wrong_is_told() {
    let stage = stage(&["list alice apps/*"]);
    for path in [
        "/v1/pipelines/Apps",
        "/v1/pipelines/apps/a_b",
        "/v1/pipelines/apps?limit=5",
        "/v1/pipelines/apps?continue=apps",
    ] {
        let refused = stage.get(path, ALICE).await;
        assert_eq!(
            refused.status,
            StatusCode::BAD_REQUEST,
            "{path}: {refused:?}"
        );
    }
    let post = stage.post("/v1/pipelines", ALICE, "").await;
    assert_eq!(post.status, StatusCode::METHOD_NOT_ALLOWED);
    stage.decider.unsynced.store(true, Ordering::SeqCst);
    let early = stage.get("/v1/pipelines/apps", ALICE).await;
    assert_eq!(early.status, StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test]
async fn nobody_may_ask_too_often() {
    let mut scene = Scene::default();
    (scene.rate, scene.burst) = (1, 2);
    scene.api = scene.api.grant("list alice apps/*");
    let stage = scene.start();
    for _ in 0..2 {
        let answer = stage.get("/v1/pipelines/apps", ALICE).await;
        assert_eq!(answer.status, StatusCode::OK);
    }
    let refused = stage.get("/v1/pipelines/apps", ALICE).await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(refused.again().is_some());
}
