//! The calendar of several gates uses the same fold as the decision: for any gates and any way to combine
//! them, it shows at each instant what is decided at that instant.

use jiff::ToSpan;

use super::truth::{POLICIES, REQUIRE, REVISIONS, choices, policy};
use super::*;
use crate::gate::set::gathered::Gathered;
use crate::offline::simulate::{Scene, Stretches, together};
use crate::time::span::Span;

/// What the calendar of these sets shows at [`NOW`].
fn shown(world: &World, gathered: &Gathered, revision: Option<&Revision>) -> State {
    let now: Timestamp = NOW.parse().unwrap();
    let span = Span {
        start: now,
        end: now + 1.minute(),
    };
    let stretches = |name: &str| {
        let (namespace, name) = name.split_once('/').unwrap();
        let key = Key::from_reference(namespace, None, name);
        match Scene::new(world, &key, Identity::Trusted, now) {
            Some(mut scene) => scene.stretches_about(span, revision),
            None => Stretches::closed(span, Reason::GateMissing, "there is no such gate"),
        }
    };
    let asked: Vec<(Require, Vec<(&str, Stretches)>)> = (gathered.sets().iter())
        .map(|set| {
            let gates = set.gates.iter().map(|(name, _)| (*name, stretches(name)));
            (set.require, gates.collect())
        })
        .collect();
    let sets: Vec<simulate::Set<'_>> = (asked.iter())
        .map(|(require, gates)| simulate::Set {
            require: *require,
            gates: gates.iter().map(|(name, it)| (*name, it)).collect(),
        })
        .collect();
    together(&sets, span).list[0].answer.state
}

#[test]
fn it_shows_what_is_decided() {
    let mut wrong = Vec::new();
    for added in POLICIES {
        let world = world(&policy(Require::OneOf, added));
        for (own, require) in choices().iter().flat_map(|own| REQUIRE.map(|by| (own, by))) {
            for text in REVISIONS {
                let revision = text.map(|text| Revision::parse(text).unwrap());
                let own_set = set(require, own);
                let decision = ask(&world, &own_set, text);
                let question = Question::new(Now::given(NOW.parse().unwrap()), revision.as_ref());
                let subject = &decision.subject;
                let identity = Identity::Trusted;
                let gathered =
                    simulate::gather(&world, Some(&own_set), subject, identity, question);
                let shown = shown(&world, &gathered, revision.as_ref());
                if decision.allowed != (shown == State::Open) {
                    let decided = decision.allowed;
                    wrong.push(format!(
                        "{require} of {own:?}, {text:?}, {added:?}: allowed {decided}, shown {shown}"
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
