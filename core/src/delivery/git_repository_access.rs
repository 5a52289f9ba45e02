//! Accesses to repositories: what is wrong with one, whom it lets promote where, how often its forge is asked,
//! and what is told of that.
//!
//! What comes in: a GitRepositoryAccess; what is known of its repository, and an instant. What goes out:
//! mistakes ([`check`]), whether others may use it ([`allows`]); its status, what has to be asked of the forge,
//! and when to look again ([`report`]).

use jiff::SignedDuration;
use sluice_crds::GitRepositoryAccess;

use crate::text::refusal::Refusals;
use crate::time::duration;

mod allowed;
pub mod report;
mod spec;
#[cfg(test)]
mod tests;

pub use allowed::allows;
pub use spec::check;

/// How often its branches are listed.
///
/// # Errors
/// Everything that is wrong with it.
pub fn interval(object: &GitRepositoryAccess) -> Result<SignedDuration, Refusals> {
    check(object)?;
    let interval = duration::parse(&object.spec.interval);
    Ok(interval.unwrap_or(SignedDuration::from_mins(1)))
}
