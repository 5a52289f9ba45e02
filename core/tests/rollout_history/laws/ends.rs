//! The laws about how a history ends, once everything is well.

use serde_json::Value;
use sluice_core::delivery::rollout::claim::Claim;
use sluice_core::delivery::rollout::given::Name;
use sluice_crds::rollout::{Held, Mode, Outcome};
use sluice_crds::{Rollout, RolloutStatus};

use super::Reached;
use crate::cluster::image_of;
use crate::events::Fault;
use crate::setup::target;
use crate::world::World;

impl World {
    /// How the rollout ends, or what it should have told.
    pub(crate) fn end(&self) -> Result<Reached, String> {
        let Some(Rollout { status, .. }) = &self.api.rollout else {
            return Ok(Reached::Gone);
        };
        let status = status.clone().unwrap_or_default();
        let state = status.rolling_state.map_or("nothing", |it| it.as_str());
        let told = |type_, reason: &str| is_told(&status, type_, reason);
        let end = match (state, &status.outcome, &status.held) {
            ("rolloutSucceed", _, None) => {
                let is_so = told("Ready", "RolloutSucceeded") && self.is_out();
                is_so.then_some(Reached::Succeeded)
            }
            ("rolloutFailed", Some(outcome), None) => {
                let is_so = told("Stalled", &outcome.reason) && self.may_fail(outcome);
                is_so.then_some(Reached::Failed)
            }
            ("rolloutSucceed" | "rolloutFailed", ..) | (_, _, None) => None,
            (_, _, Some(held)) => {
                let holds = self.holds(&status, held);
                holds.filter(|_| told("Stalled", &held.reason))
            }
        };
        end.ok_or_else(|| format!("(f) that is no end: {state} {status:#?}"))
    }

    /// Whether the new version is out, unless others have written sizes or have deleted a workload since: then it is not
    /// known how many pods there were.
    fn is_out(&self) -> bool {
        let (setup, target) = (self.setup, target(self.setup));
        let ledger = &self.ledger;
        if ledger.foreign > 0 || ledger.removed.is_some() {
            return true;
        }
        if setup.is_in_place() {
            let image = image_of(&self.api.workloads[&target]);
            return self.api.pods[&target].iter().all(|pod| pod.image == image);
        }
        let mut sources = setup.sources().into_iter();
        self.api.replicas(&target) == setup.total()
            && sources.all(|(of, _)| self.api.replicas(&of) == 0)
    }

    /// What holds a rollout for which everything is well: only what others have done, or that the same has ended
    /// before. Everybody who looks at the workloads sees it.
    fn holds(&self, status: &RolloutStatus, held: &Held) -> Option<Reached> {
        let mut all = self.api.workloads.iter();
        match held.reason.as_str() {
            "FieldOverwritten" => {
                let is_so = all.any(|(of, workload)| self.is_overwritten(status, of, workload));
                is_so.then_some(Reached::HeldByOthers)
            }
            "RunEnded" => {
                let ended = |workload| Claim::of(workload)?.ended;
                let is_so = all.any(|(_, workload)| ended(workload).is_some());
                is_so.then_some(Reached::HeldByAnEnd)
            }
            _ => None,
        }
    }

    /// Whether a workload has neither what a run has written nor what it has found.
    fn is_overwritten(&self, status: &RolloutStatus, of: &Name, workload: &Value) -> bool {
        let records = status.run.iter().flat_map(|run| &run.workloads);
        let mut records = records.filter(|it| it.r#ref.name == of.name);
        let is_target = *of == target(self.setup);
        let found = records
            .next()
            .map(|it| if is_target { it.was } else { it.start });
        let wrote = Claim::of(workload).and_then(|claim| claim.wrote.replicas);
        // One that is not claimed yet, or is updated in place, keeps what it had.
        let is_updated = status.run.as_ref().map(|run| run.mode) == Some(Mode::Update);
        let keeps = wrote.is_none() || is_updated;
        let size = found.filter(|_| keeps).or(wrote);
        size.is_some_and(|size| workload["spec"]["replicas"] != size)
    }

    /// Whether a rollout may have failed by this.
    fn may_fail(&self, Outcome { reason, .. }: &Outcome) -> bool {
        match reason.as_str() {
            "ProgressDeadlineExceeded" => true,
            "HookVetoed" => self.setup.hooks && self.ledger.is_vetoed,
            "WorkloadGone" | "WorkloadMissing" => self.ledger.removed.is_some(),
            // The plan has fitted what was there, and somebody has changed that, or has asked for another run.
            "InvalidSpec" => {
                self.ledger.foreign > 0 || self.ledger.removed.is_some() || self.is_asked_again()
            }
            _ => false,
        }
    }

    /// In the end there are as many pods as there were, whatever has become of the rollout.
    pub(crate) fn nobody_is_short(&self) -> Result<(), String> {
        let setup = self.setup;
        let ledger = &self.ledger;
        let is_gone = setup.sources == 0 && !self.api.workloads.contains_key(&target(setup));
        let is_excused = ledger.is_left_short || is_gone;
        if ledger.foreign > 0 || is_excused {
            return Ok(());
        }
        let all = setup.workloads().into_iter();
        let available: usize = all.map(|of| self.api.available(&of)).sum();
        let least = setup.least();
        match (available as u64) < least {
            true => Err(format!(
                "(a) in the end {available} of {least} pods are left"
            )),
            false => Ok(()),
        }
    }

    /// Nothing is written any more.
    pub(crate) fn rests(&mut self) -> Result<(), String> {
        self.read(0);
        match self.look(0, Fault::No)? {
            true => Err(format!(
                "(g) a second look writes: {:#?}",
                self.decide(0, None)
            )),
            false => Ok(()),
        }
    }
}

/// Whether a condition says this, in a word and in a sentence.
fn is_told(status: &RolloutStatus, type_: &str, reason: &str) -> bool {
    status.conditions.iter().any(|it| {
        let says = (it.type_.as_str(), it.status.as_str(), it.reason.as_str());
        says == (type_, "True", reason) && !it.message.is_empty()
    })
}
