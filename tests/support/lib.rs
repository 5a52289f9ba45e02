//! What tests, demo and chores share: a control plane of one's own, and the means to work on it.
//!
//! What comes in: the pinned sources in `control-plane/`, or a kubeconfig of the user's own
//! cluster. What goes out: an API server that is ready, clients for it, namespaces that are
//! deleted after use, a way to apply YAML, and a way to wait for a condition.
//!
//! A test reads:
//!
//! ```no_run
//! # async fn test() -> anyhow::Result<()> {
//! use sluice_tests::{Namespace, shared};
//!
//! let cluster = shared().await?;
//! let client = cluster.client().await?;
//! let namespace = Namespace::create(cluster, "forced").await?;
//! # Ok(()) }
//! ```

pub mod apply;
pub mod cache;
pub mod clock;
pub mod cluster;
pub mod conformance;
pub mod control_plane;
pub mod controller;
pub mod flux;
pub mod gitea;
pub mod helm;
pub mod https;
pub mod hydrator;
mod identity;
pub mod installation;
pub mod keeper;
pub mod kubectl;
pub mod line;
mod namespace;
mod poll;
pub mod ports;
pub mod programs;
pub mod progress;
pub mod prometheus;
pub mod proxy;
pub mod rights;
mod serve;
mod shared;
pub mod stage;
pub mod status;
pub mod tools;
pub mod workloads;
mod writes;

pub use apply::Applier;
pub use cluster::Cluster;
pub use control_plane::{ASSETS_VARIABLE, Binaries, ControlPlane, Options, User, Workspace};
pub use namespace::{Namespace, TEST_LABEL};
pub use poll::{DEADLINE, poll};
pub use shared::{KUBECONFIG_VARIABLE, USERS, alone, second, shared};
pub use writes::Writes;
