use std::time::Instant;

use super::super::tests::told;
use super::*;

fn put(lane: &Lane, namespace: &str, note: &str) -> bool {
    lane.put(Arc::new(Waiting {
        at: "2026-11-20T12:00:00Z".parse().unwrap(),
        since: Instant::now(),
        told: told(namespace, note),
    }))
}

/// Puts events until there is no room. How many had some.
fn fill(lane: &Lane, namespace: &str, note: &str) -> usize {
    (0..).take_while(|_| put(lane, namespace, note)).count()
}

#[test]
fn a_namespace_that_floods_leaves_room_to_others() {
    let long = "x".repeat(BYTES / 64 - 1_024);
    for (note, most) in [("open", WAITING), (&*long, 64)] {
        let (lane, _sending) = lane();
        let shares = ["team", "another", ""].map(|namespace| fill(&lane, namespace, note));
        assert_eq!(shares, [most / 2, most / 4, most / 8]);
        assert!(put(&lane, "one-with-little", "open"));
    }
}

#[test]
fn a_herd_in_one_namespace_has_room() {
    let (lane, _sending) = lane();
    let note =
        "office-hours: inside the window 'office-hours' until Fri 17:00 Europe/London; ".repeat(5);
    let herd = (0..10_000).filter(|_| put(&lane, "team", &note));
    assert_eq!(herd.count(), 10_000);
}

#[test]
fn what_was_sent_gives_its_room_back_and_nothing_before() {
    let (lane, mut sending) = lane();
    fill(&lane, "team", "open");
    let sent = sending.try_recv().unwrap();
    assert!(!put(&lane, "team", "open"), "it is still being sent");
    drop(sent);
    assert!(put(&lane, "team", "open"));
    assert!(!put(&lane, "team", "open"));
    assert!(put(&lane, "another", "open"));
    while sending.try_recv().is_ok() {}
    let room = lane.room.lock();
    assert_eq!((room.all.events, room.all.bytes), (0, 0));
    assert!(room.of.is_empty());
}

#[test]
fn what_nobody_takes_any_more_has_no_room() {
    let (lane, sending) = lane();
    assert!(put(&lane, "team", "open"));
    drop(sending);
    assert!(!put(&lane, "team", "open"));
    let room = lane.room.lock();
    assert_eq!(room.all.events, 0);
    assert!(room.of.is_empty());
}
