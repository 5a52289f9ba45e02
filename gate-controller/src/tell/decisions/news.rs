//! The words of a decision: its line in the log, and its events.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use sluice_crds::decision::told;
use sluice_crds::{Decision, Subject};

use crate::cluster::key::{KeyRef, Work};
use crate::cluster::kind::Kind;
use crate::observe::cache::Seen;
use crate::observe::world::World;
use crate::tell::events::{About, Events, More, Told};

/// How many of the gates that decided get an event.
const GATES: usize = 3;

/// How many events tell a decision, at most.
pub(super) fn wanted(decision: &Decision) -> usize {
    decision.decided_by.len().clamp(1, GATES)
}

/// One line: for everybody if it is news, else for those who look for something.
pub(super) fn log(decision: &Decision, asked_by: Option<&str>, is_new: bool) {
    macro_rules! line {
        ($level:ident) => {
            tracing::$level!(
                target: "decision",
                kind = decision.subject.kind,
                namespace = decision.subject.namespace,
                name = decision.subject.name,
                environment = decision.subject.environment,
                action = decision.subject.action,
                step = decision.subject.step,
                revision = decision.subject.revision,
                allowed = decision.allowed,
                decided_by = decision.decided_by.join(", "),
                asked_by,
                next = decision.next.as_ref().map(|next| tracing::field::display(next.0)),
                "{}",
                decision.message
            )
        };
    }
    match is_new {
        true => line!(info),
        false => line!(debug),
    }
}

/// An event on each gate that decided and is there; where there is none, on the subject. No more
/// than `most`.
pub(super) fn events(
    events: &Events,
    world: &World,
    (decision, asked_by): (&Decision, Option<&str>),
    since: Timestamp,
    most: usize,
) {
    if most == 0 {
        return;
    }
    let there = decision.decided_by.iter().filter_map(|gate| {
        let (namespace, name) = gate.split_once('/')?;
        let key = KeyRef { namespace, name };
        match world.gates.get(key)? {
            Seen::Object(gate) => {
                let work = Work::own(Kind::Gate, key.into());
                Some(About::new(work, gate.as_ref()))
            }
            Seen::Unreadable(_) => None,
        }
    });
    let mut there = there.take(most).peekable();
    if there.peek().is_none() {
        let about = About::object(consumer(decision));
        events.tell(event(about, decision, asked_by, since));
    }
    there.for_each(|about| events.tell(event(about, decision, asked_by, since)));
}

fn event(about: About, decision: &Decision, asked_by: Option<&str>, since: Timestamp) -> Told {
    let Decision {
        allowed,
        subject,
        decided_by,
        next,
        message,
        checked,
        ..
    } = decision;
    let own = checked.iter().filter(|gate| gate.policy.is_none());
    let own: Vec<&str> = own.map(|gate| gate.gate.as_str()).collect();
    let outcome = match allowed {
        true => told::ADMITTED,
        false => told::BLOCKED,
    };
    let Subject {
        kind,
        namespace,
        name,
        environment,
        action,
        step,
        revision,
    } = subject;
    let annotations = [
        (told::KIND, Some(kind.clone())),
        (told::NAMESPACE, Some(namespace.clone())),
        (told::NAME, name.clone()),
        (told::ENVIRONMENT, environment.clone()),
        (told::ACTION, Some(action.clone())),
        (told::STEP, step.clone()),
        (told::REVISION, revision.clone()),
        (told::ASKED_BY, asked_by.map(str::to_owned)),
        (told::ASKED, Some(own.join(","))),
        (told::GATES, Some(decided_by.join(","))),
        (told::SINCE, Some(since.to_string())),
        (told::NEXT, next.as_ref().map(|next| next.0.to_string())),
    ];
    let annotations = annotations
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), value?)));
    let who = name.as_deref().unwrap_or("somebody who asks");
    let place = environment.as_ref().map(|it| format!(" ({it})"));
    let step = step.as_ref().map(|it| format!(" {it}"));
    let place = place.unwrap_or_default();
    let step = step.unwrap_or_default();
    Told {
        about,
        warning: false,
        reason: outcome.into(),
        action: "Check",
        note: format!("{kind} {namespace}/{who}{place}, {action}{step}: {message}").into(),
        more: Some(Box::new(More {
            related: name.is_some().then(|| consumer(decision)),
            labels: [(told::OUTCOME.to_owned(), outcome.to_owned())].into(),
            annotations: annotations.collect(),
        })),
    }
}

/// The subject, as far as it is known.
fn consumer(decision: &Decision) -> ObjectReference {
    let subject = &decision.subject;
    ObjectReference {
        kind: Some(subject.kind.clone()),
        namespace: Some(subject.namespace.clone()),
        name: Some(subject.name.clone().unwrap_or_else(|| "check".to_owned())),
        ..ObjectReference::default()
    }
}
