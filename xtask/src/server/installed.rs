//! Whether Sluice is installed on a cluster that is not ours.
//!
//! What comes in: a client. What goes out: nothing, or a refusal that names what was found. A chore
//! starts controllers, installs policies and writes CRDs: beside an installation there would be two
//! writers, and its policies and CRDs would be replaced.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use gate_controller::observe::clock::{Clock, SystemClock};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use sluice_tests::{TEST_LABEL, apply};

use crate::cargo;

/// Where the policies are that an installation has.
const POLICIES: &str = "charts/gate-controller/policies";

/// By how much the clocks of leaders may be behind ours.
const SKEW: SignedDuration = SignedDuration::from_secs(60);

/// Refuses a cluster on which Sluice is installed. What tests and chores left there does not count.
pub(super) async fn refuse(client: &Client, address: &str) -> Result<()> {
    let found = find(client, SystemClock.now()).await;
    let found = found.with_context(|| format!("cannot tell whether {address} has Sluice"))?;
    ensure!(
        found.is_empty(),
        "Sluice is installed on {address} ({}): what runs here would write beside that controller \
         and replace its policies. Name a cluster without it, or unset KUBECONFIG to work on a \
         local control plane",
        found.join(", "),
    );
    Ok(())
}

async fn find(client: &Client, now: Timestamp) -> Result<Vec<String>> {
    let ours = ListParams::default().labels(TEST_LABEL);
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let ours: BTreeSet<String> = namespaces
        .list_metadata(&ours)
        .await?
        .iter()
        .map(ResourceExt::name_any)
        .collect();
    let is_theirs = |namespace: &Option<String>| {
        let namespace = namespace.as_deref().unwrap_or_default();
        !ours.contains(namespace)
    };

    let mut found = policies(client).await?;
    let deployments: Api<Deployment> = Api::all(client.clone());
    let ones = ListParams::default().labels("app.kubernetes.io/part-of=sluice");
    for deployment in deployments.list_metadata(&ones).await? {
        let namespace = deployment.namespace();
        if is_theirs(&namespace) {
            found.push(named("Deployment", namespace, &deployment.name_any()));
        }
    }
    // Controllers that run without one.
    let leases: Api<Lease> = Api::all(client.clone());
    for lease in leases.list(&ListParams::default()).await? {
        let (namespace, name) = (lease.namespace(), lease.name_any());
        if name.starts_with("gate-controller") && is_theirs(&namespace) && is_held(&lease, now) {
            found.push(named("Lease", namespace, &name));
        }
    }
    Ok(found)
}

/// The admission policies of the chart that somebody has installed.
async fn policies(client: &Client) -> Result<Vec<String>> {
    let installed: Api<ValidatingAdmissionPolicy> = Api::all(client.clone());
    let mut found = Vec::new();
    for document in apply::read(&cargo::root().join(POLICIES))? {
        let types = document.object.types.as_ref();
        if types.is_none_or(|types| types.kind != "ValidatingAdmissionPolicy") {
            continue;
        }
        let name = document.object.name_any();
        let policy = installed.get_metadata_opt(&name).await?;
        if policy.is_some_and(|policy| !policy.labels().contains_key(TEST_LABEL)) {
            found.push(format!("ValidatingAdmissionPolicy {name}"));
        }
    }
    Ok(found)
}

fn named(kind: &str, namespace: Option<String>, name: &str) -> String {
    format!("{kind} {}/{name}", namespace.unwrap_or_default())
}

/// Whether somebody leads. One who was killed holds a Lease until it runs out.
fn is_held(lease: &Lease, now: Timestamp) -> bool {
    let Some(spec) = &lease.spec else {
        return false;
    };
    let holder = spec.holder_identity.as_deref().unwrap_or_default();
    let Some(renewed) = spec.renew_time.as_ref().filter(|_| !holder.is_empty()) else {
        return false;
    };
    let length = SignedDuration::from_secs(spec.lease_duration_seconds.unwrap_or(0).into());
    let left = renewed.0.duration_since(now);
    left.saturating_add(length).saturating_add(SKEW) > SignedDuration::ZERO
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use sluice_tests::progress::Stderr;
    use sluice_tests::{Applier, Binaries, ControlPlane, Namespace as Fresh, Options};

    use super::*;
    use crate::server::marked;

    fn lease(holder: &str) -> Lease {
        let spec = json!({
            "holderIdentity": holder, "leaseDurationSeconds": 35,
            "renewTime": "2026-11-20T12:00:00.000000Z",
        });
        serde_json::from_value(json!({"spec": spec})).unwrap()
    }

    #[test]
    fn a_lease_is_held_until_it_runs_out() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        assert!(is_held(&lease("one"), at("2026-11-20T12:01:34Z")));
        assert!(!is_held(&lease("one"), at("2026-11-20T12:01:35Z")));
        assert!(!is_held(&lease(""), at("2026-11-20T12:00:00Z")));
        assert!(!is_held(&Lease::default(), at("2026-11-20T12:00:00Z")));
    }

    #[tokio::test]
    async fn an_installation_is_found_and_what_chores_left_is_not() {
        let binaries = Binaries::ensure(&Stderr::new()).unwrap();
        let plane = ControlPlane::start(&binaries, Options::default())
            .await
            .unwrap();
        let client = plane.client().await.unwrap();
        let now = "2026-11-20T12:00:00Z".parse().unwrap();
        let fresh = Fresh::create(plane.cluster(), "installed").await.unwrap();
        let applier = Applier::new(client.clone());
        let leader = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "gate-controller-1f2e"}, "spec": lease("one").spec,
        });
        let leader = leader.to_string();
        let policies = apply::read(&cargo::root().join(POLICIES)).unwrap();

        let in_a_test = applier.clone().in_namespace(fresh.name());
        in_a_test.text(&leader).await.unwrap();
        applier.documents(marked(policies.clone())).await.unwrap();
        assert_eq!(find(&client, now).await.unwrap(), [""; 0]);

        applier.text(&leader).await.unwrap();
        let found = find(&client, now).await.unwrap();
        assert_eq!(found, ["Lease default/gate-controller-1f2e"]);
        // Applied again without the mark, they lose it.
        applier.documents(policies).await.unwrap();
        let error = refuse(&client, "there").await.unwrap_err().to_string();
        let words = "Sluice is installed on there (ValidatingAdmissionPolicy sluice-approvals, \
                     ValidatingAdmissionPolicy sluice-child-names, \
                     ValidatingAdmissionPolicy sluice-children, \
                     ValidatingAdmissionPolicy sluice-gate-overrides, \
                     ValidatingAdmissionPolicy sluice-gated-sources, \
                     ValidatingAdmissionPolicy sluice-pipelines, \
                     ValidatingAdmissionPolicy sluice-pull-requests, \
                     ValidatingAdmissionPolicy sluice-revert-commits, \
                     ValidatingAdmissionPolicy sluice-status-writers): ";
        assert!(error.starts_with(words), "{error}");
    }
}
