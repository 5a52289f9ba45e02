//! Programs that tests and demo run, built from Go modules that pin them: built once, then found.
//!
//! What comes in: a folder in `control-plane/` with a `go.mod` and a `go.sum`. What goes out: a
//! folder in the cache, named by the hash of the two files, with the programs in it.

mod go;

use std::env;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use crate::cache;
use crate::progress::{Progress, human};
use go::Module;

/// Finds the programs that `control-plane/<name>/go.mod` lists as tools, or builds them: minutes,
/// the first time. Returns the folder they lie in.
///
/// Safe when several processes ask at once: one builds, the others wait.
///
/// # Errors
///
/// Without Go, or with a Go older than `go.mod` asks for; if the build fails.
pub fn ensure(name: &str, progress: &dyn Progress) -> Result<PathBuf> {
    let sources = pinned(name);
    let cache = cache::folder()?.join("control-plane");
    let hash = hash(&sources)?;
    let folder = cache.join(&hash);
    // The folder appears by a rename, so that it is whole if it is there.
    if folder.is_dir() {
        return Ok(folder);
    }
    let module = Module::read(&sources)?;
    go::check(&module.go)?;
    fs::create_dir_all(&cache).with_context(|| format!("cannot create {}", cache.display()))?;
    let _lock = lock(&cache.join(format!("{hash}.lock")), progress)?;
    if !folder.is_dir() {
        let unfinished = cache.join(format!("{hash}.unfinished"));
        build(&module, &sources, &unfinished, progress)?;
        fs::rename(&unfinished, &folder)?;
    }
    Ok(folder)
}

/// The folder with the sources of `package`, which `control-plane/<name>/go.mod` pins: for programs that
/// need more than themselves at run time.
pub(crate) fn sources(name: &str, package: &str) -> Result<PathBuf> {
    go::sources(&pinned(name), package)
}

/// The folder of a `go.mod`.
fn pinned(name: &str) -> PathBuf {
    let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("control-plane");
    modules.join(name)
}

/// The program of that name that the user has installed.
pub(crate) fn on_path(program: &str) -> Option<PathBuf> {
    let folders = env::var_os("PATH")?;
    env::split_paths(&folders)
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
}

/// The sha256 of `go.mod` and `go.sum`, in hexadecimal.
fn hash(sources: &Path) -> Result<String> {
    let mut hasher = Sha256::new();
    for name in ["go.mod", "go.sum"] {
        let path = sources.join(name);
        let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        hasher.update(bytes);
    }
    let digest = hasher.finalize();
    Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Holds the lock file at `path` until dropped. A process that dies lets go of it.
fn lock(path: &Path, progress: &dyn Progress) -> Result<File> {
    let file = File::create(path).with_context(|| format!("cannot create {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            progress.say("Another process is building what is needed: waiting for it.");
            file.lock()?;
        }
        Err(TryLockError::Error(error)) => return Err(error.into()),
    }
    Ok(file)
}

fn build(module: &Module, sources: &Path, target: &Path, progress: &dyn Progress) -> Result<()> {
    let start = Instant::now();
    let what = module.summary();
    progress.say(&format!(
        "Building {what}. This takes minutes the first time; the result is kept."
    ));
    // Left by a build that was killed: the lock says that nobody works there.
    if target.exists() {
        fs::remove_dir_all(target)?;
    }
    fs::create_dir(target)?;
    go::build(module, sources, target, progress)?;
    go::keep(module, sources, target)?;
    for program in module.programs() {
        let path = target.join(program);
        fs::metadata(&path).with_context(|| format!("go build left no {}", path.display()))?;
    }
    progress.say(&format!("Built {what} in {}.", human(start.elapsed())));
    Ok(())
}
