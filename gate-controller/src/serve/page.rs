//! A page that is sent while it is written: however long it is, little of it is held at once.

use std::fmt;
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures::stream;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::error::Elapsed;
use tokio::time::timeout;

/// How much is sent at once, in bytes.
const CHUNK: usize = 64 * 1024;
/// How many chunks may wait for the reader.
const WAITING: usize = 4;
/// How long a reader may take over one chunk.
const PATIENCE: Duration = Duration::from_secs(10);

/// The body of what `write` writes, on a thread where it may block. Where that fails, or the reader
/// is too slow, the body ends with an error: a reader never takes a part for the whole.
pub(super) fn body(
    write: impl FnOnce(&mut dyn fmt::Write) -> fmt::Result + Send + 'static,
) -> Body {
    let (parts, page) = mpsc::channel(WAITING);
    let runtime = Handle::current();
    tokio::task::spawn_blocking(move || {
        let mut writer = Writer {
            text: String::with_capacity(CHUNK),
            parts,
            runtime,
        };
        // If this fails, the end is not sent: the reader notices that.
        let _ = write(&mut writer)
            .and_then(|()| writer.flush())
            .and_then(|()| writer.send(Part::End));
    });
    Body::from_stream(stream::unfold(Some(page), async |page| {
        let mut page = page?;
        match page.recv().await {
            Some(Part::Text(text)) => Some((Ok(Bytes::from(text)), Some(page))),
            Some(Part::End) => None,
            None => Some((Err("the page was not written to its end"), None)),
        }
    }))
}

enum Part {
    Text(String),
    End,
}

struct Writer {
    text: String,
    parts: mpsc::Sender<Part>,
    runtime: Handle,
}

impl Writer {
    fn flush(&mut self) -> fmt::Result {
        let text = std::mem::replace(&mut self.text, String::with_capacity(CHUNK));
        self.send(Part::Text(text))
    }

    fn send(&self, part: Part) -> fmt::Result {
        let sending = async { timeout(PATIENCE, self.parts.send(part)).await };
        match self.runtime.block_on(sending) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(Elapsed { .. }) => Err(fmt::Error),
        }
    }
}

impl fmt::Write for Writer {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.text.push_str(text);
        if self.text.len() < CHUNK {
            return Ok(());
        }
        self.flush()
    }
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;

    use super::*;

    #[tokio::test]
    async fn a_page_of_many_chunks_arrives_whole() {
        let line = "0123456789\n";
        let body = body(move |page| (0..100_000).try_for_each(|_| page.write_str(line)));
        let page = to_bytes(body, usize::MAX).await.unwrap();
        assert!(page == line.repeat(100_000));
    }

    #[tokio::test]
    async fn a_page_that_fails_midway_is_no_page() {
        let body = body(|page| {
            page.write_str("half")?;
            Err(fmt::Error)
        });
        to_bytes(body, usize::MAX).await.unwrap_err();
    }
}
