//! Commits as people write them: in all their digits, or in the first ones.

use std::fmt;

use anyhow::{Result, bail};

/// The fewest digits that name a commit.
const FEWEST: usize = 7;
/// All digits of a commit.
const ALL: usize = 40;
/// How many digits are shown.
const SHOWN: usize = 12;

/// A commit, or the first digits of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Commit(String);

/// Reads a commit.
pub(crate) fn commit(text: &str) -> Result<Commit, String> {
    let digits = text.to_ascii_lowercase();
    let is_right = (FEWEST..=ALL).contains(&digits.len())
        && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    match is_right {
        true => Ok(Commit(digits)),
        false => Err(format!(
            "write the id of a commit, in {FEWEST} to {ALL} hexadecimal digits"
        )),
    }
}

impl fmt::Display for Commit {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.0)
    }
}

impl Commit {
    /// As it is shown.
    pub(crate) fn short(sha: &str) -> &str {
        sha.get(..SHOWN).unwrap_or(sha)
    }

    /// Whether it is, or may be, this one.
    pub(crate) fn is(&self, sha: &str) -> bool {
        sha.starts_with(&self.0)
    }

    /// All its digits, if they are given.
    pub(crate) fn whole(&self) -> Option<&str> {
        (self.0.len() == ALL).then_some(self.0.as_str())
    }

    /// The only one of these that it may be. None: it is none of them.
    ///
    /// # Errors
    /// It may be several.
    pub(crate) fn among<'k>(
        &self,
        known: impl IntoIterator<Item = &'k str>,
    ) -> Result<Option<&'k str>> {
        let mut found: Vec<&str> = known.into_iter().filter(|sha| self.is(sha)).collect();
        found.sort_unstable();
        found.dedup();
        match found.as_slice() {
            [] => Ok(None),
            [one] => Ok(Some(one)),
            several => bail!("{self} may be {}; write more digits", several.join(" or ")),
        }
    }

    /// All its digits, which are found among what is known if they are not given.
    ///
    /// # Errors
    /// They cannot be found.
    pub(crate) fn completed<'k>(&self, known: impl IntoIterator<Item = &'k str>) -> Result<String> {
        if let Some(whole) = self.whole() {
            return Ok(whole.to_owned());
        }
        match self.among(known)? {
            Some(sha) => Ok(sha.to_owned()),
            None => bail!("no environment has {self}, or proposes it; write all {ALL} digits"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_digits_are_enough_where_they_are_unique() {
        let (a, b) = ("c0ffee1".repeat(6), "c0ffee2".repeat(6));
        let known = [&a[..ALL], &b[..ALL], &a[..ALL]];
        let named = |text: &str| commit(text).unwrap();
        assert_eq!(named("C0FFEE1c").among(known).unwrap(), Some(known[0]));
        assert_eq!(named("c0ffee3").among(known).unwrap(), None);
        assert_eq!(named(known[1]).completed([]).unwrap(), known[1]);
        let error = named("c0ffee3").completed(known).unwrap_err().to_string();
        assert!(error.contains("write all 40 digits"), "{error}");
        let (c, d) = ("1234567a", "1234567b");
        let error = named("1234567").among([c, d]).unwrap_err().to_string();
        assert!(error.contains("may be 1234567a or 1234567b"), "{error}");
    }

    #[test]
    fn what_names_no_commit_is_refused() {
        for text in ["", "c0ffee", "latest1", &"a".repeat(41)] {
            assert!(commit(text).is_err(), "{text}");
        }
    }
}
