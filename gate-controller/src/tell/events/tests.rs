use sluice_crds::{Gate, GateSpec};

use super::waiting::BYTES;
use super::*;
use crate::cluster::key::KeyRef;
use crate::cluster::kind::Kind;
use crate::observe::clock::SetClock;

fn events() -> (Events, Sending, Arc<Counters>) {
    let counters = Arc::<Counters>::default();
    let clock = Arc::new(SetClock::new("2026-11-20T12:00:00Z".parse().unwrap()));
    let (events, sending) = Events::new(Arc::clone(&counters), clock);
    (events, sending, counters)
}

/// A gate with such annotations.
fn about(namespace: &str, annotations: BTreeMap<String, String>) -> About {
    let mut gate = Gate::new("production", GateSpec::default());
    gate.metadata.annotations = Some(annotations);
    let key = KeyRef {
        namespace,
        name: "production",
    };
    About::new(Work::own(Kind::Gate, key.into()), &gate)
}

/// About a gate in that namespace.
pub(super) fn told(namespace: &str, note: &str) -> Told {
    Told {
        about: about(namespace, BTreeMap::new()),
        warning: false,
        reason: "Opened".into(),
        action: "Decide",
        note: note.into(),
        more: None,
    }
}

#[test]
fn long_annotations_are_not_copied_into_events() {
    let wanted = |name: &str| format!("{METADATA}{name}");
    let long = "x".repeat(LONGEST_METADATA);
    let annotations = [
        (wanted("a"), "first".to_owned()),
        (wanted("b"), long),
        ("example.com/long".to_owned(), "y".repeat(200_000)),
    ];
    let about = about("team", annotations.into());
    let expected = [(wanted("a"), "first".to_owned())];
    assert_eq!(about.metadata, expected.into());
}

#[test]
fn so_many_bytes_of_events_wait_and_no_more() {
    let (mut events, sending, counters) = events();
    let notified = events.notify();
    // Of each no more waits than is sent.
    let note = "x".repeat(100 * LONGEST_NOTE);
    let tell = || events.tell(told("team", &note));
    let dropped = || counters.events_dropped.get();
    let put = (0..).take_while(|_| {
        tell();
        dropped() == 0
    });
    let expected = BYTES / (2 * LONGEST_NOTE)..BYTES / LONGEST_NOTE;
    assert!(expected.contains(&put.count()));
    // Each receiver has its own room, and what is taken makes room.
    while notified.try_next().is_some() {}
    tell();
    assert!(notified.try_next().is_some());
    assert_eq!(dropped(), 2);
    drop(sending.try_next().unwrap());
    tell();
    assert_eq!(dropped(), 2);
}
