//! Who stands in the way of a run: what else writes to its workloads, or has claimed them.
//!
//! What comes in: the workloads of a run, who else there is, and what the run has written. What goes out: the
//! first conflict, with its name, who it is with, and what to do. The world holds a run and never fails it: it
//! goes on by itself once the conflict is gone. There is no fight: a value that somebody else has written is
//! not written again.

use sluice_crds::gated_source::ConsumerKind;
use sluice_crds::rollout::{Mode, OnFailure, Run, WorkloadRecord};

use super::applied::{self, AppliedAgain, TEMPLATE};
use super::claim::{Claim, Ended};
use super::course::{is_reached, present};
use super::desk::Desk;
use super::given::{Given, Member, Name};
use super::plan::Plan;
use super::why::Why;
use super::workload::Kind;
use super::{batch, identity};

mod selector;

/// What stands in the way of a run that would begin, with the target first. One whose status is lost goes on from the
/// sizes that it has written, and from no others.
pub(super) fn at_start(desk: &Desk<'_>, run: &Run, members: &[Member<'_>]) -> Option<Why> {
    let Desk { given, plan, again } = *desk;
    let each = || members.iter();
    each()
        .find_map(|member| claimed(given, member))
        .or_else(|| ended(given, members.first()?))
        .or_else(|| each().find_map(|member| autoscaler(given, member)))
        .or_else(|| each().find_map(|member| overwrites(given, run, member, OR_AGAIN)))
        .or_else(|| selector::overlapping(members))
        .or_else(|| each().find_map(on_delete))
        .or_else(|| {
            members
                .iter()
                .enumerate()
                .find_map(|(place, (name, _))| applies_again(again, name, place == 0))
        })
        .or_else(|| reverted_in_git(again, plan, members.first()?))
}

/// The same where nothing is left to roll out: no matter who else has the workloads.
pub(super) fn of_others(given: &Given, members: &[Member<'_>]) -> Option<Why> {
    let claimed = members.iter().find_map(|member| claimed(given, member));
    claimed.or_else(|| ended(given, members.first()?))
}

/// The same of a run in place that rolls something out.
pub(super) fn not_armed(given: &Given, (name, workload): &Member<'_>) -> Option<Why> {
    // A run that goes on, or has given way, has let out what is out.
    let claim = Claim::of(workload.object).filter(|claim| claim.ended.is_none());
    let is_ours = claim
        .is_some_and(|claim| claim.is_by(&given.object) || !given.others.contains_key(&claim.uid));
    if workload.is_armed() || is_ours {
        return None;
    }
    let (gone, all) = (workload.updated(), workload.seen().wanted);
    let partition = match workload.kind {
        Kind::CloneSet => "partition: 100%".to_owned(),
        Kind::StatefulSet | Kind::Deployment => format!("partition: {}", batch::ARMED),
    };
    Some(Why::by(
        "NotArmed",
        name.to_string(),
        format!(
            "{name} rolls a new template out by itself: {gone} of {all} pods have it already; write {partition} into its updateStrategy before its template changes"
        ),
    ))
}

/// A workload of a run that is here, as it was latched and as it is.
pub(super) type Latched<'a> = (&'a WorkloadRecord, Member<'a>);

/// What to do about what others have written while batches go out, and where a run ends.
const OR_ANOTHER: &str =
    "bring that back, or begin another run by another spec.revision or sluice.dev/retry";
const BRING_BACK: &str = "bring that back";
const OR_AGAIN: &str = "bring that back, or begin another run by sluice.dev/retry";

/// What stands in the way of a run whose batches go out.
pub(super) fn midway(desk: &Desk<'_>, run: &Run, members: &[Latched<'_>]) -> Option<Why> {
    let Desk { given, plan, again } = *desk;
    let each = || members.iter().map(|(_, member)| member);
    each()
        .find_map(|member| claimed(given, member))
        .or_else(|| each().find_map(|member| autoscaler(given, member)))
        .or_else(|| target_changed(run, members, None, OR_ANOTHER))
        .or_else(|| resized(run, members))
        .or_else(|| overwritten(given, run, members, OR_AGAIN))
        .or_else(|| each().find_map(on_delete))
        .or_else(|| applied_again(again, run, members))
        .or_else(|| reverted_in_git(again, plan, each().next()?))
}

/// How a run ends that does not succeed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undoing<'a> {
    /// Whether another run follows. Somebody has asked for that: what others have written meanwhile counts as it is.
    pub(super) gives_way: bool,
    /// The template that is brought back in place, as a hash.
    pub(super) restores: Option<&'a str>,
}

/// What stands in the way of a run that ends without success. `members`: the workloads to which something is written
/// now.
pub(super) fn undoing(
    desk: &Desk<'_>,
    run: &Run,
    members: &[Latched<'_>],
    undoing: Undoing<'_>,
) -> Option<Why> {
    let Desk { given, again, .. } = *desk;
    let each = || members.iter().map(|(_, member)| member);
    let written = || overwritten(given, run, members, BRING_BACK);
    each()
        .find_map(|member| claimed(given, member))
        .or_else(|| each().find_map(|member| autoscaler(given, member)))
        .or_else(|| {
            target_changed(run, members, undoing.restores, BRING_BACK)
                .filter(|_| run.mode == Mode::Update)
        })
        .or_else(|| members.iter().find_map(|it| source_changed(run, it)))
        .or_else(|| written().filter(|_| !undoing.gives_way))
        .or_else(|| each().find_map(on_delete))
        .or_else(|| applied_again(again, run, members))
        .or_else(|| template_in_git(again, each().next()?).filter(|_| undoing.restores.is_some()))
}

/// What stands in the way of the end of a run that has succeeded: nothing but another one that has begun.
pub(super) fn after_success(given: &Given, members: &[Latched<'_>]) -> Option<Why> {
    let each = members.iter().map(|(_, member)| member);
    each.into_iter().find_map(|member| claimed(given, member))
}

/// Others have rolled out since, or somebody has scaled: what a run that had ended would bring back is not the
/// version before.
pub(super) fn rolled_since(given: &Given, run: &Run, members: &[Latched<'_>]) -> Option<Why> {
    let is_as_left = |(record, (_, workload)): &Latched<'_>| {
        // What a run in place brings back is looked at by itself.
        let is_same =
            run.mode == Mode::Update || record.template == identity::template(workload.object);
        Claim::of(workload.object).is_some_and(|claim| {
            let is_of_run = claim.is_by(&given.object) && claim.run == run.id;
            is_same && is_of_run && is_reached(claim.wrote, present(Some(workload)))
        })
    };
    let (_, (name, _)) = members.iter().find(|it| !is_as_left(it))?;
    Some(Why::by(
        "RolledSince",
        name.to_string(),
        format!(
            "{name} is not as this run has left it, so the old version is not brought back; write a Rollout that does it"
        ),
    ))
}

/// Another Rollout has it. A claim of a UID that nobody has is taken over.
fn claimed(given: &Given, (name, workload): &Member<'_>) -> Option<Why> {
    let claim = Claim::of(workload.object).filter(|claim| claim.ended.is_none())?;
    let other = given
        .others
        .get(&claim.uid)
        .filter(|_| !claim.is_by(&given.object))?;
    Some(Why::by(
        "ClaimedBy",
        format!("Rollout {other}"),
        format!("{name} belongs to a run of the Rollout {other}; let that end, or delete it"),
    ))
}

/// The same was rolled out before and has failed, or its Rollout was deleted. It does not begin by itself: what
/// is deleted in the cluster and is still in Git comes back, and nobody has asked for that.
fn ended(given: &Given, (name, workload): &Member<'_>) -> Option<Why> {
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
        Why::by(
            "RunEnded",
            name.to_string(),
            format!(
                "a run of the same {how}; write another spec.revision, or annotate this Rollout with sluice.dev/retry"
            ),
        )
    })
}

fn autoscaler(given: &Given, (name, _): &Member<'_>) -> Option<Why> {
    let mut all = given.autoscalers.iter().flatten();
    let found = all.find(|it| it.is_of(name))?;
    Some(Why::by(
        "Autoscaler",
        format!("HorizontalPodAutoscaler {}", found.name),
        format!(
            "the HorizontalPodAutoscaler {} scales {name}; delete it, or let it scale something else, until the rollout is done",
            found.name
        ),
    ))
}

fn on_delete((name, workload): &Member<'_>) -> Option<Why> {
    workload.is_on_delete().then(|| {
        Why::by(
            "OnDelete",
            name.to_string(),
            format!("{name} replaces pods only when somebody deletes them; write updateStrategy.type: RollingUpdate"),
        )
    })
}

/// A revert would bring the old template back, and Flux would undo that.
fn reverted_in_git(again: &AppliedAgain, plan: &Plan, member: &Member<'_>) -> Option<Why> {
    let reverts = plan.revert_on_delete || plan.on_failure == OnFailure::Revert;
    template_in_git(again, member).filter(|_| reverts)
}

/// Flux applies the template of an object that has both versions.
fn template_in_git(again: &AppliedAgain, (name, workload): &Member<'_>) -> Option<Why> {
    if name.kind == Kind::Deployment || !workload.is_updating() {
        return None;
    }
    let by = again.by(name, TEMPLATE)?;
    Some(Why::by(
        "RevertInGit",
        by.to_string(),
        format!(
            "{by} applies the template of {name}, and would undo a revert; remove revertOnDelete and onFailure: Revert, and revert in Git instead"
        ),
    ))
}

/// The target has another template than the run has begun with, or brings back.
fn target_changed(
    run: &Run,
    members: &[Latched<'_>],
    restores: Option<&str>,
    remedy: &str,
) -> Option<Why> {
    let (record, (name, workload)) = members.first()?;
    let template = identity::template(workload.object);
    let is_target = run.workloads.first() == Some(*record);
    let is_known = record.template.is_none()
        || record.template == template
        || (restores.is_some() && restores == template.as_deref());
    (is_target && !is_known).then(|| {
        Why::by(
            "TargetChanged",
            name.to_string(),
            format!("{name} has another pod template than when the run began; {remedy}"),
        )
    })
}

/// A source would get pods of a template that nobody was asked about.
fn source_changed(run: &Run, (record, (name, workload)): &Latched<'_>) -> Option<Why> {
    let is_source = run.workloads.first() != Some(*record);
    let is_same =
        record.template.is_none() || record.template == identity::template(workload.object);
    (is_source && !is_same).then(|| {
        Why::by(
            "SourceChanged",
            name.to_string(),
            format!(
                "{name} has another pod template than when the run began, and would get pods of it; bring the old one back"
            ),
        )
    })
}

/// An object that is updated has not the replicas that it had when the run began.
fn resized(run: &Run, members: &[Latched<'_>]) -> Option<Why> {
    let (record, (name, workload)) = members.first()?;
    let replicas = present(Some(workload)).replicas;
    if run.mode != Mode::Update || replicas == Some(record.was) {
        return None;
    }
    let by = applied::owner(workload.object, "/spec/replicas");
    Some(Why::by(
        "FieldOverwritten",
        by.clone().unwrap_or_else(|| name.to_string()),
        format!(
            "{} has set the replicas of {name} to {}, and there were {} when the run began; {OR_AGAIN}",
            by.as_deref().unwrap_or("somebody"),
            replicas.unwrap_or(0),
            record.was
        ),
    ))
}

/// Flux writes a size again.
fn applied_again(again: &AppliedAgain, run: &Run, members: &[Latched<'_>]) -> Option<Why> {
    members.iter().find_map(|(record, (name, _))| {
        let is_target = run.workloads.first() == Some(*record);
        applies_again(again, name, is_target)
    })
}

/// A value is neither what the run has found nor what it has written.
fn overwritten(given: &Given, run: &Run, members: &[Latched<'_>], remedy: &str) -> Option<Why> {
    let all = members.iter().map(|(_, member)| member);
    all.into_iter()
        .find_map(|member| overwrites(given, run, member, remedy))
}

fn overwrites(
    given: &Given,
    run: &Run,
    (name, workload): &Member<'_>,
    remedy: &str,
) -> Option<Why> {
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
    let by = applied::owner(workload.object, pointer);
    Some(Why::by(
        "FieldOverwritten",
        by.clone().unwrap_or_else(|| name.to_string()),
        format!(
            "{} has set the {field} of {name} to {}, and the rollout has written {wrote}; {remedy}",
            by.as_deref().unwrap_or("somebody"),
            found.unwrap_or(0),
        ),
    ))
}

/// The fields that Flux writes again. Of a source, only its replicas are written.
fn applies_again(again: &AppliedAgain, name: &Name, is_target: bool) -> Option<Why> {
    let written = applied::written(name, is_target).iter();
    let all: Vec<_> = written
        .filter_map(|field| Some((*field, again.by(name, field)?)))
        .collect();
    let (_, by) = all.first()?;
    let paths: Vec<_> = all.iter().map(|(field, _)| *field).collect();
    let (paths, before) = (paths.join(", "), place(by.kind));
    Some(Why::by(
        "AppliedAgain",
        by.to_string(),
        format!(
            "{by} writes {paths} of {name} again; write into {before}:\n  ignore:\n    - paths: [{paths}]\n      target: {{kind: {}, name: {}}}",
            name.kind.as_str(),
            name.name
        ),
    ))
}

fn place(of: ConsumerKind) -> &'static str {
    match of {
        ConsumerKind::HelmRelease => "its spec.driftDetection",
        ConsumerKind::Kustomization => "its spec",
    }
}
