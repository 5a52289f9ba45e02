//! A Helm repository of static files.
//!
//! What comes in: charts of templates, or packages that somebody uploads. What goes out: an index and
//! packages that a HelmRepository and a HelmChart fetch.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Result;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::archive::pack;
use crate::serve::Serving;

/// The files, by name.
type Files = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

/// The largest package that is taken, in bytes.
const LARGEST: usize = 16 << 20;

/// A Helm repository on a free port of loopback, to which packages are uploaded by PUT. Dropped, it is
/// gone.
pub struct Charts {
    serving: Serving,
    files: Files,
}

impl Charts {
    /// Serves an empty one, on the runtime of the caller.
    ///
    /// # Errors
    ///
    /// If nobody may listen.
    pub async fn serve() -> Result<Self> {
        let files = Files::default();
        index(&files);
        let pages = Router::new()
            .fallback(answer)
            .layer(DefaultBodyLimit::max(LARGEST))
            .with_state(Arc::clone(&files));
        Ok(Self {
            serving: Serving::start(pages).await?,
            files,
        })
    }

    /// Where a HelmRepository finds it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.serving.address())
    }

    /// Publishes a version of a chart, with templates by file name. One that is there already is
    /// replaced.
    ///
    /// # Errors
    ///
    /// If it cannot be packed.
    pub fn publish(&self, chart: &str, version: &str, templates: &[(&str, &str)]) -> Result<()> {
        let about = json!({
            "apiVersion": "v2", "name": chart, "version": version,
            "description": "A chart of a test",
        });
        // JSON is YAML.
        let mut files = vec![(format!("{chart}/Chart.yaml"), about.to_string())];
        for (name, text) in templates {
            files.push((format!("{chart}/templates/{name}"), (*text).to_owned()));
        }
        let package = pack(&files)?;
        self.files
            .lock()
            .insert(format!("{chart}-{version}.tgz"), package);
        index(&self.files);
        Ok(())
    }

    /// Takes a version back.
    pub fn withdraw(&self, chart: &str, version: &str) {
        self.files.lock().remove(&format!("{chart}-{version}.tgz"));
        index(&self.files);
    }
}

/// Writes the index anew: names of charts hold no digit after a dash.
fn index(files: &Files) {
    let mut files = files.lock();
    let mut entries: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for name in files.keys() {
        let Some((chart, version)) = named(name) else {
            continue;
        };
        entries.entry(chart).or_default().push(json!({
            "apiVersion": "v2", "name": chart, "version": version, "urls": [name],
        }));
    }
    let index = json!({"apiVersion": "v1", "entries": entries}).to_string();
    files.insert("index.yaml".to_owned(), index.into_bytes());
}

/// A chart and its version, from `chart-1.0.0.tgz`.
fn named(file: &str) -> Option<(&str, &str)> {
    let name = file.strip_suffix(".tgz")?;
    let dash = name
        .match_indices('-')
        .find(|(at, _)| name[at + 1..].starts_with(|first: char| first.is_ascii_digit()))?;
    Some((&name[..dash.0], &name[dash.0 + 1..]))
}

async fn answer(State(files): State<Files>, method: Method, uri: Uri, package: Bytes) -> Response {
    let name = uri.path().trim_start_matches('/');
    match method {
        Method::PUT if named(name).is_some() => {
            files.lock().insert(name.to_owned(), package.into());
            index(&files);
            StatusCode::CREATED.into_response()
        }
        Method::PUT => (StatusCode::BAD_REQUEST, "name it CHART-VERSION.tgz\n").into_response(),
        _ => {
            let found = files.lock().get(name).cloned();
            found.map_or_else(
                || StatusCode::NOT_FOUND.into_response(),
                IntoResponse::into_response,
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_begins_at_the_first_digit() {
        assert_eq!(
            named("my-app-1.2.0-rc.1.tgz"),
            Some(("my-app", "1.2.0-rc.1"))
        );
        assert_eq!(named("index.yaml"), None);
    }

    #[tokio::test]
    async fn what_is_uploaded_is_in_the_index() {
        let files = Files::default();
        index(&files);
        let put = async |path: &'static str| {
            let package = Bytes::from_static(b"package");
            let uri = Uri::from_static(path);
            let answered = answer(State(Arc::clone(&files)), Method::PUT, uri, package).await;
            answered.status()
        };
        assert_eq!(put("/app-1.2.0.tgz").await, StatusCode::CREATED);
        assert_eq!(put("/index.yaml").await, StatusCode::BAD_REQUEST);
        let all = files.lock();
        assert_eq!(all["app-1.2.0.tgz"], b"package");
        let index: Value = serde_json::from_slice(&all["index.yaml"]).unwrap();
        assert_eq!(index["entries"]["app"][0]["version"], "1.2.0");
    }
}
