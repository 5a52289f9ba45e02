//! A control plane with the chart and with Flux on it.
//!
//! What comes in: nothing, or the environment of a chore. What goes out: a world that all tests of a
//! process share, or one of a test's own, where Flux may be stopped, killed and robbed.

use anyhow::{Result, anyhow};
use tokio::sync::OnceCell;

use super::{Flux, Programs, Reach, Registry};
use crate::cluster::Cluster;
use crate::control_plane::ControlPlane;
use crate::helm::Release;
use crate::installation;
use crate::progress::Stderr;

/// A control plane with the chart and with Flux on it, and a registry beside it.
pub struct World {
    // In the order in which they end.
    /// The controllers.
    pub flux: Flux,
    /// Where OCI artifacts are.
    pub registry: Registry,
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
        let (plane, _) = installation::start(&Release::default(), "").await?;
        let flux = Flux::start(&programs, plane.cluster(), Reach::Cluster).await?;
        Ok(Self {
            flux,
            registry,
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
