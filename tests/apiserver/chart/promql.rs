//! What a query asks for: enough of PromQL to find its series and their labels. Whether it is
//! PromQL at all is for `promtool` to say.

use std::collections::BTreeSet;

/// Series that a query asks for.
#[derive(Debug, PartialEq, Eq)]
pub struct Selector {
    /// The metric, with the suffix of a histogram's part.
    pub metric: String,
    /// The labels that it is selected by.
    pub labels: BTreeSet<String>,
}

/// Words that are followed by labels in parentheses.
const GROUPING: [&str; 6] = [
    "by",
    "without",
    "on",
    "ignoring",
    "group_left",
    "group_right",
];

/// Words that stand between series, or before [`GROUPING`].
const WORDS: [&str; 11] = [
    "and", "or", "unless", "bool", "offset", "sum", "min", "max", "avg", "count", "group",
];

/// Every selector of a query, in its order.
pub fn selectors(query: &str) -> Vec<Selector> {
    let mut found = Vec::new();
    let mut rest = query;
    while let Some(first) = rest.chars().next() {
        let word = prefix(rest, |c| c.is_ascii_alphanumeric() || "_:".contains(c));
        let after = rest[word.len()..].trim_start();
        rest = match first {
            '"' => skip_string(rest),
            '[' => skip_to(rest, ']'),
            _ if word.is_empty() => &rest[first.len_utf8()..],
            _ if GROUPING.contains(&word) && after.starts_with('(') => skip_to(after, ')'),
            _ if first.is_ascii_digit() || after.starts_with('(') => after,
            _ if WORDS.contains(&word) || GROUPING.contains(&word) => after,
            _ => {
                let (labels, after) = labels(after);
                let metric = word.to_owned();
                found.push(Selector { metric, labels });
                after
            }
        };
    }
    found
}

/// The labels between braces, if `text` begins with any, and what comes after them.
fn labels(text: &str) -> (BTreeSet<String>, &str) {
    let mut labels = BTreeSet::new();
    let Some(mut rest) = text.strip_prefix('{') else {
        return (labels, text);
    };
    while let Some(first) = rest.chars().next() {
        let word = prefix(rest, |c| c.is_ascii_alphanumeric() || c == '_');
        rest = match first {
            '}' => return (labels, &rest[1..]),
            '"' => skip_string(rest),
            _ if word.is_empty() => &rest[first.len_utf8()..],
            _ => {
                labels.insert(word.to_owned());
                &rest[word.len()..]
            }
        };
    }
    (labels, rest)
}

fn prefix(text: &str, of: impl Fn(char) -> bool) -> &str {
    let end = text.find(|c| !of(c)).unwrap_or(text.len());
    &text[..end]
}

fn skip_string(text: &str) -> &str {
    let mut escaped = false;
    let end = text[1..].find(|c| {
        let ends = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    });
    end.map_or("", |end| &text[end + 2..])
}

fn skip_to(text: &str, end: char) -> &str {
    text.find(end).map_or("", |at| &text[at + 1..])
}

#[test]
fn a_query_is_taken_apart() {
    let query = r#"histogram_quantile(0.99, sum by (le, kind) (rate(delay_bucket{kind=~"a\"}|b", le!="x"}[5m])))
        unless on (name) time() - max by(name) (since) > 1e3 and on () min(up{}) == bool 0 offset 5m"#;
    let found = selectors(query);
    let found: Vec<_> = found
        .iter()
        .map(|Selector { metric, labels }| {
            (
                metric.as_str(),
                labels.iter().map(String::as_str).collect::<Vec<_>>(),
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            ("delay_bucket", vec!["kind", "le"]),
            ("since", vec![]),
            ("up", vec![]),
        ]
    );
}
