//! Whether the admission policies are in force that make sure who forces, who approves, and who writes
//! what only the controller may.

use anyhow::{Result, anyhow};
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use kube::api::Api;
use sluice_core::operation::policies::{self, Stands};

use super::finding::Finding;
use crate::cluster::{Cannot, Connection, Controller};

const PART: &str = "policies";
/// The policies, each with what anybody could do without it.
#[rustfmt::skip] // A row is a line.
const POLICIES: [(&str, &str); 9] = [
    ("sluice-approvals", "anybody could approve in another name"),
    ("sluice-child-names", "anybody could take the name that a gated source's child is to have"),
    ("sluice-children", "anybody could change what gated sources have pinned"),
    ("sluice-gate-overrides", "anybody could force gates in another name"),
    ("sluice-gated-sources", "anybody who may edit a gated source could let something out by its baseline"),
    ("sluice-pipelines", "anybody who may edit a pipeline could pause it and run it again"),
    ("sluice-pull-requests", "anybody who may write PullRequests could have the controller open and close pull requests"),
    ("sluice-revert-commits", "anybody who may take a promotion back could do so in another name"),
    ("sluice-status-writers", "anybody could write the statuses that decide"),
];
/// The version that is compared with: the controller compares with its own.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The account that the plain files treat as the controller's.
const PLAIN: &str = "system:serviceaccount:sluice-system:gate-controller";
const UPGRADE: &str = "run helm upgrade for the chart of the controller's version, with \
                       --reuse-values --set policies.install=true";

pub(super) async fn examine(connection: &Connection, controllers: &[Controller]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut in_force = Vec::new();
    for (name, otherwise) in POLICIES {
        match find(connection, name).await {
            Ok(found) => match judged(name, otherwise, found.stands, controllers) {
                None => in_force.push((name, found.controllers)),
                Some(finding) => findings.push(finding),
            },
            Err(error) => return vec![Finding::unknown(PART, &error)],
        }
    }
    if findings.is_empty() {
        let found = format!("{} are in force", POLICIES.map(|(name, _)| name).join(", "));
        findings.push(Finding::ok(PART, found));
    }
    let strangers = controllers.iter();
    findings.extend(strangers.filter_map(|controller| unnamed(controller, &in_force)));
    for trusting in controllers.iter().filter(|controller| controller.trusts()) {
        let found = format!(
            "{}/{} trusts the name in an annotation (--trust-unverified-identity)",
            trusting.namespace, trusting.name
        );
        let remedy = "leave the flag out once the policies are in force";
        findings.push(Finding::failed(PART, found, remedy));
    }
    findings
}

/// A policy as it was found.
struct Found {
    stands: Stands,
    /// The user names that it treats as the controller's, if it checks those.
    controllers: Option<Vec<String>>,
}

async fn find(connection: &Connection, name: &str) -> Result<Found> {
    let what = format!("read the policy {name}");
    let policies: Api<ValidatingAdmissionPolicy> = connection.all();
    let policy = policies.get_opt(name).await.cannot(&what)?;
    let bindings: Api<ValidatingAdmissionPolicyBinding> = connection.all();
    let binding = bindings.get_opt(name).await.cannot(&what)?;
    Ok(Found {
        stands: policies::stands(name, policy.as_ref(), binding.as_ref()),
        controllers: policy.as_ref().and_then(policies::controllers),
    })
}

/// What is wrong with a policy. None: it is in force.
fn judged(
    name: &str,
    otherwise: &str,
    stands: Stands,
    controllers: &[Controller],
) -> Option<Finding> {
    let why = match stands {
        Stands::InForce => return None,
        Stands::Missing(why) => why.to_owned(),
        Stands::Drifted(place) => {
            let mut versions = controllers.iter().filter_map(|it| it.version.as_deref());
            if let Some(other) = versions.find(|version| *version != VERSION) {
                return Some(of_another_version(name, &place, other));
            }
            format!("differs from what version {VERSION} ships, and counts as missing ({place})")
        }
    };
    let found = format!("{name} {why}: {otherwise}");
    Some(Finding::failed(PART, found, remedy(controllers)))
}

/// What the controller makes of it, its own version tells.
fn of_another_version(name: &str, place: &str, version: &str) -> Finding {
    let error = anyhow!(
        "{name} differs from what this plugin's version {VERSION} ships ({place}); the controller is \
         of version {version}, and compares with its own"
    );
    let mut finding = Finding::unknown(PART, &error);
    finding.remedy = Some(format!("run the doctor of version {version}"));
    finding
}

/// The plain files name one account: after applying them, any other controller would be refused.
fn remedy(controllers: &[Controller]) -> String {
    match !controllers.is_empty() && controllers.iter().all(|it| it.user == PLAIN) {
        true => {
            format!("{UPGRADE}; or without Helm, kubectl apply -f charts/gate-controller/policies")
        }
        false => UPGRADE.to_owned(),
    }
}

/// The policies that refuse what a controller writes, since they do not know it.
fn unnamed(
    controller: &Controller,
    policies: &[(&'static str, Option<Vec<String>>)],
) -> Option<Finding> {
    let Controller {
        namespace,
        name,
        user,
        ..
    } = controller;
    let without = policies.iter().filter(|(_, names)| {
        let names = names.as_ref();
        names.is_some_and(|names| !names.contains(user))
    });
    let without: Vec<&str> = without.map(|(name, _)| *name).collect();
    let found = format!(
        "{namespace}/{name} acts as {user}, which is not among the controllers that {} know: they \
         judge what it writes as they judge what users write",
        without.join(", ")
    );
    (!without.is_empty()).then(|| Finding::failed(PART, found, UPGRADE))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::super::finding::Health;
    use super::*;

    fn controller(user: &str, version: &str) -> Controller {
        let mut controller = Controller::started("sluice-system", "gate-controller", &[]);
        controller.version = Some(version.to_owned());
        user.clone_into(&mut controller.user);
        controller
    }

    #[test]
    fn every_policy_of_the_chart_is_looked_for() {
        let folder =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../charts/gate-controller/policies");
        let files = std::fs::read_dir(folder).unwrap();
        let named = files.map(|file| {
            let path = file.unwrap().path();
            path.file_stem().unwrap().to_str().unwrap().to_owned()
        });
        let known = POLICIES.map(|(name, _)| name.to_owned());
        assert_eq!(named.collect::<BTreeSet<_>>(), BTreeSet::from(known));
        let core = policies::IDENTITY.into_iter().chain(policies::CHILDREN);
        let known = POLICIES.map(|(name, _)| name);
        assert_eq!(core.collect::<BTreeSet<_>>(), BTreeSet::from(known));
    }

    #[test]
    fn a_policy_that_the_controller_counts_as_missing_is_not_said_to_be_in_force() {
        let drifted = || Stands::Drifted("spec.validations is another".to_owned());
        let same = [controller(PLAIN, VERSION)];
        let said = judged("p", "anybody could", drifted(), &same).unwrap();
        assert_eq!(said.health, Health::Failed);
        let expected = "counts as missing (spec.validations is another): anybody could";
        assert!(said.found.ends_with(expected), "{}", said.found);
        // With what the controller compares, is not known here.
        let later = [controller(PLAIN, "999.0.0")];
        let said = judged("p", "anybody could", drifted(), &later).unwrap();
        assert_eq!(said.health, Health::Unknown);
        assert_eq!(judged("p", "anybody could", Stands::InForce, &same), None);
    }

    #[test]
    fn the_plain_files_are_for_the_account_that_they_name() {
        let own = controller(PLAIN, VERSION);
        let other = controller("system:serviceaccount:gates:gate-controller", VERSION);
        assert!(remedy(std::slice::from_ref(&own)).contains("kubectl apply"));
        for controllers in [&[][..], std::slice::from_ref(&other), &[own, other.clone()]] {
            let said = remedy(controllers);
            assert!(said.contains("helm upgrade") && !said.contains("kubectl apply"));
        }
    }

    #[test]
    fn a_controller_that_the_policies_do_not_know_is_told_with_them() {
        let names = || Some(vec![PLAIN.to_owned()]);
        let policies = [("one", names()), ("two", None), ("three", names())];
        assert_eq!(unnamed(&controller(PLAIN, VERSION), &policies), None);
        let other = controller("system:serviceaccount:gates:gate-controller", VERSION);
        let said = unnamed(&other, &policies).unwrap();
        assert_eq!(said.health, Health::Failed);
        let expected = "acts as system:serviceaccount:gates:gate-controller, which is not among the \
                        controllers that one, three know";
        assert!(said.found.contains(expected), "{}", said.found);
    }
}
