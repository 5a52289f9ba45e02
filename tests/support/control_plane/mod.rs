//! A real control plane on this machine: etcd, kube-apiserver and, if asked,
//! kube-controller-manager, on loopback and in a temporary folder.
//!
//! What comes in: [`Binaries`] and [`Options`]. What goes out: a [`ControlPlane`] whose API
//! server is ready. Nothing is left behind when it is dropped, when we panic, and when we are
//! interrupted or killed: see [`processes`].

mod binaries;
mod kubeconfig;
mod options;
pub(crate) mod processes;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, bail};
use http::Request;
use kube::Client;
use tokio::time::Instant;

pub use binaries::{ASSETS_VARIABLE, Binaries};
pub use options::{Options, User};

use crate::cluster::Cluster;
use crate::identity::Identity;
use crate::ports::free_port;
use options::{CERTIFICATE, KEY, TOKENS};
use processes::Server;
pub use processes::Workspace;

/// Until the API server must be ready: it takes about 3 s on two idle cores.
const READY_DEADLINE: Duration = Duration::from_secs(90);

/// How often a start is tried when another process took the port that was free a moment ago.
const ATTEMPTS: usize = 5;

/// A running control plane. Dropped, it is stopped and removed.
pub struct ControlPlane {
    // In the order in which they stop: the folder goes last.
    controller_manager: Option<Server>,
    api_server: Option<Server>,
    etcd: Server,
    workspace: Workspace,
    cluster: Cluster,
    port: u16,
    binaries: Binaries,
    options: Options,
}

impl ControlPlane {
    /// Starts the servers and waits until the API server is ready.
    ///
    /// # Errors
    ///
    /// If a server ends or is not ready in time: the error has the last lines of its log.
    pub async fn start(binaries: &Binaries, options: Options) -> Result<Self> {
        for _ in 1..ATTEMPTS {
            let mut plane = Self::prepare(binaries, options.clone())?;
            match plane.start_api_server().await {
                Err(error) if error.is::<PortTaken>() => {}
                Err(error) => return Err(error),
                Ok(()) => {
                    plane.start_controller_manager()?;
                    return Ok(plane);
                }
            }
        }
        bail!(
            "other processes took every free port that kube-apiserver was given, {ATTEMPTS} times"
        )
    }

    /// Everything up to the start of the API server.
    fn prepare(binaries: &Binaries, options: Options) -> Result<Self> {
        let workspace = Workspace::create()?;
        let folder = workspace.path();
        let mut users = vec![User::admin()];
        users.extend_from_slice(&options.users);
        std::fs::write(folder.join(TOKENS), options::token_file(&users)?)?;
        let port = free_port()?;
        let kubeconfig = folder.join("kubeconfig");
        kubeconfig::write(&kubeconfig, port, &folder.join(CERTIFICATE), &users)?;
        certify(folder)?;
        let etcd = Server::start(
            &workspace,
            "etcd",
            Command::new(binaries.etcd()).args(options::etcd_flags(folder)),
        )?;
        Ok(Self {
            controller_manager: None,
            api_server: None,
            etcd,
            cluster: Cluster::with_scratch(kubeconfig, folder.to_owned()),
            workspace,
            port,
            binaries: binaries.clone(),
            options,
        })
    }

    /// Starts the API server, again on its port, and waits until it is ready. Does nothing if it
    /// runs.
    ///
    /// # Errors
    ///
    /// If it ends or is not ready in time: the error has the last lines of its log.
    pub async fn start_api_server(&mut self) -> Result<()> {
        if self.api_server.is_none() {
            let folder = self.workspace.path();
            let flags = options::api_server_flags(folder, self.port, &self.options);
            self.api_server = Some(Server::start(
                &self.workspace,
                "kube-apiserver",
                Command::new(self.binaries.api_server()).args(flags),
            )?);
        }
        self.wait_until_ready().await
    }

    /// Kills the API server, as a crash would. Its data stay: [`Self::start_api_server`] goes on
    /// with them.
    pub fn stop_api_server(&mut self) {
        self.api_server = None;
    }

    fn start_controller_manager(&mut self) -> Result<()> {
        if self.options.controllers.is_empty() {
            return Ok(());
        }
        let folder = self.workspace.path();
        let flags = options::controller_manager_flags(folder, self.kubeconfig(), &self.options);
        self.controller_manager = Some(Server::start(
            &self.workspace,
            "kube-controller-manager",
            Command::new(self.binaries.controller_manager()?).args(flags),
        )?);
        Ok(())
    }

    async fn wait_until_ready(&mut self) -> Result<()> {
        let end = Instant::now() + READY_DEADLINE;
        while Instant::now() < end {
            self.check_that_servers_run()?;
            if self.ready().await.is_ok() {
                return Ok(());
            }
            pause().await;
        }
        let log = self.api_server.as_ref().map(Server::log_tail);
        bail!(
            "kube-apiserver was not ready after {READY_DEADLINE:?}; its log ends:\n{}",
            log.unwrap_or_default(),
        )
    }

    fn check_that_servers_run(&mut self) -> Result<()> {
        if let Some(status) = self.etcd.exited() {
            bail!(
                "etcd ended with {status}; its log ends:\n{}",
                self.etcd.log_tail()
            );
        }
        if let Some(server) = &mut self.api_server
            && let Some(status) = server.exited()
        {
            let log = server.log_tail();
            self.api_server = None;
            if log.contains("address already in use") {
                return Err(PortTaken(self.port).into());
            }
            bail!("kube-apiserver ended with {status}; its log ends:\n{log}");
        }
        Ok(())
    }

    async fn ready(&self) -> Result<()> {
        let client = self.cluster.client().await?;
        let request = Request::get("/readyz").body(Vec::new())?;
        let answer = client.request_text(request);
        tokio::time::timeout(Duration::from_secs(5), answer).await??;
        Ok(())
    }

    /// The server as tests and demo see it.
    #[must_use]
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The kubeconfig: a context for `admin`, the current one, and one for each user.
    #[must_use]
    pub fn kubeconfig(&self) -> &Path {
        self.cluster.kubeconfig()
    }

    /// A client with all rights, bound to the calling runtime.
    ///
    /// # Errors
    ///
    /// See [`Cluster::client`].
    pub async fn client(&self) -> Result<Client> {
        self.cluster.client().await
    }

    /// A client that acts as `user`.
    ///
    /// # Errors
    ///
    /// See [`Cluster::client_for`].
    pub async fn client_for(&self, user: &str) -> Result<Client> {
        self.cluster.client_for(user).await
    }

    /// The port of the API server, which it keeps when it is started again.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder of everything, with the logs: `etcd.log`, `kube-apiserver.log`,
    /// `kube-controller-manager.log`.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        self.workspace.path().to_owned()
    }
}

/// Writes the certificate and the key of the API server. By itself it would make one of RSA, whose use is
/// a tenth of its work where each test opens dozens of connections.
fn certify(folder: &Path) -> Result<()> {
    let identity = Identity::create()?;
    let (certificate, key) = (folder.join(CERTIFICATE), folder.join(KEY));
    if let Some(place) = certificate.parent() {
        std::fs::create_dir(place)?;
    }
    std::fs::write(certificate, identity.certificate + &identity.authority)?;
    // What service accounts are known by is read from the public key alone.
    std::fs::write(key, identity.key + &identity.public_key)?;
    Ok(())
}

/// Another process listens on the port that we found free.
#[derive(Debug)]
struct PortTaken(u16);

impl std::fmt::Display for PortTaken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "another process listens on port {}", self.0)
    }
}

impl std::error::Error for PortTaken {}

#[allow(
    clippy::disallowed_methods,
    reason = "the pause between two looks at a starting server, bounded by READY_DEADLINE"
)]
async fn pause() {
    tokio::time::sleep(Duration::from_millis(50)).await;
}
