//! Patterns that revisions match: the entries of lists.
//!
//! | entry | matches |
//! |---|---|
//! | twelve or more hexadecimal digits, with or without `sha1:`, `sha256:`, … | commits and digests that begin so |
//! | an operator and a version (`>=1.4.0, <2`, `^1.4`, `~1.4.2`, `=1.4.2`) | versions in that range; a prerelease only where the range names one of the same release, as is usual |
//! | anything else | a glob (`*`, `?`, `[…]`, `{a,b}`) over the name, the version, or the whole revision |

use globset::{GlobBuilder, GlobMatcher};
use semver::{BuildMetadata, Comparator, Op, Version, VersionReq};

use super::Revision;

/// The fewest digits that name a commit: fewer are too likely to name another one some day.
const FEWEST_DIGITS: usize = 12;
/// The most bytes of an entry.
const LONGEST: usize = 256;

/// What to write where a pattern is wanted.
pub const REMEDY: &str = "write a commit or digest (12 digits or more), a range of versions such \
                          as >=1.4.0, or a glob such as release-*";

/// An entry of a list.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: String,
    rule: Rule,
}

#[derive(Clone, Debug)]
enum Rule {
    Digest {
        algorithm: Option<String>,
        digits: String,
    },
    Versions(VersionReq),
    Text(Text),
}

/// What is compared with a text: a glob, or, many times faster, the text itself where nothing in it
/// means anything else.
#[derive(Clone, Debug)]
enum Text {
    Glob(GlobMatcher),
    Literal(String),
}

impl Text {
    fn is_match(&self, text: &str) -> bool {
        match self {
            Text::Glob(glob) => glob.is_match(text),
            Text::Literal(literal) => literal == text,
        }
    }
}

impl Pattern {
    /// Reads an entry.
    ///
    /// # Errors
    /// What is wrong with it; see [`REMEDY`].
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.is_empty() {
            return Err("the entry is empty".to_owned());
        }
        if text.len() > LONGEST {
            return Err(format!("the entry is longer than {LONGEST} characters"));
        }
        Ok(Self {
            text: text.to_owned(),
            rule: rule(text)?,
        })
    }

    /// Whether a revision matches.
    pub fn matches(&self, revision: &Revision) -> bool {
        match &self.rule {
            Rule::Digest { algorithm, digits } => revision
                .digest()
                .and_then(|digest| digest.split_once(':'))
                .is_some_and(|(of, is)| {
                    algorithm.as_deref().is_none_or(|algorithm| algorithm == of)
                        && is.starts_with(digits.as_str())
                }),
            Rule::Versions(range) => revision
                .version()
                .is_some_and(|version| range.matches(version)),
            Rule::Text(text) => {
                let is_version = |version| is_version(text, version);
                revision.name().is_some_and(|name| text.is_match(name))
                    || revision.version().is_some_and(is_version)
                    || text.is_match(revision.as_str())
            }
        }
    }

    /// Whether a revision matches, or is a prerelease of what does: for lists of what may not go
    /// out. `>=2.0.0` does not match `2.1.0-rc.1`, but whoever wrote that meant to keep it in, too.
    pub fn covers(&self, revision: &Revision) -> bool {
        let is_within = || match (&self.rule, revision.version()) {
            (Rule::Versions(range), Some(version)) if !version.pre.is_empty() => {
                let comparators = &range.comparators;
                comparators.iter().all(|bound| reaches(bound, version))
            }
            _ => false,
        };
        self.matches(revision) || is_within()
    }

    /// The entry, as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// Whether a prerelease is on the same side of a bound as its release, or right before it.
fn reaches(bound: &Comparator, version: &Version) -> bool {
    let release = Version::new(version.major, version.minor, version.patch);
    let end = Version::new(
        bound.major,
        bound.minor.unwrap_or_default(),
        bound.patch.unwrap_or_default(),
    );
    let is_right_before = bound.op == Op::Less && bound.pre.is_empty() && release == end;
    bound.matches(version) || bound.matches(&release) || is_right_before
}

/// Whether an entry matches a version, with or without a leading `v` and its build metadata: Flux adds
/// those, and none of them makes another version.
fn is_version(text: &Text, version: &Version) -> bool {
    let plain = Version {
        build: BuildMetadata::EMPTY,
        ..version.clone()
    };
    [version, &plain]
        .iter()
        .any(|version| text.is_match(&version.to_string()) || text.is_match(&format!("v{version}")))
}

fn rule(text: &str) -> Result<Rule, String> {
    let (algorithm, digits) = match text.split_once(':') {
        Some((algorithm @ ("sha1" | "sha256" | "sha384" | "sha512"), digits)) => {
            (Some(algorithm), digits)
        }
        _ => (None, text),
    };
    let is_hexadecimal = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    match (algorithm, is_hexadecimal) {
        (Some(_), true) if digits.len() < FEWEST_DIGITS => Err(format!(
            "`{text}` has fewer than {FEWEST_DIGITS} digits, which another commit may begin with"
        )),
        (None, true) if looks_like_a_commit(digits) && digits.len() < FEWEST_DIGITS => {
            Err(format!(
                "`{text}` looks like the beginning of a commit, but has fewer than \
                 {FEWEST_DIGITS} digits"
            ))
        }
        (algorithm, true) if digits.len() >= FEWEST_DIGITS => Ok(Rule::Digest {
            algorithm: algorithm.map(str::to_owned),
            digits: digits.to_ascii_lowercase(),
        }),
        (Some(_), _) => Err(format!("`{text}` is no digest")),
        (None, _) if text.starts_with(['>', '<', '=', '^', '~']) => VersionReq::parse(text)
            .map(Rule::Versions)
            .map_err(|error| format!("`{text}` is no range of versions: {error}")),
        (None, _) if !text.contains(['*', '?', '[', ']', '{', '}', '\\']) => {
            Ok(Rule::Text(Text::Literal(text.to_owned())))
        }
        (None, _) => GlobBuilder::new(text)
            .backslash_escape(true)
            .build()
            .map(|glob| Rule::Text(Text::Glob(glob.compile_matcher())))
            .map_err(|error| format!("`{text}` is no glob: {}", error.kind())),
    }
}

/// Seven digits are what `git` shows of a commit. Digits alone may be a number somebody gave.
fn looks_like_a_commit(digits: &str) -> bool {
    digits.len() >= 7 && digits.bytes().any(|byte| byte.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const COMMIT: &str = "4f2a9c1e0b7d8a6f5e4d3c2b1a09f8e7d6c5b4a3";

    #[rstest]
    #[case::in_full("4f2a9c1e0b7d8a6f5e4d3c2b1a09f8e7d6c5b4a3", "main@sha1:{commit}", true)]
    #[case::twelve_digits("4f2a9c1e0b7d", "main@sha1:{commit}", true)]
    #[case::with_algorithm("sha1:4F2A9C1E0B7D", "main@sha1:{commit}", true)]
    #[case::another_algorithm("sha256:4f2a9c1e0b7d", "main@sha1:{commit}", false)]
    #[case::another_commit("4f2a9c1e0b7e", "main@sha1:{commit}", false)]
    #[case::digits_never_match_names("4f2a9c1e0b7d", "4f2a9c1e0b7d-branch", false)]
    #[case::range(">=1.4.0, <2", "1.9.3", true)]
    #[case::range_of_a_tag("^1.4", "v1.9.3@sha1:{commit}", true)]
    #[case::outside("~1.4.2", "1.5.0", false)]
    #[case::no_version("^1.4", "main@sha1:{commit}", false)]
    #[case::branch("release-*", "release-2026@sha1:{commit}", true)]
    #[case::branch_with_slash("release/*", "release/2026/11@sha1:{commit}", true)]
    #[case::version_glob("1.4.?", "v1.4.2", true)]
    #[case::version_without_build("6.7.1", "6.7.1+3", true)]
    #[case::version_with_v("v1.4.3", "1.4.3", true)]
    #[case::version_without_v("1.4.3", "v1.4.3@sha1:{commit}", true)]
    #[case::another_version("6.7.1", "6.7.10", false)]
    #[case::whole("main@sha1:4f2a*", "main@sha1:{commit}", true)]
    #[case::another_branch("release-*", "main@sha1:{commit}", false)]
    #[case::everything("*", "{commit}", true)]
    fn matching(#[case] entry: &str, #[case] revision: &str, #[case] matches: bool) {
        let revision = Revision::parse(&revision.replace("{commit}", COMMIT)).unwrap();
        let pattern = Pattern::parse(entry).unwrap();
        assert_eq!(pattern.matches(&revision), matches);
    }

    /// What may not go out may not go out as a prerelease either; what may has to name those.
    #[rstest]
    #[case::later(">=2.0.0", "2.1.0-rc.1", false, true)]
    #[case::of_the_first(">=2.0.0", "2.0.0-rc.1", false, true)]
    #[case::right_before_the_end("<2", "v2.0.0-rc.1", false, true)]
    #[case::up_to_the_end(">1.0.0, <=2.0.0", "2.0.0-rc.1", false, true)]
    #[case::of_that_one("=2.0.0", "2.0.0-rc.1", false, true)]
    #[case::compatible("^1.4", "1.9.0-beta", false, true)]
    #[case::next_major("^1.4", "2.0.0-beta", false, false)]
    #[case::after_the_end("<2.0.0", "2.0.1-rc.1", false, false)]
    #[case::before_the_first(">2.0.0", "2.0.0-rc.1", false, false)]
    #[case::outside(">=3, <4", "2.1.0-rc.1", false, false)]
    #[case::named(">=2.0.0-rc.2", "2.0.0-rc.3", true, true)]
    #[case::before_the_named(">=2.0.0-rc.2", "2.0.0-rc.1", false, true)]
    #[case::no_prerelease(">=2.0.0", "2.1.0", true, true)]
    #[case::no_version(">=2.0.0", "main", false, false)]
    fn prereleases(
        #[case] entry: &str,
        #[case] revision: &str,
        #[case] matches: bool,
        #[case] covers: bool,
    ) {
        let (entry, revision) = (Pattern::parse(entry), Revision::parse(revision));
        let (entry, revision) = (entry.unwrap(), revision.unwrap());
        assert_eq!(
            (entry.matches(&revision), entry.covers(&revision)),
            (matches, covers)
        );
    }

    #[rstest]
    #[case::empty("  ", "is empty")]
    #[case::a_short_commit("4f2a9c1", "fewer than 12 digits")]
    #[case::a_short_digest("sha1:4f2a", "fewer than 12 digits")]
    #[case::no_digest("sha1:main", "is no digest")]
    #[case::no_range(">=one", "no range of versions")]
    #[case::no_glob("release-[", "no glob")]
    fn what_is_none_is_refused(#[case] entry: &str, #[case] problem: &str) {
        let refusal = Pattern::parse(entry).unwrap_err();
        assert!(refusal.contains(problem), "{refusal}");
        assert!(Pattern::parse(&"x".repeat(257)).is_err());
    }

    #[test]
    fn a_number_is_a_name() {
        let build = Revision::parse("1234567").unwrap();
        assert!(Pattern::parse("1234567").unwrap().matches(&build));
    }
}
