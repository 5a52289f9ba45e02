//! A bad line to the API server.
//!
//! What comes in: the requests of a controller. What goes out: the API server's answers, unless a
//! fault is ordered: an answer of one's own, an answer that breaks off, a request that waits.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result, ensure};
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use futures::{StreamExt, stream};
use kube::{Client, Config};
use serde_json::{Value, json};
use sluice_tests::poll;
use tempfile::TempPath;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::stage::DEADLINE;

/// No request of a controller is as long as this.
const LONGEST: usize = 1 << 20;

/// What the API server says when it refuses.
pub fn refusal(code: StatusCode, reason: &str) -> Fault {
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "ordered by a test", "reason": reason, "code": code.as_u16(),
    });
    Fault::Answer(code, body.to_string())
}

/// What is done to a request.
#[derive(Clone)]
pub enum Fault {
    /// It never reaches the API server, which seems to answer this.
    Answer(StatusCode, String),
    /// The API server carries it out, but its answer breaks off.
    BreakOff,
    /// It waits until it is let go.
    Hold,
}

/// Which requests a fault is for, and for how many of them.
struct Order {
    method: Method,
    part: String,
    left: usize,
    fault: Fault,
}

/// A line to the API server.
pub struct Proxy {
    address: SocketAddr,
    line: Arc<Line>,
    server: tokio::task::JoinHandle<()>,
}

struct Line {
    client: Client,
    orders: Mutex<Vec<Order>>,
    /// Everything that came in: method and path with query.
    seen: Mutex<Vec<(Method, String)>>,
    /// Counts the cuts. Every answer under way breaks off at the next.
    cuts: watch::Sender<u32>,
    /// How many requests may still be let go.
    let_go: watch::Sender<u32>,
}

impl Proxy {
    /// Starts one. Whoever uses it acts as `client` does.
    pub async fn start(client: Client) -> Result<Self> {
        let line = Arc::new(Line {
            client,
            orders: Mutex::default(),
            seen: Mutex::default(),
            cuts: watch::Sender::new(0),
            let_go: watch::Sender::new(0),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let router = Router::new().fallback(pass).with_state(Arc::clone(&line));
        let server = tokio::spawn(async move {
            // It ends when it is aborted.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self {
            address,
            line,
            server,
        })
    }

    /// A client at the other end of the line, as the program has it.
    pub fn client(&self) -> Result<Client> {
        Ok(gate_controller::cluster::connect::client(self.config()?)?)
    }

    /// How to reach the other end of the line.
    pub fn config(&self) -> Result<Config> {
        Ok(Config::new(format!("http://{}", self.address).parse()?))
    }

    /// A kubeconfig with which programs use the line. It is deleted on drop.
    pub fn kubeconfig(&self) -> Result<TempPath> {
        let named = |what: &str, value: Value| json!([{"name": "line", what: value}]);
        let kubeconfig = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": named("cluster", json!({"server": format!("http://{}", self.address)})),
            "users": named("user", json!({})),
            "contexts": named("context", json!({"cluster": "line", "user": "line"})),
            "current-context": "line",
        });
        let file = tempfile::NamedTempFile::new()?;
        std::fs::write(file.path(), kubeconfig.to_string())?;
        Ok(file.into_temp_path())
    }

    /// Orders a fault for the next `times` requests with this method whose path or query has
    /// `part` in it.
    pub fn order(&self, fault: Fault, method: Method, part: &str, times: usize) {
        self.line.orders.lock().unwrap().push(Order {
            method,
            part: part.to_owned(),
            left: times,
            fault,
        });
    }

    /// How many requests are still to come for which faults are ordered.
    pub fn outstanding(&self) -> usize {
        let orders = self.line.orders.lock().unwrap();
        orders.iter().map(|order| order.left).sum()
    }

    /// Waits until every request has come for which a fault is ordered.
    pub async fn came(&self) -> Result<()> {
        poll(DEADLINE, "the requests with faults", async || {
            let outstanding = self.outstanding();
            ensure!(outstanding == 0, "{outstanding} are still to come");
            Ok(())
        })
        .await
    }

    /// Withdraws all orders.
    pub fn repair(&self) {
        self.line.orders.lock().unwrap().clear();
    }

    /// Breaks off every answer that is under way: all watches.
    pub fn cut(&self) {
        self.line.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Lets one request go that is held.
    pub fn let_go(&self) {
        self.line.let_go.send_modify(|more| *more += 1);
    }

    /// How many requests came in with this method whose path or query has `part` in it.
    pub fn count(&self, method: &Method, part: &str) -> usize {
        let seen = self.line.seen.lock().unwrap();
        seen.iter()
            .filter(|(seen, path)| seen == method && path.contains(part))
            .count()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Line {
    fn fault(&self, method: &Method, path: &str) -> Option<Fault> {
        let mut orders = self.orders.lock().unwrap();
        let order = orders.iter_mut().find(|order| {
            order.left > 0 && order.method == *method && path.contains(&order.part)
        })?;
        order.left -= 1;
        Some(order.fault.clone())
    }

    async fn hold(&self) {
        let mut more = self.let_go.subscribe();
        // The sender lives as long as `self`.
        let _ = more.wait_for(|more| *more > 0).await;
        self.let_go
            .send_modify(|more| *more = more.saturating_sub(1));
    }
}

async fn pass(State(line): State<Arc<Line>>, request: Request) -> Response {
    match forward(&line, request).await {
        Ok(response) => response,
        Err(error) => (StatusCode::BAD_GATEWAY, format!("{error:#}")).into_response(),
    }
}

async fn forward(line: &Line, request: Request) -> Result<Response> {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path_and_query().context("no path")?.to_string();
    line.seen
        .lock()
        .unwrap()
        .push((parts.method.clone(), path.clone()));
    let fault = line.fault(&parts.method, &path);
    match &fault {
        Some(Fault::Answer(status, body)) => {
            let json = [("content-type", "application/json")];
            return Ok((*status, json, body.clone()).into_response());
        }
        Some(Fault::Hold) => line.hold().await,
        Some(Fault::BreakOff) | None => {}
    }
    let mut onwards = http::Request::builder().method(parts.method).uri(path);
    for name in ["accept", "content-type"] {
        if let Some(value) = parts.headers.get(name) {
            onwards = onwards.header(name, value);
        }
    }
    let body = to_bytes(body, LONGEST).await?.to_vec();
    let cuts = line.cuts.subscribe();
    let answer = line.client.send(onwards.body(body.into())?).await?;
    let (parts, body) = answer.into_parts();
    let mut response = Response::builder().status(parts.status);
    for (name, value) in &parts.headers {
        response = response.header(name, value);
    }
    let body = if matches!(fault, Some(Fault::BreakOff)) {
        // It has been carried out when all of the answer is here.
        to_bytes(Body::new(body), LONGEST).await?;
        Body::from_stream(stream::once(async { Err::<Bytes, _>(broken()) }))
    } else {
        until_cut(Body::new(body), cuts)
    };
    Ok(response.body(body)?)
}

/// An answer that goes on until it is cut.
fn until_cut(body: Body, cuts: watch::Receiver<u32>) -> Body {
    let state = Some((body.into_data_stream(), cuts));
    Body::from_stream(stream::unfold(state, async |state| {
        let (mut chunks, mut cuts) = state?;
        tokio::select! {
            chunk = chunks.next() => {
                let chunk = chunk?.map_err(io::Error::other);
                Some((chunk, Some((chunks, cuts))))
            }
            _ = cuts.changed() => Some((Err(broken()), None)),
        }
    }))
}

fn broken() -> io::Error {
    io::Error::other("the line was cut")
}
