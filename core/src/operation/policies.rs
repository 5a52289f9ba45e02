//! The admission policies that this version ships, and whether those of a cluster check the same.
//!
//! What comes in: a policy and its binding, as they are installed. What goes out: whether they are in
//! force. The name of a policy proves nothing: somebody may have removed a rule or the binding, or the
//! policy may be from an earlier version. So everything that is installed is compared, except for the
//! lists of user names that the chart fills in.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
    ValidatingAdmissionPolicyBindingSpec, ValidatingAdmissionPolicySpec,
};
use kube::ResourceExt;
use semver::Version;
use serde::Deserialize;
use serde_json::Value;

#[cfg(test)]
mod tests;

/// The policies that verify the author of a force, of an approval and of a revert, and let only the
/// controller write statuses. Each has a binding of the same name.
pub const IDENTITY: [&str; 4] = [
    "sluice-approvals",
    "sluice-gate-overrides",
    "sluice-revert-commits",
    "sluice-status-writers",
];

/// The policies that keep everybody else from children of GatedSources and from their names, and say
/// who may let something go out without its gates, pause a Pipeline or write a PullRequest. No identity
/// depends on them.
pub const CHILDREN: [&str; 5] = [
    "sluice-child-names",
    "sluice-children",
    "sluice-gated-sources",
    "sluice-pipelines",
    "sluice-pull-requests",
];

/// The specs by the names of the policies. `cargo xtask generate` reads them from the chart.
const SHIPPED: &str = include_str!("policies/shipped.json");

/// The variable that the chart fills in with the user names of the controllers.
const CONTROLLERS: &str = "controllers";

/// The variables that the chart fills in with lists of user names.
const FILLED_IN: [&str; 3] = [CONTROLLERS, "extraStatusWriters", "fluxControllers"];

/// The condition that excludes the controllers. The chart fills in their user names.
const LEAVES_OUT: &str = "not-the-controllers";

/// The label in which the chart writes the version of a policy.
const VERSION: &str = "app.kubernetes.io/version";

/// The action that refuses.
const DENY: &str = "Deny";

/// Whether a policy is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stands {
    /// It refuses everything that it should refuse.
    InForce,
    /// It does not exist, or refuses nothing. The words follow its name in a message.
    Missing(&'static str),
    /// It exists, and differs from what this version ships: where.
    Drifted(String),
}

/// A policy and its binding as this version ships them.
#[derive(Clone, Debug, Deserialize)]
pub struct Shipped {
    /// What is checked.
    pub policy: ValidatingAdmissionPolicySpec,
    /// Where, and with what.
    pub binding: ValidatingAdmissionPolicyBindingSpec,
}

/// Whether the policy of a name is in force.
pub fn stands(
    name: &str,
    policy: Option<&ValidatingAdmissionPolicy>,
    binding: Option<&ValidatingAdmissionPolicyBinding>,
) -> Stands {
    let Some(policy) = policy else {
        return Stands::Missing("is not there");
    };
    let Some(binding) = binding else {
        return Stands::Missing("is bound to nothing");
    };
    if let Some(why) = lets_pass(binding, name) {
        return Stands::Missing(why);
    }
    match drift(policy).or_else(|| drift_of_binding(name, binding)) {
        Some(place) => Stands::Drifted(place),
        None => Stands::InForce,
    }
}

/// The user names that count as the controller in a policy. None: it has none, or they are not written
/// as plain names.
pub fn controllers(policy: &ValidatingAdmissionPolicy) -> Option<Vec<String>> {
    let spec = policy.spec.as_ref()?;
    let mut variables = spec.variables.iter().flatten();
    let mut conditions = spec.match_conditions.iter().flatten();
    match variables.find(|variable| variable.name == CONTROLLERS) {
        Some(variable) => names(&variable.expression),
        None => {
            let condition = conditions.find(|condition| condition.name == LEAVES_OUT)?;
            left_out(&condition.expression)
        }
    }
}

/// All that is shipped, by the names of the policies.
pub fn shipped() -> &'static BTreeMap<String, Shipped> {
    static PARSED: OnceLock<BTreeMap<String, Shipped>> = OnceLock::new();
    PARSED.get_or_init(|| serde_json::from_str(SHIPPED).unwrap_or_default())
}

/// Why, with this binding, the policy refuses nothing, or does not refuse everywhere. This is the same
/// for every version.
fn lets_pass(binding: &ValidatingAdmissionPolicyBinding, policy: &str) -> Option<&'static str> {
    let spec = &binding.spec;
    let denies = spec.validation_actions.iter().any(|action| action == DENY);
    match (denies, &spec.match_resources) {
        _ if spec.policy_name != policy => Some("is bound by another policy's binding"),
        (false, _) => Some("refuses nothing (validationActions)"),
        (true, Some(_)) => Some("is bound to a part of the cluster (matchResources)"),
        (true, None) => None,
    }
}

/// Where a policy differs from the one that this version ships. None: nowhere, or it is of a later
/// version, which may differ. During an upgrade, the policies are installed first, and forces must
/// still count then.
fn drift(policy: &ValidatingAdmissionPolicy) -> Option<String> {
    let Some(shipped) = shipped().get(&policy.name_any()) else {
        return Some("this version has none of that name".to_owned());
    };
    let installed = policy.spec.as_ref().map(normal).unwrap_or_default();
    let difference = difference("spec", &installed, &normal(&shipped.policy))?;
    (!is_later(policy)).then_some(difference)
}

/// The same for its binding: if its parameters select nothing, nothing is checked.
fn drift_of_binding(name: &str, binding: &ValidatingAdmissionPolicyBinding) -> Option<String> {
    let shipped = normal_binding(&shipped().get(name)?.binding);
    let installed = normal_binding(&binding.spec);
    let difference = difference("spec", &installed, &shipped)?;
    (!is_later(binding)).then(|| format!("of its binding, {difference}"))
}

/// Whether the chart that installed it is of a later version than this one.
fn is_later(object: &impl ResourceExt) -> bool {
    let version = object.labels().get(VERSION);
    let version = version.and_then(|version| Version::parse(version).ok());
    let own = Version::parse(env!("CARGO_PKG_VERSION")).ok();
    version.zip(own).is_some_and(|(version, own)| version > own)
}

/// A spec without what the API server adds and without what the chart fills in.
fn normal(spec: &ValidatingAdmissionPolicySpec) -> Value {
    let mut spec = spec.clone();
    spec.failure_policy = spec.failure_policy.filter(|policy| policy != "Fail");
    if let Some(matched) = &mut spec.match_constraints {
        matched.match_policy = matched.match_policy.take().filter(|it| it != "Equivalent");
        let chooses = |it: &_| *it != Default::default();
        matched.namespace_selector = matched.namespace_selector.take().filter(chooses);
        matched.object_selector = matched.object_selector.take().filter(chooses);
        for rule in matched.resource_rules.iter_mut().flatten() {
            rule.scope = rule.scope.take().filter(|scope| scope != "*");
        }
    }
    for variable in spec.variables.iter_mut().flatten() {
        if FILLED_IN.contains(&variable.name.as_str()) && names(&variable.expression).is_some() {
            variable.expression.clear();
        }
    }
    for condition in spec.match_conditions.iter_mut().flatten() {
        if condition.name == LEAVES_OUT && left_out(&condition.expression).is_some() {
            condition.expression.clear();
        }
    }
    serde_json::to_value(spec).unwrap_or_default()
}

/// The spec of a binding. What is refused may be reported as well.
fn normal_binding(spec: &ValidatingAdmissionPolicyBindingSpec) -> Value {
    let mut spec = spec.clone();
    if spec.validation_actions.iter().any(|action| action == DENY) {
        spec.validation_actions.retain(|action| action == DENY);
    }
    serde_json::to_value(spec).unwrap_or_default()
}

/// The users that an expression excludes with a list. None: the expression does something else, or
/// more.
fn left_out(expression: &str) -> Option<Vec<String>> {
    let list = expression.strip_prefix("!(request.userInfo.username in ")?;
    names(list.strip_suffix(')')?)
}

/// The texts of a list that computes nothing: `[request.userInfo.username]` would be a list with every
/// user. The files quote with `'`, the chart with `"`, and neither with both. If one was read as the
/// other, the characters between two texts would become part of a text.
fn names(expression: &str) -> Option<Vec<String>> {
    let list = |text: &str| serde_json::from_str(text).ok();
    list(expression).or_else(|| match expression.contains('"') {
        true => None,
        false => list(&expression.replace('\'', "\"")),
    })
}

/// The first place in which two values differ.
fn difference(path: &str, installed: &Value, shipped: &Value) -> Option<String> {
    match (installed, shipped) {
        (Value::Object(one), Value::Object(other)) => {
            let mut fields = other.keys().chain(one.keys());
            fields.find_map(|field| {
                let path = format!("{path}.{field}");
                let of = |fields: &serde_json::Map<String, Value>| {
                    fields.get(field).cloned().unwrap_or_default()
                };
                difference(&path, &of(one), &of(other))
            })
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            let mut items = one.iter().zip(other).enumerate();
            items.find_map(|(place, (one, other))| {
                difference(&format!("{path}[{place}]"), one, other)
            })
        }
        _ => (installed != shipped).then(|| format!("{path} is another")),
    }
}
