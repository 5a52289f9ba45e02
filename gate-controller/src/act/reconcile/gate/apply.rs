//! Carries out what was decided about a gate: its annotations, then its status and the report of changes.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kube::ResourceExt;
use kube::core::PartialObjectMeta;
use serde_json::json;
use sluice_core::gate::force::owner;
use sluice_core::gate::{Answer, Report};
use sluice_crds::{Gate, State};

use super::{Before, record};
use crate::act::reconcile::write::Part;
use crate::act::reconcile::{Context, status};
use crate::cluster::key::{ObjectKey, Work};
use crate::cluster::kind::Kind;
use crate::tell::counters::{KindLabels, TransitionLabels};
use crate::tell::events::{About, Told};

/// Writes the status onto this version of the gate, and reports the changes.
pub(super) async fn apply(
    context: &Context,
    key: &ObjectKey,
    gate: &Gate,
    report: Report,
    at: Timestamp,
) -> Result<(), kube::Error> {
    let before = Before::of(gate);
    let news = before.differs(&report);
    let Report {
        answer,
        status,
        changed,
        completion: _,
        complaints,
        wake: _,
    } = report;
    if changed {
        status::write(context, gate, status.clone()).await?;
        record::forces(&context.audit, key, gate, &status, &complaints);
    }
    if news {
        let message = status.message.as_deref().unwrap_or_default();
        let next = status.upcoming.first().map(|change| change.at.0);
        tell(context, key, gate, &answer, message, next);
        record::transition(&context.audit, key, gate, &answer, &status);
        measure(context, &before, answer.state, at);
    }
    Ok(())
}

/// Completes the annotations of a force, and owns them. Only onto this version of the gate: a force that
/// somebody has ended since then must not come back.
pub(super) async fn complete(
    context: &Context,
    gate: &Gate,
    annotations: BTreeMap<String, String>,
) -> Result<(), kube::Error> {
    let writer = context.writer(gate, owner::MANAGER);
    let fields = json!({ "metadata": { "annotations": annotations } });
    let answer: PartialObjectMeta<Gate> =
        writer.apply(Part::Metadata, &gate.metadata, fields).await?;
    let mut completed = gate.clone();
    completed.metadata.resource_version = answer.metadata.resource_version;
    // We own what we have written.
    let own = owner::entry(&annotations);
    completed.managed_fields_mut().push(own);
    completed.annotations_mut().extend(annotations);
    context.take_in(completed);
    Ok(())
}

/// One line for the log, and an event: both say the same.
fn tell(
    context: &Context,
    key: &ObjectKey,
    gate: &Gate,
    answer: &Answer,
    message: &str,
    next: Option<Timestamp>,
) {
    let decided_by = answer
        .decided_by
        .and_then(|place| gate.spec.gatekeepers.get(place));
    let was = gate.status.as_ref().and_then(|status| status.state);
    tracing::info!(
        target: "decision",
        kind = "Gate",
        namespace = %key.namespace,
        name = %key.name,
        state = %answer.state,
        was = was.map(tracing::field::display),
        reason = %answer.reason,
        decided_by = decided_by.map(|gatekeeper| gatekeeper.name.as_str()),
        next = next.map(tracing::field::display),
        "{message}"
    );
    context.events.tell(Told {
        about: About::new(Work::own(Kind::Gate, key.clone()), gate),
        warning: false,
        reason: match answer.state {
            State::Open => "Opened".into(),
            State::Closed | State::Conditional => answer.state.as_str().into(),
        },
        action: "Decide",
        note: message.into(),
        more: None,
    });
}

fn measure(context: &Context, before: &Before<'_>, state: State, decided: Timestamp) {
    if before.state == Some(state) {
        return;
    }
    let transition = TransitionLabels {
        kind: "Gate",
        state: state.as_str(),
    };
    context
        .counters
        .transitions
        .get_or_create(&transition)
        .inc();
    if let Some(foretold) = before.foretold.filter(|foretold| *foretold <= decided) {
        let delay = context.clock.now().duration_since(foretold).as_secs_f64();
        let kind = KindLabels { kind: "Gate" };
        context
            .counters
            .transition_delay
            .get_or_create(&kind)
            .observe(delay);
    }
}
