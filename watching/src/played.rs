//! An API server that gives the answers of a test. Other crates' tests use this file too.
#![allow(dead_code, reason = "not every crate's tests use all of it")]

use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt::Debug;
use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{Response, StatusCode};
use axum::response::IntoResponse;
use futures::{StreamExt, stream};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

/// Objects by their names and versions.
type Objects = &'static [(&'static str, u64)];

/// What it answers next.
#[derive(Clone)]
pub(crate) enum Answer {
    /// All objects, as of a version.
    List(Objects, u64),
    /// Some objects, after a while; there are more.
    Page(Objects, Duration),
    /// A refusal.
    Refuse(u16),
    /// These lines, and then the end.
    Watch(Vec<Value>),
    /// These lines, and then nothing.
    Silence(Vec<Value>),
}

/// What was asked for, and when.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// `list`, or the version that was to be watched from.
    pub(crate) what: String,
    pub(crate) at: Instant,
}

#[derive(Clone)]
pub(crate) struct Server {
    answers: Arc<Mutex<VecDeque<Answer>>>,
    /// What it answers when nothing else is left.
    otherwise: Answer,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    pub(crate) fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self {
            answers: Arc::new(Mutex::new(answers.into_iter().collect())),
            otherwise: Answer::Refuse(503),
            asked: Arc::default(),
        }
    }

    /// The same, with what it answers when nothing else is left.
    pub(crate) fn and_then(self, otherwise: Answer) -> Self {
        Self { otherwise, ..self }
    }

    /// From now on it answers these.
    pub(crate) fn answers(&self, answers: impl IntoIterator<Item = Answer>) {
        self.answers.lock().unwrap().extend(answers);
    }

    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        let router: Router = Router::new().fallback(serve).with_state(self.clone());
        Api::all(Client::new(router, "apps"))
    }

    async fn answer(&self, query: &str) -> Response<Body> {
        let is_watch = query.contains("watch=true");
        let version = query
            .split('&')
            .find_map(|it| it.strip_prefix("resourceVersion="));
        let what = match is_watch {
            true => version.unwrap_or_default().to_owned(),
            false => "list".to_owned(),
        };
        let at = Instant::now();
        let asked = {
            let mut all = self.asked.lock().unwrap();
            all.push(Asked { what, at });
            all.len()
        };
        // On a clock that goes on only where everybody waits, it would not end.
        assert!(asked < 1000, "it is asked in a loop");
        let lines = |lines: Vec<Value>| {
            let lines = lines
                .into_iter()
                .map(|line| Ok::<_, Infallible>(format!("{line}\n")));
            stream::iter(lines.collect::<Vec<_>>())
        };
        match self
            .next(is_watch)
            .unwrap_or_else(|| self.otherwise.clone())
        {
            Answer::List(objects, version) => {
                let version = version.to_string();
                list(objects, &json!({ "resourceVersion": version }))
            }
            Answer::Page(objects, after) => {
                let _ = timeout(after, pending::<()>()).await;
                list(
                    objects,
                    &json!({ "resourceVersion": "1", "continue": "more" }),
                )
            }
            Answer::Refuse(code) => {
                let status = json!({
                    "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
                    "reason": "Refused", "message": "no", "metadata": {},
                });
                let code = StatusCode::from_u16(code).unwrap();
                (code, status.to_string()).into_response()
            }
            Answer::Watch(told) => Body::from_stream(lines(told)).into_response(),
            Answer::Silence(told) => {
                Body::from_stream(lines(told).chain(stream::pending())).into_response()
            }
        }
    }

    /// The next answer to a list or a watch.
    fn next(&self, is_watch: bool) -> Option<Answer> {
        let mut answers = self.answers.lock().unwrap();
        let next = answers.iter().position(|answer| match answer {
            Answer::List(..) | Answer::Page(..) => !is_watch,
            Answer::Watch(_) | Answer::Silence(_) => is_watch,
            Answer::Refuse(_) => true,
        });
        answers.remove(next?)
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

async fn serve(State(server): State<Server>, RawQuery(query): RawQuery) -> Response<Body> {
    server.answer(&query.unwrap_or_default()).await
}

fn list(objects: Objects, metadata: &Value) -> Response<Body> {
    let items: Vec<_> = objects.iter().map(|(name, at)| map(name, *at)).collect();
    let list = json!({
        "apiVersion": "v1", "kind": "ConfigMapList", "metadata": metadata, "items": items,
    });
    list.to_string().into_response()
}

pub(crate) fn map(name: &str, version: u64) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": name, "namespace": "apps", "resourceVersion": version.to_string() },
    })
}

pub(crate) fn bookmark(version: u64) -> Value {
    json!({ "type": "BOOKMARK", "object": map("", version) })
}
