//! A server on loopback that answers every request with one reply.
//!
//! What comes in: the reply. What goes out: an address, the certificate of the authority that
//! vouches for it, and what was asked.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use anyhow::Result;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::{AUTHORIZATION, LOCATION};
use axum::response::{IntoResponse, Response};
use axum::serve::Listener;
use sluice_tests::https::Https;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// The server. Dropped, it listens no more.
pub struct Server {
    address: SocketAddr,
    scheme: &'static str,
    /// The certificate of its authority, in PEM.
    pub authority: String,
    said: Arc<Mutex<Said>>,
    server: JoinHandle<()>,
}

#[derive(Default)]
struct Said {
    reply: Reply,
    times: usize,
    authorization: Option<String>,
}

/// What it answers.
#[derive(Clone, Default)]
struct Reply {
    status: StatusCode,
    location: Option<String>,
    body: String,
}

impl Server {
    /// Over https, with a text.
    pub async fn start(text: impl Into<String>) -> Result<Self> {
        let (listener, authority) = Https::listen().await?;
        let address = listener.local_addr()?;
        let said = Arc::default();
        let router = Router::new().fallback(say).with_state(Arc::clone(&said));
        let server = tokio::spawn(async move {
            // It ends when it is aborted.
            let _ = axum::serve(listener, router).await;
        });
        let server = Self {
            address,
            scheme: "https",
            authority,
            said,
            server,
        };
        server.says(text);
        Ok(server)
    }

    /// Over http, with a text.
    pub async fn plain(text: impl Into<String>) -> Result<Self> {
        let tcp = TcpListener::bind("127.0.0.1:0").await?;
        let address = tcp.local_addr()?;
        let said = Arc::default();
        let router = Router::new().fallback(say).with_state(Arc::clone(&said));
        let server = tokio::spawn(async move {
            let _ = axum::serve(tcp, router).await;
        });
        let server = Self {
            address,
            scheme: "http",
            authority: String::new(),
            said,
            server,
        };
        server.says(text);
        Ok(server)
    }

    /// The address of something.
    pub fn url(&self, path: &str) -> String {
        format!("{}://{}{path}", self.scheme, self.address)
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Answers with this text from now on.
    pub fn says(&self, text: impl Into<String>) {
        self.replies(Reply {
            body: text.into(),
            ..Reply::default()
        });
    }

    /// Answers with this status and this text from now on.
    pub fn answers(&self, status: u16, text: impl Into<String>) {
        self.replies(Reply {
            status: StatusCode::from_u16(status).unwrap(),
            location: None,
            body: text.into(),
        });
    }

    /// Leads elsewhere from now on.
    pub fn redirects(&self, location: String) {
        self.replies(Reply {
            status: StatusCode::FOUND,
            location: Some(location),
            body: String::new(),
        });
    }

    fn replies(&self, reply: Reply) {
        self.said.lock().unwrap().reply = reply;
    }

    /// How often it has answered.
    pub fn times(&self) -> usize {
        self.said.lock().unwrap().times
    }

    /// As whom it was asked last.
    pub fn authorization(&self) -> Option<String> {
        self.said.lock().unwrap().authorization.clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn say(State(said): State<Arc<Mutex<Said>>>, asked: Request) -> Response {
    let mut said = said.lock().unwrap();
    said.times += 1;
    let authorization = asked.headers().get(AUTHORIZATION);
    said.authorization = authorization.map(|value| value.to_str().unwrap().to_owned());
    let Reply {
        status,
        location,
        body,
    } = said.reply.clone();
    let location = location.map(|location| [(LOCATION, location)]);
    match location {
        Some(location) => (status, location, body).into_response(),
        None => (status, body).into_response(),
    }
}
