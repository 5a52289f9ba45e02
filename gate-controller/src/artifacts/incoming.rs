//! A file that is being written: it takes its place at once and whole, or leaves nothing.

use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use tokio::fs::{self, File};
use tokio::io::AsyncWriteExt;
use tokio::task::spawn_blocking;

use super::place::Folder;
use super::verify::written;

/// A file that is not whole yet. Dropped, it is gone.
pub(super) struct Incoming {
    file: File,
    left_over: LeftOver,
}

/// A file that is whole and on the disk, and not in its place yet. Dropped, it is gone.
pub(super) struct Whole {
    size: u64,
    at: Timestamp,
    left_over: LeftOver,
}

/// The path of a file that nobody needs unless it is moved away.
struct LeftOver(PathBuf);

impl Drop for LeftOver {
    fn drop(&mut self) {
        // It was moved, or goes at the next start.
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Incoming {
    pub(super) async fn create(folder: &Folder) -> io::Result<Self> {
        static WRITTEN: AtomicU64 = AtomicU64::new(0);
        let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{number}", std::process::id());
        let path = folder.incoming().join(name);
        // If nobody waits for it any more, it is dropped as soon as it is created, so that nothing is left.
        let create = move || {
            let mut options = OpenOptions::new();
            let file = options.write(true).create_new(true).open(&path)?;
            Ok(Self {
                file: File::from_std(file),
                left_over: LeftOver(path),
            })
        };
        spawn_blocking(create).await?
    }

    pub(super) async fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        self.file.write_all(piece).await
    }

    /// Has all of it on the disk.
    pub(super) async fn finish(mut self) -> io::Result<Whole> {
        self.file.flush().await?;
        self.file.sync_all().await?;
        let metadata = self.file.metadata().await?;
        Ok(Whole {
            size: metadata.len(),
            at: written(&metadata)?,
            left_over: self.left_over,
        })
    }
}

impl Whole {
    /// How long it is, in bytes.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Puts it into its place. Says how long it is, and when it was written.
    pub(super) async fn install(self, place: &Path) -> io::Result<(u64, Timestamp)> {
        let folders: Vec<_> = place.ancestors().skip(1).take(3).collect();
        if let Some(folder) = folders.first() {
            fs::create_dir_all(folder).await?;
        }
        fs::rename(&self.left_over.0, place).await?;
        // The name is on the disk once its folder is, and that in its own.
        for folder in folders {
            File::open(folder).await?.sync_all().await?;
        }
        Ok((self.size, self.at))
    }
}
