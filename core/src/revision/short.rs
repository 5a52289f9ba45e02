//! Revisions in tables, where there is no room for forty digits.

/// How many digits of a digest are enough to distinguish revisions. Lists of revisions accept this
/// many, so that what a table shows can be copied into a list.
const DIGITS: usize = 12;

/// How many digits a digest has: of sha1, sha256, sha384 and sha512.
const LENGTHS: [usize; 4] = [40, 64, 96, 128];

/// A revision as people recognize it at a glance: a digest is cut to twelve digits, and its algorithm
/// is left out. If there are several, with commas between them, only the first is shown, and how many
/// more there are.
pub fn short(revision: &str) -> String {
    let mut all = revision.split(", ");
    let first = all.next().unwrap_or_default();
    match all.count() {
        0 => one(first),
        more => format!("{} and {more} more", one(first)),
    }
}

fn one(revision: &str) -> String {
    let (name, digest) = match revision.rsplit_once('@') {
        Some((name, digest)) => (format!("{name}@"), digest),
        None => (String::new(), revision),
    };
    let digits = digest.split_once(':').map_or(digest, |(_, digits)| digits);
    // A tag that has only digits, such as a date, is not a digest.
    let is_digest =
        LENGTHS.contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    match is_digest {
        true => format!("{name}{}", &digits[..DIGITS]),
        false => revision.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::commit(
        "main@sha1:4f2a9c1e0b7d8a6f5e4d3c2b1a09f8e7d6c5b4a3",
        "main@4f2a9c1e0b7d"
    )]
    #[case::without_a_name("sha1:4f2a9c1e0b7d8a6f5e4d3c2b1a09f8e7d6c5b4a3", "4f2a9c1e0b7d")]
    #[case::as_people_copy_it("4f2a9c1e0b7d8a6f5e4d3c2b1a09f8e7d6c5b4a3", "4f2a9c1e0b7d")]
    #[case::name_with_an_at(
        "a@b@sha1:4f2a9c1e0b7d8a6f5e4d3c2b1a09f8e7d6c5b4a3",
        "a@b@4f2a9c1e0b7d"
    )]
    #[case::version("6.7.1+3", "6.7.1+3")]
    #[case::date("20261120153000", "20261120153000")]
    #[case::several(
        "6.7.1, main@sha1:4f2a9c1e0b7d8a6f5e4d3c2b1a09f8e7d6c5b4a3, v1",
        "6.7.1 and 2 more"
    )]
    fn digests_are_cut(#[case] revision: &str, #[case] expected: &str) {
        assert_eq!(short(revision), expected);
    }
}
