//! Where an artifact is: one rule for the folder on the disk and the path of the address, both
//! ways.
//!
//! `gatedsource/<namespace>/<name>/<algorithm>-<checksum>.tar.gz`: the name says what is in the file, so
//! that the file can be verified by its name alone, and the name never means other content. Only such
//! paths lead to a file, so that no path leads out of the folder.

use std::path::{Path, PathBuf};

use sluice_egress::secrets::is_object_name;

use super::digest::Digest;
use crate::cluster::key::{KeyRef, ObjectKey};

/// The kind of the objects that artifacts are kept for, as Flux's sources have theirs.
pub(super) const KIND: &str = "gatedsource";
/// Where what is not whole yet is written. No namespace has such a name.
const INCOMING: &str = ".incoming";
const ENDING: &str = ".tar.gz";

/// The path of an artifact, below the store's folder and below the server's address.
pub(super) fn path(key: &ObjectKey, digest: &Digest) -> String {
    let ObjectKey { namespace, name } = key;
    format!("{KIND}/{namespace}/{name}/{}", file_name(digest))
}

fn file_name(digest: &Digest) -> String {
    let (algorithm, checksum) = digest.parts();
    format!("{algorithm}-{checksum}{ENDING}")
}

/// What is at a path.
pub(super) fn parse(path: &str) -> Option<(ObjectKey, Digest)> {
    let mut parts = path.split('/');
    if parts.next()? != KIND {
        return None;
    }
    let key = key(parts.next()?, parts.next()?)?;
    let digest = digest(parts.next()?)?;
    parts.next().is_none().then_some((key, digest))
}

/// The key of two folders.
pub(super) fn key(namespace: &str, name: &str) -> Option<ObjectKey> {
    let both = is_object_name(namespace) && is_object_name(name);
    both.then(|| KeyRef { namespace, name }.into())
}

/// The digest of a file.
pub(super) fn digest(file: &str) -> Option<Digest> {
    let (algorithm, checksum) = file.strip_suffix(ENDING)?.split_once('-')?;
    Digest::of_parts(algorithm, checksum).ok()
}

/// The folder of a store.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    root: PathBuf,
}

impl Folder {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// What the operator named.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Where artifacts are.
    pub(super) fn artifacts(&self) -> PathBuf {
        self.root.join(KIND)
    }

    /// Where what is not whole yet is written: on the same volume, so that it can be renamed.
    pub(super) fn incoming(&self) -> PathBuf {
        self.artifacts().join(INCOMING)
    }

    /// Where an artifact is.
    pub(super) fn file(&self, key: &ObjectKey, digest: &Digest) -> PathBuf {
        self.root.join(path(key, digest))
    }
}

/// Whether a folder among the namespaces is the one for what is not whole yet.
pub(super) fn is_incoming(folder: &str) -> bool {
    folder == INCOMING
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    const DIGEST: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn a_path_says_whose_and_what_it_is() {
        let digest: Digest = format!("sha256:{DIGEST}").parse().unwrap();
        let key = key("apps", "web.eu-1").unwrap();
        let path = path(&key, &digest);
        assert_eq!(
            path,
            format!("gatedsource/apps/web.eu-1/sha256-{DIGEST}.tar.gz")
        );
        assert_eq!(parse(&path), Some((key, digest)));
    }

    #[rstest]
    #[case("")]
    #[case("gatedsource")]
    #[case("gatedsource/apps/web/")]
    #[case("gatedsource/apps/web")]
    #[case("gatedsource/apps/web/latest.tar.gz")]
    #[case("gatedsource/apps/web/FILE/more")]
    #[case("gatedsource/apps/../FILE")]
    #[case("gatedsource/../../FILE")]
    #[case("gatedsource/apps/%2e%2e/FILE")]
    #[case("gatedsource/.incoming/web/FILE")]
    #[case("gatedsource//web/FILE")]
    #[case("/gatedsource/apps/web/FILE")]
    #[case("bucket/apps/web/FILE")]
    #[case("gatedsource/apps/web/FILE.part")]
    #[case("gatedsource/apps/we\0b/FILE")]
    #[case("gatedsource/apps/Web/FILE")]
    fn nothing_else_leads_anywhere(#[case] path: &str) {
        let file = format!("sha256-{DIGEST}.tar.gz");
        assert_eq!(parse(&path.replace("FILE", &file)), None);
    }

    proptest! {
        /// A path that is understood is written back the same, so that no two paths lead to one file, and
        /// none out of the folder.
        #[test]
        fn what_is_understood_is_written_so(path in "(gatedsource/)?[a-c./-]{0,6}/[a-c./-]{0,6}/sha256-[0-9a-f./]{64}(.tar.gz)?") {
            if let Some((key, digest)) = parse(&path) {
                prop_assert_eq!(super::path(&key, &digest), path);
            }
        }
    }
}
