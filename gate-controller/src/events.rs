//! Events on transitions, for `kubectl describe` and whoever watches.
//!
//! They come after everything else: while gates wait to be written, no event is sent.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use sluice_core::condition::cut;
use tokio::sync::mpsc;

use crate::failure;
use crate::metrics::Counters;

/// How many events may wait. Beyond that they are dropped and counted: the log has them all.
const WAITING: usize = 16_384;
/// The most bytes of a note that the API takes.
const LONGEST_NOTE: usize = 1024;
/// How long sending waits for more urgent writes before it looks again.
const LET_PASS: Duration = Duration::from_millis(50);

/// An event to send.
pub struct Told {
    /// The object it is about.
    pub about: ObjectReference,
    /// Whether it is bad news.
    pub warning: bool,
    /// One word.
    pub reason: String,
    /// What was done: one word.
    pub action: &'static str,
    /// A sentence.
    pub note: String,
}

/// Where events are put.
#[derive(Clone)]
pub struct Events {
    waiting: mpsc::Sender<Told>,
    counters: Arc<Counters>,
}

impl Events {
    /// Events, and what [`send`] takes them from.
    pub fn new(counters: Arc<Counters>) -> (Self, mpsc::Receiver<Told>) {
        let (waiting, sending) = mpsc::channel(WAITING);
        (Self { waiting, counters }, sending)
    }

    /// Have an event sent, when there is time.
    pub fn tell(&self, event: Told) {
        if self.waiting.try_send(event).is_err() {
            self.counters.events_dropped.inc();
        }
    }
}

/// Sends events, as long as nothing more urgent waits.
pub async fn send(
    client: Client,
    instance: String,
    mut sending: mpsc::Receiver<Told>,
    busy: impl Fn() -> bool,
    counters: Arc<Counters>,
) {
    let reporter = Reporter {
        controller: "gate-controller".to_owned(),
        instance: Some(instance),
    };
    let recorder = Recorder::new(client, reporter);
    while let Some(told) = sending.recv().await {
        while busy() {
            let_pass().await;
        }
        let event = Event {
            type_: if told.warning {
                EventType::Warning
            } else {
                EventType::Normal
            },
            reason: told.reason,
            note: Some(cut(told.note, LONGEST_NOTE)),
            action: told.action.to_owned(),
            secondary: None,
        };
        if let Err(error) = recorder.publish(&event, &told.about).await {
            counters.events_dropped.inc();
            let why = failure::of_request(&error, "create and patch", "events", "events.k8s.io");
            tracing::error!("an event was not taken: {why}");
        }
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "a pause between two looks, not a wait for an instant"
)]
async fn let_pass() {
    tokio::time::sleep(LET_PASS).await;
}
