//! What hydrators say of their commits.

use bolero::TypeGenerator;
use serde_json::Value;
use sluice_core::delivery::promotion_strategy::metadata::read;

use super::target::Target;

pub const TARGET: Target = Target {
    name: "metadata",
    words: &[
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\"",
        "\\",
        "\n",
        "\"drySha\": ",
        "\"DrySHA\": ",
        "\"drysha\": ",
        "\"subject\": ",
        "\"Author\": ",
        "\"repoURL\": \"https://evil.test\", ",
        "\"c0ffee1a2b3c4d5e6f708192a3b4c5d6e7f80912\"",
        "\"C0FFEE1A2B3C4D5E6F708192A3B4C5D6E7F80912\"",
        "c0ffee",
        "null",
        "7",
        "1e999",
        "@team",
        "`",
        "<script>",
        "\\n",
        "\\u0000",
        "\\u001b[31m",
        "\\u202e",
        "\u{202e}",
        "\u{7f}",
        "\\ud800",
        "\\u00e9",
        "é",
        "\u{a0}",
        "\u{feff}",
    ],
    texts: 15_000,
};

/// Nothing else is asked for.
#[derive(Debug, Default, TypeGenerator)]
pub struct Nothing;

/// The most characters of what is shown.
const LONGEST: usize = 200;

/// It names a commit that the text names, and its words can be shown anywhere.
pub fn holds(text: &str, _: &Nothing) -> bool {
    let said = match read(text) {
        Ok(said) => said,
        Err(why) => {
            assert!(!why.contains(char::is_control), "{why:?} of {text:?}");
            let remedy = "write {\"drySha\": \"<the 40 digits of the dry commit>\"}";
            assert!(why.ends_with(remedy), "{why:?} of {text:?}");
            return false;
        }
    };
    let is_digit = |c: char| matches!(c, '0'..='9' | 'a'..='f');
    assert!(said.dry_sha.chars().all(is_digit), "{said:?}");
    assert_eq!(said.dry_sha.len(), 40, "{said:?}");
    is_in(text, &said.dry_sha);
    for words in [&said.subject, &said.author].into_iter().flatten() {
        assert!((1..=LONGEST).contains(&words.chars().count()), "{words:?}");
        let is_wrong = |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}');
        assert!(!words.contains(is_wrong), "{words:?}");
    }
    // Written again, it says the same.
    let again = serde_json::json!({
        "DRYSHA": said.dry_sha.to_uppercase(), "subject": said.subject, "author": said.author,
    });
    assert_eq!(read(&again.to_string()), Ok(said), "{text:?}");
    true
}

/// Another reader of JSON finds the commit in a field of that name.
fn is_in(text: &str, sha: &str) {
    let fields: Value = serde_json::from_str(text).unwrap();
    let fields = fields.as_object().unwrap();
    let mut named = fields
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("drysha"));
    let found = named.any(|(_, value)| {
        value
            .as_str()
            .is_some_and(|it| it.eq_ignore_ascii_case(sha))
    });
    assert!(found, "{sha} is not in {text:?}");
}
