//! One server for all tests of a process, a second one for tests that need two, and one for a test alone.
//!
//! What comes in: the environment. What goes out: a [`Cluster`] with our CRDs, started by the one who
//! asks first, and gone with the process.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use tokio::sync::OnceCell;

use crate::apply::Applier;
use crate::cluster::Cluster;
use crate::control_plane::{Binaries, ControlPlane, Options};
use crate::progress::Stderr;

/// Names a kubeconfig: the tests run on that cluster and start none.
pub const KUBECONFIG_VARIABLE: &str = "SLUICE_TEST_KUBECONFIG";

/// The users of the shared server besides `admin`. They have no rights until a test grants some.
pub const USERS: [&str; 2] = ["alice", "bob"];

struct Shared {
    cluster: Cluster,
    /// Held for as long as the process lives. A static is never dropped; the servers end because
    /// their supervisors see us go.
    _plane: Option<ControlPlane>,
}

/// The server that all tests of this process share, with the CRDs of `crds/yaml` established.
///
/// # Errors
///
/// If it cannot be started. Anyone who asks later gets the same error without another try.
pub async fn shared() -> Result<&'static Cluster> {
    static SHARED: OnceCell<Result<Shared, String>> = OnceCell::const_new();
    let start = async || open().await.map_err(|error| format!("{error:#}"));
    match SHARED.get_or_init(start).await {
        Ok(shared) => Ok(&shared.cluster),
        Err(error) => Err(anyhow!("no server to test on: {error}")),
    }
}

async fn open() -> Result<Shared> {
    let shared = match env::var_os(KUBECONFIG_VARIABLE).filter(|path| !path.is_empty()) {
        Some(kubeconfig) => Shared {
            cluster: Cluster::at(PathBuf::from(kubeconfig)),
            _plane: None,
        },
        None => start(housekeeping()).await?,
    };
    define(&shared.cluster).await?;
    Ok(shared)
}

/// Applies the CRDs of `crds/yaml`.
async fn define(cluster: &Cluster) -> Result<()> {
    let crds = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("crds/yaml");
    if crds.is_dir() {
        let client = cluster.client().await?;
        Applier::new(client).path(&crds).await?;
    }
    Ok(())
}

/// A server for one test alone, with the CRDs of `crds/yaml` established.
///
/// # Errors
///
/// If it cannot be started.
pub async fn alone(options: Options) -> Result<ControlPlane> {
    let plane = ControlPlane::start(&Binaries::ensure(&Stderr::new())?, options).await?;
    define(plane.cluster()).await?;
    Ok(plane)
}

/// Another server for all tests of this process: one that only tests of other clusters need. It is always
/// a local one, and has no CRDs.
///
/// # Errors
///
/// If it cannot be started. Callers that come later get the same error without another try.
pub async fn second() -> Result<&'static Cluster> {
    static SECOND: OnceCell<Result<Shared, String>> = OnceCell::const_new();
    // Nobody collects garbage there: its collector would watch every kind, and tests count watches.
    let mut options = housekeeping();
    options
        .controllers
        .retain(|name| name != "garbage-collector-controller");
    let start = async || start(options).await.map_err(|error| format!("{error:#}"));
    match SECOND.get_or_init(start).await {
        Ok(second) => Ok(&second.cluster),
        Err(error) => Err(anyhow!("no second server to test on: {error}")),
    }
}

fn housekeeping() -> Options {
    Options::default().with_users(&USERS).with_housekeeping()
}

async fn start(options: Options) -> Result<Shared> {
    let binaries = Binaries::ensure(&Stderr::new())?;
    let plane = ControlPlane::start(&binaries, options).await?;
    Ok(Shared {
        cluster: plane.cluster().clone(),
        _plane: Some(plane),
    })
}
