//! Flags and signals; the rest is the library.

use std::sync::Arc;

use anyhow::Context;
use clap::Parser;
use gate_controller::clock::SystemClock;
use gate_controller::{Settings, start, telemetry};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let settings = Settings::parse();
    telemetry::start(&settings);
    // A provider that is installed already is the same one.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let client = kube::Client::try_default()
        .await
        .context("no API server: run inside a cluster, or set KUBECONFIG")?;
    let shutdown = CancellationToken::new();
    let controller = start(settings, client, Arc::new(SystemClock), shutdown.clone()).await?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    tracing::info!("shutting down");
    shutdown.cancel();
    controller.stopped().await;
    Ok(())
}
