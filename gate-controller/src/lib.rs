//! The controller: the only writer to a cluster.
//!
//! ```text
//!              controller              starts everything; flags, log
//!    act                   serve      writes │ answers those who ask
//!         artifacts                    copies of other sources' artifacts
//!    tell                  lease      what people hear │ whether this replica may write
//!              observe                 all that is known, in memory
//!              cluster                 the API server, and names
//! ```
//!
//! A room uses only rooms below it, and does not know the rooms beside it. Watches fill the caches
//! ([`observe`]). Everything that changes, or becomes due by the clock, goes into the queue. Workers take
//! one object at a time, gather, decide and apply ([`act`]). [`controller`] puts everything together;
//! `main.rs` has the flags and signals.

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
