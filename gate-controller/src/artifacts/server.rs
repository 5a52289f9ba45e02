//! Serves what is stored: `GET` and `HEAD` of an artifact's path, and `/readyz`.
//!
//! A path is looked up in the index, and only files in the index are ever opened: no folder is listed,
//! and nothing is written. While this replica does not lead, or has not verified its store, it answers
//! 503, after which Flux's controllers ask again. Each connection ends with its answer, so that the next
//! one goes to the replica that leads then, and has its own time limit.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{ALLOW, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, Method, StatusCode, Uri};
use axum::middleware::map_response;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::fs::File;
use tokio::io::AsyncReadExt;
use tokio_util::io::ReaderStream;

use super::digest::Digest;
use super::{News, Store, place};
use crate::cluster::key::ObjectKey;

/// How much is read at once, in bytes.
const PIECE: usize = 64 * 1024;
/// In seconds: about how long another replica takes to lead.
const LATER: &str = "5";

/// What there is at a path.
enum Found {
    File(File, u64),
    Nothing,
    Unreadable,
    Later(String),
}

/// The routes.
pub(super) fn router(store: Arc<Store>) -> Router {
    Router::new()
        .route("/readyz", get(ready))
        .fallback(artifact)
        .layer(map_response(close))
        .with_state(store)
}

async fn close(mut response: Response) -> Response {
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(CONNECTION, close);
    response
}

async fn ready(State(store): State<Arc<Store>>) -> Response {
    match store.ready() {
        Ok(()) => "ok\n".into_response(),
        Err(why) => later(&why),
    }
}

async fn artifact(State(store): State<Arc<Store>>, method: Method, uri: Uri) -> Response {
    let with_body = match method {
        Method::GET => true,
        Method::HEAD => false,
        _ => {
            let allowed = [(ALLOW, "GET, HEAD")];
            return (StatusCode::METHOD_NOT_ALLOWED, allowed).into_response();
        }
    };
    let path = uri.path().strip_prefix('/').unwrap_or_default();
    let (file, size) = match store.find(path).await {
        Found::File(file, size) => (file, size),
        Found::Nothing => return StatusCode::NOT_FOUND.into_response(),
        Found::Unreadable => return StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        Found::Later(why) => return later(&why),
    };
    let head = [
        (CONTENT_TYPE, "application/gzip".to_owned()),
        (CONTENT_LENGTH, size.to_string()),
    ];
    let body = if with_body {
        stream(file, size)
    } else {
        Body::empty()
    };
    (head, body).into_response()
}

/// The file, as it is taken. Where it is shorter than it was, the answer breaks off.
fn stream(file: File, size: u64) -> Body {
    Body::from_stream(ReaderStream::with_capacity(file.take(size), PIECE))
}

fn later(why: &str) -> Response {
    let head = [(RETRY_AFTER, LATER)];
    (StatusCode::SERVICE_UNAVAILABLE, head, format!("{why}\n")).into_response()
}

impl Store {
    /// What there is at a path, opened.
    async fn find(&self, path: &str) -> Found {
        if let Err(why) = self.ready() {
            return Found::Later(why);
        }
        let Some((key, digest)) = place::parse(path) else {
            return Found::Nothing;
        };
        let now = self.clock.now();
        // From here on it stays for a while.
        let size = self.when_open(|open| open.index.serve(&key, &digest, now));
        let Some(size) = size.flatten() else {
            return match self.state(&key, &digest) {
                super::State::Verifying => Found::Later("it is being verified".to_owned()),
                _ => Found::Nothing,
            };
        };
        let path = self.folder.file(&key, &digest);
        let opened = async {
            let file = File::open(&path).await?;
            let length = file.metadata().await?.len();
            Ok::<_, io::Error>((file, length))
        };
        match opened.await {
            Ok((file, length)) if length == size => Found::File(file, size),
            Ok(_) => self.lose(&key, &digest, "it has another length"),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.lose(&key, &digest, "it is gone")
            }
            Err(error) => {
                tracing::error!(path = %path.display(), %error, "an artifact cannot be read");
                Found::Unreadable
            }
        }
    }

    /// A file is not what it was, although nobody here has touched it.
    fn lose(&self, key: &ObjectKey, digest: &Digest, why: &str) -> Found {
        tracing::error!(%key, %digest, "an artifact is lost: {why}");
        self.when_open(|open| open.index.lose(key, digest));
        self.measure();
        self.tell(News::Of(key));
        Found::Nothing
    }
}
