//! The file that lines are appended to: opened again where it was moved away or removed, and whole
//! lines in it, whatever a write came to.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use super::Destination;

/// What lines go into.
pub(super) enum Sink {
    /// Standard output.
    Stdout {
        /// Whether the last line was cut off.
        torn: bool,
    },
    /// A file, open or not.
    File {
        path: PathBuf,
        open: Option<File>,
        torn: bool,
    },
}

impl Sink {
    pub(super) fn new(destination: Destination) -> Self {
        match destination {
            Destination::Stdout => Self::Stdout { torn: false },
            Destination::File(path) => Self::File {
                path,
                open: None,
                torn: false,
            },
        }
    }

    /// Opens the file, unless what is open still is what its path leads to.
    pub(super) fn open(&mut self) -> io::Result<()> {
        let Self::File { path, open, torn } = self else {
            return Ok(());
        };
        let same = |file: &File| {
            let (here, there) = (file.metadata().ok()?, fs::metadata(&path).ok()?);
            Some((here.dev(), here.ino()) == (there.dev(), there.ino()))
        };
        if open.as_ref().and_then(same) == Some(true) {
            return Ok(());
        }
        *open = None;
        *open = Some(OpenOptions::new().append(true).create(true).open(&*path)?);
        *torn = false;
        Ok(())
    }

    /// Appends whole lines. Says how many bytes of whole lines have been written, and what stopped
    /// the rest.
    pub(super) fn append(&mut self, lines: &[u8]) -> (usize, io::Result<()>) {
        let opened = self.open();
        let (file, torn): (&mut dyn Write, &mut bool) = match self {
            Self::Stdout { torn } => (&mut io::stdout(), torn),
            Self::File { open, torn, .. } => match open {
                Some(file) => (file, torn),
                None => return (0, opened),
            },
        };
        if *torn {
            match file.write_all(b"\n") {
                Ok(()) => *torn = false,
                Err(error) => return (0, Err(error)),
            }
        }
        let (taken, result) = write(file, lines);
        let whole = lines[..taken].iter().rposition(|byte| *byte == b'\n');
        let whole = whole.map_or(0, |end| end + 1);
        *torn = whole < taken;
        if let (true, Self::File { open, torn, .. }) = (whole < taken, &mut *self) {
            let cut = open.as_ref().map(|file| cut(file, taken - whole));
            *torn = !matches!(cut, Some(Ok(true)));
        }
        (whole, result)
    }
}

/// Writes as much as it can, and all at once where it can.
fn write(file: &mut dyn Write, bytes: &[u8]) -> (usize, io::Result<()>) {
    let mut taken = 0;
    while taken < bytes.len() {
        match file.write(&bytes[taken..]) {
            Ok(0) => return (taken, Err(io::ErrorKind::WriteZero.into())),
            Ok(more) => taken += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (taken, Err(error)),
        }
    }
    (taken, file.flush())
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
