//! The file that lines are appended to. It is opened again if it was moved away or removed, and has only
//! whole lines, even if a write fails.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use super::Destination;

/// What lines go into.
pub(super) struct Sink {
    destination: Destination,
    open: Option<File>,
    /// Whether the last line was cut off.
    torn: bool,
}

impl Sink {
    pub(super) fn new(destination: Destination) -> Self {
        Self {
            destination,
            open: None,
            torn: false,
        }
    }

    /// Opens the file, unless what is open still is what its path leads to.
    pub(super) fn open(&mut self) -> io::Result<()> {
        let same = |file: &File| match &self.destination {
            Destination::Stdout => Some(true),
            Destination::File(path) => {
                let (here, there) = (file.metadata().ok()?, fs::metadata(path).ok()?);
                Some((here.dev(), here.ino()) == (there.dev(), there.ino()))
            }
        };
        if self.open.as_ref().and_then(same) == Some(true) {
            return Ok(());
        }
        self.open = None;
        self.open = Some(match &self.destination {
            // Not by way of the library's standard output: that one keeps bytes for later, and
            // takes one that is closed for one that takes everything.
            Destination::Stdout => io::stdout().as_fd().try_clone_to_owned()?.into(),
            Destination::File(path) => append_to(path)?,
        });
        // The process that wrote to it last may have been killed in the middle of a line.
        self.torn = self.open.as_ref().is_some_and(ends_within_a_line);
        Ok(())
    }

    /// Appends whole lines. Says how many bytes of whole lines have been written, and what stopped
    /// the rest.
    pub(super) fn append(&mut self, lines: &[u8]) -> (usize, io::Result<()>) {
        let opened = self.open();
        let Some(file) = &mut self.open else {
            return (0, opened);
        };
        if self.torn {
            match file.write_all(b"\n") {
                Ok(()) => self.torn = false,
                Err(error) => return (0, Err(error)),
            }
        }
        let (taken, result) = write(file, lines);
        let whole = lines[..taken].iter().rposition(|byte| *byte == b'\n');
        let whole = whole.map_or(0, |end| end + 1);
        self.torn = whole < taken;
        if let (true, Destination::File(_)) = (self.torn, &self.destination) {
            self.torn = !matches!(cut(file, taken - whole), Ok(true));
        }
        (whole, result)
    }
}

/// Opens a file to append to, and to read its end if that is allowed.
fn append_to(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    // Of a pipe this process would become a reader that never reads.
    let is_file = fs::metadata(path).map_or(true, |there| there.is_file());
    match options.clone().read(is_file).open(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => options.open(path),
        opened => opened,
    }
}

/// Whether the last line of a file has no end. If the file cannot be read, that is not known, and the
/// answer is yes: an empty line does less harm than a record that is lost at the end of another.
fn ends_within_a_line(file: &File) -> bool {
    let Ok(metadata) = file.metadata() else {
        return true;
    };
    let Some(last) = metadata.len().checked_sub(1) else {
        return false;
    };
    let mut byte = [0];
    metadata.is_file() && (file.read_exact_at(&mut byte, last).is_err() || byte != *b"\n")
}

/// Writes as much as it can, and all at once where it can.
fn write(file: &mut File, bytes: &[u8]) -> (usize, io::Result<()>) {
    let mut taken = 0;
    while taken < bytes.len() {
        match file.write(&bytes[taken..]) {
            Ok(0) => return (taken, Err(io::ErrorKind::WriteZero.into())),
            Ok(more) => taken += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (taken, Err(error)),
        }
    }
    (taken, Ok(()))
}

/// Cuts so many bytes off the end of a file; of what is none, nothing can be cut.
fn cut(file: &File, bytes: usize) -> io::Result<bool> {
    let metadata = file.metadata()?;
    let whole = metadata.len().checked_sub(bytes as u64);
    let Some(whole) = whole.filter(|_| metadata.is_file()) else {
        return Ok(false);
    };
    file.set_len(whole)?;
    Ok(true)
}
