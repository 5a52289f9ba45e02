//! A program of ours: a process that can be paused, ended and killed.
//!
//! What comes in: a command; for the controller a kubeconfig, a namespace, flags. What goes out: a
//! running process and what it logs. It runs under the script that the servers run under too, so
//! that it does not outlive us, whatever ends us.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use parking_lot::Mutex;
use serde_json::Value;

use crate::control_plane::processes::{Server, Workspace};
use crate::poll::DEADLINE;
use crate::poll::poll;
use crate::programs::Program;

/// A process of its own. Dropped, it is killed.
pub struct Process {
    // In the order in which they end: the folder goes last.
    server: Mutex<Server>,
    _workspace: Workspace,
    pid: u32,
}

impl Process {
    /// Starts the controller as replica `name`, to keep `namespace`, and waits until it runs.
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
        let mut command = Command::new(Program::GateController.path()?);
        command
            .args(super::flags(namespace))
            .args(flags)
            .env("KUBECONFIG", kubeconfig)
            .env("POD_NAME", name);
        Self::run(&command).await
    }

    /// Starts a command and waits until it runs. The program, its arguments and its environment
    /// count; it runs in a folder of its own, and whatever it says goes into its log.
    ///
    /// # Errors
    ///
    /// If it does not start.
    pub async fn run(command: &Command) -> Result<Self> {
        Self::run_in(Workspace::create()?, command).await
    }

    /// The same in a folder that is there already.
    pub(crate) async fn run_in(workspace: Workspace, command: &Command) -> Result<Self> {
        let server = Server::start(&workspace, "process", command)?;
        let pid = poll(DEADLINE, "the process to start", async || server.pid()).await?;
        Ok(Self {
            server: Mutex::new(server),
            _workspace: workspace,
            pid,
        })
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether it still runs.
    ///
    /// # Errors
    ///
    /// If it has ended by itself, with its last words.
    pub fn runs(&self) -> Result<()> {
        let mut server = self.server.lock();
        match server.exited() {
            None => Ok(()),
            Some(status) => bail!(
                "it ended with {status}; its log ends:\n{}",
                server.log_tail()
            ),
        }
    }

    /// Polls as [`poll()`] does, for as long as the process runs.
    ///
    /// # Errors
    ///
    /// At the deadline, or as soon as the process has ended and `check` still fails.
    pub async fn until<T>(
        &self,
        deadline: Duration,
        what: &str,
        mut check: impl AsyncFnMut() -> Result<T>,
    ) -> Result<T> {
        poll(deadline, what, async || {
            // Asked before the check, which may still find what was said last.
            let runs = self.runs();
            match (check().await, runs) {
                (Ok(found), _) => Ok(Ok(found)),
                (Err(seen), Ok(())) => Err(seen),
                (Err(_), Err(ended)) => Ok(Err(ended.context(format!("waited for {what}")))),
            }
        })
        .await?
    }

    /// The last lines that it logged.
    #[must_use]
    pub fn log_tail(&self) -> String {
        self.server.lock().log_tail()
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

    /// Stops it where it stands, as a machine that sleeps does, and waits until all its threads stand
    /// still.
    ///
    /// # Errors
    ///
    /// If it is gone.
    pub fn pause(&self) -> Result<()> {
        self.signal("STOP")?;
        let stat = format!("/proc/{}/stat", self.pid);
        let end = Instant::now() + DEADLINE;
        loop {
            // The state stands behind the name, which is in brackets.
            // Systems without this file are not waited for.
            let Ok(text) = fs::read_to_string(&stat) else {
                return Ok(());
            };
            if text
                .rsplit(") ")
                .next()
                .is_some_and(|rest| rest.starts_with('T'))
            {
                return Ok(());
            }
            ensure!(Instant::now() < end, "process {} does not pause", self.pid);
            std::thread::sleep(Duration::from_millis(5));
        }
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
            .args([format!("-{name}"), self.pid.to_string()])
            .stderr(Stdio::null())
            .status()?;
        ensure!(
            status.success(),
            "no process {} to send SIG{name}",
            self.pid
        );
        Ok(())
    }

    async fn gone(self) -> Result<()> {
        poll(DEADLINE, "the process to end", async || {
            let ended = self.server.lock().exited();
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
        let text = fs::read_to_string(self.server.lock().log())?;
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
    /// If it is not there in time, or the process ends without it.
    pub async fn logged(&self, what: &str, matches: impl Fn(&Value) -> bool) -> Result<Value> {
        self.until(DEADLINE, what, async || {
            let log = self.log()?;
            let found = log.iter().find(|line| matches(line)).cloned();
            found.with_context(|| self.log_tail())
        })
        .await
    }

    /// Waits until the controller says that it leads, or that it does not any more.
    ///
    /// # Errors
    ///
    /// If it does not say so in time.
    pub async fn leads(&self, leads: bool) -> Result<()> {
        let changed = |line: &Value| line["leads"] == leads;
        self.logged("leadership to change", changed).await?;
        Ok(())
    }

    /// Waits until the controller knows everything.
    ///
    /// # Errors
    ///
    /// If it does not say so in time.
    pub async fn has_synced(&self) -> Result<()> {
        let synced = |line: &Value| line["message"] == "every cache has synced";
        self.logged("the caches to sync", synced).await?;
        Ok(())
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
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn shell(script: &str) -> Process {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Process::run(&command).await.unwrap()
    }

    #[tokio::test]
    async fn nobody_waits_for_a_process_that_has_ended() {
        let process = shell("echo '{\"n\": 1}'; exit 3").await;
        let one = process.logged("one", |line| line["n"] == 1).await.unwrap();
        assert_eq!(one["n"], 1);
        let error = process.logged("two", |line| line["n"] == 2).await;
        let said = format!("{:#}", error.unwrap_err());
        assert!(
            said.starts_with("waited for two: it ended with exit status: 3")
                && said.ends_with("{\"n\": 1}"),
            "{said}"
        );
    }

    #[tokio::test]
    async fn it_can_be_ended_and_nothing_is_left() {
        let process = shell("exec sleep 1000").await;
        let log = process.server.lock().log().to_owned();
        let folder = log.parent().unwrap();
        assert!(process.runs().is_ok() && folder.exists());
        process.terminate().await.unwrap();
        assert!(!folder.exists());
    }
}
