//! What would go out without asking the gates of a GatedSource, where policies hold it back.

use super::stories::kustomization;
use super::*;

/// A GatePolicy holds back the namespace by a gate of its own, which is a switch.
fn freeze(play: &mut Play, state: &str) {
    let texts = [
        format!(
            "{{kind: Gate, metadata: {{name: freeze, namespace: platform}}, spec: {{default: {state}}}}}"
        ),
        "{kind: GatePolicy, metadata: {name: freeze}, spec: {kinds: [GatedSource], \
         namespaceSelector: {}, gates: {refs: [{name: freeze, namespace: platform}]}}}"
            .to_owned(),
    ];
    for text in texts {
        let mut value: Value = serde_saphyr::from_str(&text).unwrap();
        value["apiVersion"] = json!("sluice.dev/v1alpha1");
        match lint::read(&value).object.unwrap() {
            Object::Gate(gate) => {
                drop(play.world.gates.insert(Key::of(&gate.metadata), *gate));
            }
            Object::GatePolicy(policy) => {
                drop(
                    play.world
                        .policies
                        .insert("freeze".to_owned(), Ok(Arc::new(*policy))),
                );
            }
            other => unreachable!("{other:?}"),
        }
    }
}

/// Nobody knows whether anything runs a revision that is written out: it would be a way past a freeze.
#[test]
fn a_baseline_that_is_written_out_does_not_go_past_a_policy() {
    let mut play = Play::new(&json!({ "baseline": { "revision": revision('b') } }));
    freeze(&mut play, "closed");
    play.settle();
    assert_eq!((play.admitted(), play.child.as_ref()), (None, None));
    assert_eq!(play.says("Blocked").unwrap(), "True GatesClosed");
    let said = play.message("Blocked");
    assert!(said.starts_with(&revision('b')), "{said}");
    assert!(
        said.contains("platform/freeze (GatePolicy freeze)"),
        "{said}"
    );
    let since = play.ours().pending.clone().unwrap();
    assert_eq!(since.revision, revision('b'));
    let decision = play.told.last().unwrap();
    assert_eq!((decision.allowed, decision.checked.len()), (false, 1));
    assert_eq!(decision.decided_by, ["platform/freeze"]);
    // Since when it waits is not forgotten, and nothing is written meanwhile.
    play.pass(5);
    let report = play.look();
    assert!(!report.changed, "{report:?}");

    // The gates that it names itself stay closed, and are not asked.
    freeze(&mut play, "open");
    play.settle();
    assert_eq!(play.admitted(), Some(revision('b').as_str()));
    let origin = play.ours().admitted.as_ref().unwrap().origin;
    assert_eq!(origin, Origin::Baseline);
    assert_eq!(play.child("/ref/commit").unwrap(), commit('b'));
}

/// Of what a Kustomization has applied Flux says that it runs, and a freeze must not stop that.
#[test]
fn a_baseline_that_flux_applies_goes_on_in_a_freeze() {
    let baseline = json!({ "from": { "kind": "Kustomization", "name": "app" } });
    let mut play = Play::new(&json!({ "baseline": baseline }));
    freeze(&mut play, "closed");
    let mut app = kustomization("app", "upstream");
    app.status.last_applied_revision = Some(revision('a'));
    play.consumers = vec![(ConsumerKind::Kustomization, app)];
    play.settle();
    assert_eq!(play.admitted(), Some(revision('a').as_str()));
    assert!(play.told[0].allowed && play.told[0].checked.is_empty());
}

/// To name another source is no way past a freeze: the one that was named stays as it is.
#[test]
fn what_is_not_suspended_any_more_waits_for_the_policies() {
    for strategy in ["suspend", "pin"] {
        let mut play = Play::new(&json!({ "strategy": strategy }));
        freeze(&mut play, "closed");
        play.open();
        play.settle();
        play.dropped = vec![super::going::suspended("former", "app")];
        let report = play.look();
        assert_eq!(super::going::resumed(&report.acts), [""; 0], "{strategy}");
        play.write_status(&report);
        let said = play.message("Ready");
        let words = "; GitRepository former stay suspended, although they are not named any more";
        assert!(said.contains(words), "{strategy}: {said}");
        // What somebody looks at again writes nothing.
        assert!(!play.look().changed, "{strategy}");
        freeze(&mut play, "open");
        let acts = play.look().acts;
        assert!(
            super::going::resumed(&acts).contains(&"former"),
            "{strategy}"
        );
    }
}
