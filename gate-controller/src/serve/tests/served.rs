//! The description of it all.

use super::super::openapi;
use super::*;

#[tokio::test]
async fn the_description_is_served_to_everybody() {
    let stage = Scene::default().start();
    let request = Request::get("/openapi.json").body(Body::empty()).unwrap();
    let answer = stage.send(request).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(answer.body, openapi::document());
}

#[test]
fn every_reference_of_the_description_leads_somewhere() {
    fn references(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                if let Some(Value::String(target)) = fields.get("$ref") {
                    found.push(target.clone());
                }
                fields.values().for_each(|value| references(value, found));
            }
            Value::Array(values) => values.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }
    let document = openapi::document();
    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(found.len() > 5, "{found:?}");
    for target in found {
        let pointer = target.strip_prefix('#').expect("it leads elsewhere");
        assert!(document.pointer(pointer).is_some(), "{target}");
    }
}

/// Every path that is described is served, to the method that is described, and answers with a
/// status that is described.
#[tokio::test]
async fn what_is_described_is_what_is_served() {
    let rights = ["list alice */*", "list alice apps/*", "get alice apps/web"];
    let mut scene = Scene::default();
    scene.api = rights.into_iter().fold(scene.api, Api::grant);
    let stage = scene.start();
    stage.pipeline("apps", "web");
    let document = openapi::document();
    let paths = document["paths"].as_object().unwrap();
    // What is signed is tested with its signature.
    for (path, methods) in paths
        .iter()
        .filter(|(path, _)| !path.starts_with("/approval/"))
    {
        for (method, described) in methods.as_object().unwrap() {
            for (credentials, status) in [(Some("Bearer token-of-alice"), "200"), (None, "401")] {
                let answer = ask(&stage, path, method, described, credentials).await;
                assert_eq!(answer.status.as_str(), status, "{path}: {answer:?}");
                assert!(described["responses"].get(status).is_some(), "{path}");
            }
        }
    }
}

#[tokio::test]
async fn approvals_are_signed_posts_and_promotions_are_not_called_for() {
    let stage = Scene::default().start();
    let send = async |method: &str, path: &str| {
        let request = Request::builder().method(method).uri(path);
        stage.send(request.body(Body::empty()).unwrap()).await
    };
    let path = "/approval/apps/shop/prod/6.1.6";
    let document = openapi::document();
    let described = &document["paths"]["/approval/{namespace}/{pipeline}/{environment}/{revision}"];
    for (method, path, status) in [
        ("POST", path, StatusCode::UNAUTHORIZED),
        ("POST", "/approval/apps/shop/prod", StatusCode::NOT_FOUND),
    ] {
        assert_eq!(send(method, path).await.status, status);
        assert!(
            described["post"]["responses"]
                .get(status.as_str())
                .is_some()
        );
    }
    for method in ["GET", "PUT", "DELETE", "PATCH"] {
        let refused = send(method, path).await;
        assert_eq!(refused.status, StatusCode::METHOD_NOT_ALLOWED, "{method}");
        assert!(refused.text("remedy").contains("use POST"), "{refused:?}");
    }
    for method in ["GET", "POST"] {
        let gone = send(method, "/promotion/apps/shop/prod").await;
        assert_eq!(gone.status, StatusCode::GONE);
        assert!(gone.text("remedy").contains("remove this call"), "{gone:?}");
    }
    assert!(stage.decider.asked().is_empty());
}

/// Asks as it is described, with the example.
async fn ask(
    stage: &Stage,
    path: &str,
    method: &str,
    described: &Value,
    credentials: Option<&str>,
) -> Answer {
    let example = &described["requestBody"]["content"]["application/json"]["example"];
    let path = path.replace("{namespace}", "apps").replace("{name}", "web");
    match method {
        "post" => stage.post(&path, credentials, example.to_string()).await,
        "get" => stage.get(&path, credentials).await,
        other => panic!("{other}"),
    }
}
