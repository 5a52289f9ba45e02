//! An https server on loopback that answers every request with one text.
//!
//! What comes in: the text. What goes out: an address, and the certificate of the authority that
//! vouches for it.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use anyhow::Result;
use axum::Router;
use axum::extract::State;
use axum::serve::Listener;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// The server. Dropped, it listens no more.
pub struct Server {
    address: SocketAddr,
    /// The certificate of its authority, in PEM.
    pub authority: String,
    said: Arc<Mutex<Said>>,
    server: JoinHandle<()>,
}

#[derive(Default)]
struct Said {
    text: String,
    times: usize,
}

impl Server {
    pub async fn start(text: String) -> Result<Self> {
        let (config, authority) = tls()?;
        let tcp = TcpListener::bind("127.0.0.1:0").await?;
        let address = tcp.local_addr()?;
        let said = Arc::new(Mutex::new(Said { text, times: 0 }));
        let router = Router::new().fallback(say).with_state(Arc::clone(&said));
        let listener = Https {
            tcp,
            acceptor: TlsAcceptor::from(Arc::new(config)),
        };
        let server = tokio::spawn(async move {
            // It ends when it is aborted.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self {
            address,
            authority,
            said,
            server,
        })
    }

    pub fn url(&self) -> String {
        format!("https://{}/secret-4711/holidays.ics", self.address)
    }

    /// Answers with this from now on.
    pub fn says(&self, text: String) {
        self.said.lock().unwrap().text = text;
    }

    /// How often it has answered.
    pub fn times(&self) -> usize {
        self.said.lock().unwrap().times
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn say(State(said): State<Arc<Mutex<Said>>>) -> String {
    let mut said = said.lock().unwrap();
    said.times += 1;
    said.text.clone()
}

/// Connections that speak TLS.
struct Https {
    tcp: TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener for Https {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (stream, address) = Listener::accept(&mut self.tcp).await;
            // Whoever does not trust us turns away here.
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.tcp.local_addr()
    }
}

/// A certificate for loopback, under an authority of its own.
fn tls() -> Result<(ServerConfig, String)> {
    let mut authority = CertificateParams::new(Vec::new())?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate()?;
    let pem = authority.self_signed(&key)?.pem();
    let issuer = Issuer::new(authority, key);

    let key = KeyPair::generate()?;
    let leaf = CertificateParams::new(vec!["127.0.0.1".to_owned()])?.signed_by(&key, &issuer)?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let key = PrivateKeyDer::try_from(key.serialize_der()).map_err(anyhow::Error::msg)?;
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], key)?;
    Ok((config, pem))
}
