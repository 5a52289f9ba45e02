//! Operation: what people ask who look after an installation.
//!
//! What comes in: admission policies as they are installed, specs before and after a change, the
//! selector of a shard. What goes out: whether the policies are in force ([`policies`]), what has changed
//! ([`differences`]), what the shard's Lease is called ([`shard`]).
//!
//! It uses no other room.

pub mod differences;
pub mod policies;
pub mod shard;
