//! Merge patches (RFC 7396): what makes one document another.

use serde_json::{Map, Value};

/// The merge patch that turns `is` into `wanted`. None: they are equal. A null in `wanted` means that the
/// field is absent.
pub(super) fn between(is: &Map<String, Value>, wanted: &Map<String, Value>) -> Option<Value> {
    let mut patch = Map::new();
    for (name, wanted) in wanted {
        let change = match (is.get(name).filter(|is| !is.is_null()), wanted) {
            (None, Value::Null) => None,
            (Some(Value::Object(is)), Value::Object(wanted)) => between(is, wanted),
            (Some(is), wanted) if is == wanted => None,
            // An object is merged into what is there, so that what it replaces has to be none.
            (_, wanted) => Some(wanted.clone()),
        };
        patch.extend(change.map(|change| (name.clone(), change)));
    }
    let gone = is
        .iter()
        .filter(|(name, value)| !value.is_null() && !wanted.contains_key(*name));
    patch.extend(gone.map(|(name, _)| (name.clone(), Value::Null)));
    (!patch.is_empty()).then_some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(object) => object,
            _ => unreachable!("tests write objects"),
        }
    }

    /// As the API server does it (RFC 7396, section 2).
    fn apply(target: Value, patch: &Value) -> Value {
        let Value::Object(patch) = patch else {
            return patch.clone();
        };
        let mut target = match target {
            Value::Object(target) => target,
            _ => Map::new(),
        };
        for (name, value) in patch {
            if value.is_null() {
                target.remove(name);
            } else {
                let before = target.remove(name).unwrap_or_default();
                target.insert(name.clone(), apply(before, value));
            }
        }
        Value::Object(target)
    }

    #[rstest]
    #[case::the_same(json!({"a": 1}), json!({"a": 1}), None)]
    #[case::more(json!({"a": 1}), json!({"a": 1, "b": {"c": 2}}), Some(json!({"b": {"c": 2}})))]
    #[case::less(json!({"a": {"b": 1, "c": 2}}), json!({"a": {"c": 2}}), Some(json!({"a": {"b": null}})))]
    #[case::lists_are_whole(json!({"a": [1, 2]}), json!({"a": [1]}), Some(json!({"a": [1]})))]
    #[case::another_kind(json!({"a": 1}), json!({"a": {"b": 1}}), Some(json!({"a": {"b": 1}})))]
    #[case::nulls_are_nothing(json!({"a": null}), json!({"b": null}), None)]
    fn only_the_difference_is_written(
        #[case] is: Value,
        #[case] wanted: Value,
        #[case] patch: Option<Value>,
    ) {
        assert_eq!(between(&object(is), &object(wanted)), patch);
    }

    fn document() -> impl Strategy<Value = Map<String, Value>> {
        let leaf = prop_oneof![
            (0u8..3).prop_map(|n| json!(n)),
            (0u8..3).prop_map(|n| json!([n])),
        ];
        let value = leaf.prop_recursive(3, 12, 3, |inner| {
            prop::collection::btree_map("[a-c]", inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect()))
        });
        prop::collection::btree_map("[a-c]", value, 0..3).prop_map(|map| map.into_iter().collect())
    }

    proptest! {
        #[test]
        fn whatever_it_was_becomes_what_is_wanted(is in document(), wanted in document()) {
            let patch = between(&is, &wanted);
            prop_assert_eq!(patch.is_none(), is == wanted);
            let patched = apply(Value::Object(is), &patch.unwrap_or_else(|| json!({})));
            prop_assert_eq!(patched, Value::Object(wanted));
        }
    }
}
