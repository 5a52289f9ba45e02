//! The servers' programs.
//!
//! What comes in: `KUBEBUILDER_ASSETS`, the folder of an envtest installation, or else
//! `control-plane/kubernetes/go.mod`, which pins them. What goes out: their paths.

use std::env;
use std::path::PathBuf;

use anyhow::Result;

use crate::progress::{Progress, Stderr};
use crate::tools;

/// Names a folder with `etcd` and `kube-apiserver`, as envtest of controller-runtime does.
pub const ASSETS_VARIABLE: &str = "KUBEBUILDER_ASSETS";

/// The folder in `control-plane/` that pins all of them.
const MODULE: &str = "kubernetes";

const CONTROLLER_MANAGER: &str = "kube-controller-manager";

/// The programs of a control plane.
#[derive(Clone, Debug)]
pub struct Binaries {
    etcd: PathBuf,
    api_server: PathBuf,
    /// Unless it is still to be built: envtest has none.
    controller_manager: Option<PathBuf>,
}

impl Binaries {
    /// Takes the programs of `KUBEBUILDER_ASSETS` if they are there. Else finds them in the cache, or
    /// builds them there: minutes, the first time.
    ///
    /// # Errors
    ///
    /// See [`tools::ensure`].
    pub fn ensure(progress: &dyn Progress) -> Result<Self> {
        if let Some(installed) = Self::installed() {
            return Ok(installed);
        }
        let folder = tools::ensure(MODULE, progress)?;
        Ok(Self {
            // Called after its package, `go.etcd.io/etcd/server/v3`.
            etcd: folder.join("server"),
            api_server: folder.join("kube-apiserver"),
            controller_manager: Some(folder.join(CONTROLLER_MANAGER)),
        })
    }

    fn installed() -> Option<Self> {
        let folder = PathBuf::from(env::var_os(ASSETS_VARIABLE)?);
        let file = |name: &str| Some(folder.join(name)).filter(|path| path.is_file());
        Some(Self {
            etcd: file("etcd")?,
            api_server: file("kube-apiserver")?,
            controller_manager: file(CONTROLLER_MANAGER),
        })
    }

    /// The same, with the controller manager built if it is missing.
    ///
    /// # Errors
    ///
    /// See [`tools::ensure`].
    pub fn with_controllers(mut self, progress: &dyn Progress) -> Result<Self> {
        if self.controller_manager.is_none() {
            let folder = tools::ensure(MODULE, progress)?;
            self.controller_manager = Some(folder.join(CONTROLLER_MANAGER));
        }
        Ok(self)
    }

    pub(super) fn etcd(&self) -> &PathBuf {
        &self.etcd
    }

    pub(super) fn api_server(&self) -> &PathBuf {
        &self.api_server
    }

    /// Built now if it is missing: only a control plane that runs controllers needs it.
    pub(super) fn controller_manager(&self) -> Result<PathBuf> {
        match &self.controller_manager {
            Some(program) => Ok(program.clone()),
            None => Ok(tools::ensure(MODULE, &Stderr::new())?.join(CONTROLLER_MANAGER)),
        }
    }
}
