//! One object, at one instant: whether it is as it should be.

use std::collections::BTreeMap;

use kube::core::SelectorExt as _;
use serde_json::Value;

use super::{Part, Test, Which};
use crate::evidence::expression::Allowance;
use crate::revision::Revision;
use crate::text::words;

/// How many characters of what others wrote a message repeats.
const REPEATED: usize = 64;
/// How many conditions a message names.
const CONDITIONS_NAMED: usize = 5;

/// What was made of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// What is wrong with it. None: it is as it should be.
    pub why: Option<String>,
    /// The revision that it is at. None: that is not asked, or something is wrong with it.
    pub revision: Option<Revision>,
    /// What would be another if it had been otherwise in between. None: that cannot be known.
    pub(super) mark: Option<String>,
}

impl Part {
    /// Whether an object of its kind and namespace, with this name and these labels, is one of its
    /// objects.
    pub fn selects(&self, name: &str, labels: &BTreeMap<String, String>) -> bool {
        match &self.which {
            Which::Named(named) => named == name,
            Which::Selected(selector) => selector.matches(labels),
        }
    }

    /// Whether an object is as it should be, and at which revision.
    pub fn judge(&self, object: Value) -> Judged {
        let found = self.revision_of(&object);
        match found.and_then(|revision| Ok((revision, self.test(object)?))) {
            Ok((revision, mark)) => Judged {
                why: None,
                mark: mark.map(|mark| match &revision {
                    Some(revision) => format!("{mark} {revision}"),
                    None => mark,
                }),
                revision,
            },
            Err(why) => Judged {
                why: Some(why),
                revision: None,
                mark: None,
            },
        }
    }

    /// The revision that an object is at. None: that is not asked.
    fn revision_of(&self, object: &Value) -> Result<Option<Revision>, String> {
        let Some(expression) = &self.revision else {
            return Ok(None);
        };
        let inputs = [("object", object.clone())];
        let text = expression.text_of(&inputs, &Allowance::default());
        let text = text.map_err(|error| format!("its revision cannot be read: {error}"))?;
        let revision = Revision::parse(&text);
        let revision = revision.map_err(|mistake| format!("its revision is none: {mistake}"))?;
        Ok(Some(revision))
    }

    fn test(&self, object: Value) -> Result<Option<String>, String> {
        if !object["metadata"]["deletionTimestamp"].is_null() {
            return Err("it is being deleted".to_owned());
        }
        match &self.test {
            Test::Condition { type_, status } => has_condition(&object, type_, status),
            Test::Expression(expression) => {
                is_at_generation(&object, &object["status"], "status")?;
                match expression.evaluate(&[("object", object)]) {
                    Ok(true) => Ok(None),
                    Ok(false) => Err("the expression is false".to_owned()),
                    Err(error) => Err(format!("the expression cannot be evaluated: {error}")),
                }
            }
        }
    }
}

/// The mark of an object that has a condition, at its present generation.
fn has_condition(object: &Value, type_: &str, status: &str) -> Result<Option<String>, String> {
    let conditions = object["status"]["conditions"].as_array();
    let conditions = conditions.map(Vec::as_slice).unwrap_or_default();
    let found = conditions.iter().find(|known| known["type"] == type_);
    let condition = found.ok_or_else(|| without(conditions, type_))?;
    let name = format!("condition {type_}");
    if condition["status"] != status {
        let is = repeated(&condition["status"]).unwrap_or_else(|| "nothing".to_owned());
        let reason = repeated(&condition["reason"])
            .map(|reason| format!(" ({reason})"))
            .unwrap_or_default();
        return Err(format!("its {name} is {is}{reason}, not {status}"));
    }
    let observed = match condition["observedGeneration"].is_null() {
        true => &object["status"],
        false => condition,
    };
    is_at_generation(object, observed, &name)?;
    Ok(mark(object, condition))
}

/// Whether what was observed, if it says so, was observed at the object's generation.
fn is_at_generation(object: &Value, observed: &Value, name: &str) -> Result<(), String> {
    let generation = object["metadata"]["generation"].as_i64();
    let observed = observed["observedGeneration"].as_i64();
    match (generation, observed) {
        (Some(generation), Some(observed)) if generation != observed => Err(format!(
            "its {name} is about generation {observed}, and it is at {generation}"
        )),
        _ => Ok(()),
    }
}

fn without(conditions: &[Value], type_: &str) -> String {
    let named = conditions
        .iter()
        .filter_map(|known| repeated(&known["type"]));
    let named: Vec<_> = named.take(CONDITIONS_NAMED).collect();
    if named.is_empty() {
        return format!(
            "it has no condition {type_}; if objects of its kind have no conditions, write an \
             `expression`"
        );
    }
    format!("it has no condition {type_}; it has {}", named.join(", "))
}

/// Which object it is, its generation, and since when it has its condition: as long as these are
/// the same, it was as it should be all the time.
fn mark(object: &Value, condition: &Value) -> Option<String> {
    let since = condition["lastTransitionTime"].as_str()?;
    let metadata = &object["metadata"];
    let uid = metadata["uid"].as_str()?;
    Some(format!("{uid} {} {since}", metadata["generation"]))
}

/// The labels of an object.
pub(super) fn labels(object: &Value) -> BTreeMap<String, String> {
    let labels = object["metadata"]["labels"].as_object();
    let label = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
    labels.into_iter().flatten().filter_map(label).collect()
}

/// What others wrote, as a message repeats it.
fn repeated(text: &Value) -> Option<String> {
    let text = words::clean(text.as_str()?, REPEATED);
    (!text.is_empty()).then_some(text)
}
