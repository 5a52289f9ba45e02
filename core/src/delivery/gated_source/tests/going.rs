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

/// A source that was suspended in somebody's name.
pub(super) fn suspended(name: &str, by: &str) -> FluxObject {
    let mut source = git(name, &upstream_spec(), &revision('a'));
    source.spec.insert("suspend".to_owned(), json!(true));
    let mark = sluice_crds::gated_source::marks::SUSPENDED_BY.to_owned();
    let annotations = source.metadata.annotations.get_or_insert_default();
    annotations.insert(mark, by.to_owned());
    source
}

/// Those that an act resumes.
pub(super) fn resumed(acts: &[Act]) -> Vec<&str> {
    let resumed = acts.iter().filter_map(|act| match act {
        Act::Suspend {
            holders, before, ..
        } if holders.is_empty() => before.metadata.name.as_deref(),
        _ => None,
    });
    resumed.collect()
}

/// The gate is closed all the while, and another strategy of the same name finds what is left.
#[rstest::rstest]
#[case::suspend("suspend")]
#[case::pin("pin")]
fn what_was_suspended_and_is_held_no_longer_is_resumed(#[case] strategy: &str) {
    let mut play = Play::new(&json!({ "strategy": strategy }));
    play.settle();
    play.dropped = vec![suspended("former", "app"), suspended("theirs", "another")];
    assert_eq!(resumed(&play.look().acts), ["former"]);
    play.object.spec.suspend = true;
    assert_eq!(resumed(&play.look().acts), [""; 0], "it stands still");
    play.object.spec.suspend = false;
    play.settle();
    let names: Vec<_> = play.dropped.iter().map(|it| &it.metadata.name).collect();
    assert_eq!(names, [&Some("theirs".to_owned())]);
    assert_eq!(play.dropped[0].spec["suspend"], json!(true));
}

#[test]
fn what_is_held_no_longer_is_resumed_before_it_goes() {
    let mut play = Play::new(&json!({ "strategy": "suspend", "deletionPolicy": "Delete" }));
    play.settle();
    play.dropped = vec![suspended("former", "app")];
    delete(&mut play);
    let report = play.look();
    assert_eq!(resumed(&report.acts), ["upstream", "former"]);
    play.carry_out(report.acts);
    assert_eq!(play.look().acts, [Act::Finalize(false)]);
    // Without the finalizer nothing is touched.
    play.object.metadata.finalizers = None;
    play.dropped = vec![suspended("former", "app")];
    assert!(play.look().acts.is_empty());
}

/// It is not known whether the child is gone, and it cannot be deleted: that is reported, and deletion is
/// tried when the child can be seen.
#[test]
fn anyone_who_cannot_see_the_children_keeps_their_gated_source() {
    let mut play = Play::new(&json!({ "deletionPolicy": "Delete" }));
    play.open();
    play.settle();
    delete(&mut play);
    play.unreadable.child = true;
    play.settle();
    assert!(play.object.metadata.finalizers.is_some());
    assert_eq!(play.says("Ready").unwrap(), "False ChildUnreadable");
    assert!(play.message("Ready").contains("cannot be read"));
    play.unreadable.child = false;
    let report = play.look();
    assert!(matches!(report.acts.as_slice(), [Act::Delete { .. }]));
}

/// An index may be behind: what has lost the mark since, or bears another's, is nobody's to delete.
#[test]
fn only_what_bears_the_mark_is_deleted() {
    let mut play = Play::new(&json!({ "deletionPolicy": "Delete" }));
    play.settle();
    let child = |name: &str, of: Option<&str>| {
        let mut child = git(name, &upstream_spec(), &revision('a'));
        let mark = sluice_crds::gated_source::marks::CHILD_OF.to_owned();
        child.metadata.annotations = of.map(|of| [(mark, of.to_owned())].into());
        child
    };
    play.strays = vec![
        child("former", Some("app")),
        child("theirs", Some("another")),
        child("free", None),
    ];
    let deleted = |play: &mut Play| -> Vec<String> {
        let acts = play.look().acts.into_iter();
        let deleted = acts.filter_map(|act| match act {
            Act::Delete { before, .. } => before.metadata.name.clone(),
            _ => None,
        });
        deleted.collect()
    };
    assert_eq!(deleted(&mut play), ["former"]);
    delete(&mut play);
    assert_eq!(deleted(&mut play), ["former"]);
}
