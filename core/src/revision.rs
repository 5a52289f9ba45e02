//! Revisions: the names of changes, in the forms in which Flux writes them.
//!
//! | form | example | of |
//! |---|---|---|
//! | `ref@digest` | `main@sha1:4f2a…`, `latest@sha256:9d1c…` | GitRepository, OCIRepository |
//! | `digest` | `sha1:4f2a…`, `sha256:9d1c…` | a commit or artifact without a name |
//! | `version` | `6.7.1+3` | HelmChart |
//! | `ref` | `nightly` | whatever else has a name |
//!
//! What comes in: a text from a status, a spec or a list. What goes out: a [`Revision`] that can be
//! compared with others, and a [`pattern`] that matches some of them.
//!
//! It uses no other room.

use std::fmt;

use semver::Version;

pub mod loose;
pub mod pattern;
mod short;

pub use short::short;

/// The most bytes of a revision's text.
const LONGEST: usize = 256;

/// What to write as a revision.
pub const REMEDY: &str = "write a revision as Flux does, such as main@sha1:… with the commit in \
                          full, sha256:…, or a version such as 6.7.1";

/// The name of a change. Two are equal if they have the same text, and the same is known about their
/// names. [`Revision::is`] says whether two name the same change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revision {
    text: String,
    /// Where the name ends and the digest begins, if it has both or only one.
    at: Option<usize>,
    has_digest: bool,
    version: Option<Version>,
    /// If that is not a version: the version that may be read in it.
    loose_version: Option<Version>,
    /// Whether its name is unknown.
    has_unknown_name: bool,
}

/// Why a text is not a revision.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mistake {
    /// There is none.
    #[error("it is empty")]
    Empty,
    /// It is too long.
    #[error("it is longer than {LONGEST} characters")]
    TooLong,
    /// It has a character that no revision has.
    #[error("it holds a space or a control character")]
    Blank,
    /// What comes after the `@`, or before the `:`, is not what should be there.
    #[error(
        "`{0}` is not a digest of a known length: sha1 has 40 hexadecimal digits, sha256 has 64, sha384 has 96, sha512 has 128"
    )]
    Digest(String),
}

impl Revision {
    /// Reads a revision. A commit may be written without its algorithm, as people copy it: forty
    /// hexadecimal digits are `sha1:`, sixty-four `sha256:`.
    ///
    /// # Errors
    /// What is wrong with it; see [`REMEDY`].
    pub fn parse(text: &str) -> Result<Self, Mistake> {
        if text.is_empty() {
            return Err(Mistake::Empty);
        }
        if text.len() > LONGEST {
            return Err(Mistake::TooLong);
        }
        if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(Mistake::Blank);
        }
        let (name, digest) = match text.rsplit_once('@') {
            Some((name, digest)) => (name, Some(in_full(digest)?)),
            None => match in_full(text) {
                Ok(digest) => ("", Some(digest)),
                Err(mistake) if text.contains(':') => return Err(mistake),
                Err(_) => (text, None),
            },
        };
        // The algorithm is added to a digest that was written without it.
        let written = name.len() + digest.as_ref().map_or(0, |digest| digest.len() + 1);
        if written > LONGEST {
            return Err(Mistake::TooLong);
        }
        let version = version(name);
        let loose_version = match version {
            Some(_) => None,
            None => loose::version(name),
        };
        let has_digest = digest.is_some();
        let (text, at) = match digest {
            None => (name.to_owned(), None),
            Some(digest) if name.is_empty() => (digest, None),
            Some(digest) => (format!("{name}@{digest}"), Some(name.len())),
        };
        Ok(Self {
            text,
            at,
            has_digest,
            version,
            loose_version,
            has_unknown_name: false,
        })
    }

    /// The same commit or digest, with an unknown name: it has one, but no trusted source has shown it.
    /// Lists and votes that use names let none of these revisions pass, and hold back all of them. A
    /// revision without a digest is a name, and does not change.
    #[must_use]
    pub fn of_unknown_name(self) -> Self {
        let Some(digest) = self.digest() else {
            return self;
        };
        Self {
            text: digest.to_owned(),
            at: None,
            has_digest: true,
            version: None,
            loose_version: None,
            has_unknown_name: true,
        }
    }

    /// Whether its name is unknown.
    pub fn has_unknown_name(&self) -> bool {
        self.has_unknown_name
    }

    /// The whole of it.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The branch, tag or other name; for a Helm chart its version.
    pub fn name(&self) -> Option<&str> {
        match (self.at, self.has_digest) {
            (Some(at), _) => Some(&self.text[..at]),
            (None, false) => Some(&self.text),
            (None, true) => None,
        }
    }

    /// The commit or digest, with its algorithm.
    pub fn digest(&self) -> Option<&str> {
        match (self.at, self.has_digest) {
            (Some(at), _) => Some(&self.text[at + 1..]),
            (None, true) => Some(&self.text),
            (None, false) => None,
        }
    }

    /// The version that its name is, if it is one. A leading `v` is left out.
    pub fn version(&self) -> Option<&Version> {
        self.version.as_ref()
    }

    /// The version that its name may mean, for lists that deny and for rejections: it may have fewer or
    /// more than three parts, and missing parts are zero. Nothing may go out because of it.
    pub fn loose_version(&self) -> Option<&Version> {
        self.version.as_ref().or(self.loose_version.as_ref())
    }

    /// Whether both are the same change. If either has a digest, the digests decide, so a name that has
    /// moved to another commit is another change. Otherwise the versions decide, without build
    /// metadata, or else the names.
    pub fn is(&self, other: &Self) -> bool {
        match (self.digest(), other.digest()) {
            (Some(mine), Some(theirs)) => mine == theirs,
            (Some(_), None) | (None, Some(_)) => false,
            (None, None) => match (&self.version, &other.version) {
                (Some(mine), Some(theirs)) => mine.cmp_precedence(theirs).is_eq(),
                (Some(_), None) | (None, Some(_)) => false,
                (None, None) => self.text == other.text,
            },
        }
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A digest with its algorithm, in small letters.
fn in_full(text: &str) -> Result<String, Mistake> {
    let wrong = || Mistake::Digest(text.to_owned());
    let (algorithm, digits) = match text.split_once(':') {
        Some((algorithm, digits)) => (algorithm, digits),
        None if text.len() == 40 => ("sha1", text),
        None if text.len() == 64 => ("sha256", text),
        None => return Err(wrong()),
    };
    let length = match algorithm {
        "sha1" => 40,
        "sha256" => 64,
        "sha384" => 96,
        "sha512" => 128,
        _ => return Err(wrong()),
    };
    if digits.len() != length || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(wrong());
    }
    Ok(format!("{algorithm}:{}", digits.to_ascii_lowercase()))
}

fn version(name: &str) -> Option<Version> {
    Version::parse(name.strip_prefix('v').unwrap_or(name)).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    const COMMIT: &str = "4f2a9c1e0b7d8a6f5e4d3c2b1a09f8e7d6c5b4a3";

    fn revision(text: &str) -> Revision {
        Revision::parse(text).unwrap()
    }

    #[rstest]
    #[case::branch("main@sha1:{commit}", Some("main"), true)]
    #[case::bare_commit("{commit}", None, true)]
    #[case::digest("sha1:{commit}", None, true)]
    #[case::slashes("feature/a@b@sha1:{commit}", Some("feature/a@b"), true)]
    #[case::version("6.7.1+3", Some("6.7.1+3"), false)]
    #[case::name("nightly", Some("nightly"), false)]
    fn the_forms_of_flux(#[case] text: &str, #[case] name: Option<&str>, #[case] digest: bool) {
        let revision = revision(&text.replace("{commit}", COMMIT));
        assert_eq!(revision.name(), name);
        let expected = format!("sha1:{COMMIT}");
        assert_eq!(revision.digest(), digest.then_some(expected.as_str()));
    }

    #[rstest]
    #[case::empty("", "it is empty")]
    #[case::blank("main @sha1:x", "a space")]
    #[case::short_commit("main@sha1:4f2a9c1", "is not a digest")]
    #[case::not_hexadecimal("sha1:zzzz9c1e0b7d8a6f5e4d3c2b1a09f8e7d6c5b4a3", "is not a digest")]
    #[case::unknown_algorithm("md5:d41d8cd98f00b204e9800998ecf8427e", "is not a digest")]
    #[case::no_digest("main@", "is not a digest")]
    fn what_is_none_is_refused(#[case] text: &str, #[case] problem: &str) {
        let mistake = Revision::parse(text).unwrap_err().to_string();
        assert!(mistake.contains(problem), "{mistake}");
        assert_eq!(
            Revision::parse(&"x".repeat(257)).unwrap_err(),
            Mistake::TooLong
        );
        let as_it_is_written = format!("{}@{COMMIT}", "x".repeat(211));
        assert_eq!(
            Revision::parse(&as_it_is_written).unwrap_err(),
            Mistake::TooLong
        );
    }

    #[rstest]
    #[case::same_commit("main@sha1:{commit}", "release@sha1:{commit}", true)]
    #[case::copied_commit("main@sha1:{commit}", "{commit}", true)]
    #[case::in_capitals("main@sha1:{COMMIT}", "{commit}", true)]
    #[case::build_metadata("6.7.1+3", "6.7.1", true)]
    #[case::with_a_v("v6.7.1", "6.7.1", true)]
    #[case::another_version("6.7.1", "6.7.2", false)]
    #[case::a_tag_may_move("1.2.3", "1.2.3@sha1:{commit}", false)]
    #[case::names("nightly", "nightly", true)]
    #[case::other_names("nightly", "weekly", false)]
    fn sameness(#[case] one: &str, #[case] other: &str, #[case] same: bool) {
        let read = |text: &str| {
            let text = text.replace("{commit}", COMMIT);
            revision(&text.replace("{COMMIT}", &COMMIT.to_ascii_uppercase()))
        };
        assert_eq!(read(one).is(&read(other)), same);
        assert_eq!(read(other).is(&read(one)), same);
    }

    proptest! {
        /// Everything that can be read is written so that it reads the same again.
        #[test]
        fn what_was_read_reads_the_same_again(text in "\\PC{0,80}") {
            if let Ok(revision) = Revision::parse(&text) {
                let again = Revision::parse(&revision.to_string()).unwrap();
                prop_assert!(again.is(&revision));
                prop_assert_eq!(again.to_string(), revision.to_string());
            }
        }
    }
}
