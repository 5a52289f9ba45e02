//! The two leaders: what each of them decides, what becomes of its status, and what it does then.

use std::sync::Arc;

use sluice_core::Now;
use sluice_core::delivery::pipeline::{
    Act, Errand, Given, Outcome, Report, ReportSight, Surroundings, Votes, awaited, consider,
    report,
};
use sluice_crds::pipeline::{Phase, StrategyKind};
use sluice_crds::{Decision, Pipeline, PullRequest};

use super::errands::Sending;
use super::setup::GATES;
use super::{Cache, Discipline, World};

impl World {
    /// A look of a leader, over a cache of some age. `crash`: after so many acts the process is killed.
    pub(super) fn look(
        &mut self,
        leader: usize,
        age: usize,
        crash: u8,
        lost: u8,
    ) -> Result<(), String> {
        let cache = match age {
            0 => self.present.clone(),
            age => self
                .past
                .iter()
                .rev()
                .nth(age - 1)
                .unwrap_or(&self.present)
                .clone(),
        };
        let report = self.decide(&cache, leader)?;
        let is_current =
            cache.object.metadata.resource_version == self.present.object.metadata.resource_version;
        if report.changed && is_current {
            let mut object = (*self.present.object).clone();
            if object.status.as_ref() != Some(&report.status) {
                self.version += 1;
                object.metadata.resource_version = Some(self.version.to_string());
                object.status = Some(report.status);
                self.intends(&object);
                self.change(|present| present.object = Arc::new(object));
            }
        }
        let accepted = report.changed && is_current;
        // The answer of the API server may be lost although it has accepted the status.
        let is_known = accepted && lost >= 16;
        if is_known {
            self.forget_errands(leader);
        }
        if is_known || self.discipline == Discipline::ActsFirst {
            for (place, act) in report.acts.into_iter().enumerate() {
                if place == usize::from(crash) {
                    self.crash(leader);
                    break;
                }
                self.carry_out(leader, act)?;
            }
        }
        Ok(())
    }

    /// What a status that was accepted says is begun.
    fn intends(&mut self, object: &Pipeline) {
        let environments = object.status.iter().flat_map(|it| it.environments.values());
        let records = environments.filter_map(|it| it.promotion.as_ref());
        let begun =
            records.filter(|it| !matches!(it.phase, Phase::Unapproved | Phase::Unattempted));
        self.intents.extend(begun.map(|it| it.key.clone()));
    }

    /// What its accepted status does not wait for is stopped and forgotten.
    fn forget_errands(&mut self, leader: usize) {
        let object = &self.present.object;
        let version = object.metadata.resource_version.as_ref();
        let awaited = object.status.as_ref().map(awaited).unwrap_or_default();
        self.leaders[leader].retain(|errand, _| match errand {
            Errand::Recall(_, asked) => Some(asked) == version,
            Errand::Try(..) => awaited.contains(errand),
        });
    }

    fn decide(&self, cache: &Cache, leader: usize) -> Result<Report, String> {
        let environments = (0..3).map(|place| Surroundings {
            targets: vec![cache.apps[place].clone()],
            gates: GATES[usize::from(cache.gates[place])].clone(),
            depends_on: Vec::new(),
            reports: reports(cache, place),
        });
        let given = Given {
            object: Arc::clone(&cache.object),
            checked: Ok(Arc::clone(&self.checked)),
            environments: environments.collect(),
            pull_requests: cache.pull_requests.clone(),
            votes: Votes {
                all: cache.votes.clone(),
                verified: true,
            },
            errands: self.leaders[leader].clone(),
            clusters: Vec::new(),
            now: Now::given(self.now),
        };
        let considered = consider(given);
        let decisions: Vec<Decision> = (considered.asked().iter())
            .map(|asked| asked.decision.clone())
            .collect();
        let report = report(considered, &decisions);
        self.begins_rightly(cache, &report)?;
        Ok(report)
    }

    fn carry_out(&mut self, leader: usize, act: Act) -> Result<(), String> {
        match act {
            Act::Create(object) => self.change(|present| {
                let name = &object.metadata.name;
                if !present
                    .pull_requests
                    .iter()
                    .any(|it| it.metadata.name == *name)
                {
                    present.pull_requests.push(Arc::from(object));
                }
            }),
            Act::Change {
                before,
                suspend,
                close,
            } => self.change(|present| {
                let mut all = present.pull_requests.iter_mut();
                if let Some(found) = all.find(|it| it.metadata.name == before.metadata.name) {
                    let mut object = (**found).clone();
                    (object.spec.suspend, object.spec.close) = (suspend, close);
                    *found = Arc::new(object);
                }
            }),
            Act::Delete(before) => self.change(|present| {
                let is_other = |it: &Arc<PullRequest>| it.metadata.name != before.metadata.name;
                present.pull_requests.retain(is_other);
            }),
            Act::LookAt(_) => {}
            // It has no labels.
            Act::Belong { before, owners, .. } => self.change(|present| {
                let mut all = present.pull_requests.iter_mut();
                if let Some(found) = all.find(|it| it.metadata.name == before.metadata.name) {
                    let mut object = (**found).clone();
                    object.metadata.owner_references = owners;
                    *found = Arc::new(object);
                }
            }),
            Act::Recall(recall) => {
                self.leaders[leader]
                    .entry(recall.errand)
                    .or_insert(Outcome::UnderWay);
            }
            Act::Notify(notice) => {
                let sending = Sending {
                    environment: notice.environment,
                    revision: notice.revision,
                    is_report: false,
                    sent: 0,
                    lost: 0,
                };
                return self.begin(leader, notice.errand, sending);
            }
            Act::Admit(admission) => {
                let sending = Sending {
                    environment: admission.environment,
                    revision: admission.revision,
                    is_report: true,
                    sent: 0,
                    lost: 0,
                };
                return self.begin(leader, admission.errand, sending);
            }
        }
        Ok(())
    }
}

/// What the gatekeeper of an environment says, if one is to be told.
fn reports(cache: &Cache, place: usize) -> Vec<ReportSight> {
    let spec = &cache.object.spec;
    let promotion = spec.promotion_of(&spec.environments[place]);
    let strategy = promotion.and_then(|it| it.strategy.kind());
    let is_told =
        matches!(strategy, Some(StrategyKind::Admission(it)) if it.gatekeeper_ref.is_some());
    let said = match &cache.reports[place] {
        Some(revision) => ReportSight::Says(revision.clone()),
        None => ReportSight::Nothing,
    };
    is_told.then_some(said).into_iter().collect()
}
