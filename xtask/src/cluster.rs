//! `cargo xtask cluster up|down|kubeconfig`: a local control plane that outlives the command.
//!
//! What comes in: a subcommand, and whether Flux is to run there. What goes out: a process that holds
//! the control plane, and a file in the cache that says where it is. The process holds a lock as long as
//! it lives, so a file that was left by a killed process is recognized.

use std::fs::{self, File, TryLockError};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::Subcommand;
use serde::{Deserialize, Serialize};
use sluice_tests::flux::Programs;
use sluice_tests::progress::Stderr;
use sluice_tests::{Binaries, ControlPlane, Options, USERS, cache, poll};

use crate::signals::told_to_end;

mod flux;

use flux::{Beside, Row};

/// Longer than the deadlines of the control plane and of Flux, so that their errors are the ones
/// that are shown.
const UP_DEADLINE: Duration = Duration::from_secs(180);

const DOWN_DEADLINE: Duration = Duration::from_secs(20);

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Starts it and prints the path of its kubeconfig.
    Up {
        /// Hold it until Ctrl-C instead of leaving it behind.
        #[arg(long)]
        foreground: bool,
        /// Run Flux there, with a Git server, a registry and a Helm repository that it can fetch from.
        #[arg(long)]
        flux: bool,
    },
    /// Stops it and removes everything.
    Down,
    /// Prints the path of its kubeconfig: export KUBECONFIG=$(cargo xtask cluster kubeconfig).
    Kubeconfig,
}

/// A control plane that runs.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Running {
    /// Of the process that holds it.
    pid: u32,
    kubeconfig: PathBuf,
    /// What runs beside it, if Flux does.
    beside: Vec<Row>,
}

impl Running {
    /// Says on standard error what runs, and on standard output where the kubeconfig is.
    fn show(&self) {
        eprint!("{}", flux::table(&self.beside));
        println!("{}", self.kubeconfig.display());
    }
}

pub(crate) async fn run(command: Command) -> Result<()> {
    let place = Place {
        folder: cache::folder()?.join("cluster"),
    };
    match command {
        Command::Up { foreground, flux } => up(&place, foreground, flux).await,
        Command::Down => down(&place).await,
        Command::Kubeconfig => {
            let running = place.running()?;
            let running = running.context("no local control plane runs: cargo xtask cluster up")?;
            println!("{}", running.kubeconfig.display());
            Ok(())
        }
    }
}

/// Where the state is kept.
struct Place {
    folder: PathBuf,
}

impl Place {
    fn state(&self) -> PathBuf {
        self.folder.join("state.json")
    }

    fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    fn lock_file(&self) -> Result<File> {
        fs::create_dir_all(&self.folder)?;
        let path = self.folder.join("lock");
        File::create(&path).with_context(|| format!("cannot create {}", path.display()))
    }

    /// The control plane that runs, once it is ready.
    fn running(&self) -> Result<Option<Running>> {
        let Ok(text) = fs::read_to_string(self.state()) else {
            return Ok(None);
        };
        match self.lock_file()?.try_lock_shared() {
            // Nobody holds it: the file is left over.
            Ok(()) => Ok(None),
            Err(TryLockError::WouldBlock) => Ok(Some(serde_json::from_str(&text)?)),
            Err(TryLockError::Error(error)) => Err(error.into()),
        }
    }

    /// Written whole or not at all: others may be reading.
    fn record(&self, running: &Running) -> Result<()> {
        let unfinished = self.folder.join("state.unfinished");
        fs::write(&unfinished, serde_json::to_string_pretty(running)?)?;
        fs::rename(unfinished, self.state())?;
        Ok(())
    }

    /// Removes the state, ours or left over. Called by the holder of the lock alone.
    fn forget(&self) {
        // What is not there is removed well enough.
        let _ = fs::remove_file(self.state());
    }
}

async fn up(place: &Place, foreground: bool, flux: bool) -> Result<()> {
    if let Some(running) = place.running()? {
        ensure!(
            !flux || !running.beside.is_empty(),
            "it runs already, without Flux: cargo xtask cluster down, then up --flux"
        );
        eprintln!("It runs already. Stop it with: cargo xtask cluster down");
        running.show();
        return Ok(());
    }
    // Here, where progress is seen, and not in the process that nobody watches.
    let binaries = Binaries::ensure(&Stderr::new())?;
    let programs = flux.then(flux::ensure).transpose()?;
    if foreground {
        return hold(place, &binaries, programs.as_ref()).await;
    }
    let mut child = detach(place, flux)?;
    let running = poll(UP_DEADLINE, "the control plane", async || {
        if let Some(status) = child.try_wait()? {
            // Ended: there is nothing to wait for, so this is the answer.
            return Ok(Err(status));
        }
        let running = place.running()?.context("it is not ready yet")?;
        ensure!(running.pid == child.id(), "another process was there first");
        Ok::<_, anyhow::Error>(Ok(running))
    })
    .await?;
    match running {
        Ok(running) => {
            eprintln!(
                "It runs until: cargo xtask cluster down\n\
                 Use it with:   export KUBECONFIG=$(cargo xtask cluster kubeconfig)"
            );
            running.show();
            Ok(())
        }
        Err(status) => {
            let log = fs::read_to_string(place.log()).unwrap_or_default();
            bail!("the control plane ended with {status}:\n{log}")
        }
    }
}

/// Starts ourselves once more, to hold the control plane when this process is gone.
fn detach(place: &Place, flux: bool) -> Result<Child> {
    fs::create_dir_all(&place.folder)?;
    let log = File::create(place.log())?;
    std::process::Command::new(std::env::current_exe()?)
        .args(["cluster", "up", "--foreground"])
        .args(flux.then_some("--flux"))
        .current_dir("/")
        // Ctrl-C at this terminal later on is not meant for it.
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .context("cannot start the process that holds the control plane")
}

/// Holds a control plane until we are asked to end.
async fn hold(place: &Place, binaries: &Binaries, flux: Option<&Programs>) -> Result<()> {
    let lock = place.lock_file()?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => bail!("another process is starting or stopping it"),
        Err(TryLockError::Error(error)) => return Err(error.into()),
    }
    place.forget();
    // From here on they end us in order, and not at once.
    let told = told_to_end()?;
    let options = Options::default().with_users(&USERS).with_housekeeping();
    let serve = async {
        let plane = ControlPlane::start(binaries, options).await?;
        let beside = match flux {
            Some(programs) => Some(Beside::start(programs, plane.cluster()).await?),
            None => None,
        };
        let running = Running {
            pid: std::process::id(),
            kubeconfig: plane.kubeconfig().to_owned(),
            beside: beside.as_ref().map(Beside::rows).unwrap_or_default(),
        };
        place.record(&running)?;
        eprintln!("It runs until Ctrl-C. Its kubeconfig comes last:");
        running.show();
        std::future::pending::<Result<()>>().await
    };
    let ended = tokio::select! {
        () = told => Ok(()),
        result = serve => result,
    };
    place.forget();
    ended
}

async fn down(place: &Place) -> Result<()> {
    let Some(running) = place.running()? else {
        eprintln!("No local control plane runs.");
        return Ok(());
    };
    let pid = running.pid.to_string();
    let status = std::process::Command::new("kill").arg(&pid).status();
    ensure!(
        status.context("cannot start kill")?.success(),
        "cannot stop process {pid}"
    );
    poll(DOWN_DEADLINE, "the control plane to stop", async || {
        let folder = running.kubeconfig.parent().unwrap_or(&running.kubeconfig);
        ensure!(!folder.exists(), "{} is still there", folder.display());
        ensure!(
            place.lock_file()?.try_lock_shared().is_ok(),
            "process {pid} still runs"
        );
        Ok(())
    })
    .await?;
    eprintln!("Stopped and removed.");
    Ok(())
}

#[cfg(test)]
mod tests;
