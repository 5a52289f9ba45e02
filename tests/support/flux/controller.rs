//! One controller of Flux: a process that is stopped, killed and started again.
//!
//! What comes in: a program, its flags, whom it speaks as. What goes out: a controller that is ready
//! each time it was started.

use std::fmt::{self, Display};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use tempfile::TempPath;
use tokio::net::TcpStream;
use tokio::sync::Mutex;

use super::{NAMESPACE, Reach};
use crate::controller::Process;
use crate::poll::DEADLINE;

/// The flags of a controller, and where it listens besides.
pub(super) struct Flags {
    flags: Vec<String>,
    listens: Option<SocketAddr>,
}

impl Flags {
    /// Those that let it try again sooner than people would want it to.
    pub(super) fn sooner() -> Self {
        let flags = Self {
            flags: Vec::new(),
            listens: None,
        };
        flags
            .with("min-retry-delay", "100ms")
            .with("max-retry-delay", "1s")
    }

    /// One more.
    pub(super) fn with(mut self, flag: &str, value: impl Display) -> Self {
        self.flags.push(format!("--{flag}={value}"));
        self
    }

    /// It is not ready before it listens here.
    pub(super) fn listening_on(mut self, address: SocketAddr) -> Self {
        self.listens = Some(address);
        self
    }
}

/// A controller of Flux. Dropped, it is killed.
pub struct Controller {
    name: &'static str,
    program: PathBuf,
    kubeconfig: TempPath,
    namespace: String,
    flags: Flags,
    health: SocketAddr,
    /// For what it unpacks: killed, it leaves it behind.
    scratch: PathBuf,
    /// None: it is stopped.
    process: Mutex<Option<Process>>,
}

impl Controller {
    pub(super) fn new(
        name: &'static str,
        program: PathBuf,
        kubeconfig: TempPath,
        reach: Reach<'_>,
        flags: Flags,
        health: SocketAddr,
        scratch: PathBuf,
    ) -> Self {
        let (all, namespace) = match reach {
            Reach::Cluster => (true, NAMESPACE),
            Reach::Namespace(namespace) => (false, namespace),
        };
        let flags = flags
            .with("watch-all-namespaces", all)
            .with("health-addr", health)
            // Nobody asks for them.
            .with("metrics-addr", 0);
        Self {
            name,
            program,
            kubeconfig,
            namespace: namespace.to_owned(),
            flags,
            health,
            scratch,
            process: Mutex::new(None),
        }
    }

    /// Its name: `source-controller`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Starts it, and waits until it is ready. Does nothing if it runs.
    ///
    /// # Errors
    ///
    /// If it ends or is not ready in time: the error has the last lines of its log.
    pub async fn start(&self) -> Result<()> {
        let mut process = self.process.lock().await;
        if process.is_some() {
            return Ok(());
        }
        let started = Process::run(&self.command()).await?;
        if let Err(error) = self.ready(&started).await {
            if started.log_tail().contains("address already in use") {
                return Err(PortTaken(self.name).into());
            }
            return Err(error.context(format!("{} did not start", self.name)));
        }
        *process = Some(started);
        Ok(())
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(&self.flags.flags)
            .env("KUBECONFIG", &*self.kubeconfig)
            .env("RUNTIME_NAMESPACE", &self.namespace)
            .env("TMPDIR", &self.scratch);
        command
    }

    async fn ready(&self, process: &Process) -> Result<()> {
        let addresses = [Some(self.health), self.flags.listens];
        for address in addresses.into_iter().flatten() {
            let what = format!("{} to listen on {address}", self.name);
            let look = async || TcpStream::connect(address).await.map_err(Into::into);
            process.until(DEADLINE, &what, look).await?;
        }
        Ok(())
    }

    /// Asks it to end, as Kubernetes does, and waits until it has.
    ///
    /// # Errors
    ///
    /// If it does not run, or does not end.
    pub async fn stop(&self) -> Result<()> {
        self.take().await?.terminate().await
    }

    /// Kills it, as a crash would, and waits until it is gone.
    ///
    /// # Errors
    ///
    /// If it does not run.
    pub async fn kill(&self) -> Result<()> {
        self.take().await?.kill().await
    }

    /// Stops it and starts it again: what it keeps on disk is still there.
    ///
    /// # Errors
    ///
    /// See [`Self::stop`] and [`Self::start`].
    pub async fn restart(&self) -> Result<()> {
        self.stop().await?;
        self.start().await
    }

    /// Lets it stand still, as a machine that sleeps does.
    ///
    /// # Errors
    ///
    /// If it does not run.
    pub async fn pause(&self) -> Result<()> {
        match &*self.process.lock().await {
            Some(process) => process.pause(),
            None => bail!("{} does not run", self.name),
        }
    }

    /// Lets it go on after a pause.
    ///
    /// # Errors
    ///
    /// If it does not run.
    pub async fn resume(&self) -> Result<()> {
        match &*self.process.lock().await {
            Some(process) => process.resume(),
            None => bail!("{} does not run", self.name),
        }
    }

    /// Its process, for as long as it runs.
    ///
    /// # Errors
    ///
    /// If it does not run.
    pub async fn pid(&self) -> Result<u32> {
        let process = self.process.lock().await;
        let process = process.as_ref();
        let process = process.with_context(|| format!("{} does not run", self.name))?;
        Ok(process.pid())
    }

    /// Whether it runs, and the last lines that it logged, for errors.
    pub async fn state(&self) -> String {
        let process = self.process.lock().await;
        match process.as_ref().map(|process| (process, process.runs())) {
            None => format!("{} does not run", self.name),
            Some((process, Ok(()))) => {
                format!("{} runs; its log ends:\n{}", self.name, process.log_tail())
            }
            Some((_, Err(ended))) => format!("{}: {ended:#}", self.name),
        }
    }

    async fn take(&self) -> Result<Process> {
        let process = self.process.lock().await.take();
        process.with_context(|| format!("{} does not run", self.name))
    }
}

/// Another process listens on a port that we found free.
#[derive(Debug)]
pub(super) struct PortTaken(&'static str);

impl Display for PortTaken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "another process listens on a port of {}", self.0)
    }
}

impl std::error::Error for PortTaken {}
