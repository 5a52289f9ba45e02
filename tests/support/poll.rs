//! Waiting for something that a server does in its own time.
//!
//! What comes in: a deadline, and a check that says what it saw. What goes out: what the check
//! found, or an error that names what was waited for and what was seen last.

use std::fmt::Display;
use std::time::Duration;

use anyhow::{Result, bail};
use tokio::time::Instant;

/// Between two looks. Short beside anything a server does, long beside the cost of a request.
const INTERVAL: Duration = Duration::from_millis(25);

/// How long something is waited for that a server does in its own time: far longer than it takes, also where
/// the machine has a lot to do, or something fails once and is retried after a minute. A test that passes never waits
/// for it.
pub const DEADLINE: Duration = Duration::from_secs(240);

/// Runs `check` until it succeeds, at most for `deadline`. An error of `check` means "not yet"
/// and tells what was seen.
///
/// ```no_run
/// # async fn test(api: kube::Api<k8s_openapi::api::core::v1::Pod>) -> anyhow::Result<()> {
/// use std::time::Duration;
///
/// let pod = sluice_tests::poll(Duration::from_secs(10), "the pod to be scheduled", async || {
///     let pod = api.get("app").await?;
///     anyhow::ensure!(pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some()), "no node");
///     Ok::<_, anyhow::Error>(pod)
/// })
/// .await?;
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// When the deadline has passed, or passes while `check` runs.
pub async fn poll<T, E: Display>(
    deadline: Duration,
    what: &str,
    mut check: impl AsyncFnMut() -> Result<T, E>,
) -> Result<T> {
    let end = Instant::now() + deadline;
    let mut seen = String::from("nothing: the first look did not return");
    loop {
        match tokio::time::timeout_at(end, check()).await {
            Ok(Ok(found)) => return Ok(found),
            Ok(Err(error)) => seen = format!("{error:#}"),
            Err(_) => {}
        }
        // Asked here as well: a check that never waits is never timed out.
        if Instant::now() >= end {
            bail!("waited {deadline:?} for {what}; seen last: {seen}");
        }
        pause(end).await;
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "the pause between two looks at a condition, bounded by the caller's deadline"
)]
async fn pause(end: Instant) {
    tokio::time::sleep_until(end.min(Instant::now() + INTERVAL)).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_success_is_returned() {
        let mut looks = 0;
        let found = poll(Duration::from_secs(5), "the third look", async || {
            looks += 1;
            if looks == 3 {
                Ok(looks)
            } else {
                Err("too early")
            }
        })
        .await;
        assert_eq!(found.unwrap(), 3);
    }

    #[tokio::test]
    async fn what_was_seen_last_is_told() {
        let waited = poll(Duration::from_millis(60), "the moon", async || {
            Err::<(), _>("only clouds")
        });
        let error = waited.await.unwrap_err().to_string();
        assert_eq!(error, "waited 60ms for the moon; seen last: only clouds");
    }

    #[tokio::test]
    async fn a_check_that_hangs_does_not_outlive_the_deadline() {
        let waited = poll(Duration::from_millis(20), "an answer", async || {
            std::future::pending::<Result<(), String>>().await
        });
        assert!(
            waited
                .await
                .unwrap_err()
                .to_string()
                .contains("did not return")
        );
    }
}
