//! Objects without what nobody reads.

use kube::Resource;
use kube::api::{ApiResource, DynamicObject, TypeMeta};

/// The annotation in which `kubectl apply` keeps a copy of the whole object.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Takes out of an object who has written which field, and what `kubectl apply` has noted.
pub fn trim(object: &mut impl Resource) {
    let metadata = object.meta_mut();
    metadata.managed_fields = None;
    if let Some(annotations) = &mut metadata.annotations {
        annotations.remove(LAST_APPLIED);
    }
}

/// An object of `resource`, trimmed, with the kind that it does not have as one of a list.
pub fn trimmed(mut object: DynamicObject, resource: &ApiResource) -> DynamicObject {
    trim(&mut object);
    typed(object, resource)
}

/// An object of `resource`, with the kind that it does not have as one of a list.
pub fn typed(mut object: DynamicObject, resource: &ApiResource) -> DynamicObject {
    object.types = Some(TypeMeta {
        api_version: resource.api_version.clone(),
        kind: resource.kind.clone(),
    });
    object
}
