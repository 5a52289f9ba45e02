//! Objects from files, without a cluster.
//!
//! What comes in: paths of files and folders, or `-` for standard input. What goes out: the
//! objects in them as an [`Input`], with everything that is wrong and where it stands.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

mod finding;
mod input;
mod names;
mod scalar;
mod yaml;

pub(crate) use input::Input;

/// The most bytes of one file. Anything larger is something else.
const LARGEST: u64 = 64 << 20;

/// A text, and where it comes from.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// The path as it was given, or `stdin`.
    pub(crate) origin: String,
    pub(crate) text: String,
    /// Whether somebody asked for this very file, and not for a folder around it.
    pub(crate) asked_for: bool,
}

/// The texts of all `paths`; of a folder, of every file in it and in its folders whose name ends
/// as those of YAML and JSON do.
///
/// # Errors
/// One that cannot be read, is no text, or is a folder without such files.
pub(crate) fn read(paths: &[PathBuf]) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    for path in paths {
        if path.as_os_str() == "-" {
            sources.push(source("stdin".to_owned(), io::stdin().lock(), true)?);
        } else if path.is_dir() {
            let mut files = Vec::new();
            collect(path, &mut files)?;
            if files.is_empty() {
                bail!(
                    "{}: no file in it ends in .yaml, .yml or .json",
                    path.display()
                );
            }
            for file in files {
                sources.push(open(&file, false)?);
            }
        } else {
            sources.push(open(path, true)?);
        }
    }
    Ok(sources)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let cannot = || format!("cannot read {}", folder.display());
    let entries = std::fs::read_dir(folder).with_context(cannot)?;
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<_>>()
        .with_context(cannot)?;
    paths.sort();
    for path in paths {
        let hidden = path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with('.'));
        let extension = path.extension().and_then(|extension| extension.to_str());
        if hidden {
            continue;
        } else if path.is_dir() {
            collect(&path, files)?;
        } else if matches!(extension, Some("yaml" | "yml" | "json")) {
            files.push(path);
        }
    }
    Ok(())
}

fn open(path: &Path, asked_for: bool) -> Result<Source> {
    let origin = path.display().to_string();
    let file = std::fs::File::open(path).with_context(|| format!("cannot read {origin}"))?;
    source(origin, file, asked_for)
}

fn source(origin: String, from: impl Read, asked_for: bool) -> Result<Source> {
    let mut bytes = Vec::new();
    let read = from.take(LARGEST + 1).read_to_end(&mut bytes);
    read.with_context(|| format!("cannot read {origin}"))?;
    if bytes.len() as u64 > LARGEST {
        bail!(
            "{origin}: it is larger than {} MiB; name the files that hold gates",
            LARGEST >> 20
        );
    }
    let Ok(text) = String::from_utf8(bytes) else {
        bail!("{origin}: it is no text in UTF-8; save it as UTF-8");
    };
    Ok(Source {
        origin,
        text,
        asked_for,
    })
}
