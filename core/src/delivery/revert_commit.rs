//! Reverts: an environment goes back to what it had before.

mod spec;
#[cfg(test)]
mod tests;

pub use spec::check;
