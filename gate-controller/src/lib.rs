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
//! A room uses only rooms below it: what is beside it, it does not know. Watches fill the caches
//! ([`observe`]); whatever changes, or comes due by the clock, goes into the queue; workers take an
//! object at a time, gather, decide and apply ([`act`]). [`controller`] puts it together; `main.rs` is
//! flags and signals.

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
