use super::super::tests::told;
use super::*;

fn put(lane: &Lane, namespace: &str, note: &str) -> u64 {
    put_before(lane, namespace, note, Duration::ZERO)
}

/// The same so long ago.
fn put_before(lane: &Lane, namespace: &str, note: &str, before: Duration) -> u64 {
    lane.put(Arc::new(Waiting {
        at: "2026-11-20T12:00:00Z".parse().unwrap(),
        since: Instant::now().checked_sub(before).unwrap(),
        told: told(namespace, note),
    }))
}

/// Puts events until one is dropped. How many had room.
fn fill(lane: &Lane, namespace: &str, note: &str) -> usize {
    let has_room = |_: &u64| put(lane, namespace, note) == 0;
    (0..).take_while(has_room).count()
}

/// What is to be sent next: its namespace and its note.
fn sent(sending: &Sending) -> (String, String) {
    let next = sending.try_next().unwrap();
    (next.namespace().to_owned(), next.told.note.to_string())
}

#[test]
fn namespaces_take_turns() {
    let (lane, sending) = lane();
    for note in ["1", "2", "3"] {
        put(&lane, "floods", note);
    }
    put(&lane, "one-with-little", "1");
    put(&lane, "", "1");
    let turns = [
        ("floods", "1"),
        ("one-with-little", "1"),
        ("", "1"),
        ("floods", "2"),
        ("floods", "3"),
    ];
    for (namespace, note) in turns {
        assert_eq!(sent(&sending), (namespace.to_owned(), note.to_owned()));
    }
    assert!(sending.try_next().is_none());
}

#[test]
fn a_new_event_is_not_waited_for_while_an_old_one_waits() {
    const LONG: Duration = Duration::from_secs(3600);
    let (lane, sending) = lane();
    for note in ["1", "2"] {
        put_before(&lane, "team", note, LONG);
    }
    put(&lane, "another", "new");
    let first = sending.try_next().unwrap();
    assert!(sending.waited(&first) >= LONG);
    let new = sending.try_next().unwrap();
    assert_eq!(&*new.told.note, "new");
    assert!(sending.waited(&new) >= LONG);
    drop(sending.try_next());
    assert!(sending.waited(&new) < LONG);
}

#[test]
fn the_namespace_with_the_most_makes_room_with_its_newest() {
    let (lane, sending) = lane();
    let long = "x".repeat(BYTES / 16);
    assert_eq!(fill(&lane, "first", &format!("0 {long}")), 15);
    for namespace in ["second", "third"] {
        for number in 0..20 {
            assert_eq!(put(&lane, namespace, &format!("{number} {long}")), 1);
        }
    }
    let turns = std::iter::from_fn(|| sending.try_next());
    let turns = turns.map(|it| (it.namespace().to_owned(), it.told.note[..2].to_owned()));
    let expected = (0..5).flat_map(|number| {
        let number = move |first: bool| format!("{} ", if first { 0 } else { number });
        ["first", "second", "third"].map(|it| (it.to_owned(), number(it == "first")))
    });
    assert_eq!(turns.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
}

#[test]
fn what_is_put_back_comes_after_others_and_before_its_own() {
    let (lane, sending) = lane();
    for (namespace, note) in [("team", "1"), ("team", "2"), ("another", "1")] {
        put(&lane, namespace, note);
    }
    assert_eq!(sending.namespaces(), 2);
    sending.put_back(sending.try_next().unwrap());
    for (namespace, note) in [("another", "1"), ("team", "1"), ("team", "2")] {
        assert_eq!(sent(&sending), (namespace.to_owned(), note.to_owned()));
    }
    // The last one of its namespace has a turn again, too.
    put(&lane, "team", "3");
    sending.put_back(sending.try_next().unwrap());
    assert_eq!(sent(&sending), ("team".to_owned(), "3".to_owned()));
    let room = lane.room.lock();
    assert_eq!((room.bytes, room.of.len(), room.turns.len()), (0, 0, 0));
}

#[test]
fn a_herd_in_one_namespace_has_room() {
    let (lane, _sending) = lane();
    let note =
        "office-hours: inside the window 'office-hours' until Fri 17:00 Europe/London; ".repeat(5);
    let dropped: u64 = (0..10_000).map(|_| put(&lane, "team", &note)).sum();
    assert_eq!(dropped, 0);
}

#[test]
fn what_was_sent_gives_its_room_back_and_nothing_before() {
    let (lane, sending) = lane();
    fill(&lane, "team", "open");
    let sent = sending.try_next().unwrap();
    assert_eq!(put(&lane, "team", "open"), 1, "it is still being sent");
    drop(sent);
    assert_eq!(put(&lane, "team", "open"), 0);
    assert_eq!(put(&lane, "team", "open"), 1);
    while sending.try_next().is_some() {}
    let room = lane.room.lock();
    assert_eq!(room.bytes, 0);
    assert!(room.of.is_empty() && room.turns.is_empty());
}

#[test]
fn what_nobody_takes_any_more_has_no_room() {
    let (lane, sending) = lane();
    assert_eq!(put(&lane, "team", "open"), 0);
    drop(sending);
    assert_eq!(put(&lane, "team", "open"), 1);
    let room = lane.room.lock();
    assert_eq!(room.bytes, 0);
    assert!(room.of.is_empty());
}

/// What waited is sent when nobody tells anything any more.
#[tokio::test]
async fn sending_ends_with_the_last_who_tells() {
    let (lane, mut sending) = lane();
    put(&lane, "team", "1");
    put(&lane, "team", "2");
    drop(lane);
    let mut notes = Vec::new();
    while let Some(next) = sending.recv().await {
        notes.push(next.told.note.to_string());
    }
    assert_eq!(notes, ["1", "2"]);
}
