//! Servers that do not outlive us, and a folder that does not outlive the servers.
//!
//! What comes in: commands. What goes out: child processes under `supervise.sh` and a folder
//! under `sweep.sh`. Both scripts wait for the end of a pipe that we hold, because that is the
//! one thing the kernel guarantees even when we are killed with SIGKILL.
//!
//! The controller runs this way too: see [`crate::controller::Process`].

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// How long a drop waits for what it stopped. SIGKILL and `rm` take milliseconds.
const STOP_DEADLINE: Duration = Duration::from_secs(10);

/// A temporary folder that is removed when we, and every server that runs in it, are gone: also
/// when we are killed.
pub struct Workspace {
    path: PathBuf,
    /// Held open for as long as the folder is needed.
    pipe: Option<PipeWriter>,
    sweeper: Child,
}

impl Workspace {
    /// Creates a folder that only this user can read: there are tokens in it.
    ///
    /// # Errors
    ///
    /// If it cannot be created, or nobody could remove it.
    pub fn create() -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("sluice-").tempdir()?;
        let (reader, writer) = io::pipe()?;
        let sweeper = start_sweeper(folder.path(), reader)
            .context("cannot start sh, which removes the control plane's folder afterwards")?;
        Ok(Self {
            path: folder.keep(),
            pipe: Some(writer),
            sweeper,
        })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Another hold on the folder.
    fn lease(&self) -> Result<PipeWriter> {
        let pipe = self.pipe.as_ref().context("the folder is being removed")?;
        Ok(pipe.try_clone()?)
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        drop(self.pipe.take());
        wait(&mut self.sweeper);
    }
}

fn start_sweeper(folder: &Path, stdin: PipeReader) -> io::Result<Child> {
    Command::new("sh")
        .args(["-c", include_str!("sweep.sh"), "sluice-sweeper"])
        .arg(folder)
        .current_dir("/")
        // Ctrl-C in a terminal goes to a whole process group: not to this one.
        .process_group(0)
        .stdin(stdin)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}

/// A running server. Dropped, it is killed.
pub(crate) struct Server {
    log: PathBuf,
    supervisor: Child,
}

impl Server {
    /// Starts a command in the folder of `workspace`, its output in `<name>.log` there. Of the
    /// command, the program, its arguments and its environment count.
    pub(crate) fn start(workspace: &Workspace, name: &str, command: &Command) -> Result<Self> {
        let log = workspace.path().join(format!("{name}.log"));
        let mut supervisor = Command::new("sh");
        // Programs in Go collect garbage less often: that is a tenth of the work of an API server.
        supervisor.env("GOGC", "400");
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => supervisor.env(name, value),
                None => supervisor.env_remove(name),
            };
        }
        let supervisor = supervisor
            .args(["-c", include_str!("supervise.sh"), "sluice-supervisor"])
            .arg(&log)
            .arg(command.get_program())
            .args(command.get_args())
            .current_dir(workspace.path())
            .process_group(0)
            .stdin(Stdio::piped())
            // Never written to: it holds the folder for as long as the supervisor lives.
            .stdout(workspace.lease()?)
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start sh, which supervises {name}"))?;
        Ok(Self { log, supervisor })
    }

    /// The status with which the server ended by itself, if it did.
    pub(crate) fn exited(&mut self) -> Option<ExitStatus> {
        self.supervisor.try_wait().ok().flatten()
    }

    /// The id of the server's process, once the supervisor has started it.
    pub(crate) fn pid(&self) -> Result<u32> {
        let path = self.log.with_extension("log.pid");
        let text = std::fs::read_to_string(path).context("it has not started")?;
        // Written with an end of the line: without it, it is half written.
        let pid = text.strip_suffix('\n').context("half a process id")?;
        Ok(pid.parse()?)
    }

    /// The file that holds everything that the server has said.
    pub(crate) fn log(&self) -> &Path {
        &self.log
    }

    /// The last lines that the server logged.
    pub(crate) fn log_tail(&self) -> String {
        tail(&self.log, 12).unwrap_or_else(|error| format!("no log: {error}"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.supervisor.stdin.take());
        wait(&mut self.supervisor);
    }
}

/// Waits for a child that has been told to end.
fn wait(child: &mut Child) {
    let end = Instant::now() + STOP_DEADLINE;
    while matches!(child.try_wait(), Ok(None)) && Instant::now() < end {
        thread::sleep(Duration::from_millis(2));
    }
}

/// The last `count` lines of a file, of which at most the last 16 KiB are read.
fn tail(path: &Path, count: usize) -> io::Result<String> {
    const LIMIT: u64 = 16 * 1024;
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LIMIT)))?;
    let mut bytes = Vec::new();
    file.take(LIMIT).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    Ok(lines[lines.len().saturating_sub(count)..].join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(workspace: &Workspace, script: &str) -> Server {
        let mut command = Command::new("sh");
        command.args(["-c", script]).env("WORD", "two");
        Server::start(workspace, "test", &command).unwrap()
    }

    fn until<T>(mut check: impl FnMut() -> Option<T>) -> T {
        let end = Instant::now() + STOP_DEADLINE;
        loop {
            if let Some(found) = check() {
                return found;
            }
            assert!(Instant::now() < end, "waited {STOP_DEADLINE:?}");
            thread::sleep(Duration::from_millis(2));
        }
    }

    #[test]
    fn a_server_that_ends_by_itself_reports_status_and_log() {
        let workspace = Workspace::create().unwrap();
        let mut server = shell(&workspace, "echo one; echo $WORD >&2; exit 7");
        let status = until(|| server.exited());
        assert_eq!(status.code(), Some(7));
        assert_eq!(server.log_tail(), "one\ntwo");
    }

    #[test]
    fn a_dropped_server_is_dead_and_its_folder_gone() {
        let workspace = Workspace::create().unwrap();
        let folder = workspace.path().to_owned();
        let server = shell(&workspace, "exec sleep 1000");
        let pid = until(|| server.pid().ok());
        let lives = || {
            let mut kill = Command::new("kill");
            kill.args(["-0", &pid.to_string()]).stderr(Stdio::null());
            kill.status().unwrap().success()
        };
        assert!(lives(), "process {pid} does not run");
        drop(server);
        assert!(!lives(), "process {pid} still runs");
        assert!(
            folder.exists(),
            "the folder must outlive a server that is only stopped"
        );
        drop(workspace);
        assert!(!folder.exists());
    }

    #[test]
    fn a_folder_waits_for_the_servers_in_it() {
        let workspace = Workspace::create().unwrap();
        let folder = workspace.path().to_owned();
        let lease = workspace.lease().unwrap();
        let remover = thread::spawn(move || drop(workspace));
        assert!(folder.exists(), "removed while somebody held it");
        drop(lease);
        remover.join().unwrap();
        assert!(!folder.exists());
    }
}
