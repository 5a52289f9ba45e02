//! The released controller as a process: what it counts, what it costs.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use sluice_tests::controller::Process;
use sluice_tests::ports::free_port;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(300);

/// A controller that keeps one namespace. It ends when dropped, and with us.
pub(super) struct Controller {
    process: Process,
    metrics: u16,
    began: Instant,
}

/// What a process has cost so far.
pub(super) struct Usage {
    /// MiB.
    pub(super) resident: u64,
    /// The same in KiB, for differences.
    pub(super) resident_kib: u64,
    /// MiB, at its highest.
    pub(super) highest: u64,
    /// Seconds of both cores.
    pub(super) cpu: f64,
}

impl Controller {
    pub(super) async fn start(
        program: &Path,
        kubeconfig: &Path,
        namespace: &str,
        flags: &[&str],
    ) -> Result<Self> {
        let metrics = free_port()?;
        let mut command = Command::new(program);
        command
            .arg(format!("--metrics-addr=127.0.0.1:{metrics}"))
            .arg(format!("--runtime-namespace={namespace}"))
            .args([
                "--watch-all-namespaces=false",
                "--health-addr=0",
                "--trust-unverified-identity",
                "--log-level=error",
            ])
            .args(flags)
            .env("KUBECONFIG", kubeconfig);
        let began = Instant::now();
        Ok(Self {
            process: Process::run(&command).await?,
            metrics,
            began,
        })
    }

    /// Waits until it has looked at `objects` objects and has nothing left to do. How long that
    /// took from its start.
    pub(super) async fn settled(&self, objects: usize) -> Result<Duration> {
        let wanted = u64::try_from(objects)?;
        let what = "the controller to have looked at everything";
        let settled = self.process.until(PATIENCE, what, async || {
            let page = self.page().await?;
            let looks = sum(&page, "gotk_reconcile_duration_seconds_count");
            let backlog = sum(&page, "sluice_queue_backlog");
            ensure!(
                looks >= wanted && backlog == 0,
                "{looks} looks, {backlog} left"
            );
            Ok(self.began.elapsed())
        });
        settled.await
    }

    /// How long ago it was started.
    pub(super) fn age(&self) -> Duration {
        self.began.elapsed()
    }

    /// How many writes the API server has taken from it.
    pub(super) async fn writes(&self) -> Result<u64> {
        Ok(sum(&self.page().await?, "sluice_writes_total"))
    }

    /// How often a metric has counted what has this label, such as `protocol="git"`.
    pub(super) async fn count(&self, metric: &str, label: &str) -> Result<u64> {
        let page = self.page().await?;
        let lines = page.lines().filter(|line| line.contains(label));
        Ok(sum(&lines.collect::<Vec<_>>().join("\n"), metric))
    }

    /// How many it makes while nothing changes, for so long.
    #[allow(clippy::disallowed_methods, reason = "a benchmark on the real clock")]
    pub(super) async fn idle(&self, length: Duration) -> Result<u64> {
        let before = self.writes().await?;
        tokio::time::sleep(length).await;
        Ok(self.writes().await? - before)
    }

    pub(super) fn usage(&self) -> Result<Usage> {
        self.process.runs()?;
        Usage::of(self.process.pid())
    }

    async fn page(&self) -> Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.metrics)).await?;
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").await?;
        let mut page = String::new();
        stream.read_to_string(&mut page).await?;
        Ok(page)
    }
}

impl Usage {
    /// Of a process that runs.
    pub(super) fn of(pid: u32) -> Result<Self> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
        let kib = |field: &str| -> Option<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(field))?;
            line.trim().trim_end_matches(" kB").parse().ok()
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
        let resident = kib("VmRSS:").context("no resident size")?;
        let highest = kib("VmHWM:").context("no highest resident size")?;
        Ok(Self {
            resident: resident / 1024,
            resident_kib: resident,
            highest: highest / 1024,
            // The kernel counts in hundredths of a second wherever this runs.
            cpu: ticks / 100.0,
        })
    }
}

/// The sum of all samples of a metric.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts, which are written as floats"
)]
pub(super) fn sum(page: &str, metric: &str) -> u64 {
    let samples = page.lines().filter(|line| {
        line.strip_prefix(metric)
            .is_some_and(|rest| rest.starts_with(['{', ' ']))
    });
    samples
        .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
        .sum::<f64>() as u64
}
