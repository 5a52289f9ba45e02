//! Objects of any kind that are given to the API server in memory: discovery, lists in pages, watches
//! with bookmarks, service accounts, and reviews of their rights.

use std::collections::{BTreeMap, HashSet};
use std::convert::Infallible;
use std::sync::{Mutex, MutexGuard};

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::ACCEPT;
use axum::http::{Method, Response, StatusCode};
use futures::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{Counted, FakeApi, answer, line, status};

/// The API server's objects.
#[derive(Default)]
pub(super) struct Objects {
    known: Mutex<Known>,
    news: watch::Sender<()>,
}

#[derive(Default)]
struct Known {
    kinds: Vec<Kind>,
    objects: BTreeMap<Place, Value>,
    history: Vec<(usize, Collection, Option<String>, Value)>,
    hang_ups: usize,
    /// Watches from before this version are refused.
    compacted: usize,
    accounts: HashSet<(String, String)>,
    /// Users, and the plurals that they may read anywhere.
    allowed: HashSet<(String, String)>,
    reviews: Vec<Value>,
    /// Reviews are answered with an error.
    mute: bool,
}

#[derive(Clone)]
struct Kind {
    api_version: String,
    kind: String,
    plural: String,
    namespaced: bool,
}

/// The version and plural of a kind.
type Collection = (String, String);
/// Where an object is.
type Place = (Collection, Option<String>, String);

impl Objects {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap()
    }

    fn change<R>(&self, change: impl FnOnce(&mut Known) -> R) -> R {
        let changed = change(&mut self.known());
        self.news.send_replace(());
        changed
    }
}

fn collection(api_version: &str, plural: &str) -> Collection {
    (api_version.to_owned(), plural.to_owned())
}

impl FakeApi {
    /// There is a kind from now on.
    pub(crate) fn serve_kind(&self, api_version: &str, kind: &str, plural: &str, namespaced: bool) {
        self.0.objects.change(|known| {
            known.kinds.push(Kind {
                api_version: api_version.to_owned(),
                kind: kind.to_owned(),
                plural: plural.to_owned(),
                namespaced,
            });
        });
    }

    /// A kind is gone, with its objects and their watches.
    pub(crate) fn drop_kind(&self, kind: &str) {
        self.0.objects.change(|known| {
            let gone = known.kinds.iter().position(|known| known.kind == kind);
            let gone = known.kinds.remove(gone.unwrap());
            let of = collection(&gone.api_version, &gone.plural);
            known
                .objects
                .retain(|(collection, ..), _| *collection != of);
            known.hang_ups += 1;
        });
    }

    /// Creates or replaces an object.
    pub(crate) fn put_object(
        &self,
        (api_version, plural): (&str, &str),
        namespace: Option<&str>,
        name: &str,
        mut object: Value,
    ) {
        let version = self.next_version();
        object["metadata"]["name"] = json!(name);
        object["metadata"]["namespace"] = json!(namespace);
        object["metadata"]["resourceVersion"] = json!(version.to_string());
        if object["metadata"]["uid"].is_null() {
            object["metadata"]["uid"] = json!(format!("uid-{name}"));
        }
        self.0.objects.change(|known| {
            let of = collection(api_version, plural);
            let namespace = namespace.map(str::to_owned);
            let place = (of.clone(), namespace.clone(), name.to_owned());
            let before = known.objects.insert(place, object.clone());
            let kind = before.map_or("ADDED", |_| "MODIFIED");
            let event = json!({ "type": kind, "object": object });
            known.history.push((version, of, namespace, event));
        });
    }

    pub(crate) fn delete_object(
        &self,
        (api_version, plural): (&str, &str),
        namespace: Option<&str>,
        name: &str,
    ) {
        let version = self.next_version();
        self.0.objects.change(|known| {
            let of = collection(api_version, plural);
            let namespace = namespace.map(str::to_owned);
            let place = (of.clone(), namespace.clone(), name.to_owned());
            let mut object = known.objects.remove(&place).unwrap();
            object["metadata"]["resourceVersion"] = json!(version.to_string());
            let event = json!({ "type": "DELETED", "object": object });
            known.history.push((version, of, namespace, event));
        });
    }

    /// Sends a sign of life to the watches of a kind in a namespace.
    pub(crate) fn bookmark(&self, (api_version, plural): (&str, &str), namespace: Option<&str>) {
        let version = self.next_version();
        self.0.objects.change(|known| {
            let event = json!({ "type": "BOOKMARK", "object": {
                "apiVersion": api_version, "kind": "Any",
                "metadata": { "resourceVersion": version.to_string() },
            } });
            let namespace = namespace.map(str::to_owned);
            let of = collection(api_version, plural);
            known.history.push((version, of, namespace, event));
        });
    }

    /// Ends all watches of objects. With `forget`, nobody may go on from where they were.
    pub(crate) fn hang_up(&self, forget: bool) {
        let version = self.next_version();
        self.0.objects.change(|known| {
            known.hang_ups += 1;
            if forget {
                known.compacted = version;
            }
        });
    }

    /// A service account, which may read these kinds, or of a kind (`deployments/web`) one object.
    pub(crate) fn put_account(&self, namespace: &str, name: &str, plurals: &[&str]) {
        self.0.objects.change(|known| {
            known
                .accounts
                .insert((namespace.to_owned(), name.to_owned()));
            let user = format!("system:serviceaccount:{namespace}:{name}");
            known.allowed.retain(|(known, _)| *known != user);
            let allowed = plurals
                .iter()
                .map(|plural| (user.clone(), (*plural).to_owned()));
            known.allowed.extend(allowed);
        });
    }

    pub(crate) fn delete_account(&self, namespace: &str, name: &str) {
        let account = (namespace.to_owned(), name.to_owned());
        self.0
            .objects
            .change(|known| known.accounts.remove(&account));
    }

    /// The reviews that were asked for, as their specs have it.
    pub(crate) fn reviews(&self) -> Vec<Value> {
        self.0.objects.known().reviews.clone()
    }

    /// Whether reviews fail.
    pub(crate) fn fail_reviews(&self, fail: bool) {
        self.0.objects.change(|known| known.mute = fail);
    }

    fn next_version(&self) -> usize {
        self.0
            .version
            .fetch_add(1, std::sync::atomic::Ordering::SeqCst)
    }
}

/// Answers every request that the rest of the API server does not.
pub(super) async fn serve(State(api): State<FakeApi>, request: Request) -> Response<Body> {
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let path: Vec<_> = uri.path().trim_matches('/').split('/').collect();
    let query = uri.query().unwrap_or_default();
    if method == Method::POST {
        let body = to_bytes(request.into_body(), 1 << 20).await.unwrap();
        return api.review(serde_json::from_slice(&body).unwrap());
    }
    let headers = request.headers();
    let accepts = headers.get(ACCEPT).and_then(|it| it.to_str().ok());
    let asked = Asked {
        query: query.to_owned(),
        is_of_metadata: accepts.is_some_and(|it| it.contains("as=PartialObjectMetadata")),
    };
    let (version, rest) = match path[..] {
        ["apis"] => return api.groups(),
        ["api"] => {
            let versions = json!({ "versions": ["v1"], "serverAddressByClientCIDRs": [] });
            return answer(StatusCode::OK, &versions);
        }
        ["api", version, ref rest @ ..] => (version.to_owned(), rest),
        ["apis", group, version, ref rest @ ..] => (format!("{group}/{version}"), rest),
        _ => return missing(),
    };
    match *rest {
        [] => api.discover(&version),
        ["namespaces", namespace, "serviceaccounts", name] => api.account(namespace, name).await,
        ["namespaces", namespace, plural] => {
            api.collection(collection(&version, plural), Some(namespace), asked)
                .await
        }
        [plural] => {
            api.collection(collection(&version, plural), None, asked)
                .await
        }
        _ => missing(),
    }
}

/// What a request for a collection says.
struct Asked {
    query: String,
    is_of_metadata: bool,
}

impl Asked {
    fn parameter(&self, name: &str) -> Option<&str> {
        let pairs = self
            .query
            .split('&')
            .filter_map(|pair| pair.split_once('='));
        let mut values = pairs.filter_map(|(key, value)| (key == name).then_some(value));
        values.next()
    }

    /// The one object that it selects.
    fn selected(&self) -> Option<String> {
        let selector = self.parameter("fieldSelector")?.replace("%3D", "=");
        selector.strip_prefix("metadata.name=").map(str::to_owned)
    }
}

/// As it is sent to those who ask for metadata alone.
fn metadata(object: &Value) -> Value {
    json!({
        "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
        "metadata": object["metadata"],
    })
}

fn missing() -> Response<Body> {
    answer(StatusCode::NOT_FOUND, &status(404, "NotFound"))
}

impl FakeApi {
    /// All groups, each in the version that was served last.
    fn groups(&self) -> Response<Body> {
        let known = self.0.objects.known();
        let versions = known.kinds.iter().map(|kind| kind.api_version.clone());
        let versions: BTreeMap<_, _> = versions
            .filter_map(|it| Some((it.split_once('/')?.0.to_owned(), it.clone())))
            .collect();
        let groups: Vec<_> = versions
            .iter()
            .map(|(group, both)| {
                let version = both.split_once('/').unwrap().1;
                let version = json!({ "groupVersion": both, "version": version });
                json!({ "name": group, "versions": [version], "preferredVersion": version })
            })
            .collect();
        let list = json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups });
        answer(StatusCode::OK, &list)
    }

    fn discover(&self, version: &str) -> Response<Body> {
        let known = self.0.objects.known();
        let kinds = known
            .kinds
            .iter()
            .filter(|kind| kind.api_version == version);
        let resources: Vec<_> = kinds
            .map(|kind| {
                json!({
                    "name": kind.plural, "singularName": "", "kind": kind.kind,
                    "namespaced": kind.namespaced, "verbs": ["get", "list", "watch"],
                })
            })
            .collect();
        if resources.is_empty() {
            // As the real one does.
            let mut response = Response::new(Body::from("404 page not found\n"));
            *response.status_mut() = StatusCode::NOT_FOUND;
            return response;
        }
        let list = json!({
            "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version,
            "resources": resources,
        });
        answer(StatusCode::OK, &list)
    }

    async fn account(&self, namespace: &str, name: &str) -> Response<Body> {
        if let Some(refusal) = self.refusal(namespace).await {
            return refusal;
        }
        let key = (namespace.to_owned(), name.to_owned());
        if !self.0.objects.known().accounts.contains(&key) {
            return missing();
        }
        let account = json!({
            "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
            "metadata": { "namespace": namespace, "name": name },
        });
        answer(StatusCode::OK, &account)
    }

    fn review(&self, mut review: Value) -> Response<Body> {
        let mut known = self.0.objects.known();
        known.reviews.push(review["spec"].clone());
        if known.mute {
            return answer(
                StatusCode::INTERNAL_SERVER_ERROR,
                &status(500, "InternalError"),
            );
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (user, attributes) = (
            text(&review["spec"]["user"]),
            &review["spec"]["resourceAttributes"],
        );
        let plural = text(&attributes["resource"]);
        let one = format!("{plural}/{}", text(&attributes["name"]));
        let may = |resource| known.allowed.contains(&(user.clone(), resource));
        let allowed = may(plural) || may(one);
        review["status"] = json!({ "allowed": allowed });
        answer(StatusCode::CREATED, &review)
    }

    async fn collection(
        &self,
        of: Collection,
        namespace: Option<&str>,
        asked: Asked,
    ) -> Response<Body> {
        if let Some(refusal) = self.refusal(namespace.unwrap_or_default()).await {
            return refusal;
        }
        // Secrets are never listed whole.
        if of == collection("v1", "secrets") && !asked.is_of_metadata {
            return answer(StatusCode::BAD_REQUEST, &json!({}));
        }
        let namespace = namespace.map(str::to_owned);
        let served = |kind: &Kind| {
            collection(&kind.api_version, &kind.plural) == of
                && (kind.namespaced || namespace.is_none())
        };
        if !self.0.objects.known().kinds.iter().any(served) {
            return missing();
        }
        if asked.parameter("watch") == Some("true") {
            let since = asked.parameter("resourceVersion");
            let since = since.and_then(|since| since.parse().ok());
            return self.watch_objects(of, namespace, since.unwrap_or(0), &asked);
        }
        self.list_objects(&of, &namespace, &asked)
    }

    /// A page of the objects.
    fn list_objects(
        &self,
        of: &Collection,
        namespace: &Option<String>,
        asked: &Asked,
    ) -> Response<Body> {
        use std::sync::atomic::Ordering::SeqCst;
        let number = |name| asked.parameter(name).and_then(|number| number.parse().ok());
        let (limit, from): (usize, _) = (number("limit").unwrap(), number("continue"));
        let selected = asked.selected();
        self.0.lists.fetch_add(1, SeqCst);
        let known = self.0.objects.known();
        let all = known.objects.iter();
        let items = all.filter(|((known, place, name), _)| {
            known == of
                && (place == namespace || namespace.is_none())
                && selected.as_ref().is_none_or(|selected| selected == name)
        });
        let shown = |object: &Value| match asked.is_of_metadata {
            true => metadata(object),
            false => object.clone(),
        };
        let items: Vec<_> = items.map(|(_, object)| shown(object)).collect();
        let from = from.unwrap_or(0);
        let end = items.len().min(from + limit);
        let more = if end < items.len() {
            end.to_string()
        } else {
            String::new()
        };
        let version = self.0.version.load(SeqCst) - 1;
        let list = json!({
            "apiVersion": of.0, "kind": "List",
            "metadata": { "resourceVersion": version.to_string(), "continue": more },
            "items": items[from..end],
        });
        answer(StatusCode::OK, &list)
    }

    fn watch_objects(
        &self,
        of: Collection,
        namespace: Option<String>,
        since: usize,
        asked: &Asked,
    ) -> Response<Body> {
        let (hang_ups, compacted) = {
            let known = self.0.objects.known();
            (known.hang_ups, known.compacted)
        };
        if since < compacted {
            let event = json!({ "type": "ERROR", "object": status(410, "Expired") });
            return Response::new(Body::from(line(&event)));
        }
        let watching = Watching {
            news: self.0.objects.news.subscribe(),
            counted: Counted::new(self.clone()),
            of,
            namespace,
            selected: asked.selected(),
            is_of_metadata: asked.is_of_metadata,
            since,
            hang_ups,
            read: 0,
        };
        let lines = stream::unfold(watching, Watching::next);
        Response::new(Body::from_stream(lines.map(Ok::<_, Infallible>)))
    }
}

/// A watch, as far as it has been read.
struct Watching {
    counted: Counted,
    news: watch::Receiver<()>,
    of: Collection,
    namespace: Option<String>,
    selected: Option<String>,
    is_of_metadata: bool,
    since: usize,
    hang_ups: usize,
    read: usize,
}

impl Watching {
    fn line(&self, event: &Value) -> String {
        match self.is_of_metadata {
            true => {
                let object = metadata(&event["object"]);
                line(&json!({ "type": event["type"], "object": object }))
            }
            false => line(event),
        }
    }

    async fn next(mut self) -> Option<(String, Self)> {
        loop {
            self.news.mark_unchanged();
            let found = {
                let known = self.counted.0.0.objects.known();
                if known.hang_ups != self.hang_ups {
                    return None;
                }
                let unread = known.history.iter().enumerate().skip(self.read);
                let mut matching = unread.filter(|(_, (version, of, namespace, event))| {
                    let name = event["object"]["metadata"]["name"].as_str();
                    let is_selected = match &self.selected {
                        // A bookmark has no name.
                        Some(selected) => name.is_none_or(|name| name == selected),
                        None => true,
                    };
                    *version > self.since
                        && *of == self.of
                        && (*namespace == self.namespace || self.namespace.is_none())
                        && is_selected
                });
                let found = matching.next();
                found.map(|(n, (_, _, _, event))| (n + 1, self.line(event)))
            };
            if let Some((read, line)) = found {
                self.read = read;
                return Some((line, self));
            }
            self.news.changed().await.ok()?;
        }
    }
}
