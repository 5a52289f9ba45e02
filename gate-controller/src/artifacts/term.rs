//! While this replica leads: the folder is verified, and what is not needed any more is removed.
//!
//! This is done each time that this replica starts to lead: on a volume that several replicas see,
//! another one may have led since the last time.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::fs;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::index::Index;
use super::verify::{self, Listed, Unusable, Unverified, Verified};
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
        self.close("it is being looked what artifacts there are");
        let mut said = String::new();
        let files = loop {
            let unusable = match self.open(&term).await {
                Ok(files) => break files,
                Err(unusable) => unusable,
            };
            let why = unusable.to_string();
            if why != said {
                tracing::error!("no artifact can be stored or served: {why}");
                *self.standing.lock() = Standing::Unusable { why: why.clone() };
                self.tell(News::Changed);
                said = why;
            }
            // Nothing tells when a disk can be used again.
            let _ = timeout(TRY_AGAIN, std::future::pending::<()>()).await;
        };
        self.tell(News::Changed);
        tokio::join!(self.verify(files, &term), self.sweep());
    }

    /// Looks what is there. Nothing is put there during that time.
    async fn open(&self, term: &Term<'_>) -> Result<Vec<Unverified>, Unusable> {
        let disk = Arc::clone(&self.disk).lock_owned().await;
        let folder = self.folder.clone();
        let listing = tokio::task::spawn_blocking(move || {
            let listed = verify::open(&folder);
            // Not before: nobody waits for this where leading has ended.
            drop(disk);
            listed
        });
        let Listed { files, foreign } = listing.await.unwrap_or(Err(Unusable::GivenUp))?;
        let mut index = Index::default();
        for file in &files {
            index.found(file.key.clone(), file.digest.clone(), file.length);
        }
        tracing::info!(files = files.len(), foreign, "verifying the artifacts");
        *self.standing.lock() = Standing::Open(Open {
            index,
            since: self.clock.now(),
            term: term.token.clone(),
            leadership: term.leadership.clone(),
        });
        Ok(files)
    }

    /// Verifies what was there, one file after another. Each is served as soon as it is verified.
    async fn verify(&self, files: Vec<Unverified>, term: &Term<'_>) {
        let (tell, mut told) = mpsc::unbounded_channel();
        let (disk, end) = (Arc::clone(&self.disk), term.token.clone());
        tokio::task::spawn_blocking(move || {
            for file in files {
                let Some(is) = verify::verify(&file, &end, &disk) else {
                    return;
                };
                // Nobody listens where leading has ended.
                let _ = tell.send((file.key, file.digest, is));
            }
        });
        let (mut whole, mut broken) = (0_usize, 0_usize);
        while let Some((key, digest, is)) = told.recv().await {
            match is {
                Verified::Whole(..) => whole += 1,
                Verified::Broken | Verified::Unreadable => broken += 1,
            }
            if self.when_open(|open| open.index.verified(&key, &digest, is)) == Some(true) {
                self.left.notify_one();
            }
            if told.is_empty() {
                self.measure();
            }
            self.tell(News::Of(&key));
        }
        self.measure();
        tracing::info!(files = whole, broken, "the artifacts are verified");
        self.tell(News::Ready);
    }

    fn close(&self, why: &str) {
        *self.standing.lock() = Standing::Closed {
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
