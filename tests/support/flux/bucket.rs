//! A bucket, as much of one as Flux asks for: a small S3 server that lists and gives out objects.
//!
//! What comes in: objects that a test puts. What goes out: what a Bucket of the provider `generic`
//! fetches. Signatures are not looked at, and all objects fit into one list.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Result;
use axum::Router;
use axum::extract::State;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, ETAG, LAST_MODIFIED};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use crate::serve::Serving;

/// The bucket's name.
const NAME: &str = "bucket";

/// When every object was last changed: a date has to be told, and nobody looks at it.
const CHANGED: (&str, &str) = ("2026-01-01T00:00:00.000Z", "Thu, 01 Jan 2026 00:00:00 GMT");

/// The texts, by their keys.
type Objects = Arc<Mutex<BTreeMap<String, String>>>;

/// An S3 server with one bucket. Dropped, it is gone.
pub struct Bucket {
    serving: Serving,
    objects: Objects,
}

impl Bucket {
    /// Serves an empty one on a free port, on the runtime of the caller.
    ///
    /// # Errors
    ///
    /// If nobody may listen.
    pub async fn serve() -> Result<Self> {
        let objects = Objects::default();
        let pages = Router::new()
            .fallback(answer)
            .with_state(Arc::clone(&objects));
        Ok(Self {
            serving: Serving::start(pages).await?,
            objects,
        })
    }

    /// The `endpoint` of a Bucket, which wants `insecure: true` too.
    #[must_use]
    pub fn endpoint(&self) -> SocketAddr {
        self.serving.address()
    }

    /// The `bucketName` of a Bucket.
    #[must_use]
    pub fn name(&self) -> &'static str {
        NAME
    }

    /// Puts an object, or another in its place. A key is letters, digits, dots, dashes and slashes.
    pub fn put(&self, key: &str, text: &str) {
        self.objects.lock().insert(key.to_owned(), text.to_owned());
    }

    /// Takes an object away.
    pub fn remove(&self, key: &str) {
        self.objects.lock().remove(key);
    }
}

async fn answer(State(objects): State<Objects>, uri: Uri) -> Response {
    let objects = objects.lock();
    let path = uri.path().trim_start_matches('/');
    let key = match path.split_once('/') {
        Some((NAME, key)) => key,
        None if path == NAME => "",
        Some(_) | None => return StatusCode::NOT_FOUND.into_response(),
    };
    if !key.is_empty() {
        return match objects.get(key) {
            Some(text) => object(text),
            None => StatusCode::NOT_FOUND.into_response(),
        };
    }
    let page = match uri.query() {
        Some(query) if query.starts_with("location") => "<LocationConstraint/>".to_owned(),
        Some(_) | None => list(&objects),
    };
    ([(CONTENT_TYPE, "application/xml")], page).into_response()
}

/// An object. Of a request with HEAD, axum leaves the body out.
fn object(text: &str) -> Response {
    let headers = [
        (ETAG, etag(text)),
        (LAST_MODIFIED, CHANGED.1.to_owned()),
        (CONTENT_TYPE, "application/octet-stream".to_owned()),
        (CONTENT_LENGTH, text.len().to_string()),
    ];
    (headers, text.to_owned()).into_response()
}

/// The answer to `ListObjectsV2`.
fn list(objects: &BTreeMap<String, String>) -> String {
    let mut entries = String::new();
    for (key, text) in objects {
        let (etag, size, changed) = (etag(text), text.len(), CHANGED.0);
        // Writing to a string cannot fail.
        let _ = write!(
            entries,
            "<Contents><Key>{key}</Key><LastModified>{changed}</LastModified>\
             <ETag>{etag}</ETag><Size>{size}</Size></Contents>"
        );
    }
    format!(
        "<ListBucketResult><Name>{NAME}</Name><Prefix></Prefix><KeyCount>{}</KeyCount>\
         <MaxKeys>1000</MaxKeys><IsTruncated>false</IsTruncated>{entries}</ListBucketResult>",
        objects.len()
    )
}

/// Another one for another text: in quotes, as long as those that S3 makes.
fn etag(text: &str) -> String {
    let digest = Sha256::digest(text);
    let digits: String = digest[..16]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("\"{digits}\"")
}
