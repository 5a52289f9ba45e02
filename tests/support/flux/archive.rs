//! Gzipped tar archives, the same for the same files.
//!
//! What comes in: paths with texts. What goes out: bytes.

use std::path::Path;

use anyhow::Result;
use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, Header};

/// Packs files. Times and owners are left out, so that the same files have the same digest.
pub(super) fn pack(files: &[(impl AsRef<Path>, impl AsRef<str>)]) -> Result<Vec<u8>> {
    let mut archive = Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (path, text) in files {
        let text = text.as_ref();
        let mut header = Header::new_gnu();
        header.set_size(u64::try_from(text.len())?);
        header.set_mode(0o644);
        header.set_cksum();
        archive.append_data(&mut header, path, text.as_bytes())?;
    }
    Ok(archive.into_inner()?.finish()?)
}
