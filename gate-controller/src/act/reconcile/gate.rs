//! A look at a gate.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use sluice_core::gate::{self, Report, force};
use sluice_crds::{GROUP, Gate, State};

use super::{Context, Outcome, Reconciled, urgency};
use crate::cluster::failure;
use crate::cluster::key::{ObjectKey, Work};
use crate::cluster::kind::{Kind, Urgency};
use crate::observe::cache::{Cache, Change, Seen};
use crate::observe::world::World;

mod apply;
mod record;

impl Reconciled for Gate {
    const KIND: Kind = Kind::Gate;
    const MANAGER: &'static str = "gate-controller-gates";

    fn cache(world: &World) -> &Cache<Self> {
        &world.gates
    }

    fn interests(&self, key: &ObjectKey) -> Vec<Work> {
        let named = self.spec.gatekeepers.iter();
        let named = named.map(|it| key.naming(it.namespace.as_deref(), &it.name));
        named.map(|key| Work::own(Kind::Gatekeeper, key)).collect()
    }

    /// Every change matters except one of the status alone: gates are decided without it.
    fn may_matter(change: &Change<'_, Self>) -> bool {
        let asks = |gate: &Gate| {
            let metadata = &gate.metadata;
            // Flux writes the name of the object that applies it into the labels, and a gated source
            // reports that.
            (metadata.annotations.clone(), metadata.labels.clone())
        };
        change.is_respecified() || change.differs(asks)
    }

    /// A person waits where somebody has changed what the gate asks for, in its spec or by annotations. A
    /// gate that appears is one of many at the start, and waits for its turn unless it is forced.
    fn urgency(change: &Change<'_, Self>) -> Urgency {
        let Some(now) = change.now.and_then(Seen::object) else {
            return urgency(Self::KIND);
        };
        let is_touched = match change.before.and_then(Seen::object) {
            None => force::is_asked_for(now),
            Some(before) => {
                let (before, now) = (&before.metadata, &now.metadata);
                before.generation != now.generation || before.annotations != now.annotations
            }
        };
        match is_touched {
            true => Urgency::Person,
            false => urgency(Self::KIND),
        }
    }

    async fn look(
        context: &Context,
        key: &ObjectKey,
        gate: Arc<Self>,
        at: Timestamp,
    ) -> Result<Outcome, kube::Error> {
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
}

fn decide(context: &Context, gate: &Gate, at: Timestamp) -> Report {
    let now = context.world.now(at);
    context
        .world
        .with_view(gate, at, |view| gate::report(view, now))
}

/// The gate as it is now. None: it is gone, or this version cannot read it.
fn newest(context: &Context, key: &ObjectKey) -> Option<Arc<Gate>> {
    let seen = context.world.gates.get(key.borrowed())?;
    seen.object().cloned()
}

/// Completes the force on a gate, and reports it in its status. A force that opens the gate counts only
/// once that is done. A force that closes it counts at once, and the person who closed it waits to read
/// that: so this status is written first.
async fn accept(
    context: &Context,
    key: &ObjectKey,
    mut gate: Arc<Gate>,
    report: Report,
    mut completion: BTreeMap<String, String>,
    at: Timestamp,
) -> Result<Outcome, kube::Error> {
    if report.answer.state == State::Closed && Before::of(&gate).differs(&report) {
        apply::apply(context, key, &gate, report, at).await?;
        gate = match newest(context, key) {
            Some(written) => written,
            None => return Ok(Outcome::Gone),
        };
        // Somebody may have changed or ended the force since then: it must not come back.
        let mut report = decide(context, &gate, at);
        let Some(still) = report.completion.take() else {
            let wake = report.wake;
            apply::apply(context, key, &gate, report, at).await?;
            return Ok(Outcome::Wake(wake));
        };
        completion = still;
    }
    let refused = match apply::complete(context, &gate, completion).await {
        Ok(()) => None,
        Err(error) if is_refusal(&error) => Some(Box::new(error)),
        Err(error) => return Err(error),
    };
    let Some(gate) = newest(context, key) else {
        return Ok(Outcome::Gone);
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

/// Whether the API server has answered, and refuses. If it did not answer, it is not known what happened
/// to the request. If the gate is gone or was replaced, that says nothing about the force.
fn is_refusal(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(_))
        && !failure::is_gone(error)
        && !failure::is_overtaken(error)
}

/// What a gate said before, and the instant at which its status announced a change.
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

    /// Whether the report says anything different from the status.
    fn differs(&self, report: &Report) -> bool {
        self.state != Some(report.answer.state) || self.reason != report.status.reason.as_deref()
    }
}
