//! How requests are refused: a status, and a body that says what was wrong, where, and what to do
//! instead.

use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sluice_core::text::refusal::Refusal;

/// Why there is no decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Problem {
    /// What is wrong.
    pub error: String,

    /// The path of the field that is wrong, such as `gates.refs[0].name`. None: the problem is not in a
    /// field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,

    /// What to do instead.
    pub remedy: String,
}

/// A request that is refused.
#[derive(Clone, Debug)]
pub(super) struct Refused {
    status: StatusCode,
    problem: Problem,
    /// When to try again.
    again: Option<Duration>,
    /// How callers of that address say who they are.
    scheme: &'static str,
}

impl Refused {
    /// With a status and a message.
    pub(super) fn new(
        status: StatusCode,
        error: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            status,
            problem: Problem {
                error: error.into(),
                field: None,
                remedy: remedy.into(),
            },
            again: None,
            scheme: "Bearer",
        }
    }

    /// It is not signed, or not with the right key.
    pub(super) fn unsigned(error: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            scheme: "HMAC-SHA256",
            ..Self::new(StatusCode::UNAUTHORIZED, error, remedy)
        }
    }

    /// The problem is in a field.
    pub(super) fn at(mut self, field: impl Into<String>) -> Self {
        self.problem.field = Some(field.into());
        self
    }

    /// The caller should try again at that time.
    pub(super) fn again(mut self, after: Duration) -> Self {
        self.again = Some(after);
        self
    }

    /// Something here, or at the API server, is not ready yet: it may be in a moment.
    pub(super) fn unavailable(error: impl Into<String>) -> Self {
        let remedy = "ask again in a few seconds; until then take it for closed";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, error, remedy).again(Duration::from_secs(5))
    }

    /// Adds what the caller should do instead.
    pub(super) fn or(mut self, remedy: &str) -> Self {
        self.problem.remedy = remedy.to_owned();
        self
    }

    /// The status.
    pub(super) fn status(&self) -> StatusCode {
        self.status
    }

    /// Whether the same request may succeed in a moment.
    pub(super) fn passes(&self) -> bool {
        self.again.is_some()
    }

    /// The body of the answer.
    pub(super) fn problem(&self) -> &Problem {
        &self.problem
    }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        let Refusal {
            field,
            problem,
            remedy,
        } = refusal;
        Self::new(StatusCode::BAD_REQUEST, problem, remedy).at(field)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let mut response = json(self.status, &self.problem);
        let headers = response.headers_mut();
        if let Some(after) = self.again {
            // Whole seconds, and never too early.
            let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
            headers.insert(header::RETRY_AFTER, seconds.max(1).into());
        }
        if self.status == StatusCode::UNAUTHORIZED {
            let scheme = HeaderValue::from_static(self.scheme);
            headers.insert(header::WWW_AUTHENTICATE, scheme);
        }
        response
    }
}

/// A body in JSON, which is valid only at its instant.
pub(super) fn json(status: StatusCode, body: &impl Serialize) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "application/json"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    match serde_json::to_vec(body) {
        Ok(body) => (status, headers, body).into_response(),
        Err(error) => {
            tracing::error!(%error, "an answer cannot be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
