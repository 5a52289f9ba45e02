//! A namespace of a test whose statuses have to follow the rules until the test ends.
//!
//! What comes in: a cluster and a namespace. What goes out: at its end a panic, so that the test fails, if
//! a version of a status has broken a rule.

use anyhow::Result;
use parking_lot::Mutex;

use super::Watch;
use crate::cluster::Cluster;

/// Dropped, it has looked at everything that was written until then, and panics if anything was wrong.
pub struct Judged {
    namespace: String,
    watch: Mutex<Option<Watch>>,
}

impl Judged {
    /// Looks from now on.
    ///
    /// # Errors
    ///
    /// If it cannot look.
    pub async fn start(cluster: &Cluster, namespace: &str) -> Result<Self> {
        let watch = Watch::start(cluster, namespace).await?;
        Ok(Self {
            namespace: namespace.to_owned(),
            watch: Mutex::new(Some(watch)),
        })
    }

    /// Nothing is judged any more, not even what was written before.
    pub fn end_unheard(&self) {
        drop(self.take());
    }

    fn take(&self) -> Option<Watch> {
        self.watch.lock().take()
    }
}

impl Drop for Judged {
    fn drop(&mut self) {
        let Some(watch) = self.take() else {
            return;
        };
        let broken = watch.end();
        // One failure at a time.
        if std::thread::panicking() {
            return;
        }
        let broken = broken.unwrap_or_else(|error| [format!("{error:#}")].into());
        let broken: Vec<_> = broken.into_iter().collect();
        assert!(
            broken.is_empty(),
            "in {}, statuses break rules:\n  {}",
            self.namespace,
            broken.join("\n  ")
        );
    }
}
