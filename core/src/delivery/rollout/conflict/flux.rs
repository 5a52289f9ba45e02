//! Whether Flux writes again what a run has written.
//!
//! Only what is known to be undone stands in the way: Flux has applied the field, and neither the object nor
//! the Kustomization or HelmRelease says that the field is left alone. That Flux owns a field is not enough: it
//! stays an owner of those that it ignores.

use jiff::Timestamp;
use regex::RegexBuilder;
use serde_json::Value;
use sluice_crds::gated_source::ConsumerKind;

use super::{Conflict, Member, fields};
use crate::delivery::rollout::given::{Applier, Given, Name, Sight};
use crate::delivery::rollout::workload::{Kind, Workload};
use crate::flux::users::labelled;

/// The annotation of an object that says how kustomize-controller applies it.
pub(in crate::delivery::rollout) const SSA: &str = "kustomize.toolkit.fluxcd.io/ssa";
/// With these values of it, kustomize-controller does not change the object.
const LEFT_ALONE: [&str; 2] = ["IfNotPresent", "Ignore"];

/// Anyone who may write a Kustomization writes its rules: how many of them are read, how long a pattern may be, in
/// bytes, and how large when it is compiled. What is beyond ignores nothing.
const MOST_RULES: usize = 100;
const LONGEST: usize = 256;
const LARGEST: usize = 64 << 10;

/// The fields that Flux writes again. Of a source, only its replicas are written.
pub(super) fn applies_again(
    given: &Given,
    (name, workload): &Member<'_>,
    is_target: bool,
) -> Option<Conflict> {
    let applied: Vec<_> = written(name, is_target)
        .iter()
        .filter(|field| applies(given, (name, workload), field).is_some())
        .copied()
        .collect();
    let by = applies(given, (name, workload), applied.first()?)?;
    let (paths, before) = (applied.join(", "), place(&by));
    Some(Conflict::new(
        "AppliedAgain",
        by.clone(),
        format!(
            "{by} writes {paths} of {name} again; write into {before}:\n  ignore:\n    - paths: [{paths}]\n      target: {{kind: {}, name: {}}}",
            name.kind.as_str(),
            name.name
        ),
    ))
}

/// The fields that a run writes.
fn written(name: &Name, is_target: bool) -> &'static [&'static str] {
    match is_target {
        true => name.kind.fields(),
        false => &["/spec/replicas"],
    }
}

/// What of Flux has applied such a field, or a template that may have to be brought back, where it is not known
/// whether it leaves that alone: and why it is not known.
pub(in crate::delivery::rollout) fn unknown_applier<'g>(
    given: &'g Given,
    (name, workload): &Member<'_>,
    is_target: bool,
) -> Option<(Applier, &'g str)> {
    let template: &[_] = match name.kind {
        Kind::Deployment => &[],
        Kind::StatefulSet | Kind::CloneSet => &["/spec/template"],
    };
    let fields = || written(name, is_target).iter().chain(template);
    let mut all = appliers(workload).into_iter();
    all.find_map(|applier| {
        let manager = manager(applier.kind);
        let Sight::Unknown(why) = given.applier(&applier) else {
            return None;
        };
        let applies = fields().any(|field| fields::applies(workload.object, field, manager));
        let is_known =
            applier.kind == ConsumerKind::Kustomization && is_left_alone(workload.object);
        (applies && !is_known).then_some((applier, why.as_ref()))
    })
}

/// When Flux has changed the spec last.
pub(in crate::delivery::rollout) fn applied_at(
    workload: &Value,
    kind: ConsumerKind,
) -> Option<Timestamp> {
    fields::applied_at(workload, manager(kind))
}

fn place(by: &str) -> &'static str {
    match by.starts_with(ConsumerKind::HelmRelease.as_str()) {
        true => "its spec.driftDetection",
        false => "its spec",
    }
}

/// What of Flux writes the field again.
pub(super) fn applies(
    given: &Given,
    (name, workload): (&Name, &Workload<'_>),
    field: &str,
) -> Option<String> {
    let mut all = appliers(workload).into_iter();
    let found = all.find(|applier| {
        given.applier(applier).object().is_some_and(|object| {
            fields::applies(workload.object, field, manager(applier.kind))
                && !leaves_alone(workload.object, applier.kind, object)
                && !ignores(object, applier.kind, name, field)
        })
    });
    found.map(|applier| applier.to_string())
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

fn manager(kind: ConsumerKind) -> &'static str {
    match kind {
        ConsumerKind::Kustomization => "kustomize-controller",
        ConsumerKind::HelmRelease => "helm-controller",
    }
}

/// Whether the workload says that kustomize-controller leaves it alone.
pub(in super::super) fn is_left_alone(workload: &Value) -> bool {
    let annotation = workload["metadata"]["annotations"].get(SSA);
    let annotation = annotation.and_then(Value::as_str);
    annotation.is_some_and(|value| LEFT_ALONE.contains(&value))
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
pub(in crate::delivery::rollout) fn corrects_drift(release: &Value) -> bool {
    release.pointer("/spec/driftDetection/mode") == Some(&"enabled".into())
}

/// Whether a rule of the applier leaves the field of this workload alone.
fn ignores(object: &Value, kind: ConsumerKind, name: &Name, field: &str) -> bool {
    let rules = match kind {
        ConsumerKind::Kustomization => "/spec/ignore",
        ConsumerKind::HelmRelease => "/spec/driftDetection/ignore",
    };
    let rules = object.pointer(rules).and_then(Value::as_array);
    let rules = rules.into_iter().flatten();
    rules.into_iter().take(MOST_RULES).any(|rule| {
        let paths = rule["paths"].as_array().into_iter().flatten();
        let mut paths = paths.filter_map(Value::as_str);
        paths.any(|path| covers(path, field)) && is_about(&rule["target"], name)
    })
}

fn covers(path: &str, field: &str) -> bool {
    let rest = field.strip_prefix(path.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether a rule is about the workload. A rule that selects by labels is not counted: what it selects may
/// change with each commit.
fn is_about(target: &Value, name: &Name) -> bool {
    let matches = |field: &str, text: &str| {
        let pattern = target
            .get(field)
            .and_then(Value::as_str)
            .unwrap_or_default();
        let whole = || {
            let whole = RegexBuilder::new(&format!("^(?:{pattern})$"));
            whole.clone().size_limit(LARGEST).build()
        };
        let is_short = pattern.len() <= LONGEST;
        pattern.is_empty() || (is_short && whole().is_ok_and(|whole| whole.is_match(text)))
    };
    let selects = |field: &str| target.get(field).is_some_and(|it| it != "");
    matches("kind", name.kind.as_str())
        && matches("name", &name.name)
        && !selects("labelSelector")
        && !selects("annotationSelector")
}
