//! Accesses to repositories: what is wrong with one, and whom it lets promote where.

mod allowed;
mod spec;

pub use allowed::allows;
pub use spec::check;
