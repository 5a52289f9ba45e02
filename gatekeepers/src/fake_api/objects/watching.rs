//! Watches of objects.

use std::convert::Infallible;

use axum::body::Body;
use axum::http::Response;
use futures::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::super::{Counted, FakeApi, line, status};
use super::Collection;
use super::serving::{Asked, metadata};

impl FakeApi {
    pub(super) fn watch_objects(
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
