//! Events for Flux's notification-controller, which brings them to where people are: chats, mail.
//!
//! What comes in: each event, whether or not the API server accepts it. What goes out: one POST for each,
//! those of a namespace in the order in which they came, in the form that Flux's own controllers use
//! (`event.toolkit.fluxcd.io`). Nobody waits for it: events queue up, and those that do not fit are
//! dropped and counted.
//!
//! This is no errand for the [egress](sluice_egress) client. That one is for addresses
//! that users write into objects, and has rules about where they may lead. This address is the
//! operator's, from the command line, and may be a sidecar's on loopback.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, Response, StatusCode, Url};
use serde::Serialize;
use sluice_crds::decision::told;
use sluice_crds::flux::FluxKind;
use sluice_egress::EgressError;

use super::{METADATA, Sending};
use crate::tell::counters::{Counters, Notified};

/// The kinds that an Alert can name, other than those that Sluice knows, each with its API (the enum of
/// `spec.eventSources[].kind`, notification-controller 1.9).
const FURTHER: [(&str, &str); 4] = [
    ("ArtifactGenerator", "source.extensions.fluxcd.io/v1beta1"),
    ("ImagePolicy", "image.toolkit.fluxcd.io/v1"),
    ("ImageRepository", "image.toolkit.fluxcd.io/v1"),
    ("ImageUpdateAutomation", "image.toolkit.fluxcd.io/v1"),
];

/// An annotation of an event: the revision that it is about.
pub const REVISION: &str = "sluice.dev/revision";

/// Which of an event's annotations are shown to people, and by which word. `revision` is Flux's own: by
/// it notification-controller distinguishes events that otherwise are the same.
const FOR_PEOPLE: [(&str, &str); 7] = [
    (REVISION, "revision"),
    (told::REVISION, "revision"),
    (told::ENVIRONMENT, "environment"),
    (told::ACTION, "action"),
    (told::STEP, "step"),
    (told::GATES, "decided-by"),
    (told::NEXT, "next"),
];

/// How long notification-controller is waited for.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// For one answer.
    pub answer: Duration,
    /// Before the second try; doubled before each further one.
    pub first: Duration,
    /// How often it is tried again.
    pub retries: usize,
}

impl Default for Patience {
    /// As Flux's own controllers wait.
    fn default() -> Self {
        Self {
            answer: Duration::from_secs(5),
            first: Duration::from_secs(1),
            retries: 4,
        }
    }
}

/// A notification-controller, and how to reach it.
pub struct Notifications {
    client: Client,
    url: Url,
    counters: Arc<Counters>,
    patience: Patience,
}

impl Notifications {
    /// The one at `url`.
    ///
    /// # Errors
    /// The TLS library refuses its own defaults.
    pub fn new(url: Url, counters: Arc<Counters>, patience: Patience) -> Result<Self, EgressError> {
        let client = client(patience)?;
        Ok(Self {
            client,
            url,
            counters,
            patience,
        })
    }

    /// Tells what comes, one event after another.
    pub async fn send(&self, instance: &str, mut sending: Sending) {
        while let Some(waiting) = sending.recv().await {
            self.tell(&waiting.event(instance)).await;
        }
    }

    async fn tell(&self, event: &Event) {
        let outcome = match serde_json::to_vec(&Notification::of(event)) {
            Ok(body) => send(&self.client, &self.url, body, self.patience).await,
            Err(_) => Notified::Dropped,
        };
        outcome.count(&self.counters, 1);
    }
}

/// An event in Flux's form.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Notification<'a> {
    pub(super) involved_object: ObjectReference,
    pub(super) severity: &'static str,
    pub(super) timestamp: Option<Time>,
    pub(super) message: &'a str,
    pub(super) reason: &'a str,
    pub(super) metadata: BTreeMap<String, Cow<'a, str>>,
    pub(super) reporting_controller: &'a str,
    pub(super) reporting_instance: &'a str,
}

impl<'a> Notification<'a> {
    fn of(event: &'a Event) -> Self {
        let involved_object = about(event);
        let metadata = metadata(event, &involved_object);
        Self {
            involved_object,
            severity: match event.type_.as_deref() {
                Some("Warning") => "error",
                _ => "info",
            },
            timestamp: event.event_time.as_ref().map(|at| Time(at.0)),
            message: event.note.as_deref().unwrap_or_default(),
            reason: event.reason.as_deref().unwrap_or_default(),
            metadata,
            reporting_controller: event.reporting_controller.as_deref().unwrap_or_default(),
            reporting_instance: event.reporting_instance.as_deref().unwrap_or_default(),
        }
    }
}

/// The object that the event is reported about. An Alert can only name kinds of Flux. If the event's own
/// object is not of such a kind, and its related object is, the event is reported about that one.
fn about(event: &Event) -> ObjectReference {
    let regarding = event.regarding.as_ref();
    let named = [regarding, event.related.as_ref()];
    let named = named.into_iter().flatten().find_map(|object| {
        let api = api_of(object.kind.as_deref()?)?;
        Some((object, api))
    });
    match named {
        Some((object, api)) => {
            let mut object = object.clone();
            object.api_version.get_or_insert_with(|| api.clone());
            object
        }
        None => regarding.cloned().unwrap_or_default(),
    }
}

/// The API of a kind that an Alert can name.
pub fn api_of(kind: &str) -> Option<String> {
    let known = FluxKind::ALL
        .into_iter()
        .find(|known| known.as_str() == kind);
    let known = known.map(|known| format!("{}/{}", known.group(), known.version()));
    let further = || FURTHER.into_iter().find(|(further, _)| *further == kind);
    known.or_else(|| further().map(|(_, api)| api.to_owned()))
}

/// What notification-controller shows in addition to the message, and by what it distinguishes events. It keeps
/// keys that begin with the group of the object, or with [`METADATA`], and drops all others.
///
/// It also treats events with the same message and revision within five minutes as duplicates, unless a
/// token differs. A gate that closes again for the same reason is news. A decision that is reported on
/// each gate that decided, and so several times for the same subject, is not.
fn metadata<'a>(event: &'a Event, about: &ObjectReference) -> BTreeMap<String, Cow<'a, str>> {
    let api = about.api_version.as_deref().unwrap_or_default();
    let group = api.split_once('/').map(|(group, _)| group);
    let prefix = group.map_or_else(|| METADATA.to_owned(), |group| format!("{group}/"));
    let annotations = event.metadata.annotations.iter().flatten();
    let mut metadata: BTreeMap<String, Cow<'_, str>> = annotations
        .filter_map(|(key, value)| {
            if key.starts_with(METADATA) {
                return Some((key.clone(), value.into()));
            }
            let (_, word) = FOR_PEOPLE.iter().find(|(own, _)| own == key)?;
            Some((format!("{prefix}{word}"), value.into()))
        })
        .collect();
    // A token counts, and is not shown, under the group alone.
    if let Some(token) = token(event).filter(|_| group.is_some()) {
        metadata.insert(format!("{prefix}token"), token);
    }
    metadata
}

/// What the same transition has in common, and no other.
fn token(event: &Event) -> Option<Cow<'_, str>> {
    let annotations = event.metadata.annotations.as_ref();
    let since = annotations.and_then(|annotations| annotations.get(told::SINCE));
    let at = event.event_time.as_ref().map(|at| at.0.to_string().into());
    since.map(Cow::from).or(at)
}

/// A client that keeps its connection, follows no redirect, and takes no proxy from the environment.
pub(super) fn client(patience: Patience) -> Result<Client, EgressError> {
    Client::builder()
        .user_agent(concat!(
            "sluice-gate-controller/",
            env!("CARGO_PKG_VERSION")
        ))
        .tls_backend_preconfigured(sluice_egress::tls(None)?)
        .http1_only()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .no_proxy()
        .timeout(patience.answer)
        .build()
        .map_err(|_| EgressError::Setup)
}

/// Tries until it is taken or refused, or patience ends.
async fn send(client: &Client, url: &Url, body: Vec<u8>, patience: Patience) -> Notified {
    let retries = ExponentialBuilder::default()
        .with_min_delay(patience.first)
        .with_max_times(patience.retries);
    let post = || post(client, url, body.clone(), patience);
    match post.retry(retries).when(passes).await {
        Ok(outcome) => outcome,
        Err(why) => {
            let to = sluice_egress::shown(url.as_str());
            tracing::error!("an event was not told to {to}: {why}");
            Notified::Dropped
        }
    }
}

async fn post(
    client: &Client,
    url: &Url,
    body: Vec<u8>,
    patience: Patience,
) -> Result<Notified, EgressError> {
    match ask(client, url, body, patience).await?.status() {
        status if status.is_success() => Ok(Notified::Sent),
        StatusCode::TOO_MANY_REQUESTS => Ok(Notified::Duplicate),
        status => Err(EgressError::Status(status.as_u16())),
    }
}

/// One request, and the answer to it, without its body.
pub(super) async fn ask(
    client: &Client,
    url: &Url,
    body: Vec<u8>,
    patience: Patience,
) -> Result<Response, EgressError> {
    let request = client.post(url.clone());
    let request = request.header(CONTENT_TYPE, "application/json").body(body);
    let answer = request.send().await;
    answer.map_err(|error| match error.is_timeout() {
        true => EgressError::TimedOut(patience.answer),
        false => sluice_egress::outcome(&error),
    })
}

/// Whether the same may be taken a moment later.
fn passes(error: &EgressError) -> bool {
    match error {
        EgressError::Status(status) => *status >= 500,
        error => error.may_pass(),
    }
}
