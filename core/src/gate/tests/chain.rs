//! Gates that are kept by gates that are kept by gates.

use super::*;
use crate::offline::simulate::{Key, Scene as Simulated, World};

/// `g0` is kept by `g1`, that by `g2`, and so on; the last one by a switch.
fn chain(length: usize) -> World {
    let key = |name: String| Key {
        namespace: "default".into(),
        name,
    };
    let mut world = World::default();
    for place in 0..length {
        let kept_by = format!("{{gatekeepers: [{{name: k{place}}}]}}");
        let name = format!("g{place}");
        let mut gate = gate(&kept_by, &[]);
        gate.metadata.name = Some(name.clone());
        gate.metadata.namespace = None;
        world.gates.insert(key(name), gate);
        let rule = match place + 1 == length {
            true => OPEN.to_owned(),
            false => format!("{{gates: {{refs: [{{name: g{}}}]}}}}", place + 1),
        };
        let name = format!("k{place}");
        world
            .gatekeepers
            .insert(key(name.clone()), Arc::new(gatekeeper(&name, &rule)));
    }
    world
}

/// Each is asked a few times, however many there are: by double on every floor, a hundred would
/// take for ever.
#[test]
fn a_long_chain_is_decided_and_explained() {
    let world = chain(100);
    let key = world.gates.keys().next().cloned().unwrap();
    let now = now(FRIDAY_10);
    let mut scene = Simulated::new(&world, &key, Identity::Trusted, now.at).unwrap();
    let decision = scene.decide(now);
    assert_eq!(decision.state, State::Open, "{}", decision.message);
}
