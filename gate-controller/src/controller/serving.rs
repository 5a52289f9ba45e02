//! What the controller serves, and where.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context as _;
use axum::Router;
use tokio_util::sync::CancellationToken;

use super::Parts;
use crate::http;
use crate::metrics::Sources;

/// Serves metrics and health at the addresses of the settings. Says where: port 0 is any that is
/// free.
pub(super) async fn serve(
    parts: &Parts,
    shutdown: &CancellationToken,
) -> anyhow::Result<(Option<SocketAddr>, Option<SocketAddr>)> {
    let metrics = serve_one(
        "--metrics-addr",
        parts.settings.metrics_addr.0,
        shutdown,
        || http::metrics(parts.counters.registry(sources(parts))),
    );
    let health = serve_one(
        "--health-addr",
        parts.settings.health_addr.0,
        shutdown,
        || {
            let world = Arc::clone(&parts.world);
            http::health(move || match world.is_synced() {
                true => Ok(()),
                false => Err("the caches have not synced yet".to_owned()),
            })
        },
    );
    let (metrics, health) = (metrics.await?, health.await?);
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        metrics = metrics.map(tracing::field::display),
        health = health.map(tracing::field::display),
        "starting"
    );
    Ok((metrics, health))
}

fn sources(parts: &Parts) -> Sources {
    let (queue, leadership) = (Arc::clone(&parts.queue), Arc::clone(&parts.leadership));
    let leads = move || leadership.get().is_some_and(|leads| leads.left().is_some());
    Sources {
        world: Arc::clone(&parts.world),
        clock: Arc::clone(&parts.clock),
        backlog: Box::new(move || queue.backlog()),
        leads: Box::new(leads),
    }
}

async fn serve_one(
    flag: &str,
    address: Option<SocketAddr>,
    shutdown: &CancellationToken,
    router: impl FnOnce() -> Router,
) -> anyhow::Result<Option<SocketAddr>> {
    let Some(address) = address else {
        return Ok(None);
    };
    let bound = http::serve(address, router(), shutdown.clone()).await;
    let bound = bound.with_context(|| format!("{flag}: cannot listen at {address}"))?;
    Ok(Some(bound))
}
