//! The differences between two specs, for people who want to know who changed what.
//!
//! What comes in: two specs as JSON. What goes out: the fields that differ, with the value before and
//! after. Lists whose entries have names are compared by name: their order does not matter, and an
//! entry that is added does not change those after it.

use std::collections::BTreeMap;

use serde_json::Value;
use sluice_crds::audit::Difference;

/// The most characters of a value in a line.
const LETTERS: usize = 100;
/// The most differences in a line.
const TOLD: usize = 20;

/// The differences of `after` from `before`, in fields below `spec`.
pub fn between(before: &Value, after: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    compare("spec", Some(before), Some(after), &mut found);
    found
}

fn compare(
    field: &str,
    before: Option<&Value>,
    after: Option<&Value>,
    found: &mut Vec<Difference>,
) {
    if before == after {
        return;
    }
    match (before, after) {
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            let keys = before
                .keys()
                .chain(after.keys().filter(|key| !before.contains_key(*key)));
            for key in keys {
                let field = format!("{field}.{key}");
                compare(&field, before.get(key), after.get(key), found);
            }
        }
        (Some(Value::Array(before)), Some(Value::Array(after))) => {
            match (named(before), named(after)) {
                (Some(before), Some(after)) if before != after => {
                    let added = after.keys().filter(|name| !before.contains_key(*name));
                    for name in before.keys().chain(added) {
                        let field = format!("{field}[{name}]");
                        let (before, after) = (before.get(name), after.get(name));
                        compare(&field, before.copied(), after.copied(), found);
                    }
                }
                _ => found.push(difference(
                    field,
                    Some(&Value::Array(before.clone())),
                    Some(&Value::Array(after.clone())),
                )),
            }
        }
        _ => found.push(difference(field, before, after)),
    }
}

fn difference(field: &str, before: Option<&Value>, after: Option<&Value>) -> Difference {
    Difference {
        field: field.to_owned(),
        before: before.cloned(),
        after: after.cloned(),
    }
}

/// The entries of a list by name, if each has a different name.
fn named(list: &[Value]) -> Option<BTreeMap<String, &Value>> {
    let mut all = BTreeMap::new();
    for item in list {
        let name = item.get("name")?.as_str()?;
        let name = match item.get("namespace").and_then(Value::as_str) {
            Some(namespace) => format!("{namespace}/{name}"),
            None => name.to_owned(),
        };
        if all.insert(name, item).is_some() {
            return None;
        }
    }
    Some(all)
}

/// In one line: `spec.require: "all" → "oneOf"; spec.gatekeepers[fridays]: removed`. More people can
/// read this line than the specs. So only the beginning of a long value is shown, and of an address
/// neither its query nor its user.
pub fn in_words(differences: &[Difference]) -> String {
    let word = |difference: &Difference| {
        let Difference {
            field,
            before,
            after,
        } = difference;
        match (before, after) {
            (Some(before), Some(after)) => {
                format!("{field}: {} → {}", shown(before), shown(after))
            }
            (None, Some(after)) if is_name(after) => format!("{field}: added"),
            (None, Some(after)) => format!("{field}: added {}", shown(after)),
            (Some(_), None) => format!("{field}: removed"),
            (None, None) => field.clone(),
        }
    };
    let mut words: Vec<String> = differences.iter().take(TOLD).map(word).collect();
    let more = differences.len() - words.len();
    if more > 0 {
        words.push(format!("and {more} more"));
    }
    words.join("; ")
}

/// A value as it is written in a line.
fn shown(value: &Value) -> String {
    let text = discreet(value).to_string();
    match text.char_indices().nth(LETTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// A value without the parts of addresses that may be secrets.
fn discreet(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(address(text)),
        Value::Array(list) => list.iter().map(discreet).collect(),
        Value::Object(fields) => {
            let fields = fields.iter();
            fields
                .map(|(key, it)| (key.clone(), discreet(it)))
                .collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// A text up to the query of the first address in it: it is unknown where a query ends.
fn address(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else {
        return text.to_owned();
    };
    let (path, more) = match rest.find(['?', '#']) {
        Some(end) => (&rest[..end], "?…"),
        None => (rest, ""),
    };
    match path.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://…@{host}{more}"),
        None => format!("{scheme}://{path}{more}"),
    }
}

/// Whether a value says only what its field says already.
fn is_name(value: &Value) -> bool {
    let Value::Object(fields) = value else {
        return false;
    };
    fields.keys().all(|key| key == "name" || key == "namespace")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::nothing(json!({"a": [1]}), json!({"a": [1]}), "")]
    #[case::logic(
        json!({"require": "all", "window": "1h"}),
        json!({"require": "oneOf", "window": "1h"}),
        r#"spec.require: "all" → "oneOf""#
    )]
    #[case::gatekeepers_come_and_go(
        json!({"gatekeepers": [{"name": "hours"}, {"name": "fridays", "namespace": "shared"}]}),
        json!({"gatekeepers": [{"name": "approval"}, {"name": "hours"}]}),
        "spec.gatekeepers[shared/fridays]: removed; spec.gatekeepers[approval]: added"
    )]
    #[case::a_field_comes(json!({}), json!({"suspend": true}), "spec.suspend: added true")]
    #[case::another_kind(
        json!({"manual": {"state": "open"}}),
        json!({"schedule": {}}),
        "spec.manual: removed; spec.schedule: added"
    )]
    #[case::a_window_of_many(
        json!({"schedule": {"open": [{"name": "a", "cron": "0 9 * * *"}, {"name": "b"}]}}),
        json!({"schedule": {"open": [{"name": "a", "cron": "0 8 * * *"}, {"name": "b"}]}}),
        r#"spec.schedule.open[a].cron: "0 9 * * *" → "0 8 * * *""#
    )]
    #[case::a_list_without_names(
        json!({"allow": ["1.x"]}),
        json!({"allow": ["1.x", "2.x"]}),
        r#"spec.allow: ["1.x"] → ["1.x","2.x"]"#
    )]
    #[case::an_address(
        json!({"url": "https://a.example/x?token=secret"}),
        json!({"url": "https://me:secret@b.example/x#secret"}),
        r#"spec.url: "https://a.example/x?…" → "https://…@b.example/x?…""#
    )]
    #[case::addresses_within(
        json!({}),
        json!({"from": [{"url": "http://a?token=secret"}, {"url": "http://b/c"}]}),
        r#"spec.from: added [{"url":"http://a?…"},{"url":"http://b/c"}]"#
    )]
    fn fields_that_differ_are_named(
        #[case] before: Value,
        #[case] after: Value,
        #[case] words: &str,
    ) {
        assert_eq!(in_words(&between(&before, &after)), words);
    }

    #[test]
    fn a_line_stays_one_however_much_is_different() {
        let after = json!({"allow": vec!["ä"; 5_000]});
        let words = in_words(&between(&json!({"allow": []}), &after));
        assert!(
            words.starts_with(r#"spec.allow: [] → ["ä","ä","#),
            "{words}"
        );
        assert!(
            words.ends_with('…') && words.chars().count() < 130,
            "{words}"
        );
        let many = |state: &str| {
            let all = (0..5_000).map(|n| json!({"name": format!("g{n}"), "state": state}));
            json!({"all": all.collect::<Vec<_>>()})
        };
        let differences = between(&many("open"), &many("closed"));
        assert_eq!(differences.len(), 5_000);
        let words = in_words(&differences);
        assert!(words.ends_with("; and 4980 more"), "{words}");
    }
}
