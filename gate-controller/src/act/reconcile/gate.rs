//! A look at a gate.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kube::ResourceExt;
use sluice_core::gate::{self, Report};
use sluice_crds::{GROUP, Gate, State};

use super::{Context, Outcome};
use crate::cluster::failure;
use crate::cluster::key::{ObjectKey, Work};

mod apply;
mod gather;
mod record;

/// Looks at a gate: decides it, and writes what has changed.
pub(super) async fn look(context: &Context, key: &ObjectKey) -> Result<Outcome, kube::Error> {
    let Some(gate) = gather::gather(context, key) else {
        return Ok(gone(context, key));
    };
    if !context.shard.holds(gate.labels()) {
        return Ok(Outcome::NotOurs);
    }
    let at = context.clock.now();
    if let Some(waits) = context.waits(at) {
        return Ok(waits);
    }
    let mut report = decide(context, &gate, at);
    match report.completion.take() {
        None => {
            let wake = report.wake;
            apply::apply(context, key, &gate, report, at).await?;
            Ok(Outcome::Wake(wake))
        }
        Some(completion) => accept(context, key, gate, report, completion, at).await,
    }
}

fn decide(context: &Context, gate: &Gate, at: Timestamp) -> Report {
    let now = context.world.now(at);
    context
        .world
        .with_view(gate, at, |view| gate::report(view, now))
}

fn gone(context: &Context, key: &ObjectKey) -> Outcome {
    context.written.forget(&Work::Gate(key.clone()));
    Outcome::Gone
}

/// Completes the force on a gate, and says so in its status. One that opens the gate counts only
/// once that is done. One that closes it counts at once, and whoever closed it waits to read it:
/// so this news goes first.
async fn accept(
    context: &Context,
    key: &ObjectKey,
    mut gate: Gate,
    report: Report,
    mut completion: BTreeMap<String, String>,
    at: Timestamp,
) -> Result<Outcome, kube::Error> {
    if report.answer.state == State::Closed && Before::of(&gate).differs(&report) {
        apply::apply(context, key, &gate, report, at).await?;
        gate = match gather::gather(context, key) {
            Some(written) => written,
            None => return Ok(gone(context, key)),
        };
        // Perhaps somebody has changed or ended the force meanwhile: it must not come back.
        let mut report = decide(context, &gate, at);
        let Some(still) = report.completion.take() else {
            let wake = report.wake;
            apply::apply(context, key, &gate, report, at).await?;
            return Ok(Outcome::Wake(wake));
        };
        completion = still;
    }
    let refused = match apply::complete(context, key, &gate, completion).await {
        Ok(()) => None,
        Err(error) if is_refusal(&error) => Some(Box::new(error)),
        Err(error) => return Err(error),
    };
    let Some(gate) = gather::gather(context, key) else {
        return Ok(gone(context, key));
    };
    let report = match &refused {
        None => decide(context, &gate, at),
        Some(error) => {
            let (why, now) = (
                failure::of_request(error, "patch", "gates", GROUP),
                context.world.now(at),
            );
            context
                .world
                .with_view(&gate, at, |view| gate::report_uncompleted(view, now, &why))
        }
    };
    let wake = report.wake;
    apply::apply(context, key, &gate, report, at).await?;
    Ok(match refused {
        None => Outcome::Wake(wake),
        Some(error) => Outcome::Unfinished { error, wake },
    })
}

/// Whether the API server has answered, and refuses. If it did not answer, nobody knows what has
/// become of the request; and if the gate is gone or another by now, that is no news of the force.
fn is_refusal(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(_))
        && !failure::is_gone(error)
        && !failure::is_overtaken(error)
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
