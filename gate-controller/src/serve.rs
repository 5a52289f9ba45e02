//! What is served: metrics, whether the process is alive and ready, and decisions for those who
//! ask.
//!
//! What comes in: requests over HTTP. What goes out: answers, and wakes; nothing is written but the Approvals
//! that signed requests ask for. It may use [`tell`](crate::tell), [`observe`](crate::observe) and
//! [`cluster`](crate::cluster).
//!
//! | | |
//! |---|---|
//! | [`server`], [`tls`] | connections, and what they may take |
//! | [`asking`] | who asks, what they may, how often: with [`auth`] and [`limit`] |
//! | [`check`], [`flagger`] | the two forms of the question, which both become a `question` |
//! | [`approval`] | approvals of promotions, by signed requests |
//! | [`hooks`] | webhooks of forges |
//! | [`pipelines`] | what pipelines are doing |
//! | [`decider`] | the answer, from the caches |
//! | [`openapi`], [`problem`] | how it is described, and how it is refused |

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use server::Bounds;

pub mod approval;
pub mod asking;
pub mod auth;
pub mod check;
pub mod decider;
pub mod flagger;
mod guard;
mod hmac;
pub mod hooks;
mod keys;
pub mod limit;
pub mod openapi;
mod page;
pub mod pipelines;
pub mod problem;
mod question;
mod routes;
pub mod server;
#[cfg(test)]
mod tests;
pub mod tls;

/// Metrics, at `/metrics`.
pub fn metrics(registry: Registry) -> Router {
    async fn show(State(registry): State<Arc<Registry>>) -> Response {
        let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        let body = page::body(move |mut page| encode(&mut page, &registry));
        ([(header::CONTENT_TYPE, kind)], body).into_response()
    }
    Router::new()
        .route("/metrics", get(show))
        .with_state(Arc::new(registry))
}

/// Whether the process is alive (`/healthz`: it answers) and ready (`/readyz`: every cache has
/// synced).
pub fn health(ready: impl Fn() -> Result<(), String> + Clone + Send + Sync + 'static) -> Router {
    let readiness = move || {
        let ready = ready.clone();
        async move {
            match ready() {
                Ok(()) => (StatusCode::OK, "ok\n".to_owned()),
                Err(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
            }
        }
    };
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(readiness))
}

/// Starts to serve metrics or health at `address`, until `shutdown`. Says where it listens: port 0 is any
/// port that is free.
///
/// # Errors
/// The address cannot be listened at.
pub async fn serve(
    address: SocketAddr,
    router: Router,
    shutdown: CancellationToken,
) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind(address).await?;
    let bound = listener.local_addr()?;
    // Nobody waits for a page of metrics that is still under way at the end.
    let tasks = TaskTracker::new();
    server::serve_at(listener, router, Bounds::few(), &tasks, shutdown);
    Ok(bound)
}
