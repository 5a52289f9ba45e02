//! The texts of files and folders.

use std::fs::{self, DirEntry, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::names;

/// The most bytes of one file. Anything larger is something else.
const LARGEST: u64 = 64 << 20;

/// What standard input is called.
pub(crate) const STDIN: &str = "stdin";

/// What a file holds.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// A calendar as it is: a line of it may be folded inside of a character.
    Calendar(Vec<u8>),
    /// Any other text.
    Text(String),
}

/// A text, and where it comes from.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// The path as it was given, or `stdin`.
    pub(crate) origin: String,
    /// The text, or why there is none: of a file in a folder, where other files may lie.
    pub(crate) text: Result<Content, String>,
    /// Whether somebody asked for this very file, and not for a folder around it.
    pub(crate) asked_for: bool,
}

/// The texts of all `paths`; of a folder, of every file in it and in its folders whose name ends
/// as those of YAML, JSON and calendars do. Linked folders are not entered: they may lead back.
///
/// # Errors
/// A file that cannot be opened; one that is no text, if it was asked for or mentions our kinds; a
/// folder without such files.
pub(crate) fn read(paths: &[PathBuf]) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    for path in paths {
        if path.as_os_str() == "-" {
            let bytes = bytes(io::stdin().lock()).context(STDIN)?;
            sources.push(source(STDIN.to_owned(), &bytes, true)?);
        } else if path.is_dir() {
            let mut files = Vec::new();
            collect(path, &mut files)?;
            if files.is_empty() {
                bail!(
                    "{}: no file in it ends in .yaml, .yml, .json or .ics",
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

fn open(path: &Path, asked_for: bool) -> Result<Source> {
    let origin = path.display().to_string();
    let file = File::open(path).and_then(bytes);
    let bytes = file.with_context(|| format!("{origin}: cannot read it"))?;
    source(origin, &bytes, asked_for)
}

/// # Errors
/// It is no text, and somebody may have meant it for us.
fn source(origin: String, bytes: &[u8], asked_for: bool) -> Result<Source> {
    let text = content(&origin, bytes);
    match text {
        Err(why) if asked_for || mentions_us(bytes) => bail!("{origin}: {why}"),
        text => Ok(Source {
            origin,
            text,
            asked_for,
        }),
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let cannot = || format!("cannot read {}", folder.display());
    let entries = fs::read_dir(folder).with_context(cannot)?;
    let mut entries: Vec<DirEntry> = entries.collect::<io::Result<_>>().with_context(cannot)?;
    entries.sort_by_key(DirEntry::path);
    for entry in entries {
        let path = entry.path();
        let extension = path.extension().and_then(|extension| extension.to_str());
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        } else if entry.file_type().with_context(cannot)?.is_dir() {
            collect(&path, files)?;
        } else if matches!(extension, Some("yaml" | "yml" | "json" | "ics")) && path.is_file() {
            files.push(path);
        }
    }
    Ok(())
}

/// What there is, and a little more than what may be: see [`content`].
fn bytes(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(LARGEST + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// What the bytes of a file hold.
///
/// # Errors
/// Why they hold nothing that is read here.
fn content(origin: &str, bytes: &[u8]) -> Result<Content, String> {
    if bytes.len() as u64 > LARGEST {
        let largest = LARGEST >> 20;
        return Err(format!(
            "it is larger than {largest} MiB; name the files that hold gates"
        ));
    }
    if names::is_calendar(origin, bytes) {
        return Ok(Content::Calendar(bytes.to_owned()));
    }
    match str::from_utf8(bytes) {
        Ok(text) => Ok(Content::Text(text.to_owned())),
        Err(_) => Err("it is not text in UTF-8; save it as UTF-8".to_owned()),
    }
}

/// Whether the group of our kinds stands in it, also where each letter is two bytes.
fn mentions_us(bytes: &[u8]) -> bool {
    let letters: Vec<u8> = bytes.iter().copied().filter(|byte| *byte != 0).collect();
    let group = sluice_crds::GROUP.as_bytes();
    letters.windows(group.len()).any(|text| text == group)
}
