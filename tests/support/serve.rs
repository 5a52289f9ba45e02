//! A small HTTP server in this process.
//!
//! What comes in: what it answers. What goes out: an address on loopback that answers, for as long as
//! it is held.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::Result;
use axum::Router;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// A server on a free port, on the runtime of the one who started it. Dropped, it is gone.
pub(crate) struct Serving {
    address: SocketAddr,
    _server: JoinSet<()>,
}

impl Serving {
    pub(crate) async fn start(pages: Router) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let mut server = JoinSet::new();
        server.spawn(async move {
            // It ends with the task alone: errors of connections are those of their clients.
            let _ = axum::serve(listener, pages).await;
        });
        Ok(Self {
            address,
            _server: server,
        })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}
