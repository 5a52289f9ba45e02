//! Gate policies: whom they concern, and what they report.
//!
//! What comes in: a policy, who wants to do what, and the labels of the namespace. What goes out:
//! whether the policy concerns it ([`Concern`]), and a [`Report`] for its status. What its gates
//! say of a change is for [`crate::gate::set`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use kube::core::{Expression, Selector, SelectorExt};
use sluice_crds::gate_policy::{LabelOperator, LabelRequirement, NamespaceSelector};
use sluice_crds::{GatePolicy, GatePolicySpec, GatePolicyStatus, GateReference, Subject};

use crate::gate::Named;
use crate::gatekeeper;
use crate::text::names::{is_label_value, is_qualified};
use crate::text::refusal::{Refusal, Refusals};
use crate::time::stamp::whole_second;
use crate::verdict::Reason;
use crate::verdict::condition::{self, READY, STALLED, Wanted, listed};
use crate::verdict::status::requested_at;

#[cfg(test)]
mod tests;

/// The most gates of a policy.
const MOST_GATES: usize = 32;
/// How many gates a message names.
const NAMED: usize = 8;

/// The labels of a namespace.
pub type Labels = BTreeMap<String, String>;

/// A policy. Err: this version cannot read it, and why.
pub type Readable = Result<Arc<GatePolicy>, Arc<str>>;

/// Whether a policy concerns a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Concern {
    /// It does not.
    No,
    /// Its gates have to be passed.
    Yes,
    /// It is not known, for this reason. Fail closed: its gates have to be passed all the same. If they
    /// are open it makes no difference.
    Unknown(String),
}

/// Whether a policy concerns what `subject` wants to do. `labels` are those of its namespace. None: they
/// are not known. They are asked for only where they matter.
pub fn concerns(
    spec: &GatePolicySpec,
    subject: &Subject,
    labels: impl FnOnce() -> Option<Labels>,
) -> Concern {
    let GatePolicySpec {
        namespace_selector,
        kinds,
        gates: _,
    } = spec;
    if !kinds.is_empty() && !kinds.contains(&subject.kind) {
        return Concern::No;
    }
    if namespace_selector.is_empty() {
        return Concern::Yes;
    }
    let selector = match selector(namespace_selector) {
        Ok(selector) => selector,
        Err(refusals) => return Concern::Unknown(format!("its selector is refused: {refusals}")),
    };
    match labels() {
        None => Concern::Unknown(format!(
            "the labels of the namespace {} are unknown",
            subject.namespace
        )),
        Some(labels) if selector.matches(&labels) => Concern::Yes,
        Some(_) => Concern::No,
    }
}

/// The selector that a spec describes.
fn selector(spec: &NamespaceSelector) -> Result<Selector, Refusals> {
    const FIELD: &str = "spec.namespaceSelector";
    let NamespaceSelector {
        match_labels,
        match_expressions,
    } = spec;
    let mut mistakes = Vec::new();
    let mut wrong = |field: String, problem: String, remedy: &str| {
        mistakes.push(Refusal::new(field, problem, remedy));
    };
    for (key, value) in match_labels {
        let field = format!("{FIELD}.matchLabels[{key}]");
        if !is_qualified(key) {
            let remedy = "write letters, digits, -, _ and ., perhaps after a domain and a /";
            wrong(field, "no label has such a name".to_owned(), remedy);
        } else if !is_label_value(value) {
            let remedy = "write at most 63 letters, digits, -, _ and .";
            wrong(field, format!("`{value}` is not a label"), remedy);
        }
    }
    for (place, requirement) in match_expressions.iter().enumerate() {
        let field = format!("{FIELD}.matchExpressions[{place}]");
        if !is_qualified(&requirement.key) {
            let remedy = "write letters, digits, -, _ and ., perhaps after a domain and a /";
            let field = format!("{field}.key");
            wrong(field, "no label has such a name".to_owned(), remedy);
        }
        if let Some((problem, remedy)) = wrong_values(requirement) {
            wrong(format!("{field}.values"), problem.to_owned(), remedy);
        }
    }
    let equal = |(key, value): (&String, &String)| Expression::Equal(key.clone(), value.clone());
    let labels = match_labels.iter().map(equal);
    let expressions = labels.chain(match_expressions.iter().map(expression));
    let selector = Selector::from_iter(expressions);
    Refusals::unless_empty(mistakes, selector)
}

fn wrong_values(requirement: &LabelRequirement) -> Option<(&'static str, &'static str)> {
    let values = &requirement.values;
    match requirement.operator {
        LabelOperator::In | LabelOperator::NotIn if values.is_empty() => Some((
            "they are missing, and In and NotIn need at least one",
            "write values, or the operator Exists or DoesNotExist",
        )),
        LabelOperator::Exists | LabelOperator::DoesNotExist if !values.is_empty() => Some((
            "they belong to In and NotIn",
            "remove them, or write In or NotIn",
        )),
        _ if !values.iter().all(|value| is_label_value(value)) => Some((
            "one of them is not a label",
            "write at most 63 letters, digits, -, _ and . each",
        )),
        _ => None,
    }
}

fn expression(requirement: &LabelRequirement) -> Expression {
    let key = requirement.key.clone();
    let values = || BTreeSet::from_iter(requirement.values.iter().cloned());
    match requirement.operator {
        LabelOperator::In => Expression::In(key, values()),
        LabelOperator::NotIn => Expression::NotIn(key, values()),
        LabelOperator::Exists => Expression::Exists(key),
        LabelOperator::DoesNotExist => Expression::DoesNotExist(key),
    }
}

/// Everything that is wrong with a spec, whether or not admission would have refused it.
///
/// # Errors
/// The mistakes.
pub fn check(spec: &GatePolicySpec) -> Result<(), Refusals> {
    let GatePolicySpec {
        namespace_selector,
        kinds: _,
        gates,
    } = spec;
    let mut mistakes = Vec::new();
    mistakes.extend(selector(namespace_selector).err().map(Refusals::into_vec));
    mistakes.extend(
        gatekeeper::gates::check(gates, "spec.gates")
            .err()
            .map(Refusals::into_vec),
    );
    let mut mistakes: Vec<Refusal> = mistakes.into_iter().flatten().collect();
    if gates.refs.len() > MOST_GATES {
        mistakes.push(Refusal::new(
            "spec.gates.refs",
            format!("{} gates are more than {MOST_GATES}", gates.refs.len()),
            "name fewer, or write a second GatePolicy",
        ));
    }
    for (place, reference) in gates.refs.iter().enumerate() {
        if reference.namespace.is_none() {
            mistakes.push(Refusal::new(
                format!("spec.gates.refs[{place}].namespace"),
                "it is missing, and a GatePolicy has no namespace of its own",
                "write the namespace of the gate",
            ));
        }
    }
    Refusals::unless_empty(mistakes, ())
}

/// What a policy's status should say.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The status.
    pub status: GatePolicyStatus,
    /// Whether it differs from what the object says.
    pub changed: bool,
}

/// What the status of a policy should say at `now`. `gate` looks for a gate that it names.
pub fn report(
    policy: &GatePolicy,
    gate: impl Fn(&GateReference) -> Named<()>,
    now: Timestamp,
) -> Report {
    let before = policy.status.clone().unwrap_or_default();
    let generation = policy.metadata.generation;
    let status = GatePolicyStatus {
        observed_generation: generation,
        last_handled_reconcile_at: requested_at(&policy.metadata)
            .or_else(|| before.last_handled_reconcile_at.clone()),
        conditions: condition::settle(
            conditions(&policy.spec, gate),
            &before.conditions,
            generation,
            whole_second(now),
        ),
    };
    Report {
        changed: status != before,
        status,
    }
}

fn conditions(spec: &GatePolicySpec, gate: impl Fn(&GateReference) -> Named<()>) -> Vec<Wanted> {
    if let Err(refusals) = check(spec) {
        let reason = Reason::InvalidSpec.as_str();
        let message = format!("the spec is refused: {refusals}");
        return vec![
            Wanted::new(READY, false, reason, &message),
            Wanted::new(STALLED, true, reason, message),
        ];
    }
    let (mut missing, mut unreadable) = (Vec::new(), Vec::new());
    for reference in &spec.gates.refs {
        match gate(reference) {
            Named::Here(()) => {}
            Named::Missing | Named::Forbidden => missing.push(called(reference)),
            Named::Unreadable(_) => unreadable.push(called(reference)),
        }
    }
    let trouble = [
        ("GateMissing", "there is no gate", missing),
        (
            "GateUnreadable",
            "this version cannot read the gate",
            unreadable,
        ),
    ];
    let mut trouble = trouble.iter().filter(|(_, _, gates)| !gates.is_empty());
    let Some((reason, _, _)) = trouble.clone().next() else {
        let message = "every gate that it names is there";
        return vec![Wanted::new(READY, true, "GatesFound", message)];
    };
    let said: Vec<String> = trouble
        .by_ref()
        .map(|(_, problem, gates)| format!("{problem} {}", listed(gates, NAMED)))
        .collect();
    let message = format!("{}, which counts as closed", said.join(", and "));
    vec![Wanted::new(READY, false, *reason, message)]
}

/// A gate that a policy names, as `namespace/name`.
fn called(reference: &GateReference) -> String {
    let namespace = reference.namespace.as_deref().unwrap_or_default();
    format!("{namespace}/{}", reference.name)
}
