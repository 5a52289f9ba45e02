//! A tiny https server on loopback, for tests: it answers every request with the same [`Reply`],
//! but for those that are to come before it. Other crates' tests use this file too.
#![allow(dead_code, reason = "not every crate's tests use all of it")]

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, Notify};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// What the server does with a request.
#[derive(Clone)]
pub(crate) enum Reply {
    /// Writes this and closes.
    Raw(Vec<u8>),
    /// Writes this, and never closes.
    Stall(Vec<u8>),
    /// Writes a head without a length, then bytes for as long as the other side takes them.
    Endless,
    /// Closes without a word, and so that what was not read yet resets the connection.
    Reset,
    /// Writes this, keeps the connection, and closes it as soon as another request comes on it.
    Keep(Vec<u8>),
    /// Answers with an empty 200 once it is released.
    Held(Arc<Notify>),
}

impl Reply {
    /// A reply with this status, these further lines of the head, and this body.
    pub(crate) fn status(status: u16, head: &str, body: &[u8]) -> Self {
        let length = body.len();
        let mut raw =
            format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n{head}\r\n").into_bytes();
        raw.extend_from_slice(body);
        Reply::Raw(raw)
    }

    pub(crate) fn ok(body: impl AsRef<[u8]>) -> Self {
        Self::status(200, "", body.as_ref())
    }
}

/// The certificate that the server shows.
#[derive(Clone, Copy)]
pub(crate) enum Certificate {
    For(&'static str),
    ExpiredFor(&'static str),
    /// Its own authority, which it shows itself.
    OfAuthority(&'static str),
    /// It has signed itself, and is no authority.
    SelfSigned(&'static str),
}

/// The server. Dropped, it stops.
pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    /// The certificate of its authority, in PEM.
    pub(crate) authority: String,
    state: Arc<State>,
    _tasks: JoinSet<()>,
}

struct State {
    first: Mutex<VecDeque<Reply>>,
    reply: Mutex<Reply>,
    requests: AtomicUsize,
    written: AtomicUsize,
    heads: Mutex<Vec<String>>,
}

impl TestServer {
    pub(crate) async fn start(certificate: Certificate, reply: Reply) -> Self {
        let (config, authority) = tls(certificate);
        let acceptor = TlsAcceptor::from(Arc::new(config));
        Self::serve(Some(acceptor), authority, reply).await
    }

    /// One that knows no TLS.
    pub(crate) async fn without_tls(reply: Reply) -> Self {
        Self::serve(None, String::new(), reply).await
    }

    async fn serve(acceptor: Option<TlsAcceptor>, authority: String, reply: Reply) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State {
            first: Mutex::default(),
            reply: Mutex::new(reply),
            requests: AtomicUsize::new(0),
            written: AtomicUsize::new(0),
            heads: Mutex::default(),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, acceptor, Arc::clone(&state)));
        Self {
            address,
            authority,
            state,
            _tasks: tasks,
        }
    }

    pub(crate) fn url(&self, host: &str) -> String {
        format!("https://{host}:{}/holidays.ics", self.address.port())
    }

    /// An address of this server, with a path.
    pub(crate) fn address(&self, scheme: &str, host: &str, path: &str) -> String {
        format!("{scheme}://{host}:{}{path}", self.address.port())
    }

    /// What the next requests are answered with, one each, before the usual.
    pub(crate) async fn replies_first(&self, replies: impl IntoIterator<Item = Reply>) {
        self.state.first.lock().await.extend(replies);
    }

    pub(crate) async fn replies(&self, reply: Reply) {
        *self.state.reply.lock().await = reply;
    }

    /// How many requests came through TLS.
    pub(crate) fn requests(&self) -> usize {
        self.state.requests.load(Ordering::SeqCst)
    }

    /// How many bytes of endless bodies were taken.
    pub(crate) fn written(&self) -> usize {
        self.state.written.load(Ordering::SeqCst)
    }

    /// The heads of the requests.
    pub(crate) async fn heads(&self) -> Vec<String> {
        self.state.heads.lock().await.clone()
    }
}

async fn accept(listener: TcpListener, acceptor: Option<TlsAcceptor>, state: Arc<State>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(connection(stream, acceptor.clone(), Arc::clone(&state)));
    }
}

async fn connection(stream: TcpStream, acceptor: Option<TlsAcceptor>, state: Arc<State>) {
    match acceptor {
        // A client that turns its back is what many tests want to see.
        Some(acceptor) => {
            if let Ok(stream) = acceptor.accept(stream).await {
                answer(stream, &state).await;
            }
        }
        None => answer(stream, &state).await,
    }
}

async fn answer(mut stream: impl AsyncRead + AsyncWrite + Unpin, state: &State) {
    let mut head = vec![0; 4096];
    let Ok(length @ 1..) = stream.read(&mut head).await else {
        return;
    };
    state
        .heads
        .lock()
        .await
        .push(String::from_utf8_lossy(&head[..length]).into_owned());
    state.requests.fetch_add(1, Ordering::SeqCst);
    let first = state.first.lock().await.pop_front();
    let reply = match first {
        Some(reply) => reply,
        None => state.reply.lock().await.clone(),
    };
    let keeps = matches!(reply, Reply::Keep(_));
    write(&mut stream, reply, state).await;
    if keeps && let Ok(1..) = stream.read(&mut head).await {
        state.requests.fetch_add(1, Ordering::SeqCst);
    }
}

async fn write(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), reply: Reply, state: &State) {
    match reply {
        Reply::Raw(raw) => {
            let _ = stream.write_all(&raw).await;
            let _ = stream.shutdown().await;
        }
        Reply::Stall(raw) => {
            let _ = stream.write_all(&raw).await;
            let _ = stream.flush().await;
            // Until the other side goes.
            while let Ok(1..) = stream.read(&mut [0; 64]).await {}
        }
        Reply::Reset => {}
        Reply::Keep(raw) => {
            let _ = stream.write_all(&raw).await;
            let _ = stream.flush().await;
        }
        Reply::Endless => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
            while stream.write_all(&[b'x'; 16 << 10]).await.is_ok() {
                state.written.fetch_add(16 << 10, Ordering::SeqCst);
            }
        }
        Reply::Held(released) => {
            released.notified().await;
            let _ = stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
                .await;
            let _ = stream.shutdown().await;
        }
    }
}

/// A server's TLS, and the certificate of its authority.
pub(crate) fn tls(certificate: Certificate) -> (ServerConfig, String) {
    let (Certificate::OfAuthority(name) | Certificate::SelfSigned(name)) = certificate else {
        return signed(certificate);
    };
    let key = KeyPair::generate().unwrap();
    let mut own = CertificateParams::new(vec![name.to_owned()]).unwrap();
    own.is_ca = match certificate {
        Certificate::OfAuthority(_) => IsCa::Ca(BasicConstraints::Unconstrained),
        _ => IsCa::ExplicitNoCa,
    };
    let own = own.self_signed(&key).unwrap();
    (config(&own, &key), own.pem())
}

/// A server's TLS under an authority of its own.
fn signed(certificate: Certificate) -> (ServerConfig, String) {
    let authority_key = KeyPair::generate().unwrap();
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_pem = authority.self_signed(&authority_key).unwrap().pem();
    let issuer = Issuer::new(authority, authority_key);

    let (Certificate::For(name)
    | Certificate::ExpiredFor(name)
    | Certificate::OfAuthority(name)
    | Certificate::SelfSigned(name)) = certificate;
    let key = KeyPair::generate().unwrap();
    let mut leaf = CertificateParams::new(vec![name.to_owned()]).unwrap();
    if matches!(certificate, Certificate::ExpiredFor(_)) {
        leaf.not_before = date_time_ymd(2019, 1, 1);
        leaf.not_after = date_time_ymd(2020, 1, 1);
    }
    let leaf = leaf.signed_by(&key, &issuer).unwrap();
    (config(&leaf, &key), authority_pem)
}

/// TLS that shows a certificate.
fn config(leaf: &rcgen::Certificate, key: &KeyPair) -> ServerConfig {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![leaf.der().clone()],
            PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        )
        .unwrap()
}
