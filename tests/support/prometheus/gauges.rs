//! What Prometheus scrapes: a small server whose gauges a test sets.
//!
//! What comes in: names with values. What goes out: a page in Prometheus's text format, on
//! loopback.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Result;
use axum::Router;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use parking_lot::Mutex;

use crate::serve::Serving;

type Values = Arc<Mutex<BTreeMap<String, f64>>>;

/// The gauges, served. Dropped, they are no longer.
pub(super) struct Gauges {
    values: Values,
    serving: Serving,
}

impl Gauges {
    /// Serves them on a free port, on the runtime of the caller.
    pub(super) async fn serve() -> Result<Self> {
        let values = Values::default();
        let pages = Router::new()
            .route("/metrics", get(page))
            .with_state(Arc::clone(&values));
        Ok(Self {
            values,
            serving: Serving::start(pages).await?,
        })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.serving.address()
    }

    pub(super) fn set(&self, gauge: &str, value: f64) {
        self.values.lock().insert(gauge.to_owned(), value);
    }

    pub(super) fn remove(&self, gauge: &str) {
        self.values.lock().remove(gauge);
    }
}

async fn page(State(values): State<Values>) -> impl IntoResponse {
    let format = [(CONTENT_TYPE, "text/plain; version=0.0.4")];
    (format, text(&values.lock()))
}

fn text(values: &BTreeMap<String, f64>) -> String {
    let mut text = String::new();
    for (gauge, value) in values {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{gauge} {value}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gauges_are_lines() {
        let values = [
            ("errors{pod=\"a\"}", 0.02),
            ("latency", f64::NAN),
            ("up", 1.0),
        ];
        let values = values.map(|(gauge, value)| (gauge.to_owned(), value));
        assert_eq!(
            text(&values.into()),
            "errors{pod=\"a\"} 0.02\nlatency NaN\nup 1\n"
        );
    }
}
