//! Lists in pages of so many bytes.
//!
//! What comes in: requests for a page of so many objects. What goes out: the same, unless the answer
//! is longer than the budget. Then its rest is not read, and a smaller page is asked for, down to a
//! single object. An object may have more than a MiB, most of which nobody here reads; a page of 500
//! of them would be there as a whole before any of it could be thrown away.
//!
//! A page with fewer objects than were asked for is nothing unusual for a client that lists: the API
//! server may always send fewer, with the token for the next page.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;
use std::task::{self, Poll};

use axum::body::{Body as Answer, Bytes, HttpBody};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{Method, Request, Response, Uri};
use kube::client::Body;
use parking_lot::Mutex;
use tower::{BoxError, Service, ServiceExt};

/// How long a page gets, in bytes: about a thousand gates have it.
pub const BUDGET: usize = 4 << 20;
/// How much longer a page of a single object may be.
const SINGLE: usize = 8;
/// By how much pages become smaller when they are too long, and larger when they are short.
const STEP: u32 = 8;
/// How many lists are remembered, of those whose pages are too long.
const REMEMBERED: usize = 1000;

/// Keeps the pages of lists within a budget.
#[derive(Clone)]
pub struct Pages<S> {
    inner: S,
    budget: usize,
    /// How many objects were last asked for, by the path of the list, where that is fewer than the client
    /// has asked for.
    limits: Arc<Mutex<HashMap<String, u32>>>,
}

impl<S> Pages<S> {
    /// Sends requests on to `inner`, and asks for pages of at most `budget` bytes.
    pub fn new(inner: S, budget: usize) -> Self {
        Self {
            inner,
            budget,
            limits: Arc::default(),
        }
    }

    /// How many objects to ask for.
    fn limit(&self, path: &str, asked: u32) -> u32 {
        self.limits
            .lock()
            .get(path)
            .map_or(asked, |it| asked.min(*it))
    }

    /// Notes how many to ask for next time.
    fn note(&self, path: &str, asked: u32, next: u32) {
        let mut limits = self.limits.lock();
        if next >= asked {
            limits.remove(path);
            return;
        }
        if limits.len() >= REMEMBERED {
            limits.clear();
        }
        limits.insert(path.to_owned(), next);
    }
}

impl<S, B> Service<Request<Body>> for Pages<S>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Answer>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Answer>, BoxError>>;

    fn poll_ready(&mut self, context: &mut task::Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Some(asked) = objects_asked_for(&request) else {
            let answer = self.inner.call(request);
            return async move { Ok(answer.await.map_err(Into::into)?.map(Answer::new)) }.boxed();
        };
        // The one that is ready is used; its clone may not be.
        let clone = self.clone();
        let ready = mem::replace(self, clone);
        let (head, _no_body) = request.into_parts();
        async move { ready.page(&head, asked).await }.boxed()
    }
}

impl<S, B> Pages<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    async fn page(mut self, head: &Parts, asked: u32) -> Result<Response<Answer>, BoxError> {
        let path = head.uri.path();
        let mut limit = self.limit(path, asked);
        loop {
            let request = with_limit(head, limit)?;
            let service = self.inner.ready().await.map_err(Into::into)?;
            let answer = service.call(request).await.map_err(Into::into)?;
            if !answer.status().is_success() {
                return Ok(answer.map(Answer::new));
            }
            let most = match limit {
                0..=1 => self.budget.saturating_mul(SINGLE),
                _ => self.budget,
            };
            let (answered, body) = answer.into_parts();
            match read(body, most).await? {
                Some(body) => {
                    let is_short = body.len() < self.budget / (2 * STEP as usize);
                    let next = if is_short { limit * STEP } else { limit };
                    self.note(path, asked, next);
                    return Ok(Response::from_parts(answered, Answer::from(body)));
                }
                None if limit <= 1 => {
                    return Err(format!("an object of {path} is longer than {most} bytes").into());
                }
                None => limit = (limit / STEP).max(1),
            }
        }
    }
}

/// How many objects a request for a page of a list asks for. None: it is something else.
fn objects_asked_for(request: &Request<Body>) -> Option<u32> {
    let query = request.uri().query()?;
    if request.method() != Method::GET || parameter(query, "watch").is_some() {
        return None;
    }
    parameter(query, "limit")?.parse().ok()
}

fn parameter<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let mut values = pairs.filter_map(|(key, value)| (key == name).then_some(value));
    values.next()
}

/// The same request for so many objects.
fn with_limit(head: &Parts, limit: u32) -> Result<Request<Body>, http::Error> {
    let query = head.uri.query().unwrap_or_default();
    let pairs = query.split('&').map(|pair| match pair.split_once('=') {
        Some(("limit", _)) => format!("limit={limit}"),
        _ => pair.to_owned(),
    });
    let query = pairs.collect::<Vec<_>>().join("&");
    let mut parts = head.uri.clone().into_parts();
    let path = head.uri.path();
    parts.path_and_query = Some(PathAndQuery::try_from(format!("{path}?{query}"))?);
    let mut again = Request::new(Body::empty());
    *again.uri_mut() = Uri::from_parts(parts)?;
    *again.headers_mut() = head.headers.clone();
    *again.extensions_mut() = head.extensions.clone();
    Ok(again)
}

/// A body to its end. None: it is longer than `most` bytes, and its rest is not read.
async fn read<B>(body: B, most: usize) -> Result<Option<Bytes>, BoxError>
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let mut pieces = Answer::new(body).into_data_stream();
    let mut all = Vec::new();
    while let Some(piece) = pieces.next().await {
        let piece = piece?;
        if all.len() + piece.len() > most {
            return Ok(None);
        }
        all.extend_from_slice(&piece);
    }
    Ok(Some(all.into()))
}

#[cfg(test)]
mod tests;
