//! Names of objects, and of the work there is to do on them.

use std::fmt;

use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;

/// The namespace and name of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl ObjectKey {
    /// The key of a namespaced object.
    pub fn of<K: ResourceExt>(object: &K) -> Self {
        Self {
            namespace: object.namespace().unwrap_or_default(),
            name: object.name_any(),
        }
    }

    /// How a store looks it up.
    pub fn to_ref<K>(&self) -> ObjectRef<K>
    where
        K: kube::Resource<DynamicType = ()>,
    {
        ObjectRef::new(&self.name).within(&self.namespace)
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// One object to look at: what the queue holds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Work {
    /// A gate.
    Gate(ObjectKey),
    /// A gatekeeper.
    Gatekeeper(ObjectKey),
}

impl Work {
    /// The kind of the object, as the API names it.
    pub fn kind(&self) -> &'static str {
        match self {
            Work::Gate(_) => "Gate",
            Work::Gatekeeper(_) => "Gatekeeper",
        }
    }

    /// The name of the object.
    pub fn key(&self) -> &ObjectKey {
        match self {
            Work::Gate(key) | Work::Gatekeeper(key) => key,
        }
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind(), self.key())
    }
}
