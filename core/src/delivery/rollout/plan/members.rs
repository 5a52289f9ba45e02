//! What is rolled out in place of what.

use sluice_crds::RolloutSpec;
use sluice_crds::rollout::{RolloutStrategy, WorkloadReference};

use crate::text::names::{NAME_LENGTH, is_label_value, subdomain};
use crate::text::refusal::Refusal;

/// The most sources.
const MOST_SOURCES: usize = 4;

/// What is rolled out in place of what. Each of them can say only what makes sense for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Members {
    /// Deployments are scaled against each other.
    Pair {
        /// The one with the new version.
        target: String,
        /// Those with the old version: at least one, and emptied in this order.
        sources: Vec<String>,
        /// Which is scaled first.
        strategy: RolloutStrategy,
    },
    /// A Deployment by itself: it is deployed for the first time, or scaled.
    Alone {
        /// The Deployment.
        target: String,
    },
    /// An object with both versions.
    InPlace {
        /// What it is.
        kind: InPlaceKind,
        /// Its name.
        name: String,
        /// Whether the partition is raised again after success.
        rearm: bool,
    },
    /// Objects of Flux. What workloads they have is known only in the cluster.
    Apps {
        /// What they are.
        kind: AppKind,
        /// The one with the new version.
        target: String,
        /// Those with the old version.
        sources: Vec<String>,
        /// Which of their workloads.
        component: Option<String>,
        /// Which is scaled first, where the workloads are Deployments.
        strategy: RolloutStrategy,
        /// Whether a partition is raised again after success, where the workload has one.
        rearm: bool,
    },
}

impl Members {
    /// Which is scaled first, where there is a target and a source.
    pub fn strategy(&self) -> RolloutStrategy {
        match self {
            Members::Pair { strategy, .. } | Members::Apps { strategy, .. } => *strategy,
            Members::Alone { .. } | Members::InPlace { .. } => RolloutStrategy::IncreaseFirst,
        }
    }

    /// Whether a partition is raised again after success.
    pub fn rearms(&self) -> bool {
        match self {
            Members::InPlace { rearm, .. } | Members::Apps { rearm, .. } => *rearm,
            Members::Pair { .. } | Members::Alone { .. } => false,
        }
    }
}

/// A kind of workload that has both versions at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InPlaceKind {
    /// Of Kubernetes.
    StatefulSet,
    /// Of OpenKruise.
    CloneSet,
}

/// A kind of Flux that has workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppKind {
    /// Of kustomize-controller.
    Kustomization,
    /// Of helm-controller.
    HelmRelease,
}

/// A kind that can be rolled out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Deployment,
    InPlace(InPlaceKind),
    App(AppKind),
}

/// The kinds, in words.
const KINDS: &str = "write Deployment, StatefulSet, CloneSet, Kustomization or HelmRelease";

impl Kind {
    fn of(word: &str) -> Option<Self> {
        Some(match word {
            "Deployment" => Kind::Deployment,
            "StatefulSet" => Kind::InPlace(InPlaceKind::StatefulSet),
            "CloneSet" => Kind::InPlace(InPlaceKind::CloneSet),
            "Kustomization" => Kind::App(AppKind::Kustomization),
            "HelmRelease" => Kind::App(AppKind::HelmRelease),
            _ => return None,
        })
    }

    /// Whether it is of this group and version. Those of Flux are looked for in whatever version is served.
    fn is_of(self, api_version: &str) -> bool {
        match self {
            Kind::Deployment | Kind::InPlace(InPlaceKind::StatefulSet) => api_version == "apps/v1",
            Kind::InPlace(InPlaceKind::CloneSet) => api_version == "apps.kruise.io/v1alpha1",
            Kind::App(AppKind::Kustomization) => {
                api_version.starts_with("kustomize.toolkit.fluxcd.io/")
            }
            Kind::App(AppKind::HelmRelease) => api_version.starts_with("helm.toolkit.fluxcd.io/"),
        }
    }

    /// What to write as its group and version.
    fn api_version(self) -> &'static str {
        match self {
            Kind::Deployment | Kind::InPlace(InPlaceKind::StatefulSet) => "apps/v1",
            Kind::InPlace(InPlaceKind::CloneSet) => "apps.kruise.io/v1alpha1",
            Kind::App(AppKind::Kustomization) => "kustomize.toolkit.fluxcd.io/v1",
            Kind::App(AppKind::HelmRelease) => "helm.toolkit.fluxcd.io/v2",
        }
    }
}

/// The members, if their kind is known. Whatever is wrong is added to `mistakes`.
pub(super) fn read(spec: &RolloutSpec, mistakes: &mut Vec<Refusal>) -> Option<Members> {
    let target = &spec.target_ref;
    let kind = reference("spec.targetRef", target, mistakes);
    for (place, source) in spec.source_ref.iter().enumerate() {
        self::source(spec, place, source, mistakes);
    }
    if spec.source_ref.len() > MOST_SOURCES {
        let problem = format!("there are more than {MOST_SOURCES}");
        mistakes.push(Refusal::new("spec.sourceRef", problem, "name fewer"));
    }
    if let Some(component) = spec.component.as_deref()
        && (component.is_empty() || !is_label_value(component))
    {
        let remedy = "write at most 63 letters, digits, -, _ and .";
        let problem = format!("`{component}` is not a label");
        mistakes.push(Refusal::new("spec.component", problem, remedy));
    }
    let kind = kind?;
    mistakes.extend(wrong_for(kind, spec));
    let sources = || spec.source_ref.iter().map(|it| it.name.clone()).collect();
    let strategy = spec.rollout_plan.rollout_strategy;
    Some(match kind {
        Kind::Deployment if spec.source_ref.is_empty() => Members::Alone {
            target: target.name.clone(),
        },
        Kind::Deployment => Members::Pair {
            target: target.name.clone(),
            sources: sources(),
            strategy,
        },
        Kind::InPlace(kind) => Members::InPlace {
            kind,
            name: target.name.clone(),
            rearm: spec.rearm.unwrap_or(true),
        },
        Kind::App(kind) => Members::Apps {
            kind,
            target: target.name.clone(),
            sources: sources(),
            component: spec.component.clone(),
            strategy,
            rearm: spec.rearm.unwrap_or(true),
        },
    })
}

/// A reference, and its kind if there is such a one.
fn reference(
    field: &str,
    reference: &WorkloadReference,
    mistakes: &mut Vec<Refusal>,
) -> Option<Kind> {
    let WorkloadReference {
        api_version,
        kind: word,
        name,
    } = reference;
    subdomain(&format!("{field}.name"), name, NAME_LENGTH, mistakes);
    let Some(kind) = Kind::of(word) else {
        let problem = match word.as_str() {
            "DaemonSet" => "a DaemonSet has one pod a node, and no partition to hold at".to_owned(),
            word => format!("a {word} cannot be rolled out"),
        };
        let remedy = match word.as_str() {
            "DaemonSet" => "use a CloneSet, or gate its source",
            _ => KINDS,
        };
        mistakes.push(Refusal::new(format!("{field}.kind"), problem, remedy));
        return None;
    };
    if let Some(version) = api_version
        && !kind.is_of(version)
    {
        let problem = format!("`{version}` has no {word} that is known here");
        let remedy = format!("write {}, or leave it out", kind.api_version());
        mistakes.push(Refusal::new(format!("{field}.apiVersion"), problem, remedy));
    }
    Some(kind)
}

/// What is wrong with a source, by itself and beside the target and the sources before it.
fn source(
    spec: &RolloutSpec,
    place: usize,
    source: &WorkloadReference,
    mistakes: &mut Vec<Refusal>,
) {
    let field = format!("spec.sourceRef[{place}]");
    reference(&field, source, mistakes);
    let target = &spec.target_ref;
    let is_it = |it: &WorkloadReference| (&it.kind, &it.name) == (&source.kind, &source.name);
    let (problem, remedy) = if source.kind != target.kind {
        (
            format!(
                "it is a {}, and the target is a {}",
                source.kind, target.kind
            ),
            "name sources of the kind of targetRef",
        )
    } else if is_it(target) {
        (
            "it is the target".to_owned(),
            "name the object with the old version",
        )
    } else if spec.source_ref.iter().take(place).any(is_it) {
        (
            format!("{} {} is listed twice", source.kind, source.name),
            "list each source once",
        )
    } else {
        return;
    };
    mistakes.push(Refusal::new(field, problem, remedy));
}

/// What does not belong to a target of this kind.
fn wrong_for(kind: Kind, spec: &RolloutSpec) -> Vec<Refusal> {
    let (is_in_place, is_app) = match kind {
        Kind::Deployment => (false, false),
        Kind::InPlace(_) => (true, false),
        Kind::App(_) => (false, true),
    };
    let decreases = spec.rollout_plan.rollout_strategy == RolloutStrategy::DecreaseFirst;
    let mistakes = [
        (
            is_in_place && !spec.source_ref.is_empty(),
            "spec.sourceRef",
            "a StatefulSet or CloneSet is rolled in place, by its partition",
            "remove sourceRef",
        ),
        (
            is_in_place && decreases,
            "spec.rolloutPlan.rolloutStrategy",
            "a StatefulSet or CloneSet is rolled in place, and DecreaseFirst belongs to two Deployments",
            "remove it",
        ),
        (
            spec.component.is_some() && !is_app,
            "spec.component",
            "it belongs to a Kustomization or HelmRelease, which may have several workloads",
            "remove it",
        ),
        (
            spec.rearm.is_some() && kind == Kind::Deployment,
            "spec.rearm",
            "it belongs to a StatefulSet or CloneSet, which has a partition",
            "remove it",
        ),
    ];
    let mistakes = mistakes.into_iter().filter(|(is_wrong, ..)| *is_wrong);
    let refuse = |(_, field, problem, remedy)| Refusal::new(field, problem, remedy);
    mistakes.map(refuse).collect()
}
