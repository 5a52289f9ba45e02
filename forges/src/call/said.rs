//! What a reply without success says: why, and how long to wait.

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822;
use serde_json::Value;
use sluice_egress::Reply;

use crate::outcome::Wait;

/// Until when a reply says that the limit lasts, if it says that one is reached.
pub(super) fn wait(reply: &Reply) -> Option<Wait> {
    let after = reply.header("retry-after").map(|text| match text.parse() {
        Ok(seconds) => Wait::For(Duration::from_secs(seconds)),
        Err(_) => match rfc2822::parse(text) {
            Ok(instant) => Wait::Until(instant.timestamp()),
            Err(_) => Wait::Unsaid,
        },
    });
    let reset = |remaining, reset| match number(reply, remaining) {
        Some(0) => {
            let instant = number(reply, reset).and_then(|at| Timestamp::from_second(at).ok());
            Some(instant.map_or(Wait::Unsaid, Wait::Until))
        }
        Some(_) | None => None,
    };
    let secondary = || {
        let words = said(&reply.body)?.to_lowercase();
        words.contains("rate limit").then_some(Wait::Unsaid)
    };
    after
        .or_else(|| reset("x-ratelimit-remaining", "x-ratelimit-reset"))
        .or_else(|| reset("ratelimit-remaining", "ratelimit-reset"))
        .or_else(secondary)
}

/// The number in a header.
pub(super) fn number(reply: &Reply, name: &str) -> Option<i64> {
    reply.header(name)?.parse().ok()
}

/// What the body of a reply says: `message` (Gitea, GitHub, GitLab) with `errors[].message` (GitHub),
/// `error` (GitLab), or `errors[].message` with `errors[].vetoes[].summaryMessage` (Bitbucket). A message of
/// GitLab may be a list.
pub(crate) fn said(body: &[u8]) -> Option<String> {
    let value: Value = serde_json::from_slice(body).ok()?;
    let items = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut said = vec![value["message"].clone(), value["error"].clone()];
    for error in items(&value["errors"]) {
        let vetoes = items(&error["vetoes"]);
        said.push(match error {
            Value::String(_) => error,
            error => error["message"].clone(),
        });
        said.extend(vetoes.iter().map(|veto| veto["summaryMessage"].clone()));
    }
    let text = |value: Value| match value {
        Value::String(text) => Some(text),
        Value::Array(_) | Value::Object(_) => Some(value.to_string()),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    };
    let said: Vec<_> = said.into_iter().filter_map(text).collect();
    let said = said.join(": ");
    (!said.trim().is_empty()).then_some(said)
}

/// Whether the body of a reply says these words.
pub(crate) fn says(body: &[u8], words: &str) -> bool {
    said(body).is_some_and(|said| said.contains(words))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(r#"{"message": "no"}"#, Some("no"))]
    #[case(
        r#"{"message": "Validation Failed", "errors": [{"message": "it exists"}, {"code": "x"}]}"#,
        Some("Validation Failed: it exists")
    )]
    #[case(r#"{"message": ["one", "two"]}"#, Some(r#"["one","two"]"#))]
    #[case(r#"{"message": "no", "errors": ["why"]}"#, Some("no: why"))]
    #[case(r#"{"error": "insufficient_scope"}"#, Some("insufficient_scope"))]
    #[case(
        r#"{"errors": [{"context": null, "message": "vetoed", "exceptionName": "x"}]}"#,
        Some("vetoed")
    )]
    #[case(r#"{"message": ""}"#, None)]
    #[case("[1]", None)]
    #[case("<html>", None)]
    #[case("", None)]
    fn forges_say_why_in_several_ways(#[case] body: &str, #[case] expected: Option<&str>) {
        assert_eq!(said(body.as_bytes()).as_deref(), expected);
    }
}
