//! What the owner of a PullRequest says of it: whether it is wanted, and whether it may be merged.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use sluice_crds::pipeline::{MergeGate, Order};
use sluice_crds::{Pipeline, PromotionStrategy, PullRequest};

use super::Joining;
use crate::delivery::pipeline as pipelines;
use crate::delivery::promotion_strategy::{self as strategies, child};

mod pipeline;
mod strategy;

/// The most characters of a description of a commit status.
const LONGEST: usize = 140;

/// What the commit status of a strategy is called, where nobody knows better.
const USUAL_CONTEXT: &str = "sluice/promotion";

/// An object that PullRequests are made for.
#[derive(Clone, Copy, Debug)]
pub enum Owner<'a> {
    /// A Pipeline.
    Pipeline(&'a Pipeline),
    /// A PromotionStrategy.
    Strategy(&'a PromotionStrategy),
}

impl<'a> From<&'a Pipeline> for Owner<'a> {
    fn from(owner: &'a Pipeline) -> Self {
        Self::Pipeline(owner)
    }
}

impl<'a> From<&'a PromotionStrategy> for Owner<'a> {
    fn from(owner: &'a PromotionStrategy) -> Self {
        Self::Strategy(owner)
    }
}

/// What its owner says of a PullRequest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Says {
    /// What its commit status has to be.
    pub gate: MergeGate,
    /// Why, for people.
    pub why: String,
    /// The order to merge it.
    pub order: Option<Order>,
    /// The order to join the history of the target branch to its branch.
    pub join: Option<Joining>,
    /// The commit that was made for it, as its owner remembers it.
    pub commit: Option<String>,
    /// The commit of its branch that all this is about. None: our commit.
    pub head: Option<String>,
    /// What its commit status is called.
    pub context: String,
    /// The label that holds it back.
    pub hold_label: Option<String>,
}

/// What an owner says of one of its PullRequests, as far as that PullRequest depends on it.
#[derive(Clone, Debug, PartialEq)]
pub struct Words {
    of: String,
    gate: Option<MergeGate>,
    order: Option<Order>,
    join: Option<Joining>,
    why: Option<String>,
}

impl Says {
    /// What an owner says of a PullRequest. None: nothing, so that nothing is done for it but what its own spec
    /// asks for.
    pub fn of<'a>(object: &PullRequest, owner: impl Into<Owner<'a>>) -> Option<Self> {
        match owner.into() {
            Owner::Pipeline(owner) => pipeline::says(object, owner),
            Owner::Strategy(owner) => strategy::says(object, owner),
        }
    }
}

/// What an owner says of all its PullRequests: if it says something else, they are looked at.
pub fn words<'a>(owner: impl Into<Owner<'a>>) -> Vec<Words> {
    match owner.into() {
        Owner::Pipeline(owner) => pipeline::words(owner),
        Owner::Strategy(owner) => strategy::words(owner),
    }
}

/// Whether a PullRequest is what its owner makes for what it names. Another one was made by somebody else, and
/// stands for nothing.
pub(super) fn is_whole(object: &PullRequest) -> bool {
    match object.spec.about.kind.as_str() {
        pipelines::KIND => pipelines::is_whole(object),
        strategies::KIND => child::is_whole(object),
        _ => false,
    }
}

/// What its commit status is called, as far as that is known without its owner.
pub(super) fn context(object: &PullRequest) -> String {
    match object.spec.about.kind == pipelines::KIND {
        true => pipeline::context(object),
        false => strategy::context(USUAL_CONTEXT, &object.spec.about.environment),
    }
}

/// Whether a PullRequest names this object as its owner, which is not being deleted.
fn is_named(object: &PullRequest, kind: &str, owner: &ObjectMeta) -> bool {
    let about = &object.spec.about;
    about.kind == kind
        && owner.name.as_deref() == Some(about.name.as_str())
        && owner.namespace == object.metadata.namespace
        && owner.deletion_timestamp.is_none()
}
