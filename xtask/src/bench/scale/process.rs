//! The released controller as a process: what it counts, what it costs.

use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use sluice_tests::poll;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(300);

/// A controller that ends when dropped.
pub(super) struct Controller {
    child: Child,
    metrics: u16,
    began: Instant,
}

/// What a process has cost so far.
pub(super) struct Usage {
    /// MiB.
    pub(super) resident: u64,
    /// MiB, at its highest.
    pub(super) highest: u64,
    /// Seconds of both cores.
    pub(super) cpu: f64,
}

impl Controller {
    pub(super) fn start(program: &Path, kubeconfig: &Path) -> Result<Self> {
        let metrics = free_port()?;
        let began = Instant::now();
        let child = Command::new(program)
            .arg(format!("--metrics-addr=127.0.0.1:{metrics}"))
            .args([
                "--health-addr=0",
                "--trust-unverified-identity",
                "--log-level=error",
            ])
            .env("KUBECONFIG", kubeconfig)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .context("cannot start the controller")?;
        Ok(Self {
            child,
            metrics,
            began,
        })
    }

    /// Waits until it has looked at `objects` objects and has nothing left to do. How long that
    /// took from its start.
    pub(super) async fn settled(&self, objects: usize) -> Result<Duration> {
        let wanted = u64::try_from(objects)?;
        poll(
            PATIENCE,
            "the controller to have looked at everything",
            async || {
                let page = self.page().await?;
                let looks = sum(&page, "gotk_reconcile_duration_seconds_count");
                let backlog = sum(&page, "sluice_queue_backlog");
                ensure!(
                    looks >= wanted && backlog == 0,
                    "{looks} looks, {backlog} left"
                );
                Ok::<_, anyhow::Error>(self.began.elapsed())
            },
        )
        .await
    }

    /// How many writes the API server has taken from it.
    pub(super) async fn writes(&self) -> Result<u64> {
        Ok(sum(&self.page().await?, "sluice_writes_total"))
    }

    pub(super) fn usage(&self) -> Result<Usage> {
        let pid = self.child.id().context("the controller has ended")?;
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
        let mib = |field: &str| -> Option<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(field))?;
            Some(line.trim().trim_end_matches(" kB").parse::<u64>().ok()? / 1024)
        };
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
        let times = stat
            .rsplit(')')
            .next()
            .context("no times")?
            .split_whitespace();
        let ticks: f64 = times
            .skip(11)
            .take(2)
            .filter_map(|time| time.parse::<f64>().ok())
            .sum();
        Ok(Usage {
            resident: mib("VmRSS:").context("no resident size")?,
            highest: mib("VmHWM:").context("no highest resident size")?,
            // The kernel counts in hundredths of a second wherever this runs.
            cpu: ticks / 100.0,
        })
    }

    async fn page(&self) -> Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.metrics)).await?;
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").await?;
        let mut page = String::new();
        stream.read_to_string(&mut page).await?;
        Ok(page)
    }
}

/// The sum of all samples of a metric.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts, which are written as floats"
)]
fn sum(page: &str, metric: &str) -> u64 {
    let samples = page.lines().filter(|line| {
        line.strip_prefix(metric)
            .is_some_and(|rest| rest.starts_with(['{', ' ']))
    });
    samples
        .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
        .sum::<f64>() as u64
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
