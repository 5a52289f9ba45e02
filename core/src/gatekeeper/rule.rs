//! What the spec of a gatekeeper comes to, kind by kind.

use sluice_crds::GatekeeperSpec;
use sluice_crds::gatekeeper::Kind;

use super::revisions::Revisions;
use super::schedule::{Fault, Schedule};
use super::{approval, http, manual, metric, objects};
use crate::gate::nested;
use crate::text::refusal::{Refusal, Refusals};
use crate::time::timeline::Timeline;

/// What a spec comes to.
#[derive(Clone, Debug)]
pub(super) enum Rule {
    Schedule {
        schedule: Box<Schedule>,
        timeline: Result<Timeline, Fault>,
    },
    Manual,
    Revisions(Revisions),
    Metric(Box<metric::Rule>),
    Objects(Box<objects::Rule>),
    Http(Box<http::Rule>),
    Approval(approval::Approvals),
    External,
    Gates,
}

impl Rule {
    /// Reads a spec. `timeline` is made of its windows, if it has any.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub(super) fn read(
        spec: &GatekeeperSpec,
        timeline: impl FnOnce(&Schedule) -> Result<Timeline, Fault>,
    ) -> Result<Self, Refusals> {
        match kind(spec)? {
            Kind::Schedule(schedule) => {
                let schedule = Schedule::read(schedule, "spec.schedule")?;
                let schedule = Box::new(schedule.on_error(spec.on_error.into()));
                let timeline = timeline(&schedule);
                Ok(Self::Schedule { schedule, timeline })
            }
            Kind::Manual(_) => Ok(Self::Manual),
            Kind::Revisions(spec) => Revisions::read(spec, "spec.revisions").map(Self::Revisions),
            Kind::Metric(spec) => {
                metric::read(spec, "spec.metric").map(|rule| Self::Metric(Box::new(rule)))
            }
            Kind::Objects(spec) => {
                objects::Rule::read(spec, "spec.objects").map(|rule| Self::Objects(Box::new(rule)))
            }
            Kind::Http(spec) => {
                http::read(spec, "spec.http").map(|rule| Self::Http(Box::new(rule)))
            }
            Kind::Approval(spec) => {
                approval::Approvals::read(spec, "spec.approval").map(Self::Approval)
            }
            Kind::External(_) => Ok(Self::External),
            Kind::Gates(spec) => nested::check(spec, "spec.gates").map(|()| Self::Gates),
        }
    }
}

/// Everything that is wrong with a spec, whether or not admission would have refused it.
///
/// # Errors
/// The mistakes.
pub fn check(spec: &GatekeeperSpec) -> Result<(), Refusals> {
    match kind(spec)? {
        Kind::Schedule(spec) => Schedule::read(spec, "spec.schedule").map(|_| ()),
        Kind::Manual(spec) => manual::check(spec).map_err(Refusals::from),
        Kind::Revisions(spec) => Revisions::read(spec, "spec.revisions").map(|_| ()),
        Kind::Metric(spec) => metric::read(spec, "spec.metric").map(drop),
        Kind::Objects(spec) => objects::Rule::read(spec, "spec.objects").map(drop),
        Kind::Http(spec) => http::read(spec, "spec.http").map(drop),
        Kind::Approval(spec) => approval::Approvals::read(spec, "spec.approval").map(|_| ()),
        Kind::Gates(spec) => nested::check(spec, "spec.gates"),
        Kind::External(_) => Ok(()),
    }
}

fn kind(spec: &GatekeeperSpec) -> Result<Kind<'_>, Refusals> {
    spec.kind().map_err(|_| {
        Refusals::from(Refusal::new(
            "spec",
            "a Gatekeeper has exactly one kind",
            format!("write one of {}", sluice_crds::gatekeeper::KINDS.join(", ")),
        ))
    })
}
