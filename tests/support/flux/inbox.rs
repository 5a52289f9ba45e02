//! Where notification-controller delivers to.
//!
//! What comes in: what a Provider of type `generic` posts. What goes out: the events, as they came.

use std::sync::Arc;

use anyhow::{Context, Result};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use parking_lot::Mutex;
use serde_json::Value;

use crate::poll::DEADLINE;
use crate::poll::poll;
use crate::serve::Serving;

type Events = Arc<Mutex<Vec<Value>>>;

/// An endpoint that keeps what it is told. Dropped, it is gone.
pub struct Inbox {
    serving: Serving,
    events: Events,
}

impl Inbox {
    /// Serves one, on the runtime of the caller.
    ///
    /// # Errors
    ///
    /// If nobody may listen.
    pub async fn serve() -> Result<Self> {
        let events = Events::default();
        let page = Router::new()
            .route("/", post(take))
            .with_state(Arc::clone(&events));
        Ok(Self {
            serving: Serving::start(page).await?,
            events,
        })
    }

    /// The address of a Provider.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/", self.serving.address())
    }

    /// Everything so far, in the order in which it came.
    #[must_use]
    pub fn events(&self) -> Vec<Value> {
        self.events.lock().clone()
    }

    /// The first event that `matches`, as soon as it is there.
    ///
    /// # Errors
    ///
    /// If it is not there in time, with what came instead.
    pub async fn receives(&self, what: &str, matches: impl Fn(&Value) -> bool) -> Result<Value> {
        poll(DEADLINE, what, async || {
            let events = self.events();
            let found = events.iter().find(|event| matches(event)).cloned();
            found.with_context(|| Value::from(events).to_string())
        })
        .await
    }
}

async fn take(State(events): State<Events>, body: Bytes) -> StatusCode {
    match serde_json::from_slice(&body) {
        Ok(event) => {
            events.lock().push(event);
            StatusCode::OK
        }
        Err(_) => StatusCode::BAD_REQUEST,
    }
}
