//! Commit statuses: what somebody has found out about a commit, and what a forge is told of it.
//!
//! What comes in ([`report::Given`]): a CommitStatus, why its forge may not be told, what has come of the last
//! errand, and the instant. What goes out ([`report::report`]): its status, what is to be told, and when to look
//! again. To tell the same twice does no harm, so nothing is written before it is told.

mod post;
pub mod report;
mod spec;
#[cfg(test)]
mod tests;

pub use post::{Post, Shown};
pub use spec::{check, is_same_name};
