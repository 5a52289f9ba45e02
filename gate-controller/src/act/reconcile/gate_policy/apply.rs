//! Carries out what was decided about a policy: its status, and bad news.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use sluice_core::gate::policy::Report;
use sluice_core::verdict::condition::READY;
use sluice_crds::{GatePolicy, GatePolicyStatus};

use crate::act::reconcile::{Context, status};
use crate::cluster::key::{ObjectKey, Work};
use crate::tell::events::{About, Told};

/// Who owns the status.
const STATUS_MANAGER: &str = "gate-controller-gatepolicies";

/// Writes the status onto this version of the policy, and tells the news.
pub(super) async fn apply(
    context: &Context,
    key: &ObjectKey,
    policy: &GatePolicy,
    report: Report,
) -> Result<(), kube::Error> {
    let Report { status, changed } = report;
    if !changed {
        return Ok(());
    }
    let version = policy.metadata.resource_version.as_deref();
    let wrote =
        status::write::<GatePolicy, _>(&context.client, key, version, STATUS_MANAGER, &status)
            .await?;
    (0..wrote.requests).for_each(|_| context.wrote("GatePolicy"));
    let (work, version) = (Work::GatePolicy(key.clone()), wrote.version.as_deref());
    context.written.status(&work, version, &status);
    context.telling().tell(&work, policy);
    tell(context, key, policy, &status);
    Ok(())
}

/// That a policy names gates that are not there is news, and so is that it no longer does.
fn tell(context: &Context, key: &ObjectKey, policy: &GatePolicy, status: &GatePolicyStatus) {
    let before = policy.status.as_ref().and_then(ready);
    let Some(now) = ready(status) else {
        return;
    };
    let said = |ready: &Condition| (ready.status.clone(), ready.reason.clone());
    if before.map(said) == Some(said(now)) {
        return;
    }
    let is_ready = now.status == "True";
    tracing::info!(
        target: "decision",
        kind = "GatePolicy",
        name = %key.name,
        ready = is_ready,
        reason = now.reason,
        "{}",
        now.message
    );
    // A new policy whose gates are there is what everybody expects.
    if is_ready && before.is_none() {
        return;
    }
    context.events.tell(Told {
        about: About::new(Work::GatePolicy(key.clone()), policy),
        warning: !is_ready,
        reason: now.reason.clone().into(),
        action: "Report",
        note: now.message.as_str().into(),
        more: None,
    });
}

fn ready(status: &GatePolicyStatus) -> Option<&Condition> {
    let mut conditions = status.conditions.iter();
    conditions.find(|condition| condition.type_ == READY)
}
