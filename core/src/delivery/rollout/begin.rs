//! How a run begins: what is latched of the workloads, from which sizes to which it goes, and what it begins
//! with.
//!
//! What comes in: the plan, the runs before, and the workloads that the spec names, all of them there. What goes out: a
//! [`Beginning`], or a mistake that only another spec fixes. A run whose status is lost is found by its claims:
//! it keeps its number, so that hooks know their calls again.

use sluice_crds::rollout::{Mode, PastRun, Run, Size, WorkloadRecord};

use super::app;
use super::batch::{InPlace, Pair, PairSizes, Scale};
use super::claim::Claim;
use super::course::{Course, count, of_pair, present};
use super::given::{Given, Member};
use super::identity;
use super::past::Past;
use super::plan::Plan;
use super::size::Span;
use super::workload::{Kind, Workload};
use crate::text::refusal::Refusal;

/// A run that would begin.
#[derive(Clone, Debug)]
pub(super) struct Beginning {
    /// What is latched.
    pub(super) run: Run,
    /// Its course.
    pub(super) course: Course,
    /// How many pods there are to be.
    pub(super) total: u32,
    /// How many there were.
    pub(super) original: u32,
    /// The sizes with which it starts.
    pub(super) start: Vec<Size>,
    /// The first batch that has something to do. None: nothing is left to roll.
    pub(super) first: Option<usize>,
}

/// The run that would begin with these workloads, the target first, after the runs of this history.
///
/// # Errors
/// A mistake that only another spec fixes.
pub(super) fn begin(
    given: &Given,
    history: &[PastRun],
    plan: &Plan,
    members: &[Member<'_>],
) -> Result<Option<Beginning>, Refusal> {
    let Some((target, _)) = members.split_first() else {
        return Ok(None);
    };
    let object = given.object.as_ref();
    let ids = (
        identity::identity(object, Some(target.1.object)),
        app::revision(given, Some(target.1.object)),
    );
    let (Some(identity), Some(revision)) = ids else {
        return Ok(None);
    };
    let past = Past::of(given, history, &identity, members);
    let were = past.pods(members);
    let course = course(&past, plan, &identity, (members, &were))?;
    let present: Vec<Size> = members.iter().map(|(_, it)| present(Some(it))).collect();
    let (mode, total, original) = totals(&course, &were);
    let is_nothing = is_nothing(&course, members);
    if let Some(span) = course.span().filter(|_| !is_nothing) {
        plan.sizes.fit(span)?;
    }
    let start = start(&course, &present);
    let records = members.iter().zip(&start).enumerate();
    let records = records.map(|(place, ((name, workload), start))| {
        let (was, claim) = (were[place], past.lost_claim(place));
        record(place, (name.reference(), workload), (was, *start), claim)
    });
    let run = Run {
        id: past.lost.unwrap_or_else(|| past.next_id()),
        mode,
        revision,
        identity,
        workloads: records.collect(),
    };
    let is_open = |index: &usize| !course.is_met(course.goal(plan, *index), &present);
    let first = (0..plan.sizes.count()).find(is_open);
    Ok(Some(Beginning {
        first: first.filter(|_| !is_nothing),
        run,
        total,
        original,
        start,
        course,
    }))
}

fn course(
    past: &Past<'_>,
    plan: &Plan,
    identity: &str,
    (members, were): (&[Member<'_>], &[u32]),
) -> Result<Course, Refusal> {
    match (members[0].0.kind, members.len()) {
        (Kind::StatefulSet | Kind::CloneSet, _) => in_place(plan, &members[0].1, were[0]),
        (Kind::Deployment, 2..) => {
            let sources = were[1..].to_vec();
            let old = sources.iter().map(|size| u64::from(*size)).sum();
            let there = old..=old + u64::from(were[0]);
            let total = past.total(identity, &there);
            let strategy = plan.members.strategy();
            let pair = Pair::of(plan.target_size, total, sources, strategy)?;
            pair.span()?;
            Ok(Course::Pair(pair))
        }
        (Kind::Deployment, _) => {
            let to = plan.target_size.ok_or_else(|| {
                Refusal::new(
                    "spec.rolloutPlan.targetSize",
                    "without a source nothing says how many pods there are to be",
                    "write targetSize, or name the Deployment with the old version in sourceRef",
                )
            })?;
            Ok(Course::Scale(Scale { from: were[0], to }))
        }
    }
}

fn in_place(plan: &Plan, target: &Workload<'_>, was: u32) -> Result<Course, Refusal> {
    let replicas = target.seen().wanted;
    let to = plan.target_size.unwrap_or(was);
    match target.is_updating() {
        true if plan.target_size.is_some_and(|size| size != replicas) => Err(Refusal::new(
            "spec.rolloutPlan.targetSize",
            format!("there are {replicas} pods, and they have to be updated, too"),
            "leave it out; scale in a run of its own",
        )),
        false if to != replicas || to != was => Ok(Course::Scale(Scale { from: was, to })),
        true | false => Ok(Course::Update(InPlace { replicas })),
    }
}

fn totals(course: &Course, were: &[u32]) -> (Mode, u32, u32) {
    match course {
        Course::Pair(pair) => {
            let total = pair.span().map_or(0, Span::end);
            let original = were.iter().skip(1).copied();
            (Mode::Pair, total, original.fold(0, u32::saturating_add))
        }
        Course::Update(it) => (Mode::Update, it.replicas, it.replicas),
        Course::Scale(it) => (Mode::Scale, it.to, it.from),
    }
}

/// The sizes with which a run starts.
fn start(course: &Course, present: &[Size]) -> Vec<Size> {
    match course {
        Course::Pair(pair) => {
            let sizes = of_pair(present);
            let target = pair.start(&sizes);
            super::course::to_sizes(&PairSizes { target, ..sizes })
        }
        // Only what the run writes: the rest is latched, and anyone who changes it is told.
        Course::Update(_) => present
            .iter()
            .map(|size| Size {
                replicas: None,
                ..*size
            })
            .collect(),
        Course::Scale(_) => present
            .iter()
            .map(|size| Size {
                partition: None,
                ..*size
            })
            .collect(),
    }
}

/// Whether there is nothing to roll out, however its partition is.
fn is_nothing(course: &Course, members: &[Member<'_>]) -> bool {
    match course {
        Course::Update(_) => !members.iter().any(|(_, it)| it.is_updating()),
        Course::Scale(scale) => scale.from == scale.to,
        Course::Pair(_) => false,
    }
}

fn record(
    place: usize,
    (reference, workload): (sluice_crds::rollout::WorkloadReference, &Workload<'_>),
    (was, start): (u32, Size),
    claim: Option<&Claim>,
) -> WorkloadRecord {
    let is_target = place == 0;
    let former = || workload.revisions().0.map(str::to_owned);
    let (begun, from) = match claim {
        Some(claim) => (claim.start, claim.former.clone()),
        None => {
            let begun = start.partition.or(start.replicas).unwrap_or(0);
            (begun, former())
        }
    };
    WorkloadRecord {
        r#ref: reference,
        uid: workload.uid().to_owned(),
        was: count(was),
        start: begun,
        template: identity::template(workload.object),
        former: from.filter(|_| is_target && workload.kind != Kind::Deployment),
    }
}
