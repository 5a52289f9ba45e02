//! Commit statuses: what somebody has found out about a commit.

mod spec;
#[cfg(test)]
mod tests;

pub use spec::check;
