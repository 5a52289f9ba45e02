//! `GET /v1/pipelines`: which revision is on its way to which environment, and what it waits for.
//!
//! What comes in: a token, and perhaps a namespace and a name. What goes out: the view of each Pipeline that
//! the caller may see by the verbs `get` and `list`, as `kubectl gate pipeline --output json` prints it,
//! without votes. Nothing is decided: it is what the statuses say.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;
use sluice_core::delivery::pipeline::View;
use sluice_core::text::refusal::Refusal;

use super::asking::{Asking, Remote, Wanted, bearer};
use super::auth::Right;
use super::limit::Who;
use super::problem::{Refused, json};
use super::question;

/// The resource that the rights are on.
const RESOURCE: &str = "pipelines";
/// How many Pipelines one answer has.
pub(super) const PAGE: usize = 250;
/// What the query may say.
const CONTINUE: &str = "continue=";

/// Pipelines, sorted by namespace and name.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PipelineList {
    /// The Pipelines: at most 250.
    pub items: Vec<View>,
    /// Where the next answer has to go on, if there are more: ask again with `?continue=` and this text.
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    pub go_on: Option<String>,
}

/// Every Pipeline of the cluster.
pub(super) async fn everywhere(
    State(asking): State<Arc<Asking>>,
    parts: Parts,
) -> Result<Response, Refused> {
    list(&asking, &parts, None).await
}

/// The Pipelines of a namespace.
pub(super) async fn of_namespace(
    State(asking): State<Arc<Asking>>,
    Path(namespace): Path<String>,
    parts: Parts,
) -> Result<Response, Refused> {
    question::namespace("namespace", &namespace)?;
    list(&asking, &parts, Some(&namespace)).await
}

/// One Pipeline.
pub(super) async fn one(
    State(asking): State<Arc<Asking>>,
    Path((namespace, name)): Path<(String, String)>,
    parts: Parts,
) -> Result<Response, Refused> {
    question::namespace("namespace", &namespace)?;
    question::name("name", &name)?;
    let right = Right {
        verb: "get",
        resource: RESOURCE,
        namespace: Some(&namespace),
        name: Some(&name),
    };
    admit(&asking, &parts, right).await?;
    let found = asking.decider().pipeline(&namespace, &name);
    let found = found.ok_or_else(|| {
        let error = format!("there is no Pipeline \"{name}\" in the namespace \"{namespace}\"");
        let remedy = "name another; GET /v1/pipelines/NAMESPACE lists them";
        Refused::new(StatusCode::NOT_FOUND, error, remedy)
    })?;
    Ok(json(StatusCode::OK, &found))
}

async fn list(
    asking: &Asking,
    parts: &Parts,
    namespace: Option<&str>,
) -> Result<Response, Refused> {
    let after = parts.uri.query().map(after).transpose()?;
    let right = Right {
        verb: "list",
        resource: RESOURCE,
        namespace,
        name: None,
    };
    admit(asking, parts, right).await?;
    let wanted = Wanted {
        namespace,
        after,
        // One more says whether there are more.
        most: PAGE + 1,
    };
    let mut items = asking.decider().pipelines(wanted);
    let is_cut = items.len() > PAGE;
    items.truncate(PAGE);
    let last = items.last().filter(|_| is_cut);
    let go_on = last.map(|view| format!("{}/{}", view.namespace, view.name));
    Ok(json(StatusCode::OK, &PipelineList { items, go_on }))
}

/// The namespace and the name that a query goes on behind.
fn after(query: &str) -> Result<(&str, &str), Refusal> {
    let said = query.strip_prefix(CONTINUE);
    let parts = said.and_then(|text| text.split_once('/'));
    let (namespace, name) = parts.ok_or_else(|| {
        let problem = "it is not understood";
        let remedy = "leave it out, or write continue= and what the last answer has in that field";
        Refusal::new("query", problem, remedy)
    })?;
    question::namespace("continue", namespace)?;
    question::name("continue", name)?;
    Ok((namespace, name))
}

/// Whether the caller is known and has the right.
async fn admit(asking: &Asking, parts: &Parts, right: Right<'_>) -> Result<(), Refused> {
    asking.ready()?;
    let remote = Remote::of(parts);
    let caller = asking.caller(remote, bearer(&parts.headers)).await?;
    asking.take(Who::Caller(caller.key), 1)?;
    asking.may(&caller, right).await
}
