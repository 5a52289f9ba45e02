//! Digests of artifacts, as Flux writes them: `<algorithm>:<checksum in hexadecimal digits>`.

use std::fmt;
use std::str::FromStr;

use sha2::digest::DynDigest;
use sha2::{Sha256, Sha384, Sha512};

/// A digest that can be checked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest {
    algorithm: Algorithm,
    /// In lower case, as long as the algorithm has it.
    checksum: Box<str>,
}

/// The algorithms that source-controller can be configured to use and that are easy to check: its fourth,
/// blake3, would need another library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Algorithm {
    Sha256,
    Sha384,
    Sha512,
}

/// Why a text is no digest that can be checked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoDigest {
    /// It has another form.
    #[error("`{0}` is not a digest; write one such as sha256:<64 hexadecimal digits>")]
    Malformed(String),
    /// Nobody here knows the algorithm.
    #[error(
        "the digest algorithm {0} cannot be checked; sha256, sha384 and sha512 can: see \
         --artifact-digest-algo of source-controller"
    )]
    UnknownAlgorithm(String),
}

impl Algorithm {
    const ALL: [Self; 3] = [Self::Sha256, Self::Sha384, Self::Sha512];

    fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Sha384 => "sha384",
            Self::Sha512 => "sha512",
        }
    }

    fn hasher(self) -> Box<dyn DynDigest + Send> {
        match self {
            Self::Sha256 => Box::<Sha256>::default(),
            Self::Sha384 => Box::<Sha384>::default(),
            Self::Sha512 => Box::<Sha512>::default(),
        }
    }
}

impl Digest {
    /// The name of the algorithm, then the checksum.
    pub(super) fn parts(&self) -> (&'static str, &str) {
        (self.algorithm.name(), &self.checksum)
    }

    /// What both are written as, apart.
    ///
    /// # Errors
    /// They are no digest that can be checked.
    pub(super) fn of_parts(algorithm: &str, checksum: &str) -> Result<Self, NoDigest> {
        let known = Algorithm::ALL
            .into_iter()
            .find(|known| known.name() == algorithm)
            .ok_or_else(|| NoDigest::UnknownAlgorithm(algorithm.to_owned()))?;
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if checksum.len() != 2 * known.hasher().output_size() || !checksum.bytes().all(is_digit) {
            return Err(NoDigest::Malformed(format!("{algorithm}:{checksum}")));
        }
        Ok(Self {
            algorithm: known,
            checksum: checksum.into(),
        })
    }

    /// What a content is hashed with to be compared with this.
    pub(super) fn hasher(&self) -> Hasher {
        Hasher {
            algorithm: self.algorithm,
            hasher: self.algorithm.hasher(),
        }
    }
}

impl FromStr for Digest {
    type Err = NoDigest;

    fn from_str(text: &str) -> Result<Self, NoDigest> {
        match text.split_once(':') {
            Some((algorithm, checksum)) => Self::of_parts(algorithm, checksum),
            None => Err(NoDigest::Malformed(text.to_owned())),
        }
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (algorithm, checksum) = self.parts();
        write!(f, "{algorithm}:{checksum}")
    }
}

/// Takes a content piece by piece.
pub(super) struct Hasher {
    algorithm: Algorithm,
    hasher: Box<dyn DynDigest + Send>,
}

impl Hasher {
    pub(super) fn update(&mut self, piece: &[u8]) {
        self.hasher.update(piece);
    }

    /// The digest of all of it.
    pub(super) fn finish(self) -> Digest {
        let checksum = self.hasher.finalize();
        let checksum: String = checksum.iter().map(|byte| format!("{byte:02x}")).collect();
        Digest {
            algorithm: self.algorithm,
            checksum: checksum.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    // FIPS 180-4, of `abc`.
    #[rstest]
    #[case("sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")]
    #[case(
        "sha384:cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7"
    )]
    #[case(
        "sha512:ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"
    )]
    fn what_source_controller_writes_is_checked(#[case] text: &str) {
        let digest: Digest = text.parse().unwrap();
        assert_eq!(digest.to_string(), text);
        let mut hasher = digest.hasher();
        hasher.update(b"a");
        hasher.update(b"bc");
        assert_eq!(hasher.finish(), digest);
    }

    #[rstest]
    #[case("")]
    #[case("ba7816bf")]
    #[case("sha256:")]
    #[case("sha256:ba7816bf")]
    #[case("sha256:BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD")]
    #[case("sha256:../../../../../../../../../../../../../../../../../../../etc/passwd")]
    #[case("sha512:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")]
    fn what_has_another_form_is_refused(#[case] text: &str) {
        let refused = text.parse::<Digest>().unwrap_err();
        assert_eq!(refused, NoDigest::Malformed(text.to_owned()));
    }

    #[test]
    fn an_algorithm_that_cannot_be_checked_is_named_with_what_can() {
        let refused = "blake3:ba7816bf8f01cfea".parse::<Digest>().unwrap_err();
        let said = refused.to_string();
        assert!(
            said.contains("blake3 cannot be checked; sha256, sha384 and sha512 can"),
            "{said}"
        );
    }
}
