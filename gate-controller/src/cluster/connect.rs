//! The connection to the API server, and what it may take.
//!
//! Nothing here sends a request a second time. The caller knows how long the answer is worth waiting for
//! and what else could be done in that time, and retries by itself: workers by the queue, watches with
//! their own delay, the holder of the Lease at its next try.

use std::time::Duration;

use anyhow::Context as _;
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::Client as Http;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ConfigExt};
use kube::{Client, Config};
use sluice_watching::pages::{BUDGET, Pages};
use tower::util::{MapErrLayer, option_layer};
use tower::{BoxError, Layer};

#[cfg(test)]
mod tests;

/// How long the API server may say nothing on a connection. Watches bring a bookmark every minute.
/// Without this limit, a list or a watch that is never answered would be waited for forever.
const SILENCE: Duration = Duration::from_secs(150);

/// The API server of this cluster, or of `KUBECONFIG`.
///
/// # Errors
/// There is none, or its certificate or credentials cannot be read.
pub async fn connect() -> anyhow::Result<Client> {
    let config = Config::infer()
        .await
        .context("no API server: run inside a cluster, or set KUBECONFIG")?;
    Ok(client(config)?)
}

/// A client that waits for this long, sends each request once, and reads lists page by page.
///
/// # Errors
/// Certificates or credentials of the configuration cannot be used.
pub fn client(mut config: Config) -> Result<Client, kube::Error> {
    config.read_timeout = Some(SILENCE);
    // Counted from the request, not from when the connection was used last.
    config.reset_reader_on_write = true;
    // kube would send what is answered with 429, 503 or 504 up to 15 times more, for minutes, while
    // the caller cannot tell it from an API server that says nothing.
    config.default_retry = false;
    if config.proxy_url.is_some() {
        // It says that it cannot, and why.
        return Client::try_from(config);
    }
    // As kube does it, but for the pages.
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    // A request is written in two pieces. On a connection that was idle, the second would wait for
    // the API server's machine to acknowledge the first, which it puts off by 40 ms.
    connector.set_nodelay(true);
    let connector = config.rustls_https_connector_with_connector(connector)?;
    let mut connector = TimeoutConnector::new(connector);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    connector.set_reset_reader_on_write(config.reset_reader_on_write);
    let http: Http<_, Body> = Http::builder(TokioExecutor::new()).build(connector);
    let service = MapErrLayer::new(BoxError::from).layer(http);
    let service = config.extra_headers_layer()?.layer(service);
    let service = option_layer(config.auth_layer()?).layer(service);
    let service = config.base_uri_layer().layer(service);
    let service = Pages::new(service, BUDGET);
    Ok(Client::new(service, config.default_namespace))
}
