//! Whether Flux writes again what a run has written.
//!
//! Only what is known to be undone stands in the way: Flux has applied the field, and neither the object nor
//! the Kustomization or HelmRelease says that the field is left alone. That Flux owns a field is not enough: it
//! stays an owner of those that it ignores.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use sluice_crds::flux::FluxObject;
use sluice_crds::gated_source::ConsumerKind;

use super::given::{Applier, Given, Member, Name, Sight};
use super::why::Why;
use super::workload::{Kind, Workload};
use crate::flux::observed::{condition, is_suspended};
use crate::flux::users::labelled;

mod fields;
mod ignores;
pub use fields::MANAGER;
pub(super) use fields::{managed, owner, put};
#[cfg(test)]
pub(super) use ignores::COMPILED;
use ignores::Rules;

/// The annotations of an object that say how kustomize-controller applies it, and whether it does. Labels do as well.
pub(super) const SSA: &str = "kustomize.toolkit.fluxcd.io/ssa";
pub(super) const RECONCILE: &str = "kustomize.toolkit.fluxcd.io/reconcile";
/// Where the first of them may be.
const SSA_FIELDS: [(&str, &str); 2] = [
    (
        "annotations",
        "/metadata/annotations/kustomize.toolkit.fluxcd.io~1ssa",
    ),
    (
        "labels",
        "/metadata/labels/kustomize.toolkit.fluxcd.io~1ssa",
    ),
];

/// Fields that a run may write, beside those of each kind.
const REPLICAS: &str = "/spec/replicas";
pub(super) const TEMPLATE: &str = "/spec/template";

/// What Flux writes again of the workloads of a look. It is found out once a look: patterns have to be compiled.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct AppliedAgain {
    /// The fields, and what of Flux does it.
    fields: BTreeMap<(Name, &'static str), Applier>,
    /// The fields that its newest spec leaves alone, while Flux may still be at work by an older one.
    once_more: BTreeMap<(Name, &'static str), Why>,
}

impl AppliedAgain {
    /// Of these workloads.
    pub(super) fn of(given: &Given, workloads: BTreeSet<Name>) -> Self {
        let mut found = Self::default();
        let mut known = BTreeMap::new();
        for name in workloads {
            let Some(object) = given.sight(&name).object() else {
                continue;
            };
            let kind = name.kind;
            for applier in appliers(&Workload { kind, object }) {
                let Some(of) = given.applier(&applier).object() else {
                    continue;
                };
                let fields = written_by(object, kind, &applier, of);
                if fields.is_empty() {
                    continue;
                }
                let read = || (Rules::read(of, applier.kind), not_in_effect(&applier, of));
                let (rules, not_in_effect) = known.entry(applier.clone()).or_insert_with(read);
                for field in fields {
                    let place = (name.clone(), field);
                    if !rules.ignore(&name, field) {
                        found.fields.entry(place).or_insert(applier.clone());
                    } else if let Some(why) = not_in_effect {
                        found.once_more.entry(place).or_insert(why.clone());
                    }
                }
            }
        }
        found
    }

    /// What of Flux writes the field again.
    pub(super) fn by(&self, name: &Name, field: &'static str) -> Option<&Applier> {
        self.fields.get(&(name.clone(), field))
    }

    /// Why a run does not begin yet: Flux may undo once more what its newest spec leaves alone.
    ///
    /// The run waits as it waits for gates. It must not be unready meanwhile: a Kustomization with `wait` that brings
    /// the Rollout would wait for that.
    pub(super) fn once_more(&self, members: &[Member<'_>]) -> Option<Why> {
        let mut fields = members.iter().enumerate().flat_map(|(place, (name, _))| {
            let written = written(name, place == 0).iter();
            written.map(|field| (name.clone(), *field))
        });
        fields.find_map(|place| self.once_more.get(&place)).cloned()
    }
}

/// Why Flux may still be at work by an older spec of this object. None: nothing of it is. The generations of its
/// conditions do not tell: Flux writes the newest there, whatever it works by.
fn not_in_effect(applier: &Applier, object: &Value) -> Option<Why> {
    let object = flux(object).unwrap_or_default();
    let generation = object.metadata.generation;
    let is_of_newest = |seen: Option<i64>| seen.is_some() && seen == generation;
    let is_first = generation == Some(1);
    let begun = match applier.kind {
        // It is unready while it applies. It succeeds only once everything is healthy, which may need this run.
        ConsumerKind::Kustomization => is_ready(&object, "False"),
        ConsumerKind::HelmRelease => is_of_newest(object.status.last_attempted_generation),
    };
    let is_done = is_of_newest(object.status.observed_generation);
    // What was begun before it was suspended is carried to its end.
    let is_at_rest = is_suspended(&object) && !is_ready(&object, "Unknown");
    let is_in_effect = is_first || begun || is_done || is_at_rest;
    (!is_in_effect).then(|| not_applied(applier, &object, "spec"))
}

/// Why a run waits for Flux, in words that stay the same while Flux tries again. Flux may have been stopped at work: then
/// what is suspended stays as it is until somebody resumes it.
pub(super) fn not_applied(applier: &Applier, object: &FluxObject, newest: &str) -> Why {
    let remedy = match is_suspended(object) && is_ready(object, "Unknown") {
        true => format!(
            "it was suspended while Flux was at work on it; if that does not end, resume it by `flux resume {} {} -n {}`",
            applier.kind.as_str().to_lowercase(),
            applier.name,
            applier.namespace,
        ),
        false => "see its conditions".to_owned(),
    };
    let message = format!("{applier} has not applied its newest {newest} yet: {remedy}");
    Why::by("NotApplied", applier.to_string(), message)
}

fn is_ready(object: &FluxObject, status: &str) -> bool {
    condition(object, "Ready").is_some_and(|it| it.status == status)
}

/// The fields that it has applied, and does not leave alone as a whole.
fn written_by(workload: &Value, kind: Kind, applier: &Applier, of: &Value) -> Vec<&'static str> {
    if leaves_alone(workload, applier.kind, of) {
        return Vec::new();
    }
    let all = kind.fields().iter().chain([&REPLICAS, &TEMPLATE]).copied();
    all.filter(|field| fields::applies(workload, field, applier.kind))
        .collect()
}

/// The fields that a run writes.
pub(super) fn written(name: &Name, is_target: bool) -> &'static [&'static str] {
    match is_target {
        true => name.kind.fields(),
        false => &[REPLICAS],
    }
}

/// What of Flux has applied such a field, or a template that may have to be brought back, where it is not known
/// whether it leaves that alone: and why it is not known.
pub(super) fn unknown_applier<'g>(
    given: &'g Given,
    (name, workload): &Member<'_>,
    is_target: bool,
) -> Option<(Applier, &'g str)> {
    let template: &[_] = match name.kind {
        Kind::Deployment => &[],
        Kind::StatefulSet | Kind::CloneSet => &[TEMPLATE],
    };
    let fields = || written(name, is_target).iter().chain(template);
    let mut all = appliers(workload).into_iter();
    all.find_map(|applier| {
        let Sight::Unknown(why) = given.applier(&applier) else {
            return None;
        };
        let applies = fields().any(|it| fields::applies(workload.object, it, applier.kind));
        let is_known =
            applier.kind == ConsumerKind::Kustomization && is_left_alone(workload.object);
        (applies && !is_known).then_some((applier, why.as_ref()))
    })
}

/// When Flux has changed the spec last.
pub(super) fn applied_at(workload: &Value, kind: ConsumerKind) -> Option<Timestamp> {
    fields::applied_at(workload, kind)
}

/// The Kustomizations and HelmReleases that have applied a workload, as its labels say.
pub fn appliers(workload: &Workload<'_>) -> Vec<Applier> {
    let labels = workload.object.pointer("/metadata/labels");
    let label = |label: &str| Some(labels?.get(label)?.as_str()?.to_owned());
    let all = labelled(label).into_iter();
    all.map(|(kind, namespace, name)| Applier {
        kind,
        namespace,
        name,
    })
    .collect()
}

/// A Kustomization or HelmRelease, as far as it can be read.
pub(super) fn flux(object: &Value) -> Option<FluxObject> {
    FluxObject::deserialize(object).ok()
}

/// Whether the workload says that kustomize-controller does not change it, in upper or lower case. `IfNotPresent` counts
/// where Flux has applied it: kustomize-controller asks Git for that alone.
fn is_left_alone(workload: &Value) -> bool {
    let says = |of: &str, key: &str, word: &str| {
        let text = workload["metadata"][of].get(key).and_then(Value::as_str);
        text.is_some_and(|it| it.eq_ignore_ascii_case(word))
    };
    SSA_FIELDS.iter().any(|(of, field)| {
        says(of, SSA, "Ignore")
            || says(of, RECONCILE, "disabled")
            || says(of, SSA, "IfNotPresent")
                && fields::applies(workload, field, ConsumerKind::Kustomization)
    })
}

/// Whether the workload, or all that the applier has, is left alone.
fn leaves_alone(workload: &Value, kind: ConsumerKind, applier: &Value) -> bool {
    match kind {
        ConsumerKind::Kustomization => is_left_alone(workload),
        // Otherwise it writes only when its chart or its values change.
        ConsumerKind::HelmRelease => !corrects_drift(applier),
    }
}

/// Whether a HelmRelease writes again what is not as it was.
pub(super) fn corrects_drift(release: &Value) -> bool {
    release.pointer("/spec/driftDetection/mode") == Some(&"enabled".into())
}
