//! What the audit log records of a gate: its changes of state, and its forces.

use sluice_core::Refusal;
use sluice_core::gate::Answer;
use sluice_crds::audit::{Changed, Event, Forced, Step};
use sluice_crds::gate::Override;
use sluice_crds::{Gate, GateStatus};

use crate::cluster::key::ObjectKey;
use crate::tell::audit::Audit;

/// The gate is in another state, or for another reason.
pub(super) fn transition(
    audit: &Audit,
    key: &ObjectKey,
    gate: &Gate,
    answer: &Answer,
    status: &GateStatus,
) {
    let decided_by = answer
        .decided_by
        .and_then(|place| status.verdicts.get(place));
    audit.tell(|| {
        Event::Transition(Box::new(Changed {
            gate: key.to_string(),
            from: gate.status.as_ref().and_then(|status| status.state),
            to: answer.state,
            reason: answer.reason.to_string(),
            message: status.message.clone().unwrap_or_default(),
            decided_by: decided_by
                .map(|told| told.gatekeeper.clone())
                .into_iter()
                .collect(),
            next: status.upcoming.first().map(|change| change.at.clone()),
        }))
    });
}

/// What happened to its forces between the status before and the one after.
pub(super) fn forces(
    audit: &Audit,
    key: &ObjectKey,
    gate: &Gate,
    after: &GateStatus,
    complaints: &[Refusal],
) {
    if !audit.is_kept() {
        return;
    }
    let before = gate.status.as_ref();
    let tell = |step, force: Option<&Override>, message: String| {
        audit.tell(|| {
            Event::Override(Box::new(Forced {
                gate: key.to_string(),
                step,
                force: force.cloned(),
                message,
            }))
        });
    };
    let was = before.and_then(|status| status.r#override.as_ref());
    let is = after.r#override.as_ref();
    if was != is {
        if let Some(ended) = was {
            tell(
                Step::Ended,
                Some(ended),
                format!("no longer {}", words(ended)),
            );
        }
        if let Some(began) = is {
            tell(Step::Began, Some(began), words(began));
        }
    }
    // The message of a status repeats each complaint in full.
    let known = before.and_then(|status| status.message.as_deref());
    for complaint in complaints {
        let complaint = complaint.to_string();
        if !known.is_some_and(|known| known.contains(&complaint)) {
            tell(Step::Refused, None, complaint);
        }
    }
}

fn words(force: &Override) -> String {
    let Override {
        state,
        by,
        reason,
        since: _,
        until,
    } = force;
    format!("forced {state} by {by} until {}: {reason}", until.0)
}
