//! Whom an access lets promote, and where.

use sluice_crds::GitRepositoryAccess;

mod glob;
#[cfg(test)]
mod tests;

/// Whether an access, which is in the namespace `access_namespace`, lets an object of the namespace
/// `from_namespace` merge into a branch. Its own namespace may always, into any branch.
pub fn allows(
    access: &GitRepositoryAccess,
    access_namespace: &str,
    from_namespace: &str,
    target_branch: &str,
) -> bool {
    let lets = |branches: &[String]| branches.iter().any(|it| glob::matches(it, target_branch));
    from_namespace == access_namespace
        || access.spec.allow.iter().any(|allowed| {
            let is_named = allowed.namespaces.iter().any(|it| it == from_namespace);
            is_named && lets(&allowed.branches)
        })
}

/// The same for what merges nothing, such as the status of a commit: it is enough that the access lets objects of
/// that namespace merge into any branch.
pub fn allows_namespace(
    access: &GitRepositoryAccess,
    access_namespace: &str,
    from_namespace: &str,
) -> bool {
    let mut allowed = access.spec.allow.iter().flat_map(|it| &it.namespaces);
    from_namespace == access_namespace || allowed.any(|it| it == from_namespace)
}
