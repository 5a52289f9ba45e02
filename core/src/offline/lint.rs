//! What admission or the controller would refuse, found without either.
//!
//! What comes in: an object as it was written, as a JSON value. What goes out: the object, and
//! every mistake in it with its field and the remedy. The schema is that of the
//! CustomResourceDefinitions; their rules (CEL) are not run but have a counterpart each in
//! [`crate::gate::check`], [`crate::gatekeeper::check`], [`crate::gate::policy::check`], and `check` of each
//! kind in [`crate::delivery`], which a test makes sure of.

use std::sync::LazyLock;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sluice_crds::{
    Approval, CommitStatus, GROUP, Gate, GatePolicy, GatedSource, Gatekeeper, GitRepositoryAccess,
    Pipeline, PromotionStrategy, RevertCommit, Rollout,
};

use crate::delivery::promotion_strategy::LONGEST_NAME;
use crate::delivery::{
    commit_status, gated_source, git_repository_access, pipeline, promotion_strategy,
    revert_commit, rollout,
};
use crate::revision::{self, Revision};
use crate::text::names::{LABEL_LENGTH, NAME_LENGTH};
use crate::text::refusal::{Refusal, Refusals};
use crate::{gate, gatekeeper};

mod annotations;
mod force;
mod group;
pub(crate) mod metadata;
mod pipelines;
mod promotion;
mod remark;
mod rollouts;
mod schema;
mod world;

pub use group::OURS;
pub use remark::{Remark, Subject};
pub use world::{calendar, refusals, remarks};

/// The version of the API that this is.
const VERSION: &str = "v1alpha1";

/// The value of `kind`.
const KINDS: &str = "write Gate, Gatekeeper, Approval, GatePolicy, GatedSource, Pipeline, \
                     GitRepositoryAccess, PromotionStrategy, CommitStatus, RevertCommit or Rollout";

/// An object that is of interest here.
#[derive(Clone, Debug)]
pub enum Object {
    /// A Gate.
    Gate(Box<Gate>),
    /// A Gatekeeper.
    Gatekeeper(Box<Gatekeeper>),
    /// An Approval.
    Approval(Box<Approval>),
    /// A GatePolicy.
    GatePolicy(Box<GatePolicy>),
    /// A GatedSource.
    GatedSource(Box<GatedSource>),
    /// A Pipeline.
    Pipeline(Box<Pipeline>),
    /// A GitRepositoryAccess.
    GitRepositoryAccess(Box<GitRepositoryAccess>),
    /// A PromotionStrategy.
    PromotionStrategy(Box<PromotionStrategy>),
    /// A CommitStatus.
    CommitStatus(Box<CommitStatus>),
    /// A RevertCommit.
    RevertCommit(Box<RevertCommit>),
    /// A Rollout.
    Rollout(Box<Rollout>),
    /// A Namespace: perhaps selected by a policy.
    Namespace(Box<Namespace>),
    /// A ConfigMap: perhaps the calendar of a gatekeeper, or its list.
    ConfigMap(Box<ConfigMap>),
    /// Anything else: skipped.
    Other,
}

/// An object as it was read.
#[derive(Clone, Debug)]
pub struct Read {
    /// The object. None: it could not be made out.
    pub object: Option<Object>,
    /// What is wrong with it.
    pub mistakes: Vec<Refusal>,
}

impl Read {
    fn refused(mistake: Refusal) -> Self {
        Self {
            object: None,
            mistakes: vec![mistake],
        }
    }
}

/// The objects of a list, if it is one: a `List`, or one of a kind such as `GateList`.
pub fn items(value: &Value) -> Option<&Vec<Value>> {
    let is_list = value.get("kind")?.as_str()?.ends_with("List");
    value.get("items").filter(|_| is_list)?.as_array()
}

/// Reads one object.
pub fn read(value: &Value) -> Read {
    let (group_version, kind) = match (text(value, "apiVersion"), text(value, "kind")) {
        (Ok(group_version), Ok(kind)) => (group_version, kind),
        (version, kind) => {
            let mistakes = [version.err(), kind.err()].into_iter().flatten().collect();
            return Read {
                object: None,
                mistakes,
            };
        }
    };
    let (group, version) = group_version.split_once('/').unwrap_or(("", group_version));
    match (group, version, kind) {
        (GROUP, VERSION, "Gate") => object(&SCHEMAS.gate, value, gate, Object::Gate),
        (GROUP, VERSION, "Gatekeeper") => {
            let check = |it: &Gatekeeper| mistakes_in(gatekeeper::check(&it.spec));
            object(&SCHEMAS.gatekeeper, value, check, Object::Gatekeeper)
        }
        (GROUP, VERSION, "Approval") => {
            object(&SCHEMAS.approval, value, approval, Object::Approval)
        }
        (GROUP, VERSION, "GatePolicy") => {
            let check = |it: &GatePolicy| mistakes_in(gate::policy::check(&it.spec));
            object(&SCHEMAS.gate_policy, value, check, Object::GatePolicy)
        }
        (GROUP, VERSION, "GatedSource") => {
            let check = |it: &GatedSource| mistakes_in(gated_source::check(it));
            object(&SCHEMAS.gated_source, value, check, Object::GatedSource)
        }
        (GROUP, VERSION, "Pipeline") => {
            let check = |it: &Pipeline| mistakes_in(pipeline::check(it));
            object(&SCHEMAS.pipeline, value, check, Object::Pipeline)
        }
        (GROUP, VERSION, "GitRepositoryAccess") => {
            let check = |it: &GitRepositoryAccess| mistakes_in(git_repository_access::check(it));
            let known = &SCHEMAS.git_repository_access;
            object(known, value, check, Object::GitRepositoryAccess)
        }
        (GROUP, VERSION, "PromotionStrategy") => {
            let check = |it: &PromotionStrategy| mistakes_in(promotion_strategy::check(it));
            let known = &SCHEMAS.promotion_strategy;
            object(known, value, check, Object::PromotionStrategy)
        }
        (GROUP, VERSION, "CommitStatus") => {
            let check = |it: &CommitStatus| mistakes_in(commit_status::check(it));
            object(&SCHEMAS.commit_status, value, check, Object::CommitStatus)
        }
        (GROUP, VERSION, "RevertCommit") => {
            let check = |it: &RevertCommit| mistakes_in(revert_commit::check(it));
            object(&SCHEMAS.revert_commit, value, check, Object::RevertCommit)
        }
        (GROUP, VERSION, "Rollout") => {
            let check = |it: &Rollout| mistakes_in(rollout::check(it));
            object(&SCHEMAS.rollout, value, check, Object::Rollout)
        }
        (GROUP, VERSION, other) => Read::refused(Refusal::new(
            "kind",
            format!("{GROUP}/{VERSION} has no kind `{other}`"),
            KINDS,
        )),
        (GROUP, other, _) => Read::refused(Refusal::new(
            "apiVersion",
            format!("{GROUP} has no version `{other}`"),
            format!("write {GROUP}/{VERSION}"),
        )),
        ("", "v1", "ConfigMap") => object(
            &SCHEMAS.config_map,
            value,
            |_| Vec::new(),
            Object::ConfigMap,
        ),
        ("", "v1", "Namespace") => {
            object(&SCHEMAS.namespace, value, |_| Vec::new(), Object::Namespace)
        }
        _ => match group::check(group, kind, value) {
            mistakes if mistakes.is_empty() => Read {
                object: Some(Object::Other),
                mistakes,
            },
            mistakes => Read {
                object: None,
                mistakes,
            },
        },
    }
}

fn text<'a>(value: &'a Value, field: &str) -> Result<&'a str, Refusal> {
    let remedy = match field {
        "kind" => KINDS.to_owned(),
        _ => format!("write {GROUP}/{VERSION}"),
    };
    match value.get(field) {
        Some(Value::String(text)) if !text.is_empty() => Ok(text),
        None | Some(Value::Null) => Err(Refusal::new(field, "it is missing", remedy)),
        Some(_) => Err(Refusal::new(field, "it is not text", remedy)),
    }
}

/// What is known of the objects of a kind.
struct Known {
    schema: JSONSchemaProps,
    /// The most characters of a name.
    longest_name: usize,
}

struct Schemas {
    gate: Known,
    gatekeeper: Known,
    approval: Known,
    gate_policy: Known,
    gated_source: Known,
    pipeline: Known,
    git_repository_access: Known,
    promotion_strategy: Known,
    commit_status: Known,
    revert_commit: Known,
    rollout: Known,
    namespace: Known,
    config_map: Known,
}

static SCHEMAS: LazyLock<Schemas> = LazyLock::new(|| {
    let known = |schema, longest_name| Known {
        schema,
        longest_name,
    };
    Schemas {
        gate: known(schema::of::<Gate>(), LABEL_LENGTH),
        gatekeeper: known(schema::of::<Gatekeeper>(), LABEL_LENGTH),
        approval: known(schema::of::<Approval>(), NAME_LENGTH),
        gate_policy: known(schema::of::<GatePolicy>(), LABEL_LENGTH),
        gated_source: known(schema::of::<GatedSource>(), LABEL_LENGTH),
        pipeline: known(schema::of::<Pipeline>(), LABEL_LENGTH),
        git_repository_access: known(schema::of::<GitRepositoryAccess>(), LABEL_LENGTH),
        promotion_strategy: known(schema::of::<PromotionStrategy>(), LONGEST_NAME),
        commit_status: known(schema::of::<CommitStatus>(), LABEL_LENGTH),
        revert_commit: known(schema::of::<RevertCommit>(), LABEL_LENGTH),
        rollout: known(schema::of::<Rollout>(), LABEL_LENGTH),
        namespace: known(schema::of_namespaces(), LABEL_LENGTH),
        config_map: known(schema::of_config_maps(), NAME_LENGTH),
    }
});

fn gate(gate: &Gate) -> Vec<Refusal> {
    match gate::check(gate) {
        Ok(_) => force::check(gate),
        Err(refusals) => refusals.into_vec(),
    }
}

fn approval(approval: &Approval) -> Vec<Refusal> {
    let spec = &approval.spec;
    let why = Revision::parse(&spec.revision).err();
    let remedy = "write the revision in full, as the source reports it";
    let refuse = |why: revision::Mistake| Refusal::new("spec.revision", why.to_string(), remedy);
    let about = match (&spec.gatekeeper_ref, &spec.pipeline_ref) {
        (Some(_), None) | (None, Some(_)) => None,
        (None, None) => Some("nothing is named that it is about"),
        (Some(_), Some(_)) => Some("a gatekeeper and a promotion are named, and it is one vote"),
    };
    let remedy = "write exactly one of gatekeeperRef and pipelineRef";
    let about = about.map(|problem| Refusal::new("spec.gatekeeperRef", problem, remedy));
    about.into_iter().chain(why.map(refuse)).collect()
}

fn mistakes_in<T>(checked: Result<T, Refusals>) -> Vec<Refusal> {
    checked.err().map(Refusals::into_vec).unwrap_or_default()
}

/// Reads an object of one kind: first by its schema, and then, if that can be read, by what `check` knows
/// of its meaning.
fn object<T: DeserializeOwned>(
    known: &Known,
    value: &Value,
    check: impl FnOnce(&T) -> Vec<Refusal>,
    object: impl FnOnce(Box<T>) -> Object,
) -> Read {
    let mut mistakes = metadata::check(value, known.longest_name);
    let (read, unreadable) = typed(&known.schema, value, &mut mistakes);
    if let Some(read) = &read {
        add(&mut mistakes, check(read), &unreadable);
    }
    // Without what cannot be read it is another object.
    let whole = read.filter(|_| unreadable.is_empty());
    Read {
        object: whole.map(|read| object(Box::new(read))),
        mistakes,
    }
}

/// What the decisions say is wrong, instead of what the schema says of the same field: they know better
/// what was meant. They know nothing about a field that cannot be read, and about the fields around it.
fn add(mistakes: &mut Vec<Refusal>, mut known: Vec<Refusal>, unreadable: &[String]) {
    let is_around = |field: &str, path: &str| {
        let rest = path.strip_prefix(field);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    known.retain(|refusal| {
        let field = refusal.field.as_str();
        !unreadable.iter().any(|path| is_around(field, path))
    });
    mistakes.retain(|mistake| !known.iter().any(|known| known.field == mistake.field));
    mistakes.extend(known);
}

/// The object, if what its fields hold is of the right types, without those that hold something else:
/// their paths.
fn typed<T: DeserializeOwned>(
    schema: &JSONSchemaProps,
    value: &Value,
    mistakes: &mut Vec<Refusal>,
) -> (Option<T>, Vec<String>) {
    let mut value = value.clone();
    let Value::Object(fields) = &mut value else {
        return (None, Vec::new());
    };
    // Written by the controller alone. Of a Pipeline it is a cause of decisions: what it has admitted.
    let status = fields.remove("status");
    let unreadable = schema::check(schema, &mut value, mistakes);
    metadata::keep_what_matters(&mut value);
    if let Some(status) = status.filter(|_| value["kind"] == "Pipeline") {
        value["status"] = status;
    }
    let object = serde_json::from_value(value).map_err(|error| {
        if mistakes.is_empty() {
            let remedy = "see the reference of this kind";
            mistakes.push(Refusal::new("", error.to_string(), remedy));
        }
    });
    (object.ok(), unreadable)
}

#[cfg(test)]
mod tests;
