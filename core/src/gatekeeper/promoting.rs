//! The Pipeline that gatekeepers of the kind `pipeline` are judged from.

use std::sync::Arc;

use sluice_crds::Pipeline;

/// The Pipeline that a gatekeeper names, as far as it is known.
#[derive(Clone, Debug)]
pub enum Promoting {
    /// Here it is.
    Here(Arc<Pipeline>),
    /// There is none of that name.
    Missing,
    /// It is in another namespace, whose objects may not be named.
    Forbidden,
    /// This version cannot read it, and why.
    Unreadable(Arc<str>),
}
