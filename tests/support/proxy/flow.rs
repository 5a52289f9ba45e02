//! Whether anything goes through lines that are beside each other.
//!
//! What comes in: a stop, a cut. What goes out: whether a request may go on, and answers that go on until
//! they are cut.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use axum::body::Body;
use futures::{StreamExt, stream};
use tokio::sync::watch;

/// It goes, stands still, or is cut.
#[derive(Default)]
pub struct Flow {
    /// Counts the cuts. Every answer under way breaks off at the next.
    cuts: watch::Sender<u32>,
    still: AtomicBool,
}

impl Flow {
    /// From now on nothing goes on.
    pub fn stop(&self) {
        self.still.store(true, SeqCst);
    }

    /// Breaks off everything that is under way. What comes later goes on.
    pub fn cut(&self) {
        self.still.store(false, SeqCst);
        self.cuts.send_modify(|cuts| *cuts += 1);
    }

    pub fn is_still(&self) -> bool {
        self.still.load(SeqCst)
    }

    /// What comes in a standstill ends with it.
    pub async fn pass(&self) -> io::Result<()> {
        let mut cuts = self.cuts.subscribe();
        if !self.is_still() {
            return Ok(());
        }
        // The sender lives as long as `self`.
        let _ = cuts.changed().await;
        Err(broken())
    }

    /// Makes answers go on until the next cut.
    pub fn until_cut(self: &Arc<Self>) -> impl FnOnce(Body) -> Body + use<> {
        let (flow, cuts) = (Arc::clone(self), self.cuts.subscribe());
        |body| {
            let state = Some((body.into_data_stream(), cuts, flow));
            Body::from_stream(stream::unfold(state, async |state| {
                let (mut chunks, mut cuts, flow) = state?;
                tokio::select! {
                    chunk = chunks.next() => match flow.pass().await {
                        Ok(()) => {
                            let chunk = chunk?.map_err(io::Error::other);
                            Some((chunk, Some((chunks, cuts, flow))))
                        }
                        Err(error) => Some((Err(error), None)),
                    },
                    _ = cuts.changed() => Some((Err(broken()), None)),
                }
            }))
        }
    }
}

pub fn broken() -> io::Error {
    io::Error::other("the line was cut")
}
