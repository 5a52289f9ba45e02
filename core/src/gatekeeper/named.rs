//! What an object names, as it was found: a gate, a gatekeeper, a Pipeline.

use std::sync::Arc;

use crate::verdict::{Opinion, Reason};

/// Why a gate or gatekeeper counts for nothing that may not be named.
pub const FORBIDDEN: &str = "it is in another namespace, which --no-cross-namespace-refs or \
     --watch-all-namespaces=false forbids";

/// The result of looking up a name.
#[derive(Clone, Debug, PartialEq)]
pub enum Named<T> {
    /// There is none of that name.
    Missing,
    /// It lives in another namespace, and such references are off.
    Forbidden,
    /// There is one, but the API server holds something that this version cannot read.
    Unreadable(Arc<str>),
    /// Here it is.
    Here(T),
}

impl<T> Named<T> {
    /// The same of what is here, borrowed.
    pub fn as_ref(&self) -> Named<&T> {
        match self {
            Named::Missing => Named::Missing,
            Named::Forbidden => Named::Forbidden,
            Named::Unreadable(why) => Named::Unreadable(Arc::clone(why)),
            Named::Here(here) => Named::Here(here),
        }
    }

    /// What is here.
    pub fn here(&self) -> Option<&T> {
        match self {
            Named::Here(here) => Some(here),
            Named::Missing | Named::Forbidden | Named::Unreadable(_) => None,
        }
    }

    /// What is here, to be asked. `missing`: the reason if there is none.
    ///
    /// # Errors
    /// What has to be said in its place, because it is not here.
    pub fn asked(&self, missing: Reason) -> Result<&T, Opinion> {
        match self {
            Named::Here(here) => Ok(here),
            Named::Missing => Err(Opinion::closed(missing)),
            Named::Forbidden => Err(Opinion::closed(Reason::CrossNamespaceRef)),
            Named::Unreadable(_) => Err(Opinion::closed(Reason::InvalidSpec)),
        }
    }

    /// Why it cannot be asked, in a sentence; `kind` is what it would be. None: it is here.
    pub fn obstacle(&self, kind: &str) -> Option<String> {
        match self {
            Named::Here(_) => None,
            Named::Missing => Some(format!("there is no such {kind}")),
            Named::Forbidden => Some(FORBIDDEN.to_owned()),
            Named::Unreadable(why) => Some(format!("it cannot be read: {why}")),
        }
    }

    /// The same, with something made of what is here.
    pub fn map<U>(self, make: impl FnOnce(T) -> U) -> Named<U> {
        match self {
            Named::Missing => Named::Missing,
            Named::Forbidden => Named::Forbidden,
            Named::Unreadable(why) => Named::Unreadable(why),
            Named::Here(here) => Named::Here(make(here)),
        }
    }
}
