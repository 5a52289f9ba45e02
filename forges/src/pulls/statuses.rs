//! Commit statuses, as all forges have them.

use super::plain;

/// The most characters of a status's name, of its description, and of its address.
const LONGEST_TEXT: usize = 255;
const LONGEST_URL: usize = 1_024;

/// What a commit status says.
#[derive(Clone, Copy, Debug)]
pub struct Status<'a> {
    /// What it is about: the name under which rules for branches require it.
    pub context: &'a str,
    /// What came of it.
    pub state: StatusState,
    /// Why, for people. What is longer than the forge takes is cut.
    pub description: &'a str,
    /// Where people see more: an https address. Bitbucket requires one.
    pub url: &'a str,
}

/// The state of a commit status: the last is the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "they are what forges show")]
pub enum StatusState {
    Success,
    Pending,
    Failure,
}

/// A commit status as it was seen. Anyone who may push may set one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenStatus {
    /// What it is about.
    pub context: String,
    /// What came of it. A state that forges do not document is pending.
    pub state: StatusState,
    /// Why, for people.
    pub description: String,
    /// Where people see more, if that is an address that may be shown.
    pub url: Option<String>,
}

/// What a forge says of a status.
pub(crate) struct Said {
    pub(crate) context: String,
    pub(crate) state: StatusState,
    pub(crate) description: Option<String>,
    pub(crate) url: Option<String>,
}

impl Said {
    /// As it may be shown.
    fn seen(self) -> SeenStatus {
        SeenStatus {
            context: plain(&self.context, LONGEST_TEXT),
            state: self.state,
            description: plain(&self.description.unwrap_or_default(), LONGEST_TEXT),
            url: self.url.filter(|url| may_be_shown(url)),
        }
    }
}

fn may_be_shown(url: &str) -> bool {
    let rest = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"));
    let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next());
    url.len() <= LONGEST_URL
        && url.bytes().all(|byte| byte.is_ascii_graphic())
        && host.is_some_and(|host| !host.is_empty() && !host.contains('@'))
}

/// One status for each name: of several, as of two programs that take the same name, the worst.
pub(crate) fn worst(said: Vec<Said>) -> Vec<SeenStatus> {
    let mut seen: Vec<_> = said.into_iter().map(Said::seen).collect();
    seen.sort_by(|a, b| (&a.context, b.state).cmp(&(&b.context, a.state)));
    seen.dedup_by(|next, before| next.context == before.context);
    seen
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn of_one_name_the_worst_counts() {
        use StatusState::{Failure, Pending, Success};
        let said = |context: &str, state| Said {
            context: context.to_owned(),
            state,
            description: None,
            url: None,
        };
        let all = vec![
            said("b", Success),
            said("a", Pending),
            said("b", Failure),
            said("c", Success),
            said("a", Success),
            said("b", Pending),
        ];
        let seen = worst(all);
        let seen: Vec<_> = seen
            .iter()
            .map(|it| (it.context.as_str(), it.state))
            .collect();
        assert_eq!(seen, [("a", Pending), ("b", Failure), ("c", Success)]);
    }

    #[rstest]
    #[case("https://ci.example.com/1?a=b#c", true)]
    #[case("http://ci.example.com", true)]
    #[case("https://ci@example.com/", false)]
    #[case("javascript:alert(1)", false)]
    #[case("https://a b", false)]
    #[case("https:///x", false)]
    #[case("", false)]
    fn only_plain_addresses_are_shown(#[case] url: &str, #[case] expected: bool) {
        let said = Said {
            context: "a\n".to_owned(),
            state: StatusState::Success,
            description: Some("x".repeat(300)),
            url: Some(url.to_owned()),
        };
        let seen = said.seen();
        assert_eq!(seen.url.is_some(), expected);
        assert_eq!(
            (seen.context.as_str(), seen.description.chars().count()),
            ("a\\n", 255)
        );
    }
}
