//! The server for everything that is served. It has limits for everything that clients send or fail to
//! send.
//!
//! What comes in: connections. What goes out: the answers of a router.
//!
//! | bound | |
//! |---|---|
//! | connections at once | [`CONNECTIONS`]; others wait to be taken |
//! | of one address | a quarter of those; others are closed at once |
//! | TLS handshake, headers of a request, pause between two | [`PATIENCE`] |
//! | headers | [`HEADERS`], [`HEADER_BYTES`] |
//! | a request | `guard::TIME` and 64 KiB, in the router |
//! | a connection | [`AGE`], and [`GRACE`] for the request that is under way |
//!
//! HTTP/1.1 alone, so that one connection is one request at a time.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

mod addresses;

use addresses::{Addresses, Connected};

use super::asking::Remote;
use super::tls::Certificates;

/// How many connections are served at once.
const CONNECTIONS: usize = 1024;
/// How many where only the node and Prometheus have anything to ask.
const FEW_CONNECTIONS: usize = 64;
/// How long the other side may take to say what it wants.
const PATIENCE: Duration = Duration::from_secs(30);
/// How many headers a request may have.
const HEADERS: usize = 64;
/// How many bytes of headers. Tokens are long.
const HEADER_BYTES: usize = 32 * 1024;
/// How old a connection gets. A newer one goes to any replica, and sees the newest certificate.
const AGE: Duration = Duration::from_secs(300);
/// How long a request may go on when its connection is to end.
const GRACE: Duration = Duration::from_secs(10);
/// How long no connection is accepted after accepting one has failed: mostly because there are no file
/// descriptors left.
const PAUSE: Duration = Duration::from_millis(100);

/// What everybody may take, at most.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    connections: usize,
    /// Of the connections, those of one address.
    each: usize,
    patience: Duration,
    age: Duration,
    grace: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connections: CONNECTIONS,
            each: CONNECTIONS / 4,
            patience: PATIENCE,
            age: AGE,
            grace: GRACE,
        }
    }
}

impl Bounds {
    /// For metrics and health.
    pub fn few() -> Self {
        Self {
            connections: FEW_CONNECTIONS,
            each: FEW_CONNECTIONS / 4,
            ..Self::default()
        }
    }
}

/// Listens at `address` and serves `router` there until `shutdown`, and then what is under way.
/// With certificates: TLS. Says where it listens: port 0 is any that is free.
///
/// # Errors
/// The address cannot be listened at.
pub async fn serve(
    address: SocketAddr,
    router: Router,
    certificates: Option<Arc<Certificates>>,
    tasks: &TaskTracker,
    shutdown: CancellationToken,
) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(address).await?;
    let bound = listener.local_addr()?;
    let server = Server {
        router,
        certificates,
        bounds: Bounds::default(),
        shutdown,
    };
    server.start(listener, tasks);
    Ok(bound)
}

/// The same without TLS, for callers that have to know the address before there is a router, or that have
/// other limits.
pub fn serve_at(
    listener: TcpListener,
    router: Router,
    bounds: Bounds,
    tasks: &TaskTracker,
    shutdown: CancellationToken,
) {
    let server = Server {
        router,
        certificates: None,
        bounds,
        shutdown,
    };
    server.start(listener, tasks);
}

struct Server {
    router: Router,
    certificates: Option<Arc<Certificates>>,
    bounds: Bounds,
    shutdown: CancellationToken,
}

impl Server {
    fn start(self, listener: TcpListener, tasks: &TaskTracker) {
        let conversations = tasks.clone();
        tasks.spawn(async move { Arc::new(self).listen(&listener, &conversations).await });
    }

    async fn listen(self: Arc<Self>, listener: &TcpListener, conversations: &TaskTracker) {
        let places = Arc::new(Semaphore::new(self.bounds.connections));
        let addresses = Addresses::new(self.bounds.each);
        let next = async || {
            // Nobody is taken before there is a place.
            let place = Arc::clone(&places).acquire_owned().await;
            let place = place.map_err(io::Error::other)?;
            listener.accept().await.map(|taken| (taken, place))
        };
        while let Some(taken) = self.shutdown.run_until_cancelled(next()).await {
            match taken {
                Ok(((stream, remote), place)) => {
                    let Some(connected) = addresses.connect(remote.ip()) else {
                        tracing::debug!(%remote, "an address has too many connections");
                        continue;
                    };
                    let (server, held) = (Arc::clone(&self), (place, connected));
                    conversations.spawn(server.converse(stream, remote, held));
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection cannot be taken");
                    // It ends earlier where all does.
                    let _ = timeout(PAUSE, self.shutdown.cancelled()).await;
                }
            }
        }
    }

    async fn converse(
        self: Arc<Self>,
        stream: TcpStream,
        remote: SocketAddr,
        _held: (OwnedSemaphorePermit, Connected),
    ) {
        let remote = Remote(remote.ip());
        // Answers are short, and somebody waits for them.
        let _ = stream.set_nodelay(true);
        let Some(certificates) = &self.certificates else {
            return self.answer(stream, remote).await;
        };
        let acceptor = TlsAcceptor::from(certificates.current());
        let accepting = timeout(self.bounds.patience, acceptor.accept(stream));
        match self.shutdown.run_until_cancelled(accepting).await {
            Some(Ok(Ok(stream))) => self.answer(stream, remote).await,
            Some(Ok(Err(error))) => tracing::debug!(%error, "a TLS handshake has failed"),
            Some(Err(_)) => tracing::debug!("a TLS handshake took too long"),
            None => {}
        }
    }

    /// Answers all that comes over a connection.
    async fn answer(&self, stream: impl AsyncRead + AsyncWrite + Unpin, remote: Remote) {
        let service = service_fn(|mut request: Request<Incoming>| {
            request.extensions_mut().insert(remote);
            self.router.clone().oneshot(request.map(Body::new))
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.bounds.patience)
            .max_headers(HEADERS)
            .max_header_size(HEADER_BYTES)
            .max_buf_size(HEADER_BYTES)
            .serve_connection(TokioIo::new(stream), service);
        let mut connection = std::pin::pin!(connection);
        let served = timeout(self.bounds.age, connection.as_mut());
        let served = self.shutdown.run_until_cancelled(served).await;
        let served = match served {
            Some(Ok(served)) => served,
            Some(Err(_)) | None => {
                connection.as_mut().graceful_shutdown();
                let served = timeout(self.bounds.grace, connection).await;
                served.unwrap_or(Ok(()))
            }
        };
        if let Err(error) = served {
            tracing::debug!(%error, "a connection has ended early");
        }
    }
}

#[cfg(test)]
mod tests;
