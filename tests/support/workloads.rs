//! Workloads that real controllers work on, and pods that start without a machine.
//!
//! What comes in: nothing, or the namespace of a test. What goes out: Deployments, StatefulSets and
//! CloneSets whose pods come, become ready or do not, and go, as a test wants it; and what is seen of
//! them.
//!
//! kube-controller-manager and OpenKruise's manager make the pods. kwok is the node: it plays the stages
//! of `workloads/stages.yaml` on each, by annotations that [`Readiness`] writes. There is no scheduler: a
//! pod names the node itself.

mod kruise;
mod kwok;
mod pods;
mod scene;
mod serving;
mod workload;
mod world;

use std::path::PathBuf;

use anyhow::Result;

use crate::cluster::Cluster;
use crate::controller::Process;
use crate::progress::Progress;
use crate::tools;

pub use pods::{Readiness, Replica};
pub use scene::Workloads;
pub use serving::{Extremes, Serving};
pub use workload::{Counts, Kind, Workload};
pub use world::{World, world};

/// The program that stands in for the node, and the folder in `control-plane/` that pins it.
const KWOK: &str = "kwok";

/// The controllers of CloneSets, and the folder in `control-plane/` that pins them.
const KRUISE: &str = "kruise";

/// Starts the node alone, on a control plane that has controllers of workloads.
///
/// # Errors
///
/// If it cannot be built or does not start.
pub async fn node(progress: &dyn Progress, cluster: &Cluster) -> Result<Process> {
    let program = tools::ensure(KWOK, progress)?.join(KWOK);
    kwok::start(&program, cluster).await
}

/// The node that all pods are on.
pub const NODE: &str = "kwok-0";

/// The programs besides those of a control plane.
#[derive(Clone, Debug)]
pub struct Programs {
    kwok: PathBuf,
    kruise: PathBuf,
    /// The folder of OpenKruise's CustomResourceDefinitions.
    definitions: PathBuf,
}

impl Programs {
    /// Finds them in the cache, or builds them there: three minutes on two cores, the first time.
    ///
    /// # Errors
    ///
    /// See [`tools::ensure`].
    pub fn ensure(progress: &dyn Progress) -> Result<Self> {
        let kwok = tools::ensure(KWOK, progress)?;
        let kruise = tools::ensure(KRUISE, progress)?;
        Ok(Self {
            kwok: kwok.join(KWOK),
            definitions: kruise.join(format!("{KRUISE}.kept")),
            kruise: kruise.join(KRUISE),
        })
    }
}
