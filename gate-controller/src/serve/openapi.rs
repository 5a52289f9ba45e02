//! The description of what is served, in the form of OpenAPI 3.1: at `/openapi.json`, and in the
//! reference.
//!
//! The schemas are made from the types that are read and written. The rest is written here.

use std::sync::LazyLock;

use axum::body::Bytes;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Value, json};
use sluice_core::delivery::pipeline::View;
use sluice_crds::Decision;

use super::approval::{ApprovalRequest, Approved};
use super::check::CheckRequest;
use super::flagger::{FlaggerAnswer, FlaggerRequest};
use super::pipelines::PipelineList;
use super::problem::Problem;

static TEXT: LazyLock<Bytes> = LazyLock::new(|| document().to_string().into());

pub(super) async fn show() -> Response {
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (kind, TEXT.clone()).into_response()
}

/// The whole description.
pub fn document() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        // OpenAPI 3.1 says so for all of them.
        settings.meta_schema = None;
    });
    let mut schemas = SchemaGenerator::new(settings);
    let paths = json!({
        "/v1/check": {"post": check(&mut schemas)},
        "/gate/check": {"post": flagger(&mut schemas)},
        "/approval/{namespace}/{pipeline}/{environment}/{revision}": {
            "parameters": parameters(),
            "post": approval(&mut schemas),
        },
        "/v1/pipelines": {"get": pipelines(&mut schemas, None)},
        "/v1/pipelines/{namespace}": {"get": pipelines(&mut schemas, Some("namespace"))},
        "/v1/pipelines/{namespace}/{name}": {"get": pipeline(&mut schemas)},
    });
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Sluice gate-controller",
            "summary": "Whether a change may go out now, and why.",
            "version": env!("CARGO_PKG_VERSION"),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/", "description": "The address that --check-addr names."}],
        "paths": paths,
        "components": {
            "schemas": schemas.take_definitions(true),
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A token that the API server knows. Its user needs the verb `check` \
                                    on every gate named.",
                },
                "basic": {
                    "type": "http",
                    "scheme": "basic",
                    "description": "The same token, sent as the password, so that it can be part of a URL. \
                                    The user name is ignored.",
                },
                "signature": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "X-Signature",
                    "description": "`sha256=` and the HMAC-SHA256, in hexadecimal digits, of the value of \
                                    X-Signature-Timestamp, a line feed, the method, a line feed, the \
                                    path as it is sent, a line feed, and the body. The key is the \
                                    `hmac-key` of the Secret that the environment's promotion names.",
                },
            },
        },
    })
}

fn check(schemas: &mut SchemaGenerator) -> Value {
    let asked = json!({
        "gates": {"refs": [{"name": "production"}]},
        "namespace": "apps",
        "revision": "main@sha1:4f2a9c1e0b7d8a6f5e4d3c2b1a09f8e7d6c5b4a3",
    });
    let mut responses = refusals(schemas);
    responses["200"] = json!({
        "description": "A decision: `allowed` says whether the change may go out.",
        "content": body(&schema::<Decision>(schemas), None),
    });
    json!({
        "operationId": "check",
        "summary": "Whether a change may go out now",
        "security": [{"bearer": []}],
        "requestBody": {
            "required": true,
            "description": "At most 64 KiB.",
            "content": body(&schema::<CheckRequest>(schemas), Some(&asked)),
        },
        "responses": responses,
    })
}

fn flagger(schemas: &mut SchemaGenerator) -> Value {
    let asked = json!({
        "name": "podinfo",
        "namespace": "apps",
        "phase": "Progressing",
        "checksum": "85d557f47b",
        "metadata": {"gate": "production", "hook": "confirm-promotion"},
    });
    let answer = schema::<FlaggerAnswer>(schemas);
    let mut responses = refusals(schemas);
    responses["200"] = json!({
        "description": "The gates are open: the canary may continue.",
        "content": body(&answer, None),
    });
    let problem = &responses["403"]["content"]["application/json"]["schema"];
    let either = json!({"anyOf": [answer, problem]});
    responses["403"] = json!({
        "description": "The gates are closed, or the user has no right to check them: the canary has to wait.",
        "content": body(&either, None),
    });
    json!({
        "operationId": "checkForFlagger",
        "summary": "The same question, asked by a webhook of Flagger",
        "description": "For webhooks of the types confirm-rollout, confirm-traffic-increase and \
                        confirm-promotion. A token is not needed if the controller runs with \
                        --flagger-without-token.",
        "security": [{"basic": []}, {"bearer": []}, {}],
        "requestBody": {
            "required": true,
            "description": "At most 64 KiB.",
            "content": body(&schema::<FlaggerRequest>(schemas), Some(&asked)),
        },
        "responses": responses,
    })
}

/// The parts of the path of an approval, and the header that says when it was signed.
fn parameters() -> Value {
    let part = |name: &str, description: &str| {
        json!({
            "name": name, "in": "path", "required": true, "description": description,
            "schema": {"type": "string", "minLength": 1},
        })
    };
    json!([
        part("namespace", "The namespace of the Pipeline."),
        part("pipeline", "Its name."),
        part("environment", "The environment that is promoted to."),
        part("revision", "The revision, as status.environments.<environment>.waitingApproval has it, percent-encoded."),
        {
            "name": "X-Signature-Timestamp", "in": "header", "required": true,
            "description": "When the request was signed, in seconds since 1970. At most 5 minutes from \
                            the controller's time.",
            "schema": {"type": "integer", "minimum": 0},
        },
    ])
}

fn approval(schemas: &mut SchemaGenerator) -> Value {
    let mut responses = refusals(schemas);
    responses["201"] = json!({
        "description": "The Approval was created.",
        "content": body(&schema::<Approved>(schemas), None),
    });
    let problem = schema::<Problem>(schemas);
    for (code, description) in [
        (
            "401",
            "The signature is missing, wrong or old, or there is no key for this environment.",
        ),
        (
            "403",
            "The controller has no right to approve this promotion.",
        ),
        ("404", "The path has another form."),
        ("409", "This promotion was approved by webhook before."),
        (
            "422",
            "The environment does not wait for this approval. The answer says what it waits for.",
        ),
        (
            "429",
            "Too many requests from this address are wrong, or too many come for this environment.",
        ),
    ] {
        responses[code]["description"] = json!(description);
        responses[code]["content"] = body(&problem, None);
    }
    json!({
        "operationId": "approve",
        "summary": "Approve a promotion that waits for it",
        "security": [{"signature": []}],
        "requestBody": {
            "required": false,
            "description": "At most 64 KiB. It is signed, too.",
            "content": body(&schema::<ApprovalRequest>(schemas), None),
        },
        "responses": responses,
    })
}

/// The list of Pipelines: of all namespaces, or of the one that is a part of the path.
fn pipelines(schemas: &mut SchemaGenerator, namespace: Option<&str>) -> Value {
    let mut responses = refusals(schemas);
    responses["200"] = json!({
        "description": "Pipelines, sorted by namespace and name.",
        "content": body(&schema::<PipelineList>(schemas), None),
    });
    let go_on = json!({
        "name": "continue", "in": "query", "required": false,
        "description": "What the last answer has in the field `continue`.",
        "schema": {"type": "string"},
    });
    let mut parameters: Vec<Value> = namespace.map(in_path).into_iter().collect();
    parameters.push(go_on);
    let (id, place) = match namespace {
        None => ("pipelines", "of all namespaces"),
        Some(_) => ("pipelinesOfNamespace", "of a namespace"),
    };
    json!({
        "operationId": id,
        "summary": format!("Which revisions are on their way: the Pipelines {place}"),
        "description": "The user needs the verb `list` on pipelines.sluice.dev.",
        "security": [{"bearer": []}],
        "parameters": parameters,
        "responses": responses,
    })
}

fn pipeline(schemas: &mut SchemaGenerator) -> Value {
    let mut responses = refusals(schemas);
    responses["200"] = json!({
        "description": "The Pipeline.",
        "content": body(&schema::<View>(schemas), None),
    });
    let problem = schema::<Problem>(schemas);
    responses["404"] = json!({
        "description": "There is no Pipeline of that name.", "content": body(&problem, None),
    });
    json!({
        "operationId": "pipeline",
        "summary": "Which revision is on its way, and what it waits for",
        "description": "The user needs the verb `get` on the Pipeline.",
        "security": [{"bearer": []}],
        "parameters": [in_path("namespace"), in_path("name")],
        "responses": responses,
    })
}

/// A part of the path.
fn in_path(name: &str) -> Value {
    json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}})
}

/// The answers that refuse the question.
fn refusals(schemas: &mut SchemaGenerator) -> Value {
    let problem = schema::<Problem>(schemas);
    let refusal =
        |description: &str| json!({"description": description, "content": body(&problem, None)});
    let later = |description: &str| {
        let mut later = refusal(description);
        later["headers"] = json!({
            "Retry-After": {
                "description": "How many seconds to wait before the next try.",
                "schema": {"type": "integer", "minimum": 1},
            },
        });
        later
    };
    json!({
        "400": refusal("The request is wrong. The answer says where, and what to write instead."),
        "401": refusal("The request has no token, or one that the API server does not know."),
        "403": refusal("The user has no right to check one of the gates, or to see the Pipelines."),
        "429": later("The user asked too much."),
        "500": refusal("A bug of the controller."),
        "503": later("The controller has not read every gate and GatePolicy yet, or cannot reach the API server."),
    })
}

fn schema<T: JsonSchema>(schemas: &mut SchemaGenerator) -> Value {
    schemas.subschema_for::<T>().into()
}

fn body(schema: &Value, example: Option<&Value>) -> Value {
    let mut content = json!({"schema": schema});
    if let Some(example) = example {
        content["example"] = example.clone();
    }
    json!({"application/json": content})
}
