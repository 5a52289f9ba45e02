//! Notifications that ask others to promote: by an Alert of Flux they start what changes the environment.
//!
//! What comes in: what is to be promoted. What goes out: one POST to Flux's notification-controller, and
//! what has come of it. Other events wait in a queue, and may be dropped. This one is an act of a pipeline,
//! whose status says whether it was sent, and which sends it again.

#[cfg(test)]
pub(crate) mod tests;

use std::borrow::Cow;
use std::sync::Arc;

use jiff::fmt::rfc2822::DateTimeParser;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use reqwest::header::RETRY_AFTER;
use reqwest::{Client, Response, StatusCode, Url};
use sluice_egress::EgressError;

use super::notifications::{Notification, Patience, ask, client};
use super::{CONTROLLER, METADATA};
use crate::observe::clock::Clock;

/// The reason of the event.
const PROMOTE: &str = "Promote";

/// Sends notifications of promotions to one notification-controller.
pub struct Promotions {
    client: Client,
    url: Url,
    instance: String,
    clock: Arc<dyn Clock>,
    patience: Patience,
}

/// What is to be promoted.
#[derive(Clone, Debug, PartialEq)]
pub struct Promotion {
    /// The object that an Alert selects, with its API.
    pub about: ObjectReference,
    /// The Pipeline, as `NAMESPACE/NAME`.
    pub pipeline: String,
    /// The environment.
    pub environment: String,
    /// The revision.
    pub revision: String,
    /// What tells it from every other notification.
    pub token: String,
    /// What it says.
    pub message: String,
}

/// Why notification-controller has not taken a notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Untaken {
    /// A sentence that names its address.
    pub why: String,
    /// Before that it does not want to be asked again.
    pub not_before: Option<Timestamp>,
}

impl Promotions {
    /// To the notification-controller at `url`, from the replica `instance`. Of `patience` only the time for
    /// one answer counts: here nothing is tried twice.
    ///
    /// # Errors
    /// The TLS library refuses its own defaults.
    pub fn new(
        url: Url,
        instance: String,
        clock: Arc<dyn Clock>,
        patience: Patience,
    ) -> Result<Self, EgressError> {
        let client = client(patience)?;
        Ok(Self {
            client,
            url,
            instance,
            clock,
            patience,
        })
    }

    /// The host that is asked.
    pub fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    /// Sends it, once. What notification-controller calls a duplicate was sent before.
    ///
    /// # Errors
    /// It was not taken, or there was no answer: then it may have been taken.
    pub async fn send(&self, promotion: &Promotion) -> Result<(), Untaken> {
        let at = self.clock.now();
        let body = serde_json::to_vec(&notification(promotion, &self.instance, at));
        let body = body.map_err(|error| self.untaken(&error.to_string(), None))?;
        let answer = ask(&self.client, &self.url, body, self.patience).await;
        let answer = answer.map_err(|error| self.untaken(&error.to_string(), None))?;
        match answer.status() {
            status if status.is_success() => Ok(()),
            StatusCode::TOO_MANY_REQUESTS => Ok(()),
            status => {
                let not_before = not_before(&answer, self.clock.now());
                let why = EgressError::Status(status.as_u16()).to_string();
                Err(self.untaken(&why, not_before))
            }
        }
    }

    fn untaken(&self, why: &str, not_before: Option<Timestamp>) -> Untaken {
        let shown = sluice_egress::shown(self.url.as_str());
        Untaken {
            why: format!("the notification-controller at {shown} has not taken it: {why}"),
            not_before,
        }
    }
}

/// Until when the header `Retry-After` asks to wait: seconds, or a date.
fn not_before(answer: &Response, now: Timestamp) -> Option<Timestamp> {
    let after = answer.headers().get(RETRY_AFTER)?.to_str().ok()?.trim();
    match after.parse::<u32>() {
        Ok(seconds) => now
            .checked_add(SignedDuration::from_secs(seconds.into()))
            .ok(),
        Err(_) => DateTimeParser::new().parse_timestamp(after).ok(),
    }
}

/// The event, in the form of Flux. notification-controller distinguishes events by the revision and the
/// token under the group of the object, and shows people the revision. A word that is there under both
/// prefixes would be a conflict, which it reports on the Alert as a warning.
fn notification<'a>(
    promotion: &'a Promotion,
    instance: &'a str,
    at: Timestamp,
) -> Notification<'a> {
    let Promotion {
        about,
        pipeline,
        environment,
        revision,
        token,
        message,
    } = promotion;
    let api = about.api_version.as_deref().unwrap_or_default();
    let group = api.split_once('/').map(|(group, _)| group);
    let of_group = |word: &str| Some(format!("{}/{word}", group?));
    let shown = |word: &str| Some(format!("{METADATA}{word}"));
    let metadata = [
        (of_group("revision").or_else(|| shown("revision")), revision),
        (of_group("token"), token),
        (shown("pipeline"), pipeline),
        (shown("environment"), environment),
    ];
    let metadata = metadata.into_iter();
    Notification {
        involved_object: about.clone(),
        severity: "info",
        timestamp: Some(Time(at)),
        message,
        reason: PROMOTE,
        metadata: metadata
            .filter_map(|(key, value)| Some((key?, Cow::from(value))))
            .collect(),
        reporting_controller: CONTROLLER,
        reporting_instance: instance,
    }
}
