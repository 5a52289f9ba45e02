//! Everything that a look at a Rollout is decided from.
//!
//! The gates are not among it: a look says first whether they are asked, and about what.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use sluice_crds::Rollout;
use sluice_crds::gated_source::ConsumerKind;
use sluice_crds::gatekeeper::Range;
use sluice_crds::rollout::WorkloadReference;

use super::hook::Answer;
use super::metric::Measured;
use super::workload::Kind;
use crate::time::clock::Now;

/// The name of a workload in the namespace of the Rollout.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    /// Its kind.
    pub kind: Kind,
    /// Its name.
    pub name: String,
}

impl Name {
    /// The workload that a reference names. None: it names something of Flux, or nothing that is known.
    pub fn of(reference: &WorkloadReference) -> Option<Self> {
        let kind = Kind::ALL
            .into_iter()
            .find(|kind| kind.as_str() == reference.kind)?;
        Some(Self {
            kind,
            name: reference.name.clone(),
        })
    }

    /// The reference that names it.
    pub fn reference(&self) -> WorkloadReference {
        WorkloadReference {
            api_version: Some(self.kind.api_version().to_owned()),
            kind: self.kind.as_str().to_owned(),
            name: self.name.clone(),
        }
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, text: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(text, "{} {}", self.kind.as_str(), self.name)
    }
}

/// What is known of an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Sight {
    /// Its kind is not listed yet, or was not heard of for too long: nothing is known.
    #[default]
    NotListed,
    /// There is none of that name, or its kind is not served.
    Absent,
    /// Here it is, as the API server has it.
    Here {
        /// The object.
        object: Arc<Value>,
        /// Whether it is older than our own last write to it.
        is_behind: bool,
    },
}

impl Sight {
    /// The object, if it is here.
    pub fn object(&self) -> Option<&Value> {
        match self {
            Sight::Here { object, .. } => Some(object),
            Sight::NotListed | Sight::Absent => None,
        }
    }
}

/// A pod of a StatefulSet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// Its revision: the label `controller-revision-hash`.
    pub revision: String,
    /// Whether it has been ready for as long as the StatefulSet asks.
    pub is_available: bool,
    /// Whether it is being deleted.
    pub is_going: bool,
}

/// The answer to a call that has come since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// The key of the call.
    pub key: String,
    /// Which call of this key it was. The first is 1.
    pub attempt: i32,
    /// The answer.
    pub answer: Answer,
    /// Why there was none.
    pub error: Option<String>,
    /// When it came.
    pub at: Timestamp,
}

/// What a Gatekeeper of the kind `metric` has measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measure {
    /// The range of the Gatekeeper.
    pub range: Range,
    /// Its value, unless it has none that counts.
    pub measured: Option<Measured>,
}

/// A HorizontalPodAutoscaler of the namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Autoscaler {
    /// Its name.
    pub name: String,
    /// The kind of what it scales.
    pub kind: String,
    /// The name of what it scales.
    pub target: String,
}

/// The name of a Kustomization or HelmRelease.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Applier {
    /// Its kind.
    pub kind: ConsumerKind,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Everything that a look is decided from.
#[derive(Clone, Debug)]
pub struct Given {
    /// The Rollout, with the status that the API server has accepted.
    pub object: Arc<Rollout>,
    /// The workloads of [`wanted`].
    pub workloads: BTreeMap<Name, Sight>,
    /// The pods of the StatefulSet. None: they are not listed. See [`needs_pods`].
    pub pods: Option<Vec<Pod>>,
    /// The ControllerRevision that a revert brings back, if the status names one.
    pub former: Sight,
    /// The answers of hooks that have come since.
    pub arrived: Vec<Arrived>,
    /// What was measured, by the name of the Gatekeeper. One that is missing has no value.
    pub measures: BTreeMap<String, Measure>,
    /// The other Rollouts of the namespace: their names by their UIDs.
    pub others: BTreeMap<String, String>,
    /// The autoscalers of the namespace. None: they are not listed.
    pub autoscalers: Option<Vec<Autoscaler>>,
    /// The Kustomizations and HelmReleases that the labels of the workloads name.
    pub appliers: BTreeMap<Applier, Sight>,
    /// Since when something of this is not up to date, as far as the process remembers.
    pub unsure_since: Option<Timestamp>,
    /// The instant.
    pub now: Now,
}

impl Given {
    /// What is known of a workload.
    pub(super) fn sight(&self, name: &Name) -> &Sight {
        self.workloads.get(name).unwrap_or(&Sight::NotListed)
    }
}

/// The workloads that a look has to know: those of the run, and those that the spec names.
pub fn wanted(object: &Rollout) -> BTreeSet<Name> {
    let run = object.status.as_ref().and_then(|it| it.run.as_ref());
    let of_run = run.into_iter().flat_map(|run| &run.workloads);
    let spec = [&object.spec.target_ref].into_iter();
    let references = spec
        .chain(&object.spec.source_ref)
        .chain(of_run.map(|it| &it.r#ref));
    references.filter_map(Name::of).collect()
}

/// Whether a look has to know the pods of the target, which cost a request.
pub fn needs_pods(object: &Rollout) -> bool {
    use sluice_crds::rollout::RollingState as State;
    let status = object.status.as_ref();
    let is_set = object.spec.target_ref.kind == Kind::StatefulSet.as_str();
    is_set
        && status
            .and_then(|it| it.rolling_state)
            .is_some_and(|state| match state {
                State::RollingInBatches | State::RolloutFailing | State::RolloutDeleting => true,
                State::VerifyingSpec
                | State::Initializing
                | State::Finalising
                | State::RolloutSucceed
                | State::RolloutAbandoned
                | State::RolloutFailed => false,
            })
}
