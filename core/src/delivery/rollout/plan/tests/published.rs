//! Plans as KubeVela has published them: they are taken as they are.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{check, rollout};

/// A plan, and where KubeVela has it: the table says more.
#[derive(Deserialize)]
struct Published {
    file: String,
    at: String,
    #[serde(default)]
    alone: bool,
    plan: Value,
}

/// Nothing is wrong with them, and nothing of them is lost: a field that is not known would vanish.
#[test]
fn published_plans_are_taken_as_they_are() {
    let table: Vec<Published> = serde_saphyr::from_str(include_str!("published.yaml")).unwrap();
    for Published {
        file,
        at,
        alone,
        plan,
    } in table
    {
        let other = if alone {
            json!({"sourceRef": null})
        } else {
            json!({})
        };
        let mut object = rollout(&other);
        object.spec.rollout_plan = serde_json::from_value(plan.clone()).unwrap();
        assert_eq!(check(&object).err(), None, "{file} at {at}: {plan}");
        let read = serde_json::to_value(&object.spec.rollout_plan).unwrap();
        assert!(has(&read, &plan), "{file} at {at}: {plan}, read as {read}");
    }
}

/// Whether all that was written is in what was read, where defaults are added and `false` is left out.
fn has(read: &Value, written: &Value) -> bool {
    match (read, written) {
        (Value::Object(read), Value::Object(written)) => written
            .iter()
            .all(|(field, value)| has(read.get(field).unwrap_or(&Value::Bool(false)), value)),
        (Value::Array(read), Value::Array(written)) => {
            let mut both = read.iter().zip(written);
            read.len() == written.len() && both.all(|(read, written)| has(read, written))
        }
        _ => read == written,
    }
}
