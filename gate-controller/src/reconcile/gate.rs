//! A look at a gate.

use jiff::Timestamp;
use kube::ResourceExt;
use sluice_core::gate::{self, Report};
use sluice_crds::{GROUP, Gate, State};

use super::{Context, Outcome};
use crate::failure;
use crate::key::{ObjectKey, Work};

mod apply;
mod gather;

/// Looks at a gate: decides it, completes the force on it, and writes what has changed. The status
/// goes onto the version that the completion came to, and speaks of the gate as it is then.
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
    let mut report = context
        .world
        .with_view(&gate, at, |view| gate::report(view, now));
    let mut version = gate.metadata.resource_version.clone();
    let mut refused = None;
    if let Some(annotations) = report.completion.take() {
        match apply::complete(context, key, &gate, annotations).await {
            Ok(completed) => version = completed,
            Err(error) if is_refusal(&error) => {
                let why = failure::of_request(&error, "patch", "gates", GROUP);
                report = context
                    .world
                    .with_view(&gate, at, |view| gate::report_uncompleted(view, now, &why));
                refused = Some(Box::new(error));
            }
            Err(error) => return Err(error),
        }
    }
    let wake = report.wake;
    apply::apply(context, key, &gate, version, report, at).await?;
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
