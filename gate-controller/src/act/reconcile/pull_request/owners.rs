//! The owner of a PullRequest, as this process knows it now.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::ResourceExt;
use sluice_core::delivery::pull_request::Says;
use sluice_crds::pull_request::About;
use sluice_crds::{Pipeline, PromotionStrategy, PullRequest};

use super::owner;
use crate::cluster::key::{ObjectKey, Work};
use crate::cluster::kind::Kind;
use crate::observe::world::World;

/// An owner that is there.
pub(super) enum Found {
    Pipeline(Arc<Pipeline>),
    Strategy(Arc<PromotionStrategy>),
}

impl Found {
    /// The owner of the PullRequest named `key`. None: it is not there, cannot be read, or is of a kind that
    /// makes no PullRequests.
    pub(super) fn of(world: &World, key: &ObjectKey, about: &About) -> Option<Self> {
        let Work { kind, key, .. } = owner(key, about)?;
        match kind {
            Kind::PromotionStrategy => {
                let seen = world.promotion_strategies.get(key.borrowed())?;
                seen.object().cloned().map(Self::Strategy)
            }
            _ => {
                let seen = world.pipelines.get(key.borrowed())?;
                seen.object().cloned().map(Self::Pipeline)
            }
        }
    }

    /// What it says of a PullRequest.
    pub(super) fn says(&self, object: &PullRequest) -> Option<Says> {
        match self {
            Self::Pipeline(owner) => Says::of(object, owner.as_ref()),
            Self::Strategy(owner) => Says::of(object, owner.as_ref()),
        }
    }

    /// It, as work.
    pub(super) fn work(&self) -> Work {
        match self {
            Self::Pipeline(owner) => Work::own(Kind::Pipeline, ObjectKey::of(owner.as_ref())),
            Self::Strategy(owner) => {
                Work::own(Kind::PromotionStrategy, ObjectKey::of(owner.as_ref()))
            }
        }
    }

    pub(super) fn labels(&self) -> &BTreeMap<String, String> {
        match self {
            Self::Pipeline(owner) => owner.labels(),
            Self::Strategy(owner) => owner.labels(),
        }
    }
}
