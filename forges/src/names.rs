//! Names as Git has them: commits, branches, files.
//!
//! What comes in: texts of users and of forges. What goes out: names that can be written into an address
//! and mean there what they say. No other room is used.

use std::fmt;

/// The most bytes of a branch's name: what a file system and every forge takes.
const LONGEST_BRANCH: usize = 244;
/// The most bytes of a file's path.
const LONGEST_PATH: usize = 1_024;

/// The id of a commit or of another object, in full.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Deserialize)]
#[serde(try_from = "String")]
pub struct Sha(String);

/// The name of a branch, without `refs/heads/`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Branch(String);

/// The path of a file in a repository, without a `/` in front.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FilePath(String);

/// A text that is no such name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// It is no name of a branch.
    #[error(
        "`{}` is no name of a branch; write one that `git check-ref-format --branch` accepts, of at most {LONGEST_BRANCH} bytes",
        .0.escape_debug()
    )]
    Branch(String),
    /// It is no path of a file.
    #[error(
        "`{}` is no path of a file; write it from the top of the repository, as in apps/prod.yaml",
        .0.escape_debug()
    )]
    File(String),
}

impl Sha {
    /// 40 hexadecimal digits, or 64 in a repository of SHA-256.
    pub fn parse(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let whole = matches!(text.len(), 40 | 64) && text.bytes().all(is_digit);
        whole.then(|| Self(text.to_owned()))
    }

    /// The id whose bytes these are.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let digit = |half: u8| char::from_digit(u32::from(half), 16).unwrap_or_default();
        let digits = bytes
            .iter()
            .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]);
        Self(digits.collect())
    }

    /// Whether it is one of SHA-1.
    pub(crate) fn is_sha1(&self) -> bool {
        self.0.len() == 40
    }

    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Sha {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text).ok_or("it is no id of a commit")
    }
}

impl Branch {
    /// A name as `git check-ref-format --branch` accepts it.
    ///
    /// # Errors
    /// It does not.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let forbidden = |c: char| {
            c.is_control() || c == ' ' || matches!(c, '~' | '^' | ':' | '?' | '*' | '[' | '\\')
        };
        let is_part =
            |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock");
        let right = text.len() <= LONGEST_BRANCH
            && text.split('/').all(is_part)
            && !text.contains(forbidden)
            && !text.contains("..")
            && !text.contains("@{")
            && !text.ends_with('.')
            && !text.starts_with('-')
            && text != "@";
        match right {
            true => Ok(Self(text.to_owned())),
            false => Err(NameError::Branch(text.to_owned())),
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name in full: `refs/heads/…`.
    pub fn reference(&self) -> String {
        format!("refs/heads/{}", self.0)
    }
}

impl FilePath {
    /// A path from the top of the repository.
    ///
    /// # Errors
    /// It begins or ends with a `/`, leads out of the repository or into `.git`, or has characters that no
    /// text shows.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        let is_part =
            |part: &str| !matches!(part, "" | "." | "..") && !part.eq_ignore_ascii_case(".git");
        let right = text.len() <= LONGEST_PATH
            && text.split('/').all(is_part)
            && !text.contains(|c: char| c.is_control() || c == '\\');
        match right {
            true => Ok(Self(text.to_owned())),
            false => Err(NameError::File(text.to_owned())),
        }
    }

    /// The path.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Sha {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Branch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("main", true)]
    #[case("env/prod-next", true)]
    #[case("sluice/3f9a1c2b7d4e/77aa", true)]
    #[case("grün", true)]
    #[case("", false)]
    #[case("..", false)]
    #[case("a/../b", false)]
    #[case("a//b", false)]
    #[case("/a", false)]
    #[case("a/", false)]
    #[case("a.lock", false)]
    #[case(".a", false)]
    #[case("-a", false)]
    #[case("@", false)]
    #[case("a@{1}", false)]
    #[case("a b", false)]
    #[case("a:b", false)]
    #[case("a\nb", false)]
    fn branches_are_what_git_takes(#[case] text: &str, #[case] right: bool) {
        assert_eq!(Branch::parse(text).is_ok(), right);
    }

    #[test]
    fn a_branch_has_an_end() {
        assert!(Branch::parse(&"a".repeat(244)).is_ok());
        let why = Branch::parse(&"a".repeat(245)).unwrap_err();
        assert!(why.to_string().ends_with("of at most 244 bytes"), "{why}");
    }

    #[rstest]
    #[case("apps/prod.yaml", true)]
    #[case("a b/ü.yaml", true)]
    #[case(".github/x.yaml", true)]
    #[case("", false)]
    #[case("/a", false)]
    #[case("a/", false)]
    #[case("a/../b", false)]
    #[case("./a", false)]
    #[case(".git/config", false)]
    #[case("a/.GIT/config", false)]
    #[case("a\u{0}", false)]
    fn files_stay_in_the_repository(#[case] text: &str, #[case] right: bool) {
        assert_eq!(FilePath::parse(text).is_ok(), right);
    }

    #[rstest]
    #[case(&"a".repeat(40), true)]
    #[case(&"0".repeat(64), true)]
    #[case(&"a".repeat(39), false)]
    #[case(&"A".repeat(40), false)]
    #[case(&"g".repeat(40), false)]
    fn a_commit_is_named_in_full(#[case] text: &str, #[case] right: bool) {
        assert_eq!(Sha::parse(text).is_some(), right);
    }
}
