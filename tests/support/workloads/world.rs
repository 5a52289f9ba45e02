//! A control plane with the controllers of workloads, and a node for their pods.
//!
//! What comes in: nothing. What goes out: a world that all tests of a process share, or one of a test's
//! own, whose programs may be stopped and killed.

use anyhow::{Result, anyhow};
use tokio::sync::OnceCell;

use super::{Programs, kruise, kwok};
use crate::cluster::Cluster;
use crate::control_plane::{ControlPlane, Options};
use crate::controller::Process;
use crate::progress::Stderr;
use crate::shared::alone;

/// A control plane with our CRDs, and with Deployments, StatefulSets and CloneSets whose pods start.
pub struct World {
    // In the order in which they end.
    /// OpenKruise's manager: without it no CloneSet can be written.
    pub kruise: Process,
    /// The node: without it no pod starts, and none ends.
    pub kwok: Process,
    /// The servers.
    pub plane: ControlPlane,
}

impl World {
    /// Starts one: some ten seconds. It is always a local one.
    ///
    /// # Errors
    ///
    /// If something cannot be built or does not start.
    pub async fn start() -> Result<Self> {
        let programs = Programs::ensure(&Stderr::new())?;
        let options = Options::default().with_housekeeping().with_workloads();
        let plane = alone(options).await?;
        let (kwok, kruise) = tokio::join!(
            kwok::start(&programs.kwok, plane.cluster()),
            kruise::start(&programs, plane.cluster()),
        );
        Ok(Self {
            kruise: kruise?,
            kwok: kwok?,
            plane,
        })
    }

    /// The cluster of the servers.
    #[must_use]
    pub fn cluster(&self) -> &Cluster {
        self.plane.cluster()
    }
}

/// The world that all tests of this process share: nobody stops its programs.
///
/// # Errors
///
/// If it cannot be started. Anyone who asks later gets the same error without another try.
pub async fn world() -> Result<&'static World> {
    static WORLD: OnceCell<Result<World, String>> = OnceCell::const_new();
    let start = async || World::start().await.map_err(|error| format!("{error:#}"));
    let world = WORLD.get_or_init(start).await.as_ref();
    world.map_err(|error| anyhow!("no workloads to test with: {error}"))
}
