//! The controller: the only writer to a cluster.
//!
//! Watches fill the caches ([`cache`], [`world`]); whatever changes, or comes due by the clock,
//! goes into the queue ([`queue`]); workers take an object at a time, gather, decide and apply
//! ([`reconcile`]). [`controller`] puts it together; `main.rs` is flags and signals.

pub mod act;
pub mod artifacts;
pub mod cluster;
pub mod controller;
pub mod lease;
pub mod observe;
pub mod serve;
pub mod tell;

pub use controller::settings::Settings;
pub use controller::{Controller, start};
