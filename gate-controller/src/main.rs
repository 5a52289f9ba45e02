//! Flags and signals; the rest is the library.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Parser;
use gate_controller::clock::SystemClock;
use gate_controller::{Settings, start, telemetry};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// How long the API server may say nothing on a connection. Watches bring a bookmark every minute;
/// without an end to the silence, a list or a watch that is never answered would be waited for for
/// ever.
const SILENCE: Duration = Duration::from_secs(150);

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let settings = Settings::parse();
    telemetry::start(&settings);
    // A provider that is installed already is the same one.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let client = connect().await?;
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

async fn connect() -> anyhow::Result<kube::Client> {
    let mut config = kube::Config::infer()
        .await
        .context("no API server: run inside a cluster, or set KUBECONFIG")?;
    config.read_timeout = Some(SILENCE);
    // Counted from the request, not from when the connection was used last.
    config.reset_reader_on_write = true;
    Ok(kube::Client::try_from(config)?)
}
