//! Patterns that revisions match: the entries of lists.
//!
//! | entry | matches |
//! |---|---|
//! | twelve or more hexadecimal digits, with or without `sha1:`, `sha256:`, … | commits and digests that begin so; without an algorithm also the name that is written so |
//! | an operator and a version (`>=1.4.0, <2`, `^1.4`, `~1.4.2`, `=1.4.2`) | versions in that range; a prerelease only where the range names one of the same release, as is usual |
//! | anything else | a glob (`*`, `?`, `[…]`, `{a,b}`) over the name, the version, or the whole revision |
//!
//! An entry that denies also holds back names that may mean the same, see [`Pattern::covers`]. If the
//! name of a revision is unknown ([`Revision::of_unknown_name`]), only its digest can match.

use globset::GlobBuilder;
use semver::{BuildMetadata, Comparator, Op, Version, VersionReq};

use super::{Revision, loose};

mod glob;

/// The fewest digits that name a commit: with fewer, another commit may have the same ones.
const FEWEST_DIGITS: usize = 12;
/// The digits of a commit in full.
const COMMIT_DIGITS: usize = 40;
/// What the digest of a commit begins with.
const SHA1: &str = "sha1:";
/// The most bytes of an entry.
const LONGEST: usize = 256;

/// What to write as a pattern.
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
    /// A glob.
    Glob,
    /// A text without special characters, and the version that it may mean.
    Literal(Option<Box<Version>>),
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
            Rule::Digest { algorithm, digits } => {
                let begins = |(of, is): (&str, &str)| {
                    algorithm.as_deref().is_none_or(|algorithm| algorithm == of)
                        && is.starts_with(digits.as_str())
                };
                let digest = revision.digest().and_then(|digest| digest.split_once(':'));
                // Artifacts are tagged with commits and with dates, which look like commits.
                digest.is_some_and(begins)
                    || revision.name() == Some(&self.text)
                        && may_be_a_name(algorithm.as_deref(), digits, revision)
            }
            Rule::Versions(_) | Rule::Glob | Rule::Literal(_) if revision.has_unknown_name() => {
                // A pattern with only stars matches every name.
                let is_any = self.text.bytes().all(|byte| byte == b'*');
                is_any || self.carries(revision) == Some(true)
            }
            Rule::Versions(range) => revision
                .version()
                .is_some_and(|version| range.matches(version)),
            Rule::Glob | Rule::Literal(_) => {
                let is_version = |version| self.is_version(version);
                revision.name().is_some_and(|name| self.is_text(name))
                    || revision.version().is_some_and(is_version)
                    || self.is_text(revision.as_str())
            }
        }
    }

    /// Whether a revision matches, or may mean something that matches: for lists of what may not go
    /// out. `>=2.0.0` matches neither `2.1.0-rc.1` nor `2.1`, and a commit does not match the tag that
    /// begins with it, but the author of the entry meant to hold them back, too.
    pub fn covers(&self, revision: &Revision) -> bool {
        let may_mean = || match (&self.rule, revision.loose_version()) {
            (Rule::Digest { algorithm, digits }, _) => {
                let names = |name| loose::names_commit(name, digits);
                may_be_a_name(algorithm.as_deref(), digits, revision)
                    && revision.name().is_some_and(names)
            }
            (Rule::Versions(range), Some(version)) => is_within(range, version),
            (Rule::Glob, Some(version)) => self.is_version(version),
            (Rule::Literal(own), Some(version)) => own
                .as_ref()
                .is_some_and(|own| own.cmp_precedence(version).is_eq()),
            (Rule::Versions(_) | Rule::Glob | Rule::Literal(_), None) => false,
        };
        self.matches(revision)
            || match revision.has_unknown_name() {
                true => self.may_be_its_name(revision),
                // An entry with the digest of another change is not about this one, even if its name may
                // mean it.
                false => self.carries(revision) != Some(false) && may_mean(),
            }
    }

    /// Whether a glob matches a text, or a text is the other.
    fn is_text(&self, text: &str) -> bool {
        match &self.rule {
            Rule::Glob => glob::is_match(&self.text, text),
            Rule::Literal(_) => *self.text == *text,
            Rule::Digest { .. } | Rule::Versions(_) => false,
        }
    }

    /// Whether it matches a version, with or without a leading `v` and build metadata: Flux adds these,
    /// and they do not make another version.
    fn is_version(&self, version: &Version) -> bool {
        let plain = Version {
            build: BuildMetadata::EMPTY,
            ..version.clone()
        };
        [version, &plain].iter().any(|version| {
            self.is_text(&version.to_string()) || self.is_text(&format!("v{version}"))
        })
    }

    /// Whether the entry has a digest after a name, and it is the digest of the revision. None: it has
    /// none, or one of another algorithm, which cannot be compared.
    fn carries(&self, revision: &Revision) -> Option<bool> {
        let entry = self.text.contains('@').then(|| Revision::parse(&self.text));
        let entry = entry?.ok()?;
        let algorithm = |digest: &str| digest.split(':').next().map(str::to_owned);
        let (one, other) = (entry.digest()?, revision.digest()?);
        (algorithm(one) == algorithm(other)).then(|| one == other)
    }

    /// For a revision whose name is unknown: whether the entry may be about its name.
    fn may_be_its_name(&self, revision: &Revision) -> bool {
        match &self.rule {
            Rule::Versions(_) | Rule::Glob | Rule::Literal(_) => self.carries(revision).is_none(),
            Rule::Digest { algorithm, digits } => {
                may_be_a_name(algorithm.as_deref(), digits, revision)
            }
        }
    }

    /// The entry, as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// Whether the digits of an entry may be the name of a revision: a date, or the commit that an image
/// was built from. A revision that is a commit is not named after another commit.
fn may_be_a_name(algorithm: Option<&str>, digits: &str, revision: &Revision) -> bool {
    let digest = revision.digest();
    let is_commit = digest.is_some_and(|digest| digest.starts_with(SHA1));
    match algorithm {
        None if digits.bytes().all(|byte| byte.is_ascii_digit()) => true,
        None | Some("sha1") => !is_commit && digits.len() <= COMMIT_DIGITS,
        Some(_) => false,
    }
}

/// Whether a version is in a range, or is a prerelease of one that is.
fn is_within(range: &VersionReq, version: &Version) -> bool {
    match version.pre.is_empty() {
        true => range.matches(version),
        false => range
            .comparators
            .iter()
            .all(|bound| reaches(bound, version)),
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
        (None, true) if loose::is_commit_cut_short(digits) && digits.len() < FEWEST_DIGITS => {
            Err(format!(
                "`{text}` looks like the beginning of a commit, but has fewer than \
                 {FEWEST_DIGITS} digits"
            ))
        }
        (algorithm, true) if digits.len() >= FEWEST_DIGITS => Ok(Rule::Digest {
            algorithm: algorithm.map(str::to_owned),
            digits: digits.to_ascii_lowercase(),
        }),
        (Some(_), _) => Err(format!("`{text}` is not a digest")),
        (None, _) if text.starts_with(['>', '<', '=', '^', '~']) => VersionReq::parse(text)
            .map(Rule::Versions)
            .map_err(|error| format!("`{text}` is not a range of versions: {error}")),
        (None, _) if !text.contains(['*', '?', '[', ']', '{', '}', '\\']) => {
            let revision = Revision::parse(text).ok();
            let name = revision.as_ref().and_then(Revision::name);
            let version = loose::version(name.unwrap_or(text));
            Ok(Rule::Literal(version.map(Box::new)))
        }
        (None, _) => GlobBuilder::new(text)
            .backslash_escape(true)
            .build()
            .map(|_| Rule::Glob)
            .map_err(|error| format!("`{text}` is not a glob: {}", error.kind())),
    }
}

#[cfg(test)]
mod tests;
