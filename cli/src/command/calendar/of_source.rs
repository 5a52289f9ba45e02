//! The coming days of a gated source: when its gates let something out.
//!
//! What comes in: the GatedSource, its gates and policies. What goes out: a picture of all of them
//! together, and one of each.

use sluice_core::delivery::gated_source::{self, KIND};
use sluice_core::offline::simulate::{Key, Scene, Set, Stretches, together};
use sluice_core::{Now, Question, Reason};
use sluice_crds::GatedSource;

use super::{Calendar, Frame, Of, Shown};
use crate::cluster::{Asked, Seen};
use crate::instant::Zone;
use crate::picture::Picture;

/// A gate that it has to pass.
struct Gate {
    /// As `namespace/name`.
    name: String,
    stretches: Stretches,
}

/// The pictures: that of all together is the first.
pub(super) fn pictures(
    seen: &Seen,
    source: &GatedSource,
    frame: &Frame,
    asked_for: &Calendar,
) -> Vec<Shown> {
    let revision = asked_for.revision.as_ref();
    let question = Question::new(Now::given(frame.now), revision);
    let text = revision.map(ToString::to_string);
    let subject = gated_source::subject(source, text.as_deref());
    let sets = seen.sets(&source.spec.gates, &subject, question);
    let scenes: Vec<(Key, Scene)> = scenes(seen, &sets, frame);
    let (zone, span) = frame.of(|| zone(&scenes), asked_for.days);
    let gate = |name: &String, unasked: &Option<(Reason, String)>| {
        let scene = scenes.iter().find(|(key, _)| key.to_string() == *name);
        let stretches = match (unasked, scene) {
            (Some((reason, why)), _) => Stretches::closed(span, *reason, why),
            (None, Some((_, scene))) => scene.clone().stretches_about(span, revision),
            (None, None) => Stretches::closed(span, Reason::GateMissing, "it went away"),
        };
        Gate {
            name: name.clone(),
            stretches,
        }
    };
    let asked: Vec<Vec<Gate>> = (sets.iter())
        .map(|set| {
            set.gates
                .iter()
                .map(|(name, why)| gate(name, why))
                .collect()
        })
        .collect();
    let of_sets = sets.iter().zip(&asked).map(|(set, gates)| Set {
        require: set.require,
        gates: (gates.iter())
            .map(|gate| (gate.name.as_str(), &gate.stretches))
            .collect(),
    });
    let all = together(&of_sets.collect::<Vec<_>>(), span);
    let own = Key::of(&source.metadata);
    let picture = |name: String, stretches: Stretches| Picture {
        name: asked_for.about(name),
        zone: zone.clone(),
        now: frame.now,
        span,
        stretches,
    };
    let whole = picture(format!("{KIND} {own}"), all);
    let mut shown = vec![(Of::Source(own.clone()), whole)];
    let mut names: Vec<String> = Vec::new();
    for gate in asked.into_iter().flatten() {
        let key = gate.name.split_once('/');
        let (namespace, name) = key.unwrap_or(("", &gate.name));
        let key = Key {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        };
        // The source itself and a policy may ask for the same one.
        if !names.contains(&gate.name) {
            names.push(gate.name.clone());
            let called = match key.namespace == own.namespace {
                true => format!("Gate {}", key.name),
                false => format!("Gate {key}"),
            };
            let drawn = picture(called, gate.stretches);
            shown.push((Of::Gate(key), drawn));
        }
    }
    shown
}

/// The gates that can be asked.
fn scenes(seen: &Seen, sets: &[Asked], frame: &Frame) -> Vec<(Key, Scene)> {
    let gates = sets.iter().flat_map(|set| &set.gates);
    let keys = gates.filter_map(|(gate, _)| {
        let (namespace, name) = gate.split_once('/')?;
        Some(Key::from_reference(namespace, None, name))
    });
    keys.filter_map(|key| {
        let scene = seen.scene(&key, frame.now)?;
        Some((key, scene))
    })
    .collect()
}

/// The zone in which the windows of all gates are written; see [`Zone::shared`].
fn zone(scenes: &[(Key, Scene)]) -> Zone {
    Zone::shared(scenes.iter().flat_map(|(_, scene)| scene.time_zones()))
}
