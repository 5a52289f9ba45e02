//! What is wanted: names of clusters, kinds and objects.
//!
//! What comes in: what objects of ours name. What goes out: the same as types. No other room is used.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

/// The namespace and name of a Secret that has a kubeconfig.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SecretKey {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl fmt::Display for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// A cluster whose objects are seen. A clone costs no text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cluster {
    /// The one that this controller works for.
    Own,
    /// The one whose kubeconfig is in this Secret.
    Remote(Arc<SecretKey>),
}

impl fmt::Display for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cluster::Own => f.write_str("this cluster"),
            Cluster::Remote(secret) => write!(f, "the cluster of Secret {secret}"),
        }
    }
}

/// A kind, by its group: each cluster serves it in the version that it prefers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind {
    /// The group, such as `helm.toolkit.fluxcd.io`. Empty: the core of Kubernetes.
    pub group: String,
    /// The kind, such as `HelmRelease`.
    pub kind: String,
}

impl Kind {
    /// Whether it belongs to Flux. Those are there everywhere and small; objects of other kinds are
    /// followed only in the namespaces that are wanted.
    pub fn is_of_flux(&self) -> bool {
        self.group.ends_with(".toolkit.fluxcd.io")
            || ["infra.contrib.fluxcd.io", "gitops.weave.works"].contains(&&*self.group)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.group {
            "" => f.write_str(&self.kind),
            group => write!(f, "{}.{group}", self.kind),
        }
    }
}

/// How much is kept of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// What says how it is and what it runs: see [`Object`](crate::Object).
    State,
    /// All of it, because expressions look at it.
    Whole,
    /// What those keep who want it: see [`Fleet::keeping`](crate::Fleet::keeping).
    Kept,
}

/// Says what is kept of an object, which has all that the API server sends, and its kind.
pub type Keep = fn(Value) -> Value;

/// The objects of one kind in one namespace of one cluster, and who wants them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Wanted {
    /// The namespace of the object that wants them. A cluster is shown only to namespaces that its Secret
    /// allows.
    pub from: String,
    /// Where they are.
    pub cluster: Cluster,
    /// What they are.
    pub kind: Kind,
    /// Their namespace.
    pub namespace: String,
    /// How much of them is looked at.
    pub part: Part,
}

/// What somebody has to look at again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Change {
    /// One object has come, has changed in what is kept of it, or is gone.
    Object {
        /// Where it is.
        cluster: Cluster,
        /// What it is.
        kind: Kind,
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// All objects of a kind: whether they are known has changed.
    Objects {
        /// Where they are.
        cluster: Cluster,
        /// What they are.
        kind: Kind,
        /// Their namespace. None: all.
        namespace: Option<String>,
    },
    /// Everything on a cluster: whether it is known has changed.
    Cluster(Cluster),
}
