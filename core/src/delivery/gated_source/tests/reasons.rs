//! Why nothing is seen, nothing is served, or nothing goes out: in one word and in a sentence.

use rstest::rstest;

use super::fields::stored;
use super::kinds::of_kind;
use super::stories::kustomization;
use super::*;

/// A GatedSource of which everything is out, and its store.
fn serving_a_copy() -> Play {
    let mut play = Play::new(&json!({ "strategy": "artifact" }));
    play.open();
    let copy = format!("sha256:of {}", revision('a'));
    play.held.insert(copy, stored());
    play.settle();
    assert_eq!(play.says("Ready").unwrap(), "True Serving");
    play
}

#[rstest]
#[case::no_store(Holding::Off, "StorageDisabled", "--storage-path")]
#[case::not_fetched(Holding::Failed("it is 404".into()), "FetchFailed", "it is 404")]
fn a_copy_that_is_out_and_cannot_be_had(
    #[case] holding: Holding,
    #[case] reason: &str,
    #[case] words: &str,
) {
    let mut play = serving_a_copy();
    let child = play.child.clone();
    for held in play.held.values_mut() {
        *held = holding.clone();
    }
    let report = play.look();
    play.write_status(&report);
    assert_eq!(play.says("Ready").unwrap(), format!("False {reason}"));
    assert!(
        play.message("Ready").contains(words),
        "{}",
        play.message("Ready")
    );
    // What was fetched already is still used: the child stays as it is.
    assert_eq!(play.child, child);
}

#[test]
fn a_source_that_cannot_be_read() {
    let mut play = Play::new(&json!({}));
    play.open();
    play.settle();
    let child = play.child.clone();
    play.unreadable.upstream = true;
    play.settle();
    assert_eq!(play.says("Ready").unwrap(), "False SourceUnreadable");
    assert_eq!(
        play.message("Ready"),
        "the GitRepository upstream cannot be read: the list is refused"
    );
    assert_eq!(
        (play.admitted(), &play.child),
        (Some(revision('a').as_str()), &child)
    );
}

#[test]
fn a_child_that_cannot_be_read_is_not_touched() {
    let mut play = Play::new(&json!({}));
    play.open();
    play.unreadable.child = true;
    play.settle();
    assert_eq!(play.says("Ready").unwrap(), "False ChildUnreadable");
    assert!(play.message("Ready").contains("the list is refused"));
    assert_eq!(play.child, None);
    play.unreadable.child = false;
    play.settle();
    assert_eq!(play.child("/ref/commit").unwrap(), commit('a'));
}

#[test]
fn a_revision_that_nobody_can_read() {
    let mut play = Play::new(&json!({}));
    play.open();
    fetched(play.upstream.as_mut().unwrap(), "main@sha1:abc");
    play.settle();
    assert_eq!(play.says("Ready").unwrap(), "False RevisionUnreadable");
    let said = play.message("Ready");
    assert!(said.contains("`main@sha1:abc`"), "{said}");
    assert_eq!((play.admitted(), play.pending()), (None, None));
}

/// While nothing is out there is nothing to serve either.
#[rstest]
#[case::never_fetched(
    None,
    "False Progressing",
    "the GitRepository upstream has fetched nothing yet"
)]
#[case::failing(
    Some("Ready"),
    "False SourceNotReady",
    "the GitRepository upstream is not ready: it says No"
)]
fn a_source_that_shows_nothing(
    #[case] fails: Option<&str>,
    #[case] ready: &str,
    #[case] said: &str,
) {
    let mut play = Play::new(&json!({}));
    play.open();
    let source = play.upstream.as_mut().unwrap();
    source.status.artifact = None;
    source.status.conditions.clear();
    let failed = fails.map(|type_| condition(type_, "False", "No", Some(1)));
    let failed = failed.map(|it| serde_json::from_value(it).unwrap());
    source.status.conditions.extend(failed);
    play.settle();
    assert_eq!(play.says("Ready").unwrap(), ready);
    assert_eq!(play.message("Ready"), said);
    assert_eq!(play.admitted(), None);
}

/// A signature counts for the spec that it was verified under.
#[rstest]
#[case::nobody_has_looked(None)]
#[case::under_another_spec(Some(("True", 1)))]
#[case::of_somebody_else(Some(("False", 2)))]
fn what_asks_for_a_signature_is_believed_with_one(#[case] verified: Option<(&str, i64)>) {
    let mut play = Play::new(&json!({}));
    play.open();
    let source = play.upstream.as_mut().unwrap();
    let mode = json!({ "mode": "HEAD", "secretRef": { "name": "signers" } });
    source.spec.insert("verify".to_owned(), mode);
    source.metadata.generation = Some(2);
    fetched(source, &revision('a'));
    let says = |status: &str, generation: i64| {
        let said = condition("SourceVerified", status, "Said", Some(generation));
        serde_json::from_value(said).unwrap()
    };
    let before = verified.map(|(status, generation)| says(status, generation));
    source.status.conditions.extend(before);
    play.settle();
    assert_eq!(play.says("Ready").unwrap(), "False SourceNotReady");
    assert!(play.message("Ready").contains("is not verified"));
    assert!(play.ours().candidates.is_empty());
    let conditions = &mut play.upstream.as_mut().unwrap().status.conditions;
    conditions.retain(|it| it.type_ != "SourceVerified");
    conditions.push(says("True", 2));
    play.settle();
    assert_eq!(play.admitted(), Some(revision('a').as_str()));
}

/// The gates admit it, and it waits all the same: that has to be said.
#[test]
fn what_the_gates_admit_and_nothing_can_be_pinned_to_waits() {
    let mut play = Play::new(&json!({}));
    play.open();
    let mut source = git("upstream", &upstream_spec(), "main");
    source.metadata.uid = play.upstream.take().unwrap().metadata.uid;
    play.upstream = Some(source);
    play.settle();
    assert_eq!(play.admitted(), None);
    assert_eq!(play.pending(), Some("main"));
    assert_eq!(play.says("Blocked").unwrap(), "True RevisionNotHeld");
    assert!(play.message("Blocked").contains("cannot be pinned"));
}

#[test]
fn a_baseline_that_nothing_can_be_pinned_to() {
    let from = json!({ "from": { "kind": "Kustomization", "name": "app" } });
    let mut play = Play::new(&json!({ "baseline": from }));
    let mut app = kustomization("app", "upstream");
    app.status.last_applied_revision = Some("nightly".to_owned());
    play.consumers = vec![(ConsumerKind::Kustomization, app)];
    play.open();
    play.settle();
    assert_eq!(play.says("Ready").unwrap(), "False BaselineUnreadable");
    assert!(
        play.message("Ready")
            .contains("cannot be pinned to nightly")
    );
    assert_eq!(play.admitted(), None);
}

#[test]
fn a_baseline_that_is_not_shown_any_more_cannot_be_stored() {
    let spec = json!({ "strategy": "artifact", "baseline": { "revision": revision('b') } });
    let mut play = Play::new(&spec);
    play.settle();
    assert_eq!(play.says("Ready").unwrap(), "False BaselineNotShown");
    assert!(play.message("Ready").contains("no longer shows"));
    assert_eq!((play.admitted(), play.child.as_ref()), (None, None));
}

#[test]
fn a_revision_that_is_asked_for_and_not_stored() {
    let mut play = serving_a_copy();
    play.object.spec.revision = Some(revision('b'));
    play.push('c');
    play.held
        .insert(format!("sha256:of {}", revision('c')), stored());
    play.settle();
    assert_eq!(play.says("Blocked").unwrap(), "True RevisionNotHeld");
    assert!(play.message("Blocked").contains("which is not stored here"));
    assert_eq!(play.admitted(), Some(revision('a').as_str()));
}

#[test]
fn what_waits_where_everything_is_stopped() {
    let mut play = Play::new(&json!({}));
    play.settle();
    play.object.spec.suspend = true;
    play.open();
    play.settle();
    assert_eq!(play.says("Blocked").unwrap(), "True Suspended");
    assert_eq!(play.pending(), Some(revision('a').as_str()));
    assert_eq!(play.child, None);
}

#[test]
fn sources_that_are_not_suspended_wait_for_nothing_and_are_not_pinned() {
    let mut play = of_kind(
        SourceKind::Bucket,
        &json!({ "bucketName": "b", "endpoint": "e" }),
        "x",
        &json!({ "strategy": "suspend" }),
    );
    play.open();
    play.settle();
    assert_eq!(play.says("Blocked").unwrap(), "False GatesOpen");
    assert_eq!(play.says("Recoverable").unwrap(), "False NotPinned");
    play.close();
    play.settle();
    assert_eq!(play.says("Ready").unwrap(), "True Holding");
    assert_eq!(play.upstream.unwrap().spec["suspend"], json!(true));
}
