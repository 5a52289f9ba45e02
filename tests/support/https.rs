//! Connections on loopback that speak TLS.
//!
//! What comes in: nothing. What goes out: a listener on a free port, and the certificate of the authority that
//! vouches for it.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::Result;
use axum::serve::Listener;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::identity::Identity;

/// Connections that speak TLS.
pub struct Https {
    tcp: TcpListener,
    acceptor: TlsAcceptor,
}

impl Https {
    /// On a free port. The text is the certificate of its authority, in PEM.
    ///
    /// # Errors
    ///
    /// If there is no free port.
    pub async fn listen() -> Result<(Self, String)> {
        let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let identity = Identity::create()?;
        let acceptor = TlsAcceptor::from(Arc::new(config(&identity)?));
        Ok((Self { tcp, acceptor }, identity.authority))
    }
}

impl Listener for Https {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (stream, address) = Listener::accept(&mut self.tcp).await;
            // A client that does not trust us turns away here.
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.tcp.local_addr()
    }
}

fn config(identity: &Identity) -> Result<ServerConfig> {
    let certificate = CertificateDer::from_pem_slice(identity.certificate.as_bytes())?;
    let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes())?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)?;
    Ok(config)
}
