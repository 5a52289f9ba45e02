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

/// A namespace with very many objects delays the others by little.
#[test]
fn of_what_is_equally_urgent_each_namespace_has_its_turn() {
    let mut queue = Queue::new(4);
    for number in 0..100 {
        queue.push(work(Kind::GatedSource, number), Urgency::Delivery, at(1));
    }
    let [first, second] = [0, 1].map(|_| queue.take(at(9)).unwrap());
    let other = |number, due, queue: &mut Queue| {
        let mut work = work(Kind::Rollout, number);
        work.key.namespace = "other".into();
        queue.push(work.clone(), Urgency::Delivery, at(due));
        work
    };
    let [early, late] = [(1, 5), (2, 6)].map(|(number, due)| other(number, due, &mut queue));
    // Theirs came later, and is first until as many are under way.
    assert_eq!(queue.take(at(9)), Some(early.clone()));
    assert_eq!(queue.take(at(9)), Some(late.clone()));
    assert_eq!(queue.take(at(9)), None);
    for ended in [&first, &second, &early] {
        queue.done(ended);
    }
    let third = queue.take(at(9)).unwrap();
    assert_eq!(third.kind, Kind::GatedSource);
    // What is more urgent comes first, however many are under way beside it.
    let person = work(Kind::GatedSource, 200);
    queue.push(person.clone(), Urgency::Person, at(9));
    let theirs = other(3, 1, &mut queue);
    assert_eq!(queue.take(at(9)), Some(person.clone()));
    assert_eq!(queue.take(at(9)), Some(theirs.clone()));
    // What hangs delays no other kind of its namespace, and is counted where its own kind takes turns.
    for slow in [&third, &person] {
        queue.slow(slow);
    }
    for ended in [&late, &theirs] {
        queue.done(ended);
    }
    let gate = work(Kind::Gate, 300);
    queue.push(gate.clone(), Urgency::Delivery, at(0));
    let theirs = other(4, 1, &mut queue);
    assert_eq!(queue.take(at(9)), Some(gate.clone()));
    queue.done(&gate);
    assert_eq!(queue.take(at(9)), Some(theirs));
}

/// Two namespaces have all places of a kind by looks that take long, and very many more that were due before others.
#[test]
fn who_is_slow_is_not_first_where_a_place_is_left() {
    let of = |namespace: &str, number| {
        let mut work = work(Kind::Rollout, number);
        work.key.namespace = namespace.into();
        work
    };
    let mut queue = Queue::new(8);
    for number in 0..100 {
        for namespace in ["first", "second"] {
            queue.push(of(namespace, number), Urgency::Delivery, at(1));
        }
    }
    let mut taken = Vec::new();
    while let Some(work) = queue.take(at(2)) {
        queue.slow(&work);
        taken.push(work);
    }
    assert_eq!(taken.len(), 16);
    queue.push(of("third", 0), Urgency::Delivery, at(3));
    assert_eq!(queue.take(at(3)), None);
    queue.done(&taken[0]);
    assert_eq!(queue.take(at(3)), Some(of("third", 0)));
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

/// Nor through all namespaces that have something due.
#[test]
fn what_is_next_is_found_without_a_look_at_all_namespaces() {
    let mut queue = Queue::new(8);
    for number in 0..1000 {
        let mut work = work(Kind::Gate, number);
        work.key.namespace = number.to_string().into();
        queue.push(work, Urgency::Gate, at(1));
    }
    LOOKED_UP.set(0);
    let taken = std::iter::from_fn(|| queue.take(at(1)));
    assert_eq!(taken.count(), 8);
    assert!(LOOKED_UP.get() < 100, "{}", LOOKED_UP.get());
}

proptest! {
    /// Against the obvious structure: a list that is searched.
    #[test]
    fn it_hands_out_the_most_urgent_that_is_due(
        pushes in prop::collection::vec((0usize..8, 0u8..4, 0i64..20), 0..40),
        now in 0i64..20,
        namespaces in 1usize..4,
    ) {
        let levels = [Urgency::Person, Urgency::Delivery, Urgency::Gate, Urgency::Report];
        let urgency = |n| levels[usize::from(n)];
        let mut queue = Queue::new(100);
        let mut model: BTreeMap<Work, (Urgency, i64)> = BTreeMap::new();
        for (number, urgent, due) in pushes {
            let mut work = work(Kind::Gate, number);
            work.key.namespace = (number % namespaces).to_string().into();
            queue.push(work.clone(), urgency(urgent), at(due));
            let place = model.entry(work).or_insert((urgency(urgent), due));
            *place = (place.0.min(urgency(urgent)), place.1.min(due));
        }
        model.retain(|_, (_, due)| *due <= now);
        let mut under_way: BTreeMap<_, usize> = BTreeMap::new();
        let expected = std::iter::from_fn(|| {
            let place = |(work, (urgency, due)): (&Work, &(Urgency, i64))| {
                let beside = under_way.get(&work.key.namespace).copied().unwrap_or_default();
                (*urgency, beside, *due, work.clone())
            };
            let (.., next) = model.iter().map(place).min()?;
            model.remove(&next);
            *under_way.entry(next.key.namespace.clone()).or_default() += 1;
            Some(next)
        });
        let expected: Vec<_> = expected.collect();
        let taken: Vec<_> = std::iter::from_fn(|| queue.take(at(now))).collect();
        prop_assert_eq!(taken, expected);
    }
}
