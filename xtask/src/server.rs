//! The API server that a chore works on: the user's own, or one that is started for it.
//!
//! What comes in: `--kubeconfig` or `KUBECONFIG`. What goes out: a cluster that is ready.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use sluice_tests::progress::Stderr;
use sluice_tests::{Binaries, Cluster, ControlPlane, Options};

/// Where to work.
#[derive(Args, Clone)]
pub(crate) struct Server {
    /// Work on this cluster instead of a local control plane. Namespaces, CRDs and roles are
    /// created there.
    #[arg(long, env = "KUBECONFIG", value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

/// A cluster, and what keeps it running if it is ours.
pub(crate) struct Open {
    pub(crate) cluster: Cluster,
    /// Dropped with us: the local control plane ends.
    plane: Option<ControlPlane>,
}

impl Open {
    /// Whether the cluster was started for us, and ends with us.
    pub(crate) fn is_ours(&self) -> bool {
        self.plane.is_some()
    }
}

impl Server {
    /// Connects to the user's own cluster, or builds and starts a local control plane.
    pub(crate) async fn open(&self, options: Options) -> Result<Open> {
        let path = self
            .kubeconfig
            .as_ref()
            .filter(|path| !path.as_os_str().is_empty());
        let Some(path) = path else {
            let binaries = Binaries::ensure(&Stderr::new())?;
            let plane = ControlPlane::start(&binaries, options).await?;
            return Ok(Open {
                cluster: plane.cluster().clone(),
                plane: Some(plane),
            });
        };
        let cluster = Cluster::at(path);
        let version = cluster.client().await?.apiserver_version().await;
        let version = version
            .with_context(|| format!("the cluster of {} does not answer", path.display()))?;
        eprintln!(
            "Working on the cluster of {}: {}.",
            path.display(),
            version.git_version
        );
        Ok(Open {
            cluster,
            plane: None,
        })
    }
}
