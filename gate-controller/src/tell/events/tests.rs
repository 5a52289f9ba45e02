use sluice_crds::{Gate, GateSpec};

use super::waiting::{BYTES, WAITING};
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

/// About a gate with such annotations.
fn told(annotations: BTreeMap<String, String>, note: &str) -> Told {
    let mut gate = Gate::new("production", GateSpec::default());
    gate.metadata.annotations = Some(annotations);
    let key = KeyRef {
        namespace: "team",
        name: "production",
    };
    Told {
        about: About::new(Work::own(Kind::Gate, key.into()), &gate),
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
    let told = told(annotations.into(), "open");
    let expected = [(wanted("a"), "first".to_owned())];
    assert_eq!(told.about.metadata, expected.into());
}

#[test]
fn so_many_bytes_of_events_wait_and_no_more() {
    let (mut events, mut sending, counters) = events();
    let mut notified = events.notify();
    let note = "x".repeat(BYTES / 8);
    for _ in 0..10 {
        events.tell(told(BTreeMap::new(), &note));
    }
    assert_eq!(counters.events_dropped.get(), 3);
    // Each receiver has its own room, and what is taken makes room.
    while notified.try_recv().is_ok() {}
    events.tell(told(BTreeMap::new(), &note));
    assert!(notified.try_recv().is_ok());
    assert_eq!(counters.events_dropped.get(), 4);
    drop(sending.try_recv().unwrap());
    events.tell(told(BTreeMap::new(), &note));
    assert_eq!(counters.events_dropped.get(), 4);
}

#[test]
fn a_herd_of_short_events_is_not_dropped_for_its_bytes() {
    let (events, _sending, counters) = events();
    let note = "office-hours: inside the window 'office-hours' until Fri 17:00 Europe/London";
    for _ in 0..WAITING {
        events.tell(told(BTreeMap::new(), note));
    }
    assert_eq!(counters.events_dropped.get(), 0);
    events.tell(told(BTreeMap::new(), note));
    assert_eq!(counters.events_dropped.get(), 1);
}
