//! What has to hold: how promotions begin, and that everything arrives when the faults end.

use jiff::SignedDuration;
use sluice_core::delivery::pipeline::{Report, Sight};
use sluice_crds::pipeline::{EnvironmentState, Phase, PromotionRecord};

use super::setup::NAMES;
use super::{Cache, World};
use crate::forge::Opened;

impl World {
    /// The faults end, the gates open, people say yes: every environment arrives at a new revision.
    pub(crate) fn arrives(mut self) -> Result<(), String> {
        self.present.gates = [true; 3];
        // A replica that does not lead any more calls nobody.
        self.crash(1);
        for place in 0..3 {
            if let Sight::Unknown(_) = self.present.apps[place] {
                self.runs(place, "1.0.0", "True");
            }
        }
        self.runs(0, "2.0.0", "True");
        for _ in 0..60 {
            self.now += SignedDuration::from_secs(600);
            self.look(0, 0, u8::MAX, u8::MAX)?;
            self.approve(u8::MAX);
            for leader in 0..2 {
                self.run_errand(leader, 100)?;
            }
            for pick in 0..self.present.pull_requests.len() {
                self.act_for_pull_request(pick, u8::MAX)?;
            }
            for (place, name) in NAMES.iter().enumerate().skip(1) {
                let is_wanted = |it: &Opened| it.about.revision.as_deref() == Some("2.0.0");
                if self.forge.open_of(name).is_some_and(|it| is_wanted(it)) {
                    self.person(place, 1)?;
                }
                self.apply(place);
            }
            let status = self.present.object.status.as_ref();
            let run = status.and_then(|status| status.run.as_ref());
            if run
                .is_some_and(|run| run.revision == "2.0.0" && run.state == EnvironmentState::Passed)
            {
                return Ok(());
            }
        }
        Err(format!(
            "not everything arrives: {:#?}, {:#?}",
            self.present.object.status, self.forge
        ))
    }

    /// Nothing is begun over a gate that is seen closed or a target that is not known, and no revision but
    /// the one that the environments before run healthily. With the algorithm `pairwise` the one before
    /// counts, and with `run` all of them.
    pub(super) fn begins_rightly(&self, cache: &Cache, report: &Report) -> Result<(), String> {
        let before = cache.object.status.as_ref();
        for (place, name) in NAMES.iter().enumerate().skip(1) {
            let before = before.and_then(|status| status.environments.get(*name));
            let before = before.and_then(|it| it.promotion.as_ref());
            let after = &report.status.environments[*name];
            let Some(record) = &after.promotion else {
                continue;
            };
            if !is_begun(record) || was_begun(before, record) {
                continue;
            }
            if !cache.gates[place] {
                return Err(format!("begun over a closed gate: {record:?}"));
            }
            if let Sight::Unknown(_) = cache.apps[place] {
                return Err(format!("begun over an unknown target: {record:?}"));
            }
            let first = if self.setup.pairwise { place - 1 } else { 0 };
            for earlier in &NAMES[first..place] {
                let target = &report.status.environments[*earlier].targets[0];
                if !target.ready || target.revision.as_ref() != Some(&record.revision) {
                    return Err(format!(
                        "begun before {earlier} runs it: {record:?}, {target:?}"
                    ));
                }
            }
        }
        Ok(())
    }
}

/// Whether a record says that something has been begun.
fn is_begun(record: &PromotionRecord) -> bool {
    record.phase == Phase::Attempting
        || (record.phase == Phase::Succeeded && record.reason.as_deref() == Some("Admitted"))
}

/// Whether the same was begun before.
fn was_begun(before: Option<&PromotionRecord>, record: &PromotionRecord) -> bool {
    before.is_some_and(|it| {
        it.key == record.key && !matches!(it.phase, Phase::Unapproved | Phase::Unattempted)
    })
}
