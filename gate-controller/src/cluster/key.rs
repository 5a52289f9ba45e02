//! Names of objects, and of the work there is to do on them.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use hashbrown::Equivalent;
use kube::Resource;

/// The namespace and name of an object; of one that is in none, the namespace is empty. Many indexes
/// hold the same one: a clone costs no text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectKey {
    /// The namespace.
    pub namespace: Arc<str>,
    /// The name.
    pub name: Arc<str>,
}

/// The same, borrowed: what a map is asked with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyRef<'a> {
    /// The namespace.
    pub namespace: &'a str,
    /// The name.
    pub name: &'a str,
}

impl<'a> KeyRef<'a> {
    /// The key of an object.
    pub fn of<K: Resource>(object: &'a K) -> Self {
        let metadata = object.meta();
        Self {
            namespace: metadata.namespace.as_deref().unwrap_or_default(),
            name: metadata.name.as_deref().unwrap_or_default(),
        }
    }
}

impl From<KeyRef<'_>> for ObjectKey {
    fn from(key: KeyRef<'_>) -> Self {
        Self {
            namespace: key.namespace.into(),
            name: key.name.into(),
        }
    }
}

impl Equivalent<ObjectKey> for KeyRef<'_> {
    fn equivalent(&self, key: &ObjectKey) -> bool {
        *self == key.borrowed()
    }
}

impl Hash for ObjectKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.borrowed().hash(state);
    }
}

impl ObjectKey {
    /// The key of an object.
    pub fn of<K: Resource>(object: &K) -> Self {
        KeyRef::of(object).into()
    }

    /// What a map is asked with.
    pub fn borrowed(&self) -> KeyRef<'_> {
        KeyRef {
            namespace: &self.namespace,
            name: &self.name,
        }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.namespace {
            "" => f.write_str(&self.name),
            namespace => write!(f, "{namespace}/{}", self.name),
        }
    }
}

/// One object to look at: what the queue holds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Work {
    /// A gate.
    Gate(ObjectKey),
    /// A gatekeeper.
    Gatekeeper(ObjectKey),
    /// A gate policy.
    GatePolicy(ObjectKey),
    /// A gated source.
    GatedSource(ObjectKey),
}

impl Work {
    /// The kind of the object, as the API names it.
    pub fn kind(&self) -> &'static str {
        match self {
            Work::Gate(_) => "Gate",
            Work::Gatekeeper(_) => "Gatekeeper",
            Work::GatePolicy(_) => "GatePolicy",
            Work::GatedSource(_) => "GatedSource",
        }
    }

    /// The name of the object.
    pub fn key(&self) -> &ObjectKey {
        match self {
            Work::Gate(key)
            | Work::Gatekeeper(key)
            | Work::GatePolicy(key)
            | Work::GatedSource(key) => key,
        }
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind(), self.key())
    }
}
