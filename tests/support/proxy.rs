//! A bad line to the API server, or to another server.
//!
//! What comes in: the requests of a controller. What goes out: the server's answers, unless a fault is
//! ordered: an answer of one's own, an answer that breaks off, a request that waits, a standstill.

use std::fmt;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::serve::Listener;
use futures::stream;
use kube::{Client, Config};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempPath;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::https::Https;
use crate::poll::{DEADLINE, poll};
use flow::{Flow, broken};

mod flow;

/// No request of a controller is as long as this.
const LONGEST: usize = 1 << 20;

/// What belongs to a request and goes on with it. The client of the line has credentials where the
/// request has none.
const HEADERS: [&str; 6] = [
    "accept",
    "authorization",
    "content-type",
    "git-protocol",
    "idempotency-key",
    "impersonate-user",
];

/// What the API server says when it refuses.
#[must_use]
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
    /// It never reaches the server. From this instant on nothing goes either way, here and on the lines
    /// beside this one, until they are cut.
    StopBefore,
    /// The same as soon as the server has carried it out: nobody gets the answer. What the server refuses
    /// is not meant.
    StopAfter,
}

/// Which requests a fault is for, and for how many of them.
struct Order {
    method: Method,
    part: String,
    body: String,
    left: usize,
    fault: Fault,
}

/// A request that came in.
struct Seen {
    method: Method,
    /// With its query.
    path: String,
    body: String,
    /// What the server has answered.
    answer: Option<StatusCode>,
}

impl Seen {
    fn is(&self, method: &Method, part: &str, body: &str) -> bool {
        self.method == *method && self.path.contains(part) && self.body.contains(body)
    }
}

/// A line to a server.
pub struct Proxy {
    url: String,
    authority: String,
    line: Arc<Line>,
    server: tokio::task::JoinHandle<()>,
}

struct Line {
    client: Client,
    orders: Mutex<Vec<Order>>,
    /// Everything that came in, in this order.
    seen: Mutex<Vec<Seen>>,
    flow: Arc<Flow>,
    /// How many requests may still be let go.
    let_go: watch::Sender<u32>,
}

impl Proxy {
    /// Starts one. Anyone who uses it acts as `client` does.
    ///
    /// # Errors
    ///
    /// If there is no free port.
    pub async fn start(client: Client) -> Result<Self> {
        Self::plain(client, Arc::default()).await
    }

    /// Starts another one that stands still and is cut together with this one.
    ///
    /// # Errors
    ///
    /// If there is no free port.
    pub async fn beside(&self, client: Client) -> Result<Self> {
        Self::plain(client, Arc::clone(&self.line.flow)).await
    }

    /// The same, for programs that speak TLS alone.
    ///
    /// # Errors
    ///
    /// If there is no free port.
    pub async fn beside_over_tls(&self, client: Client) -> Result<Self> {
        let (listener, authority) = Https::listen().await?;
        let url = format!("https://{}", listener.local_addr()?);
        let flow = Arc::clone(&self.line.flow);
        Ok(Self::serve(listener, (url, authority), client, flow))
    }

    async fn plain(client: Client, flow: Arc<Flow>) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        Ok(Self::serve(listener, (url, String::new()), client, flow))
    }

    fn serve<L>(
        listener: L,
        (url, authority): (String, String),
        client: Client,
        flow: Arc<Flow>,
    ) -> Self
    where
        L: Listener,
        L::Addr: fmt::Debug,
    {
        let line = Arc::new(Line {
            client,
            orders: Mutex::default(),
            seen: Mutex::default(),
            flow,
            let_go: watch::Sender::new(0),
        });
        let router = Router::new().fallback(pass).with_state(Arc::clone(&line));
        let server = tokio::spawn(async move {
            // It ends when it is aborted.
            let _ = axum::serve(listener, router).await;
        });
        Self {
            url,
            authority,
            line,
            server,
        }
    }

    /// The address of its other end, without a path.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The certificate of its authority in PEM, where it speaks TLS.
    #[must_use]
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// A client at the other end of the line, as the program has it.
    ///
    /// # Errors
    ///
    /// If its address is none.
    pub fn client(&self) -> Result<Client> {
        Ok(gate_controller::cluster::connect::client(self.config()?)?)
    }

    /// How to reach the other end of the line.
    ///
    /// # Errors
    ///
    /// If its address is none.
    pub fn config(&self) -> Result<Config> {
        Ok(Config::new(self.url.parse()?))
    }

    /// A kubeconfig with which programs use the line. It is deleted on drop.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn kubeconfig(&self) -> Result<TempPath> {
        let named = |what: &str, value: Value| json!([{"name": "line", what: value}]);
        let kubeconfig = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": named("cluster", json!({"server": self.url})),
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
        self.order_for(fault, method, (part, ""), times);
    }

    /// The same for requests that also have `body` in their body.
    pub fn order_for(
        &self,
        fault: Fault,
        method: Method,
        (part, body): (&str, &str),
        times: usize,
    ) {
        self.line.orders.lock().push(Order {
            method,
            part: part.to_owned(),
            body: body.to_owned(),
            left: times,
            fault,
        });
    }

    /// How many requests are still to come for which faults are ordered.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        let orders = self.line.orders.lock();
        orders.iter().map(|order| order.left).sum()
    }

    /// Waits until every request has come for which a fault is ordered.
    ///
    /// # Errors
    ///
    /// If they do not come in time.
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
        self.line.orders.lock().clear();
    }

    /// Waits until nothing goes through any more.
    ///
    /// # Errors
    ///
    /// If the request does not come in time.
    pub async fn stands_still(&self) -> Result<()> {
        poll(DEADLINE, "the standstill", async || {
            ensure!(self.line.flow.is_still(), "the request has not come");
            Ok(())
        })
        .await
    }

    /// Breaks off every answer that is under way: all watches. A standstill ends, and nothing that came
    /// in it goes on.
    pub fn cut(&self) {
        self.line.flow.cut();
    }

    /// Lets one request go that is held.
    pub fn let_go(&self) {
        self.line.let_go.send_modify(|more| *more += 1);
    }

    /// How many requests came in with this method whose path or query has `part` in it.
    #[must_use]
    pub fn count(&self, method: &Method, part: &str) -> usize {
        let seen = self.line.seen.lock();
        seen.iter().filter(|it| it.is(method, part, "")).count()
    }

    /// What the server has answered to those of them that also have `body` in their body.
    #[must_use]
    pub fn answers(&self, method: &Method, part: &str, body: &str) -> Vec<StatusCode> {
        let seen = self.line.seen.lock();
        let meant = seen.iter().filter(|it| it.is(method, part, body));
        meant.filter_map(|it| it.answer).collect()
    }

    /// How many of them it has carried out.
    #[must_use]
    pub fn carried_out(&self, method: &Method, part: &str, body: &str) -> usize {
        let answers = self.answers(method, part, body).into_iter();
        answers.filter(StatusCode::is_success).count()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Line {
    /// Notes a request. Returns its place among all.
    fn note(&self, method: &Method, path: &str, body: &str) -> usize {
        let mut seen = self.seen.lock();
        seen.push(Seen {
            method: method.clone(),
            path: path.to_owned(),
            body: body.to_owned(),
            answer: None,
        });
        seen.len() - 1
    }

    fn is_answered(&self, place: usize, answer: StatusCode) {
        if let Some(seen) = self.seen.lock().get_mut(place) {
            seen.answer = Some(answer);
        }
    }

    /// What is done to a request, and the place of the order for it.
    fn fault(&self, method: &Method, path: &str, body: &str) -> Option<(usize, Fault)> {
        let mut orders = self.orders.lock();
        let is_for = |order: &Order| {
            order.left > 0
                && order.method == *method
                && path.contains(&order.part)
                && body.contains(&order.body)
        };
        let place = orders.iter().position(is_for)?;
        let order = orders.get_mut(place)?;
        order.left -= 1;
        Some((place, order.fault.clone()))
    }

    /// The request was not one of those that an order is for.
    fn is_not_meant(&self, place: usize) {
        if let Some(order) = self.orders.lock().get_mut(place) {
            order.left += 1;
        }
    }

    async fn hold(&self) {
        let mut more = self.let_go.subscribe();
        // The sender lives as long as `self`.
        let _ = more.wait_for(|more| *more > 0).await;
        self.let_go
            .send_modify(|more| *more = more.saturating_sub(1));
    }

    async fn send(&self, parts: &Parts, path: &str, body: Vec<u8>) -> Result<http::Response<Body>> {
        let mut onwards = http::Request::builder()
            .method(parts.method.clone())
            .uri(path);
        for name in HEADERS {
            if let Some(value) = parts.headers.get(name) {
                onwards = onwards.header(name, value);
            }
        }
        let answer = self.client.send(onwards.body(body.into())?).await?;
        Ok(answer.map(Body::new))
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
    let body = to_bytes(body, LONGEST).await?.to_vec();
    let text = String::from_utf8_lossy(&body);
    let place = line.note(&parts.method, &path, &text);
    let fault = line.fault(&parts.method, &path, &text);
    match &fault {
        Some((_, Fault::Answer(status, body))) => {
            let json = [("content-type", "application/json")];
            return Ok((*status, json, body.clone()).into_response());
        }
        Some((_, Fault::Hold)) => line.hold().await,
        Some((_, Fault::StopBefore)) => line.flow.stop(),
        Some((_, Fault::BreakOff | Fault::StopAfter)) | None => {}
    }
    line.flow.pass().await?;
    let until_cut = line.flow.until_cut();
    let (answer, body) = line.send(&parts, &path, body).await?.into_parts();
    line.is_answered(place, answer.status);
    // It has been carried out when all of the answer is here.
    let body = match fault {
        Some((_, Fault::BreakOff)) => {
            to_bytes(body, LONGEST).await?;
            Body::from_stream(stream::once(async { Err::<Bytes, _>(broken()) }))
        }
        Some((_, Fault::StopAfter)) if answer.status.is_success() => {
            to_bytes(body, LONGEST).await?;
            line.flow.stop();
            Body::empty()
        }
        Some((place, Fault::StopAfter)) => {
            line.is_not_meant(place);
            until_cut(body)
        }
        _ => until_cut(body),
    };
    line.flow.pass().await?;
    let mut response = Response::builder().status(answer.status);
    for (name, value) in &answer.headers {
        response = response.header(name, value);
    }
    Ok(response.body(body)?)
}
