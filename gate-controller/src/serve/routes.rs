//! What is answered at which address, to those who ask.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::routing::{any, get, post};

use super::approval::{self, Approving};
use super::asking::Asking;
use super::problem::Refused;
use super::{check, flagger, guard, openapi, pipelines};

impl Asking {
    /// All that is served.
    pub fn router(self, approving: Approving) -> Router {
        Router::new()
            .route("/approval/{*promotion}", post(approval::answer))
            .with_state(Arc::new(approving))
            .route("/promotion/{*promotion}", any(approval::gone))
            .route("/v1/check", post(check::answer))
            .route("/gate/check", post(flagger::answer))
            .route("/v1/pipelines", get(pipelines::everywhere))
            .route("/v1/pipelines/{namespace}", get(pipelines::of_namespace))
            .route("/v1/pipelines/{namespace}/{name}", get(pipelines::one))
            .route("/openapi.json", get(openapi::show))
            .fallback(nothing_here)
            .method_not_allowed_fallback(not_so)
            .with_state(Arc::new(self))
            .layer(from_fn(|request: Request, next: Next| {
                guard::guard(guard::TIME, request, next)
            }))
    }
}

async fn nothing_here() -> Refused {
    let remedy = "POST to /v1/check, /gate/check or \
                  /approval/NAMESPACE/PIPELINE/ENVIRONMENT/REVISION, or GET /v1/pipelines; \
                  GET /openapi.json describes them";
    Refused::new(StatusCode::NOT_FOUND, "there is nothing here", remedy)
}

async fn not_so() -> Refused {
    let error = "this is not answered to that method";
    let remedy = "use POST for /v1/check, /gate/check and /approval, GET for /v1/pipelines and \
                  /openapi.json";
    Refused::new(StatusCode::METHOD_NOT_ALLOWED, error, remedy)
}
