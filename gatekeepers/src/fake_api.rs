//! An API server in memory, for tests: ConfigMaps that can be listed and watched by name, Secrets
//! that can be read, and objects of any kind. Other crates' tests use this file too.
#![allow(dead_code, reason = "not every crate's tests use all of it")]

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{Response, StatusCode};
use axum::routing::get;
use futures::StreamExt;
use futures::stream;
use k8s_openapi::ByteString;
use serde_json::{Value, json};
use tokio::sync::{broadcast, watch};

// By its path from here, for every crate that includes this file.
#[path = "fake_api/objects.rs"]
mod objects;

type Key = (String, String);

/// The API server.
#[derive(Clone)]
pub(crate) struct FakeApi(Arc<Inner>);

struct Inner {
    maps: Mutex<HashMap<Key, Value>>,
    secrets: Mutex<HashMap<Key, Value>>,
    events: broadcast::Sender<(Key, Value)>,
    version: AtomicUsize,
    /// Namespaces where nothing may be read.
    forbidden: Mutex<HashSet<String>>,
    /// Namespaces where nothing is answered.
    silent: watch::Sender<HashSet<String>>,
    lists: AtomicUsize,
    watches: AtomicUsize,
    objects: objects::Objects,
}

impl FakeApi {
    pub(crate) fn new() -> Self {
        let (events, _) = broadcast::channel(64);
        Self(Arc::new(Inner {
            maps: Mutex::default(),
            secrets: Mutex::default(),
            events,
            version: AtomicUsize::new(1),
            forbidden: Mutex::default(),
            silent: watch::Sender::default(),
            lists: AtomicUsize::new(0),
            watches: AtomicUsize::new(0),
            objects: objects::Objects::default(),
        }))
    }

    pub(crate) fn client(&self) -> kube::Client {
        kube::Client::new(self.router(), "default")
    }

    /// What answers its requests.
    pub(crate) fn router(&self) -> Router {
        let maps = "/api/v1/namespaces/{namespace}/configmaps";
        let secrets = "/api/v1/namespaces/{namespace}/secrets/{name}";
        Router::new()
            .route(maps, get(config_maps))
            .route(secrets, get(secret))
            .fallback(objects::serve)
            .with_state(self.clone())
    }

    /// Creates or replaces a ConfigMap.
    pub(crate) fn put(&self, namespace: &str, name: &str, data: &[(&str, &str)]) {
        let data: BTreeMap<_, _> = data.iter().copied().collect();
        self.put_value(namespace, name, json!({ "data": data }));
    }

    pub(crate) fn put_value(&self, namespace: &str, name: &str, mut map: Value) {
        let version = self.0.version.fetch_add(1, Ordering::SeqCst);
        map["apiVersion"] = json!("v1");
        map["kind"] = json!("ConfigMap");
        map["metadata"] = json!({
            "namespace": namespace, "name": name, "resourceVersion": version.to_string(),
        });
        let key = (namespace.to_owned(), name.to_owned());
        let before = self.0.maps.lock().unwrap().insert(key.clone(), map.clone());
        let kind = if before.is_some() {
            "MODIFIED"
        } else {
            "ADDED"
        };
        let _ = self
            .0
            .events
            .send((key, json!({ "type": kind, "object": map })));
    }

    pub(crate) fn delete(&self, namespace: &str, name: &str) {
        let key = (namespace.to_owned(), name.to_owned());
        let map = self.0.maps.lock().unwrap().remove(&key).unwrap();
        let _ = self
            .0
            .events
            .send((key, json!({ "type": "DELETED", "object": map })));
    }

    /// Creates or replaces a Secret with one key, whose value is given in base64.
    pub(crate) fn put_secret(&self, namespace: &str, name: &str, key: &str, base64: &str) {
        self.put_secret_value((namespace, name), None, &json!({ key: base64 }));
    }

    /// Creates or replaces a Secret with these keys and their values.
    pub(crate) fn put_secret_keys(&self, namespace: &str, name: &str, keys: &[(&str, &[u8])]) {
        let data: BTreeMap<_, _> = keys
            .iter()
            .map(|(key, value)| (*key, ByteString(value.to_vec())))
            .collect();
        self.put_secret_value((namespace, name), None, &json!(data));
    }

    /// The same, which may be sent to these hosts.
    pub(crate) fn put_secret_for(
        &self,
        hosts: &str,
        (namespace, name): (&str, &str),
        keys: &[(&str, &[u8])],
    ) {
        let data: BTreeMap<_, _> = keys
            .iter()
            .map(|(key, value)| (*key, ByteString(value.to_vec())))
            .collect();
        self.put_secret_value((namespace, name), Some(hosts), &json!(data));
    }

    fn put_secret_value(&self, (namespace, name): (&str, &str), hosts: Option<&str>, data: &Value) {
        let hosts = hosts.map(|hosts| ("sluice.dev/allowed-hosts", hosts));
        let annotations: BTreeMap<_, _> = hosts.into_iter().collect();
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": { "namespace": namespace, "name": name, "annotations": annotations },
            "data": data,
        });
        let key = (namespace.to_owned(), name.to_owned());
        self.0.secrets.lock().unwrap().insert(key, secret);
    }

    pub(crate) fn forbid(&self, namespace: &str) {
        self.0
            .forbidden
            .lock()
            .unwrap()
            .insert(namespace.to_owned());
    }

    pub(crate) fn permit(&self, namespace: &str) {
        self.0.forbidden.lock().unwrap().remove(namespace);
    }

    pub(crate) fn silence(&self, namespace: &str) {
        self.0.silent.send_modify(|silent| {
            silent.insert(namespace.to_owned());
        });
    }

    pub(crate) fn speak(&self, namespace: &str) {
        self.0.silent.send_modify(|silent| {
            silent.remove(namespace);
        });
    }

    /// How many lists were asked for.
    pub(crate) fn lists(&self) -> usize {
        self.0.lists.load(Ordering::SeqCst)
    }

    /// How many watches are open.
    pub(crate) fn watches(&self) -> usize {
        self.0.watches.load(Ordering::SeqCst)
    }
}

/// Counts a watch for as long as its stream lives.
struct Counted(FakeApi);

impl Counted {
    fn new(api: FakeApi) -> Self {
        api.0.watches.fetch_add(1, Ordering::SeqCst);
        Self(api)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.watches.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn config_maps(
    State(api): State<FakeApi>,
    Path(namespace): Path<String>,
    RawQuery(query): RawQuery,
) -> Response<Body> {
    let query = query.unwrap_or_default();
    if let Some(refusal) = api.refusal(&namespace).await {
        return refusal;
    }
    let selected = query.split('&').find_map(|pair| {
        pair.strip_prefix("fieldSelector=metadata.name%3D")
            .or_else(|| pair.strip_prefix("fieldSelector=metadata.name="))
    });
    // Any other request was not meant.
    let Some(name) = selected else {
        return answer(StatusCode::BAD_REQUEST, &json!({}));
    };
    let key = (namespace, name.to_owned());
    if query.contains("watch=true") {
        // As if from the version that was listed.
        let since = query
            .split('&')
            .find_map(|pair| pair.strip_prefix("resourceVersion="));
        return api.watch(key, since.and_then(|since| since.parse().ok()).unwrap_or(0));
    }
    api.0.lists.fetch_add(1, Ordering::SeqCst);
    let version = api.0.version.load(Ordering::SeqCst) - 1;
    let items: Vec<_> = api
        .0
        .maps
        .lock()
        .unwrap()
        .get(&key)
        .cloned()
        .into_iter()
        .collect();
    let list = json!({
        "apiVersion": "v1", "kind": "ConfigMapList",
        "metadata": { "resourceVersion": version.to_string() },
        "items": items,
    });
    answer(StatusCode::OK, &list)
}

async fn secret(
    State(api): State<FakeApi>,
    Path((namespace, name)): Path<(String, String)>,
) -> Response<Body> {
    if let Some(refusal) = api.refusal(&namespace).await {
        return refusal;
    }
    let found = api
        .0
        .secrets
        .lock()
        .unwrap()
        .get(&(namespace, name))
        .cloned();
    match found {
        Some(secret) => answer(StatusCode::OK, &secret),
        None => answer(StatusCode::NOT_FOUND, &status(404, "NotFound")),
    }
}

impl FakeApi {
    async fn refusal(&self, namespace: &str) -> Option<Response<Body>> {
        let mut silent = self.0.silent.subscribe();
        let _ = silent.wait_for(|silent| !silent.contains(namespace)).await;
        let forbidden = self.0.forbidden.lock().unwrap().contains(namespace);
        forbidden.then(|| answer(StatusCode::FORBIDDEN, &status(403, "Forbidden")))
    }

    fn watch(&self, key: Key, since: usize) -> Response<Body> {
        let events = self.0.events.subscribe();
        // What changed between the list and now.
        let missed = self
            .0
            .maps
            .lock()
            .unwrap()
            .get(&key)
            .cloned()
            .filter(|map| {
                let version = map["metadata"]["resourceVersion"]
                    .as_str()
                    .map(str::parse::<usize>);
                matches!(version, Some(Ok(version)) if version > since)
            });
        let missed = missed.map(|map| line(&json!({ "type": "MODIFIED", "object": map })));
        let counted = Counted::new(self.clone());
        let news = stream::unfold((events, key, counted), |(mut events, key, counted)| async {
            loop {
                match events.recv().await {
                    Ok((changed, event)) if changed == key => {
                        return Some((line(&event), (events, key, counted)));
                    }
                    Ok(_) => {}
                    Err(_) => return None,
                }
            }
        });
        let lines = stream::iter(missed).chain(news);
        Response::new(Body::from_stream(
            lines.map(Ok::<_, std::convert::Infallible>),
        ))
    }
}

/// What it is comes first, as the API server writes it.
fn line(event: &Value) -> String {
    format!(
        "{{\"type\":{},\"object\":{}}}\n",
        event["type"], event["object"]
    )
}

fn status(code: u16, reason: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure",
        "code": code, "reason": reason, "message": "",
    })
}

fn answer(status: StatusCode, body: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    response
}
