//! Accesses to repositories: what is wrong with one, whom it lets promote where, how often a forge is asked,
//! and what is told of that.
//!
//! What comes in: a GitRepositoryAccess, what is known of its repository, and an instant. What goes out
//! ([`report`]): its status, what has to be asked of the forge, and when to look again.

use jiff::SignedDuration;
use sluice_crds::GitRepositoryAccess;

use crate::text::refusal::{Refusal, Refusals};
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
/// It does not say that properly.
pub fn interval(object: &GitRepositoryAccess) -> Result<SignedDuration, Refusals> {
    let parsed = duration::parse(&object.spec.interval);
    let parsed = parsed.ok().filter(|it| (LEAST..=MOST).contains(it));
    let wrong = Refusal::new(
        "spec.interval",
        "it is no duration between 10s and 1h",
        "write one, such as 1m",
    );
    let mistakes = parsed.is_none().then_some(wrong).into_iter().collect();
    Refusals::unless_empty(mistakes, parsed.unwrap_or(LEAST))
}
