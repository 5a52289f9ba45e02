//! Who stands in the way of a run: what else writes to its workloads, or has claimed them.
//!
//! What comes in: the workloads of a run, who else there is, and what the run has written. What goes out: the
//! first conflict, with its name, who it is with, and what to do. The world holds a run and never fails it: it
//! goes on by itself once the conflict is gone. There is no fight: a value that somebody else has written is
//! not written again.

use serde_json::Value;
use sluice_crds::rollout::{Mode, OnFailure, Run, WorkloadRecord};

use super::claim::{Claim, Ended};
use super::course::{is_reached, present};
use super::given::{Given, Name};
use super::plan::Plan;
use super::workload::{Kind, Workload};
use super::{batch, identity};

mod fields;
mod flux;
mod selector;
pub use fields::MANAGER;
pub(super) use fields::managed;
pub use flux::appliers;
pub(super) use flux::{SSA, applied_at, corrects_drift, is_left_alone, unknown_applier};

/// Something that stands in the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Conflict {
    /// In one word.
    pub(super) reason: &'static str,
    /// Who: an object, or a manager of fields.
    pub(super) by: String,
    /// In a sentence, with what to do.
    pub(super) message: String,
}

impl Conflict {
    fn new(reason: &'static str, by: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            reason,
            by: by.into(),
            message: message.into(),
        }
    }
}

/// A workload with its name.
pub(super) type Member<'a> = (Name, Workload<'a>);

/// What stands in the way of a run that would begin, with the target first.
pub(super) fn at_start(given: &Given, plan: &Plan, members: &[Member<'_>]) -> Option<Conflict> {
    let each = || members.iter();
    each()
        .find_map(|member| claimed(given, member))
        .or_else(|| ended(given, members.first()?))
        .or_else(|| each().find_map(|member| autoscaler(given, member)))
        .or_else(|| selector::overlapping(members))
        .or_else(|| each().find_map(on_delete))
        .or_else(|| {
            members
                .iter()
                .enumerate()
                .find_map(|(place, member)| flux::applies_again(given, member, place == 0))
        })
        .or_else(|| reverted_in_git(given, plan, members.first()?))
}

/// The same where nothing is left to roll out: no matter who else has the workloads.
pub(super) fn of_others(given: &Given, members: &[Member<'_>]) -> Option<Conflict> {
    let claimed = members.iter().find_map(|member| claimed(given, member));
    claimed.or_else(|| ended(given, members.first()?))
}

/// The same of a run in place that rolls something out.
pub(super) fn not_armed(given: &Given, (name, workload): &Member<'_>) -> Option<Conflict> {
    let is_ours = Claim::of(workload.object)
        .is_some_and(|claim| is_own(given, &claim) || !given.others.contains_key(&claim.uid));
    if workload.is_armed() || is_ours {
        return None;
    }
    let (gone, all) = (workload.updated(), workload.seen().wanted);
    let partition = match workload.kind {
        Kind::CloneSet => "partition: 100%".to_owned(),
        Kind::StatefulSet | Kind::Deployment => format!("partition: {}", batch::ARMED),
    };
    Some(Conflict::new(
        "NotArmed",
        name.to_string(),
        format!(
            "{name} rolls a new template out by itself: {gone} of {all} pods have it already; write {partition} into its updateStrategy before its template changes"
        ),
    ))
}

/// What stands in the way of a run that goes on. `concerns`: the workloads to which something may still be
/// written.
pub(super) fn midway(
    given: &Given,
    run: &Run,
    members: &[(&WorkloadRecord, Member<'_>)],
    concerns: impl Fn(&Name) -> bool,
) -> Option<Conflict> {
    let members = || members.iter().filter(|(_, (name, _))| concerns(name));
    let each = || members().map(|(_, member)| member);
    each()
        .find_map(|member| claimed(given, member))
        .or_else(|| each().find_map(|member| autoscaler(given, member)))
        .or_else(|| members().find_map(|(record, member)| changed(run, record, member)))
        .or_else(|| members().find_map(|(_, member)| overwritten(given, run, member)))
        .or_else(|| each().find_map(on_delete))
        .or_else(|| {
            members().find_map(|(record, member)| {
                let is_target = run.workloads.first() == Some(record);
                flux::applies_again(given, member, is_target)
            })
        })
}

fn is_own(given: &Given, claim: &Claim) -> bool {
    given.object.metadata.uid.as_deref() == Some(&claim.uid)
}

/// Another Rollout has it. A claim of a UID that nobody has is taken over.
fn claimed(given: &Given, (name, workload): &Member<'_>) -> Option<Conflict> {
    let claim = Claim::of(workload.object).filter(|claim| claim.ended.is_none())?;
    let other = given
        .others
        .get(&claim.uid)
        .filter(|_| !is_own(given, &claim))?;
    Some(Conflict::new(
        "ClaimedBy",
        format!("Rollout {other}"),
        format!("{name} belongs to a run of the Rollout {other}; let that end, or delete it"),
    ))
}

/// The same was rolled out before and has failed, or its Rollout was deleted. It does not begin by itself: what
/// is deleted in the cluster and is still in Git comes back, and nobody has asked for that.
fn ended(given: &Given, (name, workload): &Member<'_>) -> Option<Conflict> {
    let claim = Claim::of(workload.object)?;
    let how = match claim.ended? {
        Ended::Done => return None,
        Ended::Failed => "has failed",
        Ended::Aborted => "was aborted, for its Rollout was deleted",
    };
    let object = given.object.as_ref();
    let identity = identity::identity(object, Some(workload.object));
    let is_same = identity.is_some_and(|identity| claim.is_asked_for(&identity, object));
    is_same.then(|| {
        Conflict::new(
            "RunEnded",
            name.to_string(),
            format!(
                "a run of the same {how}; write another spec.revision, or annotate this Rollout with sluice.dev/retry"
            ),
        )
    })
}

fn autoscaler(given: &Given, (name, _): &Member<'_>) -> Option<Conflict> {
    let mut all = given.autoscalers.iter().flatten();
    let found = all.find(|it| it.scales().as_ref() == Some(name))?;
    Some(Conflict::new(
        "Autoscaler",
        format!("HorizontalPodAutoscaler {}", found.name),
        format!(
            "the HorizontalPodAutoscaler {} scales {name}; delete it, or let it scale something else, until the rollout is done",
            found.name
        ),
    ))
}

fn on_delete((name, workload): &Member<'_>) -> Option<Conflict> {
    workload.is_on_delete().then(|| {
        Conflict::new(
            "OnDelete",
            name.to_string(),
            format!("{name} replaces pods only when somebody deletes them; write updateStrategy.type: RollingUpdate"),
        )
    })
}

/// A revert brings the old template back, and Flux would undo that.
fn reverted_in_git(given: &Given, plan: &Plan, (name, workload): &Member<'_>) -> Option<Conflict> {
    let reverts = plan.revert_on_delete || plan.on_failure == OnFailure::Revert;
    if name.kind == Kind::Deployment || !reverts || !workload.is_updating() {
        return None;
    }
    let by = flux::applies(given, (name, workload), "/spec/template")?;
    Some(Conflict::new(
        "RevertInGit",
        by.clone(),
        format!(
            "{by} applies the template of {name}, and would undo a revert; remove revertOnDelete and onFailure: Revert, and revert in Git instead"
        ),
    ))
}

/// The template is another one than the run has begun with, or the replicas of an object that is updated.
fn changed(run: &Run, record: &WorkloadRecord, (name, workload): &Member<'_>) -> Option<Conflict> {
    let is_target = run.workloads.first() == Some(record);
    let template = identity::template(workload.object);
    if is_target && record.template.is_some() && record.template != template {
        return Some(Conflict::new(
            "TargetChanged",
            name.to_string(),
            format!(
                "{name} has another pod template than when the run began; bring that back, or begin another run by another spec.revision or sluice.dev/retry"
            ),
        ));
    }
    let replicas = present(Some(workload)).replicas;
    if run.mode == Mode::Update && replicas != Some(record.was) {
        let by = fields::owner(workload.object, "/spec/replicas");
        return Some(Conflict::new(
            "FieldOverwritten",
            by.clone().unwrap_or_else(|| name.to_string()),
            format!(
                "{} has set the replicas of {name} to {}, and there were {} when the run began; bring that back, or begin another run by sluice.dev/retry",
                by.as_deref().unwrap_or("somebody"),
                replicas.unwrap_or(0),
                record.was
            ),
        ));
    }
    None
}

/// A value is neither what the run has found nor what it has written.
fn overwritten(given: &Given, run: &Run, (name, workload): &Member<'_>) -> Option<Conflict> {
    let uid = given.object.metadata.uid.as_deref().unwrap_or_default();
    let claim = Claim::of(workload.object).filter(|claim| claim.is_of(uid, run.id))?;
    let present = present(Some(workload));
    if is_reached(claim.wrote, present) {
        return None;
    }
    let (field, pointer, wrote, found) = match claim.wrote.replicas {
        Some(wrote) if present.replicas != Some(wrote) => {
            ("replicas", "/spec/replicas", wrote, present.replicas)
        }
        Some(_) | None => (
            "partition",
            workload.kind.fields()[0],
            claim.wrote.partition.unwrap_or(0),
            present.partition,
        ),
    };
    let by = fields::owner(workload.object, pointer);
    Some(Conflict::new(
        "FieldOverwritten",
        by.clone().unwrap_or_else(|| name.to_string()),
        format!(
            "{} has set the {field} of {name} to {}, and the rollout has written {wrote}; bring that back, or begin another run by sluice.dev/retry",
            by.as_deref().unwrap_or("somebody"),
            found.unwrap_or(0),
        ),
    ))
}

/// Whether a workload is of the run: its UID is that of the record.
pub(super) fn is_it(record: &WorkloadRecord, object: &Value) -> bool {
    object.pointer("/metadata/uid").and_then(Value::as_str) == Some(&record.uid)
}
