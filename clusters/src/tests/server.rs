//! An API server of another cluster.

use std::net::SocketAddr;
use std::sync::Mutex;

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::IntoResponse;
use axum::serve::Listener;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::test_server::{Certificate, tls};
use super::*;

/// The name that it has in kubeconfigs.
pub(super) const HOST: &str = "api.test";

/// An API server that is reached over TLS, by those who have the token. Dropped, it stops.
pub(super) struct Remote {
    pub(super) api: FakeApi,
    pub(super) address: SocketAddr,
    pub(super) authority: String,
    pub(super) token: Arc<Mutex<String>>,
    task: AbortHandle,
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Tls {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener for Tls {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, SocketAddr) {
        loop {
            let (stream, address) = self.listener.accept().await.unwrap();
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl Remote {
    pub(super) async fn start() -> Self {
        let api = FakeApi::new();
        api.serve_kind(RELEASES.0, "HelmRelease", RELEASES.1, true);
        let token = Arc::new(Mutex::new("first".to_owned()));
        let (config, authority) = tls(Certificate::For(HOST));
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = guarded(api.router(), &token);
        let serving = axum::serve(Tls { listener, acceptor }, router);
        let task = tokio::spawn(async move { serving.await.unwrap() }).abort_handle();
        Self {
            api,
            address,
            authority,
            token,
            task,
        }
    }

    pub(super) fn kubeconfig(&self, token: &str) -> String {
        kubeconfig(self.address, &self.authority, token)
    }

    pub(super) fn put(&self, namespace: &str, name: &str, revision: &str) {
        let object = release(revision);
        self.api.put_object(RELEASES, Some(namespace), name, object);
    }

    pub(super) async fn has_no_watches(&self) {
        eventually(|| match self.api.watches() {
            0 => Ok(()),
            open => Err(format!("{open} are open")),
        })
        .await;
    }
}

/// Answers 401 to those who do not have the token.
fn guarded(router: Router, token: &Arc<Mutex<String>>) -> Router {
    let token = Arc::clone(token);
    router.layer(from_fn(move |request: Request, next: Next| {
        let expected = format!("Bearer {}", token.lock().unwrap());
        let given = request.headers().get("authorization").cloned();
        async move {
            match given.is_some_and(|given| given == expected.as_str()) {
                true => next.run(request).await,
                false => {
                    let status = json!({
                        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 401,
                        "reason": "Unauthorized", "message": "Unauthorized", "metadata": {},
                    });
                    (StatusCode::UNAUTHORIZED, status.to_string()).into_response()
                }
            }
        }
    }))
}

pub(super) fn kubeconfig(address: SocketAddr, authority: &str, token: &str) -> String {
    let cluster = json!({
        "server": format!("https://{HOST}:{}", address.port()),
        "certificate-authority-data": STANDARD.encode(authority),
    });
    json!({
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "here",
    })
    .to_string()
}
