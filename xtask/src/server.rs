//! The API server that a chore works on: the user's own, or one that is started for it.
//!
//! What comes in: `--kubeconfig` or `KUBECONFIG`. What goes out: a cluster that is ready, and that
//! nobody else's Sluice runs on.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use sluice_tests::progress::Stderr;
use sluice_tests::{Binaries, Cluster, ControlPlane, Options, Workspace};

mod flux;
mod installed;
mod mark;

pub(crate) use mark::{clear, create_namespace, marked, sweep};

/// Where to work.
#[derive(Args, Clone)]
pub(crate) struct Server {
    /// Work on this cluster instead of a local control plane. Namespaces, CRDs and roles are
    /// created there, so a cluster on which Sluice is installed is refused.
    #[arg(long, env = "KUBECONFIG", value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

/// A cluster, and what keeps it running if it is ours.
pub(crate) struct Open {
    pub(crate) cluster: Cluster,
    /// Dropped with us: the local control plane ends.
    plane: Option<ControlPlane>,
    /// Where credentials for another's cluster go, for as long as we live.
    _scratch: Option<Workspace>,
}

impl Open {
    /// A control plane that was started for a chore, and ends with it.
    pub(crate) fn local(plane: ControlPlane) -> Self {
        Self {
            cluster: plane.cluster().clone(),
            plane: Some(plane),
            _scratch: None,
        }
    }

    /// Whether the cluster was started for us, and ends with us.
    pub(crate) fn is_ours(&self) -> bool {
        self.plane.is_some()
    }

    /// Makes sure that Flux can be started: it would replace the kinds of another.
    ///
    /// # Errors
    ///
    /// If Flux is installed on a cluster that is not ours.
    pub(crate) async fn has_no_flux(&self) -> Result<()> {
        if self.is_ours() {
            return Ok(());
        }
        let (address, _) = self.cluster.address().await?;
        flux::refuse(&self.cluster.client().await?, &address).await
    }
}

impl Server {
    /// A local control plane, whatever the environment says.
    pub(crate) fn local() -> Self {
        Self { kubeconfig: None }
    }

    /// Connects to the user's own cluster and says which that is, or builds and starts a local
    /// control plane.
    ///
    /// # Errors
    ///
    /// If there is no such cluster, or Sluice is installed on it.
    pub(crate) async fn open(&self, options: Options) -> Result<Open> {
        let path = self
            .kubeconfig
            .as_ref()
            .filter(|path| !path.as_os_str().is_empty());
        let Some(path) = path else {
            let binaries = Binaries::ensure(&Stderr::new())?;
            let plane = ControlPlane::start(&binaries, options).await?;
            return Ok(Open::local(plane));
        };
        let path = absolute(path)?;
        let scratch = Workspace::create()?;
        let cluster = Cluster::with_scratch(path.clone(), scratch.path().to_owned());
        let (address, context) = cluster.address().await?;
        let client = cluster.client().await?;
        let version = client.apiserver_version().await;
        let version = version.with_context(|| format!("{address} does not answer"))?;
        // Before anything is written: KUBECONFIG may have been set long ago.
        eprintln!(
            "Working on {address}, Kubernetes {}: context {context:?} of {}.",
            version.git_version,
            path.display(),
        );
        installed::refuse(&client, &address).await?;
        mark::sweep(&client).await?;
        Ok(Open {
            cluster,
            plane: None,
            _scratch: Some(scratch),
        })
    }
}

/// A path, or a list of paths as in `KUBECONFIG`, that means the same in every folder: tests and
/// controllers run in others.
fn absolute(list: &Path) -> Result<PathBuf> {
    let paths = env::split_paths(list).filter(|path| !path.as_os_str().is_empty());
    let paths: Vec<PathBuf> = paths.map(std::path::absolute).collect::<Result<_, _>>()?;
    Ok(env::join_paths(paths)?.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_mean_the_same_in_every_folder() {
        let here = env::current_dir().unwrap();
        let list = absolute(Path::new("/a:b/c:")).unwrap();
        let expected = format!("/a:{}", here.join("b/c").display());
        assert_eq!(list, Path::new(&expected));
    }
}
