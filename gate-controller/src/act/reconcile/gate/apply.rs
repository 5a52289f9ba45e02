//! Carries out what was decided about a gate: its annotations, then its status and the news.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use kube::{Api, Resource};
use serde_json::json;
use sluice_core::gate::force::owner;
use sluice_core::gate::{Answer, Report};
use sluice_crds::{Gate, State};

use super::{Before, record};
use crate::act::reconcile::{Context, status};
use crate::cluster::key::{ObjectKey, Work};
use crate::tell::counters::{KindLabels, TransitionLabels};
use crate::tell::events::{About, Told};

/// Who owns the status.
const STATUS_MANAGER: &str = "gate-controller-gates";

/// Writes the status onto this version of the gate, and tells the news.
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
        let (client, version) = (&context.client, gate.metadata.resource_version.as_deref());
        let wrote = status::write::<Gate, _>(client, key, version, STATUS_MANAGER, &status).await?;
        (0..wrote.requests).for_each(|_| context.wrote("Gate"));
        let work = Work::Gate(key.clone());
        let version = wrote.version.as_deref();
        context.written.status(&work, version, &status);
        context.telling().tell(&work, gate);
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

/// Completes the annotations of a force, and owns them. Onto this version of the gate alone: a force
/// that somebody has ended meanwhile must not come back. And without the uid, an apply would make a gate
/// again that is gone.
pub(super) async fn complete(
    context: &Context,
    key: &ObjectKey,
    gate: &Gate,
    annotations: BTreeMap<String, String>,
) -> Result<(), kube::Error> {
    let gates: Api<Gate> = Api::namespaced(context.client.clone(), &key.namespace);
    let patch = json!({
        "apiVersion": Gate::api_version(&()),
        "kind": Gate::kind(&()),
        "metadata": {
            "name": &*key.name,
            "uid": gate.metadata.uid,
            "resourceVersion": gate.metadata.resource_version,
            "annotations": annotations,
        },
    });
    let force = PatchParams::apply(owner::MANAGER).force();
    let completed = gates
        .patch_metadata(&key.name, &force, &Patch::Apply(&patch))
        .await?;
    context.wrote("Gate");
    let (work, version) = (Work::Gate(key.clone()), completed.metadata.resource_version);
    context
        .written
        .annotations(&work, version.as_deref(), annotations);
    Ok(())
}

/// One line for the log, and an event: the news is the same.
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
        about: About::new(Work::Gate(key.clone()), gate),
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
