//! What runs beside the workers, for as long as the controller does.

use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// What runs beside the workers, and must not end before they do.
pub(super) struct Background {
    watching: AbortOnDropHandle<()>,
    broken: CancellationToken,
}

impl Background {
    /// Watches the parts: none of them ends but by a defect.
    pub(super) fn watch(mut parts: JoinSet<()>) -> Self {
        let broken = CancellationToken::new();
        let told = broken.clone();
        let watching = tokio::spawn(async move {
            parts.join_next().await;
            told.cancel();
        });
        let watching = AbortOnDropHandle::new(watching);
        Self { watching, broken }
    }

    /// Waits until one of the parts has ended.
    pub(super) async fn broken(&self) {
        self.broken.cancelled().await;
    }

    /// Ends all of them.
    pub(super) async fn end(&mut self) {
        self.watching.abort();
        // It ends by being aborted.
        let _ = (&mut self.watching).await;
    }
}

/// Goes on for ever, unless the task has ended by a defect: then something must not go on that nobody
/// works for, as a replica that is ready and never leads.
pub(super) async fn outlive(task: JoinHandle<()>) {
    if task.await.is_ok() {
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn a_task_that_ends_by_a_defect_ends_the_controller() {
        let mut parts = JoinSet::new();
        parts.spawn(outlive(tokio::spawn(async {})));
        parts.spawn(outlive(tokio::spawn(async { panic!("a defect") })));
        let background = Background::watch(parts);
        let broken = timeout(Duration::from_secs(20), background.broken());
        assert!(broken.await.is_ok());
    }

    #[tokio::test]
    async fn a_task_that_ends_as_it_should_does_not() {
        let mut parts = JoinSet::new();
        let task = tokio::spawn(async {});
        while !task.is_finished() {
            tokio::task::yield_now().await;
        }
        parts.spawn(outlive(task));
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert!(parts.try_join_next().is_none());
    }
}
