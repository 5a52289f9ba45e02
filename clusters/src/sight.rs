//! What is known of an object, and why nothing is known.
//!
//! What comes in: what was read, or what is in the way. What goes out: words that say what to do. It uses
//! [`wanted`](crate::wanted), [`kubeconfig`] and [`held`](crate::held).

use std::sync::Arc;

use crate::held::Object;
use crate::kubeconfig;
use crate::wanted::{Kind, SecretKey};

/// What is known of an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Sight {
    /// It is there, as the API server said last.
    Seen(Arc<Object>),
    /// The API server has no such object.
    Absent,
    /// Nothing is known of it.
    Unknown(Unknown),
}

/// Why nothing is known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unknown {
    /// Nothing was heard so far.
    #[error("it was not read yet")]
    NotYet,
    /// The controller does not watch this namespace of its own cluster.
    #[error(
        "the controller sees only its own namespace; start it with --watch-all-namespaces, or write \
         that namespace"
    )]
    OutOfScope,
    /// The reference is wrong.
    #[error("{0}")]
    Reference(String),
    /// The cluster's object is not there.
    #[error("there is no {0}; create it, or write another clusterRef")]
    NoCluster(String),
    /// There is no Secret.
    #[error("there is no Secret {0}; create it with the kubeconfig under the key `value`")]
    NoSecret(SecretKey),
    /// There is no Secret, or it is not for this namespace. Which of them is not said to other namespaces.
    #[error(
        "the Secret {secret} is not for namespace {from}; add {from} to its annotation \
         sluice.dev/allowed-namespaces, as in `team-a,team-b`"
    )]
    NotAllowed {
        /// The Secret.
        secret: SecretKey,
        /// The namespace that wants it.
        from: String,
    },
    /// The controller may not read the Secret.
    #[error(
        "may not {verb} the Secret {secret}; bind the controller to a Role in namespace {} with get, \
         list and watch on secrets and resourceNames [{}]",
        secret.namespace,
        secret.name
    )]
    NoRight {
        /// The verb that is missing.
        verb: &'static str,
        /// The Secret.
        secret: SecretKey,
    },
    /// The cluster's own object says that the cluster is not ready.
    #[error("{0}")]
    NotReady(String),
    /// More other clusters are named than are seen: by the objects of its namespace, or by all.
    #[error("{whose} name more than {most} other clusters; name fewer of them")]
    TooManyClusters {
        /// Whose objects they are.
        whose: String,
        /// How many are seen.
        most: usize,
    },
    /// The kubeconfig cannot be used.
    #[error("the kubeconfig in Secret {secret}: {why}")]
    Kubeconfig {
        /// Where it is.
        secret: SecretKey,
        /// What is wrong with it.
        why: kubeconfig::Refusal,
    },
    /// The API server does not answer. That may end by itself.
    #[error("the API server cannot be read: {0}")]
    Away(String),
    /// The API server refuses the credentials, or cannot be read before somebody changes something.
    #[error("the API server cannot be read: {0}")]
    Unreachable(String),
    /// Nothing was heard for too long.
    #[error("nothing was heard of it for too long: {0}")]
    Silent(String),
    /// The API server does not serve the kind.
    #[error("the API server has no kind {0}; install its CustomResourceDefinition")]
    NoKind(Kind),
    /// The kind cannot be watched with the rights that there are.
    #[error("may not {verb} {what}; grant get, list and watch to {whom}")]
    Forbidden {
        /// Whose rights they are.
        whom: &'static str,
        /// The verb that is missing.
        verb: &'static str,
        /// Of what.
        what: String,
    },
    /// There is more than may be held.
    #[error("there is too much of it to hold: {0}")]
    TooMuch(String),
    /// The object cannot be read.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
}

/// The reasons of `Ready`, as Weave's pipelines have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The cluster that is named is not there.
    TargetClusterNotFound,
    /// It is there, and is not ready.
    TargetClusterNotReady,
    /// Anything else.
    TargetNotReadable,
}

impl Unknown {
    /// The reason that a condition has for it.
    pub fn reason(&self) -> Reason {
        match self {
            Unknown::NoCluster(_) | Unknown::NoSecret(_) => Reason::TargetClusterNotFound,
            Unknown::NotReady(_) => Reason::TargetClusterNotReady,
            Unknown::NotYet
            | Unknown::OutOfScope
            | Unknown::Reference(_)
            | Unknown::NotAllowed { .. }
            | Unknown::NoRight { .. }
            | Unknown::TooManyClusters { .. }
            | Unknown::Kubeconfig { .. }
            | Unknown::Away(_)
            | Unknown::Unreachable(_)
            | Unknown::Silent(_)
            | Unknown::NoKind(_)
            | Unknown::Forbidden { .. }
            | Unknown::TooMuch(_)
            | Unknown::Unreadable(_) => Reason::TargetNotReadable,
        }
    }

    /// Whether it says that the cluster itself cannot be reached, and not only some of its objects.
    pub fn is_of_cluster(&self) -> bool {
        match self {
            Unknown::NoCluster(_)
            | Unknown::NoSecret(_)
            | Unknown::NotReady(_)
            | Unknown::NoRight { .. }
            | Unknown::TooManyClusters { .. }
            | Unknown::Kubeconfig { .. }
            | Unknown::Away(_)
            | Unknown::Unreachable(_)
            | Unknown::Silent(_) => true,
            Unknown::NotYet
            | Unknown::OutOfScope
            | Unknown::Reference(_)
            | Unknown::NotAllowed { .. }
            | Unknown::NoKind(_)
            | Unknown::Forbidden { .. }
            | Unknown::TooMuch(_)
            | Unknown::Unreadable(_) => false,
        }
    }

    /// The same, or what was said before if it is trouble of the same kind: a cluster that is away says so
    /// in other words at each try, and nobody has to be told of each.
    pub(crate) fn after(self, before: Option<&Self>) -> Self {
        match (before, &self) {
            (Some(Unknown::Away(_)), Unknown::Away(_))
            | (Some(Unknown::Silent(_)), Unknown::Silent(_)) => before.cloned().unwrap_or(self),
            _ => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_of_one_kind_is_told_in_its_first_words() {
        let away = |why: &str| Unknown::Away(why.to_owned());
        let lasting = |why: &str| Unknown::Unreachable(why.to_owned());
        let refused = away("connection refused");
        assert_eq!(away("timed out").after(Some(&refused)), refused);
        assert_eq!(away("timed out").after(None), away("timed out"));
        // What somebody has to change is told each time.
        let denied = lasting("status 401");
        assert_eq!(denied.clone().after(Some(&refused)), denied);
        let other = lasting("its certificate has expired");
        assert_eq!(other.clone().after(Some(&denied)), other);
        assert_eq!(refused.clone().after(Some(&denied)), refused);
    }
}
