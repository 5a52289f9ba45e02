//! The two leaders: what each of them knows, decides and does.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use sluice_core::delivery::rollout::given::{Arrived, Measure, Name};
use sluice_core::delivery::rollout::metric::Measured;
use sluice_core::delivery::rollout::{
    Act, Answer, Report, Told, consider, hook, is_under_way, report,
};
use sluice_core::time::clock::{Now, Trust};
use sluice_core::verdict::question::Question;
use sluice_crds::gatekeeper::Range;
use sluice_crds::{Rollout, RolloutStatus};

use super::{Discipline, World};
use crate::events::{Fault, Value};
use crate::laws::{Accepted, Written, uid};
use crate::setup::GATES;

/// Whether a run is over.
pub(super) fn is_over(status: &RolloutStatus) -> bool {
    status.rolling_state.is_some() && !is_under_way(status)
}

impl World {
    pub(crate) fn read(&mut self, leader: usize) {
        self.leaders[leader].cache = self.api.clone();
        self.leaders[leader].gate = self.gate;
    }

    pub(crate) fn work(&mut self, leader: usize, often: usize) -> Result<(), String> {
        for _ in 0..often {
            self.read(leader);
            self.look(leader, Fault::No)?;
            self.tick()?;
            self.pass(1);
        }
        Ok(())
    }

    /// The first leader looks, and the controllers of workloads work, until nothing moves any more but time.
    pub(super) fn work_on(&mut self) -> Result<(), String> {
        for _ in 0..60 {
            self.read(0);
            let is_written = self.look(0, Fault::No)?;
            let before = (self.api.pods.clone(), self.api.workloads.clone());
            self.tick()?;
            self.pass(1);
            if !is_written && before == (self.api.pods.clone(), self.api.workloads.clone()) {
                return Ok(());
            }
        }
        Ok(())
    }

    fn measures(&self) -> BTreeMap<String, Measure> {
        let value = match self.metric {
            Value::Good => Some(0.0),
            Value::Bad => Some(1.0),
            Value::Missing => None,
        };
        let at = self.now + SignedDuration::from_secs(1);
        let range = Range {
            min: None,
            max: Some(0.1),
        };
        let measured = value.map(|value| Measured { value, at });
        [("errors".to_owned(), Measure { range, measured })].into()
    }

    /// What a leader decides, over a Rollout as it may be.
    pub(crate) fn decide(&self, leader: usize, object: Option<Rollout>) -> Option<Report> {
        let it = &self.leaders[leader];
        let mut cache = it.cache.clone();
        if object.is_some() {
            cache.rollout = object;
        }
        let trust = match self.is_doubted {
            true => Trust::Lost(SignedDuration::from_hours(1)),
            false => Trust::Good,
        };
        let now = Now {
            at: self.now,
            trust,
        };
        let given = cache.given(&it.arrived, &self.measures(), now)?;
        let considered = consider(&given);
        let answer = considered.question.as_ref().map(|question| {
            let gates = GATES[usize::from(it.gate)].clone();
            let asked = Question::from(given.now);
            let decision = gates.decide(question.subject.clone(), asked);
            Answer::Told(Box::new(Told { gates, decision }))
        });
        Some(report(
            &given,
            &considered,
            &answer.unwrap_or(Answer::NotAsked),
        ))
    }

    /// A look. Returns whether it wrote anything.
    pub(crate) fn look(&mut self, leader: usize, fault: Fault) -> Result<bool, String> {
        let Some(report) = self.decide(leader, None) else {
            return Ok(false);
        };
        let seen = self.leaders[leader].cache.rollout.clone().unwrap();
        if report.changed && self.acts_early(&seen, &report.status) {
            let mut next = seen.clone();
            next.status = Some(report.status.clone());
            let early = self.decide(leader, Some(next.clone()));
            for act in early.into_iter().flat_map(|it| it.report.acts) {
                self.act(leader, &next, &act)?;
            }
        }
        if report.changed {
            let is_sent = fault != Fault::Conflict;
            let is_accepted = is_sent && self.write(leader, &seen, &report.status)?;
            if !is_accepted || fault == Fault::Lost {
                return Ok(true);
            }
            self.leaders[leader].cache.rollout = self.api.rollout.clone();
        }
        for (place, act) in report.acts.iter().enumerate() {
            if fault == Fault::Killed(place.try_into().unwrap()) {
                self.leaders[leader].arrived.clear();
                break;
            }
            if !self.act(leader, &seen, act)? {
                break;
            }
        }
        Ok(report.changed || !report.acts.is_empty())
    }

    /// Whether a leader does what follows from a status before that is accepted.
    fn acts_early(&self, seen: &Rollout, status: &RolloutStatus) -> bool {
        let known = seen.status.as_ref().and_then(|it| it.run.as_ref());
        match self.discipline {
            Discipline::StatusFirst => false,
            Discipline::ActsFirst => known == status.run.as_ref(),
            Discipline::ClaimsEarly => known != status.run.as_ref(),
        }
    }

    /// Writes the status. Returns whether the API server has accepted it.
    fn write(
        &mut self,
        leader: usize,
        seen: &Rollout,
        status: &RolloutStatus,
    ) -> Result<bool, String> {
        if self.api.write_status(seen, status.clone()).is_err() {
            return Ok(false);
        }
        let it = &self.leaders[leader];
        let ends = status.run.is_none() || is_over(status);
        let is_gone = |of: &Name| uid(&it.cache, of) != uid(&self.api, of);
        // A run ends by what was known of it, and meanwhile somebody has deleted a workload.
        self.ledger.is_left_short |= ends && self.setup.workloads().iter().any(is_gone);
        // It is deleted before another run has begun: nobody settles the one that is lost.
        let goes = seen.metadata.deletion_timestamp.is_some();
        self.ledger.is_left_short |= goes && self.ledger.is_lost;
        let accepted = Accepted {
            setup: self.setup,
            cache: &it.cache,
            status,
            is_open: it.gate,
            is_doubted: self.is_doubted,
        };
        self.ledger.accepts(&accepted).map(|()| true)
    }

    /// Carries out an act. Returns whether the API server has accepted it.
    fn act(&mut self, leader: usize, seen: &Rollout, act: &Act) -> Result<bool, String> {
        if let Act::Call(call) = act {
            self.leaders[leader].arrived.push(Arrived {
                key: call.key.clone(),
                attempt: call.attempt,
                answer: hook::Answer::Status(self.hook),
                error: None,
                at: self.now,
            });
            return Ok(true);
        }
        let before = self.api.clone();
        let uid = |object: &Rollout| object.metadata.uid.clone();
        // The finalizer is written onto this object, and no other of its name.
        let is_another = self.api.rollout.as_ref().map(uid) != Some(uid(seen));
        let is_refused = is_another && matches!(act, Act::Finalize(_));
        if is_refused || self.api.act(act).is_err() {
            return Ok(false);
        }
        self.ledger.acts(&Written {
            setup: self.setup,
            seen,
            cache: &self.leaders[leader].cache,
            before: &before,
            after: &self.api,
            act,
            is_open: self.leaders[leader].gate,
        })?;
        self.judge()?;
        Ok(true)
    }
}
