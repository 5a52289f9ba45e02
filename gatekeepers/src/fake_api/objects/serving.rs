//! How requests for objects are answered: discovery, service accounts, reviews, and collections.

use std::collections::BTreeMap;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::ACCEPT;
use axum::http::{Method, Response, StatusCode};
use serde_json::{Value, json};

use super::super::{FakeApi, answer, status};
use super::{Collection, Kind, collection};

/// Answers every request that the rest of the API server does not.
pub(in super::super) async fn serve(
    State(api): State<FakeApi>,
    request: Request,
) -> Response<Body> {
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
pub(super) struct Asked {
    query: String,
    pub(super) is_of_metadata: bool,
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
    pub(super) fn selected(&self) -> Option<String> {
        let selector = self.parameter("fieldSelector")?.replace("%3D", "=");
        selector.strip_prefix("metadata.name=").map(str::to_owned)
    }
}

/// As it is sent to those who ask for metadata alone.
pub(super) fn metadata(object: &Value) -> Value {
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
}
