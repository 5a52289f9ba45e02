//! Everything that a look at a Rollout is decided from.
//!
//! The gates are not among it: a look says first whether they are asked, and about what.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use sluice_crds::Rollout;
use sluice_crds::gated_source::ConsumerKind;
use sluice_crds::gatekeeper::Range;
use sluice_crds::rollout::{WorkloadReference, marks};

use super::hook::Answer;
use super::metric::Measured;
use super::workload::{Kind, Workload};
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

/// A workload with its name.
pub(super) type Member<'a> = (Name, Workload<'a>);

/// What is known of an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Sight {
    /// Nothing is known of it: why, in words that go on after a colon.
    Unknown(Cow<'static, str>),
    /// There is none of that name.
    Absent,
    /// Here it is, as the API server has it.
    Here {
        /// The object.
        object: Arc<Value>,
        /// Whether it is older than our own last write to it.
        is_behind: bool,
    },
}

/// What is known of an object that was not read yet.
static NOT_YET: Sight = Sight::Unknown(Cow::Borrowed("it was not read yet"));

impl Sight {
    /// The object, if it is here.
    pub fn object(&self) -> Option<&Value> {
        match self {
            Sight::Here { object, .. } => Some(object),
            Sight::Unknown(_) | Sight::Absent => None,
        }
    }

    /// Whether the workload of this name is not known, or what is known of it is not up to date.
    pub fn is_unsure(&self, name: &Name) -> bool {
        match self {
            Sight::Unknown(_) => true,
            Sight::Absent => false,
            Sight::Here { object, is_behind } => {
                let (kind, object) = (name.kind, object.as_ref());
                *is_behind || !Workload { kind, object }.seen().is_observed
            }
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
    /// Since when it is ready. None: it is not.
    pub ready_since: Option<Timestamp>,
    /// Whether it is being deleted.
    pub is_going: bool,
}

/// The templates of a StatefulSet or CloneSet that goes back: of the object itself only their hash is kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Templates {
    /// The pod template that it has.
    pub now: Value,
    /// The ControllerRevision with the one that comes back. None: it is gone.
    pub former: Option<Value>,
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

impl Autoscaler {
    /// What an object says. None: it says nothing that can be read.
    pub fn read(object: &Value) -> Option<Self> {
        let text = |pointer: &str| object.pointer(pointer)?.as_str().map(str::to_owned);
        Some(Self {
            name: text("/metadata/name")?,
            kind: text("/spec/scaleTargetRef/kind")?,
            target: text("/spec/scaleTargetRef/name")?,
        })
    }

    /// Whether it scales this workload.
    pub fn is_of(&self, name: &Name) -> bool {
        (self.kind.as_str(), &self.target) == (name.kind.as_str(), &name.name)
    }

    /// The workload that it scales. None: that is of a kind that no Rollout writes.
    pub fn scales(&self) -> Option<Name> {
        Name::of(&WorkloadReference {
            api_version: None,
            kind: self.kind.clone(),
            name: self.target.clone(),
        })
    }
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

impl Applier {
    /// What a reference of a Rollout in this namespace names. None: it names a workload, or nothing that is
    /// known.
    pub fn of(namespace: &str, reference: &WorkloadReference) -> Option<Self> {
        let all = [ConsumerKind::Kustomization, ConsumerKind::HelmRelease].into_iter();
        let mut kinds = all.filter(|kind| kind.as_str() == reference.kind);
        Some(Self {
            kind: kinds.next()?,
            namespace: namespace.to_owned(),
            name: reference.name.clone(),
        })
    }
}

impl std::fmt::Display for Applier {
    fn fmt(&self, text: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            text,
            "{} {}/{}",
            self.kind.as_str(),
            self.namespace,
            self.name
        )
    }
}

/// What is known of Kustomizations and HelmReleases.
pub type Appliers = BTreeMap<Applier, Sight>;

/// Everything that a look is decided from.
#[derive(Clone, Debug)]
pub struct Given {
    /// The Rollout, with the status that the API server has accepted.
    pub object: Arc<Rollout>,
    /// The workloads of [`wanted`].
    pub workloads: BTreeMap<Name, Sight>,
    /// The pods of the StatefulSet. None: they are not listed. See [`needs_pods`].
    pub pods: Option<Vec<Pod>>,
    /// The templates of a revert in place. None: they were not read. See [`former`].
    pub templates: Option<Templates>,
    /// The answers of hooks that have come since.
    pub arrived: Vec<Arrived>,
    /// What was measured, by the name of the Gatekeeper. One that is missing has no value.
    pub measures: BTreeMap<String, Measure>,
    /// The other Rollouts that have claimed one of the workloads: their names by their UIDs.
    pub others: BTreeMap<String, String>,
    /// The autoscalers of the workloads, or why they are not known. There may be others of the namespace among them.
    pub autoscalers: Result<Vec<Autoscaler>, String>,
    /// The Kustomizations and HelmReleases that the spec and the labels of the workloads name.
    pub appliers: Appliers,
    /// Since when something of this is not up to date, as far as the process remembers.
    pub unsure_since: Option<Timestamp>,
    /// The instant.
    pub now: Now,
}

impl Given {
    /// What is known of a workload.
    pub(super) fn sight(&self, name: &Name) -> &Sight {
        self.workloads.get(name).unwrap_or(&NOT_YET)
    }

    /// What is known of a Kustomization or HelmRelease.
    pub(super) fn applier(&self, applier: &Applier) -> &Sight {
        self.appliers.get(applier).unwrap_or(&NOT_YET)
    }

    /// Whether the Rollout has our finalizer.
    pub(super) fn has_finalizer(&self) -> bool {
        let mut all = self.object.metadata.finalizers.iter().flatten();
        all.any(|it| it == marks::FINALIZER)
    }
}

/// What a spec names: the target first, each with its field.
pub(super) fn references(object: &Rollout) -> impl Iterator<Item = (String, &WorkloadReference)> {
    let target = [("spec.targetRef".to_owned(), &object.spec.target_ref)];
    let sources = object.spec.source_ref.iter().enumerate();
    let sources = sources.map(|(place, it)| (format!("spec.sourceRef[{place}]"), it));
    target.into_iter().chain(sources)
}
