//! Events on transitions, for `kubectl describe` and whoever watches.
//!
//! Each transition is an event of its own: what is told of one (by whom, until when) is not what is
//! told of the next, so that none may stand for others. They come after everything else: while
//! gates wait to be written, no event is sent. Where there is a notification-controller, it is told
//! each of them, too, whether or not the API server takes it.

pub mod notifications;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::PostParams;
use kube::{Api, Client, Resource};
use sluice_core::condition::cut;
use sluice_crds::Gate;
use tokio::sync::mpsc;

use crate::clock::Clock;
use crate::failure;
use crate::key::Work;
use crate::metrics::Counters;

use notifications::Notifications;

/// How many events may wait. Beyond that they are dropped and counted: the log has them all.
const WAITING: usize = 16_384;
/// The most bytes of a note that the API takes.
const LONGEST_NOTE: usize = 1024;
/// How long sending waits for more urgent writes before it looks again.
const LET_PASS: Duration = Duration::from_millis(50);
/// The namespace of events about objects that are in none, as the API has it.
const NOWHERE: &str = "default";
/// Annotations of an object that go with each event about it begin with this, as Flux has it.
const METADATA: &str = "event.toolkit.fluxcd.io/";
/// Who sends them.
const CONTROLLER: &str = "gate-controller";

/// An event to send. A herd of them waits at once, so that it is small.
pub struct Told {
    /// The object it is about.
    pub about: About,
    /// Whether it is bad news.
    pub warning: bool,
    /// One word.
    pub reason: Cow<'static, str>,
    /// What was done: one word.
    pub action: &'static str,
    /// A sentence.
    pub note: Box<str>,
    /// What machines read of it.
    pub more: Option<Box<More>>,
}

/// What an event carries besides.
#[derive(Default)]
pub struct More {
    /// Another object that it is about.
    pub related: Option<ObjectReference>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
}

/// The object that an event is about.
pub struct About {
    what: What,
    uid: Option<Box<str>>,
    /// What its owner wants to be told with each event about it.
    metadata: BTreeMap<String, String>,
}

enum What {
    /// One of ours.
    Work(Work),
    /// Another.
    Object(Box<ObjectReference>),
}

impl About {
    /// The object that was looked at.
    pub fn new<K: Resource>(work: Work, object: &K) -> Self {
        let ObjectMeta {
            uid, annotations, ..
        } = object.meta();
        let metadata = annotations.iter().flatten();
        let metadata = metadata
            .filter(|(key, _)| key.starts_with(METADATA))
            .map(|(key, value)| (key.clone(), value.clone()));
        Self {
            what: What::Work(work),
            uid: uid.as_deref().map(Box::from),
            metadata: metadata.collect(),
        }
    }

    /// An object that is none of ours.
    pub fn object(reference: ObjectReference) -> Self {
        Self {
            what: What::Object(Box::new(reference)),
            uid: None,
            metadata: BTreeMap::new(),
        }
    }

    /// The namespace of its events, which is its own, and its name.
    fn name(&self) -> (&str, &str) {
        let (namespace, name) = match &self.what {
            What::Work(work) => (&*work.key().namespace, &*work.key().name),
            What::Object(object) => (
                object.namespace.as_deref().unwrap_or_default(),
                object.name.as_deref().unwrap_or_default(),
            ),
        };
        match namespace {
            "" => (NOWHERE, name),
            namespace => (namespace, name),
        }
    }
}

impl From<About> for ObjectReference {
    fn from(about: About) -> Self {
        let work = match about.what {
            What::Work(work) => work,
            What::Object(object) => return *object,
        };
        let key = work.key();
        Self {
            api_version: Some(Gate::api_version(&()).into_owned()),
            kind: Some(work.kind().to_owned()),
            namespace: Some(key.namespace.to_string()).filter(|namespace| !namespace.is_empty()),
            name: Some(key.name.to_string()),
            uid: about.uid.map(String::from),
            ..Self::default()
        }
    }
}

/// Where events are put.
#[derive(Clone)]
pub struct Events {
    waiting: mpsc::Sender<(Timestamp, Told)>,
    counters: Arc<Counters>,
    clock: Arc<dyn Clock>,
}

/// What [`send`] takes them from.
pub type Sending = mpsc::Receiver<(Timestamp, Told)>;

impl Events {
    /// Events, and what [`send`] takes them from.
    pub fn new(counters: Arc<Counters>, clock: Arc<dyn Clock>) -> (Self, Sending) {
        let (waiting, sending) = mpsc::channel(WAITING);
        let events = Self {
            waiting,
            counters,
            clock,
        };
        (events, sending)
    }

    /// Have an event sent, when there is time.
    pub fn tell(&self, event: Told) {
        if self.waiting.try_send((self.clock.now(), event)).is_err() {
            self.counters.events_dropped.inc();
        }
    }
}

/// Sends events, as long as nothing more urgent waits. It ends with the last of [`Events`].
/// `notifications`: who is told them besides.
pub async fn send(
    client: Client,
    instance: &str,
    mut sending: Sending,
    busy: impl Fn() -> bool,
    counters: &Counters,
    notifications: Option<&Notifications>,
) {
    while let Some((at, told)) = sending.recv().await {
        while busy() {
            let_pass().await;
        }
        let (namespace, _) = told.about.name();
        let events: Api<Event> = Api::namespaced(client.clone(), namespace);
        let event = event(told, instance, at);
        if let Some(notifications) = notifications {
            notifications.tell(&event);
        }
        if let Err(error) = events.create(&PostParams::default(), &event).await {
            counters.events_dropped.inc();
            let why = failure::of_request(&error, "create", "events", "events.k8s.io");
            tracing::error!("an event was not taken: {why}");
        }
    }
}

fn event(told: Told, instance: &str, at: Timestamp) -> Event {
    let Told {
        mut about,
        warning,
        reason,
        action,
        note,
        more,
    } = told;
    let metadata = std::mem::take(&mut about.metadata);
    let (namespace, name) = about.name();
    let More {
        related,
        labels,
        mut annotations,
    } = more.map(|more| *more).unwrap_or_default();
    annotations.extend(metadata);
    Event {
        metadata: ObjectMeta {
            // A name has 63 bytes at most: admission sees to it.
            generate_name: Some(format!("{name}-")),
            namespace: Some(namespace.to_owned()),
            labels: (!labels.is_empty()).then_some(labels),
            annotations: (!annotations.is_empty()).then_some(annotations),
            ..ObjectMeta::default()
        },
        related,
        event_time: Some(MicroTime(at)),
        type_: Some(if warning { "Warning" } else { "Normal" }.to_owned()),
        reason: Some(reason.into_owned()),
        action: Some(action.to_owned()),
        note: Some(cut(note.into(), LONGEST_NOTE)),
        regarding: Some(about.into()),
        reporting_controller: Some(CONTROLLER.to_owned()),
        reporting_instance: Some(instance.to_owned()),
        ..Event::default()
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "a pause between two looks, not a wait for an instant"
)]
async fn let_pass() {
    tokio::time::sleep(LET_PASS).await;
}
