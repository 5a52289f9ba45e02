//! While this replica leads: the folder is verified, and what is not needed any more is removed.
//!
//! Each time anew: on a volume that several replicas see, another may have led meanwhile.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::fs;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::verify::{self, Found, Unusable};
use super::{News, Open, Standing, Store};
use crate::lease::Leadership;

pub(super) const NOT_LEADING: &str = "this replica does not lead";

/// How long after the folder could not be used it is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(5);

/// A time of leading. Dropped, nothing is known any more, and what was under way is given up.
struct Term<'a> {
    store: &'a Store,
    token: CancellationToken,
    leadership: &'a Leadership,
}

impl Drop for Term<'_> {
    fn drop(&mut self) {
        self.store.close(NOT_LEADING);
        self.token.cancel();
    }
}

impl Store {
    /// Works whenever this replica leads, for ever.
    pub async fn run(self: Arc<Self>, mut leadership: Leadership) {
        loop {
            leadership.led().await;
            let mut lost = leadership.clone();
            tokio::select! {
                () = lost.lost() => {}
                () = self.work(&leadership) => {}
            }
        }
    }

    async fn work(&self, leadership: &Leadership) {
        let term = Term {
            store: self,
            token: CancellationToken::new(),
            leadership,
        };
        let mut said = "the artifacts are being verified".to_owned();
        self.close(&said);
        while let Err(unusable) = self.open(&term).await {
            let why = unusable.to_string();
            if why != said {
                tracing::error!("no artifact can be stored or served: {why}");
                self.close(&why);
                said = why;
            }
            // Nothing tells when a disk can be used again.
            let _ = timeout(TRY_AGAIN, std::future::pending::<()>()).await;
        }
        self.measure();
        self.tell(News::Ready);
        self.sweep().await;
    }

    /// Verifies what is there. Nothing is put there meanwhile.
    async fn open(&self, term: &Term<'_>) -> Result<(), Unusable> {
        let disk = Arc::clone(&self.disk).lock_owned().await;
        let (folder, end) = (self.folder.clone(), term.token.clone());
        let verifying = tokio::task::spawn_blocking(move || {
            let verified = verify::open(&folder, &end);
            // Not before: nobody waits for this where leading has ended.
            drop(disk);
            verified
        });
        let verified = verifying.await;
        let Found {
            index,
            broken,
            foreign,
        } = verified.unwrap_or(Err(Unusable::GivenUp))?;
        let (files, bytes) = index.amount();
        tracing::info!(files, bytes, broken, foreign, "the artifacts are verified");
        *self.standing() = Standing::Open(Open {
            index,
            term: term.token.clone(),
            leadership: term.leadership.clone(),
        });
        Ok(())
    }

    fn close(&self, why: &str) {
        *self.standing() = Standing::Closed {
            why: why.to_owned(),
        };
        self.measure();
    }

    /// Removes what is not needed any more, each file at its instant.
    async fn sweep(&self) {
        loop {
            let next = self.when_open(|open| open.index.next_due()).flatten();
            let due = async {
                match next {
                    Some(at) => self.clock.wait_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = due => {}
                () = self.left.notified() => {}
            }
            self.remove_due().await;
        }
    }

    async fn remove_due(&self) {
        let _disk = self.disk.lock().await;
        let now = self.clock.now();
        let due = self.when_open(|open| open.index.take_due(now));
        for (key, digest) in due.into_iter().flatten() {
            let path = self.folder.file(&key, &digest);
            match fs::remove_file(&path).await {
                Ok(()) => {
                    tracing::debug!(%key, %digest, "an artifact is not needed any more");
                    remove_empty(&path).await;
                }
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                // It is found once more at the next start.
                Err(error) => {
                    tracing::warn!(path = %path.display(), %error, "an artifact cannot be removed");
                }
            }
        }
        self.measure();
    }
}

/// Removes the folders of an object that has no files any more, and of its namespace.
async fn remove_empty(file: &Path) {
    for folder in file.ancestors().skip(1).take(2) {
        // Others may be in it: then it stays.
        if fs::remove_dir(folder).await.is_err() {
            return;
        }
    }
}
