//! What waits at its gates, as the controller reports it by Events.

use std::collections::BTreeMap;

use anyhow::Result;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::events::v1::Event;
use kube::api::ListParams;
use sluice_crds::decision::told;

use super::connection::Connection;
use super::request::list;

/// For how long an Event says that something waits: it is told again every half hour while that
/// goes on asking, and half an hour more may pass until it is sent.
const GOOD_FOR: SignedDuration = SignedDuration::from_mins(60);

/// The annotations that distinguish one question from another.
const QUESTION: [&str; 9] = [
    told::KIND,
    told::NAMESPACE,
    told::NAME,
    told::ENVIRONMENT,
    told::ACTION,
    told::STEP,
    told::REVISION,
    told::ASKED_BY,
    told::ASKED,
];

/// Something that has asked its gates, and the answer was no.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Waiting {
    pub(crate) namespace: String,
    pub(crate) kind: String,
    pub(crate) name: Option<String>,
    pub(crate) environment: Option<String>,
    pub(crate) revision: Option<String>,
    /// Those that hold it back, as `namespace/name`.
    pub(crate) gates: Vec<String>,
    pub(crate) since: Timestamp,
    /// When the answer may be another one by time alone.
    pub(crate) next: Option<Timestamp>,
    pub(crate) message: String,
}

/// What waits in the connection's namespace or at gates there, or everywhere, as far as the Events
/// that are left say. They lie where the gates are, which may be anywhere: returns a note where
/// somebody may see those of one namespace only.
///
/// # Errors
/// Anything that keeps us from listing Events.
pub(crate) async fn waiting(
    connection: &Connection,
    everywhere: bool,
    now: Timestamp,
) -> Result<(Vec<Waiting>, Option<String>)> {
    let here = &connection.namespace;
    let told = ListParams::default().labels(told::OUTCOME);
    let (events, note) = match list(&connection.all::<Event>(), told.clone()).await {
        Ok(events) => (events, None),
        Err(error) if everywhere => return Err(error),
        Err(_) => {
            let note = format!("what waits at gates outside of {here} is not shown");
            (list(&connection.here(), told).await?, Some(note))
        }
    };
    let mut waiting = still_waiting(&events, now);
    if !everywhere {
        let is_here = |gate: &String| gate.split_once('/').is_some_and(|(it, _)| it == here);
        waiting.retain(|it| it.namespace == *here || it.gates.iter().any(is_here));
    }
    Ok((waiting, note))
}

/// Of each question the last answer, where that is no.
fn still_waiting(events: &[Event], now: Timestamp) -> Vec<Waiting> {
    let mut last: BTreeMap<[Option<&str>; 9], (Timestamp, &Event)> = BTreeMap::new();
    for event in events {
        let Some(at) = event.event_time.as_ref().map(|at| at.0) else {
            continue;
        };
        let question = QUESTION.map(|key| annotation(event, key));
        let known = last.entry(question).or_insert((at, event));
        if at > known.0 {
            *known = (at, event);
        }
    }
    let last = last.into_values();
    let fresh = last.filter(|(at, _)| now.duration_since(*at) < GOOD_FOR);
    fresh.filter_map(|(at, event)| read(event, at)).collect()
}

fn read(event: &Event, at: Timestamp) -> Option<Waiting> {
    let outcome = event.metadata.labels.as_ref()?.get(told::OUTCOME)?;
    if outcome != told::BLOCKED {
        return None;
    }
    let text = |key| annotation(event, key).map(str::to_owned);
    let since = annotation(event, told::SINCE).and_then(|since| since.parse().ok());
    let gates = text(told::GATES).unwrap_or_default();
    let gates = gates.split(',').filter(|gate| !gate.is_empty());
    Some(Waiting {
        namespace: text(told::NAMESPACE)?,
        kind: text(told::KIND)?,
        name: text(told::NAME),
        environment: text(told::ENVIRONMENT),
        revision: text(told::REVISION),
        gates: gates.map(str::to_owned).collect(),
        since: since.unwrap_or(at),
        next: annotation(event, told::NEXT).and_then(|next| next.parse().ok()),
        message: event.note.clone().unwrap_or_default(),
    })
}

fn annotation<'a>(event: &'a Event, key: &str) -> Option<&'a str> {
    let annotations = event.metadata.annotations.as_ref()?;
    annotations.get(key).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

    use super::*;

    const NOW: &str = "2026-11-20T12:00:00Z";

    fn event(minutes_ago: i64, outcome: &str, name: &str, gates: &str) -> Event {
        let now: Timestamp = NOW.parse().unwrap();
        let mut event = Event {
            event_time: Some(MicroTime(now - SignedDuration::from_mins(minutes_ago))),
            note: Some("held back".to_owned()),
            ..Event::default()
        };
        let text = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
        event.metadata.labels = Some([text((told::OUTCOME, outcome))].into());
        let annotations = [
            (told::KIND, "Deployment"),
            (told::NAMESPACE, "apps"),
            (told::NAME, name),
            (told::ACTION, "deploy"),
            (told::REVISION, "v1.2.3"),
            (told::GATES, gates),
            (told::SINCE, "2026-11-20T10:00:00Z"),
            (told::NEXT, "2026-11-23T09:00:00Z"),
        ];
        event.metadata.annotations = Some(annotations.map(text).into());
        event
    }

    #[test]
    fn environments_of_one_object_wait_each_for_itself() {
        let of = |minutes_ago, outcome, environment: &str| {
            let mut event = event(minutes_ago, outcome, "api", "apps/production");
            let annotations = event.metadata.annotations.as_mut().unwrap();
            annotations.insert(told::ENVIRONMENT.to_owned(), environment.to_owned());
            event
        };
        let events = [
            of(20, told::BLOCKED, "prod"),
            of(10, told::ADMITTED, "staging"),
        ];
        let waiting = still_waiting(&events, NOW.parse().unwrap());
        let waiting: Vec<_> = waiting.iter().map(|it| it.environment.as_deref()).collect();
        assert_eq!(waiting, [Some("prod")]);
    }

    #[test]
    fn the_last_answer_of_each_counts_while_it_is_fresh() {
        let events = [
            event(20, told::BLOCKED, "api", "apps/production,apps/freeze"),
            event(10, told::BLOCKED, "api", "apps/production"),
            event(30, told::ADMITTED, "api", "apps/production"),
            event(20, told::BLOCKED, "web", "apps/production"),
            event(5, told::ADMITTED, "web", "apps/production"),
            event(61, told::BLOCKED, "old", "apps/production"),
        ];
        let waiting = still_waiting(&events, NOW.parse().unwrap());
        let [only] = waiting.as_slice() else {
            panic!("{waiting:#?}")
        };
        assert_eq!(only.name.as_deref(), Some("api"));
        assert_eq!(only.gates, ["apps/production"]);
        assert_eq!(only.since.to_string(), "2026-11-20T10:00:00Z");
        assert_eq!(only.next, Some("2026-11-23T09:00:00Z".parse().unwrap()));
        assert_eq!(only.revision.as_deref(), Some("v1.2.3"));
    }
}
