//! The real program: a process that can be paused, ended and killed.
//!
//! What comes in: a kubeconfig, a namespace, flags. What goes out: a running process and what it
//! logs. It runs under the script that the servers run under too, so that it does not outlive us.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tempfile::TempDir;

use crate::poll::poll;
use crate::programs::Program;

/// Until a process has started, or ended.
const DEADLINE: Duration = Duration::from_secs(20);

/// A controller in a process of its own. Dropped, it is killed.
pub struct Process {
    folder: TempDir,
    supervisor: Child,
    pid: String,
}

impl Process {
    /// Starts the program as replica `name`, to keep `namespace`, and waits until it runs.
    ///
    /// # Errors
    ///
    /// If there is no such program, or it does not start.
    pub async fn start(
        kubeconfig: &Path,
        namespace: &str,
        name: &str,
        flags: &[&str],
    ) -> Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("sluice-controller-")
            .tempdir()?;
        // The shell becomes the program, so that its process id is the program's.
        let and_tell = "echo $$ > pid && exec \"$@\"";
        let supervisor = Command::new("sh")
            .args(["-c", include_str!("../control_plane/supervise.sh"), "sh"])
            .arg(folder.path().join("log"))
            .args(["sh", "-c", and_tell, "sh"])
            .arg(Program::GateController.path()?)
            .args(super::flags(namespace))
            .args(flags)
            .env("KUBECONFIG", kubeconfig)
            .env("POD_NAME", name)
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start sh, which supervises the controller")?;
        let mut process = Self {
            folder,
            supervisor,
            pid: String::new(),
        };
        process.pid = poll(DEADLINE, "the controller to start", async || {
            let text = fs::read_to_string(process.folder.path().join("pid"))?;
            ensure!(text.ends_with('\n'), "half a process id");
            Ok(text.trim().to_owned())
        })
        .await?;
        Ok(process)
    }

    /// Kills it, as a crash would, and waits until it is gone.
    ///
    /// # Errors
    ///
    /// If it cannot be killed.
    pub async fn kill(self) -> Result<()> {
        self.signal("KILL")?;
        self.gone().await
    }

    /// Asks it to end, as Kubernetes does, and waits until it has.
    ///
    /// # Errors
    ///
    /// If it does not end.
    pub async fn terminate(self) -> Result<()> {
        self.signal("TERM")?;
        self.gone().await
    }

    /// Stops it where it stands, as a machine that sleeps does.
    ///
    /// # Errors
    ///
    /// If it is gone.
    pub fn pause(&self) -> Result<()> {
        self.signal("STOP")
    }

    /// Lets it go on after a pause.
    ///
    /// # Errors
    ///
    /// If it is gone.
    pub fn resume(&self) -> Result<()> {
        self.signal("CONT")
    }

    fn signal(&self, name: &str) -> Result<()> {
        let status = Command::new("kill")
            .args([&format!("-{name}"), &self.pid])
            .stderr(Stdio::null())
            .status()?;
        ensure!(
            status.success(),
            "no process {} to send SIG{name}",
            self.pid
        );
        Ok(())
    }

    async fn gone(mut self) -> Result<()> {
        poll(DEADLINE, "the controller to end", async || {
            let ended = self.supervisor.try_wait()?;
            ended.map(|_| ()).context("it runs")
        })
        .await
    }

    /// Everything that it has logged so far, a JSON object a line.
    ///
    /// # Errors
    ///
    /// If a line is no JSON.
    pub fn log(&self) -> Result<Vec<Value>> {
        let text = fs::read_to_string(self.log_file())?;
        // The last line may be half written.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let lines = whole.lines().filter(|line| !line.is_empty());
        lines
            .map(|line| serde_json::from_str(line).with_context(|| format!("no JSON: {line}")))
            .collect()
    }

    /// The first line that `matches`, as soon as it is there.
    ///
    /// # Errors
    ///
    /// If it is not there in time.
    pub async fn logged(&self, what: &str, matches: impl Fn(&Value) -> bool) -> Result<Value> {
        poll(DEADLINE, what, async || {
            let log = self.log()?;
            let found = log.iter().find(|line| matches(line)).cloned();
            found.with_context(|| fs::read_to_string(self.log_file()).unwrap_or_default())
        })
        .await
    }

    /// Where it serves `what`: `metrics` or `health`.
    ///
    /// # Errors
    ///
    /// If it does not say so in time.
    pub async fn address(&self, what: &str) -> Result<SocketAddr> {
        let line = self
            .logged("the addresses", |line| line["message"] == "starting")
            .await?;
        let address = line[what].as_str().context("it serves no such thing")?;
        Ok(address.parse()?)
    }

    fn log_file(&self) -> PathBuf {
        self.folder.path().join("log")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The supervisor kills it; one that is paused dies of it too.
        drop(self.supervisor.stdin.take());
        let _ = self.supervisor.wait();
    }
}
