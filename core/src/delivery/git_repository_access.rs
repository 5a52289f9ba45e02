//! Accesses to repositories: what is wrong with one, whom it lets promote where, how often a forge is asked,
//! and what is told of that.
//!
//! What comes in: a GitRepositoryAccess, what is known of its repository, and an instant. What goes out
//! ([`report`]): its status, what has to be asked of the forge, and when to look again.

use jiff::SignedDuration;
use sluice_crds::GitRepositoryAccess;

use crate::text::refusal::Refusals;
use crate::time::duration;

mod allowed;
pub mod report;
mod spec;
#[cfg(test)]
mod tests;

pub use allowed::{allows, allows_namespace};
pub use spec::check;

/// The least and the most time between two lists of branches.
const LEAST: SignedDuration = SignedDuration::from_secs(10);
const MOST: SignedDuration = SignedDuration::from_hours(1);

/// How often its branches are listed.
///
/// # Errors
/// Something is wrong with its spec.
pub fn interval(object: &GitRepositoryAccess) -> Result<SignedDuration, Refusals> {
    check(object)?;
    Ok(duration::parse(&object.spec.interval).unwrap_or(SignedDuration::from_mins(1)))
}
