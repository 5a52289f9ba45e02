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
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, described) in methods.as_object().unwrap() {
            for (credentials, status) in [(Some("Bearer token-of-alice"), "200"), (None, "401")] {
                let answer = ask(&stage, path, method, described, credentials).await;
                assert_eq!(answer.status.as_str(), status, "{path}: {answer:?}");
                assert!(described["responses"].get(status).is_some(), "{path}");
            }
        }
    }
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
