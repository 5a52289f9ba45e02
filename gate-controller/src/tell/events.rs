//! Events on transitions, for `kubectl describe` and everybody who watches.
//!
//! Each transition is an event of its own: what is said of one (by whom, until when) is not true of the
//! next, so that several are never combined into one. A notification-controller, where there is one,
//! receives each of them, too. Each of the two has its own queue, so that neither waits for the other.
//!
//! ```text
//!  Events::tell ──▶ queue ──▶ post::send ──────────▶ API server
//!               └─▶ queue ──▶ Notifications::send ─▶ notification-controller
//! ```

pub mod notifications;
pub mod post;
pub mod promotions;
#[cfg(test)]
mod tests;
mod waiting;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::Resource;
use sluice_core::verdict::condition::cut;

use crate::cluster::key::Work;
use crate::observe::clock::Clock;
use crate::tell::counters::{Counters, Notified};

use waiting::Lane;

pub use waiting::{Queued, Sending};

/// The most bytes of a note that the API takes.
const LONGEST_NOTE: usize = 1024;
/// The namespace of events about objects that are in none, as the API has it.
const NOWHERE: &str = "default";
/// Annotations of an object that go with each event about it begin with this, as Flux has it.
const METADATA: &str = "event.toolkit.fluxcd.io/";
/// How many bytes of them go with an event. An object may have 256 KiB, which would be copied into
/// each event about it.
const LONGEST_METADATA: usize = 4096;
/// Who sends them.
const CONTROLLER: &str = "gate-controller";

/// An event to send. Very many may wait at once, so that it is small.
pub struct Told {
    /// The object it is about.
    pub about: About,
    /// Whether it is a warning.
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

/// What else an event carries.
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
    /// The annotations that its owner wants in each event about it.
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
        let mut left = LONGEST_METADATA;
        let metadata = annotations.iter().flatten();
        let metadata = metadata
            .filter(|(key, _)| key.starts_with(METADATA))
            .map_while(|(key, value)| {
                left = left.checked_sub(key.len() + value.len())?;
                Some((key.clone(), value.clone()))
            });
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

    /// Its namespace. It is empty if it is in none.
    fn namespace(&self) -> &str {
        match &self.what {
            What::Work(work) => &work.key.namespace,
            What::Object(object) => object.namespace.as_deref().unwrap_or_default(),
        }
    }

    /// The namespace of its events, which is its own, and its name.
    fn name(&self) -> (&str, &str) {
        let name = match &self.what {
            What::Work(work) => &*work.key.name,
            What::Object(object) => object.name.as_deref().unwrap_or_default(),
        };
        match self.namespace() {
            "" => (NOWHERE, name),
            namespace => (namespace, name),
        }
    }

    fn reference(&self) -> ObjectReference {
        let work = match &self.what {
            What::Work(work) => work,
            What::Object(object) => return (**object).clone(),
        };
        let key = &work.key;
        ObjectReference {
            api_version: Some(work.kind.api_version()),
            kind: Some(work.kind.as_str().to_owned()),
            namespace: Some(key.namespace.to_string()).filter(|namespace| !namespace.is_empty()),
            name: Some(key.name.to_string()),
            uid: self.uid.as_deref().map(str::to_owned),
            ..ObjectReference::default()
        }
    }
}

/// An event that waits to be sent.
pub struct Waiting {
    /// When it was reported.
    pub at: Timestamp,
    /// The same by the clock that nobody can set.
    since: Instant,
    /// What it reports.
    pub told: Told,
}

/// Where events are put.
#[derive(Clone)]
pub struct Events {
    to_post: Lane,
    to_notify: Option<Lane>,
    counters: Arc<Counters>,
    clock: Arc<dyn Clock>,
}

impl Events {
    /// Events, and what [`post::send`] takes them from.
    pub fn new(counters: Arc<Counters>, clock: Arc<dyn Clock>) -> (Self, Sending) {
        let (to_post, sending) = waiting::lane();
        let events = Self {
            to_post,
            to_notify: None,
            counters,
            clock,
        };
        (events, sending)
    }

    /// Sends all events from now on to a notification-controller as well, which takes them from what is
    /// returned.
    pub fn notify(&mut self) -> Sending {
        let (to_notify, sending) = waiting::lane();
        self.to_notify = Some(to_notify);
        sending
    }

    /// Sends an event when there is time.
    pub fn tell(&self, told: Told) {
        // What is longer would wait, and be cut before it is sent.
        let note = cut(told.note.into_string(), LONGEST_NOTE).into();
        let told = Told { note, ..told };
        let waiting = Arc::new(Waiting {
            at: self.clock.now(),
            since: Instant::now(),
            told,
        });
        if let Some(to_notify) = &self.to_notify {
            let dropped = to_notify.put(Arc::clone(&waiting));
            Notified::Dropped.count(&self.counters, dropped);
        }
        let dropped = self.to_post.put(waiting);
        self.counters.events_dropped.inc_by(dropped);
    }
}

impl Waiting {
    /// The namespace of the object that it is about. It is empty if that is in none.
    fn namespace(&self) -> &str {
        self.told.about.namespace()
    }

    /// About how many bytes of memory it takes.
    fn bytes(&self) -> usize {
        /// For names, and for maps that have something.
        const FURTHER: usize = 512;
        let texts = |map: &BTreeMap<String, String>| {
            let texts = map.iter().map(|(key, value)| key.len() + value.len());
            texts.sum::<usize>() + map.len() * 2 * size_of::<String>()
        };
        let Told {
            about, note, more, ..
        } = &self.told;
        let more = more.as_deref().map_or(0, |more| {
            size_of::<More>() + texts(&more.labels) + texts(&more.annotations)
        });
        size_of::<Self>() + FURTHER + note.len() + texts(&about.metadata) + more
    }

    /// The event in the form of the API.
    fn event(&self, instance: &str) -> Event {
        let Told {
            about,
            warning,
            reason,
            action,
            note,
            more,
        } = &self.told;
        let (namespace, name) = about.name();
        let more = more.as_deref();
        let labels = more.map(|more| more.labels.clone()).unwrap_or_default();
        let mut annotations = (more.map(|more| more.annotations.clone())).unwrap_or_default();
        annotations.extend(about.metadata.clone());
        Event {
            metadata: ObjectMeta {
                // A name has 63 bytes at most: admission makes sure of that.
                generate_name: Some(format!("{name}-")),
                namespace: Some(namespace.to_owned()),
                labels: (!labels.is_empty()).then_some(labels),
                annotations: (!annotations.is_empty()).then_some(annotations),
                ..ObjectMeta::default()
            },
            related: more.and_then(|more| more.related.clone()),
            event_time: Some(MicroTime(self.at)),
            type_: Some(if *warning { "Warning" } else { "Normal" }.to_owned()),
            reason: Some(reason.clone().into_owned()),
            action: Some((*action).to_owned()),
            note: Some(note.to_string()),
            regarding: Some(about.reference()),
            reporting_controller: Some(CONTROLLER.to_owned()),
            reporting_instance: Some(instance.to_owned()),
            ..Event::default()
        }
    }
}
