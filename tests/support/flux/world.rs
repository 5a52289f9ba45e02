//! A control plane with the chart and with Flux on it, and with pods.
//!
//! What comes in: nothing, or the environment of a chore. What goes out: a world that all tests of a
//! process share, or one of a test's own, where Flux may be stopped, killed and robbed.

use anyhow::{Result, anyhow};
use serde_json::json;
use tokio::sync::OnceCell;

use super::{Flux, Programs, Reach, Registry};
use crate::cluster::Cluster;
use crate::control_plane::ControlPlane;
use crate::controller::Process;
use crate::helm::Release;
use crate::installation;
use crate::progress::Stderr;
use crate::workloads;

/// A control plane with the chart and with Flux on it, and a registry beside it. The pods of Deployments and
/// StatefulSets start as in [`workloads`].
pub struct World {
    // In the order in which they end.
    /// The controllers.
    pub flux: Flux,
    /// Where OCI artifacts are.
    pub registry: Registry,
    /// The node: without it no pod starts, and none ends.
    pub node: Process,
    /// The servers.
    pub plane: ControlPlane,
}

impl World {
    /// Starts one.
    ///
    /// # Errors
    ///
    /// If something cannot be built or does not start.
    pub async fn start() -> Result<Self> {
        let progress = Stderr::new();
        let programs = Programs::ensure(&progress)?;
        let registry = Registry::start(&progress).await?;
        let options = installation::options().with_workloads();
        let release = Release {
            values: json!({"rollouts": {"enabled": true}}),
            ..Release::default()
        };
        let (plane, _) = installation::start_on(options, &release, "").await?;
        let (flux, node) = tokio::join!(
            Flux::start(&programs, plane.cluster(), Reach::Cluster),
            workloads::node(&progress, plane.cluster()),
        );
        Ok(Self {
            flux: flux?,
            registry,
            node: node?,
            plane,
        })
    }

    /// The cluster that Flux works on.
    #[must_use]
    pub fn cluster(&self) -> &Cluster {
        self.plane.cluster()
    }
}

/// The world that all tests of this process share: nobody stops its controllers, or wipes their
/// store.
///
/// # Errors
///
/// If it cannot be started. Anyone who asks later gets the same error without another try.
pub async fn world() -> Result<&'static World> {
    static WORLD: OnceCell<Result<World, String>> = OnceCell::const_new();
    let start = async || World::start().await.map_err(|error| format!("{error:#}"));
    let world = WORLD.get_or_init(start).await;
    let world = world.as_ref();
    world.map_err(|error| anyhow!("no world to test in: {error}"))
}
