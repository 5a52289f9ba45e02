//! What is said of PromotionStrategies beside other objects.

use sluice_crds::promotion_strategy::marks;
use sluice_crds::{GateSet, PromotionStrategy};

use super::remark::{Remarks, Subject};
use crate::delivery::git_repository_access::allows;
use crate::offline::simulate::Key;
use crate::text::refusal::Refusal;

/// The annotations that mean something.
const KNOWN: [&str; 3] = [marks::ACCEPT, marks::ACCEPT_REASON, marks::REFRESHED_AT];

impl Remarks<'_> {
    /// A PromotionStrategy: the access and the gates that it names.
    pub(super) fn strategy(&mut self, key: &Key, strategy: &PromotionStrategy) {
        let subject = Subject::PromotionStrategy(key.clone());
        self.annotations(&subject, &strategy.metadata, &KNOWN);
        self.access(key, strategy);
        for (n, environment) in strategy.spec.environments.iter().enumerate() {
            for (field, set) in [
                ("gates", &environment.gates),
                ("activeGates", &environment.active_gates),
                ("revertGates", &environment.revert_gates),
            ] {
                if let Some(set) = set {
                    let field = format!("spec.environments[{n}].{field}");
                    self.gates_of(key, &field, set, &environment.branch);
                }
            }
        }
    }

    /// The access that a strategy names: whether it is there, and lets the strategy merge.
    fn access(&mut self, key: &Key, strategy: &PromotionStrategy) {
        let subject = || Subject::PromotionStrategy(key.clone());
        let named = &strategy.spec.repo_ref;
        let access = Key::from_reference(&key.namespace, named.namespace.as_deref(), &named.name);
        let Some(found) = self.world.accesses.get(&access) else {
            let problem = format!("there is no GitRepositoryAccess {access} in these files");
            let missing = Subject::GitRepositoryAccess(access);
            return self.warn_of(missing, subject(), "spec.repoRef".to_owned(), problem);
        };
        let environments = strategy.spec.environments.iter();
        let mut refused = environments
            .map(|it| it.branch.as_str())
            .filter(|branch| !allows(found, &access.namespace, &key.namespace, branch));
        if let Some(branch) = refused.next() {
            let problem = format!(
                "the GitRepositoryAccess {access} does not let the namespace `{}` merge into `{branch}`",
                key.namespace
            );
            let remedy = "add both to its field allow, or name another one";
            self.warn(subject(), Refusal::new("spec.repoRef", problem, remedy));
        }
    }

    /// The gates of a set that are not in the files.
    fn gates_of(&mut self, key: &Key, field: &str, set: &GateSet, branch: &str) {
        for (place, reference) in set.refs.iter().enumerate() {
            let (namespace, name) = (reference.namespace.as_deref(), &reference.name);
            let gate = Key::from_reference(&key.namespace, namespace, name);
            if !self.world.gates.contains_key(&gate) {
                let problem =
                    format!("there is no Gate {gate} in these files, which `{branch}` asks");
                let subject = Subject::PromotionStrategy(key.clone());
                self.warn_of(
                    Subject::Gate(gate),
                    subject,
                    format!("{field}.refs[{place}]"),
                    problem,
                );
            }
        }
    }
}
