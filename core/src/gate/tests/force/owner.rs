//! The controller owns everything that it has noted, so that nobody ends a force by applying less.

use rstest::rstest;

use super::*;
use crate::gate::force::owner;

/// Takes the annotation from the field manager of the controller. None: all of them.
fn without(gate: &mut Gate, annotation: Option<&str>) {
    let mut owned = gate.metadata.annotations.clone().unwrap();
    owned.retain(|name, _| annotation.is_some_and(|gone| name != gone));
    gate.metadata.managed_fields = Some(vec![owner::entry(&owned)]);
}

#[rstest]
#[case::all(None)]
#[case::the_state(Some(FORCE))]
#[case::the_end(Some(FORCE_UNTIL))]
#[case::the_note(Some(FORCE_SEEN))]
fn what_it_does_not_own_any_more_it_takes_again(#[case] annotation: Option<&str>) {
    let mut gate = accepted(forced(&OPEN_FOR_REASON), FRIDAY_10);
    let before = gate.metadata.annotations.clone();
    without(&mut gate, annotation);
    let during = read(&gate, "2026-11-20T10:30:00Z");
    assert_eq!(during.completion, before);
    assert!(in_effect(&gate, "2026-11-20T10:30:00Z").is_some());

    gate.metadata.managed_fields = Some(Vec::new());
    assert_eq!(read(&gate, FRIDAY_10).completion, before);
    // As kubectl's, or as an update, it does not count.
    let all = before.clone().unwrap();
    let mut entry = owner::entry(&all);
    entry.manager = Some("kubectl".to_owned());
    let mut update = owner::entry(&all);
    update.operation = Some("Update".to_owned());
    gate.metadata.managed_fields = Some(vec![entry, update]);
    assert_eq!(read(&gate, FRIDAY_10).completion, before);

    gate.metadata.managed_fields = Some(vec![owner::entry(&all)]);
    assert_eq!(read(&gate, FRIDAY_10).completion, None);
}

/// What is not noted is not owned either.
#[test]
fn it_takes_nothing_that_it_has_not_noted() {
    let mut gate = forced(&[(FORCE, "ajar"), (FORCE_BY, "a"), (FORCE_REASON, "b")]);
    gate.metadata.managed_fields = Some(Vec::new());
    assert_eq!(read(&gate, FRIDAY_10).completion, None);
}
