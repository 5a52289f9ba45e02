use std::cell::Cell;
use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::cluster::key::KeyRef;

/// An object of that kind, by its number.
pub(super) fn work(kind: Kind, number: usize) -> Work {
    let key = KeyRef {
        namespace: "apps",
        name: &format!("{number:04}"),
    };
    Work::own(kind, key.into())
}

fn gate() -> Work {
    work(Kind::Gate, 0)
}

fn source() -> Work {
    work(Kind::GatedSource, 0)
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

#[test]
fn people_come_first_then_what_goes_out_then_gates_then_reports() {
    let mut queue = Queue::new(100);
    let [person, delivery, report] = [1, 2, 3].map(|number| work(Kind::Gate, number));
    queue.push(delivery.clone(), Urgency::Delivery, at(3));
    queue.push(report.clone(), Urgency::Report, at(1));
    queue.push(gate(), Urgency::Gate, at(2));
    queue.push(person.clone(), Urgency::Person, at(3));
    let order: Vec<_> = std::iter::from_fn(|| queue.take(at(3))).collect();
    assert_eq!(order, [person, delivery, gate(), report]);
}

#[test]
fn nothing_is_looked_at_twice_at_once_nor_forgotten() {
    let mut queue = Queue::new(100);
    queue.push(gate(), Urgency::Gate, at(1));
    assert!(!queue.looking());
    assert_eq!(queue.take(at(1)), Some(gate()));
    assert!(queue.looking());
    queue.push(gate(), Urgency::Gate, at(1));
    assert_eq!(queue.take(at(1)), None);
    queue.done(&gate());
    assert!(!queue.looking());
    assert_eq!(queue.take(at(1)), Some(gate()));
}

#[test]
fn what_hangs_keeps_no_other_kind_waiting() {
    let mut queue = Queue::new(1);
    for (work, urgency) in [(source(), Urgency::Delivery), (gate(), Urgency::Gate)] {
        queue.push(work, urgency, at(1));
    }
    assert_eq!(queue.take(at(1)), Some(source()));
    assert_eq!(queue.take(at(1)), None);
    assert!(queue.busy());
    queue.slow(&source());
    // Nobody has to wait for it before events are sent.
    assert!(!queue.busy());
    assert_eq!(queue.take(at(1)), Some(gate()));
    queue.push(source(), Urgency::Delivery, at(1));
    assert_eq!(queue.take(at(1)), None);
    queue.done(&source());
    queue.done(&gate());
    assert_eq!(queue.take(at(1)), Some(source()));
}

#[test]
fn what_is_gone_is_forgotten_unless_somebody_looks_at_it() {
    let mut queue = Queue::new(100);
    queue.push(gate(), Urgency::Gate, at(10));
    assert!(queue.forget(&gate(), at(1)));
    assert_eq!((queue.take(at(20)), queue.next_due()), (None, None));
    queue.push(gate(), Urgency::Gate, at(1));
    assert_eq!(queue.take(at(20)), Some(gate()));
    assert!(!queue.forget(&gate(), at(20)));
    queue.done(&gate());
    assert_eq!(queue.take(at(20)), Some(gate()));
}

#[test]
fn what_is_due_later_waits() {
    let mut queue = Queue::new(100);
    queue.push(gate(), Urgency::Gate, at(10));
    assert_eq!((queue.take(at(9)), queue.next_due()), (None, Some(at(10))));
    queue.push(gate(), Urgency::Report, at(5));
    assert_eq!(queue.next_due(), Some(at(5)));
    assert_eq!(queue.take(at(5)), Some(gate()));
    assert_eq!((queue.take(at(20)), queue.next_due()), (None, None));
}

#[test]
fn a_clock_that_was_set_back_makes_everything_due() {
    let mut queue = Queue::new(100);
    assert_eq!(queue.take(at(100)), None);
    queue.push(gate(), Urgency::Gate, at(200));
    assert_eq!(queue.take(at(99)), None);
    assert_eq!(queue.take(at(50)), Some(gate()));
    queue.done(&gate());
    queue.push(gate(), Urgency::Gate, at(70));
    assert_eq!((queue.take(at(50)), queue.next_due()), (None, Some(at(70))));
}

thread_local! {
    /// How many pieces of work were looked up here.
    static LOOKED_UP: Cell<usize> = const { Cell::new(0) };
}

pub(super) fn look_up() {
    LOOKED_UP.set(LOOKED_UP.get() + 1);
}

/// A herd must not have each look search through all of it.
#[test]
fn what_is_next_is_found_without_a_look_at_all_that_is_due() {
    let mut queue = Queue::new(8);
    for number in 0..1000 {
        queue.push(work(Kind::GatedSource, number), Urgency::Delivery, at(1));
    }
    let sources: Vec<_> = std::iter::from_fn(|| queue.take(at(1))).collect();
    assert_eq!(sources.len(), 8);
    // All places are taken, but for those of people.
    LOOKED_UP.set(0);
    assert_eq!(queue.take(at(1)), None);
    assert!(LOOKED_UP.get() < 30, "{}", LOOKED_UP.get());
    // Places are free, but none for another source.
    for source in &sources {
        queue.slow(source);
    }
    queue.push(work(Kind::Gate, 1000), Urgency::Gate, at(1));
    LOOKED_UP.set(0);
    assert_eq!(queue.take(at(1)), Some(work(Kind::Gate, 1000)));
    assert_eq!(queue.take(at(1)), None);
    assert!(LOOKED_UP.get() < 60, "{}", LOOKED_UP.get());
    // Those that are looked at already are stepped over.
    for source in &sources {
        queue.push(source.clone(), Urgency::Delivery, at(0));
    }
    queue.done(&sources[0]);
    LOOKED_UP.set(0);
    assert_eq!(queue.take(at(1)), Some(sources[0].clone()));
    assert!(LOOKED_UP.get() < 60, "{}", LOOKED_UP.get());
    assert_eq!(queue.backlog(), 992 + 7);
}

proptest! {
    /// Against the obvious structure: a list that is searched.
    #[test]
    fn it_hands_out_the_most_urgent_that_is_due(
        pushes in prop::collection::vec((0usize..8, 0u8..4, 0i64..20), 0..40),
        now in 0i64..20,
    ) {
        let levels = [Urgency::Person, Urgency::Delivery, Urgency::Gate, Urgency::Report];
        let urgency = |n| levels[usize::from(n)];
        let mut queue = Queue::new(100);
        let mut model: BTreeMap<Work, (Urgency, i64)> = BTreeMap::new();
        for (number, urgent, due) in pushes {
            let work = work(Kind::Gate, number);
            queue.push(work.clone(), urgency(urgent), at(due));
            let place = model.entry(work).or_insert((urgency(urgent), due));
            *place = (place.0.min(urgency(urgent)), place.1.min(due));
        }
        let mut expected: Vec<_> = model
            .iter()
            .filter(|(_, (_, due))| *due <= now)
            .map(|(work, (urgency, due))| (*urgency, *due, work.clone()))
            .collect();
        expected.sort_unstable();
        let taken: Vec<Work> = std::iter::from_fn(|| queue.take(at(now))).collect();
        prop_assert_eq!(taken, expected.into_iter().map(|place| place.2).collect::<Vec<_>>());
    }
}
