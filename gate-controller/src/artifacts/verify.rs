//! The folder at the beginning: what is in it, then each file compared with the digest in its name.
//!
//! It blocks, and reads everything once. A file whose content does not match its name is removed, and so
//! is every file that was not complete when the last process ended. Files that the store has not written
//! are left alone: they are never served, because only what is found here is served.

use std::fs::{self, File, FileType};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::Disk;
use super::digest::Digest;
use super::place::{self, Folder};
use crate::cluster::key::ObjectKey;

/// How much is read at once, in bytes.
const PIECE: usize = 256 * 1024;

/// Why the folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unusable {
    /// There is no such folder.
    #[error("--storage-path: {0} is not a folder; mount a volume there")]
    Missing(PathBuf),
    /// Something in it cannot be read or written.
    #[error("--storage-path: {path}: {error}; this process must be able to write there")]
    Disk {
        /// What.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// This replica does not lead any more.
    #[error("it was given up")]
    GivenUp,
}

/// What is in the folder, by name. Whether it is what its name says is not known yet.
#[derive(Debug, Default)]
pub(super) struct Listed {
    /// The store's own files, the shortest first: so that one long file does not delay the others.
    pub(super) files: Vec<Unverified>,
    /// Files and folders that are not the store's.
    pub(super) foreign: usize,
}

/// A file whose content nobody has read yet.
#[derive(Debug)]
pub(super) struct Unverified {
    pub(super) key: ObjectKey,
    pub(super) digest: Digest,
    path: PathBuf,
    /// In bytes, as the disk says.
    pub(super) length: u64,
}

/// What a file turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verified {
    /// It matches its name: how long it is, and when it was written.
    Whole(u64, Timestamp),
    /// It does not match its name. It was removed.
    Broken,
    /// It cannot be read.
    Unreadable,
}

/// Opens the folder: makes it ready to be written to, and says what is in it.
///
/// # Errors
/// It cannot be written to, or a folder in it not be read.
pub(super) fn open(folder: &Folder) -> Result<Listed, Unusable> {
    let root = folder.root();
    if !root.is_dir() {
        return Err(Unusable::Missing(root.to_owned()));
    }
    let incoming = folder.incoming();
    clear(&incoming).map_err(at(&incoming))?;
    let mut listed = Listed::default();
    for namespace in list(&folder.artifacts())? {
        if place::is_incoming(&namespace.name) {
            continue;
        }
        if !namespace.is_dir() {
            listed.foreign(&namespace);
            continue;
        }
        for object in list(&namespace.path)? {
            match place::key(&namespace.name, &object.name).filter(|_| object.is_dir()) {
                Some(key) => listed.take(&key, &object)?,
                None => listed.foreign(&object),
            }
        }
    }
    listed.files.sort_by_key(|file| file.length);
    Ok(listed)
}

/// Removes what was not complete, and shows at the same time that the folder can be written to.
fn clear(incoming: &Path) -> io::Result<()> {
    match fs::remove_dir_all(incoming) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    fs::create_dir_all(incoming)
}

/// Verifies a file, until `end`: then nothing is known of it. A file that does not match its name is
/// removed; nobody else puts a file there before that is reported.
pub(super) fn verify(file: &Unverified, end: &CancellationToken, disk: &Disk) -> Option<Verified> {
    let path = file.path.display();
    let read = read(&file.path, &file.digest, end);
    // Another leader may have started already: then nothing is removed any more.
    let _disk = disk.blocking_lock();
    if end.is_cancelled() {
        return None;
    }
    Some(match read {
        Ok((is, size, at)) if is == file.digest => Verified::Whole(size, at),
        Ok((is, ..)) => {
            let removed = fs::remove_file(&file.path).is_ok();
            tracing::error!(%path, digest = %is, removed, "an artifact is not what its name says");
            Verified::Broken
        }
        Err(error) => {
            tracing::error!(%path, %error, "an artifact cannot be read");
            Verified::Unreadable
        }
    })
}

/// The digest of a file's content, how long it is, and when it was written.
fn read(
    path: &Path,
    expected: &Digest,
    end: &CancellationToken,
) -> io::Result<(Digest, u64, Timestamp)> {
    let mut file = File::open(path)?;
    let mut hasher = expected.hasher();
    let mut piece = vec![0; PIECE];
    let mut size = 0;
    while !end.is_cancelled() {
        match file.read(&mut piece) {
            Ok(0) => break,
            Ok(length) => {
                hasher.update(&piece[..length]);
                size += length as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok((hasher.finish(), size, written(&file.metadata()?)?))
}

/// When a file was written: what `status.artifact.lastUpdateTime` says, also after a restart.
pub(super) fn written(metadata: &fs::Metadata) -> io::Result<Timestamp> {
    Timestamp::try_from(metadata.modified()?).map_err(io::Error::other)
}

/// Something in a folder. A link is none of a file and a folder.
struct Named {
    name: String,
    path: PathBuf,
    kind: FileType,
}

impl Named {
    fn is_dir(&self) -> bool {
        self.kind.is_dir()
    }

    fn is_file(&self) -> bool {
        self.kind.is_file()
    }
}

impl Listed {
    /// Takes in the artifacts of one object.
    fn take(&mut self, key: &ObjectKey, object: &Named) -> Result<(), Unusable> {
        for file in list(&object.path)? {
            let Some(digest) = place::digest(&file.name).filter(|_| file.is_file()) else {
                self.foreign(&file);
                continue;
            };
            let length = fs::symlink_metadata(&file.path).map_or(0, |metadata| metadata.len());
            self.files.push(Unverified {
                key: key.clone(),
                digest,
                path: file.path,
                length,
            });
        }
        Ok(())
    }

    fn foreign(&mut self, what: &Named) {
        self.foreign += 1;
        tracing::info!(path = %what.path.display(), "not the store's: it is left alone");
    }
}

fn list(folder: &Path) -> Result<Vec<Named>, Unusable> {
    let listed = fs::read_dir(folder).map_err(at(folder))?;
    let named = listed.map(|entry| {
        let entry = entry?;
        Ok(Named {
            name: entry.file_name().to_string_lossy().into_owned(),
            path: entry.path(),
            kind: entry.file_type()?,
        })
    });
    let named: io::Result<_> = named.collect();
    named.map_err(at(folder))
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> Unusable {
    let path = path.to_owned();
    move |error| Unusable::Disk { path, error }
}
