//! `POST /v1/check`: whether a change may go out now.
//!
//! What comes in: gates or a consumer, a namespace, a revision, from somebody with a token. What goes out: a
//! [`Decision`], allowed or not; or why there is none.
//!
//! [`Decision`]: sluice_crds::Decision

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sluice_core::text::words;
use sluice_crds::{GateReference, Require, Subject};

use super::asking::{Remote, bearer, whole};
use super::limit::Who;
use super::problem::{Refused, json};
use super::question::{self, Named, Question};

pub use super::asking::{Asking, Decide};

/// The action of a question over HTTP that names none.
const ACTION: &str = "check";
/// The kind of a caller over HTTP that names no consumer.
const KIND: &str = "Check";
/// The most characters of the message of a parser, which repeats what it has read.
const COMPLAINT: usize = 300;

/// Whether a change may go out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CheckRequest {
    /// The gates that it has to pass. They may be left out if there is a consumer: then the gates
    /// decide that GatePolicies name for it. If there are none, the answer is no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gates: Option<Gates>,

    /// The object that wants to change, if it is one. None: the caller itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consumer: Option<Consumer>,

    /// The namespace of the change. It is also that of gates that are named without a namespace.
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    )]
    pub namespace: String,

    /// The revision that is to go out, as Flux writes it, such as `main@sha1:…` with the commit in
    /// full. Without it, a gate that depends on the revision counts as closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub revision: Option<String>,

    /// What it wants to do, in one word, for the records. The default is `check`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[A-Za-z0-9-]+$"))]
    pub action: Option<String>,
}

/// The object that wants to change. Its namespace is that of the change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Consumer {
    /// Its kind, such as `Kustomization`: a GatePolicy may select only some kinds.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[A-Z][A-Za-z0-9]*$"))]
    pub kind: String,

    /// Its name.
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")
    )]
    pub name: String,
}

/// Gates, and how their answers combine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Gates {
    /// How the answers of the gates combine.
    #[serde(default)]
    pub require: Require,

    /// The gates, each once.
    #[schemars(length(min = 1, max = 32))]
    pub refs: Vec<GateName>,
}

/// Names a Gate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GateName {
    /// The name of the Gate.
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")
    )]
    pub name: String,

    /// Its namespace, if it is not that of the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    )]
    pub namespace: Option<String>,
}

pub(super) async fn answer(
    State(asking): State<Arc<Asking>>,
    request: Request,
) -> Result<Response, Refused> {
    asking.ready()?;
    let (parts, body) = request.into_parts();
    let token = bearer(&parts.headers);
    let caller = asking.caller(Remote::of(&parts), token).await?;
    let who = Who::Caller(caller.key);
    // One before it is read, the others when it is known how many they are.
    asking.take(who, 1)?;
    let question = question(read(&whole(body).await?, FORM)?)?;
    asking.take(who, question.others())?;
    asking.may_check(&caller, &question).await?;
    let answer = asking.decide(&question, Some(&caller)).await;
    Ok(json(StatusCode::OK, &answer.decision))
}

/// What a body has to look like.
const FORM: &str = r#"write {"gates": {"refs": [{"name": "…"}]}, "namespace": "…"}; GET /openapi.json has the whole form"#;

/// Reads a body.
pub(super) fn read<T: DeserializeOwned>(body: &[u8], form: &str) -> Result<T, Refused> {
    let mut json = serde_json::Deserializer::from_slice(body);
    let read = serde_path_to_error::deserialize(&mut json);
    let (field, error) = match read {
        Ok(read) => match json.end() {
            Ok(()) => return Ok(read),
            Err(error) => (None, error),
        },
        Err(error) => {
            // It ends with a dot or a question mark where it is not known further.
            let field = error.path().to_string();
            let field = words::clean(field.trim_end_matches(['.', '?']), COMPLAINT);
            ((!field.is_empty()).then_some(field), error.into_inner())
        }
    };
    let error = words::clean(&error.to_string(), COMPLAINT);
    let refused = Refused::new(StatusCode::BAD_REQUEST, error, form);
    Err(match field {
        Some(field) => refused.at(field),
        None => refused,
    })
}

fn question(request: CheckRequest) -> Result<Question, Refused> {
    let CheckRequest {
        gates,
        consumer,
        namespace,
        revision,
        action,
    } = request;
    question::namespace("namespace", &namespace)?;
    let action = action.unwrap_or_else(|| ACTION.to_owned());
    question::action("action", &action)?;
    if let Some(Consumer { kind, name }) = &consumer {
        question::kind("consumer.kind", kind)?;
        question::name("consumer.name", name)?;
    }
    let revision = revision.map(|text| question::revision("revision", &text));
    let (kind, name) = match consumer {
        Some(Consumer { kind, name }) => (kind, Some(name)),
        None => (KIND.to_owned(), None),
    };
    let subject = Subject {
        kind,
        namespace,
        name,
        action,
        revision: None,
    };
    let revision = revision.transpose()?;
    let Some(Gates { require, refs }) = gates else {
        return Ok(Question::of_consumer("gates", subject, revision)?);
    };
    let named = refs.into_iter().enumerate().map(|(n, gate)| Named {
        field: format!("gates.refs[{n}]"),
        gate: GateReference {
            name: gate.name,
            namespace: gate.namespace,
        },
    });
    let list = "gates.refs";
    let named = named.collect();
    Ok(Question::new(list, require, named, subject, revision)?)
}
