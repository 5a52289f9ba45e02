//! Names and labels that the API server accepts.

use super::refusal::Refusal;

/// The most characters of a name that has to fit into a label. Names of our kinds have to.
pub(crate) const LABEL_LENGTH: usize = 63;

/// The most characters of any other name.
pub(crate) const NAME_LENGTH: usize = 253;

/// Whether it is a label of a DNS name (RFC 1123), of any length.
pub fn is_label(text: &str) -> bool {
    let is_end = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.starts_with(is_end)
        && text.ends_with(is_end)
        && text.chars().all(|c| is_end(c) || c == '-')
}

/// A name that is a DNS subdomain (RFC 1123).
pub(crate) fn subdomain(field: &str, name: &str, longest: usize, mistakes: &mut Vec<Refusal>) {
    if name.chars().count() > longest {
        let problem = format!("`{name}` has more than {longest} characters");
        mistakes.push(Refusal::new(field, problem, "write a shorter name"));
    } else if !name.split('.').all(is_label) {
        mistakes.push(Refusal::new(
            field,
            format!("`{name}` is not the name of an object"),
            "write lower-case letters, digits, - and ., with a letter or digit at both ends",
        ));
    }
}

/// Whether it may be the name of a label.
pub(crate) fn is_qualified(key: &str) -> bool {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    let is_domain = |text: &str| text.len() <= NAME_LENGTH && text.split('.').all(is_label);
    !name.is_empty() && is_label_value(name) && prefix.is_none_or(is_domain)
}

/// Whether it may be the value of a label.
pub(crate) fn is_label_value(text: &str) -> bool {
    let is_end = |c: char| c.is_ascii_alphanumeric();
    text.is_empty()
        || (text.len() <= LABEL_LENGTH
            && text.starts_with(is_end)
            && text.ends_with(is_end)
            && text
                .chars()
                .all(|c| is_end(c) || matches!(c, '-' | '_' | '.')))
}

/// Whether it is 40 hexadecimal digits, as git writes the id of a commit.
pub(crate) fn is_sha(text: &str) -> bool {
    let is_digit = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    text.len() == 40 && text.chars().all(is_digit)
}

/// The most characters of the name of a branch.
const BRANCH_LENGTH: usize = 244;

/// Whether git and the forges take it for the name of a branch, without `refs/heads/`.
pub(crate) fn is_branch(name: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && !part.ends_with('.')
            && !part.ends_with(".lock")
    };
    let is_special = |c: char| {
        c.is_control() || c.is_whitespace() || matches!(c, '~' | '^' | ':' | '?' | '*' | '[' | '\\')
    };
    (1..=BRANCH_LENGTH).contains(&name.len())
        && name != "@"
        && !name.starts_with('-')
        && !name.contains("..")
        && !name.contains("@{")
        && !name.contains(is_special)
        && name.split('/').all(is_part)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::plain("main", true)]
    #[case::a_path("env/prod-eu.1", true)]
    #[case::other_letters("größe", true)]
    #[case::nothing("", false)]
    #[case::at("@", false)]
    #[case::an_option("-x", false)]
    #[case::up("a..b", false)]
    #[case::an_empty_part("a//b", false)]
    #[case::a_slash_before("/a", false)]
    #[case::a_slash_behind("a/", false)]
    #[case::a_hidden_part("a/.b", false)]
    #[case::a_dot_behind("a./b", false)]
    #[case::a_lock("a.lock/b", false)]
    #[case::a_space("a b", false)]
    #[case::a_glob("a*", false)]
    #[case::a_reflog("a@{1}", false)]
    #[case::a_control("a\nb", false)]
    fn branches_are_those_of_git(#[case] name: &str, #[case] expected: bool) {
        assert_eq!(is_branch(name), expected);
    }

    #[test]
    fn ids_of_commits_are_written_in_full_and_in_small_letters() {
        assert!(is_sha(&"0a".repeat(20)));
        for wrong in [
            "",
            "0a",
            &"0A".repeat(20),
            &"0g".repeat(20),
            &"0a".repeat(21),
        ] {
            assert!(!is_sha(wrong), "{wrong}");
        }
    }
}
