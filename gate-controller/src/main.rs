//! Flags and signals; the rest is the library.

use std::sync::Arc;

use clap::Parser;
use gate_controller::cluster::connect;
use gate_controller::controller::telemetry;
use gate_controller::observe::clock::SystemClock;
use gate_controller::{Settings, start};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let settings = Settings::parse();
    telemetry::start(&settings);
    // A provider that is installed already is the same one.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let client = connect::connect().await?;
    let shutdown = CancellationToken::new();
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let controller = start(settings, client, Arc::new(SystemClock), shutdown.clone()).await?;
    let ended = tokio::select! {
        _ = interrupt.recv() => Ok(()),
        _ = terminate.recv() => Ok(()),
        broken = controller.broken() => broken,
    };
    tracing::info!("shutting down");
    shutdown.cancel();
    controller.stopped().await;
    ended
}
