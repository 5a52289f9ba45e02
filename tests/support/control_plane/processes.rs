//! Servers that do not outlive us, and a folder that does not outlive the servers.
//!
//! What comes in: commands. What goes out: child processes under `supervise.sh` and a folder
//! under `sweep.sh`. Both scripts wait for the end of a pipe that we hold, because that is the
//! one thing the kernel guarantees even when we are killed with SIGKILL.

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

/// A temporary folder that is removed when we and every [`Server`] in it are gone.
pub(super) struct Workspace {
    path: PathBuf,
    /// Held open for as long as the folder is needed.
    pipe: Option<PipeWriter>,
    sweeper: Child,
}

impl Workspace {
    /// Creates a folder that only this user can read: there are tokens in it.
    pub(super) fn create() -> Result<Self> {
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

    pub(super) fn path(&self) -> &Path {
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
pub(super) struct Server {
    log: PathBuf,
    supervisor: Child,
}

impl Server {
    /// Starts `program` in the folder of `workspace`, its output in `<name>.log` there.
    pub(super) fn start(
        workspace: &Workspace,
        name: &str,
        program: &Path,
        arguments: &[String],
    ) -> Result<Self> {
        let log = workspace.path().join(format!("{name}.log"));
        let supervisor = Command::new("sh")
            .args(["-c", include_str!("supervise.sh"), "sluice-supervisor"])
            .arg(&log)
            .arg(program)
            .args(arguments)
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
    pub(super) fn exited(&mut self) -> Option<ExitStatus> {
        self.supervisor.try_wait().ok().flatten()
    }

    /// The last lines that the server logged.
    pub(super) fn log_tail(&self) -> String {
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
        let arguments = ["-c".to_owned(), script.to_owned()];
        Server::start(workspace, "test", Path::new("sh"), &arguments).unwrap()
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
        let mut server = shell(&workspace, "echo one; echo two >&2; exit 7");
        let status = until(|| server.exited());
        assert_eq!(status.code(), Some(7));
        assert_eq!(server.log_tail(), "one\ntwo");
    }

    #[test]
    fn a_dropped_server_is_dead_and_its_folder_gone() {
        let workspace = Workspace::create().unwrap();
        let folder = workspace.path().to_owned();
        let server = shell(&workspace, "echo $$ > pid; exec sleep 1000");
        let pid = until(|| {
            let text = std::fs::read_to_string(folder.join("pid")).ok()?;
            text.ends_with('\n').then_some(text)
        });
        drop(server);
        let alive = Command::new("kill")
            .args(["-0", pid.trim()])
            .output()
            .unwrap();
        assert!(!alive.status.success(), "process {pid} still runs");
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
