//! Which cluster a target is on.

use sluice_clusters::{Cluster, Reference, ReferenceKind, Unknown};
use sluice_crds::pipeline::{ClusterKind, ClusterReference, Target};

use crate::act::reconcile::Context;
use crate::cluster::key::ObjectKey;

/// The cluster of a target.
pub(super) fn cluster_of(
    context: &Context,
    key: &ObjectKey,
    target: &Target,
) -> Result<Cluster, Unknown> {
    let crosses = || context.world.crosses_namespaces();
    match &target.cluster_ref {
        None if *target.namespace != *key.namespace && !crosses() => Err(Unknown::OutOfScope),
        None => Ok(Cluster::Own),
        Some(it) => context
            .apps
            .watched
            .fleet()
            .find(&key.namespace, &reference(it)),
    }
}

/// What a target says of its cluster.
pub(super) fn reference(named: &ClusterReference) -> Reference {
    let ClusterReference {
        api_version,
        kind,
        name,
        namespace,
    } = named;
    Reference {
        kind: match kind {
            ClusterKind::Secret => ReferenceKind::Secret,
            ClusterKind::Cluster => ReferenceKind::Cluster,
            ClusterKind::GitopsCluster => ReferenceKind::GitopsCluster,
        },
        name: name.clone(),
        namespace: namespace.clone(),
        api_version: api_version.clone(),
    }
}
