//! One fetch: downloaded, verified, put into its place, reported.

use std::io::{self, ErrorKind};
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use jiff::Timestamp;
use sluice_egress::{Bounds, EgressError, shown};
use tokio::fs;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::digest::Digest;
use super::incoming::{Incoming, Whole};
use super::{News, Store};
use crate::cluster::key::ObjectKey;
use crate::tell::counters::ArtifactLabels;

/// What is wanted.
pub(super) struct Wanted {
    pub(super) key: ObjectKey,
    pub(super) digest: Digest,
    pub(super) url: String,
    /// Cancelled when it is not wanted any more.
    pub(super) token: CancellationToken,
}

/// Why a fetch failed.
#[derive(Debug, thiserror::Error)]
enum FetchError {
    #[error("the artifact is unavailable from {}: {error}", shown(.url))]
    Unavailable { url: String, error: EgressError },
    #[error("the artifact could not be had from {} within {}s", shown(.url), .time.as_secs_f64())]
    Slow { url: String, time: Duration },
    #[error(
        "what {} serves has the digest {found} and not {wanted}: it is another artifact by now, or was changed on its way",
        shown(.url)
    )]
    Mismatch {
        url: String,
        wanted: Digest,
        found: Digest,
    },
    #[error(
        "the artifact would be more than namespace {namespace} may have: {used} of {quota} bytes are in use{}; use fewer artifacts there, or raise --storage-namespace-quota",
        and(.size)
    )]
    Quota {
        namespace: Arc<str>,
        used: u64,
        quota: u64,
        /// None: there is no room for any.
        size: Option<u64>,
    },
    #[error("the artifact cannot be stored: {}: {error}{}", .path.display(), remedy(.error))]
    Disk { path: PathBuf, error: io::Error },
    #[error("the artifact cannot be fetched by a defect of the controller; please report it")]
    Defect,
}

impl FetchError {
    /// One of [`OF_FETCHES`](crate::tell::counters::OF_FETCHES).
    fn outcome(&self) -> &'static str {
        match self {
            Self::Unavailable { .. } | Self::Slow { .. } => "unavailable",
            Self::Mismatch { .. } => "mismatch",
            Self::Quota { .. } => "quota",
            Self::Disk { .. } => "disk",
            Self::Defect => "defect",
        }
    }
}

fn and(size: &Option<u64>) -> String {
    size.map_or_else(String::new, |size| format!(", and it has {size}"))
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "; make the volume of --storage-path larger"
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "; this process must be able to write to --storage-path"
        }
        _ => "",
    }
}

impl Store {
    /// Fetches, notes the result, and reports it.
    pub(super) async fn bring(self: Arc<Self>, wanted: Wanted) {
        let downloading = AssertUnwindSafe(self.download_in_turn(&wanted)).catch_unwind();
        let downloading = async { downloading.await.unwrap_or(Err(FetchError::Defect)) };
        let Some(whole) = wanted.token.run_until_cancelled(downloading).await else {
            return;
        };
        let disk = self.disk.lock().await;
        if wanted.token.is_cancelled() {
            return;
        }
        let place = self.folder.file(&wanted.key, &wanted.digest);
        let namespace = &wanted.key.namespace;
        let room = |whole: Whole| {
            self.room(namespace, Some(whole.size()))?;
            Ok(whole)
        };
        let fetched = match whole.and_then(room) {
            Ok(whole) => whole.install(&place).await.map_err(not_stored(&place)),
            Err(error) => Err(error),
        };
        match self.settle(&wanted, fetched) {
            Some(true) => {}
            Some(false) => {
                // Cancelled a moment ago. A new fetch of it waits for the disk.
                let _ = fs::remove_file(&place).await;
                return;
            }
            // The next leader finds it.
            None => return,
        }
        drop(disk);
        self.measure();
        self.tell(News::Of(&wanted.key));
    }

    /// Notes the result. False: it is not wanted any more. None: this replica does not lead any more.
    fn settle(
        &self,
        wanted: &Wanted,
        fetched: Result<(u64, Timestamp), FetchError>,
    ) -> Option<bool> {
        let Wanted {
            key,
            digest,
            url: _,
            token,
        } = wanted;
        let outcome = fetched
            .as_ref()
            .map_or_else(FetchError::outcome, |_| "stored");
        let now = self.clock.now();
        let fetched = fetched.map_err(|error| (error.to_string(), now));
        let settled = self.when_open(|open| {
            // Cancelled under this lock, or once what it guards is gone.
            if token.is_cancelled() {
                return false;
            }
            open.index.settle(key, digest, fetched.clone());
            true
        })?;
        if !settled {
            return Some(false);
        }
        match fetched {
            Ok((size, _)) => tracing::info!(%key, %digest, size, "an artifact is stored"),
            Err((why, _)) => tracing::error!(%key, %digest, "{why}"),
        }
        let labels = ArtifactLabels { outcome };
        self.counters.artifact_fetches.get_or_create(&labels).inc();
        Some(true)
    }

    async fn download_in_turn(&self, wanted: &Wanted) -> Result<Whole, FetchError> {
        let namespace = &wanted.key.namespace;
        let _turn = self.turns.take(namespace).await;
        self.room(namespace, None)?;
        let time = self.limits.time;
        let downloaded = timeout(time, self.download(wanted)).await;
        downloaded.unwrap_or_else(|_| {
            let url = wanted.url.clone();
            Err(FetchError::Slow { url, time })
        })
    }

    /// Whether a namespace may have another artifact; of this size, where that is known.
    fn room(&self, namespace: &Arc<str>, size: Option<u64>) -> Result<(), FetchError> {
        let (quota, used) = (self.limits.quota, self.used(namespace));
        // An artifact has a byte at least.
        if used.saturating_add(size.unwrap_or(1)) <= quota {
            return Ok(());
        }
        Err(FetchError::Quota {
            namespace: Arc::clone(namespace),
            used,
            quota,
            size,
        })
    }

    fn used(&self, namespace: &str) -> u64 {
        let used = self.when_open(|open| open.index.bytes_of(namespace));
        used.unwrap_or_default()
    }

    /// Has it whole on the disk, its digest verified.
    async fn download(&self, wanted: &Wanted) -> Result<Whole, FetchError> {
        let Wanted { digest, url, .. } = wanted;
        let unavailable = |error| FetchError::Unavailable {
            url: url.clone(),
            error,
        };
        let incoming = self.folder.incoming();
        let bounds = Bounds {
            length: self.limits.length,
            pause: self.limits.pause,
        };
        let download = self.egress.download(url, bounds).await;
        let mut download = download.map_err(unavailable)?;
        let file = Incoming::create(&self.folder).await;
        let mut file = file.map_err(not_stored(&incoming))?;
        let mut hasher = digest.hasher();
        while let Some(piece) = download.chunk().await.map_err(unavailable)? {
            let piece = piece.as_ref();
            hasher.update(piece);
            file.write(piece).await.map_err(not_stored(&incoming))?;
        }
        let found = hasher.finish();
        if found != *digest {
            return Err(FetchError::Mismatch {
                url: url.clone(),
                wanted: digest.clone(),
                found,
            });
        }
        file.finish().await.map_err(not_stored(&incoming))
    }
}

fn not_stored(path: &Path) -> impl FnOnce(io::Error) -> FetchError + use<> {
    let path = path.to_owned();
    move |error| FetchError::Disk { path, error }
}
