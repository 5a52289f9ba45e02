//! What is reported of a consumer when its status has changed: in the log, and by events.
//!
//! What comes in: what a kind finds new in a status. What goes out: a line and an event for each. What
//! conditions say is the same for all kinds ([`of_conditions`]).

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use sluice_core::delivery::act::BLOCKED;
use sluice_core::verdict::condition::{READY, find};

use super::Context;
use super::consumer::Consumer;
use crate::cluster::key::{ObjectKey, Work};
use crate::tell::events::{About, More, Told, notifications};

/// A piece of news.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Item {
    /// Whether it is a warning.
    pub(super) warning: bool,
    /// One word.
    pub(super) reason: String,
    /// A sentence.
    pub(super) message: String,
    /// The environment that it is about.
    pub(super) environment: Option<String>,
    /// The revision that it is about.
    pub(super) revision: Option<String>,
}

/// Reports a piece of news: in the log, and by an event.
pub(super) fn tell<K: Consumer>(context: &Context, key: &ObjectKey, object: &K, item: Item) {
    tracing::info!(
        target: "decision",
        kind = K::KIND.as_str(),
        namespace = %key.namespace,
        name = %key.name,
        environment = item.environment,
        reason = item.reason,
        revision = item.revision,
        "{}",
        item.message
    );
    send(context, key, object, None, item);
}

/// Reports it by an event alone. `related`: another object that it is about.
pub(super) fn send<K: Consumer>(
    context: &Context,
    key: &ObjectKey,
    object: &K,
    related: Option<ObjectReference>,
    item: Item,
) {
    context.events.tell(Told {
        about: About::new(Work::own(K::KIND, key.clone()), object),
        warning: item.warning,
        reason: item.reason.into(),
        action: K::ACTION,
        note: item.message.into(),
        more: Some(Box::new(More {
            related,
            annotations: (item.revision.into_iter())
                .map(|revision| (notifications::REVISION.to_owned(), revision))
                .collect(),
            ..More::default()
        })),
    });
}

/// What conditions say that they did not say before. `revision`: what they are about.
pub(super) fn of_conditions(
    before: &[Condition],
    now: &[Condition],
    revision: Option<&str>,
) -> impl Iterator<Item = Item> {
    now.iter().filter_map(move |condition| {
        let was = find(before, &condition.type_);
        let (warning, reason) = of_condition(was, condition)?;
        Some(Item {
            warning,
            reason: reason.to_owned(),
            message: condition.message.clone(),
            environment: None,
            revision: revision.map(str::to_owned),
        })
    })
}

/// Whether it is a warning, and one word. None: nothing that anybody has to know.
pub(super) fn of_condition<'c>(
    before: Option<&Condition>,
    now: &'c Condition,
) -> Option<(bool, &'c str)> {
    if before.is_some_and(|was| (&was.status, &was.reason) == (&now.status, &now.reason)) {
        return None;
    }
    let was = |status: &str| before.is_some_and(|before| before.status == status);
    match (now.type_.as_str(), now.status.as_str()) {
        (READY, "False") => Some((true, &now.reason)),
        (READY, "True") if was("False") => Some((false, &now.reason)),
        (BLOCKED, "True") => Some((false, "Blocked")),
        (BLOCKED, "False") if was("True") => Some((false, "Unblocked")),
        _ => None,
    }
}
