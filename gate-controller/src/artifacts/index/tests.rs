//! Files that come, are needed, and go, each at its instant.

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn digest(digit: char) -> Digest {
    let checksum: String = std::iter::repeat_n(digit, 64).collect();
    format!("sha256:{checksum}").parse().unwrap()
}

fn key() -> ObjectKey {
    place::key("apps", "web").unwrap()
}

fn index(digits: &str) -> Index {
    let mut index = Index::default();
    for digit in digits.chars() {
        index.found(key(), digest(digit), 10);
        index.verified(&key(), &digest(digit), Verified::Whole(10, at(0)));
    }
    index
}

#[test]
fn what_is_not_needed_goes_a_minute_later() {
    let mut index = index("ab");
    assert!(index.retain(&key(), &[digest('a')], at(100)));
    // Said again, it does not count from the start.
    assert!(!index.retain(&key(), &[digest('a')], at(130)));
    assert_eq!(index.next_due(), Some(at(160)));
    assert_eq!(index.take_due(at(159)), []);
    assert_eq!(index.amount(), (2, 20));
    assert_eq!(index.take_due(at(160)), [(key(), digest('b'))]);
    assert_eq!((index.amount(), index.next_due()), ((1, 10), None));
    assert!(matches!(index.state(&key(), &digest('b')), State::Absent));
}

#[test]
fn what_is_not_verified_yet_is_neither_fetched_nor_served_and_may_go_after_that() {
    let mut index = Index::default();
    for digit in "abc".chars() {
        index.found(key(), digest(digit), 10);
    }
    assert!(matches!(
        index.state(&key(), &digest('a')),
        State::Verifying
    ));
    assert!(!index.begin(&key(), &digest('a'), CancellationToken::new()));
    assert_eq!(index.serve(&key(), &digest('a'), at(1)), None);
    index.retain(&key(), &[digest('a')], at(100));
    assert_eq!((index.next_due(), index.amount()), (None, (0, 0)));
    let whole = Verified::Whole(10, at(0));
    assert!(!index.verified(&key(), &digest('a'), whole));
    assert!(index.verified(&key(), &digest('b'), whole));
    assert!(index.is_verifying(&key()));
    index.verified(&key(), &digest('c'), Verified::Broken);
    assert!(!index.is_verifying(&key()));
    assert_eq!((index.next_due(), index.amount()), (Some(at(160)), (2, 20)));
    assert!(matches!(index.state(&key(), &digest('c')), State::Absent));
}

/// Else a namespace could fetch as much again while a full volume is verified.
#[test]
fn what_is_not_verified_yet_takes_room_of_its_namespace() {
    let mut index = Index::default();
    for (digit, size) in [('a', 10), ('b', 20)] {
        index.found(key(), digest(digit), size);
    }
    assert_eq!((index.bytes_of("apps"), index.bytes_of("other")), (30, 0));
    index.verified(&key(), &digest('a'), Verified::Whole(10, at(0)));
    index.verified(&key(), &digest('b'), Verified::Broken);
    assert_eq!(index.bytes_of("apps"), 10);
}

#[test]
fn what_was_served_meanwhile_stays_a_minute_longer() {
    let mut index = index("a");
    index.retain(&key(), &[], at(100));
    assert_eq!(index.serve(&key(), &digest('a'), at(150)), Some(10));
    assert_eq!(index.next_due(), Some(at(210)));
    assert_eq!(index.take_due(at(209)), []);
    assert_eq!(index.take_due(at(210)).len(), 1);
    assert!(index.keys().is_empty());
}

#[test]
fn what_was_served_before_it_left_goes_a_minute_after_that() {
    let mut index = index("a");
    index.serve(&key(), &digest('a'), at(50));
    assert_eq!(index.next_due(), None);
    index.retain(&key(), &[], at(100));
    assert_eq!(index.next_due(), Some(at(160)));
}

#[test]
fn what_is_needed_again_stays() {
    let mut index = index("a");
    index.retain(&key(), &[], at(100));
    index.retain(&key(), &[digest('a')], at(159));
    assert_eq!((index.next_due(), index.take_due(at(1000))), (None, vec![]));
}

#[test]
fn what_is_fetched_for_nobody_is_given_up() {
    let mut index = Index::default();
    let token = CancellationToken::new();
    assert!(index.begin(&key(), &digest('a'), token.clone()));
    assert!(!index.begin(&key(), &digest('a'), CancellationToken::new()));
    index.retain(&key(), &[digest('a')], at(1));
    assert!(!token.is_cancelled());
    index.retain(&key(), &[], at(2));
    assert!(token.is_cancelled());
    index.settle(&key(), &digest('a'), Ok((10, at(3))));
    assert!(matches!(index.state(&key(), &digest('a')), State::Absent));
}

#[test]
fn failures_in_a_row_are_counted() {
    let mut index = Index::default();
    for count in 1..=3 {
        assert!(index.begin(&key(), &digest('a'), CancellationToken::new()));
        // The reason of the failure is reported until fetching has ended.
        let State::Fetching(before) = index.state(&key(), &digest('a')) else {
            panic!("it is not fetched");
        };
        assert_eq!(
            before.map_or(0, |before| i64::from(before.failures)),
            count - 1
        );
        let failed = Err(("status 500".to_owned(), at(count)));
        index.settle(&key(), &digest('a'), failed);
        let State::Failed(failure) = index.state(&key(), &digest('a')) else {
            panic!("it failed");
        };
        assert_eq!(
            (i64::from(failure.failures), failure.at),
            (count, at(count))
        );
    }
    index.retain(&key(), &[], at(9));
    assert!(matches!(index.state(&key(), &digest('a')), State::Absent));
}
