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
