//! One gate with everything that it names, ready to be asked about one instant after another.

use std::collections::BTreeSet;

use jiff::Timestamp;
use sluice_crds::gate::{GatekeeperVerdict, Override};
use sluice_crds::{Gate, State, Transition};

use super::sources::Seen;
use super::{Key, World};
use crate::gate::nested::{self, Gathered, Said};
use crate::gate::{self, Answer, Identity, View, force};
use crate::gatekeeper::Keeper;
use crate::time::span::Span;
use crate::verdict::question::Question;

/// A gate with everything that it names.
#[derive(Clone, Debug)]
pub struct Scene {
    gate: Gate,
    gathered: Gathered,
    identity: Identity,
}

/// What is decided about a gate at an instant.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// The gate.
    pub gate: Key,
    /// The instant.
    pub at: Timestamp,
    /// Open or closed.
    pub state: State,
    /// Why, in one word of a fixed vocabulary.
    pub reason: String,
    /// Why, in a sentence.
    pub message: String,
    /// The gatekeeper that decided. None: no gatekeeper did.
    pub decided_by: Option<String>,
    /// What each gatekeeper says, in the order of the spec.
    pub verdicts: Vec<GatekeeperVerdict>,
    /// The same with when that changes, and the gates behind each.
    pub said: Vec<Said>,
    /// The force in effect, if any.
    pub r#override: Option<Override>,
    /// What is wrong with the annotations that force the gate.
    pub complaints: Vec<crate::text::refusal::Refusal>,
    /// The next real changes that are known ahead: at most 8, within 90 days.
    pub upcoming: Vec<Transition>,
    /// When anything of this may change by time. None: nothing does.
    pub wake: Option<Timestamp>,
}

impl Scene {
    /// The gate of that name, seen from `from` on: an annotation that forces it without having
    /// been seen before is taken to be seen then.
    ///
    /// None: there is no such gate.
    pub fn new(world: &World, gate: &Key, identity: Identity, from: Timestamp) -> Option<Self> {
        let seen = Seen {
            world,
            identity,
            from,
        };
        let gate = seen.complete(world.gate(gate)?);
        let gathered = nested::gather(&seen, &gate, from);
        Some(Self {
            gate,
            gathered,
            identity,
        })
    }

    /// The gate.
    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Its gatekeepers, in the order of its spec. None: there is none of that name.
    pub fn keepers(&self) -> impl Iterator<Item = Option<&Keeper>> {
        self.gathered.keepers()
    }

    /// What is decided about a revision, or about any, at an instant.
    pub fn decide<'q>(&mut self, question: impl Into<Question<'q>>) -> Decision {
        let question = question.into();
        let now = question.now;
        self.gathered = self.gathered.with_keepers(&|keeper| {
            Keeper::new(keeper.object().clone(), keeper.evidence().clone(), now.at)
        });
        let told = gate::told(&self.view(), question);
        let name = |place: usize| Some(told.verdicts.get(place)?.gatekeeper.clone());
        Decision {
            gate: Key::of(&self.gate.metadata),
            at: now.at,
            state: told.answer.state,
            reason: told.answer.reason.as_str().to_owned(),
            decided_by: told.answer.decided_by.and_then(name),
            message: told.message,
            said: self.gathered.said(&told.verdicts, question),
            verdicts: told.verdicts,
            r#override: told.r#override,
            complaints: self.complaints(now.at),
            upcoming: told.upcoming,
            wake: told.wake,
        }
    }

    /// Whether the gate is open.
    pub(super) fn answer(&self, question: Question<'_>) -> Answer {
        gate::answer(&self.view(), question)
    }

    /// The earliest instant after the question's at which the answer, or the cause of it, may
    /// change.
    pub(super) fn boundary(&self, question: Question<'_>) -> Option<Timestamp> {
        let forces = force::read(&self.gate, self.identity, question.now.at);
        gate::until(&self.view(), &forces, question)
    }

    /// What is wrong with the annotations that force the gate, at an instant.
    pub fn complaints(&self, at: Timestamp) -> Vec<crate::text::refusal::Refusal> {
        force::read(&self.gate, self.identity, at).complaints
    }

    /// The time zones in which the windows of the gate, and of every gate behind it, are written.
    pub fn time_zones(&self) -> BTreeSet<&str> {
        let gatekeepers = self.gathered.gatekeepers().into_iter();
        let schedules = gatekeepers.filter_map(|it| it.spec.schedule.as_ref());
        schedules.map(|it| it.time_zone.as_str()).collect()
    }

    pub(super) fn forced(&self, at: Timestamp) -> Option<force::Force> {
        force::read(&self.gate, self.identity, at)
            .in_effect(at)
            .cloned()
    }

    fn view(&self) -> View<'_> {
        self.gathered.view(&self.gate)
    }

    /// Gatekeepers answer quickly for what they are made ready for: moves them along.
    pub(super) fn make_ready_for(&mut self, span: Span) {
        self.gathered = self.gathered.with_keepers(&|keeper| {
            Keeper::through(keeper.object().clone(), keeper.evidence().clone(), span)
        });
    }
}
