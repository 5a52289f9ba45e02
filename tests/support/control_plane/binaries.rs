//! The servers' programs.
//!
//! What comes in: `control-plane/kubernetes/go.mod`, which pins them. What goes out: their paths.

use std::path::PathBuf;

use anyhow::Result;

use crate::progress::Progress;
use crate::tools;

/// The programs of a control plane.
#[derive(Clone, Debug)]
pub struct Binaries {
    folder: PathBuf,
}

impl Binaries {
    /// Finds the programs in the cache, or builds them there: minutes, the first time.
    ///
    /// # Errors
    ///
    /// See [`tools::ensure`].
    pub fn ensure(progress: &dyn Progress) -> Result<Self> {
        let folder = tools::ensure("kubernetes", progress)?;
        Ok(Self { folder })
    }

    pub(super) fn etcd(&self) -> PathBuf {
        // Called after its package, `go.etcd.io/etcd/server/v3`.
        self.folder.join("server")
    }

    pub(super) fn api_server(&self) -> PathBuf {
        self.folder.join("kube-apiserver")
    }

    pub(super) fn controller_manager(&self) -> PathBuf {
        self.folder.join("kube-controller-manager")
    }
}
