//! Whether the members of a pair take pods from each other.

use serde_json::Value;

use super::{Member, Why};

/// Two workloads of which one selects the pods of the other.
pub(super) fn overlapping(members: &[Member<'_>]) -> Option<Why> {
    members.iter().find_map(|(name, workload)| {
        let selector = workload.object.pointer("/spec/selector")?;
        let others = members.iter().filter(|(other, _)| other != name);
        let mut others = others.filter(|(_, other)| {
            let labels = other.object.pointer("/spec/template/metadata/labels");
            labels.is_some_and(|labels| selects(selector, labels))
        });
        let (other, _) = others.next()?;
        Some(Why::by(
            "SelectorsOverlap",
            name.to_string(),
            format!(
                "the selector of {name} selects the pods of {other}, too; give each one a label of its own, such as version"
            ),
        ))
    })
}

fn selects(selector: &Value, labels: &Value) -> bool {
    let wanted = selector.get("matchLabels").and_then(Value::as_object);
    let mut wanted = wanted.into_iter().flatten();
    let expressions = selector.get("matchExpressions").and_then(Value::as_array);
    let mut expressions = expressions.into_iter().flatten();
    wanted.all(|(label, value)| labels.get(label) == Some(value))
        && expressions.all(|expression| holds(expression, labels))
}

/// Whether an expression holds. One that is not known might.
fn holds(expression: &Value, labels: &Value) -> bool {
    let key = expression["key"].as_str().unwrap_or_default();
    let label = labels.get(key);
    let values = expression["values"].as_array();
    let among = || {
        let mut values = values.into_iter().flatten();
        values.any(|value| Some(value) == label)
    };
    match expression["operator"].as_str() {
        Some("In") => among(),
        Some("NotIn") => !among(),
        Some("Exists") => label.is_some(),
        Some("DoesNotExist") => label.is_none(),
        Some(_) | None => true,
    }
}
