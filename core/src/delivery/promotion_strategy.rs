//! Promotion strategies: what was made of a dry commit goes through branches, by pull requests.

pub mod child;
pub mod evidence;
mod spec;

pub use spec::{LONGEST_NAME, check};
