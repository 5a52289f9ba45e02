//! What every request is kept within: its time, and its own failures.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use tokio::time::timeout;

use super::problem::Refused;

/// How long a request may take, its body and the questions to the API server included.
pub(super) const TIME: Duration = Duration::from_secs(10);

/// Answers a request within its time. A panic is an answer, too, and ends nothing else: the panic hook
/// has logged where it was.
pub(super) async fn guard(time: Duration, request: Request, next: Next) -> Response {
    let answer = AssertUnwindSafe(next.run(request)).catch_unwind();
    match timeout(time, answer).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(_)) => Refused::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the controller has failed to answer by a defect of its own",
            "take it for closed, and report it with the lines of the controller's log",
        )
        .into_response(),
        Err(_) => Refused::unavailable(format!("it took longer than {time:?}")).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::body::Body;
    use axum::middleware::from_fn;
    use axum::routing::get;
    use tower::ServiceExt;

    use super::*;

    async fn status(router: &Router, path: &str) -> StatusCode {
        let request = Request::get(path).body(Body::empty()).unwrap();
        router.clone().oneshot(request).await.unwrap().status()
    }

    #[tokio::test]
    async fn what_fails_or_takes_too_long_is_answered_and_ends_nothing_else() {
        async fn fail() {
            panic!("a defect");
        }
        let router = Router::new()
            .route("/fails", get(fail))
            .route("/hangs", get(std::future::pending::<()>))
            .route("/answers", get(async || "ok"))
            .layer(from_fn(|request: Request, next: Next| {
                guard(Duration::from_millis(10), request, next)
            }));
        assert_eq!(
            status(&router, "/fails").await,
            StatusCode::INTERNAL_SERVER_ERROR
        );
        let hanging = status(&router, "/hangs").await;
        assert_eq!(hanging, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(status(&router, "/answers").await, StatusCode::OK);
    }
}
