//! Revisions, and the patterns that they match.

use bolero::TypeGenerator;
use sluice_core::revision::Revision;
use sluice_core::revision::pattern::Pattern;

use super::target::Target;

pub const TARGET: Target = Target {
    name: "revision",
    words: &[
        "@",
        ":",
        "sha1:",
        "sha256:",
        "sha384:",
        "sha512:",
        "md5:",
        "v",
        "main",
        "1.2.3",
        "-rc.1",
        "+build.5",
        "^",
        "~",
        ">=",
        "<",
        "=",
        ", ",
        "*",
        "**",
        "?",
        "[a-f]",
        "[!a]",
        "{a,b}",
        "\\",
        "4f2a9c1e0b7d",
        "4f2a9c1e0b7d8a6f5e4d3c2b1a09f8e7d6c5b4a3",
        "4F2A9C1E0B7D",
        " ",
        "\n",
        "\u{a0}",
        "é",
        "/",
        "0",
        "18446744073709551615",
        LONG,
    ],
    texts: 1_500,
};

/// Nearly as long as a revision may be.
const LONG: &str = "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn\
                    nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn\
                    nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn";

/// The most bytes of an entry.
const LONGEST_ENTRY: usize = 256;

/// Nothing else is asked for.
#[derive(Debug, Default, TypeGenerator)]
pub struct Nothing;

/// Two revisions and an entry of a list, a line each.
pub fn holds(text: &str, _: &Nothing) -> bool {
    let mut lines = text.splitn(3, '\n');
    let [one, other, entry] = [(); 3].map(|()| lines.next().unwrap_or_default());
    let revisions = [one, other, entry].map(Revision::parse);
    let read: Vec<_> = revisions.iter().flatten().collect();
    for revision in &read {
        reads_the_same_again(revision);
        is_matched_by_its_own_names(revision);
    }
    sameness_is_sameness(&read);
    if let Ok(pattern) = Pattern::parse(entry) {
        matching(&pattern, entry, &read);
    }
    !read.is_empty()
}

/// What was read is written so that it reads the same again.
fn reads_the_same_again(revision: &Revision) {
    let written = revision.to_string();
    let again = Revision::parse(&written);
    let again = again.unwrap_or_else(|mistake| panic!("{written:?} is written, but {mistake}"));
    assert_eq!(again.to_string(), written);
    assert_eq!(again.name(), revision.name());
    assert_eq!(again.digest(), revision.digest());
    assert_eq!(again.version(), revision.version());
    assert!(again.is(revision), "{written:?} is another revision");
    assert!(
        revision.name().is_some() || revision.digest().is_some(),
        "{written:?} has neither name nor digest"
    );
}

/// Anyone who writes down what a revision says of itself means it.
fn is_matched_by_its_own_names(revision: &Revision) {
    let matches = |entry: &str| {
        let pattern = Pattern::parse(entry).unwrap_or_else(|problem| panic!("{problem}"));
        assert!(
            pattern.matches(revision),
            "{entry:?} does not match {revision}"
        );
    };
    matches("*");
    if let Some((algorithm, digits)) = revision.digest().and_then(|digest| digest.split_once(':')) {
        matches(digits);
        matches(&digits[..12]);
        matches(&format!("{algorithm}:{}", digits[..20].to_uppercase()));
    }
    if let Some(version) = revision.version() {
        matches(&version.to_string());
        // With its operator it may be too long for an entry.
        let exact = format!("={version}");
        if exact.len() <= LONGEST_ENTRY {
            matches(&exact);
        }
    }
    // Digits could be those of a commit, and an operator that of a range.
    let plain = |c: char| matches!(c, 'g'..='z' | '/' | '_');
    if let Some(name) = revision.name().filter(|name| name.chars().all(plain)) {
        matches(name);
    }
}

fn sameness_is_sameness(revisions: &[&Revision]) {
    for one in revisions {
        assert!(one.is(one), "{one} is not itself");
        for other in revisions {
            let same = one.is(other);
            assert_eq!(same, other.is(one), "{one} and {other}");
            if same {
                assert_eq!(one.digest(), other.digest(), "{one} and {other}");
            }
            for third in revisions {
                let all = same && other.is(third);
                assert!(!all || one.is(third), "{one}, {other} and {third}");
            }
        }
    }
}

fn matching(pattern: &Pattern, entry: &str, revisions: &[&Revision]) {
    assert_eq!(pattern.as_str(), entry.trim());
    let indented = Pattern::parse(&format!(" {entry}\t"));
    let (algorithm, digits) = match entry.trim().rsplit_once(':') {
        Some((algorithm, digits)) => (Some(algorithm), digits),
        None => (None, entry.trim()),
    };
    // With anything else before the colon it is a glob.
    let is_digest = matches!(
        algorithm,
        None | Some("sha1" | "sha256" | "sha384" | "sha512")
    );
    let of_digits =
        is_digest && digits.len() >= 12 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    for revision in revisions {
        let matches = pattern.matches(revision);
        if let Ok(indented) = &indented {
            assert_eq!(indented.matches(revision), matches, "{entry:?}, {revision}");
        }
        if of_digits && matches {
            let digest = revision.digest().unwrap_or_default();
            let begins = digest.contains(&format!(":{}", digits.to_lowercase()));
            let is_name = revision.name() == Some(entry.trim());
            assert!(begins || is_name, "{entry:?} matches {revision}");
        }
        assert!(
            !matches || pattern.covers(revision),
            "{entry:?}, {revision}"
        );
        says_no_more_of_an_unknown_name(pattern, revision);
    }
}

/// What nobody knows the name of is let pass by nothing that does not let its digest pass, and held back
/// by everything that holds it back under any name.
fn says_no_more_of_an_unknown_name(pattern: &Pattern, revision: &Revision) {
    let unknown = (*revision).clone().of_unknown_name();
    let entry = pattern.as_str();
    let by_name = pattern.covers(revision) && revision.digest().is_some();
    assert!(
        !by_name || pattern.covers(&unknown),
        "{entry:?}, {revision}"
    );
    let digest = revision.digest().map(Revision::parse);
    let Some(Ok(digest)) = digest else { return };
    let carries = Revision::parse(entry).is_ok_and(|entry| entry.digest() == digest.digest());
    assert!(
        !pattern.matches(&unknown) || pattern.matches(&digest) || carries,
        "{entry:?}, {revision}"
    );
}
