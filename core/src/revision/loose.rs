//! What a name may mean, for holding back revisions: nobody must escape a list that denies, or a
//! rejection, by writing the same thing in another way.
//!
//! What comes in: the name of a revision. What goes out: the version or the commit that people would
//! read in it. Nothing may go out because of it.

use std::iter;

use semver::{BuildMetadata, Prerelease, Version};

/// The fewest hexadecimal digits of a name that are taken for the beginning of a commit: what
/// `git` shows of one.
pub const FEWEST_DIGITS: usize = 7;

/// The version that a name means, read as Flux and container registries read it: missing parts are zero
/// (`2.1` is `2.1.0`), a leading `v` and leading zeros do not matter, and `_` means the `+` that a tag
/// cannot hold. Anything else after the numbers makes it a prerelease, and numbers after the third are
/// left out.
pub(super) fn version(name: &str) -> Option<Version> {
    let name = name.strip_prefix(['v', 'V']).unwrap_or(name);
    let end = name.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (numbers, rest) = name.split_at(end.unwrap_or(name.len()));
    let numbers = match rest {
        "" => numbers,
        _ => numbers.strip_suffix('.').unwrap_or(numbers),
    };
    let is_marked = rest.is_empty() || rest.starts_with(['-', '+', '_']);
    let is_number = |part: &str| !part.is_empty();
    // `2fa` is a word; `2.1rc1` is a version.
    if !numbers.split('.').all(is_number) || !(is_marked || numbers.contains('.')) {
        return None;
    }
    // A number that is too large is only made of digits, so it is larger than any other.
    let parts = numbers
        .split('.')
        .map(|part| part.parse().unwrap_or(u64::MAX));
    let mut parts = parts.chain(iter::repeat(0));
    Some(Version {
        major: parts.next()?,
        minor: parts.next()?,
        patch: parts.next()?,
        pre: prerelease(rest),
        build: BuildMetadata::EMPTY,
    })
}

fn prerelease(rest: &str) -> Prerelease {
    let text = rest.split(['+', '_']).next().unwrap_or_default();
    match text.strip_prefix('-').unwrap_or(text) {
        "" => Prerelease::EMPTY,
        // If the text is not a valid prerelease, such as `01`, use the lowest of all.
        text => Prerelease::new(text)
            .or_else(|_| Prerelease::new("0"))
            .unwrap_or(Prerelease::EMPTY),
    }
}

/// Whether a name is that of a commit or digest whose first `digits`, in small letters, are known:
/// artifacts are often tagged with the commit that they are built from, in full, cut short, or with
/// something behind it.
pub fn names_commit(name: &str, digits: &str) -> bool {
    let begins = |text: &str, with: &str| {
        let beginning = text.as_bytes().get(..with.len());
        beginning.is_some_and(|beginning| beginning.eq_ignore_ascii_case(with.as_bytes()))
    };
    begins(name, digits) || is_commit_cut_short(name) && begins(digits, name)
}

/// Whether a name is, as far as one can see, the beginning of a commit. If it has only decimal digits,
/// it may be a number or a date.
pub fn is_commit_cut_short(name: &str) -> bool {
    name.len() >= FEWEST_DIGITS
        && name.bytes().all(|byte| byte.is_ascii_hexdigit())
        && name.bytes().any(|byte| byte.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::one_part("2", "2.0.0")]
    #[case::two_parts("2.1", "2.1.0")]
    #[case::three_parts("2.1.3", "2.1.3")]
    #[case::four_parts("2.1.3.4", "2.1.3")]
    #[case::with_v("v2", "2.0.0")]
    #[case::leading_zeros("2026.01.15", "2026.1.15")]
    #[case::prerelease("2.1-rc.1", "2.1.0-rc.1")]
    #[case::flavour("2-alpine", "2.0.0-alpine")]
    #[case::prerelease_of_its_own("2.1-01", "2.1.0-0")]
    #[case::python("2.1rc1", "2.1.0-rc1")]
    #[case::java("2.1.0.Final", "2.1.0-Final")]
    #[case::build("2.1+4", "2.1.0")]
    #[case::build_in_a_tag("6.7.1_3", "6.7.1")]
    #[case::prerelease_and_build_in_a_tag("6.7.1-rc.1_3", "6.7.1-rc.1")]
    #[case::huge("99999999999999999999", "18446744073709551615.0.0")]
    fn versions_are_read_as_people_mean_them(#[case] name: &str, #[case] expected: &str) {
        assert_eq!(version(name).unwrap().to_string(), expected);
    }

    #[rstest]
    #[case("")]
    #[case("v")]
    #[case("main")]
    #[case("2fa")]
    #[case("release-2.1.0")]
    #[case("2..1")]
    #[case(".1")]
    #[case("2.")]
    #[case("vv2")]
    fn other_names_are_no_versions(#[case] name: &str) {
        assert_eq!(version(name), None);
    }

    #[rstest]
    #[case::in_full("4f2a9c1e0b7d8a6f", "4f2a9c1e0b7d", true)]
    #[case::in_capitals("4F2A9C1E0B7D", "4f2a9c1e0b7d", true)]
    #[case::with_an_end("4f2a9c1e0b7d-amd64", "4f2a9c1e0b7d", true)]
    #[case::cut_short("4f2a9c1", "4f2a9c1e0b7d", true)]
    #[case::too_short("4f2a9c", "4f2a9c1e0b7d", false)]
    #[case::another("4f2a9c2", "4f2a9c1e0b7d", false)]
    #[case::a_date("20261120", "20261120153000", false)]
    #[case::not_ascii("é", "4f2a9c1e0b7d", false)]
    fn a_name_may_be_that_of_a_commit(
        #[case] name: &str,
        #[case] digits: &str,
        #[case] expected: bool,
    ) {
        assert_eq!(names_commit(name, digits), expected);
    }
}
