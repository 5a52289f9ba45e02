//! Applications of Flux: which of their workloads a reference means, and which revision gates are asked about.
//!
//! What comes in: a Kustomization or HelmRelease with its inventory, and the workloads in that. What goes out: one
//! of them, or why there is none. The controllers of both write inventories in one form.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use sluice_crds::Rollout;
use sluice_crds::flux::FluxObject;
use sluice_crds::gated_source::{ConsumerKind, SourceKind};
use sluice_crds::rollout::WorkloadReference;

use super::applied::{applied_at, corrects_drift, flux, not_applied};
use super::given::{Applier, Given, Member, Name, Sight, references};
use super::identity;
use super::plan;
use super::why::Why;
use super::workload::{Kind, Workload};
use crate::flux::observed::{condition, is_at_work, runs};
use crate::flux::users::uses;
use crate::text::names::NAME_LENGTH;
use crate::text::refusal::Refusal;
use crate::time::span::later;
use crate::verdict::condition::cut;

/// The label that says which part of an application a workload is.
pub(super) const COMPONENT: &str = "app.kubernetes.io/component";
/// How many workloads of an application are looked at.
const MOST: usize = 100;
/// How many of another namespace are named.
const MOST_NAMED: usize = 5;
/// The longest list of workloads in a message, in bytes.
const LONGEST_LIST: usize = 512;
/// The longest revision: the name of a branch and a digest are shorter.
const LONGEST_REVISION: usize = 512;
/// How many seconds the clocks of Flux and of the API server may differ.
const SKEW: i64 = 5;
/// How long after a change of its workload a HelmRelease that corrects drift may be seen as it was before.
const LAG: SignedDuration = SignedDuration::from_secs(30);

/// Why a reference leads to no workload.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum NotFound {
    /// Something is not known, or not up to date: why.
    Unsure(Why),
    /// It is not there, in a sentence. It may come.
    Missing(String),
    /// The application does not fit the spec: one of them has to be changed.
    Unfit(Refusal),
}

/// The workloads of an inventory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Workloads {
    /// Those in the namespace of the Rollout.
    pub(super) own: Vec<Name>,
    /// Those of other namespaces, in words. Nobody looks at them.
    pub(super) elsewhere: Vec<String>,
}

/// The entries of the inventory of a Kustomization or HelmRelease that are workloads.
pub(super) fn entries(app: &Value) -> impl Iterator<Item = (&Value, &str, Name)> {
    let entries = app.pointer("/status/inventory/entries");
    let entries = entries.and_then(Value::as_array).into_iter().flatten();
    entries.filter_map(|entry| {
        // Namespace, name, group, kind. Names of workloads have no underscore.
        let mut parts = entry["id"].as_str()?.split('_');
        let [namespace, name, group, word] = [(); 4].map(|()| parts.next());
        let (namespace, name) = (namespace?, name?);
        let found = (group?, word?);
        let mut kinds = Kind::ALL.into_iter();
        let kind = kinds.find(|kind| (kind.group(), kind.as_str()) == found)?;
        // People who may write the status may have made it up.
        let may_be = |it: &str| it.len() <= NAME_LENGTH;
        let name = name.to_owned();
        (may_be(namespace) && may_be(&name)).then_some((entry, namespace, Name { kind, name }))
    })
}

/// The workloads in the inventory of a Kustomization or HelmRelease.
pub(super) fn workloads(app: &Value, namespace: &str) -> Workloads {
    let mut found = Workloads::default();
    for (_, of, name) in entries(app) {
        match of == namespace {
            true => found.own.push(name),
            false => {
                let (kind, name) = (name.kind.as_str(), name.name);
                found.elsewhere.push(format!("{kind} {of}/{name}"));
            }
        }
    }
    found.own.truncate(MOST + 1);
    found.elsewhere.truncate(MOST_NAMED);
    found
}

/// The workload that a reference of a Rollout means.
pub(super) fn workload(
    given: &Given,
    field: &str,
    reference: &WorkloadReference,
) -> Result<Name, NotFound> {
    if let Some(name) = Name::of(reference) {
        return Ok(name);
    }
    let called = format!("{} {}", reference.kind, reference.name);
    let missing = || NotFound::Missing(format!("there is no {called}"));
    let namespace = given.object.metadata.namespace.as_deref();
    let app = Applier::of(namespace.unwrap_or_default(), reference).ok_or_else(missing)?;
    let object = match given.applier(&app) {
        Sight::Unknown(why) => return Err(NotFound::Unsure(Why::unreadable(&called, why))),
        Sight::Absent => return Err(missing()),
        Sight::Here { object, .. } => object,
    };
    let of_app = workloads(object, &app.namespace);
    choose(given, field, &called, of_app)
}

/// The workloads that may be of a run in this look.
pub(super) fn of_look(given: &Given) -> BTreeSet<Name> {
    let run = given.object.status.as_ref().and_then(|it| it.run.as_ref());
    let of_run = run.into_iter().flat_map(|run| &run.workloads);
    let of_run = of_run.filter_map(|it| Name::of(&it.r#ref));
    let named = references(&given.object);
    let named = named.filter_map(|(field, it)| workload(given, &field, it).ok());
    of_run.chain(named).collect()
}

/// The workload of an application that a spec means.
fn choose(given: &Given, field: &str, called: &str, of_app: Workloads) -> Result<Name, NotFound> {
    let Workloads { own, elsewhere } = of_app;
    if own.is_empty() {
        return Err(nothing(field, called, &elsewhere));
    }
    if own.len() > MOST {
        let problem = format!("{called} has more than {MOST} workloads");
        let refusal = Refusal::new(field, problem, "name the workload itself");
        return Err(NotFound::Unfit(refusal));
    }
    let wanted = given.object.spec.component.as_deref();
    let unknown = |name: &Name| match given.sight(name) {
        Sight::Unknown(why) => Some(Why::unreadable(name, why)),
        Sight::Absent | Sight::Here { .. } => None,
    };
    if let Some(why) = own.iter().find_map(unknown).filter(|_| wanted.is_some()) {
        return Err(NotFound::Unsure(why));
    }
    let fits = |name: &Name| wanted.is_none() || component(given, name) == wanted;
    let (mut found, others): (Vec<_>, Vec<_>) = own.into_iter().partition(fits);
    match (found.len(), wanted) {
        (1, _) => Ok(found.remove(0)),
        (0, wanted) => {
            let (label, others) = (labelled(wanted), list(given, &others));
            let message = format!("no workload of {called} has {label}; there are {others}");
            Err(NotFound::Missing(message))
        }
        (_, wanted) => Err(NotFound::Unfit(several(given, called, &found, wanted))),
    }
}

/// No workload of an application is in the namespace.
fn nothing(field: &str, called: &str, elsewhere: &[String]) -> NotFound {
    if elsewhere.is_empty() {
        let kinds = "a Deployment, StatefulSet or CloneSet";
        return NotFound::Missing(format!("{called} has not applied {kinds} yet"));
    }
    let all = elsewhere.join(", ");
    NotFound::Unfit(Refusal::new(
        field,
        format!("the workloads of {called} are in another namespace: {all}"),
        "name the workload itself, in a Rollout of its namespace",
    ))
}

/// Several workloads of an application may be meant.
fn several(given: &Given, called: &str, found: &[Name], wanted: Option<&str>) -> Refusal {
    let all = list(given, found);
    let (problem, remedy) = match wanted {
        Some(_) => (
            format!(
                "several workloads of {called} have {}: {all}",
                labelled(wanted)
            ),
            "give each another value, or name the workload itself".to_owned(),
        ),
        None => {
            let example = found.iter().find_map(|name| component(given, name));
            let example = example.unwrap_or("web");
            (
                format!("{called} has several workloads: {all}"),
                format!(
                    "write which one, such as `component: {example}`: the value of its label app.kubernetes.io/component"
                ),
            )
        }
    };
    Refusal::new("spec.component", problem, remedy)
}

fn labelled(wanted: Option<&str>) -> String {
    let wanted = wanted.unwrap_or_default();
    format!("the label app.kubernetes.io/component: {wanted}")
}

fn component<'g>(given: &'g Given, name: &Name) -> Option<&'g str> {
    let object = given.sight(name).object()?;
    object["metadata"]["labels"].get(COMPONENT)?.as_str()
}

fn list(given: &Given, names: &[Name]) -> String {
    let words = names.iter().map(|name| match component(given, name) {
        Some(component) => format!("{name} ({component})"),
        None => name.to_string(),
    });
    // What to do stands behind it.
    cut(words.collect::<Vec<_>>().join(", "), LONGEST_LIST)
}

/// What is wrong with the workloads to which the applications of a spec have led, as if the spec had named them.
pub(super) fn refuse(object: &Rollout, members: &[Member<'_>]) -> Option<Refusal> {
    let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
    Applier::of(namespace, &object.spec.target_ref)?;
    let mut names = members.iter().map(|(name, _)| name.reference());
    let mut spec = object.spec.clone();
    spec.target_ref = names.next()?;
    spec.source_ref = names.collect();
    spec.component = None;
    let Refusal {
        field,
        problem,
        remedy,
    } = plan::refuse_members(&spec)?;
    let names: Vec<_> = members.iter().map(|(name, _)| name.to_string()).collect();
    let problem = format!("the workloads are {}: {problem}", names.join(", "));
    Some(Refusal::new(field, problem, remedy))
}

/// The revision that gates are asked about: the one of the spec, what Flux has applied, or the pod template of
/// the target.
pub(super) fn revision(given: &Given, target: Option<&Value>) -> Option<String> {
    let written = given.object.spec.revision.clone();
    written.or_else(|| match of_target(given) {
        Some((app, object)) => applied(app.kind, &flux(object)?),
        None => identity::template(target?),
    })
}

/// The application that is the target, as far as it is known.
fn of_target(given: &Given) -> Option<(Applier, &Value)> {
    let object = given.object.as_ref();
    let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
    let app = Applier::of(namespace, &object.spec.target_ref)?;
    let object = given.applier(&app).object()?;
    Some((app, object))
}

/// The revision that was applied last. What is longer than any revision of Flux is not taken for one: people who may
/// write the status of an application may write anything there.
fn applied(kind: ConsumerKind, app: &FluxObject) -> Option<String> {
    said(kind, app).filter(|revision| revision.len() <= LONGEST_REVISION)
}

/// The same, as the status says it. A chart that comes from a registry is known by its digest.
fn said(kind: ConsumerKind, app: &FluxObject) -> Option<String> {
    if kind == ConsumerKind::Kustomization && is_unhealthy(app) {
        return app.status.last_attempted_revision.clone();
    }
    let registry = SourceKind::OCIRepository;
    let is_of_registry = uses(kind, app)
        .iter()
        .any(|(kind, ..)| *kind == registry.as_str());
    let source = if is_of_registry {
        registry
    } else {
        SourceKind::HelmChart
    };
    runs(source, kind, app).map(str::to_owned)
}

/// Whether a Kustomization has applied everything, and not all of it is healthy. Only this run may make it so: it lets
/// out the version that fixes the one before.
fn is_unhealthy(app: &FluxObject) -> bool {
    let ready = condition(app, "Ready");
    ready.is_some_and(|it| it.status == "False" && it.reason == "HealthCheckFailed")
}

/// Why it is not known which revision the target has: Flux is at work, or could not apply what it wanted to. A
/// spec with a revision says it itself.
///
/// The run waits for Flux as it waits for gates. It must not be unready meanwhile: a Kustomization with `wait`
/// that brings the Rollout would wait for that.
pub(super) fn unsettled(given: &Given, target: &Workload<'_>) -> Option<Why> {
    let (app, whole) = of_target(given).filter(|_| given.object.spec.revision.is_none())?;
    let object = flux(whole).unwrap_or_default();
    let (status, ready) = (&object.status, condition(&object, "Ready"));
    let is_ready = ready.is_some_and(|it| it.status == "True");
    let is_applied = match app.kind {
        ConsumerKind::Kustomization => {
            let applied = applied(app.kind, &object);
            applied.is_some() && applied == status.last_attempted_revision
        }
        ConsumerKind::HelmRelease => is_ready && applied(app.kind, &object).is_some(),
    };
    // The two watches may be apart: the workload has changed, and what is seen of the application is from before.
    let is_older = |at: Timestamp| {
        ready.is_some_and(|it| it.last_transition_time.0.as_second() + SKEW < at.as_second())
    };
    let is_before = match corrects(app.kind, whole) {
        true => may_be_old_until(given, target).is_some(),
        false => applied_at(target.object, app.kind).is_some_and(is_older),
    };
    let is_at_work = is_at_work(&object) && !is_unhealthy(&object);
    let is_settled = is_applied && !is_at_work && !is_before;
    (!is_settled).then(|| not_applied(&app, &object, "revision"))
}

fn corrects(kind: ConsumerKind, app: &Value) -> bool {
    kind == ConsumerKind::HelmRelease && corrects_drift(app)
}

/// Until when it is not known whether the target is a HelmRelease as it was before its workload changed. One that
/// corrects drift changes the workload without becoming ready again, so only time tells them apart.
pub(super) fn may_be_old_until(given: &Given, target: &Workload<'_>) -> Option<Timestamp> {
    let (app, _) = of_target(given).filter(|(app, whole)| corrects(app.kind, whole))?;
    let until = later(applied_at(target.object, app.kind)?, LAG);
    (given.now.at < until).then_some(until)
}
