//! How a revision is written as a scalar of YAML.
//!
//! Readers of YAML do not agree on what is a text: to some `on` is true, `010` is eight, `12:30` is 750 and
//! `2026-11-20` is a date. What any of them may take for something else is put in quotes.

use granit_parser::ScalarStyle;
use semver::Version;

/// What is no text without quotes, in lower case.
const WORDS: [&str; 11] = [
    "y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf",
];

/// A text and the style in which it is written: the one that is asked for, or double quotes where that does
/// not do.
pub(super) fn written(text: &str, style: ScalarStyle) -> (ScalarStyle, String) {
    match style {
        ScalarStyle::Plain if is_text(text) => (style, text.to_owned()),
        ScalarStyle::SingleQuoted if !text.contains(needs_escape) => {
            (style, format!("'{}'", text.replace('\'', "''")))
        }
        _ => (ScalarStyle::DoubleQuoted, in_double_quotes(text)),
    }
}

fn in_double_quotes(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if needs_escape(c) => quoted.push_str(&format!("\\U{:08x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// What cannot be seen, or may not stand in YAML.
fn needs_escape(c: char) -> bool {
    !(c.is_ascii_graphic() || c.is_alphanumeric())
}

/// Whether it is a text without quotes, to every reader and everywhere in YAML.
fn is_text(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._/@:+-".contains(c);
    if !text.chars().all(is_plain) || text.ends_with(':') {
        return false;
    }
    match text.chars().next() {
        Some(c) if c.is_ascii_alphabetic() => !WORDS.contains(&text.to_ascii_lowercase().as_str()),
        Some(c) if c.is_ascii_digit() => !may_be_a_number(text),
        _ => false,
    }
}

/// Whether what begins with a digit may be a number or a date. Three numbers with dots between them are
/// neither.
fn may_be_a_number(text: &str) -> bool {
    let of_numbers = |c: char| c.is_ascii_digit() || "._:+-eEtTzZ".contains(c);
    let has_radix = text.starts_with('0') && text.contains(['x', 'X', 'o', 'O', 'b', 'B']);
    Version::parse(text).is_err() && (has_radix || text.chars().all(of_numbers))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::version("6.1.0", true)]
    #[case::build("6.7.1+3", true)]
    #[case::candidate("1.10.0-rc.1", true)]
    #[case::with_a_v("v1.10", true)]
    #[case::branch("main@sha1:4f2a9c1e0b7d8a6f5e4d3c2b1a09f8e7d6c5b4a3", true)]
    #[case::path("feature/a", true)]
    #[case::commit("4f2a9c1e0b7d8a6f5e4d3c2b1a09f8e7d6c5b4a3", true)]
    #[case::commit_of_digits("4020901000708060504030201009080706050403", false)]
    #[case::commit_that_is_a_float("402090100070806e504030201009080706050403", false)]
    #[case::float("1.10", false)]
    #[case::integer("12", false)]
    #[case::octal("010", false)]
    #[case::hexadecimal("0x1", false)]
    #[case::new_octal("0o17", false)]
    #[case::binary("0b11", false)]
    #[case::underscores("1_000", false)]
    #[case::exponent("1e3", false)]
    #[case::of_sixty("12:30:45", false)]
    #[case::date("2026-11-20", false)]
    #[case::instant("2026-11-20T12:00:00Z", false)]
    #[case::four_parts("1.2.3.4", false)]
    #[case::truth("true", false)]
    #[case::old_truth("oN", false)]
    #[case::nothing("null", false)]
    #[case::not_a_number("NaN", false)]
    #[case::like_a_word("nightly", true)]
    #[case::sign("-1", false)]
    #[case::dot(".5", false)]
    #[case::tilde("~", false)]
    #[case::anchor("&a", false)]
    #[case::comment("a#b", false)]
    #[case::colon("a:", false)]
    #[case::flow("a,b", false)]
    #[case::quote("a\"b", false)]
    #[case::not_ascii("grün", false)]
    fn only_texts_stay_plain(#[case] text: &str, #[case] plain: bool) {
        let (style, written) = written(text, ScalarStyle::Plain);
        assert_eq!(style == ScalarStyle::Plain, plain, "{written}");
        assert_eq!(written == text, plain, "{written}");
    }

    #[rstest]
    #[case::plain("it's", ScalarStyle::Plain, "\"it's\"")]
    #[case::single("it's", ScalarStyle::SingleQuoted, "'it''s'")]
    #[case::single_with_a_backslash("a\\b", ScalarStyle::SingleQuoted, "'a\\b'")]
    #[case::double("a\"\\b", ScalarStyle::DoubleQuoted, "\"a\\\"\\\\b\"")]
    #[case::letters("grün", ScalarStyle::DoubleQuoted, "\"grün\"")]
    #[case::turned("a\u{202e}b", ScalarStyle::SingleQuoted, "\"a\\U0000202eb\"")]
    fn quotes_are_kept(#[case] text: &str, #[case] style: ScalarStyle, #[case] expected: &str) {
        assert_eq!(written(text, style).1, expected);
    }
}
