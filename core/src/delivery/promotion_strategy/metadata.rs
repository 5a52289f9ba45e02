//! What a hydrator says of a commit, in a file or in a note.
//!
//! What comes in: JSON that others wrote, as the GitOps Promoter and Argo CD know it. What goes out: the dry
//! commit, and a few words about it that are safe to show. Fields are found whatever the case of their
//! letters; those that are not known are skipped. Nothing that it names is ever fetched.

use serde_json::{Map, Value};

use crate::text::names::is_sha;
use crate::text::words::clean;

/// The most characters of a subject and of an author.
const LONGEST: usize = 200;

/// What a hydrator says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// The dry commit.
    pub dry_sha: String,
    /// The first line of its message.
    pub subject: Option<String>,
    /// Who has made it.
    pub author: Option<String>,
}

/// Reads a file or a note.
///
/// # Errors
/// Why it says nothing, and what it should have.
pub fn read(text: &str) -> Result<Metadata, String> {
    let read: Result<Map<String, Value>, _> = serde_json::from_str(text);
    let fields = read.map_err(|why| format!("it is no JSON object ({why}); {REMEDY}"))?;
    let find = |name: &str| {
        let mut fields = fields.iter();
        let found = fields.find(|(key, _)| key.eq_ignore_ascii_case(name))?;
        found.1.as_str()
    };
    let sha = find("drySha").ok_or_else(|| format!("it has no `drySha`; {REMEDY}"))?;
    let dry_sha = sha.to_ascii_lowercase();
    if !is_sha(&dry_sha) {
        let shown = clean(sha, 60).escape_debug().to_string();
        return Err(format!("its `drySha` is `{shown}`; {REMEDY}"));
    }
    let words = |name: &str| {
        let found = find(name).and_then(|text| text.lines().next());
        let text = clean(found?, LONGEST);
        (!text.is_empty()).then_some(text)
    };
    Ok(Metadata {
        dry_sha,
        subject: words("subject"),
        author: words("author"),
    })
}

const REMEDY: &str = "write {\"drySha\": \"<the 40 digits of the dry commit>\"}";

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const SHA: &str = "c0ffee1a2b3c4d5e6f708192a3b4c5d6e7f80912";

    #[rstest]
    #[case::as_the_promoter_writes_it("drySha")]
    #[case::as_a_go_program_may("DrySHA")]
    #[case::small("drysha")]
    fn a_field_is_found_in_any_case(#[case] name: &str) {
        let upper = SHA.to_ascii_uppercase();
        let text = format!(r#"{{"repoURL": "https://evil.test", "{name}": "{upper}"}}"#);
        assert_eq!(read(&text).unwrap().dry_sha, SHA);
    }

    #[rstest]
    #[case::no_json("drySha: 1", "no JSON object")]
    #[case::a_list("[]", "no JSON object")]
    #[case::without("{}", "no `drySha`")]
    #[case::a_number(r#"{"drySha": 7}"#, "no `drySha`")]
    #[case::short(r#"{"drySha": "c0ffee"}"#, "`c0ffee`")]
    #[case::a_branch(r#"{"drySha": "refs/heads/main\u001b[31m"}"#, "`refs/heads/main [31m`")]
    fn what_names_no_commit_is_refused_with_a_remedy(#[case] text: &str, #[case] said: &str) {
        let why = read(text).unwrap_err();
        assert!(
            why.contains(said) && why.contains("write {\"drySha\""),
            "{why}"
        );
    }

    #[test]
    fn words_are_cut_and_cleaned() {
        let long = "x".repeat(300);
        let text = serde_json::json!({
            "drySha": SHA, "subject": format!("a\u{202e}b\u{7}\nmore"), "author": long,
        });
        let read = read(&text.to_string()).unwrap();
        assert_eq!(read.subject.as_deref(), Some("ab"));
        assert_eq!(read.author.unwrap().chars().count(), LONGEST);
    }
}
