//! Whether somebody makes sure that a force is by whom it says.
//!
//! The chart installs ValidatingAdmissionPolicies that do. Where they are missing, forces do not
//! count, unless the operator says that this is all right.

use std::sync::{Mutex, PoisonError};

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use kube::core::DeserializeGuard;
use kube::runtime::watcher::Config;
use kube::{Api, Client};
use sluice_core::gate::Identity;

use crate::cache::{Cache, Seen};

/// The name of the policy that makes sure, and of its binding.
pub const POLICY: &str = "sluice-gate-overrides";

/// What is known of the policy and its binding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Installed {
    policy: bool,
    binding: bool,
}

/// The policy and its binding, as they are installed.
#[derive(Default)]
pub struct Policies {
    policies: Cache<ValidatingAdmissionPolicy>,
    bindings: Cache<ValidatingAdmissionPolicyBinding>,
}

impl Policies {
    /// Waits until it is known whether they are installed.
    pub async fn synced(&self) {
        self.policies.synced().await;
        self.bindings.synced().await;
    }

    /// Watches them, and tells whether they are in force.
    pub async fn follow(&self, client: Client, trusted: bool, tell: impl Fn(Identity)) {
        let installed = Mutex::new(Installed::default());
        let note = |change: &dyn Fn(&mut Installed)| {
            let mut installed = installed.lock().unwrap_or_else(PoisonError::into_inner);
            change(&mut installed);
            tell(identity(*installed, trusted));
        };
        let config = || Config::default().fields(&format!("metadata.name={POLICY}"));
        let policies = self.policies.follow(
            Api::<DeserializeGuard<ValidatingAdmissionPolicy>>::all(client.clone()),
            config(),
            |policy| note(&|installed| installed.policy = policy.now.is_some()),
        );
        let bindings = self.bindings.follow(
            Api::<DeserializeGuard<ValidatingAdmissionPolicyBinding>>::all(client),
            config(),
            |binding| note(&|installed| installed.binding = binding.now.is_some_and(denies)),
        );
        tokio::join!(policies, bindings);
    }
}

/// What holds before the policies have been looked for.
pub fn at_start(trusted: bool) -> Identity {
    identity(Installed::default(), trusted)
}

fn identity(installed: Installed, trusted: bool) -> Identity {
    match (installed, trusted) {
        (
            Installed {
                policy: true,
                binding: true,
            },
            _,
        ) => Identity::Verified,
        (_, true) => Identity::Trusted,
        (_, false) => Identity::Unverified,
    }
}

fn denies(binding: &Seen<ValidatingAdmissionPolicyBinding>) -> bool {
    let Seen::Object(binding) = binding else {
        return false;
    };
    binding
        .spec
        .validation_actions
        .iter()
        .any(|action| action == "Deny")
}
