//! Reverts: an environment goes back to what it had before.
//!
//! What comes in ([`report::Given`]): a RevertCommit, the strategies of its repository, and the instant. What goes
//! out ([`report::report`]): its status. A look does nothing else: the PromotionStrategy that has the environment
//! brings it back, and says in its own status how far that is.

pub mod report;
mod spec;
#[cfg(test)]
mod tests;

pub use spec::check;
