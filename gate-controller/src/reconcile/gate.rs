//! A look at a gate.

use jiff::Timestamp;
use kube::ResourceExt;
use sluice_core::gate::{self, Report};
use sluice_crds::{Gate, State};

use super::{Context, Outcome};
use crate::key::{ObjectKey, Work};

mod apply;
mod gather;

/// Looks at a gate: decides it, and writes what has changed.
pub(super) async fn look(context: &Context, key: &ObjectKey) -> Result<Outcome, kube::Error> {
    let Some(gate) = gather::gather(context, key) else {
        context.written.forget(&Work::Gate(key.clone()));
        return Ok(Outcome::Gone);
    };
    if !context.shard.holds(gate.labels()) {
        return Ok(Outcome::NotOurs);
    }
    let at = context.clock.now();
    let now = context.world.now(at);
    let report = context
        .world
        .with_view(&gate, at, |view| gate::report(view, now));
    let wake = report.wake;
    apply::apply(context, key, &gate, report, at).await?;
    Ok(Outcome::Wake(wake))
}

/// What a gate said before, and when it was foretold to change.
struct Before<'a> {
    state: Option<State>,
    reason: Option<&'a str>,
    foretold: Option<Timestamp>,
}

impl<'a> Before<'a> {
    fn of(gate: &'a Gate) -> Self {
        let status = gate.status.as_ref();
        let upcoming = status.and_then(|status| status.upcoming.first());
        Self {
            state: status.and_then(|status| status.state),
            reason: status.and_then(|status| status.reason.as_deref()),
            foretold: upcoming.map(|change| change.at.0),
        }
    }

    /// Whether the report says anything else than the status did.
    fn differs(&self, report: &Report) -> bool {
        self.state != Some(report.answer.state) || self.reason != report.status.reason.as_deref()
    }
}
