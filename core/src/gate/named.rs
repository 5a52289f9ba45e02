//! A gate or gatekeeper that an object names, as it was found.

use std::sync::Arc;

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
