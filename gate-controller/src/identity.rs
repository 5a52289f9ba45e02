//! Whether somebody makes sure that a force is by whom it says, and that children of GatedSources are
//! written by the controller alone.
//!
//! The chart installs ValidatingAdmissionPolicies that do. Where they are missing, forces do not
//! count, unless the operator says that this is all right; children are written back after somebody
//! has changed them.

use futures::future::join_all;
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use kube::core::DeserializeGuard;
use kube::runtime::watcher::Config;
use kube::{Api, Client};
use sluice_core::gate::Identity;

use crate::cache::Cache;
use crate::key::KeyRef;

/// The policies that make sure: that a force and an approval are by whom they say, and that nobody
/// else writes statuses. Each has a binding of its name.
pub const POLICIES: [&str; 3] = [
    "sluice-approvals",
    "sluice-gate-overrides",
    "sluice-status-writers",
];

/// The policy that keeps everybody else from children of GatedSources. No identity depends on it.
pub const CHILDREN: &str = "sluice-children";

/// The policies and their bindings, as they are installed.
#[derive(Default)]
pub struct Policies {
    /// In the order of [`POLICIES`].
    identity: [Installed; POLICIES.len()],
    children: Installed,
}

/// What the policies come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InForce {
    /// Who forces, approves and reports.
    pub identity: Identity,
    /// Whether children are kept from everybody else.
    pub children: bool,
}

/// A policy and its binding, as far as they are installed.
#[derive(Default)]
struct Installed {
    policy: Cache<ValidatingAdmissionPolicy>,
    binding: Cache<ValidatingAdmissionPolicyBinding>,
}

impl Policies {
    /// Waits until it is known whether they are installed, or the API server has refused to say.
    pub async fn answered(&self) {
        for (_, installed) in self.each() {
            installed.policy.answered().await;
            installed.binding.answered().await;
        }
    }

    /// Watches them, and tells what is in force.
    pub async fn follow(&self, client: Client, trusted: bool, tell: impl Fn(InForce)) {
        let told = || tell(self.in_force(trusted));
        let follow = |(name, installed)| Installed::follow(installed, name, &client, &told);
        join_all(self.each().map(follow)).await;
    }

    /// What is in force, as far as is known.
    pub fn in_force(&self, trusted: bool) -> InForce {
        let mut all = POLICIES.into_iter().zip(&self.identity);
        let verified = all.all(|(name, installed)| installed.in_force(name));
        InForce {
            identity: identity(verified, trusted),
            children: self.children.in_force(CHILDREN),
        }
    }

    /// Each with its name.
    fn each(&self) -> impl Iterator<Item = (&'static str, &Installed)> {
        let identity = POLICIES.into_iter().zip(&self.identity);
        identity.chain([(CHILDREN, &self.children)])
    }
}

impl Installed {
    async fn follow(&self, name: &str, client: &Client, told: &impl Fn()) {
        let config = || Config::default().fields(&format!("metadata.name={name}"));
        let policy = self.policy.follow(
            Api::<DeserializeGuard<ValidatingAdmissionPolicy>>::all(client.clone()),
            config(),
            |_| told(),
        );
        let binding = self.binding.follow(
            Api::<DeserializeGuard<ValidatingAdmissionPolicyBinding>>::all(client.clone()),
            config(),
            |_| told(),
        );
        tokio::join!(policy, binding);
    }

    fn in_force(&self, name: &str) -> bool {
        let key = KeyRef {
            namespace: "",
            name,
        };
        let (policy, binding) = (self.policy.get(key), self.binding.get(key));
        policy.is_some_and(|policy| policy.object().is_some_and(|policy| fails_closed(policy)))
            && binding.is_some_and(|binding| binding.object().is_some_and(|is| denies(is, name)))
    }
}

/// What holds before the policies have been looked for.
pub fn at_start(trusted: bool) -> Identity {
    identity(false, trusted)
}

fn identity(in_force: bool, trusted: bool) -> Identity {
    match (in_force, trusted) {
        (true, _) => Identity::Verified,
        (false, true) => Identity::Trusted,
        (false, false) => Identity::Unverified,
    }
}

/// Whether what the policy cannot judge is refused. None: the API server's default, `Fail`.
fn fails_closed(policy: &ValidatingAdmissionPolicy) -> bool {
    let spec = policy.spec.as_ref();
    let failure = spec.and_then(|spec| spec.failure_policy.as_deref());
    spec.is_some() && failure.is_none_or(|failure| failure == "Fail")
}

/// Whether the binding has that policy refuse requests, wherever they are made.
fn denies(binding: &ValidatingAdmissionPolicyBinding, policy: &str) -> bool {
    let spec = &binding.spec;
    let denies = || {
        spec.validation_actions
            .iter()
            .any(|action| action == "Deny")
    };
    spec.policy_name == policy && spec.match_resources.is_none() && denies()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn install(policies: &Policies, wanted: &str) {
        let found = policies.each().find(|(name, _)| *name == wanted);
        let (_, installed) = found.expect("it is looked for");
        let object = |spec: Value| {
            let metadata = json!({"name": wanted, "resourceVersion": "1"});
            json!({"metadata": metadata, "spec": spec})
        };
        let policy = serde_json::from_value(object(json!({}))).unwrap();
        installed.policy.put(Arc::new(policy));
        let binding = object(json!({"policyName": wanted, "validationActions": ["Deny"]}));
        let binding = serde_json::from_value(binding).unwrap();
        installed.binding.put(Arc::new(binding));
    }

    #[test]
    fn the_policy_of_children_is_looked_for_and_no_identity_depends_on_it() {
        let policies = Policies::default();
        for policy in POLICIES {
            let before = policies.in_force(false);
            assert_eq!(before.identity, Identity::Unverified, "without {policy}");
            install(&policies, policy);
        }
        let expected = |children| InForce {
            identity: Identity::Verified,
            children,
        };
        assert_eq!(policies.in_force(false), expected(false));
        install(&policies, CHILDREN);
        assert_eq!(policies.in_force(false), expected(true));
    }

    #[rstest]
    #[case::as_the_chart_has_it(json!({ "policyName": "p", "validationActions": ["Deny"] }), true)]
    #[case::of_another(json!({ "policyName": "q", "validationActions": ["Deny"] }), false)]
    #[case::only_told(json!({ "policyName": "p", "validationActions": ["Warn"] }), false)]
    #[case::narrowed(
        json!({
            "policyName": "p",
            "validationActions": ["Deny"],
            "matchResources": { "namespaceSelector": { "matchLabels": { "a": "b" } } },
        }),
        false
    )]
    fn a_binding_counts_only_if_it_denies_everywhere(#[case] spec: Value, #[case] counts: bool) {
        let binding = serde_json::from_value(json!({ "spec": spec })).unwrap();
        assert_eq!(denies(&binding, "p"), counts);
    }
}
