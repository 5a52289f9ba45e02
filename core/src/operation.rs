//! Operation: answers for the people who run an installation.
//!
//! What comes in: admission policies as they are installed, specs before and after a change, the
//! selector of a shard. What goes out: whether the policies are in force ([`policies`]), what has
//! changed ([`differences`]), the name of the shard's Lease ([`shard`]).
//!
//! It uses no other room.

pub mod differences;
pub mod policies;
pub mod shard;
