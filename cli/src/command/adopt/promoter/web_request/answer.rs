//! Which answer is a success, as statuses and an expression in CEL.
//!
//! The language of the other expressions (`expr`) is another one. Where both are written alike, names are
//! replaced; what that makes of anything else is no CEL, and is refused when the gatekeeper is read.

use serde_json::Value;

use super::INSTEAD;

/// What is said while no answer has come: that what was said before stays. Gatekeepers over http do so anyway.
const KEPT: [(&str, &str); 4] = [
    ("Response != nil ? ", " : Phase == \"success\""),
    ("Response == nil ? Phase == \"success\" : ", ""),
    ("Response != nil && ", ""),
    ("", ""),
];

/// The statuses that are expected, and what has to be true of the body.
///
/// # Errors
/// It cannot be written so.
pub(super) fn of(when: &Value) -> Result<(Vec<i64>, Option<String>), String> {
    let text = when["expression"].as_str().unwrap_or_default();
    if !when["variables"].is_null() {
        return Err(format!(
            "its expression uses variables of its own, which there are not. {INSTEAD}"
        ));
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let one_line = words.join(" ").replace('\'', "\"");
    let judged = KEPT.iter().find_map(|(begin, end)| {
        let rest = one_line.strip_prefix(begin)?;
        rest.strip_suffix(end)
    });
    let judged = without_brackets(judged.unwrap_or_default());
    let judged = judged
        .replace("Response.StatusCode", "status")
        .replace("Response.Body", "body");
    let unknown = [
        "Response",
        "Phase",
        "Branch",
        "PromotionStrategy",
        "nil",
        "Output",
    ];
    if let Some(name) = unknown.iter().find(|name| judged.contains(*name)) {
        return Err(format!(
            "its expression asks for `{name}`, and a gatekeeper over http knows the status and the body alone. \
             {INSTEAD}"
        ));
    }
    Ok(divided(&judged))
}

/// The statuses, and the rest, where all of it has to be true.
fn divided(judged: &str) -> (Vec<i64>, Option<String>) {
    if judged.contains("||") || judged.contains('?') {
        // Of which statuses it speaks is not known: the expression is asked about each that it names.
        return (named(judged), Some(judged.to_owned()));
    }
    let parts: Vec<&str> = judged.split("&&").map(str::trim).collect();
    let (of_status, rest): (Vec<&str>, Vec<&str>) =
        parts.into_iter().partition(|part| status(part).is_some());
    let statuses: Vec<i64> = of_status.iter().filter_map(|part| status(part)).collect();
    let rest = (!rest.is_empty()).then(|| rest.join(" && "));
    match statuses.is_empty() {
        true => (named(judged), rest),
        false => (statuses, rest),
    }
}

/// The number of `status == 200`.
fn status(part: &str) -> Option<i64> {
    part.strip_prefix("status == ")?.parse().ok()
}

/// All statuses that an expression names, or the usual one.
fn named(judged: &str) -> Vec<i64> {
    let after = judged.split("status == ").skip(1);
    let digits = after.map(|it| it.split(|c: char| !c.is_ascii_digit()).next());
    let mut all: Vec<i64> = digits.filter_map(|it| it?.parse().ok()).collect();
    all.dedup();
    match all.is_empty() {
        true => vec![200],
        false => all,
    }
}

/// Without brackets around all of it.
fn without_brackets(text: &str) -> &str {
    let inner = text.strip_prefix('(').and_then(|it| it.strip_suffix(')'));
    let Some(inner) = inner else {
        return text;
    };
    let mut depth = 0_i32;
    for c in inner.chars() {
        depth += match c {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        if depth < 0 {
            return text;
        }
    }
    inner
}
