//! Carries out what was decided about a gatekeeper: its status, and bad news.

use sluice_core::gatekeeper::{Keeper, Report};
use sluice_core::verdict::condition::STALLED;
use sluice_crds::{Gatekeeper, GatekeeperStatus};

use crate::act::reconcile::{Context, status};
use crate::cluster::key::{ObjectKey, Work};
use crate::tell::events::{About, Told};

/// Who owns the status.
const STATUS_MANAGER: &str = "gate-controller-gatekeepers";

pub(super) async fn apply(
    context: &Context,
    key: &ObjectKey,
    keeper: &Keeper,
    report: Report,
) -> Result<(), kube::Error> {
    let Report {
        status,
        changed,
        wake: _,
    } = report;
    if !changed {
        return Ok(());
    }
    let object = keeper.object();
    // What a third party reports is its own.
    let ours = GatekeeperStatus {
        report: None,
        ..status.clone()
    };
    let version = object.metadata.resource_version.as_deref();
    let wrote =
        status::write::<Gatekeeper, _>(&context.client, key, version, STATUS_MANAGER, &ours)
            .await?;
    (0..wrote.requests).for_each(|_| context.wrote("Gatekeeper"));
    let (work, version) = (Work::Gatekeeper(key.clone()), wrote.version.as_deref());
    context.written.status(&work, version, &status);
    context.telling().tell(&work, object.as_ref());
    tell(context, key, object, &status);
    Ok(())
}

/// A gatekeeper's changes are its gates' news; only that it stalls is its own.
fn tell(context: &Context, key: &ObjectKey, object: &Gatekeeper, status: &GatekeeperStatus) {
    let Some(verdict) = &status.verdict else {
        return;
    };
    tracing::debug!(
        target: "decision",
        kind = "Gatekeeper",
        namespace = %key.namespace,
        name = %key.name,
        state = %verdict.state,
        reason = %verdict.reason,
        "{}",
        verdict.message
    );
    let stalled = |status: &GatekeeperStatus| {
        status
            .conditions
            .iter()
            .any(|condition| condition.type_ == STALLED)
    };
    if stalled(status) && !object.status.as_ref().is_some_and(stalled) {
        context.events.tell(Told {
            about: About::new(Work::Gatekeeper(key.clone()), object),
            warning: true,
            reason: verdict.reason.clone().into(),
            action: "Judge",
            note: verdict.message.as_str().into(),
            more: None,
        });
    }
}
