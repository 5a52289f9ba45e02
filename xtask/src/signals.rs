//! Being told to end.
//!
//! What comes in: Ctrl-C, `kill`, a terminal that is closed. What goes out: a future that completes
//! then, so that what was begun is taken back in order.

use std::future::Future;

use anyhow::Result;
use tokio::signal::unix::{SignalKind, signal};

/// Completes when somebody tells us to end. From this call on, being told does not end us at once.
///
/// # Errors
///
/// If the system lets nobody listen.
pub(crate) fn told_to_end() -> Result<impl Future<Output = ()>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    })
}
