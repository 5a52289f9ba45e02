//! What was read from a cluster, and what is decided from it.
//!
//! What comes in: the objects, and an instant. What goes out: decisions, by the same functions as
//! the controller's.

use jiff::Timestamp;
use sluice_core::delivery::pipeline::{self, What};
use sluice_core::delivery::rollout;
use sluice_core::gate::Named;
use sluice_core::gate::set::Gathered;
use sluice_core::gate::{Answer, Identity, force};
use sluice_core::offline::simulate::{self, Decision, Key, Scene, Stretch, Stretches, World};
use sluice_core::time::span::{Span, later};
use sluice_core::verdict::question::Question;
use sluice_core::verdict::status::HORIZON;
use sluice_core::{Now, Reason};
use sluice_crds::gate::Override;
use sluice_crds::pipeline::Environment;
use sluice_crds::{Gate, GateSet, Pipeline, Require, Rollout, Setting, State, Subject};

use super::{reach, unaccepted};
use crate::instant::Zone;

/// Gates with everything that they are decided from.
pub(crate) struct Seen {
    pub(crate) world: World,
    /// What could not be seen, and counts as closed.
    pub(crate) notes: Vec<String>,
    /// Forces count although it was not verified who forces.
    pub(crate) trust_unverified: bool,
}

/// A key of the text `namespace/name`.
pub(crate) fn key_of(name: &str) -> Option<Key> {
    let (namespace, name) = name.split_once('/')?;
    Some(Key::from_reference(namespace, None, name))
}

impl Seen {
    /// A gate that somebody asked about, or one behind those.
    fn gate(&self, key: &Key) -> Option<&Gate> {
        let known = self.world.gates.get(key);
        known.or_else(|| self.world.nested.get(key))
    }

    /// A gate, ready to be decided, as of `now`. None: there is no such gate.
    pub(crate) fn scene(&self, key: &Key, now: Timestamp) -> Option<Scene> {
        let identity = self.identity(self.gate(key)?, now);
        let mut keepers = self.world.gatekeepers.values();
        if !keepers.any(|keeper| keeper.spec.gates.is_some()) {
            return Scene::new(&self.world, key, identity, now);
        }
        let world = self.with_identities(now);
        Scene::new(&world, key, identity, now)
    }

    /// The zone in which the windows of all gates are written; see [`Zone::shared`].
    pub(crate) fn zone(&self, now: Timestamp) -> Zone {
        let gates = self.world.gates.keys().chain(self.world.nested.keys());
        let scenes: Vec<Scene> = gates.filter_map(|key| self.scene(key, now)).collect();
        Zone::shared(scenes.iter().flat_map(Scene::time_zones))
    }

    /// The world, with what is known of the people who force each gate: one around which there are others
    /// has forces of its own.
    fn with_identities(&self, now: Timestamp) -> World {
        let mut world = self.world.clone();
        let gates = self.world.gates.iter().chain(&self.world.nested);
        world.identities = gates
            .map(|(key, gate)| (key.clone(), self.identity(gate, now)))
            .collect();
        world
    }

    /// Whether what `subject` wants to do may pass `own` gates, and those that policies add: as the
    /// controller decides it.
    pub(crate) fn ask(
        &self,
        own: Option<&GateSet>,
        subject: Subject,
        question: Question<'_>,
    ) -> sluice_crds::Decision {
        let world = self.with_identities(question.now.at);
        let decision = simulate::decide(&world, own, subject, Identity::Unverified, question);
        self.explained(decision, question.now.at)
    }

    /// Whether a promotion to an environment of a Pipeline may begin, as the controller decides it. None:
    /// no gate has to be asked.
    pub(crate) fn ask_promotion(
        &self,
        object: &Pipeline,
        environment: &Environment,
        question: Question<'_>,
    ) -> Option<sluice_crds::Decision> {
        let world = self.with_identities(question.now.at);
        let identity = Identity::Unverified;
        let gathered = simulate::gather_promotion(&world, object, environment, identity, question);
        if gathered.sets().is_empty() {
            return None;
        }
        let revision = question.revision.map(ToString::to_string);
        let (name, revision) = (&environment.name, revision.as_deref());
        let subject = pipeline::subject(object, name, What::Promote, revision);
        let decision = gathered.decide(subject, question);
        Some(self.explained(decision, question.now.at))
    }

    /// Whether a batch of a Rollout may go out, as the controller decides it. None: no gate has to be asked.
    pub(crate) fn ask_batch(
        &self,
        object: &Rollout,
        batch: usize,
        asked: Question<'_>,
    ) -> Option<sluice_crds::Decision> {
        let revision = asked.revision.map(ToString::to_string);
        let question = rollout::asks(object, batch, revision)?;
        let world = self.with_identities(asked.now.at);
        let gathered = simulate::gather_batch(&world, &question, Identity::Unverified, asked);
        if gathered.is_empty() {
            return None;
        }
        let decision = gathered.decide(question.subject, asked);
        Some(self.explained(decision, asked.now.at))
    }

    /// The same decision, with what is known of forces that nobody has accepted.
    fn explained(
        &self,
        mut decision: sluice_crds::Decision,
        now: Timestamp,
    ) -> sluice_crds::Decision {
        for checked in &mut decision.checked {
            if let Some(gate) = key_of(&checked.gate).and_then(|key| self.gate(&key)) {
                let said = unaccepted::explain(gate, &checked.message, now);
                decision.message = decision.message.replace(&checked.message, &said);
                checked.message = said;
            }
        }
        decision
    }

    /// The sets that `subject` has to pass, which names `own` itself.
    pub(crate) fn sets(
        &self,
        own: &GateSet,
        subject: &Subject,
        question: Question<'_>,
    ) -> Vec<Asked> {
        let world = self.with_identities(question.now.at);
        let identity = Identity::Unverified;
        asked(&simulate::gather(
            &world,
            Some(own),
            subject,
            identity,
            question,
        ))
    }

    /// The sets that a promotion to an environment of a Pipeline has to pass.
    pub(crate) fn sets_of_promotion(
        &self,
        object: &Pipeline,
        environment: &Environment,
        question: Question<'_>,
    ) -> Vec<Asked> {
        let world = self.with_identities(question.now.at);
        let identity = Identity::Unverified;
        asked(&simulate::gather_promotion(
            &world,
            object,
            environment,
            identity,
            question,
        ))
    }

    /// When time changes whether these gates, asked together, let something pass. None: not by time,
    /// as far as is known.
    pub(crate) fn next_change(&self, set: &GateSet, now: Now) -> Option<Timestamp> {
        let horizon = later(now.at, HORIZON);
        let span = Span {
            start: now.at,
            end: horizon,
        };
        let each: Vec<Stretches> = (set.refs.iter())
            .map(|gate| {
                let namespace = gate.namespace.as_deref().unwrap_or_default();
                let key = Key::from_reference(namespace, None, &gate.name);
                match self.scene(&key, now.at) {
                    Some(mut scene) => ahead(&self.decide(&mut scene, now.into()), span),
                    None => Stretches::closed(span, Reason::GateMissing, "there is no such gate"),
                }
            })
            .collect();
        let gates = set.refs.iter().map(|gate| gate.name.as_str());
        let set = simulate::Set {
            require: set.require,
            gates: gates.zip(&each).collect(),
        };
        let list = simulate::together(&[set], span).list;
        let passes = |stretch: &Stretch| stretch.answer.state == State::Open;
        let is_now = passes(list.first()?);
        let other = list.iter().find(|stretch| passes(stretch) != is_now)?;
        Some(other.span.start)
    }

    /// What is decided about the gate of a scene.
    pub(crate) fn decide(&self, scene: &mut Scene, question: Question<'_>) -> Decision {
        let mut decision = scene.decide(question);
        let said = unaccepted::explain(scene.gate(), &decision.message, question.now.at);
        decision.message = said;
        if let Some(complaint) = unaccepted::complaint(scene.gate(), question.now.at) {
            let blame = force::unverified();
            for told in &mut decision.complaints {
                if *told == blame {
                    told.clone_from(&complaint);
                }
            }
        }
        reach::explain(&mut decision, &reach::uncounted(scene.gate()));
        decision
    }

    /// Whether the forces of `gate` count: if the controller has accepted the one in effect, it has
    /// verified who asked for it. A force that closes counts at once: a caller that asks too early must
    /// not see an open gate. If no force is in effect, there is nothing to verify.
    fn identity(&self, gate: &Gate, now: Timestamp) -> Identity {
        if self.trust_unverified {
            return Identity::Trusted;
        }
        let accepted = gate
            .status
            .as_ref()
            .and_then(|status| status.r#override.as_ref());
        let forces = force::read(gate, Identity::Trusted, now);
        match (forces.asked_for(now), accepted) {
            (Some(force), Some(accepted)) if is_same(force, accepted) => Identity::Verified,
            (Some(force), _) if force.state == Setting::Open => Identity::Unverified,
            (Some(_) | None, _) => Identity::Trusted,
        }
    }
}

/// The sets that were gathered.
fn asked(gathered: &Gathered) -> Vec<Asked> {
    let sets = gathered.sets();
    let asked = sets.iter().map(|set| Asked {
        require: set.require,
        gates: (set.gates.iter())
            .map(|(name, found)| ((*name).to_owned(), unasked(found)))
            .collect(),
    });
    asked.collect()
}

/// Gates that are asked together.
pub(crate) struct Asked {
    /// How their answers combine.
    pub(crate) require: Require,
    /// As `namespace/name`, with the reason why nobody can ask it.
    pub(crate) gates: Vec<(String, Option<(Reason, String)>)>,
}

/// The states of a gate in `span`, as far as its changes are known in advance.
fn ahead(decision: &Decision, span: Span) -> Stretches {
    let changes = decision.upcoming.iter().map(|it| (it.at.0, it.state));
    let states: Vec<(Timestamp, State)> = std::iter::once((span.start, decision.state))
        .chain(changes)
        .collect();
    let ends = states.iter().skip(1).map(|(at, _)| *at).chain([span.end]);
    // A gate that is open only because evidence is missing counts as closed if one gate is enough.
    let blind = decision.reason == Reason::EvidenceUnavailable.as_str();
    let stretch = |((start, state), end): (&(Timestamp, State), Timestamp)| Stretch {
        span: Span { start: *start, end },
        answer: Answer {
            state: *state,
            reason: if blind && *start == span.start {
                Reason::EvidenceUnavailable
            } else {
                Reason::Nested
            },
            decided_by: None,
        },
        causes: Vec::new(),
        unknown: false,
    };
    Stretches {
        list: states.iter().zip(ends).map(stretch).collect(),
        cut_off: None,
    }
}

fn unasked<T>(gate: &Named<T>) -> Option<(Reason, String)> {
    let opinion = gate.asked(Reason::GateMissing).err()?;
    Some((opinion.reason, gate.obstacle("gate")?))
}

/// Statuses have whole seconds.
fn is_same(force: &force::Force, accepted: &Override) -> bool {
    let second = |at: Timestamp| at.as_second();
    force.state == accepted.state
        && force.by == accepted.by
        && force.reason == accepted.reason
        && second(force.until) == second(accepted.until.0)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use sluice_crds::{GateSpec, GateStatus};

    use super::*;

    const NOW: &str = "2026-11-20T18:00:00Z";

    fn forced(accepted_by: Option<&str>) -> (Seen, Gate) {
        let now: Timestamp = NOW.parse().unwrap();
        let mut gate = Gate::new("a", GateSpec::default());
        let annotations = [
            ("sluice.dev/force", "open"),
            ("sluice.dev/force-by", "alice"),
            ("sluice.dev/force-reason", "hotfix"),
            ("sluice.dev/force-until", "2026-11-20T19:00:00.5Z"),
        ];
        let owned = annotations.map(|(name, value)| (name.to_owned(), value.to_owned()));
        gate.metadata.annotations = Some(owned.into());
        let accepted = accepted_by.map(|by| Override {
            state: Setting::Open,
            by: by.to_owned(),
            reason: "hotfix".to_owned(),
            since: Time(now),
            until: Time("2026-11-20T19:00:00Z".parse().unwrap()),
        });
        gate.status = Some(GateStatus {
            r#override: accepted,
            ..GateStatus::default()
        });
        (
            Seen {
                world: World::default(),
                notes: Vec::new(),
                trust_unverified: false,
            },
            gate,
        )
    }

    #[test]
    fn a_gate_is_not_open_by_a_force_that_nobody_has_accepted() {
        let now: Timestamp = NOW.parse().unwrap();
        for (accepted_by, expected) in [(None, State::Closed), (Some("alice"), State::Open)] {
            let (mut seen, gate) = forced(accepted_by);
            let key = Key::of(&gate.metadata);
            seen.world.gates.insert(key.clone(), gate);
            let mut scene = seen.scene(&key, now).unwrap();
            let decision = seen.decide(&mut scene, sluice_core::Now::given(now).into());
            assert_eq!(decision.state, expected, "{accepted_by:?}: {decision:?}");
        }
    }

    #[test]
    fn a_force_that_closes_counts_at_once() {
        let (seen, mut gate) = forced(None);
        if let Some(annotations) = &mut gate.metadata.annotations {
            annotations.insert("sluice.dev/force".to_owned(), "closed".to_owned());
        }
        let now = NOW.parse().unwrap();
        assert_eq!(seen.identity(&gate, now), Identity::Trusted);
    }

    #[test]
    fn a_force_counts_once_the_controller_has_accepted_that_very_one() {
        let now = NOW.parse().unwrap();
        for (accepted_by, expected) in [
            (None, Identity::Unverified),
            (Some("mallory"), Identity::Unverified),
            (Some("alice"), Identity::Verified),
        ] {
            let (seen, gate) = forced(accepted_by);
            assert_eq!(seen.identity(&gate, now), expected, "{accepted_by:?}");
        }
        let (mut seen, gate) = forced(None);
        seen.trust_unverified = true;
        assert_eq!(seen.identity(&gate, now), Identity::Trusted);
    }
}
