//! Special cases in which something waited that should not, or was reported wrongly.

use super::*;

/// What is out is asked about once more neither under a spec.revision nor because the status is lost.
#[test]
fn what_is_out_is_not_asked_about_again() {
    let mut play = Play::new(&json!({ "revision": commit('a') }));
    play.open();
    play.settle();
    play.close();
    let asked = play.told.len();
    play.object.status = None;
    play.settle();
    assert_eq!(play.told.len(), asked);
    assert_eq!(play.admitted(), Some(revision('a').as_str()));
    assert_eq!(play.says("Blocked").unwrap(), "False NothingPending");
}

/// Another content is another thing to go out, although the revision is the one that is asked for.
#[test]
fn what_is_asked_for_goes_out_with_new_content() {
    let mut play = Play::new(&json!({ "revision": commit('a') }));
    play.open();
    play.settle();
    play.close();
    let source = play.upstream.as_mut().unwrap();
    source.spec.insert("ignore".to_owned(), json!("/docs"));
    play.settle();
    assert_eq!(play.says("Blocked").unwrap(), "True GatesClosed");
    assert_eq!(play.child("/ignore"), None);
    play.open();
    play.settle();
    assert_eq!(play.child("/ignore").unwrap(), "/docs");
}

#[test]
fn what_is_asked_for_and_was_held_waits_for_its_turn() {
    let mut play = Play::new(&json!({ "revision": commit('c'), "spread": "10m" }));
    play.settle();
    play.open();
    play.settle();
    assert_eq!(play.says("Blocked").unwrap(), "True Spread");
    play.now = play.ours().pending.clone().unwrap().admit_at.unwrap().0;
    play.settle();
    let asked = format!("sha1:{}", commit('c'));
    assert_eq!(play.admitted(), Some(asked.as_str()));
}

/// An approval of what is older than what waits: the first status tells why the newer one waits.
#[test]
fn what_is_newer_than_what_goes_out_waits_for_the_gates() {
    let mut play = Play::new(&json!({}));
    for digit in ['a', 'b'] {
        play.push(digit);
        play.settle();
    }
    play.keep(&format!("{{revisions: {{allow: ['{}']}}}}", commit('a')));
    let report = play.look();
    play.write_status(&report);
    assert_eq!(play.admitted(), Some(revision('a').as_str()));
    assert_eq!(play.says("Blocked").unwrap(), "True GatesClosed");
}

/// `kubectl wait --for=condition=Blocked=false` does not return because somebody suspends the
/// GatedSource, and what can be fetched again can be had all the same.
#[test]
fn what_stands_still_says_what_it_said() {
    let mut play = Play::new(&json!({ "strategy": "suspend" }));
    play.settle();
    play.object.spec.suspend = true;
    play.settle();
    assert_eq!(play.says("Blocked").unwrap(), "True GatesClosed");
    assert_eq!(play.says("Ready").unwrap(), "True Suspended");

    let mut play = Play::new(&json!({}));
    play.open();
    play.settle();
    play.object.spec.suspend = true;
    play.settle();
    assert_eq!(play.says("Recoverable").unwrap(), "True Pinned");
}

/// One open gate is enough, although the other one depends on the revision.
#[test]
fn one_of_two_gates_is_enough_for_a_source_that_is_suspended() {
    let mut play = Play::new(&json!({ "strategy": "suspend" }));
    play.keep("{revisions: {allow: [v1]}}");
    let mut open = play.world.gates.values().next().unwrap().clone();
    open.metadata.name = Some("open".to_owned());
    open.spec = serde_json::from_value(json!({ "default": "open" })).unwrap();
    play.world.gates.insert(Key::of(&open.metadata), open);
    play.object.spec.gates = serde_json::from_value(json!({
        "require": "oneOf", "refs": [{ "name": "open" }, { "name": "production" }],
    }))
    .unwrap();
    play.settle();
    assert_eq!(play.says("Ready").unwrap(), "True Released");
    assert_eq!(play.says("Blocked").unwrap(), "False GatesOpen");
}

/// Nothing is out yet, and nothing can be stored.
#[test]
fn what_keeps_an_artifact_from_being_stored_is_told() {
    let mut play = Play::new(&json!({ "strategy": "artifact" }));
    play.open();
    play.settle();
    for (holding, expected) in [
        (Holding::Off, "False StorageDisabled"),
        (
            Holding::Failed("status 404".to_owned()),
            "False FetchFailed",
        ),
    ] {
        let digest = format!("sha256:of {}", revision('a'));
        play.held.insert(digest, holding);
        let report = play.look();
        play.write_status(&report);
        assert_eq!(play.says("Ready").unwrap(), expected);
        assert_eq!(play.says("Blocked").unwrap(), "True NotStored");
    }
    let said = play.message("Blocked");
    assert!(said.contains("status 404"), "{said}");
}
