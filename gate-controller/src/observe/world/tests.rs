use jiff::SignedDuration;
use serde_json::json;
use sluice_core::time::clock::Trust;
use sluice_core::{Reason, gate};
use sluice_crds::State;
use sluice_crds::flux::FluxKind;

use super::*;
use crate::observe::clock::SetClock;

mod concerned;
pub(crate) mod probe;

fn world() -> World {
    let standing = Standing {
        trust: Trust::Good,
        identity: Identity::Verified,
    };
    World::new(standing, true)
}

#[test]
fn a_clock_that_has_jumped_is_not_relied_on_until_it_was_compared() {
    let at = |second| Timestamp::from_second(second).unwrap();
    let clock = Arc::new(SetClock::new(at(0)));
    let jumps = Arc::new(Jumps::new(clock.clone()));
    let world = world().with_jumps(Arc::clone(&jumps));
    clock.set(at(3600));
    assert_eq!(world.now(at(3600)).trust, Trust::Good);
    clock.step(at(7200));
    let lost = Trust::Lost(SignedDuration::from_secs(3600));
    assert_eq!(world.now(at(7200)).trust, lost);
    // A comparison from before that says nothing.
    assert!(!world.compared(Trust::Good, 0));
    assert_eq!(world.now(at(7200)).trust, lost);
    assert!(world.compared(Trust::Good, jumps.count()));
    assert_eq!(world.now(at(7200)).trust, Trust::Good);
    assert!(world.compared(lost, jumps.count()));
    assert_eq!(world.now(at(7200)).trust, lost);
}

fn gate(namespace: &str, name: &str) -> Gate {
    let gate = json!({
        "apiVersion": "sluice.dev/v1alpha1", "kind": "Gate",
        "metadata": { "namespace": namespace, "name": name, "resourceVersion": "5" },
        "spec": { "default": "open" },
    });
    serde_json::from_value(gate).unwrap()
}

#[test]
fn a_gate_is_closed_and_a_policy_unknown_while_changes_are_not_seen() {
    let at = |second| Timestamp::from_second(second).unwrap();
    let clock = Arc::new(SetClock::new(at(0)));
    let world = world().with_jumps(Arc::new(Jumps::new(clock.clone())));
    let gate = gate("apps", "production");
    let policies = || gate::set::Sources::policies(&world).len();
    assert_eq!(world.answer(&gate, at(0)).state, State::Open);
    assert_eq!((world.silence(), policies()), (None, 0));
    // The machine slept: nothing was listed since.
    clock.step(at(3600));
    let answer = world.answer(&gate, at(3600));
    assert_eq!(
        (answer.state, answer.reason),
        (State::Closed, Reason::NotWatched)
    );
    let why = world.silence().unwrap();
    assert!(
        why.starts_with("changes of gates are not seen any more"),
        "{why}"
    );
    assert_eq!(policies(), 1);
}

#[test]
fn all_that_is_watched_is_listed_again_after_a_jump() {
    let at = |second| Timestamp::from_second(second).unwrap();
    let clock = Arc::new(SetClock::new(at(0)));
    let world = world().with_jumps(Arc::new(Jumps::new(clock.clone())));
    clock.step(at(3600));
    let flux = FluxKind::ALL.map(|kind| (kind.plural(), world.flux.of(kind).pulse()));
    let own = [("gatedsources", world.gated_sources.pulse())];
    for (plural, pulse) in world.pulses().into_iter().chain(own).chain(flux) {
        assert_eq!(pulse.jumps(), 1, "{plural}");
    }
}

#[test]
fn what_is_not_watched_is_not_said_to_be_missing() {
    let world = world().only_in("sluice");
    world.gates.put(Arc::new(gate("sluice", "own"))).unwrap();
    let find = |from: &str, namespace: Option<&str>, name: &str| {
        let reference = GateReference {
            name: name.to_owned(),
            namespace: namespace.map(str::to_owned),
        };
        Sources::gate(&world, from, &reference).map(drop)
    };
    assert_eq!(find("sluice", None, "own"), Named::Here(()));
    assert_eq!(find("sluice", None, "other"), Named::Missing);
    assert_eq!(find("sluice", Some("apps"), "own"), Named::Forbidden);
    assert_eq!(find("apps", None, "own"), Named::Forbidden);
    let of_policy = GateReference {
        name: "freeze".to_owned(),
        namespace: Some("platform".to_owned()),
    };
    assert_eq!(world.gate_of_policy(&of_policy).map(drop), Named::Forbidden);
}

/// Statuses are written again and again, and each version is as large as the one before.
#[test]
fn what_is_ready_keeps_no_earlier_version_of_its_gatekeeper() {
    let world = world();
    let at = Timestamp::from_second(0).unwrap();
    let gatekeeper = |version: &str| {
        let object = json!({
            "apiVersion": "sluice.dev/v1alpha1", "kind": "Gatekeeper",
            "metadata": {
                "namespace": "apps", "name": "switch", "uid": "u", "generation": 1,
                "resourceVersion": version,
            },
            "spec": { "manual": { "state": "open" } },
        });
        Arc::new(serde_json::from_value::<Gatekeeper>(object).unwrap())
    };
    let key = key("apps", "switch");
    let (before, now) = (gatekeeper("1"), gatekeeper("2"));
    let old = Arc::downgrade(&before);
    world.keeper(&before, at);
    drop(before);
    assert!(old.upgrade().is_some());
    world.note_gatekeeper(&key, Some(&now));
    assert!(old.upgrade().is_none());
    assert!(Arc::ptr_eq(world.keeper(&now, at).object(), &now));
}

fn key(namespace: &str, name: &str) -> ObjectKey {
    ObjectKey {
        namespace: namespace.into(),
        name: name.into(),
    }
}
