//! The connection to the API server of another cluster: one client for each Secret.
//!
//! What comes in: a checked kubeconfig. What goes out: a client that lives as long as the cluster is
//! wanted, whatever the Secret becomes. When credentials are rotated, watches go on: their next request
//! is sent with the new ones. Connections are made as [`sluice_egress`] allows, over https alone, without
//! a proxy, and nothing is sent a second time.
//!
//! It uses [`bounds`](crate::bounds) and [`kubeconfig`](crate::kubeconfig).

use std::error::Error;
use std::sync::Arc;
use std::task::{self, Poll};
use std::time::Duration;

use axum::body::{Body as Answer, Bytes, HttpBody};
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode, Uri};
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::{Client as Http, Error as HttpError};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube::client::{Body, ConfigExt};
use kube::{Client, Config};
use parking_lot::{Mutex, MutexGuard};
use sluice_egress::{Egress, EgressError, of_connection};
use sluice_watching::pages::Pages;
use sluice_watching::room::{Full, Room};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::timeout;
use tower::util::{BoxCloneService, MapErrLayer, option_layer};
use tower::{BoxError, Layer, Service, ServiceExt};

use crate::bounds::{Bounded, LONGEST, PAGE, TooLong, bound, reading};
use crate::kubeconfig::{Kubeconfig, Refusal};

/// How long the API server may say nothing on a connection: it sends a bookmark every minute.
const SILENCE: Duration = Duration::from_secs(150);
/// How long one address may take to be connected to, and all of it with TLS.
const DIAL: Duration = Duration::from_secs(4);
const CONNECT: Duration = Duration::from_secs(12);

/// The way that requests go, if there is one.
type Way = BoxCloneService<Request<Body>, Response<Answer>, BoxError>;

/// The client of a cluster, and what leads it there.
pub(crate) struct Connection {
    client: Client,
    /// None: our own cluster, to which others have connected.
    door: Option<Door>,
    /// For the answers that are being read.
    reading: Arc<Room>,
}

/// What has happened to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    pub(crate) why: String,
    /// It may end by itself, and then it may be another word each time.
    pub(crate) passes: bool,
}

impl Connection {
    /// To our own cluster.
    pub(crate) fn own(client: Client) -> Self {
        Self {
            client,
            door: None,
            // It is our own: what it sends is bounded where others have connected to it.
            reading: reading(),
        }
    }

    /// It leads nowhere yet. What is being read of it takes room.
    pub(crate) fn remote(reading: Arc<Room>) -> Self {
        let door = Door::default();
        Self {
            client: Client::new(door.clone(), "default"),
            door: Some(door),
            reading,
        }
    }

    /// The client. It stays the same when the connection leads elsewhere.
    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    /// From now on requests go where `kubeconfig` leads. Requests that are under way go on.
    pub(crate) fn lead(&self, kubeconfig: &Kubeconfig, egress: &Egress) -> Result<(), Refusal> {
        let way = way(kubeconfig, egress, &self.reading).map_err(|_| Refusal::Unusable)?;
        let host = kubeconfig.server.host().unwrap_or_default();
        self.set(Some(way), host);
        Ok(())
    }

    /// From now on no request is sent, and no credentials are held.
    pub(crate) fn close(&self) {
        self.set(None, "");
    }

    fn set(&self, way: Option<Way>, host: &str) {
        if let Some(door) = &self.door {
            *door.lock() = Now {
                way,
                host: host.to_owned(),
                trouble: None,
            };
        }
    }

    /// The host that it leads to. Empty: our own, or nowhere.
    pub(crate) fn host(&self) -> String {
        let door = self.door.as_ref();
        door.map(|door| door.lock().host.clone())
            .unwrap_or_default()
    }

    /// Waits until the API server has answered 401: what the Secret holds now may be newer.
    pub(crate) async fn denied(&self) {
        match &self.door {
            Some(door) => door.0.denied.notified().await,
            None => std::future::pending().await,
        }
    }

    /// Why the last request was not answered.
    pub(crate) fn trouble(&self) -> Option<Trouble> {
        self.door.as_ref()?.lock().trouble.clone()
    }
}

/// Passes each request on, the way that leads to the cluster now.
#[derive(Clone, Default)]
struct Door(Arc<Inside>);

#[derive(Default)]
struct Inside {
    now: Mutex<Now>,
    denied: Notify,
}

#[derive(Default)]
struct Now {
    way: Option<Way>,
    host: String,
    trouble: Option<Trouble>,
}

impl Door {
    fn lock(&self) -> MutexGuard<'_, Now> {
        self.0.now.lock()
    }
}

impl Service<Request<Body>> for Door {
    type Response = Response<Answer>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Answer>, BoxError>>;

    fn poll_ready(&mut self, _: &mut task::Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let door = self.clone();
        async move {
            let way = door.lock().way.clone();
            let way = way.ok_or("there is no kubeconfig")?;
            let answer = way.oneshot(request).await;
            door.lock().trouble = answer.as_ref().err().map(|error| trouble(&**error));
            let answer = answer?;
            if answer.status() == StatusCode::UNAUTHORIZED {
                door.0.denied.notify_one();
            }
            Ok(answer)
        }
        .boxed()
    }
}

/// Bounds each answer while it is read.
#[derive(Clone)]
struct Within<S> {
    inner: S,
    reading: Arc<Room>,
}

impl<S, B> Service<Request<Body>> for Within<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError>,
    S::Future: Send + 'static,
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Answer>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Answer>, BoxError>>;

    fn poll_ready(&mut self, context: &mut task::Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let query = request.uri().query().unwrap_or_default();
        let bounded = match query.split('&').any(|pair| pair == "watch=true") {
            true => Bounded::Lines,
            false => Bounded::Whole,
        };
        let (answer, reading) = (self.inner.call(request), Arc::clone(&self.reading));
        async move {
            let answer = answer.await?;
            Ok(answer.map(|body| bound(Answer::new(body), bounded, LONGEST, reading)))
        }
        .boxed()
    }
}

fn way(kubeconfig: &Kubeconfig, egress: &Egress, reading: &Arc<Room>) -> Result<Way, kube::Error> {
    let mut config = Config::new(kubeconfig.server.clone());
    config.root_cert = Some(kubeconfig.authorities.clone());
    config.tls_server_name.clone_from(&kubeconfig.server_name);
    config.auth_info = kubeconfig.user.clone();
    let connector = config.rustls_https_connector_with_connector(Dialer(egress.clone()))?;
    let mut connector = TimeoutConnector::new(connector);
    connector.set_connect_timeout(Some(CONNECT));
    connector.set_read_timeout(Some(SILENCE));
    // Counted from the request, not from when the connection was used last.
    connector.set_reset_reader_on_write(true);
    let http: Http<_, Body> = Http::builder(TokioExecutor::new()).build(connector);
    let service = MapErrLayer::new(BoxError::from).layer(http);
    let service = config.extra_headers_layer()?.layer(service);
    let service = option_layer(config.auth_layer()?).layer(service);
    let service = config.base_uri_layer().layer(service);
    let reading = Arc::clone(reading);
    // Pages are read as a whole, and no longer than that.
    let inner = Within {
        inner: service,
        reading,
    };
    Ok(BoxCloneService::new(Pages::new(inner, PAGE)))
}

/// Connects to addresses that the rules allow.
#[derive(Clone)]
struct Dialer(Egress);

impl Service<Uri> for Dialer {
    type Response = TokioIo<TcpStream>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut task::Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        let egress = self.0.clone();
        async move { Ok(TokioIo::new(dial(&egress, &server).await?)) }.boxed()
    }
}

async fn dial(egress: &Egress, server: &Uri) -> Result<TcpStream, EgressError> {
    let (Some("https"), Some(host)) = (server.scheme_str(), server.host()) else {
        return Err(EgressError::NotHttps);
    };
    let port = server.port_u16().unwrap_or(443);
    let mut outcome = EgressError::Unresolved;
    for address in egress.addresses(host).await? {
        outcome = match timeout(DIAL, TcpStream::connect((address, port))).await {
            Ok(Ok(stream)) => {
                // A request is written in two pieces; see the connection to our own API server.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Ok(Err(error)) => of_connection(&error).unwrap_or(EgressError::NoConnection),
            Err(_) => EgressError::TimedOut(DIAL),
        };
    }
    Err(outcome)
}

/// What has happened to a request, in words that say what to do about a kubeconfig.
fn trouble(error: &(dyn Error + 'static)) -> Trouble {
    if let Some(why) = too_much(error) {
        return Trouble { why, passes: false };
    }
    let of_http = error.downcast_ref::<HttpError>();
    let outcome = match of_connection(error) {
        Some(outcome) => outcome,
        None if of_http.is_some_and(HttpError::is_connect) => EgressError::NoConnection,
        None => EgressError::Broken,
    };
    let passes = matches!(
        outcome,
        EgressError::NoConnection
            | EgressError::ConnectionRefused
            | EgressError::Broken
            | EgressError::TimedOut(_)
            | EgressError::Unresolved
    );
    let why = match outcome {
        EgressError::CertificateNotTrusted
        | EgressError::CertificateNotSigned
        | EgressError::CertificateOfAuthority => {
            "its certificate is not signed by an authority in certificate-authority-data of the \
             kubeconfig; write that authority's certificate there"
                .to_owned()
        }
        other => other.to_string(),
    };
    Trouble { why, passes }
}

/// Why an answer was not read to its end, if that is what has happened.
fn too_much(error: &(dyn Error + 'static)) -> Option<String> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.is::<TooLong>() || error.is::<Full>() {
            return Some(error.to_string());
        }
        cause = error.source();
    }
    None
}
