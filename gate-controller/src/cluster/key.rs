//! Names of objects, on our cluster and on others.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use hashbrown::Equivalent;
use kube::Resource;

use super::kind::Kind;

/// The namespace and name of an object; of one that is in none, the namespace is empty. Many indexes
/// hold the same one: a clone costs no text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectKey {
    /// The namespace.
    pub namespace: Arc<str>,
    /// The name.
    pub name: Arc<str>,
}

/// The same, borrowed: for look-ups in a map.
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

    /// The form for look-ups in a map.
    pub fn borrowed(&self) -> KeyRef<'_> {
        KeyRef {
            namespace: &self.namespace,
            name: &self.name,
        }
    }

    /// The key of an object that an object with this key refers to.
    pub fn naming(&self, namespace: Option<&str>, name: &str) -> Self {
        Self {
            namespace: match namespace {
                Some(namespace) => namespace.into(),
                None => Arc::clone(&self.namespace),
            },
            name: name.into(),
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

/// A cluster whose objects are known. All names of objects on it share its own name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cluster {
    /// The one that this controller works for.
    #[default]
    Own,
    /// Another one, by its name. Two pointers would make every [`Work`] larger.
    Named(Arc<Box<str>>),
}

/// An object of some kind on some cluster: what the queue holds, and what others are interested in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Work {
    /// Where it is.
    pub cluster: Cluster,
    /// What it is.
    pub kind: Kind,
    /// What it is called.
    pub key: ObjectKey,
}

impl Work {
    /// An object on our own cluster.
    pub fn own(kind: Kind, key: ObjectKey) -> Self {
        let cluster = Cluster::Own;
        Self { cluster, kind, key }
    }

    /// The path of the objects beside it at the API server.
    pub fn path(&self) -> String {
        self.kind.path(&self.key.namespace)
    }

    /// Represents all objects of a kind in a namespace of our own cluster, or all objects if the kind has
    /// no namespaces: no object has an empty name.
    pub fn all(kind: Kind, namespace: &str) -> Self {
        let key = KeyRef {
            namespace,
            name: "",
        };
        Self::own(kind, key.into())
    }

    /// Represents it and all others of its kind in its namespace.
    #[must_use]
    pub fn all_beside(&self) -> Self {
        Self {
            cluster: self.cluster.clone(),
            key: self.key.naming(None, ""),
            ..*self
        }
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.as_str(), self.key)?;
        match &self.cluster {
            Cluster::Own => Ok(()),
            Cluster::Named(name) => write!(f, " on {name}"),
        }
    }
}
