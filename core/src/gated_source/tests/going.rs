//! A GatedSource that goes, and comes back.

use super::*;

fn delete(play: &mut Play) {
    play.object.metadata.deletion_timestamp = Some(time(play.now));
}

#[test]
fn children_stay_unless_they_are_to_go() {
    let mut play = Play::new(&json!({}));
    play.open();
    play.settle();
    delete(&mut play);
    let report = play.look();
    assert!(report.acts.is_empty() && !report.changed);
}

#[test]
fn children_go_first_where_they_are_to_go() {
    let mut play = Play::new(&json!({ "deletionPolicy": "Delete" }));
    play.open();
    play.settle();
    assert!(play.object.metadata.finalizers.is_some());
    delete(&mut play);
    let report = play.look();
    assert!(matches!(report.acts.as_slice(), [Act::Delete { kind, .. }]
        if *kind == FluxKind::Source(SourceKind::GitRepository)));
    play.carry_out(report.acts);
    let report = play.look();
    assert_eq!(report.acts, [Act::Finalize(false)]);
}

#[test]
fn what_was_suspended_is_resumed_where_children_are_to_go() {
    let mut play = Play::new(&json!({ "strategy": "suspend", "deletionPolicy": "Delete" }));
    play.settle();
    delete(&mut play);
    let report = play.look();
    play.carry_out(report.acts);
    assert_eq!(
        play.upstream.as_ref().unwrap().spec["suspend"],
        json!(false)
    );
    assert_eq!(play.look().acts, [Act::Finalize(false)]);
}

#[test]
fn what_is_suspended_stands_still() {
    let mut play = Play::new(&json!({}));
    play.open();
    play.settle();
    play.object.spec.suspend = true;
    play.push('b');
    play.settle();
    assert_eq!(play.says("Ready").unwrap(), "True Suspended");
    assert_eq!(play.child("/ref/commit").unwrap(), commit('a'));
    play.object.spec.suspend = false;
    play.settle();
    assert_eq!(play.child("/ref/commit").unwrap(), commit('b'));
}

#[test]
fn a_source_that_is_gone_changes_nothing() {
    let mut play = Play::new(&json!({}));
    play.open();
    play.settle();
    let child = play.child.clone();
    play.upstream = None;
    play.settle();
    assert_eq!(play.child, child);
    assert_eq!(play.says("Ready").unwrap(), "False SourceNotFound");
}
